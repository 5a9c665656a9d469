"""Reductions of nested tensors, and comparisons of whole ones."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula._type_info import finfo, iinfo
from facula.nested import _tensor as nested
from facula.nested._functions import is_nested, rule, wrap
from facula.nested._shapes import product
from facula.nested._tensor import parts

_ops = _C._operators

_OVER_ALL = (
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "any",
    "all",
    "var",
    "std",
    "norm",
    "argmax",
    "argmin",
)
_SEGMENTS = {"sum": "sum", "mean": "mean", "amax": "amax", "amin": "amin", "prod": "prod"}


def _reduce(func: Any, nt: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    name = func.__name__
    whole = nested.compact(nt)
    values, _, _, ragged = parts(whole)
    if dim is None or dim == () or dim == []:
        return func(values, **options)
    named = [dim] if isinstance(dim, int) else list(dim)
    dims = sorted({wrap(d, values.dim() + 1) for d in named})
    if 0 in dims and ragged not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    if ragged not in dims:
        at = [d - 1 for d in dims]
        given = at[0] if isinstance(dim, int) else tuple(at)
        found = func(values, given, keepdim, **options)
        gone = 0 if keepdim else sum(d < ragged for d in dims)
        if isinstance(found, tuple):
            return type(found)(whole.like(f, ragged - gone) for f in found)
        return whole.like(found, ragged - gone)
    if 0 in dims:
        at = [d - 1 for d in dims if d]
        found = func(values, tuple(at), keepdim, **options)
        return found.unsqueeze(0) if keepdim else found
    if name in ("argmax", "argmin"):
        fill = _unreached(values.dtype, "amax" if name == "argmax" else "amin")
        if values.dtype.is_floating_point:
            fill = float("-inf" if name == "argmax" else "inf")
        return func(nested.padded(whole, fill), ragged, keepdim)
    if name not in _SEGMENTS:
        raise NotImplementedError(
            f"{name}(): not supported over the ragged dimension of a nested tensor; use "
            ".to_padded_tensor(padding)"
        )
    return _over_ragged(func, name, whole, dims, keepdim, options)


def _unreached(dtype: Any, name: str) -> Any:
    """What the largest or smallest of no entries is."""
    if dtype is _C.bool:
        return name == "amin"
    limits = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
    return limits.min if name == "amax" else limits.max


def _over_ragged(
    func: Any, name: str, whole: Any, dims: list[int], keepdim: bool, options: dict[str, Any]
) -> Any:
    values, offsets, _, ragged = parts(whole)
    if len(dims) > 1 and name == "mean":
        total = _over_ragged(func, "sum", whole, dims, keepdim, options)
        count = offsets.diff() * product(values.shape[d - 1] for d in dims if d != ragged)
        return total / count.reshape(-1, *(1,) * (total.dim() - 1))
    dtype = options.get("dtype")
    packed = (values if dtype is None else values.to(dtype)).movedim(ragged - 1, 0)
    if name in ("sum", "mean", "prod") and dtype is None and not packed.is_floating_point():
        packed = packed.to(_C.int64) if not packed.is_complex() else packed
    at = nested.component_of_each(whole)
    shape = (nested.batch_size(whole), *packed.shape[1:])
    if name in ("sum", "mean"):
        out = packed.new_zeros(shape).index_add(0, at, packed)
        if name == "mean":
            out = out / offsets.diff().reshape(-1, *(1,) * (out.dim() - 1))
    else:
        start = 1 if name == "prod" else _unreached(packed.dtype, name)
        index = at.reshape(-1, *(1,) * (packed.dim() - 1)).expand_as(packed)
        out = packed.new_full(shape, start).scatter_reduce(
            0, index, packed, name, include_self=False
        )
    # The batch is in front, the ragged dimension gone; the others are in their order.
    rest = [d if d < ragged else d - 1 for d in dims if d != ragged]
    if rest:
        reduce = _ops[name] if name != "mean" else _ops["mean"]
        out = reduce(out, tuple(rest), False) if name != "prod" else out.prod(rest[0])
    if keepdim:
        for d in dims:
            out = out.unsqueeze(d)
    return out


rule(*_OVER_ALL)(_reduce)


@rule("equal")
def _equal(func: Any, a: Any, b: Any) -> bool:
    if not (is_nested(a) and is_nested(b)) or nested.lengths_of(a) != nested.lengths_of(b):
        return False
    x, y = parts(nested.compact(a))[0], parts(nested.compact(b))[0]
    return x.shape == y.shape and bool((x == y).all())


@rule("allclose")
def _allclose(func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> bool:
    if nested.lengths_of(a) != nested.lengths_of(b):
        return False
    x, y = parts(nested.compact(a))[0], parts(nested.compact(b))[0]
    return bool(x.allclose(y, *args, **kwargs))


@rule("tolist")
def _tolist(func: Any, nt: Any) -> list[Any]:
    return [c.tolist() for c in nested.unbind(nt)]
