"""TorchScript's names. Python runs as Python here: what would be compiled is returned as it is,
marks change nothing, and questions whether code is being compiled are answered with no.

Programs keep their results; :func:`facula.save` and :func:`facula.load` take the place of
TorchScript files.

Example::

    >>> @facula.jit.script
    ... def scaled(x, factor: float):
    ...     return x * factor if not facula.jit.is_scripting() else x
    >>> scaled(facula.ones(1), 2.0)
    tensor([2.])
"""

from __future__ import annotations

import builtins
import collections.abc
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import UnionType
from typing import Any, Final, NoReturn, TypeVar, Union, get_args, get_origin

from facula.futures import Future
from facula.nn import Module

T = TypeVar("T")

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

Attribute = namedtuple("Attribute", ["value", "type"])
Attribute.__doc__ = """A value with the type that TorchScript should give it, which a
:class:`ScriptModule` keeps without its type.

Example::

    >>> facula.jit.Attribute({}, dict[str, int]).value
    {}
"""


class Error(RuntimeError):
    """What an exception inside compiled code would be raised as; for ``except`` clauses.

    Example::

        >>> issubclass(facula.jit.Error, RuntimeError)
        True
    """


class ScriptWarning(Warning):
    """Warnings of a compiler, for filters; never given.

    Example::

        >>> import warnings
        >>> warnings.filterwarnings("ignore", category=facula.jit.ScriptWarning)
    """


class TracerWarning(Warning):
    """Warnings of a tracer, for filters; never given, since Python's control flow stays as it is.

    Example::

        >>> import warnings
        >>> warnings.filterwarnings("ignore", category=facula.jit.TracerWarning)
    """

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing: there are no such warnings."""


class TracingCheckError(Exception):
    """What a recording that differs from its function would raise; for ``except`` clauses.

    Example::

        >>> issubclass(facula.jit.TracingCheckError, Exception)
        True
    """


class ScriptFunction:
    """The type of compiled functions, for ``isinstance``; there are none.

    Example::

        >>> isinstance(facula.jit.script(lambda x: x), facula.jit.ScriptFunction)
        False
    """

    def __init__(self) -> None:
        raise TypeError(
            "ScriptFunction: functions are not compiled; facula.jit.script returns them"
        )


class ScriptModule(Module):
    """A module as any other: its methods are Python's. :class:`Attribute` values lose their notes.

    Example::

        >>> class Doubled(facula.jit.ScriptModule):
        ...     @facula.jit.script_method
        ...     def forward(self, x):
        ...         return 2 * x
        >>> Doubled()(facula.ones(1))
        tensor([2.])
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is Attribute:
            value = value.value
        super().__setattr__(name, value)


class RecursiveScriptModule(ScriptModule):
    """The type of compiled modules, for ``isinstance``; :func:`script` returns modules as they are.

    Example::

        >>> isinstance(facula.jit.script(facula.nn.ReLU()), facula.jit.RecursiveScriptModule)
        False
    """


class TracedModule(ScriptModule):
    """The type of recorded modules, for ``isinstance``; :func:`trace` returns modules as they are.

    Example::

        >>> net = facula.jit.trace(facula.nn.ReLU(), facula.ones(1))
        >>> isinstance(net, facula.jit.TracedModule)
        False
    """


class TopLevelTracedModule(TracedModule):
    """The type of a recorded model, for ``isinstance``.

    Example::

        >>> issubclass(facula.jit.TopLevelTracedModule, facula.jit.ScriptModule)
        True
    """


def script(
    obj: T,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: Any = None,
) -> T:
    """Returns the function, module or class as it is. A decorator, too.

    Args:
        obj: what would be compiled.
        optimize: accepted and not used.
        example_inputs: accepted and not used: nothing needs to be known about types.

    Example::

        >>> @facula.jit.script
        ... def double(x):
        ...     return 2 * x
        >>> double(facula.ones(2))
        tensor([2., 2.])
    """
    return obj


