"""Utilities beside the core. Submodules are loaded when they are first used."""

from __future__ import annotations

import importlib
import weakref
from types import ModuleType
from typing import Any

from facula import _C

_SUBMODULES = (
    "_contextlib",
    "_device",
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "tensorboard",
    "weak",
)


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def swap_tensors(t1: Any, t2: Any) -> None:
    """Makes each of two tensor objects stand for what the other stood for.

    Everything goes with the tensors: values, gradients, attributes, the class. Whoever holds one of
    the objects, a module its parameter for instance, sees the other tensor from now on.

    Example::

        >>> a, b = facula.zeros(2), facula.ones(3)
        >>> facula.utils.swap_tensors(a, b)
        >>> a
        tensor([1., 1., 1.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"{name} must be a Tensor, got {type(tensor).__name__}")
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if t1 is t2:
        return
    first, second = type(t1), type(t2)
    if first is not second:  # where the layouts of the classes differ, nothing is changed
        t1.__class__ = second
        t2.__class__ = first
    _C._swap_tensors(t1, t2)


def set_module(obj: Any, mod: str) -> None:
    """Sets ``__module__`` of an object."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBMODULES])
