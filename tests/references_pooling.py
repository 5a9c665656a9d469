"""What pooling computes, in NumPy: window by window. By the row's id, with the row's arguments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray


def _each(value: Any, dims: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * dims if len(values) == 1 else values


def _planes(x: Array, dims: int) -> Array:
    return x.reshape(math.prod(x.shape[: x.ndim - dims]), *x.shape[x.ndim - dims :])


def _flat(x: Array) -> Array:
    return x.reshape(len(x), math.prod(x.shape[1:]))


def _windows(sizes, kernel, stride, padding, dilation, ceil_mode) -> list[list[tuple[int, int]]]:
    """Per dimension, the first tap of every window and where it would end, padding included."""
    found = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (math.ceil(room / s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        found.append([(t * s - p, min(t * s - p + k, n + p)) for t in range(count)])
    return found


def _max_pool(dims: int) -> Callable[..., tuple[Array, Array]]:
    def pool(
        x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        kernel = _each(kernel_size, dims)
        steps = kernel if stride is None else _each(stride, dims)
        spread = _each(dilation, dims)
        sizes = x.shape[x.ndim - dims :]
        windows = _windows(sizes, kernel, steps, _each(padding, dims), spread, ceil_mode)
        shape = [len(w) for w in windows]
        planes = _planes(x, dims)
        values = np.empty((len(planes), *shape), x.dtype)
        places = np.empty((len(planes), *shape), np.int64)
        for at in itertools.product(*map(range, shape)):
            axes = [
                [start + j * d for j in range(k) if 0 <= start + j * d < n]
                for (start, _), k, d, n in zip(
                    (w[t] for w, t in zip(windows, at, strict=True)), kernel, spread, sizes,
                    strict=True,
                )
            ]  # fmt: skip
            pixels = [np.ravel_multi_index(pixel, sizes) for pixel in itertools.product(*axes)]
            seen = _flat(planes)[:, pixels]
            best = _first_largest(seen)
            values[(slice(None), *at)] = seen[np.arange(len(planes)), best]
            places[(slice(None), *at)] = np.array(pixels)[best]
        leading = x.shape[: x.ndim - dims]
        return values.reshape(*leading, *shape), places.reshape(*leading, *shape)

    return pool


def _first_largest(seen: Array) -> Array:
    """The last NaN of each row, or the first of the largest elements."""
    nan = np.isnan(seen) if seen.dtype.kind == "f" else np.zeros(seen.shape, bool)
    last = seen.shape[1] - 1 - np.argmax(nan[:, ::-1], axis=1)
    return np.where(nan.any(axis=1), last, np.argmax(np.where(nan, 0, seen), axis=1))


def _avg_pool(dims: int) -> Callable[..., Array]:
    def pool(
        x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
        divisor_override=None,
    ):  # fmt: skip
        kernel = _each(kernel_size, dims)
        steps = kernel if stride is None else _each(stride, dims)
        sizes = x.shape[x.ndim - dims :]
        windows = _windows(sizes, kernel, steps, _each(padding, dims), [1] * dims, ceil_mode)
        shape = [len(w) for w in windows]
        planes = _planes(x, dims)
        out = np.empty((len(planes), *shape), x.dtype)
        for at in itertools.product(*map(range, shape)):
            chosen = [w[t] for w, t in zip(windows, at, strict=True)]
            inside = tuple(
                slice(max(a, 0), min(b, n)) for (a, b), n in zip(chosen, sizes, strict=True)
            )
            seen = _flat(planes[(slice(None), *inside)])
            count = math.prod(b - a for a, b in chosen) if count_include_pad else seen.shape[1]
            average = seen.sum(axis=1) / (divisor_override or count)
            out[(slice(None), *at)] = np.trunc(average) if x.dtype.kind == "i" else average
        return out.reshape(*x.shape[: x.ndim - dims], *shape)

    return pool


def _divided(n: int, parts: int) -> Iterator[slice]:
    for t in range(parts):
        yield slice(t * n // parts, -(-(t + 1) * n // parts))


def _adaptive(dims: int, largest: bool) -> Callable[..., Any]:
    def pool(x, output_size):
        shape = _each(output_size, dims)
        sizes = x.shape[x.ndim - dims :]
        planes = _planes(x, dims)
        values = np.empty((len(planes), *shape), x.dtype)
        places = np.empty((len(planes), *shape), np.int64)
        numbers = np.arange(math.prod(sizes)).reshape(sizes)
        windows = [list(_divided(n, parts)) for n, parts in zip(sizes, shape, strict=True)]
        for at in itertools.product(*map(range, shape)):
            inside = tuple(w[t] for w, t in zip(windows, at, strict=True))
            seen = _flat(planes[(slice(None), *inside)])
            if largest:
                best = _first_largest(seen)
                values[(slice(None), *at)] = seen[np.arange(len(planes)), best]
                places[(slice(None), *at)] = numbers[inside].reshape(-1)[best]
            else:
                values[(slice(None), *at)] = seen.mean(axis=1)
        leading = x.shape[: x.ndim - dims]
        values = values.reshape(*leading, *shape)
        return (values, places.reshape(*leading, *shape)) if largest else values

    return pool


def _lp_pool(dims: int) -> Callable[..., Array]:
    def pool(x, norm_type, kernel_size, stride=None, ceil_mode=False):
        taps = math.prod(_each(kernel_size, dims))
        means = _avg_pool(dims)(x**norm_type, kernel_size, stride, 0, ceil_mode)
        return (means * taps) ** (1 / norm_type)

    return pool


def _max_unpool(x: Array, indices: Array, output_size: list[int]) -> Array:
    dims = len(output_size)
    planes = _flat(_planes(x, dims))
    places = indices.reshape(planes.shape)
    out = np.zeros((len(planes), math.prod(output_size)), x.dtype)
    np.put_along_axis(out, places, planes, axis=1)
    return out.reshape(*x.shape[: x.ndim - dims], *output_size)


def _without_places(pool: Callable[..., Any]) -> Callable[..., Array]:
    return lambda *args, **kwargs: pool(*args, **kwargs)[0]


BY_ROW = {
    **{f"max_pool{n}d": _without_places(_max_pool(n)) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive(n, largest=False) for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive(n, largest=True) for n in (1, 2, 3)},
    **{f"lp_pool{n}d": _lp_pool(n) for n in (1, 2, 3)},
    "_max_unpool": _max_unpool,
}