def script_method(fn: T) -> T:
    """Returns the method of a :class:`ScriptModule` as it is.

    Example::

        >>> facula.jit.script_method(len) is len
        True
    """
    return fn


def interface(obj: T) -> T:
    """Returns the class, which names methods that modules must have, as it is.

    Example::

        >>> @facula.jit.interface
        ... class Step:
        ...     def forward(self, x: facula.Tensor) -> facula.Tensor: ...
        >>> Step.__name__
        'Step'
    """
    if not builtins.isinstance(obj, type):
        raise RuntimeError(f"interface(): the argument must be a class, not {obj!r}")
    return obj


def trace(
    func: T,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> T:
    """Calls a function or module on example inputs, so that what is wrong with it shows now, and
    returns it. Branches and loops stay those of Python.

    Args:
        func: a function or a module.
        example_inputs: a tensor, or a tuple of arguments.
        check_inputs: more tuples of arguments to call it with.
        example_kwarg_inputs: keyword arguments, in place of ``example_inputs``.

    The other arguments are accepted and not used.

    Example::

        >>> traced = facula.jit.trace(lambda x: x + 1, facula.zeros(2))
        >>> traced(facula.ones(3))
        tensor([2., 2., 2.])
    """
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("trace(): give either example_inputs or example_kwarg_inputs")
    if not callable(func):
        raise TypeError(f"trace(): func must be a function or a module, not {type(func).__name__}")
    if example_kwarg_inputs is not None:
        if not builtins.isinstance(example_kwarg_inputs, dict):
            raise RuntimeError("trace(): example_kwarg_inputs must be a dict")
        func(**example_kwarg_inputs)
    else:
        for inputs in (example_inputs, *(check_inputs or ())):
            func(*_as_arguments(inputs))
    return func


def trace_module(
    mod: T,
    inputs: dict[str, Any],
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> T:
    """Calls methods of a module on example inputs and returns the module; see :func:`trace`.

    Args:
        mod: a module.
        inputs: the arguments of each method by its name.
        check_inputs: more such dicts.
        example_inputs_is_kwarg: whether the arguments of a method are a dict of keyword arguments.

    Example::

        >>> net = facula.nn.ReLU()
        >>> facula.jit.trace_module(net, {"forward": facula.ones(2)}) is net
        True
    """
    if not builtins.isinstance(mod, Module):
        raise AttributeError(f"trace_module(): mod must be a module, not {type(mod).__name__}")
    if not builtins.isinstance(inputs, dict):
        raise AttributeError("trace_module(): inputs must be a dict of the methods' arguments")
    for calls in (inputs, *(check_inputs or ())):
        for name, arguments in calls.items():
            method = mod if name == "forward" else getattr(mod, name)
            if example_inputs_is_kwarg:
                method(**arguments)
            else:
                method(*_as_arguments(arguments))
    return mod


def _as_arguments(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if builtins.isinstance(inputs, (tuple, list)) else (inputs,)


def freeze(mod: T, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> T:
    """Returns the module, which must be in evaluation mode, as it is.

    Example::

        >>> net = facula.nn.ReLU().eval()
        >>> facula.jit.freeze(net) is net
        True
    """
    if getattr(mod, "training", False) and not preserved_attrs:
        raise RuntimeError("freeze(): the module is in training mode; call eval() first")
    return mod


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Nothing: there is no compiled code to work on.

    Example::

        >>> facula.jit.run_frozen_optimizations(facula.nn.ReLU().eval())
    """


def optimize_for_inference(mod: T, other_methods: list[str] | None = None) -> T:
    """Returns the module as it is.

    Example::

        >>> net = facula.nn.ReLU().eval()
        >>> facula.jit.optimize_for_inference(net) is net
        True
    """
    return mod


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Calls the function now and returns its result as a future, as PyTorch does outside of
    compiled code.

    Example::

        >>> facula.jit.wait(facula.jit.fork(facula.add, facula.ones(1), 2))
        tensor([3.])
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """The result of :func:`fork`.

    Example::

        >>> facula.jit.wait(facula.jit.fork(max, 1, 2))
        2
    """
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises: TorchScript files hold compiled code. ``facula.save(module.state_dict(), f)`` keeps
    the numbers.

    Example::

        >>> try:
        ...     facula.jit.save(facula.nn.ReLU(), "net.pt")
        ... except NotImplementedError:
        ...     print("not supported")
        not supported
    """
    raise NotImplementedError(
        "jit.save(): TorchScript files are not written; save the parameters with "
        "facula.save(module.state_dict(), f)"
    )


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> NoReturn:
    """Raises: TorchScript files hold compiled code. Save ``module.state_dict()`` where the file was
    made, build the module here, and give it what :func:`facula.load` reads.

    Example::

        >>> try:
        ...     facula.jit.load("net.pt")
        ... except NotImplementedError:
        ...     print("not supported")
        not supported
    """
    raise NotImplementedError(
        "jit.load(): TorchScript files are not read; save module.state_dict() where the file was "
        "made and pass facula.load(f) to load_state_dict of the same module built here"
    )


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which compiled code would be optimised, or not; changes nothing.

    Example::

        >>> with facula.jit.optimized_execution(False):
        ...     facula.ones(1) + 1
        tensor([2.])
    """
    yield


class strict_fusion:
    """A block in which a compiler must fuse everything; changes nothing.

    Example::

        >>> with facula.jit.strict_fusion():
        ...     facula.ones(1) + 1
        tensor([2.])
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        return None


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keeps how often a compiler may specialise on shapes; returns what was set before.

    Example::

        >>> before = facula.jit.set_fusion_strategy([("DYNAMIC", 3)])
        >>> facula.jit.set_fusion_strategy(before)
        [('DYNAMIC', 3)]
    """
    global _fusion_strategy
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise RuntimeError(f"set_fusion_strategy(): {kind!r} is neither 'STATIC' nor 'DYNAMIC'")
        int(depth)
    before, _fusion_strategy = _fusion_strategy, list(strategy)
    return before


_fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing: there is no compiled code to fuse.

    Example::

        >>> facula.jit.enable_onednn_fusion(True)
    """


def onednn_fusion_enabled() -> bool:
    """False: there is no compiled code to fuse.

    Example::

        >>> facula.jit.onednn_fusion_enabled()
        False
    """
    return False


def is_scripting() -> bool:
    """False: Python runs as Python."""
    return False


def is_tracing() -> bool:
    """False: no calls are being recorded."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a method that is left to Python, as all are; returns it. A decorator with or without
    arguments.

    Example::

        >>> @facula.jit.ignore
        ... def plain(x):
        ...     return x
        >>> plain(1)
        1
    """
    return drop if callable(drop) else lambda function: function


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method that would raise when scripted; returns it."""
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method that would be scripted; returns it."""
    return fn


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, since calls are never traced."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value; the type is a note to a compiler.

    Example::

        >>> facula.jit.annotate(list[int], [1, 2])
        [1, 2]
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Like Python's, and looks into lists, dicts, tuples and optional values.

    Args:
        obj: anything.
        target_type: a type such as ``list[int]``, or a tuple of them.

    Example::

        >>> facula.jit.isinstance([1, 2], list[int]), facula.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    if type(target_type) is tuple:
        return any(isinstance(obj, t) for t in target_type)
    kind, parts = get_origin(target_type), get_args(target_type)
    if kind is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if kind in (Union, UnionType):
        return any(isinstance(obj, part) for part in parts)
    if not builtins.isinstance(obj, kind):
        return False
    if kind is tuple and not (len(parts) == 2 and parts[1] is Ellipsis):
        return len(obj) == len(parts) and all(map(isinstance, obj, parts))
    if issubclass(kind, collections.abc.Mapping):
        return all(isinstance(k, parts[0]) and isinstance(v, parts[1]) for k, v in obj.items())
    return all(isinstance(item, parts[0]) for item in obj)
