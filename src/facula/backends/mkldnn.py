"""Intel's oneDNN, which Facula does not use: convolutions are its own."""

from __future__ import annotations

from contextlib import AbstractContextManager

from facula.backends._options import make_options

__all__ = ["flags", "is_available", "set_flags"]


def is_available() -> bool:
    """False."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[bool, ...]:
    """Sets what is not None, and returns what was set before.

    Example::

        >>> before = facula.backends.mkldnn.set_flags(_enabled=False)
        >>> _ = facula.backends.mkldnn.set_flags(*before)
    """
    given = {"enabled": _enabled, "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    before = tuple(_self._options[name] for name in given)
    for name, value in given.items():
        if value is not None:
            _self._set(name, value)
    return before


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> AbstractContextManager[None]:
    """Sets all settings for a block.

    Example::

        >>> with facula.backends.mkldnn.flags(enabled=False):
        ...     facula.backends.mkldnn.enabled
        False
    """
    return _self._changed(enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)


_self = make_options(__name__, enabled=True, deterministic=False, allow_tf32=True)
