"""Objects and modes that take operators over with ``__torch_function__``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from facula import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
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
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return inner


@functools.cache
def _operator_names() -> dict[Any, str]:
    """The public dotted name of each operator; of several, the shortest."""
    names: dict[Any, str] = {}
    for name, function in _C._operators.items():
        if function not in names or len(name) < len(names[function]):
            names[function] = name
    return names


def resolve_name(f: Callable[..., Any]) -> str | None:
    """A readable name of an operator or method, or None for other functions.

    Example::

        >>> facula.overrides.resolve_name(facula.linalg.inv)
        'facula.linalg.inv'
        >>> facula.overrides.resolve_name(facula.Tensor.add)
        'facula.Tensor.add'
    """
    if isinstance(f, _C.OperatorMethod) or f in _operator_slots():
        return f"facula.Tensor.{f.__name__}"
    if isinstance(f, _C.OperatorFunction):
        return f"facula.{_operator_names().get(f, f.__name__)}"
    owner = getattr(f, "__self__", None)
    if getattr(f, "__name__", "") == "__get__" and isinstance(owner, types.GetSetDescriptorType):
        return f"facula.Tensor.{owner.__name__}.__get__"
    for space, functions in _python_functions().items():
        for function in functions:
            if function is f:
                prefix = "facula.Tensor" if space is _C.Tensor else space.__name__
                return f"{prefix}.{f.__name__}"
    return None


@functools.cache
def _operator_slots() -> list[Any]:
    """What Python calls for symbols, brackets and conversions: ``Tensor.__add__`` and its like."""
    asks_nobody = {"__init__", "__new__", "__hash__", "__getattribute__", "__iter__", "__repr__"}
    return [
        value
        for name, value in vars(_C.Tensor.__mro__[-2]).items()
        if isinstance(value, types.WrapperDescriptorType) and name not in asks_nobody
    ]


@functools.cache
def _python_functions() -> dict[Any, list[Any]]:
    """Functions and methods written in Python that take tensors over to ``__torch_function__``."""
    import facula
    from facula import functional

    methods = [
        value
        for cls in facula.Tensor.__mro__
        for name, value in vars(cls).items()
        if isinstance(value, _PYTHON_METHODS) and (not name.startswith("__") or name == "__repr__")
    ]
    written = [getattr(functional, name) for name in functional.__all__]
    created = [getattr(facula, name) for name in _CREATION]
    first = [getattr(facula.nn.init, name) for name in vars(facula.nn.init) if name[-1] == "_"]
    return {
        facula: written + created,
        facula.Tensor: methods,
        facula.nn.init: [f for f in first if isinstance(f, types.FunctionType)],
    }


_PYTHON_METHODS = (types.FunctionType, types.MethodDescriptorType)
# Functions that look at their arguments themselves, in C++ or in Python.
_CREATION = ("tensor", "as_tensor", "asarray", "from_numpy", "sparse_coo_tensor")


def _takes_tensors(function: Any) -> bool:
    signature = getattr(function, "__text_signature__", None) or ""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return "input" in signature or "self" in signature
    return any(name in _TENSOR_PARAMETERS for name in parameters)


_TENSOR_PARAMETERS = {
    "input", "self", "tensors", "tensor", "mean", "A", "x", "count", "condition", "weight", "query",
}  # fmt: skip


def get_overridable_functions() -> dict[Any, list[Any]]:
    """What ``__torch_function__`` can take over, by the namespace that it is in.

    Example::

        >>> functions = facula.overrides.get_overridable_functions()
        >>> facula.add in functions[facula], facula.Tensor.add in functions[facula.Tensor]
        (True, True)
    """
    import importlib

    import facula

    result: dict[Any, list[Any]] = {space: list(f) for space, f in _python_functions().items()}
    for name, function in _C._operators.items():
        space, _, leaf = name.rpartition(".")
        if leaf.startswith("_") or not _takes_tensors(function):
            continue
        module = importlib.import_module(f"facula.{space}") if space else facula
        result.setdefault(module, []).append(function)
    for cls in facula.Tensor.__mro__:
        result[facula.Tensor] += [
            value
            for name, value in vars(cls).items()
            if isinstance(value, (_C.OperatorMethod, types.GetSetDescriptorType))
            and not name.startswith("__")
        ]
    result[facula.Tensor] += _operator_slots()
    return result


def get_ignored_functions() -> set[Any]:
    """Public functions that never ask ``__torch_function__``: they take no tensors.

    Example::

        >>> facula.zeros in facula.overrides.get_ignored_functions()
        True
    """
    import facula

    asked = {id(f) for functions in get_overridable_functions().values() for f in functions}
    return {
        value
        for name, value in vars(facula).items()
        if not name.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and id(value) not in asked
    }


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """For each overridable function one with the same signature that returns -1.

    Example::

        >>> facula.overrides.get_testing_overrides()[facula.add](1, 2)
        -1
    """

    def dummy(function: Any) -> Callable[..., int]:
        def answer(*args: Any, **kwargs: Any) -> int:
            return -1

        with contextlib.suppress(TypeError, ValueError):
            answer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return answer

    return {
        function: dummy(function)
        for functions in get_overridable_functions().values()
        for function in functions
    }


def get_default_nowrap_functions() -> set[Any]:
    """Getters whose results stay what they are for subclasses.

    Example::

        >>> len(facula.overrides.get_default_nowrap_functions()) > 0
        True
    """
    names = ("_base", "grad", "_grad")
    getters = (getattr(_C.Tensor, name, None) for name in names)
    return {g.__get__ for g in getters if isinstance(g, types.GetSetDescriptorType)}


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Lets operators called inside of a ``__torch_function__`` ask it again.

    Example::

        >>> with facula.overrides.enable_reentrant_dispatch():
        ...     _ = facula.ones(1) + 1
    """
    before = _C._set_torch_function_enabled(True)
    try:
        yield
    finally:
        _C._set_torch_function_enabled(before)


