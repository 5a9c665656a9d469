"""Shapes, and the places of elements."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import facula
from facula import Tensor
from facula.array_api._dtypes import result_type

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def _alike(arrays: Sequence[Tensor]) -> list[Tensor]:
    dtype = result_type(*arrays)
    return [a.to(dtype) for a in arrays]


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Arrays of one shape."""
    return tuple(facula.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Example::

        >>> import facula.array_api as xp
        >>> xp.broadcast_shapes((3, 1), (4,))
        (3, 4)
    """
    try:
        return tuple(facula.broadcast_shapes(*shapes)) if shapes else ()
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """An array of a larger shape."""
    return facula.broadcast_to(x, shape)


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along an axis; None takes their elements in a row.

    Example::

        >>> import facula.array_api as xp
        >>> xp.concat([xp.asarray([1, 2], dtype=xp.uint8), xp.asarray([3], dtype=xp.int8)])
        tensor([1, 2, 3], dtype=facula.int16)
    """
    parts = _alike(arrays)
    if axis is None:
        return facula.cat([p.reshape(-1) for p in parts])
    return facula.cat(parts, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """An array with new axes of size 1."""
    axes = (axis,) if isinstance(axis, int) else axis
    count = x.dim() + len(axes)
    if any(not -count <= a < count for a in axes):
        raise IndexError(f"expand_dims: axis {axis} is out of range for {x.dim()} dimensions")
    places = sorted(a % count for a in axes)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims: axis {axis} names an axis twice")
    for a in places:
        x = x.unsqueeze(a)
    return x


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """An array the other way round along axes, by default all of them."""
    if axis is None:
        axis = tuple(range(x.dim()))
    return facula.flip(x, (axis,) if isinstance(axis, int) else axis)


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """Axes at other places."""
    return facula.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order."""
    return facula.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Every element several times.

    Example::

        >>> import facula.array_api as xp
        >>> xp.repeat(xp.asarray([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor):
        repeats = repeats.to(facula.int64)
        if repeats.dim() == 0 or repeats.numel() == 1:
            repeats = int(repeats.item())
    return facula.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The elements in another shape; ``copy`` is True (always), False (never) or None."""
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: this needs a copy: {error}") from None
    result = facula.reshape(x, shape)
    return result.clone() if copy else result


def roll(
    x: Tensor,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Tensor:
    """Elements moved along axes; those that leave come back at the other end."""
    if axis is None:
        return facula.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else axis
    shifts = (shift,) * len(axes) if isinstance(shift, int) else shift
    return facula.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """An array without axes of size 1."""
    axes = (axis,) if isinstance(axis, int) else axis
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has size {x.shape[a]}, not 1")
    return facula.squeeze(x, axes)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return facula.stack(_alike(arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """An array several times along its axes."""
    return facula.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of an array along an axis."""
    return tuple(facula.unbind(x, axis))
