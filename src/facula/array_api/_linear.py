"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence

import facula
from facula import Tensor
from facula.array_api._elementwise import promote

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices."""
    if not x1.dim() or not x2.dim():
        raise ValueError("matmul: arrays need at least one dimension")
    return facula.matmul(*promote(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Rows as columns."""
    if x.dim() < 2:
        raise ValueError(f"matrix_transpose: an array of {x.dim()} dimensions has no matrices")
    return x.transpose(-2, -1)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """The sum of products over axes of both."""
    a, b = promote(x1, x2)
    if isinstance(axes, int):
        return facula.tensordot(a, b, axes)
    return facula.tensordot(a, b, [list(side) for side in axes])


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of products, of the conjugate of ``x1``, along an axis.

    Example::

        >>> import facula.array_api as xp
        >>> xp.vecdot(xp.asarray([1, 2]), xp.asarray([3, 4]))
        tensor(11)
    """
    a, b = promote(x1, x2)
    if not -min(a.dim(), b.dim()) <= axis < max(a.dim(), b.dim(), 1):
        raise IndexError(f"vecdot: axis {axis} is out of range")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: sizes {a.shape[axis]} and {b.shape[axis]} along the axis differ")
    a, b = a.movedim(axis, -1), b.movedim(axis, -1)
    a, b = facula.broadcast_tensors(a.conj(), b)
    return facula.matmul(a.unsqueeze(-2), b.unsqueeze(-1))[..., 0, 0]
