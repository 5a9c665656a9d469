"""What programs ask and tell a compiler: operators run one by one, so nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
]


def is_compiling() -> bool:
    """False: code runs as it is written.

    Example::

        >>> facula.compiler.is_compiling()
        False
    """
    return False


def is_dynamo_compiling() -> bool:
    """False, as :func:`is_compiling`."""
    return False


def is_exporting() -> bool:
    """False: no graph of the program is being written."""
    return False


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: Any = None
) -> Any:
    """Marks a function that must not be compiled, which none is; returns it. A decorator with or
    without arguments.

    Example::

        >>> @facula.compiler.disable(recursive=False)
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Returns the function, or list of them: there is no graph that it might not enter."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function: its result is computed at each call."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Returns at once: there are no captured steps whose memory might be used again."""


def reset() -> None:
    """Returns at once: there is no compiled code to forget."""
