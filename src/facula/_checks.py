"""Checks of a program's own conditions, raising the exception that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula import _C

__all__ = [
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_type",
    "_check_value",
    "_check_with",
]

Message = Callable[[], Any] | None


def _check_with(error_type: type[Exception], cond: bool, message: Message = None) -> None:
    """Raises ``error_type`` with what ``message()`` returns, unless ``cond`` is true.

    Example::

        >>> facula._check_with(KeyError, 1 < 2, lambda: "never asked")
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond).__name__}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type("Expected cond to be True, but got False" if message is None else message())


def _check(cond: bool, message: Message = None) -> None:
    """Raises RuntimeError unless ``cond`` is true."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Message = None) -> None:
    """Raises IndexError unless ``cond`` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Message = None) -> None:
    """Raises ValueError unless ``cond`` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Message = None) -> None:
    """Raises TypeError unless ``cond`` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Message = None) -> None:
    """Raises NotImplementedError unless ``cond`` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raises RuntimeError unless ``i`` is a possible size: not negative and at most ``max``."""
    _check_with(RuntimeError, i >= 0, message or (lambda: f"a size must not be negative, got {i}"))
    if max is not None:
        _check_with(RuntimeError, i <= max, message or (lambda: f"{i} is more than {max}"))


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raises RuntimeError unless all elements of a boolean tensor are true."""
    if not isinstance(cond, _C.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond).__name__}")
    if cond.dtype is not _C.bool:
        raise TypeError(f"cond tensor must have dtype facula.bool, but got {cond.dtype}")
    _check_with(RuntimeError, bool(cond.all()), message)
