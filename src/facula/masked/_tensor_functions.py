"""What operators do with tensors that carry their mask: a table from their names to functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import _C
from facula._stored.tensor import FACT_PROPERTIES, FACTS, MOVES, name_of
from facula.masked import _normalizations as normalizations
from facula.masked import _reductions as reductions
from facula.masked._tensor import MaskedTensor
from facula.nested._functions import _ELEMENTWISE

Tensor = _C.Tensor

_table: dict[str, Callable[..., Any]] = {}
_IN_PLACE = {"__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__ipow__"}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function what operators of these names do; it is given the operator first."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _table[name] = function
        return function

    return add


def data_of(t: Any) -> Any:
    """The elements of a masked tensor, also inside of lists; other values are themselves."""
    if isinstance(t, MaskedTensor):
        return t.__dict__["_data"]
    return type(t)(map(data_of, t)) if type(t) in (tuple, list) else t


def mask_of(t: Any) -> Any:
    """Likewise, the mask."""
    if isinstance(t, MaskedTensor):
        return t.__dict__["_mask"]
    return type(t)(map(mask_of, t)) if type(t) in (tuple, list) else t


def operand(t: Any) -> Any:
    """The elements of a masked tensor, with zeros where those left out could reach a gradient."""
    if not isinstance(t, MaskedTensor):
        return t
    data, mask = t.__dict__["_data"], t.__dict__["_mask"]
    return _C._operators["masked_fill"](data, ~mask, 0) if data.requires_grad else data


def masked_in(values: Any) -> list[Any]:
    """The masked tensors among arguments."""
    if isinstance(values, MaskedTensor):
        return [values]
    if type(values) in (tuple, list):
        return [t for v in values for t in masked_in(v)]
    return []


def common_mask(name: str, tensors: list[Any]) -> Any:
    """The one mask that all have."""
    first = mask_of(tensors[0])
    for other in tensors[1:]:
        mask = mask_of(other)
        if mask is not first and (mask.shape != first.shape or not bool((mask == first).all())):
            raise ValueError(f"{name}(): Input masks must match; use to_tensor() or other masks")
    return first


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator with masked tensors among its arguments."""
    name = name_of(func)
    tensors = masked_in((args, tuple(kwargs.values())))
    with _C.DisableTorchFunctionSubclass():
        if name in _table:
            return _table[name](func, *args, **kwargs)
        if name.startswith("get ") and name.removeprefix("get ") in FACT_PROPERTIES:
            return func(data_of(args[0]))
        if name in FACTS or name in ("is_floating_point", "is_signed", "item", "type"):
            return func(*data_of(args), **kwargs)
        if name in MOVES:
            return _move(func, args, kwargs)
        if name in _ELEMENTWISE or name in _IN_PLACE:
            return _elementwise(func, name, tensors, args, kwargs)
    raise NotImplementedError(
        f"{name}() is not implemented for tensors with a mask; use .to_tensor(value), or "
        "facula.masked with mask="
    )


def _elementwise(func: Any, name: str, tensors: list[Any], args: Any, kwargs: Any) -> Any:
    mask = common_mask(name, tensors)
    if (name.endswith("_") and not name.startswith("__")) or name in _IN_PLACE:
        first = args[0]
        if not isinstance(first, MaskedTensor):
            raise TypeError(f"{name}(): a tensor without a mask cannot take elements with one")
        func(data_of(first), *map(operand, args[1:]), **{k: operand(v) for k, v in kwargs.items()})
        return first
    result = func(*map(operand, args), **{k: operand(v) for k, v in kwargs.items()})
    if not isinstance(result, Tensor):
        return result
    return MaskedTensor.make(result, mask.expand(result.shape))


def _move(func: Any, args: Any, kwargs: Any) -> Any:
    data = func(*data_of(args), **{k: data_of(v) for k, v in kwargs.items()})
    mask = func(*mask_of(args), **{k: mask_of(v) for k, v in kwargs.items()})
    if isinstance(data, (tuple, list)):
        return type(data)(map(MaskedTensor.make, data, mask))
    return MaskedTensor.make(data, mask)


# ---- properties


@rule("get dtype")
def _dtype(func: Any, self: Any) -> Any:
    return data_of(self).dtype


