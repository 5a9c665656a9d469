"""Order, places of elements, sets."""

from __future__ import annotations

import builtins
from typing import Any, Literal, NamedTuple

import facula
from facula import Tensor
from facula.array_api._elementwise import promote

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the first of the largest elements is."""
    return _place(facula.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the first of the smallest elements is."""
    return _place(facula.argmin, x, axis, keepdims)


def _place(function: Any, x: Tensor, axis: int | None, keepdims: builtins.bool) -> Tensor:
    if axis is not None:
        return function(x, axis, keepdims)
    found = function(x.reshape(-1), 0, False)
    return found.reshape((1,) * x.dim()) if keepdims else found


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """Where the elements are, from the smallest (or largest) on."""
    return facula.argsort(x, dim=axis, descending=descending, stable=stable)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The elements in order."""
    return facula.sort(x, dim=axis, descending=descending, stable=stable)[0]


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of elements that are not zero, an array for each axis."""
    if x.dim() == 0:
        raise ValueError("nonzero: an array without dimensions has no indices")
    return tuple(facula.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Where elements of ``x2`` would be put into the sorted ``x1``."""
    a, b = promote(x1, x2)
    if sorter is not None:
        a = a[sorter]
    return facula.searchsorted(a, b, side=side)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts of an array with given indices along an axis.

    Example::

        >>> import facula.array_api as xp
        >>> xp.take(xp.asarray([[1, 2, 3], [4, 5, 6]]), xp.asarray([2, 0]), axis=1)
        tensor([[3, 1],
                [6, 4]])
    """
    if axis is None:
        if x.dim() != 1:
            raise ValueError("take: axis is required for arrays of more than one dimension")
        axis = 0
    axis %= x.dim()
    return x[(slice(None),) * axis + (indices.to(facula.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements by an index each, as :func:`argsort` gives them."""
    axis %= x.dim()
    size = x.shape[axis]
    indices = indices.to(facula.int64)
    shapes = [list(x.shape), list(indices.shape)]
    for shape in shapes:
        del shape[axis]
    common = list(facula.broadcast_shapes(*shapes))
    x = x.expand([*common[:axis], size, *common[axis:]])
    indices = indices.expand([*common[:axis], indices.shape[axis], *common[axis:]])
    return facula.gather(x, axis, facula.where(indices < 0, indices + size, indices))


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """``x1`` where a condition holds, ``x2`` elsewhere."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        raise TypeError("where: at least one of x1 and x2 should be an array")
    return facula.where(condition, *promote(x1, x2))


def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether elements of ``x1`` are among those of ``x2``.

    Example::

        >>> import facula.array_api as xp
        >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1]))
        tensor([ True, False,  True])
    """
    return facula.isin(*promote(x1, x2), invert=invert)


# ---- sets: NaNs differ from each other, so each of them counts


class UniqueAllResult(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements, where each is first, which of them every element is, and how often
    each occurs.

    Example::

        >>> import facula.array_api as xp
        >>> xp.unique_all(xp.asarray([3, 1, 3])).counts
        tensor([1, 2])
    """
    flat = x.reshape(-1)
    count = flat.numel()
    order = _order(flat)
    in_order = flat[order]
    begins = facula.ones(count, dtype=facula.bool, device=x.device)
    if count > 1:
        begins[1:] = in_order[1:] != in_order[:-1]
    number = facula.cumsum(begins, 0) - 1
    inverse = facula.empty(count, dtype=facula.int64, device=x.device)
    inverse[order] = number
    places = facula.nonzero(begins, as_tuple=True)[0]
    counts = facula.diff(places, append=places.new_full((1,), count))
    # The sort is stable: the first of its run is the first in the array.
    return UniqueAllResult(in_order[places], order[places], inverse.reshape(x.shape), counts)


def _order(flat: Tensor) -> Tensor:
    if not flat.is_complex():
        return facula.argsort(flat, stable=True)
    by_imaginary = facula.argsort(flat.imag, stable=True)
    return by_imaginary[facula.argsort(flat.real[by_imaginary], stable=True)]


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements and how often each occurs."""
    found = unique_all(x)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements and which of them every element is."""
    found = unique_all(x)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements."""
    return unique_all(x).values
