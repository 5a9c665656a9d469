"""Masked reductions. All have autograd from the public operators that they call."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.masked._mask import (
    DimOrDims,
    all_dims,
    converted,
    highest,
    input_mask,
    lowest,
    masked_out,
    one_dim,
)

_SMALL_INTEGERS = (facula.bool, facula.uint8, facula.int8, facula.int16, facula.int32)


def _sum_dtype(input: Tensor, dtype: Any) -> Any:
    """Integers are added and multiplied as int64."""
    if dtype is None and input.dtype in _SMALL_INTEGERS:
        return facula.int64
    return dtype or input.dtype


def sum(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that the mask keeps; 0 where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.sum(facula.tensor([1, 2, 3]), 0, mask=mask)
        tensor(4)
    """
    x = masked_out(input, mask, 0)
    return facula.sum(x, all_dims(dim, input.dim()), keepdim, dtype=_sum_dtype(input, dtype))


def prod(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that the mask keeps; 1 where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.prod(facula.tensor([2, 3, 4]), 0, mask=mask)
        tensor(8)
    """
    x = masked_out(input, mask, 1).to(_sum_dtype(input, dtype))
    for d in reversed(all_dims(dim, input.dim())):
        x = x.prod(d, keepdim)
    return x


def amax(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest element that the mask keeps; the dtype's lowest number where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.amax(facula.tensor([1, 9, 3]), 0, mask=mask)
        tensor(3)
    """
    x = masked_out(input, mask, lowest(input))
    return converted(facula.amax(x, all_dims(dim, input.dim()), keepdim), dtype, input.dtype)


def amin(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest element that the mask keeps; the dtype's highest number where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.amin(facula.tensor([5, 0, 3]), 0, mask=mask)
        tensor(3)
    """
    x = masked_out(input, mask, highest(input))
    return converted(facula.amin(x, all_dims(dim, input.dim()), keepdim), dtype, input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest element that the mask keeps is, in the dtype of the input.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.argmax(facula.tensor([1, 9, 3]), 0, mask=mask)
        tensor(2)
    """
    x = masked_out(input, mask, lowest(input))
    return converted(facula.argmax(x, dim, keepdim), dtype, input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest element that the mask keeps is, in the dtype of the input.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.argmin(facula.tensor([5, 0, 3]), 0, mask=mask)
        tensor(2)
    """
    x = masked_out(input, mask, highest(input))
    return converted(facula.argmin(x, dim, keepdim), dtype, input.dtype)


def _count(input: Tensor, dim: DimOrDims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements each result is made of."""
    if mask is None:
        kept = facula.ones(input.shape, dtype=facula.bool, device=input.device)
    else:
        kept = input_mask(input, mask)
    return facula.sum(kept, all_dims(dim, input.dim()), keepdim)


def mean(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that the mask keeps; NaN where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.mean(facula.tensor([1., 9., 3.]), 0, mask=mask)
        tensor(2.)
    """
    result = dtype or input.dtype
    if not (result.is_floating_point or result.is_complex):
        raise ValueError(
            "mean(): could not infer output dtype. It must be a floating point or complex dtype, "
            f"but got {result}. Pass dtype=facula.float32, or convert the input."
        )
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The middle of the elements that the mask keeps, the lower of two; NaN where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True, True])
        >>> facula.masked.median(facula.tensor([1., 9., 3., 2.]), 0, mask=mask)
        tensor(2.)
    """
    x = input if input.is_floating_point() else input.float()
    x = masked_out(x, mask, facula.nan)
    middle = facula.nanmedian(x, one_dim(dim, input.dim()), keepdim).values
    if input.is_floating_point():
        return middle
    if middle.isnan().any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return converted(middle, dtype, input.dtype)


def logsumexp(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` over the elements that the mask keeps; ``-inf`` where it keeps none.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.logsumexp(facula.tensor([1., 9., 1.]), 0, mask=mask)
        tensor(1.6931)
    """
    x = masked_out(input, mask, lowest(input))
    return converted(facula.logsumexp(x, all_dims(dim, input.dim()), keepdim), dtype, input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """``log(exp(input) + exp(other))``, each without the elements that its mask leaves out.

    Example::

        >>> x, mask = facula.tensor([0., 0.]), facula.tensor([True, False])
        >>> facula.masked.logaddexp(x, x, input_mask=mask)
        tensor([0.6931, 0.0000])
    """
    a = masked_out(input, input_mask, lowest(input))
    b = masked_out(other, other_mask, lowest(other))
    return converted(facula.logaddexp(a, b), dtype, input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order ``ord`` of the elements that the mask keeps.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.norm(facula.tensor([3., 9., 4.]), 2, mask=mask)
        tensor(5.)
    """
    x = masked_out(input, mask, facula.inf if ord == -facula.inf else 0)
    dims = all_dims(dim, input.dim()) or None
    return facula.linalg.vector_norm(
        x, 2.0 if ord is None else ord, dims, keepdim, dtype=dtype or input.dtype
    )


def _variance(
    input: Tensor,
    dim: DimOrDims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: Any,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError("only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    if dtype is None:
        floats = input.is_floating_point() or input.is_complex()
        dtype = input.dtype if floats else facula.float32
    compute = dtype if dtype.is_floating_point or dtype.is_complex else facula.float32
    center = input - sum(input, dim, keepdim=True, dtype=compute, mask=mask) / _count(
        input, dim, True, mask
    )
    total = sum(center * center.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    freedom = (_count(input, dim, keepdim, mask) - correction).clamp(min=0)
    return (total / freedom).to(dtype)


def var(
    input: Tensor,
    dim: DimOrDims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of what the mask keeps; divides by ``n - correction`` (1 by default).

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.var(facula.tensor([1., 9., 3.]), 0, mask=mask)
        tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: DimOrDims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that the mask keeps: the square root of ``var``.

    Example::

        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.std(facula.tensor([1., 9., 3.]), 0, False, mask=mask)
        tensor(1.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()
