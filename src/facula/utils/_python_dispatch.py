"""Modes that take over every kernel that runs, below the tape and the transforms.

Functions of several operators arrive as their parts, which are Facula's: a mode that counts or
changes single operators sees what PyTorch's would, one that lists all of them may not.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import facula
from facula import _C
from facula._library.namespaces import aten_overload, waiting

__all__ = ["TorchDispatchMode"]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.modes: list[TorchDispatchMode] = []


_stack = _Stack()


def _listen() -> None:
    _C._set_kernel_dispatch(_dispatch if _stack.modes else None)


def _dispatch(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], number: int) -> Any:
    """Gives a kernel to the innermost mode, with those outside of it active."""
    mode = _stack.modes.pop()
    _listen()
    operator = aten_overload(name, args, kwargs)
    waiting.calls.append((operator, args, kwargs, number))
    try:
        return mode.__torch_dispatch__(operator, (), args, kwargs)
    finally:
        waiting.calls.pop()
        _stack.modes.append(mode)
        _listen()


class TorchDispatchMode:
    """A context in which ``__torch_dispatch__`` is given the operators that run.

    The method gets an operator, such as ``facula.ops.aten.mm.default``, an empty tuple of types,
    and the operator's arguments, and returns its results. Inside of it the mode is off, and nothing
    is recorded for gradients. Modes nest: what the inner one calls is given to the outer one.

    Example::

        >>> from facula.utils._python_dispatch import TorchDispatchMode
        >>> class Names(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> x = facula.ones(2)
        >>> with Names():
        ...     y = (x * 2).exp()
        aten.mul.Tensor
        aten.exp.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Returns what the operator ``func`` returns; a subclass has to define it."""
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _stack.modes.append(self)
        _listen()
        return self

    def __exit__(self, *exc: object) -> None:
        _stack.modes.pop()
        _listen()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """An instance of the mode, for ``with``."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every operator run."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    return _stack.modes[-1] if _stack.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_stack.modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active."""
    return bool(_stack.modes)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """No mode is active inside; gives those that were."""
    former, _stack.modes = _stack.modes, []
    _listen()
    try:
        yield list(former)
    finally:
        _stack.modes = former
        _listen()


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor of a subclass says how it can be taken apart and put together."""
    subclass = isinstance(t, facula.Tensor) and type(t) is not facula.Tensor
    return subclass and all(hasattr(t, f"__tensor_{name}__") for name in ("flatten", "unflatten"))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says how they can be taken apart and put together."""
    subclass = issubclass(t, facula.Tensor) and t is not facula.Tensor
    return subclass and all(hasattr(t, f"__tensor_{name}__") for name in ("flatten", "unflatten"))
