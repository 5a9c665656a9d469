"""Names of PyTorch's compiler that training scripts use beside :mod:`facula.compiler`. Nothing is
compiled, so settings are kept and marks change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula._dynamo import config as config
from facula._dynamo import eval_frame as eval_frame
from facula.compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
)

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "set_stance",
]


def optimize(backend: Any = "inductor", **options: Any) -> Callable[[Any], Any]:
    """A decorator that does what :func:`facula.compile` does.

    Example::

        >>> from facula import _dynamo
        >>> _dynamo.optimize("eager")(abs)(-2)
        2
    """
    return lambda model: compile(model)


def graph_break(msg: str = "") -> None:
    """Returns at once: there is no graph to break."""


def mark_dynamic(
    t: Any,
    index: Any,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list[Any] | None = None,
) -> None:
    """Returns at once: every size may change."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Returns at once: every size may change."""


def mark_static(t: Any, index: Any = None) -> None:
    """Returns at once: no code is made for certain sizes."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Returns at once: no code is made for certain memory."""
