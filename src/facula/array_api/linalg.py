"""The extension ``linalg`` of the array API standard."""

from __future__ import annotations

import builtins
from typing import Literal, NamedTuple

import facula
from facula import Tensor
from facula.array_api._elementwise import promote
from facula.array_api._linear import matmul, matrix_transpose, tensordot, vecdot
from facula.array_api._statistics import axes_of
from facula.array_api._statistics import sum as _sum

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """What :func:`eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What :func:`eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What :func:`qr` returns."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What :func:`svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: builtins.bool = False) -> Tensor:
    """The triangular matrix whose product with its adjoint a matrix is."""
    return facula.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product."""
    a, b = promote(x1, x2)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError("cross: vectors have 3 elements along the axis")
    return facula.linalg.cross(*facula.broadcast_tensors(a, b), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return facula.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The elements of a diagonal of each matrix."""
    return facula.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors, which are complex."""
    return EigResult(*facula.linalg.eig(x))


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return EighResult(*facula.linalg.eigh(x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues, which are complex."""
    return facula.linalg.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices."""
    return facula.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return facula.linalg.inv(x)


def matrix_norm(
    x: Tensor,
    /,
    *,
    keepdims: builtins.bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Tensor:
    """The norm of each matrix."""
    return facula.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """A product of equal matrices."""
    return facula.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values are larger than ``rtol`` times the largest."""
    if x.dim() < 2:
        raise ValueError(f"matrix_rank: an array of {x.dim()} dimensions has no matrices")
    return facula.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    if x1.dim() != 1 or x2.dim() != 1:
        raise ValueError("outer: both arrays should have one dimension")
    return facula.outer(*promote(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverse."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * facula.finfo(x.dtype).eps
    return facula.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """An orthogonal and a triangular matrix whose product a matrix is."""
    return QRResult(*facula.linalg.qr(x, mode=mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign and the logarithm of the determinant."""
    return SlogdetResult(*facula.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What gives ``x2`` when the matrix ``x1`` is applied to it; ``x2`` is a vector only when it
    has one dimension."""
    a, b = promote(x1, x2)
    if b.dim() == 1:
        return facula.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    batch = facula.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    # Of the full shape: PyTorch would take some matrices for batches of vectors.
    return facula.linalg.solve(
        a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]).contiguous()
    )


def svd(x: Tensor, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """The singular value decomposition."""
    return SVDResult(*facula.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values."""
    return facula.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: facula.dtype | None = None) -> Tensor:
    """The sum along a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: builtins.bool = False,
    ord: float = 2,
) -> Tensor:
    """The norm of elements along axes, taken as one vector."""
    axes = axes_of(x, axis)
    if not axes:
        return facula.abs(x) if ord != 0 else (x != 0).to(facula.abs(x).dtype)
    return facula.linalg.vector_norm(x, ord, axes, keepdims)
