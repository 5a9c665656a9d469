"""Objects and modes that take operators over with ``__torch_function__``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from facula import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """True when an argument or an active mode takes calls over.

    Example::

        >>> facula.overrides.has_torch_function((facula.ones(1),))
        False
    """
    return _C._has_torch_function(tuple(relevant_args))


def has_torch_function_unary(arg: Any) -> bool:
    """``has_torch_function`` for one argument."""
    return _C._has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """``has_torch_function`` for arguments given one by one."""
    return _C._has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls the ``__torch_function__`` of the first argument that has one, or of the mode."""
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """True for tensors and for objects with a ``__torch_function__``.

    Example::

        >>> facula.overrides.is_tensor_like(facula.ones(1))
        True
    """
    return isinstance(inp, _C.Tensor) or hasattr(type(inp), "__torch_function__")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Decorates a Python function so that ``__torch_function__`` can take it over."""

    def inner(function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return inner


def resolve_name(f: Callable[..., Any]) -> str | None:
    """A readable name of an operator, such as ``facula.add``."""
    if isinstance(f, _C.OperatorMethod):
        return f"facula.Tensor.{f.__name__}"
    if isinstance(f, _C.OperatorFunction):
        return f"facula.{f.__name__}"
    return getattr(f, "__qualname__", None)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """True for methods of Tensor and the getters of its properties."""
    return isinstance(func, _C.OperatorMethod) or getattr(func, "__name__", "") == "__get__"


class TorchFunctionMode:
    """While active, every operator call arrives at its ``__torch_function__``.

    Example::

        >>> class Log(facula.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Log():
        ...     _ = facula.ones(2).add(1)
        ones
        add
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
