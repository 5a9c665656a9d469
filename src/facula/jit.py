"""Names by which modules speak to TorchScript. Code is never scripted or traced here, so questions
are answered with no and marks change nothing.

Example::

    >>> class Scale(facula.nn.Module):
    ...     factor: facula.jit.Final[int]
    ...
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = 2
    ...
    ...     def forward(self, x):
    ...         return x * self.factor if not facula.jit.is_scripting() else x
    >>> Scale()(facula.ones(1))
    tensor([2.])
"""

from __future__ import annotations

import builtins
import collections.abc
from collections.abc import Callable
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

__all__ = [
    "Final",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "script_if_tracing",
    "unused",
]


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
