"""NumPy references of the factorisations and solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def _adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -2, -1))


def _no_info(a: Array) -> Array:
    return np.zeros(a.shape[:-2], dtype=np.int32)


def _each(f: Callable[..., Any], *operands: Array, dims: tuple[int, ...] = ()) -> list[Array]:
    """`f` on every element of the broadcast batch; `dims` says how many dimensions are its own."""
    dims = dims or (2,) * len(operands)
    batch = np.broadcast_shapes(
        *(a.shape[: a.ndim - d] for a, d in zip(operands, dims, strict=True))
    )
    full = [
        np.broadcast_to(a, batch + a.shape[a.ndim - d :])
        for a, d in zip(operands, dims, strict=True)
    ]
    places = list(np.ndindex(batch))
    if not places:  # for the shapes alone
        one = [a.shape[a.ndim - d :] for a, d in zip(full, dims, strict=True)]
        alone = f(*(np.eye(*n) + 0 * 1j if len(n) == 2 else np.ones(n, int) for n in one))
        return [
            np.empty(batch + r.shape, full[0].dtype if r.dtype.kind == "c" else r.dtype)
            for r in alone
        ]
    results = [f(*(a[place] for a in full)) for place in places]
    return [
        np.stack([r[k] for r in results]).reshape(batch + results[0][k].shape)
        for k in range(len(results[0]))
    ]


# ---- Cholesky


def cholesky(a: Array, upper: bool = False) -> Array:
    lower = np.linalg.cholesky(a)
    return _adjoint(lower) if upper else lower


def _positive(factor: Array, upper: bool) -> Array:
    return _adjoint(factor) @ factor if upper else factor @ _adjoint(factor)


def _cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    return _solve(_positive(np.triu(factor) if upper else np.tril(factor), upper), b)


def _cholesky_inverse(factor: Array, upper: bool = False) -> Array:
    return np.linalg.inv(_positive(np.triu(factor) if upper else np.tril(factor), upper))


# ---- LU


def _lu_of_one(a: Array) -> tuple[Array, Array]:
    lu, (m, n) = a.copy(), a.shape
    pivots = np.empty(min(m, n), dtype=np.int32)
    for k in range(min(m, n)):
        size = np.abs(lu[k:, k].real) + np.abs(lu[k:, k].imag)  # as LAPACK compares
        p = k + int(np.argmax(size))
        pivots[k] = p + 1
        lu[[k, p]] = lu[[p, k]]
        if lu[k, k] != 0:
            lu[k + 1 :, k] /= lu[k, k]
            lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots


def lu_factor(a: Array, pivot: bool = True) -> tuple[Array, Array]:
    lu, pivots = _each(_lu_of_one, a)
    return lu, pivots


def _unpack_one(lu: Array, pivots: Array) -> tuple[Array, Array, Array]:
    m, n = lu.shape
    order = np.arange(m)
    for k, p in enumerate(pivots):
        order[[k, p - 1]] = order[[p - 1, k]]
    k = min(m, n)
    lower = np.tril(lu[:, :k], -1) + np.eye(m, k)
    return np.eye(m, dtype=lu.dtype)[:, order], lower, np.triu(lu[:k])


def _lu_unpack(lu, pivots, unpack_data=True, unpack_pivots=True):
    p, lower, upper = _each(_unpack_one, lu, pivots, dims=(2, 1))
    none = np.empty(0, dtype=lu.dtype)
    return (p if unpack_pivots else none, *((lower, upper) if unpack_data else (none, none)))


def _lu_solve(lu, pivots, b, *, left=True, adjoint=False):
    p, lower, upper = _lu_unpack(lu, pivots)
    a = p @ lower @ upper
    a = _adjoint(a) if adjoint else a
    return _solve_side(a, b, left)


# ---- systems


def _solve(a: Array, b: Array) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, batch + a.shape[-2:])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    return np.linalg.solve(a, b) if b.size else np.empty(b.shape, b.dtype)


def _solve_side(a: Array, b: Array, left: bool) -> Array:
    return _solve(a, b) if left else np.swapaxes(_solve(_turned(a), _turned(b)), -2, -1)


def _turned(a: Array) -> Array:
    return np.swapaxes(a, -2, -1)


def _solve_any(a: Array, b: Array, *, left: bool = True) -> Array:
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        return _solve(a, b[..., None])[..., 0]
    return _solve_side(a, b, left)


def _solve_triangular(a, b, *, upper, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = np.where(np.eye(a.shape[-1], dtype=bool), 1, a)
    return _solve_side(a, b, left)


def _triangular_solve(b, a, upper=True, transpose=False, unitriangular=False):
    turned = np.swapaxes(a, -2, -1) if transpose else a
    x = _solve_triangular(turned, b, upper=upper != transpose, unitriangular=unitriangular)
    return x, np.broadcast_to(a, x.shape[:-2] + a.shape[-2:])


def _tensorsolve(a, b, dims=None):
    return np.linalg.tensorsolve(a, b, dims)


def _slogdet(a: Array) -> tuple[Array, Array]:
    sign, logarithm = np.linalg.slogdet(a)
    return sign, logarithm


def _logdet(a: Array) -> Array:
    sign, logarithm = np.linalg.slogdet(a)
    if np.iscomplexobj(a):
        return np.log(sign) + logarithm
    return np.where(sign < 0, np.nan, logarithm)


# ---- QR


def _qr(a: Array, mode: str = "reduced") -> tuple[Array, Array]:
    if mode == "r":
        return np.empty(0, dtype=a.dtype), np.linalg.qr(a, "r")
    q, r = np.linalg.qr(a, mode)
    return q, r


def geqrf(a: Array) -> tuple[Array, Array]:
    h, tau = np.linalg.qr(a, "raw")
    return np.swapaxes(h, -2, -1), tau


def _reflect(reflectors: Array, tau: Array) -> Array:
    """The whole product, m x m."""
    product = np.eye(reflectors.shape[0], dtype=reflectors.dtype)
    for i, t in enumerate(tau):
        v = reflectors[:, i].copy()
        v[:i], v[i] = 0, 1
        product = product - t * np.outer(product @ v, v.conj())
    return product


def _householder_product(a: Array, tau: Array) -> Array:
    (q,) = _each(lambda a, t: (_reflect(a, t)[:, : a.shape[1]],), a, tau, dims=(2, 1))
    return q


def _ormqr(a, tau, c, left=True, transpose=False):
    def one(a, t, c):
        q = _reflect(a, t)
        q = _adjoint(q) if transpose else q
        return (q @ c if left else c @ q,)

    return _each(one, a, tau, c, dims=(2, 1, 2))[0]


# ---- L D L^T, of matrices that need no exchanges


def _ldl_of_one(a: Array, hermitian: bool) -> tuple[Array, Array]:
    ld = np.tril(a)
    n = a.shape[0]
    for k in range(n):
        column = ld[k + 1 :, k] / ld[k, k]
        other = column.conj() if hermitian else column
        ld[k + 1 :, k + 1 :] -= np.tril(np.outer(column, other) * ld[k, k])
        ld[k + 1 :, k] = column
    return ld, np.arange(1, n + 1, dtype=np.int32)


def ldl_factor(a: Array, *, hermitian: bool = False) -> tuple[Array, Array]:
    ld, pivots = _each(lambda a: _ldl_of_one(a, hermitian), a)
    return ld, pivots


def _ldl_solve(ld, pivots, b, *, hermitian=False):
    diagonal = np.einsum("...ii->...i", ld)
    lower = np.tril(ld, -1) + np.eye(ld.shape[-1])
    upper = _adjoint(lower) if hermitian else np.swapaxes(lower, -2, -1)
    return _solve(lower * diagonal[..., None, :] @ upper, b)


# ---- least squares


def _lstsq(a, b, rcond=None, *, driver=None):
    m, n = a.shape[-2:]
    vector = a.ndim - b.ndim == 1
    b = b[..., None] if vector else b
    limit = np.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond

    def solved(a, b):
        x = np.linalg.lstsq(a, b, rcond=limit)[0]
        return x, np.sum(np.abs(b - a @ x) ** 2, axis=0)

    def judged(a):
        _, _, rank, values = np.linalg.lstsq(a, a[:, :0], rcond=limit)
        return np.array(rank, dtype=np.int64), values

    (x, residuals), (rank, values) = _each(solved, a, b), _each(judged, a)
    none = np.empty(0)
    return (
        x[..., 0] if vector else x,
        residuals if m > n and driver in ("gels", "gelsd", "gelss") else none,
        np.empty(0, dtype=np.int64) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else none,
    )


BY_ROW: dict[str, Callable[..., Any]] = {
    "linalg_cholesky": cholesky,
    "cholesky": cholesky,
    "linalg_cholesky_ex": lambda a, *, upper=False: (cholesky(a, upper), _no_info(a)),
    "cholesky_solve": _cholesky_solve,
    "cholesky_inverse": _cholesky_inverse,
    "linalg_lu_factor": lu_factor,
    "linalg_lu_factor_ex": lambda a: (*lu_factor(a), _no_info(a)),
    "linalg_lu": lambda a: _lu_unpack(*lu_factor(a)),
    "lu_unpack": _lu_unpack,
    "linalg_lu_solve": _lu_solve,
    "lu_solve": lambda b, lu, pivots: _lu_solve(lu, pivots, b),
    "linalg_solve": _solve_any,
    "linalg_solve_ex": lambda a, b, **given: (_solve_any(a, b, **given), _no_info(a)),
    "linalg_inv": np.linalg.inv,
    "inverse": np.linalg.inv,
    "linalg_inv_ex": lambda a: (np.linalg.inv(a), _no_info(a)),
    "linalg_tensorinv": lambda a, ind=2: np.linalg.tensorinv(a, ind),
    "linalg_tensorsolve": _tensorsolve,
    "linalg_matrix_power": np.linalg.matrix_power,
    "matrix_power": np.linalg.matrix_power,
    "linalg_det": np.linalg.det,
    "det": np.linalg.det,
    "linalg_slogdet": _slogdet,
    "slogdet": _slogdet,
    "logdet": _logdet,
    "linalg_solve_triangular": _solve_triangular,
    "triangular_solve": _triangular_solve,
    "linalg_qr": _qr,
    "qr": lambda a, some=True: _qr(a, "reduced" if some else "complete"),
    "geqrf": geqrf,
    "linalg_householder_product": _householder_product,
    "orgqr": _householder_product,
    "ormqr": _ormqr,
    "linalg_ldl_factor": ldl_factor,
    "linalg_ldl_factor_ex": lambda a, **given: (*ldl_factor(a, **given), _no_info(a)),
    "linalg_ldl_solve": _ldl_solve,
    "linalg_lstsq": _lstsq,
}
