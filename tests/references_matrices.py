"""What products of tensors, norms, distances and decompositions compute, in NumPy.

By the row's id; they take the row's arguments in their order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def _adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


# ---- products


def _scaled_sum(base: Array, product: Array, beta: Any, alpha: Any) -> Array:
    if product.dtype == bool:
        return (np.broadcast_to(base, product.shape) & bool(beta)) | (product & bool(alpha))
    total = alpha * product + (0 if beta == 0 else beta * np.broadcast_to(base, product.shape))
    return np.asarray(total).astype(product.dtype)


def _addmv(a: Array, matrix: Array, vector: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _scaled_sum(a, matrix @ vector, beta, alpha)


def _addbmm(a: Array, b1: Array, b2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    product = np.matmul(b1, b2)
    return _scaled_sum(a, product.sum(0, dtype=product.dtype), beta, alpha)


def _addr(a: Array, v1: Array, v2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _scaled_sum(a, np.outer(v1, v2), beta, alpha)


def _multi_dot(tensors: list[Array]) -> Array:
    result = tensors[0]
    for t in tensors[1:]:
        result = np.matmul(result, t)
    return result


def _tensordot(a: Array, b: Array, dims_a: list[int], dims_b: list[int]) -> Array:
    return np.tensordot(a, b, (dims_a, dims_b))


def _einsum(equation: str, tensors: list[Array]) -> Array:
    result = np.asarray(np.einsum(equation, *tensors))
    inputs, arrow, output = equation.partition("->")
    letters = [set(part) - {"."} for part in inputs.split(",")]
    count = {c: sum(c in part for part in letters) for c in set().union(*letters)}
    summed = {c for c in count if (c not in output if arrow else inputs.count(c) > 1)}
    # Sums of integers are int64; matrix products keep the dtype.
    adds = any(count[c] == 1 for c in summed) and not any(count[c] > 1 for c in summed)
    return result.astype(np.int64) if adds and result.dtype.kind in "iu" else result


def _vecdot(x: Array, y: Array, *, dim: int = -1) -> Array:
    return (np.conj(x) * y).sum(dim)


def _cross(a: Array, b: Array, dim: int | None = None) -> Array:
    if dim is None:
        dim = a.shape.index(3)
    return np.cross(a, b, axis=dim)


def _block_diag(tensors: list[Array]) -> Array:
    blocks = [np.atleast_2d(t) for t in tensors]
    result = np.zeros(np.sum([b.shape for b in blocks], axis=0), dtype=tensors[0].dtype)
    row = column = 0
    for b in blocks:
        result[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return result


def _powers(x: Array, columns: int) -> Array:
    wide = x.astype(np.int64) if x.dtype.kind in "iub" else x
    return np.stack([wide**k for k in range(columns)], -1) if columns else wide[..., None][..., :0]


def _linalg_vander(x: Array, *, N: int | None = None) -> Array:
    return _powers(x, x.shape[-1] if N is None else N)


def _vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    powers = _powers(x, x.shape[-1] if N is None else N)
    return powers if increasing else powers[..., ::-1]


# ---- norms


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def _vector_norm(
    a: Array, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    if a.ndim == 0:
        return _vector_norm(a.reshape(1), ord)
    size, dims = np.abs(a), _dims(dim, a.ndim)
    if ord == math.inf:
        return size.max(axis=dims, keepdims=keepdim)
    if ord == -math.inf:
        return size.min(axis=dims, keepdims=keepdim)
    if ord == 0:
        return (size != 0).sum(axis=dims, keepdims=keepdim).astype(size.dtype)
    return (size**ord).sum(axis=dims, keepdims=keepdim) ** (1 / ord)


def _matrix_norm(
    a: Array, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Array:
    if a.size == 0:
        return np.abs(a).sum(axis=tuple(dim), keepdims=keepdim)
    return np.linalg.norm(a, ord, tuple(dim), keepdim)


def _linalg_norm(
    a: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    dims = _dims(dim, a.ndim)
    if ord is not None and len(dims) == 2:
        return _matrix_norm(a, ord, dims, keepdim)
    return _vector_norm(a, 2 if ord is None else ord, dims, keepdim)


def _norm_except_dim(v: Array, pow: int = 2, dim: int = 0) -> Array:
    if dim == -1:
        return _vector_norm(v, pow)
    others = tuple(d for d in range(v.ndim) if d != dim)
    return _vector_norm(v, pow, others, True)


# ---- distances


def _renorm(a: Array, p: float, dim: int, maxnorm: float) -> Array:
    others = tuple(d for d in range(a.ndim) if d != dim % a.ndim)
    norm = _vector_norm(a, p, others, True) if a.size else np.ones(())
    return a * np.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)


def _cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    x1, x2 = np.broadcast_arrays(x1, x2)

    def direction(x: Array) -> Array:
        return x / np.maximum(np.sqrt((x * x).sum(dim, keepdims=True)), eps)

    return (direction(x1) * direction(x2)).sum(dim)


def _cdist(x1: Array, x2: Array, p: float = 2, compute_mode: str = "") -> Array:
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    if difference.shape[-1] == 0:
        return np.zeros(difference.shape[:-1])
    return _vector_norm(difference, p, -1)


def _pdist(a: Array, p: float = 2) -> Array:
    pairs = [_vector_norm(x - y, p) for x, y in itertools.combinations(a, 2)]
    return np.array(pairs, dtype=a.dtype).reshape(-1)


# ---- decompositions


def _svd(a: Array, full_matrices: bool = True) -> tuple[Array, ...]:
    return tuple(np.linalg.svd(a, full_matrices))


def _svdvals(a: Array) -> Array:
    if a.size == 0:
        return np.zeros((*a.shape[:-2], min(a.shape[-2:])))
    return np.linalg.svd(a, compute_uv=False)


def _legacy_svd(a: Array, some: bool = True, compute_uv: bool = True) -> tuple[Array, ...]:
    if not compute_uv:
        *batch, m, n = a.shape
        return np.zeros((*batch, m, m), a.dtype), _svdvals(a), np.zeros((*batch, n, n), a.dtype)
    u, s, vh = np.linalg.svd(a, not some)
    return u, s, _adjoint(vh)


def _eigh(a: Array, UPLO: str = "L") -> tuple[Array, ...]:
    return tuple(np.linalg.eigh(a, UPLO))


def _eig(a: Array) -> tuple[Array, ...]:
    values, vectors = np.linalg.eig(a.astype(np.complex128))
    return values, vectors


def _tolerances(a: Array, atol: Any, rtol: Any) -> tuple[Array, Array]:
    # The values were rounded to single precision where the operator computes in it, so any
    # tolerance between rounding errors and the values themselves gives the same answer.
    absolute = np.zeros(()) if atol is None else np.asarray(atol)
    relative = np.where(absolute > 0, 0.0, 1e-5) if rtol is None else np.asarray(rtol)
    return absolute, relative


def _significant(sizes: Array, atol: Array, rtol: Array) -> Array:
    largest = sizes.max(-1, keepdims=True)
    return sizes > np.maximum(atol[..., None], rtol[..., None] * largest)


def _pinv(a: Array, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    if a.size == 0:
        return np.swapaxes(a, -1, -2)
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    kept = _significant(s, *_tolerances(a, atol, rtol))
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    return (_adjoint(vh) * inverse[..., None, :]) @ _adjoint(u)


def _matrix_rank(a: Array, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Array:
    s = _svdvals(a)
    if s.shape[-1] == 0:
        return np.zeros(s.shape[:-1], np.int64)
    return np.asarray(_significant(s, *_tolerances(a, atol, rtol)).sum(-1)).astype(np.int64)


def _cond(a: Array, p: Any = None) -> Array:
    if a.size == 0:
        return np.zeros(a.shape[:-2])
    return np.linalg.cond(a, p)


def _matrix_exp(a: Array) -> Array:
    """The power series after halving the matrix often enough."""
    if a.size == 0:
        return a
    halvings = max(0, math.ceil(math.log2(max(np.abs(a).sum(-1).max(), 1e-30))) + 4)
    scaled = a / 2.0**halvings
    result = term = np.broadcast_to(np.eye(a.shape[-1]), a.shape).astype(a.dtype)
    for k in range(1, 20):
        term = term @ scaled / k
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result


BY_ROW: dict[str, Callable[..., Any]] = {
    "einsum": _einsum,
    "tensordot": _tensordot,
    "addmv": _addmv,
    "addbmm": _addbmm,
    "addr": _addr,
    "chain_matmul": _multi_dot,
    "linalg_multi_dot": _multi_dot,
    "linalg_vecdot": _vecdot,
    "linalg_cross": _cross,
    "cross": _cross,
    "block_diag": _block_diag,
    "linalg_diagonal": lambda a, *, offset=0, dim1=-2, dim2=-1: np.diagonal(a, offset, dim1, dim2),
    "linalg_vander": _linalg_vander,
    "vander": _vander,
    "linalg_vector_norm": _vector_norm,
    "linalg_matrix_norm.number": _matrix_norm,
    "linalg_matrix_norm.name": _matrix_norm,
    "linalg_norm": _linalg_norm,
    "linalg_norm.name": _linalg_norm,
    "frobenius_norm": lambda a, dim, keepdim=False: _vector_norm(a, 2, dim, keepdim),
    "nuclear_norm": lambda a, keepdim=False: _matrix_norm(a, "nuc", keepdim=keepdim),
    "nuclear_norm.dim": lambda a, dim, keepdim=False: _matrix_norm(a, "nuc", dim, keepdim),
    "norm_except_dim": _norm_except_dim,
    "dist": lambda a, b, p=2: _vector_norm(a - b, p),
    "renorm": _renorm,
    "cosine_similarity": _cosine_similarity,
    "cdist": _cdist,
    "pdist": _pdist,
    "linalg_svd": _svd,
    "linalg_svdvals": _svdvals,
    "svd": _legacy_svd,
    "linalg_eigh": _eigh,
    "linalg_eigvalsh": lambda a, UPLO="L": np.linalg.eigvalsh(a, UPLO),
    "linalg_eig": _eig,
    "linalg_eigvals": lambda a: np.linalg.eigvals(a.astype(np.complex128)),
    "linalg_pinv": _pinv,
    "linalg_pinv.numbers": _pinv,
    "linalg_pinv.rcond_number": lambda a, rcond: _pinv(a, rtol=rcond),
    "linalg_pinv.rcond": lambda a, rcond: _pinv(a, rtol=rcond),
    "pinverse": lambda a, rcond=1e-15: _pinv(a, rtol=rcond),
    "linalg_matrix_rank": _matrix_rank,
    "linalg_matrix_rank.numbers": _matrix_rank,
    "linalg_matrix_rank.tol_number": lambda a, tol: _matrix_rank(a, atol=tol, rtol=0.0),
    "linalg_matrix_rank.tol": lambda a, tol: _matrix_rank(a, atol=tol, rtol=0.0),
    "linalg_cond": _cond,
    "linalg_cond.name": _cond,
    "matrix_exp": _matrix_exp,
    "linalg_matrix_exp": _matrix_exp,
}
