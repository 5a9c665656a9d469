"""Entering and leaving the levels of function transforms, and looking behind their tensors.

Every transform that runs has a level. Tensors inside of it are wrappers that stand for tensors of
the levels outside; an operator is handled by the innermost level among its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula import _C

_transforms = _C.transforms


class entered:
    """A context manager that enters a level and gives its number.

    Inside of one that differentiates there is no inference mode: derivatives are recorded.
    """

    def __init__(self, kind: str, batch_size: int = 0, randomness: str = "error") -> None:
        self.kind, self.batch_size, self.randomness = kind, batch_size, randomness

    def __enter__(self) -> int:
        self.inferring = self.kind != "vmap" and _C.is_inference_mode_enabled()
        if self.inferring:
            _C._set_inference_mode(False)
        self.level: int = _transforms.push_level(self.kind, self.batch_size, self.randomness)
        return self.level

    def __exit__(self, *exc: object) -> None:
        # Levels that code inside has entered and, because of an error, not left end with this one.
        while _transforms.pop_level() not in (self.level, 0):
            pass
        if self.inferring:
            _C._set_inference_mode(True)


def on_tensors(function: Callable[..., Any], level: int) -> Callable[[Any], Any]:
    """``function(x, level)`` for tensors; other values as they are."""
    return lambda x: function(x, level) if isinstance(x, _C.Tensor) else x


def is_recorded(tensor: Any) -> bool:
    """Whether any tape, of a level or of plain tensors, leads to the tensor."""
    while not tensor.requires_grad:
        kind = _transforms.kind_of(tensor)
        if not kind:
            return False
        if kind == "jvp":
            primal, tangent = _transforms.unpack_dual(tensor, _transforms.level_of(tensor))
            if tangent is not None and is_recorded(tangent):
                return True
            tensor = primal
        else:
            tensor = _transforms.value_of(tensor)
    return True


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor that a wrapper inside of a transform stands for, to look at in a debugger.

    Computing with the result inside of the transformed function gives wrong results.

    Args:
        tensor: any tensor; a plain one is returned as it is.
        recurse: take all wrappers off, not only the outermost.

    Example::

        >>> def f(x):
        ...     print(facula.func.debug_unwrap(x))
        ...     return x * 2
        >>> facula.func.vmap(f)(facula.tensor([1., 2.]))
        tensor([1., 2.])
        tensor([2., 4.])
    """
    if not _transforms.kind_of(tensor):
        return tensor
    value = _transforms.value_of(tensor)
    return debug_unwrap(value) if recurse else value
