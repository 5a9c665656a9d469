"""What masked operations share: the mask in the input's shape, dimensions and identities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import facula
from facula import Tensor

DimOrDims = int | Sequence[int] | None


def input_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as booleans that broadcast to the input."""
    if mask.dim() > input.dim():
        raise IndexError(
            f"expected a mask that broadcasts to the input, but it has {mask.dim()} dimensions and "
            f"the input {input.dim()}"
        )
    if mask.layout is not facula.strided:
        mask = mask.to_dense()
    return mask.to(facula.bool).expand(input.shape)


def masked_out(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    """The input with elements that do not count replaced by the identity of what follows."""
    if mask is None:
        return input
    if input.layout is not facula.strided and identity == 0:
        return input * input_mask(input, mask)  # a sparse tensor keeps its zeros
    return input.masked_fill(input_mask(input, mask).logical_not(), identity)


def lowest(input: Tensor) -> Any:
    """What a maximum ignores."""
    if input.dtype == facula.bool:
        return False
    if input.is_floating_point() or input.is_complex():
        return -math.inf
    return facula.iinfo(input.dtype).min


def highest(input: Tensor) -> Any:
    """What a minimum ignores."""
    if input.dtype == facula.bool:
        return True
    return math.inf if input.is_floating_point() else facula.iinfo(input.dtype).max


def all_dims(dim: DimOrDims, ndim: int) -> tuple[int, ...]:
    """The dimensions in rising order; None and () stand for all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= d < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but "
                f"got {d})"
            )
        if d % ndim in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        dims.append(d % ndim)
    return tuple(sorted(dims))


def one_dim(dim: int, ndim: int) -> int:
    return all_dims(dim, ndim)[0]


def converted(result: Tensor, dtype: Any, otherwise: Any) -> Tensor:
    """The result in the dtype that was asked for, or in another."""
    return result.to(dtype or otherwise)
