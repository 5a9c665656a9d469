"""What is done to images, in NumPy: padding, resizing, rearranging, sampling at points.

By the row's id; they take the row's arguments in their order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray

# ---- padding


def _pairs(x: Array, pad: list[int]) -> list[tuple[int, int]]:
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    return [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]


def _cut(x: Array, pairs: list[tuple[int, int]]) -> Array:
    keep = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape, strict=True)
    )
    return x[keep]


def _constant_pad(x: Array, pad: list[int], value: Any = 0) -> Array:
    pairs = _pairs(x, pad)
    added = [(max(a, 0), max(b, 0)) for a, b in pairs]
    return np.pad(_cut(x, pairs), added, constant_values=np.array(value).astype(x.dtype))


def _pad(x: Array, pad: list[int], mode: str = "constant", value: Any = None) -> Array:
    if mode == "constant":
        return _constant_pad(x, pad, 0 if value is None else value)
    pairs = _pairs(x, pad)
    added = [(max(a, 0), max(b, 0)) for a, b in pairs]
    kind = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    if mode == "circular":
        return np.pad(_cut(x, pairs), added, mode=kind)
    # Mirrors stand at the ends of the whole input, so it is cut last.
    padded = np.pad(x, added, mode=kind)
    return _cut(padded, [(min(a, 0), min(b, 0)) for a, b in pairs])


# ---- sizes: one matrix for every axis


def _along(x: Array, matrices: list[Array]) -> Array:
    first = x.ndim - len(matrices)
    for axis, matrix in enumerate(matrices):
        x = np.moveaxis(np.tensordot(matrix, x, axes=(1, first + axis)), 0, first + axis)
    return x


def _keys(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _step(n: int, out: int, align: bool, scale: float) -> float:
    if align:
        return (n - 1) / (out - 1) if out > 1 else 0.0
    return 1 / scale if scale else n / out


def _point_matrix(n: int, out: int, cubic: bool, align: bool, scale: float) -> Array:
    matrix = np.zeros((out, n))
    step = _step(n, out, align, scale)
    for t in range(out):
        at = step * t if align else step * (t + 0.5) - 0.5
        at = at if cubic else max(at, 0.0)
        left = min(math.floor(at), n - 1)
        for tap in range(left - 1, left + 3):
            weight = _keys(at - tap, -0.75) if cubic else max(0.0, 1 - abs(at - tap))
            matrix[t, min(max(tap, 0), n - 1)] += weight
    return matrix


def _window_matrix(n: int, out: int, cubic: bool, align: bool, scale: float) -> Array:
    step = _step(n, out, align, scale)
    wide = max(step, 1.0)
    matrix = np.zeros((out, n))
    for t in range(out):
        center = step * (t + 0.5)
        for tap in range(n):
            x = (tap + 0.5 - center) / wide
            matrix[t, tap] = _keys(x, -0.5) if cubic else max(0.0, 1 - abs(x))
    return matrix / matrix.sum(axis=1, keepdims=True)


def _interpolate(x: Array, output_size, mode: str, align_corners: bool, scales) -> Array:
    kind, _, antialias = mode.partition(" ")
    make = _window_matrix if antialias else _point_matrix
    sizes = x.shape[x.ndim - len(output_size) :]
    factors = list(scales) or [0.0] * len(output_size)
    return _along(
        x,
        [
            make(n, out, kind == "cubic", align_corners, s)
            for n, out, s in zip(sizes, output_size, factors, strict=True)
        ],
    )


def _nearest(x: Array, output_size, exact: bool, scales) -> Array:
    first = x.ndim - len(output_size)
    factors = list(scales) or [0.0] * len(output_size)
    for axis, (out, scale) in enumerate(zip(output_size, factors, strict=True)):
        n = x.shape[first + axis]
        at = np.floor((np.arange(out) + (0.5 if exact else 0)) * _step(n, out, False, scale))
        x = np.take(x, np.minimum(at.astype(int), n - 1), axis=first + axis)
    return x


# ---- pixels, channels and patches


def _pixel_shuffle(x: Array, r: int) -> Array:
    *leading, c, h, w = x.shape
    x = x.reshape(*leading, c // r**2, r, r, h, w)
    k = len(leading)
    return x.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2).reshape(
        *leading, c // r**2, h * r, w * r
    )


def _pixel_unshuffle(x: Array, r: int) -> Array:
    *leading, c, h, w = x.shape
    x = x.reshape(*leading, c, h // r, r, w // r, r)
    k = len(leading)
    return x.transpose(*range(k), k, k + 2, k + 4, k + 1, k + 3).reshape(
        *leading, c * r * r, h // r, w // r
    )


def _channel_shuffle(x: Array, groups: int) -> Array:
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(x.shape)


def _two(value: Any) -> list[int]:
    return [value] * 2 if isinstance(value, int) else list(value)


def _patches(size, kernel, dilation, padding, stride) -> Iterator[tuple[int, tuple[slice, slice]]]:
    """(tap, where in the padded image) for all taps."""
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    ]
    for tap, at in enumerate(itertools.product(*map(range, kernel))):
        yield (
            tap,
            tuple(
                slice(j * d, j * d + (c - 1) * s + 1, s)
                for j, d, c, s in zip(at, dilation, counts, stride, strict=True)
            ),
        )


def _im2col(x, kernel_size, dilation=1, padding=0, stride=1) -> Array:
    kernel, spread, pads, steps = map(_two, (kernel_size, dilation, padding, stride))
    *leading, channels, h, w = x.shape
    padded = np.pad(x.reshape(-1, h, w), [(0, 0), *((p, p) for p in pads)])
    columns = [
        padded[(slice(None), *at)] for _, at in _patches((h, w), kernel, spread, pads, steps)
    ]
    patches = columns[0].shape[1] * columns[0].shape[2]
    stacked = np.stack([c.reshape(len(padded), patches) for c in columns], axis=1)
    return stacked.reshape(*leading, channels * len(columns), patches)


def _col2im(x, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Array:
    kernel, spread, pads, steps = map(_two, (kernel_size, dilation, padding, stride))
    h, w = _two(output_size)
    *leading, rows, patches = x.shape
    taps = kernel[0] * kernel[1]
    columns = x.reshape(-1, taps, patches)
    padded = np.zeros((len(columns), h + 2 * pads[0], w + 2 * pads[1]), x.dtype)
    for tap, at in _patches((h, w), kernel, spread, pads, steps):
        seen = padded[(slice(None), *at)]
        seen += columns[:, tap].reshape(seen.shape)
    image = padded[:, pads[0] : pads[0] + h, pads[1] : pads[1] + w]
    return image.reshape(*leading, rows // taps, h, w)


# ---- points


def _reflected(at: float, low: float, high: float) -> float:
    if low == high:
        return 0.0
    span = high - low
    flips, extra = divmod(abs(at - low), span)
    return low + (extra if flips % 2 == 0 else span - extra)


def _placed(at: float, n: int, padding: int, align: bool) -> float:
    """Where the padding brings a coordinate in pixels."""
    if padding == 2:
        at = _reflected(at, *((0, n - 1) if align else (-0.5, n - 0.5)))
    return min(max(at, 0), n - 1) if padding else at


def _neighbours(x: float, n: int, mode: int, padding: int, align: bool) -> list[tuple[int, float]]:
    """(pixel, weight) along one axis; pixels outside are left out."""
    at = (x + 1) / 2 * (n - 1) if align else ((x + 1) * n - 1) / 2
    if mode == 2:
        left = math.floor(at)
        taps = [
            (_placed(left + k, n, padding, align), _keys(at - left - k, -0.75))
            for k in range(-1, 3)
        ]
    else:
        at = _placed(at, n, padding, align)
        if mode == 1:
            taps = [(np.rint(at), 1.0)]
        else:
            left = math.floor(at)
            taps = [(left, left + 1 - at), (left + 1, at - left)]
    return [(int(p), w) for p, w in taps if 0 <= p < n]


def _grid_sampler(x: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for n, *point in itertools.product(*map(range, grid.shape[:-1])):
        axes = [
            _neighbours(c, size, mode, padding, align)
            for c, size in zip(grid[(n, *point)][::-1], x.shape[2:], strict=True)
        ]
        for taps in itertools.product(*axes):
            pixel = tuple(p for p, _ in taps)
            out[(n, slice(None), *point)] += (
                math.prod(w for _, w in taps) * x[(n, slice(None), *pixel)]
            )
    return out


def _grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False) -> Array:
    kind = ["bilinear", "nearest", "bicubic"].index(mode)
    padding = ["zeros", "border", "reflection"].index(padding_mode)
    return _grid_sampler(x, grid, kind, padding, align_corners)


def _affine_grid(theta: Array, size: list[int], align: bool) -> Array:
    axes = []
    for n in size[2:]:
        end = 0.0 if n == 1 else 1.0 if align else (n - 1) / n
        axes.append(np.linspace(-end, end, n))
    places = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1], axis=-1)
    ones = np.ones((*size[2:], 1))
    return np.einsum("...k,ndk->n...d", np.concatenate([places, ones], axis=-1), theta)


# ---- vectors


def _one_hot(x: Array, num_classes: int) -> Array:
    return (x[..., None] == np.arange(num_classes)).astype(np.int64)


def _pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False) -> Array:
    return np.linalg.norm(x1 - x2 + eps, ord=p, axis=-1, keepdims=keepdim)


def _normalize(x, p=2.0, dim=1, eps=1e-12) -> Array:
    axes = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
    length = (np.abs(x) ** p).sum(axis=axes, keepdims=True) ** (1 / p)
    return x / np.maximum(length, eps)


BY_ROW: dict[str, Callable[..., Any]] = {
    "constant_pad_nd": _constant_pad,
    "pad": _pad,
    "_interpolate": _interpolate,
    "_nearest": _nearest,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "channel_shuffle": _channel_shuffle,
    "native_channel_shuffle": _channel_shuffle,
    "im2col": _im2col,
    "col2im": _col2im,
    "grid_sampler": _grid_sampler,
    "grid_sampler_2d": _grid_sampler,
    "grid_sampler_3d": _grid_sampler,
    "grid_sample": _grid_sample,
    "affine_grid_generator": _affine_grid,
    "affine_grid": _affine_grid,
    "one_hot": _one_hot,
    "pairwise_distance": _pairwise_distance,
    "normalize": _normalize,
}