@rule("get grad")
def _grad(func: Any, self: Any) -> Any:
    grad = data_of(self).grad
    return None if grad is None else MaskedTensor.make(grad, mask_of(self))


@rule("requires_grad_")
def _requires_grad(func: Any, self: Any, requires_grad: bool = True) -> Any:
    data_of(self).requires_grad_(requires_grad)
    return self


@rule("backward")
def _backward(func: Any, self: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    data_of(self).backward(data_of(gradient), *args, **kwargs)


@rule("to")
def _to(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    data = func(data_of(self), *data_of(args), **kwargs)
    return MaskedTensor.make(data, mask_of(self).to(data.device))


@rule("view")
def _view(func: Any, self: Any, *shape: Any, **kwargs: Any) -> Any:
    if kwargs or (shape and isinstance(shape[0], _C.dtype)):
        raise NotImplementedError("view(): the elements of a tensor with a mask keep their dtype")
    return MaskedTensor.make(func(data_of(self), *shape), func(mask_of(self), *shape))


# ---- reductions

_REDUCTIONS = {
    name: getattr(reductions, name)
    for name in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "median", "logsumexp")
}


def _kept(mask: Any, dim: Any, keepdim: bool) -> Any:
    """Where a reduction had an element that counts."""
    if dim is None or dim == ():
        return mask.any().reshape([1] * mask.dim()) if keepdim else mask.any()
    return facula.any(mask, dim, keepdim)


@rule(*_REDUCTIONS)
def _reduce(func: Any, self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    mask = mask_of(self)
    options = {} if dtype is None else {"dtype": dtype}
    if dim is None and func.__name__ in ("median", "logsumexp"):
        raise NotImplementedError(f"{func.__name__}(): give a dimension for a tensor with a mask")
    result = _REDUCTIONS[func.__name__](
        data_of(self), dim, keepdim=bool(keepdim), mask=mask, **options
    )
    return MaskedTensor.make(result, _kept(mask, dim, bool(keepdim)))


@rule("max", "min")
def _extreme(func: Any, self: Any) -> Any:
    result = _REDUCTIONS["a" + func.__name__](data_of(self), None, mask=mask_of(self))
    return MaskedTensor.make(result, mask_of(self).any())


@rule("std", "var")
def _spread(
    func: Any,
    self: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    mask = mask_of(self)
    biased = correction == 0 or unbiased is False
    if correction not in (None, 0, 1):
        raise NotImplementedError(f"{func.__name__}(): correction must be 0 or 1, got {correction}")
    function = getattr(reductions, func.__name__)
    result = function(data_of(self), dim, unbiased=not biased, keepdim=keepdim, mask=mask)
    return MaskedTensor.make(result, _kept(mask, dim, keepdim))


@rule("norm")
def _norm(func: Any, self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    mask = mask_of(self)
    result = reductions.norm(
        data_of(self), 2.0 if p == "fro" else p, dim, keepdim=keepdim, mask=mask
    )
    return MaskedTensor.make(result, _kept(mask, dim, keepdim))


@rule("all", "any")
def _truth(func: Any, self: Any, dim: Any = None, keepdim: bool = False) -> Any:
    data, mask = data_of(self), mask_of(self)
    filled = data.bool() | ~mask if func.__name__ == "all" else data.bool() & mask
    result = func(filled) if dim is None else func(filled, dim, keepdim)
    return MaskedTensor.make(result, _kept(mask, dim, keepdim))


@rule("softmax", "log_softmax", "softmin", "cumsum", "cumprod")
def _along(func: Any, self: Any, dim: Any, dtype: Any = None, **unused: Any) -> Any:
    mask = mask_of(self)
    result = getattr(normalizations, func.__name__)(data_of(self), dim, dtype=dtype, mask=mask)
    return MaskedTensor.make(result, mask)


@rule("where")
def _where(func: Any, condition: Any, input: Any, other: Any) -> Any:
    if isinstance(condition, MaskedTensor) or not (
        isinstance(input, MaskedTensor) and isinstance(other, MaskedTensor)
    ):
        raise ValueError("where(): both choices must have a mask, and the condition must have none")
    data = facula.where(condition, operand(input), operand(other))
    return MaskedTensor.make(data, facula.where(condition, mask_of(input), mask_of(other)))
