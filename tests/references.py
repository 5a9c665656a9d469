"""What the operators compute, in NumPy.

A row of ops/ names its reference: a NumPy function, a lambda, or a key of REFERENCES. BY_ROW has
the rest, under the row's id, and comes first where PyTorch's rules differ from NumPy's; these take
the row's arguments in their order.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray


# ---- functions that NumPy lacks


def _each(function: Callable[..., float]) -> Callable[..., Array]:
    return np.vectorize(function, otypes=[np.float64])


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _digamma(x: float) -> float:
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * (x - math.floor(x)))
    shifted = 0.0
    while x < 10:
        shifted -= 1 / x
        x += 1
    if x == math.inf:
        return math.inf
    # The asymptotic series, with Bernoulli numbers.
    y = 1 / (x * x)
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return shifted + math.log(x) - 0.5 / x - tail


def _erfinv(y: float) -> float:
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y < 0:
        return -_erfinv(-y)
    # Winitzki's approximation, then Newton's steps; erfc is exact where erf is near 1.
    b = 2 / (math.pi * 0.147) + math.log1p(-y * y) / 2
    x = math.sqrt(math.sqrt(b * b - math.log1p(-y * y) / 0.147) - b)
    for _ in range(5):
        error = math.erf(x) - y if y < 0.5 else (1 - y) - math.erfc(x)
        x -= error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return x


def _sgn(a: Array) -> Array:
    if not np.iscomplexobj(a):
        return np.sign(a)
    size = np.abs(a)
    return np.where(size == 0, 0, a / np.where(size == 0, 1, size))


def _sign(a: Array) -> Array:
    signs = np.sign(a.astype(np.int8) if a.dtype == bool else a)
    return np.where(np.isnan(a), 0, signs).astype(a.dtype)


def _xlogy(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    result = np.where(a == 0, 0.0, a * np.log(np.where(a == 0, 1, b)))
    return np.where(np.isnan(b), np.nan, result)


def _first_extreme(find: Callable[..., Array]) -> Callable[..., Array]:
    def reference(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
        if a.ndim == 0:
            return np.array(0)
        return np.asarray(find(a, axis=axis, keepdims=keepdims))

    return reference


def _nanmedian(a: Array) -> Array:
    kept = np.sort(a[~np.isnan(a)], axis=None)
    return kept[(kept.size - 1) // 2] if kept.size else np.array(np.nan)


REFERENCES: dict[str, Callable[..., Any]] = {
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "erfinv": _each(_erfinv),
    "lgamma": _each(_lgamma),
    "digamma": _each(_digamma),
    "sgn": _sgn,
    "xlogy": _xlogy,
    "argmax": _first_extreme(np.argmax),
    "argmin": _first_extreme(np.argmin),
    "nanmedian": _nanmedian,
    "msort": lambda a: np.sort(a, axis=0) if a.ndim else a,
}


# ---- elementwise and composites of them


def _rounded_division(a: Any, b: Any, *, rounding_mode: str | None) -> Array:
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    if rounding_mode is None:
        return np.true_divide(a, b)
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "iu":
        return np.trunc(a / b)
    quotient = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
    return (quotient * np.sign(a).astype(np.int64) * np.sign(b).astype(np.int64)).astype(a.dtype)


def _clamp(a: Array, min: Any = None, max: Any = None) -> Array:
    if min is not None:
        a = np.maximum(a, np.asarray(min).astype(a.dtype))
    return a if max is None else np.minimum(a, np.asarray(max).astype(a.dtype))


def _lerp(a, b, weight):
    # From the nearer end, so that weight 1 gives exactly b.
    return np.where(
        np.abs(weight) < 0.5, a + weight * (b - a), b - (b - a) * (1 - np.asarray(weight))
    )


def _isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    if a.dtype.kind in "iub":
        a, b = a.astype(np.float64), b.astype(np.float64)
    return np.isclose(a, b, rtol, atol, equal_nan)


# ---- products


def _addmm(a, m1, m2, *, beta=1, alpha=1):
    product = np.matmul(m1, m2)
    base = np.broadcast_to(a, product.shape)
    result = alpha * product + (0 if beta == 0 else beta * base)
    return np.asarray(result).astype(product.dtype)


# ---- reductions and scans


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def _variance(a, dim=None, *, correction=1, keepdim=False):
    dims = _dims(dim, a.ndim)
    mean = a.mean(axis=dims, keepdims=True)
    count = math.prod(a.shape[d] for d in dims)
    total = (np.abs(a - mean) ** 2).sum(axis=dims, keepdims=keepdim)
    return total / max(count - correction, 0)


def _deviation(*args, **options):
    return np.sqrt(_variance(*args, **options))


def _unbiased(spread: Callable[..., Array]) -> Callable[..., Array]:
    """The older overloads: (unbiased) or (dim, unbiased, keepdim)."""

    def reference(a: Array, *given: Any) -> Array:
        dim, unbiased, keepdim = (*given, False)[:3] if len(given) > 1 else (None, *given, False)
        return spread(a, dim, correction=int(unbiased), keepdim=keepdim)

    return reference


def _logsumexp(a, dim, keepdim=False):
    dims = _dims(dim, a.ndim)
    shift = a.max(axis=dims, keepdims=True)
    result = np.log(np.exp(a - shift).sum(axis=dims, keepdims=True)) + shift
    return result if keepdim else result.squeeze(dims)


def _softmax(a, dim, dtype=None):
    if a.ndim == 0:
        return np.ones_like(a)
    if a.size == 0:
        return a
    e = np.exp(a - a.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def _log_softmax(a, dim, dtype=None):
    if a.ndim == 0:
        return np.zeros_like(a)
    if a.size == 0:
        return a
    shifted = a - a.max(axis=dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def _count_nonzero(a, dim=None):
    return np.asarray(np.count_nonzero(a, axis=_dims(dim, a.ndim) or None)).astype(np.int64)


def _sum_to_size(a, size):
    if a.shape == tuple(size):
        return a
    a = a.sum(axis=tuple(range(a.ndim - len(size))))
    dims = tuple(d for d, n in enumerate(size) if n == 1 and a.shape[d] != 1)
    result = a.sum(axis=dims, keepdims=True)
    return result.astype(np.int64) if result.dtype.kind in "iu" else result


def _truth(fold: Callable[..., Array]) -> Callable[..., Array]:
    """uint8 was the type of masks once, and stays uint8."""

    def reference(a: Array, dim: Any = None, keepdim: bool = False) -> Array:
        result = fold(a, axis=_dims(dim, a.ndim) if a.ndim else None, keepdims=keepdim)
        return np.asarray(result).astype(np.uint8 if a.dtype == np.uint8 else bool)

    return reference


def _at(a: Array, positions: Array, dim: int) -> tuple[Array, Array]:
    """Values at one position along `dim`, and the positions, with `dim` kept."""
    positions = np.expand_dims(positions, dim)
    return np.take_along_axis(a, positions, dim), positions


def _picked(choose: Callable[[Array], int]) -> Callable[..., tuple[Array, Array]]:
    """A reduction that picks one element of every line along `dim`."""

    def reference(a: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
        if a.ndim == 0:
            return a, np.array(0)
        kept = a.shape[: dim % a.ndim] + a.shape[dim % a.ndim + 1 :]
        if math.prod(kept) == 0:
            positions = np.zeros(kept, dtype=np.int64)
        else:
            positions = np.apply_along_axis(choose, dim, a)
        values, positions = _at(a, positions, dim)
        return (values, positions) if keepdim else (values.squeeze(dim), positions.squeeze(dim))

    return reference


def _middle(line: Array) -> int:
    missing = np.flatnonzero(np.isnan(line))
    return missing[0] if missing.size else np.argsort(line, kind="stable")[(line.size - 1) // 2]


def _middle_number(line: Array) -> int:
    count = line.size - np.count_nonzero(np.isnan(line))
    return np.argsort(line, kind="stable")[max(count - 1, 0) // 2]


def _most_frequent(line: Array) -> int:
    values, counts = np.unique(line, return_counts=True)
    return np.flatnonzero(line == values[np.argmax(counts)])[-1]


def _kthvalue(a, k, dim=-1, keepdim=False):
    return _picked(lambda line: np.argsort(line, kind="stable")[k - 1])(a, dim, keepdim)


def _running(better: Callable[[Any, Any], bool]) -> Callable[..., tuple[Array, Array]]:
    def positions_of(line: Array) -> Array:
        at = np.zeros(line.size, dtype=np.int64)
        for i in range(1, line.size):
            best = line[at[i - 1]]
            at[i] = i if better(line[i], best) or line[i] != line[i] else at[i - 1]
        return at

    def reference(a: Array, dim: int) -> tuple[Array, Array]:
        if a.ndim == 0:
            return a, np.array(0)
        if a.size == 0:
            return a, np.zeros(a.shape, dtype=np.int64)
        positions = np.apply_along_axis(positions_of, dim, a)
        return np.take_along_axis(a, positions, dim), positions

    return reference


def _logcumsumexp(a, dim):
    return np.logaddexp.accumulate(a, axis=dim) if a.ndim else a


# ---- order


def _argsort(a: Array, dim: int = -1, descending: bool = False) -> Array:
    if a.ndim == 0:
        return np.array(0)
    if not descending:
        return np.argsort(a, axis=dim, kind="stable")
    # Stable and descending: sort the reversed line and read it backwards.
    back = np.argsort(np.flip(a, dim), axis=dim, kind="stable")
    return np.flip(a.shape[dim] - 1 - back, dim)


def _sort(a, dim=-1, descending=False):
    positions = _argsort(a, dim, descending)
    return (np.take_along_axis(a, positions, dim) if a.ndim else a), positions


def _topk(a, k, dim=-1, largest=True, sorted=True):
    if a.ndim == 0:
        return a, np.array(0)
    values, positions = _sort(a, dim, largest)
    first = [slice(None)] * a.ndim
    first[dim] = slice(k)
    return values[tuple(first)], positions[tuple(first)]


def _searchsorted(s, v, *, out_int32=False, right=False, side=None, sorter=None):
    how = "right" if right or side == "right" else "left"
    v = np.asarray(v)
    if s.ndim == 1:
        found = np.searchsorted(s, v, how)
    else:
        lines = zip(s.reshape(-1, s.shape[-1]), v.reshape(-1, v.shape[-1]), strict=True)
        found = np.array([np.searchsorted(a, b, how) for a, b in lines]).reshape(v.shape)
    return np.asarray(found).astype(np.int32 if out_int32 else np.int64)


def _bucketize(v, boundaries, *, out_int32=False, right=False):
    return _searchsorted(boundaries, v, out_int32=out_int32, right=right)


def _histc(a, bins=100, min=0, max=0):
    if min == 0 and max == 0:
        min, max = a.min(), a.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(a, bins, (float(min), float(max)))[0].astype(a.dtype)


def _bincount(a, weights=None, minlength=0):
    return np.bincount(a.astype(np.int64), weights, minlength)


# ---- indexing


def _brackets(indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def _index_put(a, indices, values, accumulate=False):
    result = a.copy()
    if accumulate:
        np.add.at(result, _brackets(indices), values)
    else:
        result[_brackets(indices)] = values
    return result


def _gather_places(index: Array, dim: int) -> tuple[Array, ...]:
    places = list(np.indices(index.shape, sparse=True))
    if index.ndim:
        places[dim] = index
    return tuple(places)


def _gather(a, dim, index, *, sparse_grad=False):
    return a[_gather_places(index, dim)] if a.ndim else a.reshape(index.shape)


def _scattered(combine: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def reference(a: Array, dim: int, index: Array, src: Any) -> Array:
        if a.ndim == 0:
            return np.asarray(combine(a, src)).astype(a.dtype)
        result = a.copy()
        for place in np.ndindex(index.shape):
            target = list(place)
            target[dim] = index[place]
            value = src[place] if isinstance(src, np.ndarray) else src
            result[tuple(target)] = combine(result[tuple(target)], value)
        return result

    return reference


def _scatter_combined(a, dim, index, src, *, reduce):
    combine = {"add": lambda x, y: x + y, "multiply": lambda x, y: x * y}[reduce]
    return _scattered(combine)(a, dim, index, src)


def _scatter_reduce(a, dim, index, src, reduce, *, include_self=True):
    groups: dict[tuple[int, ...], list[Any]] = {}
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = int(index[place])
        groups.setdefault(tuple(target), []).append(src[place])
    fold = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}
    result = a.copy()
    for target, values in groups.items():
        result[target] = fold[reduce]([a[target], *values] if include_self else values)
    return result


def _index_add(a, dim, index, source, *, alpha=1):
    result = np.moveaxis(a.copy(), dim, 0)
    np.add.at(result, index, (alpha * np.moveaxis(source, dim, 0)).astype(a.dtype))
    return np.moveaxis(result, 0, dim)


def _index_write(a, dim, index, value):
    result = np.moveaxis(a.copy(), dim, 0)
    result[index] = np.moveaxis(value, dim, 0) if getattr(value, "ndim", 0) else value
    return np.moveaxis(result, 0, dim)


def _put(a, index, source, accumulate=False):
    result = a.copy()
    flat = result.reshape(-1)
    if accumulate:
        np.add.at(flat, index.reshape(-1), source.reshape(-1))
    else:
        flat[index.reshape(-1)] = source.reshape(-1)
    return result


def _take_along_dim(a, index, dim=None):
    if dim is None:
        return a.reshape(-1)[index.reshape(-1)]
    return np.take_along_axis(a, index, dim)


def _masked_scatter(a, mask, source):
    mask = np.broadcast_to(mask, a.shape)
    result = a.copy()
    result[mask] = source.reshape(-1)[: np.count_nonzero(mask)]
    return result


def _slices(ndim: int, dim: int, where: Any) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * ndim
    key[dim] = where
    return tuple(key)


def _select_scatter(a, src, dim, index):
    result = a.copy()
    result[_slices(a.ndim, dim, index)] = src
    return result


def _slice_scatter(a, src, dim=0, start=None, end=None, step=1):
    result = a.copy()
    result[_slices(a.ndim, dim, slice(start, end, step))] = src
    return result


def _diagonal_scatter(a, src, offset=0, dim1=0, dim2=1):
    result = a.copy()
    diagonal = np.diagonal(result, offset, dim1, dim2)
    diagonal.flags.writeable = True
    diagonal[...] = src
    return result


def _diag_embed(a, offset=0, dim1=-2, dim2=-1):
    n = a.shape[-1] + abs(offset)
    result = np.zeros((*a.shape[:-1], n, n), dtype=a.dtype)
    diagonal = np.diagonal(result, offset, -2, -1)
    diagonal.flags.writeable = True
    diagonal[...] = a
    ndim = result.ndim
    return np.moveaxis(result, (-2, -1), (dim1 % ndim, dim2 % ndim))


# ---- views


def _flatten(a, start_dim=0, end_dim=-1):
    if a.ndim == 0:
        return a.reshape(1)
    start, end = start_dim % a.ndim, end_dim % a.ndim
    merged = math.prod(a.shape[start : end + 1])
    return a.reshape(a.shape[:start] + (merged,) + a.shape[end + 1 :])


def _unflatten(a, dim, sizes):
    dim %= a.ndim
    known = -math.prod(sizes) if -1 in sizes else 0
    sizes = tuple(a.shape[dim] // known if n == -1 else n for n in sizes)
    return a.reshape(a.shape[:dim] + sizes + a.shape[dim + 1 :])


def _expand(a, size):
    kept = (None,) * (len(size) - a.ndim) + a.shape
    return np.broadcast_to(a, [k if n == -1 else n for n, k in zip(size, kept, strict=True)])


def _squeeze_dim(a, dim):
    dims = tuple(d % max(a.ndim, 1) for d in _dims(dim, a.ndim))
    return np.squeeze(a, tuple(d for d in dims if a.ndim and a.shape[d] == 1))


def _unfold(a, dimension, size, step):
    if a.ndim == 0:
        return a.reshape(1)
    windows = np.lib.stride_tricks.sliding_window_view(a, size, dimension)
    return windows[_slices(windows.ndim, dimension % a.ndim, slice(None, None, step))]


def _unbind(a, dim=0):
    return [np.take(a, i, axis=dim) for i in range(a.shape[dim])]


def _pieces(a: Array, ends: Any, dim: int) -> list[Array]:
    return np.split(a, list(ends), axis=dim)


def _chunk(a, chunks, dim=0):
    n = a.shape[dim]
    size = max(-(-n // chunks), 1)
    # A dimension of size zero still gives as many pieces as asked for.
    return _pieces(a, range(size, n, size), dim) if n else [a] * chunks


def _split(a, split_size, dim=0):
    return _pieces(a, range(split_size, a.shape[dim], split_size), dim)


def _as_strided(a, size, stride, storage_offset=0):
    flat, item = np.ascontiguousarray(a).reshape(-1), a.itemsize
    return np.lib.stride_tricks.as_strided(
        flat[storage_offset or 0 :], size, [s * item for s in stride]
    )


def _at_least_1d(a):
    return a.reshape(1) if a.ndim == 0 else a


def _repeat(a, repeats):
    return np.tile(a, tuple(repeats))


BY_ROW: dict[str, Callable[..., Any]] = {
    "div.mode": _rounded_division,
    "clamp": _clamp,
    "isclose": _isclose,
    "relu": lambda a: np.where(a < 0, 0, a),
    "where": lambda condition, a, b: np.where(condition, a, b),
    "masked_fill": lambda a, mask, value: np.where(mask, value, a).astype(a.dtype),
    "clone": lambda a: a,
    "contiguous": lambda a: a,
    "alias": lambda a: a,
    "sign": _sign,
    "sgn": lambda a: _sgn(a) if np.iscomplexobj(a) else _sign(a),
    "square": lambda a: np.square(a.astype(np.int64) if a.dtype == bool else a),
    "angle": lambda a: (
        np.angle(a) if np.iscomplexobj(a) else np.where(np.isnan(a), a, np.where(a < 0, np.pi, 0.0))
    ),
    "lerp": _lerp,
    "any": _truth(np.any),
    "all": _truth(np.all),
    "any.dim": _truth(np.any),
    "all.dim": _truth(np.all),
    "cumsum": lambda a, dim: np.cumsum(a, dim).reshape(a.shape),
    "cumprod": lambda a, dim: np.cumprod(a, dim).reshape(a.shape),
    "take_along_dim": _take_along_dim,
    "conj": lambda a: np.conj(a).astype(a.dtype),
    "conj_physical": lambda a: np.conj(a).astype(a.dtype),
    "polar": lambda size, angle: size * np.exp(1j * angle),
    "view_as_real": lambda a: np.stack([a.real, a.imag], -1),
    "view_as_complex": lambda a: a[..., 0] + 1j * a[..., 1],
    "addmm": _addmm,
    "baddbmm": _addmm,
    "var": _variance,
    "std": _deviation,
    "sum_to_size": _sum_to_size,
    "logsumexp": _logsumexp,
    "count_nonzero": _count_nonzero,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "max.other": np.maximum,
    "min.other": np.minimum,
    "var.unbiased": _unbiased(_variance),
    "var.unbiased_dim": _unbiased(_variance),
    "std.unbiased": _unbiased(_deviation),
    "std.unbiased_dim": _unbiased(_deviation),
    "max.dim": _picked(lambda line: np.argmax(line)),
    "min.dim": _picked(lambda line: np.argmin(line)),
    "median": lambda a: (
        np.nan * a.reshape(-1)[0] if np.isnan(a).any() else np.sort(a, axis=None)[(a.size - 1) // 2]
    ),
    "median.dim": _picked(_middle),
    "nanmedian.dim": _picked(_middle_number),
    "mode": _picked(_most_frequent),
    "kthvalue": _kthvalue,
    "sort": _sort,
    "argsort": _argsort,
    "sort.stable": lambda a, *, stable, dim, descending: _sort(a, dim, descending),
    "argsort.stable": lambda a, *, stable, dim, descending: _argsort(a, dim, descending),
    "topk": _topk,
    "cummax": _running(lambda new, best: new >= best),
    "cummin": _running(lambda new, best: new <= best),
    "logcumsumexp": _logcumsumexp,
    "isin": lambda a, tests, *, invert=False: np.isin(a, tests, invert=invert),
    "searchsorted": _searchsorted,
    "bucketize": _bucketize,
    "bincount": _bincount,
    "histc": _histc,
    "index": lambda a, indices: a[_brackets(indices)],
    "index_put": _index_put,
    "gather": _gather,
    "scatter.src": _scattered(lambda old, new: new),
    "scatter.value": _scattered(lambda old, new: new),
    "scatter_add": _scattered(lambda old, new: old + new),
    "scatter.reduce": _scatter_combined,
    "scatter.value_reduce": _scatter_combined,
    "scatter_reduce.two": _scatter_reduce,
    "index_select": lambda a, dim, index: (
        np.take(a, index, axis=dim).reshape(a.shape) if a.ndim == 0 else np.take(a, index, axis=dim)
    ),
    "index_add": _index_add,
    "index_copy": _index_write,
    "index_fill": _index_write,
    "put": _put,
    "masked_select": lambda a, mask: np.broadcast_arrays(a, mask)[0][
        np.broadcast_arrays(a, mask)[1]
    ],
    "masked_scatter": _masked_scatter,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "diagonal_scatter": _diagonal_scatter,
    "diag_embed": _diag_embed,
    "as_strided": _as_strided,
    "view": lambda a, size: a.reshape(size),
    "reshape": lambda a, shape: a.reshape(shape),
    "flatten": _flatten,
    "unflatten": _unflatten,
    "expand": _expand,
    "broadcast_to": _expand,
    "squeeze.dim": _squeeze_dim,
    "select": lambda a, dim, index: np.take(a, index, axis=dim),
    "slice": lambda a, dim=0, start=None, end=None, step=1: a[
        _slices(a.ndim, dim, slice(start, end, step))
    ],
    "narrow": lambda a, dim, start, length: np.take(
        a, range(start % a.shape[dim], start % a.shape[dim] + length), axis=dim
    ),
    "unfold": _unfold,
    "unbind": _unbind,
    "split_with_sizes": lambda a, sizes, dim=0: _pieces(a, np.cumsum(sizes)[:-1], dim),
    "_split": _split,
    "chunk": _chunk,
    "tensor_split.sections": lambda a, sections, dim=0: np.array_split(a, sections, axis=dim),
    "tensor_split.indices": lambda a, indices, dim=0: np.array_split(a, indices, axis=dim),
    "hsplit.sections": np.hsplit,
    "hsplit.indices": np.hsplit,
    "vsplit.sections": np.vsplit,
    "vsplit.indices": np.vsplit,
    "dsplit.sections": np.dsplit,
    "dsplit.indices": np.dsplit,
    "reshape_as": lambda a, other: a.reshape(other.shape),
    "view_as": lambda a, other: a.reshape(other.shape),
    "expand_as": lambda a, other: np.broadcast_to(a, other.shape),
    "column_stack": lambda tensors: np.column_stack([_at_least_1d(t) for t in tensors]),
    "dstack": lambda tensors: np.dstack(tensors),
    "cat": lambda tensors, dim=0: np.concatenate(tensors, axis=dim),
    "repeat": _repeat,
    "repeat_interleave": lambda a, repeats, dim=None: np.repeat(a, repeats, axis=dim),
    "repeat_interleave.each": lambda a, repeats, dim=None: np.repeat(a, repeats, axis=dim),
    "repeat_interleave.positions": lambda repeats: np.repeat(np.arange(repeats.size), repeats),
}

# Copies of what views show.
BY_ROW |= {
    f"{name}_copy": BY_ROW[name]
    for name in (
        *("as_strided", "view", "expand", "select", "slice", "unfold", "unbind"),
        *("split_with_sizes", "view_as_real", "view_as_complex"),
    )
}
BY_ROW |= {"squeeze_copy.dim": _squeeze_dim, "split_copy": _split}

# Every file references_<area>.py beside this one brings the references of its rows.
for _path in sorted(Path(__file__).parent.glob("references_*.py")):
    _module = importlib.import_module(_path.stem)
    BY_ROW |= _module.BY_ROW
    REFERENCES |= getattr(_module, "REFERENCES", {})
