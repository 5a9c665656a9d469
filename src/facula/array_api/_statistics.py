"""Reductions: along ``axis``, by default all of them."""

from __future__ import annotations

import builtins

import facula
from facula import Tensor
from facula.array_api._dtypes import isdtype

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axis = int | tuple[int, ...] | None


def axes_of(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """The axes, none of them negative and none twice."""
    if axis is None:
        return tuple(range(x.dim()))
    chosen = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in chosen:
        if not -x.dim() <= a < x.dim():
            raise IndexError(f"axis {a} is out of range for an array of {x.dim()} dimensions")
    places = tuple(a % x.dim() for a in chosen)
    if len(set(places)) < len(places):
        raise ValueError(f"axis {axis} names an axis twice")
    return places


def sum_dtype(x: Tensor, dtype: facula.dtype | None) -> facula.dtype:
    """Sums of small integers are of the largest kind that has their sign."""
    if dtype is not None:
        return dtype
    if isdtype(x.dtype, "unsigned integer"):
        return facula.uint64
    return facula.int64 if isdtype(x.dtype, ("signed integer", "bool")) else x.dtype


def _one_by_one(
    x: Tensor, axes: tuple[int, ...], keepdims: builtins.bool, reduce: object
) -> Tensor:
    """By a function of one dimension."""
    for a in sorted(axes, reverse=True):
        x = reduce(x, a, keepdims)  # type: ignore[operator]
    return x


def sum(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    dtype: facula.dtype | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The sum."""
    kind = sum_dtype(x, dtype)
    axes = axes_of(x, axis)
    return facula.sum(x, axes, keepdims, dtype=kind) if axes else x.to(kind, copy=True)


def prod(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    dtype: facula.dtype | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The product."""
    x = x.to(sum_dtype(x, dtype))
    return _one_by_one(
        x, axes_of(x, axis), keepdims, lambda x, a, k: facula.prod(x, a, k, dtype=x.dtype)
    )


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean."""
    axes = axes_of(x, axis)
    return facula.mean(x, axes, keepdims) if axes else x.clone()


def var(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The mean square of the distance from the mean; ``correction`` is taken from the count."""
    axes = axes_of(x, axis)
    if not axes:
        return facula.zeros_like(x) if correction < 1 else facula.full_like(x, float("nan"))
    return facula.var(x, axes, correction=correction, keepdim=keepdims)


def std(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The root of :func:`var`."""
    return facula.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest element; NaN where there is one."""
    axes = axes_of(x, axis)
    return facula.amax(x, axes, keepdims) if axes else x.clone()


def min(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element; NaN where there is one."""
    axes = axes_of(x, axis)
    return facula.amin(x, axes, keepdims) if axes else x.clone()


def all(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether every element is true."""
    x = x if x.dtype is facula.bool else x != 0
    return _one_by_one(x, axes_of(x, axis), keepdims, facula.all)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether some element is true."""
    x = x if x.dtype is facula.bool else x != 0
    return _one_by_one(x, axes_of(x, axis), keepdims, facula.any)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """How many elements are not zero.

    Example::

        >>> import facula.array_api as xp
        >>> xp.count_nonzero(xp.asarray([[0, 1], [2, 3]]), axis=1)
        tensor([1, 2])
    """
    return sum(x != 0, axis=axis, keepdims=keepdims)


def _cumulative(
    function: object,
    first: int,
    x: Tensor,
    axis: int | None,
    dtype: facula.dtype | None,
    include_initial: builtins.bool,
) -> Tensor:
    if x.dim() == 0:
        raise ValueError("an array without dimensions has no axis to go along")
    if axis is None:
        if x.dim() > 1:
            raise ValueError("axis is required for arrays of more than one dimension")
        axis = 0
    result = function(x, axis, dtype=sum_dtype(x, dtype))  # type: ignore[operator]
    if not include_initial:
        return result
    shape = list(result.shape)
    shape[axis] = 1
    return facula.cat([result.new_full(shape, first), result], axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: facula.dtype | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The sums of the first elements.

    Example::

        >>> import facula.array_api as xp
        >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
        tensor([0, 1, 3, 6])
    """
    return _cumulative(facula.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: facula.dtype | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The products of the first elements."""
    return _cumulative(facula.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours, ``n`` times."""
    return facula.diff(x, n, axis, prepend, append)
