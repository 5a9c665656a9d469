"""``Variable``: what older programs call a tensor."""

from __future__ import annotations

from typing import Any

from facula import _C

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _C.Tensor)

    def __call__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None
    ) -> Any:
        if volatile:
            raise RuntimeError("volatile was removed; use `with facula.no_grad():` instead")
        if data is None:
            data = _C._operators["empty"](0)
        if not isinstance(data, _C.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(bool(requires_grad))


class Variable(metaclass=_VariableMeta):
    """A tensor over the same memory, without the history.

    Example::

        >>> facula.autograd.Variable(facula.ones(1), requires_grad=True)
        tensor([1.], requires_grad=True)
    """
