"""Coordinates of grids: meshgrid, cartesian_prod, unravel_index and histogramdd."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from facula import _C, return_types

_ops = _C._operators
_warned_of_indexing = False


def _listed(tensors: tuple[Any, ...]) -> list[Any]:
    """The tensors of ``f(a, b)`` and of ``f([a, b])``."""
    alone = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    return list(tensors[0] if alone else tensors)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinate grids from vectors; ``indexing`` is 'ij' (the default) or 'xy'.

    With 'xy' the first vector runs along the columns and the second along the rows.

    Example::

        >>> facula.meshgrid(facula.tensor([1, 2]), facula.tensor([3, 4]), indexing='ij')[0]
        tensor([[1, 1],
                [2, 2]])
    """
    items = _listed(tensors)
    if _C._has_torch_function(tuple(items)):
        return _C._handle_torch_function(meshgrid, tuple(items), tensors, {"indexing": indexing})
    if not items:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'meshgrid(): indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    global _warned_of_indexing
    if indexing is None and not _warned_of_indexing:
        _warned_of_indexing = True
        warnings.warn(
            "facula.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            stacklevel=2,
        )
    for t in items:
        if t.dim() > 1:
            raise RuntimeError(
                f"meshgrid(): Expected 0D or 1D tensor in the tensor list but got: {tuple(t.shape)}"
            )
        if t.dtype != items[0].dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype, but got "
                f"{items[0].dtype} and {t.dtype}"
            )
        if t.device != items[0].device:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same device, but got "
                f"{items[0].device} and {t.device}"
            )
    swapped = indexing == "xy" and len(items) >= 2
    if swapped:
        items[0], items[1] = items[1], items[0]
    shape = tuple(t.numel() for t in items)
    grids = []
    for k, t in enumerate(items):
        along = [1] * len(items)
        along[k] = -1
        grids.append(t.reshape(along).expand(shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of one element from each vector, one row each.

    Example::

        >>> facula.cartesian_prod(facula.tensor([1, 2]), facula.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    if _C._has_torch_function(tensors):
        return _C._handle_torch_function(cartesian_prod, tensors, tensors, {})
    for i, t in enumerate(tensors):
        if not isinstance(t, _C.Tensor):
            raise TypeError(
                f"cartesian_prod(): expected Tensor as element {i}, but got {type(t).__name__}"
            )
        if t.dim() != 1:
            raise RuntimeError(
                f"cartesian_prod(): Expect a 1D vector, but got shape {list(t.shape)}"
            )
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return _ops["stack"]([g.flatten() for g in grids], 1)


def unravel_index(indices: Any, shape: int | Sequence[int]) -> tuple[Any, ...]:
    """The coordinates, one tensor per dimension, of positions in a flattened array.

    Example::

        >>> facula.unravel_index(facula.tensor([4, 1]), (3, 2))
        (tensor([2, 0]), tensor([0, 1]))
    """
    if not isinstance(indices, _C.Tensor):
        raise TypeError(
            f"unravel_index(): expected 'indices' to be a Tensor, but got {type(indices).__name__}"
        )
    if _C._has_torch_function((indices,)):
        return _C._handle_torch_function(unravel_index, (indices,), (indices, shape), {})
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == _C.bool:
        raise TypeError(
            f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}"
        )
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    elif not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(
            "unravel_index(): expected 'shape' to be int or sequence of ints, but got "
            f"{type(shape).__name__}"
        )
    for n in shape:
        if not isinstance(n, int) or isinstance(n, bool):
            raise TypeError(
                "unravel_index(): expected 'shape' sequence to only contain ints, but got "
                f"{type(n).__name__}"
            )
    if any(n < 0 for n in shape):
        raise ValueError(
            f"unravel_index(): 'shape' cannot have negative values, but got {tuple(shape)}"
        )
    # Dimensions without elements come with no indices; there is nothing to divide.
    steps = [max(prod(shape[k + 1 :]), 1) for k in range(len(shape))]
    sizes = [max(n, 1) for n in shape]
    if not sizes:
        return ()

    def numbers(values: list[int]) -> Any:
        return _C.tensor(values, dtype=_C.int64, device=indices.device)

    positions = indices.to(_C.int64).unsqueeze(-1)
    return (_ops["floor_divide"](positions, numbers(steps)) % numbers(sizes)).unbind(-1)


def histogramdd(
    input: Any,
    bins: int | Sequence[int] | Sequence[Any],
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
) -> Any:
    """Counts of points in the cells of a grid, and the edges of the cells in each dimension.

    The last dimension of ``input`` holds the coordinates of points. ``bins`` is a number of equal
    intervals, one for each dimension, or a list of tensors with the edges. ``range`` gives the
    least and the largest coordinate of each dimension, else the data does.

    Example::

        >>> points = facula.tensor([[0., 1.], [1., 0.], [2., 0.], [2., 2.]])
        >>> facula.histogramdd(points, bins=[2, 2]).hist
        tensor([[0., 1.],
                [2., 1.]])
    """
    relevant = (input, weight, *(bins if isinstance(bins, (list, tuple)) else ()))
    if _C._has_torch_function(relevant):
        given = {"range": range, "weight": weight, "density": density}
        return _C._handle_torch_function(histogramdd, relevant, (input, bins), given)
    if isinstance(bins, (list, tuple)) and any(isinstance(b, _C.Tensor) for b in bins):
        hist, *edges = _ops["_histogramdd_edges"](input, bins, weight, density)
    else:
        if isinstance(bins, int) and not isinstance(bins, bool):
            bins = [bins] * (input.shape[-1] if input.dim() else 1)
        hist, *edges = _ops["_histogramdd"](input, bins, range, weight, density)
    return return_types.histogramdd((hist, tuple(edges)))
