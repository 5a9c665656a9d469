"""make_tensor: random values that suit a dtype."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Tensor

_SMALL_FLOATS = (facula.float8_e4m3fn, facula.float8_e5m2)


def make_tensor(
    *shape: Any,
    dtype: facula.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers, uniform between ``low`` and ``high``.

    Args:
        shape: the sizes, one by one or as a sequence.
        dtype: the dtype.
        device: the device.
        low: the smallest number; by default 0 for bool and unsigned integers, -9 otherwise.
        high: the end, which no number reaches; by default 2 for bool, 10 for integers, 9 otherwise.
        requires_grad: whether the result requires grad.
        noncontiguous: True leaves gaps in memory.
        exclude_zero: True puts the smallest positive number (1 for integers) in place of zeros.
        memory_format: the order in memory.

    Example::

        >>> facula.testing.make_tensor(2, 3, dtype=facula.float32, device="cpu").shape
        facula.Size([2, 3])
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        (shape,) = shape
    sizes = tuple(int(n) for n in shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    gaps = noncontiguous and math.prod(sizes) > 1
    wide = (*sizes[:-1], 2 * sizes[-1]) if gaps else sizes
    low, high = _limits(dtype, low, high)
    with facula.no_grad():
        if floating:
            result = _uniform(wide, dtype, device, low, high)
        else:
            result = facula.randint(low, high, wide, dtype=dtype, device=device)  # type: ignore[call-overload]
        if gaps:
            result = result[..., 1::2]
        elif memory_format is not None:
            result = result.clone(memory_format=memory_format)
        if exclude_zero:
            result[result == 0] = facula.finfo(dtype).tiny if floating else 1
    return result.requires_grad_() if requires_grad else result


def _limits(dtype: facula.dtype, low: Any, high: Any) -> tuple[Any, Any]:
    """The limits, by default those of the dtype, inside of what the dtype holds."""
    if dtype == facula.bool:
        smallest, end, defaults = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        info = facula.finfo(dtype)
        smallest, end, defaults = info.min, info.max, (-9, 9)
    else:
        limits = facula.iinfo(dtype)
        smallest, end = limits.min, min(limits.max + 1, 2**63 - 1)
        defaults = (0 if limits.min == 0 else -9, 10)
    low, high = defaults[0] if low is None else low, defaults[1] if high is None else high
    if any(isinstance(x, float) and math.isnan(x) for x in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if low > high or (whole and low == high):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < smallest or low > end or (dtype == facula.bool and low == end):
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{smallest}, {end})"
        )
    low, high = max(low, smallest), min(high, end)
    return (math.ceil(low), math.ceil(high)) if whole else (low, high)


def _uniform(sizes: Any, dtype: facula.dtype, device: Any, low: float, high: float) -> Tensor:
    if dtype in _SMALL_FLOATS:
        return _uniform(sizes, facula.float32, device, low, high).to(dtype)
    result = facula.empty(sizes, dtype=dtype, device=device)
    parts = facula.view_as_real(result) if dtype.is_complex else result
    if low == high:
        parts.fill_(low)
    elif high - low > facula.finfo(dtype).max:  # the width itself would overflow
        parts.uniform_(low / 2, high / 2).mul_(2)
    else:
        parts.uniform_(low, high)
    return result
