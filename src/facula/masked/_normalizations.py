"""Masked operations whose result has the shape of the input: scans, softmax, normalize."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.masked._mask import highest, lowest, masked_out, one_dim
from facula.masked._reductions import norm


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of the elements that the mask keeps.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.cumsum(facula.tensor([1., 9., 3.]), 0, mask=mask)
        tensor([1., 1., 4.])
    """
    x, dtype = masked_out(input, mask, 0), dtype or input.dtype
    return facula.cumsum(x, one_dim(dim, input.dim()), dtype=dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products of the elements that the mask keeps.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.cumprod(facula.tensor([2., 9., 3.]), 0, mask=mask)
        tensor([2., 2., 6.])
    """
    x, dtype = masked_out(input, mask, 1), dtype or input.dtype
    return facula.cumprod(x, one_dim(dim, input.dim()), dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax over the elements that the mask keeps; NaN along a line where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.softmax(facula.tensor([1., 9., 1.]), 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    x = masked_out(input, mask, lowest(input))
    return facula.softmax(x, one_dim(dim, input.dim()), dtype=dtype or input.dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of ``softmax`` over the elements that the mask keeps.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.log_softmax(facula.tensor([1., 9., 1.]), 0, mask=mask)
        tensor([-0.6931,    -inf, -0.6931])
    """
    x = masked_out(input, mask, lowest(input))
    return facula.log_softmax(x, one_dim(dim, input.dim()), dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negated elements that the mask keeps.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.softmin(facula.tensor([1., 9., 1.]), 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    x = masked_out(input, mask, highest(input))
    return facula.softmax(-x, one_dim(dim, input.dim()), dtype=dtype or input.dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that the mask keeps over their norm of order ``ord``; 0 elsewhere.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.normalize(facula.tensor([3., 9., 4.]), 2, 0, mask=mask)
        tensor([0.6000, 0.0000, 0.8000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    floor = size.new_full((), eps)
    return masked_out(input, mask, 0) / facula.maximum(size, floor)
