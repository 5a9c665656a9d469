"""Settings of the whole program: determinism, precision of products, threads, denormal numbers."""

from __future__ import annotations

import warnings

from facula import _C

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "use_deterministic_algorithms",
]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for the same results in every run.

    Facula's operators add in a fixed order in any case. What this changes is memory that is read
    before it is written: ``empty`` and its kin fill it, with NaN or the largest integer, unless
    ``facula.utils.deterministic.fill_uninitialized_memory`` is False.

    Args:
        mode: True or False.
        warn_only: whether an operator that cannot do it only warns.

    Example::

        >>> facula.use_deterministic_algorithms(True)
        >>> facula.empty(2)
        tensor([nan, nan])
        >>> facula.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    _C._set_deterministic(mode, warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """True after ``use_deterministic_algorithms(True)``."""
    return _C._deterministic()


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """True after ``use_deterministic_algorithms(True, warn_only=True)``."""
    return _C._deterministic_warn_only()


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same as :func:`use_deterministic_algorithms`, as one of "default", "warn", "error".

    Example::

        >>> facula.set_deterministic_debug_mode("warn")
        >>> facula.get_deterministic_debug_mode()
        1
        >>> facula.set_deterministic_debug_mode(0)
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    elif not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode).__name__}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    _C._set_deterministic(debug_mode > 0, debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0 for "default", 1 for "warn", 2 for "error"."""
    if not _C._deterministic():
        return 0
    return 1 if _C._deterministic_warn_only() else 2


_matmul_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how exact products of float32 matrices must be on a CUDA device.

    Args:
        precision: "highest" computes in float32; "high" and "medium" may round the factors to
            TF32, with 10 bits of mantissa. On the CPU it is always float32. Any other text changes
            nothing and warns.

    Example::

        >>> facula.set_float32_matmul_precision("high")
        >>> facula.get_float32_matmul_precision()
        'high'
        >>> facula.set_float32_matmul_precision("highest")
    """
    global _matmul_precision
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}"
        )
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the precision stays "
            f"{_matmul_precision!r}",
            stacklevel=2,
        )
        return
    _matmul_precision = precision
    _C._set_allow_tf32(precision != "highest")


def get_float32_matmul_precision() -> str:
    """What :func:`set_float32_matmul_precision` set."""
    return _matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers too small for full precision count as zero, in this thread and its loops.

    Returns True when the machine can do it.

    Example::

        >>> facula.set_flush_denormal(True)
        True
        >>> facula.tensor([1e-310], dtype=facula.float64) * 1
        tensor([0.], dtype=facula.float64)
        >>> facula.set_flush_denormal(False)
        True
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal expects a bool, but got {type(mode).__name__}")
    return _C._set_flush_denormal(mode)


_interop_threads: int | None = None


def get_num_interop_threads() -> int:
    """Threads for independent operations: a setting of PyTorch's, kept for programs that read it.

    Operators run on the calling thread and share their loops over ``get_num_threads()`` threads.
    """
    return _C.get_num_threads() if _interop_threads is None else _interop_threads


def set_num_interop_threads(n: int) -> None:
    """Sets what :func:`get_num_interop_threads` returns."""
    global _interop_threads
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, got {n}")
    _interop_threads = n
