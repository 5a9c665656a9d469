"""Choosing products by measurement, under PyTorch's names.

cuBLASLt's own choice is used, which needs no tuning: tuning is off and cannot be switched on.
"""

from __future__ import annotations

__all__ = [
    "enable",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_results",
    "get_validators",
    "is_enabled",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "tuning_enable",
    "tuning_is_enabled",
]


def _stay_off(name: str, on: bool) -> None:
    if on:
        raise NotImplementedError(
            f"facula.cuda.tunable.{name}(): products are chosen by cuBLASLt and are not tuned"
        )


def enable(val: bool = True) -> None:
    """Raises unless ``val`` is False: there is nothing to be tuned.

    Example::

        >>> facula.cuda.tunable.enable(False)
    """
    _stay_off("enable", val)


def is_enabled() -> bool:
    """False: products are not chosen by measurement.

    Example::

        >>> facula.cuda.tunable.is_enabled()
        False
    """
    return False


def tuning_enable(val: bool = True) -> None:
    """Raises unless ``val`` is False: there is nothing to be tuned."""
    _stay_off("tuning_enable", val)


def tuning_is_enabled() -> bool:
    """False: nothing is measured."""
    return False


def record_untuned_enable(val: bool = True) -> None:
    """Raises unless ``val`` is False: there is nothing to be tuned."""
    _stay_off("record_untuned_enable", val)


def record_untuned_is_enabled() -> bool:
    """False: nothing is recorded."""
    return False


def get_max_tuning_duration() -> int:
    """0: nothing is measured."""
    return 0


def get_max_tuning_iterations() -> int:
    """0: nothing is measured."""
    return 0


def get_filename() -> str:
    """An empty text: there is no file of results."""
    return ""


def get_results() -> tuple[tuple[str, str, str, float], ...]:
    """No results: nothing was measured.

    Example::

        >>> facula.cuda.tunable.get_results()
        ()
    """
    return ()


def get_validators() -> tuple[tuple[str, str], ...]:
    """Nothing that results would depend on."""
    return ()