def _get_current_function_mode_stack() -> list[Any]:
    """The active modes, the innermost last."""
    modes = [_C._pop_torch_function_mode() for _ in range(_C._torch_function_mode_count())][::-1]
    for mode in modes:
        _C._push_torch_function_mode(mode)
    return modes


def _get_current_function_mode() -> Any:
    """The innermost active mode, or None."""
    stack = _get_current_function_mode_stack()
    return stack[-1] if stack else None


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Leaves the innermost mode for a block."""
    mode = _C._pop_torch_function_mode()
    try:
        yield mode
    finally:
        if mode is not None:
            _C._push_torch_function_mode(mode)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """True for methods of Tensor and the getters of its properties.

    Example::

        >>> facula.overrides.is_tensor_method_or_property(facula.Tensor.add)
        True
        >>> facula.overrides.is_tensor_method_or_property(facula.add)
        False
    """
    if isinstance(func, _C.OperatorMethod) or getattr(func, "__name__", "") == "__get__":
        return True
    if func in _operator_slots():
        return True
    return any(func is method for method in _python_functions()[_C.Tensor])


def redispatch_function(
    func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
) -> Any:
    """Calls a function without the one override that it would ask for first.

    What the function calls itself is overridden as ever. For use in ``__torch_function__``.

    Args:
        func: the function.
        types: the types of its arguments that have overrides.
        args: its arguments.
        kwargs: its named arguments.

    Example::

        >>> from facula.overrides import handle_torch_function, has_torch_function
        >>> class Logging(facula.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return facula.overrides.redispatch_function(func, types, args, kwargs)
        >>> def doubled(x):
        ...     if has_torch_function((x,)):
        ...         return handle_torch_function(doubled, (x,), x)
        ...     return x * 2
        >>> doubled(facula.ones(1).as_subclass(Logging))
        doubled
        mul
        tensor([2.])
    """
    named = kwargs or {}
    if _is_native(func):  # it calls nothing that could be overridden
        before = _C._set_torch_function_all_disabled(True)
        try:
            return func(*args, **named)
        finally:
            _C._set_torch_function_all_disabled(before)
    _C._skip_next_torch_function(True)
    try:
        return func(*args, **named)
    finally:
        _C._skip_next_torch_function(False)


def _is_native(func: Any) -> bool:
    """Whether a function is an operator or a method of the core."""
    if getattr(func, "__name__", "") == "__get__":
        return True
    return not isinstance(func, (types.FunctionType, types.MethodType, functools.partial))


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

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """A mode to enter, under the name of older programs."""
        return cls(*args, **kwargs)

    def __enter__(self) -> TorchFunctionMode:
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
