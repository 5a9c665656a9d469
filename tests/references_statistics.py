"""References in NumPy for ops/statistics.py, numerics.py, shapes.py and selection.py, by row."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


def _nansum(a, dim=None, keepdim=False):
    integral = a.dtype.kind in "biu"
    axis = dim if a.ndim else None
    return np.nansum(a.astype(np.int64) if integral else a, axis=axis, keepdims=keepdim)


def _aminmax(a, *, dim=None, keepdim=False):
    if a.ndim == 0:
        return a, a
    return tuple(f(a, axis=dim, keepdims=keepdim) for f in (np.amin, np.amax))


def _moments(root: bool) -> Callable[..., Any]:
    def both(a, dim=None, *, correction=None, keepdim=False):
        axis = dim if a.ndim else None
        mean = np.mean(a, axis=axis, keepdims=keepdim)
        n = a.size / max(np.size(mean), 1)
        center = np.abs(a - np.mean(a, axis=axis, keepdims=True)) ** 2
        freedom = max(n - (1 if correction is None else correction), 0)
        variance = np.sum(center, axis=axis, keepdims=keepdim) / np.float64(freedom)
        return (np.sqrt(variance) if root else variance), mean

    return both


def _moments_unbiased(root: bool) -> Callable[..., Any]:
    def both(a, unbiased):
        return _moments(root)(a, correction=int(unbiased))

    return both


def _moments_unbiased_dim(root: bool) -> Callable[..., Any]:
    def both(a, dim, unbiased, keepdim=False):
        return _moments(root)(a, dim, correction=int(unbiased), keepdim=keepdim)

    return both


def _cov(a, *, correction=1, fweights=None, aweights=None):
    return np.squeeze(np.cov(a, ddof=correction, fweights=fweights, aweights=aweights))


def _quantile(f: Callable[..., Any]) -> Callable[..., Any]:
    def levels(a, q, dim=None, keepdim=False, *, interpolation="linear"):
        return f(a, q, axis=dim, keepdims=keepdim, method=interpolation)

    return levels


def _histogram(a, bins=100, *, range=None, weight=None, density=False):
    weights = None if weight is None else weight.reshape(-1)
    counts, edges = np.histogram(a.reshape(-1), bins, range, density=density, weights=weights)
    return counts.astype(np.float64), edges


def _diff(a, n=1, dim=-1, prepend=None, append=None):
    parts = [p for p in (prepend, a, append) if p is not None]
    joined = np.concatenate(parts, axis=dim)
    return np.diff(joined, min(n, joined.shape[dim]), axis=dim)


def _gradient(a, *, spacing=1, dim=None, edge_order=1):
    axes = range(a.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    each = spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(axes)
    if a.dtype.kind in "iu":
        a = a.astype(np.float64)
    return [
        np.gradient(a, h, axis=axis, edge_order=edge_order)
        for h, axis in zip(each, axes, strict=True)
    ]


def _trapezoid(y, x=None, *, dx=1, dim=-1):
    y = _wide(y)
    if x is None:
        return np.trapezoid(y, dx=dx, axis=dim)
    return np.trapezoid(y, _wide(x), axis=dim)


def _cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    y = _wide(y)
    later = np.take(y, range(1, y.shape[dim]), axis=dim)
    earlier = np.take(y, range(y.shape[dim] - 1), axis=dim)
    if x is not None:
        x = _wide(x)
        if x.ndim == 1:
            along = [1] * y.ndim
            along[dim] = -1
            x = x.reshape(along)
        dx = np.diff(x, axis=dim)
    return np.cumsum((later + earlier) * dx / 2, axis=dim)


def _wide(x):
    """Sums and differences of small integers would wrap around."""
    return x.astype(np.int64) if x.dtype.kind in "iu" else x


def _combinations(a, r=2, with_replacement=False):
    if r == 0:
        return np.empty(0, dtype=a.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(a.size), r))
    return a[np.array(rows, dtype=np.int64).reshape(len(rows), r)]


def _as_strided_scatter(a, src, size, stride, storage_offset=None):
    result = a.copy()
    index = np.lib.stride_tricks.as_strided(
        np.arange(a.size)[storage_offset or 0 :], size, [s * 8 for s in stride]
    )
    result.reshape(-1)[index] = src
    return result


def _index_reduce(a, dim, index, source, reduce, *, include_self=True):
    fold = {"prod": np.prod, "mean": np.mean, "amax": np.amax, "amin": np.amin}[reduce]
    result = np.moveaxis(a.copy(), dim, 0)
    slices = np.moveaxis(source, dim, 0)
    for place in np.unique(index):
        parts = list(slices[index == place])
        if include_self:
            parts.append(result[place].copy())
        result[place] = fold(np.stack(parts), axis=0)
    return np.moveaxis(result, 0, dim)


def _nonzero_static(a, *, size, fill_value=-1):
    result = np.full((size, a.ndim), fill_value, dtype=np.int64)
    found = np.argwhere(a)[:size]
    result[: len(found)] = found
    return result


def _narrow(a, dim, start, length):
    return np.take(a, range(start % a.shape[dim], start % a.shape[dim] + length), axis=dim)


def _split(a, split_size, dim=0):
    return np.split(a, range(split_size, a.shape[dim], split_size), axis=dim)


def _chunk(a, chunks, dim=0):
    n = a.shape[dim]
    return _split(a, -(-n // chunks), dim) if n else [a] * chunks


BY_ROW: dict[str, Callable[..., Any]] = {
    "var_mean": _moments(False),
    "std_mean": _moments(True),
    "var_mean.unbiased": _moments_unbiased(False),
    "std_mean.unbiased": _moments_unbiased(True),
    "var_mean.unbiased_dim": _moments_unbiased_dim(False),
    "std_mean.unbiased_dim": _moments_unbiased_dim(True),
    "nansum": _nansum,
    "aminmax": _aminmax,
    "cov": _cov,
    "quantile": _quantile(np.quantile),
    "quantile.scalar": _quantile(np.quantile),
    "nanquantile": _quantile(np.nanquantile),
    "nanquantile.scalar": _quantile(np.nanquantile),
    "histogram": _histogram,
    "histogram.edges": _histogram,
    "diff": _diff,
    "round.decimals": lambda a, *, decimals: np.round(a, decimals),
    "gradient": _gradient,
    "gradient.each": _gradient,
    "gradient.coordinates": _gradient,
    "trapezoid": _trapezoid,
    "trapezoid.x": _trapezoid,
    "cumulative_trapezoid": _cumulative_trapezoid,
    "cumulative_trapezoid.x": _cumulative_trapezoid,
    "combinations": _combinations,
    "narrow_copy": _narrow,
    "adjoint": lambda a: np.conj(np.swapaxes(a, -2, -1)).astype(a.dtype),
    "unsafe_split": _split,
    "unsafe_split_with_sizes": lambda a, sizes, dim=0: np.split(a, np.cumsum(sizes)[:-1], axis=dim),
    "unsafe_chunk": _chunk,
    "as_strided_scatter": _as_strided_scatter,
    "index_reduce": _index_reduce,
    "nonzero_static": _nonzero_static,
    "fill": lambda a, value: np.broadcast_to(value, a.shape).astype(a.dtype),
}
