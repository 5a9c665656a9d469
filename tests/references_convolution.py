"""What convolutions compute, in NumPy: a sum over taps of products with shifted inputs.

By the row's id; they take the row's arguments in their order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def _each_dim(value: Any, dims: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * dims if len(values) == 1 else values


def _products(x: Array, tap: Array, groups: int, transposed: bool) -> Array:
    """One tap of every kernel with (N, C, ...): (N, O, ...)."""
    parts = []
    for part, kernel in zip(
        np.split(x, groups, axis=1), np.split(tap, groups, axis=0), strict=True
    ):
        matrix = kernel.T if transposed else kernel  # (out, in)
        parts.append(np.einsum("oc,nc...->no...", matrix, part))
    return np.concatenate(parts, axis=1)


def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Array:
    dims = x.ndim - 2
    stride, padding, dilation, extra = (
        _each_dim(v, dims) for v in (stride, padding, dilation, output_padding)
    )
    kernel, size = weight.shape[2:], x.shape[2:]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    if transposed:
        full = [(n - 1) * s + r for n, s, r in zip(size, stride, reach, strict=True)]
        out = np.zeros(
            (x.shape[0], channels, *(f + e for f, e in zip(full, extra, strict=True))), x.dtype
        )
        steps = size
    else:
        x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
        steps = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
        out = np.zeros((x.shape[0], channels, *steps), x.dtype)
    for tap in itertools.product(*map(range, kernel)):
        seen = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilation, steps, stride, strict=True)
        )
        here = weight[(slice(None), slice(None), *tap)]
        if transposed:
            out[(slice(None), slice(None), *seen)] += _products(x, here, groups, True)
        else:
            out += _products(x[(slice(None), slice(None), *seen)], here, groups, False)
    if transposed:
        cut = tuple(slice(p, n - p) for p, n in zip(padding, out.shape[2:], strict=True))
        out = out[(slice(None), slice(None), *cut)]
    if bias is not None:
        out = out + bias.reshape(-1, *[1] * dims)
    return out


def _batched(dims: int) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """An input without a batch dimension is a batch of one."""

    def wrap(f: Callable[..., Array]) -> Callable[..., Array]:
        def run(x: Array, *args: Any, **kwargs: Any) -> Array:
            return f(x[None], *args, **kwargs)[0] if x.ndim == dims + 1 else f(x, *args, **kwargs)

        return run

    return wrap


def _conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    if isinstance(padding, str):
        return _with_named_padding(x, weight, bias, stride, padding, dilation, groups)
    return convolution(x, weight, bias, stride, padding, dilation, False, [0], groups)


def _with_named_padding(x, weight, bias, stride, padding, dilation, groups) -> Array:
    dims = x.ndim - 2
    if padding == "same":
        total = [
            d * (k - 1) for k, d in zip(weight.shape[2:], _each_dim(dilation, dims), strict=True)
        ]
        x = np.pad(x, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in total)])
    return convolution(x, weight, bias, stride, 0, dilation, False, [0], groups)


def _conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    return convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _conv_tbc(x: Array, weight: Array, bias: Array, pad: int = 0) -> Array:
    x, weight = np.transpose(x, (1, 2, 0)), np.transpose(weight, (2, 1, 0))
    return np.transpose(_conv(x, weight, bias, padding=pad), (2, 0, 1))


BY_ROW = {
    "convolution": convolution,
    **{f"conv{n}d": _batched(n)(_conv) for n in (1, 2, 3)},
    **{f"conv{n}d.padding": _batched(n)(_conv) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _batched(n)(_conv_transpose) for n in (1, 2, 3)},
    "conv_tbc": _conv_tbc,
}
