"""Normal vectors."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Batches of matrices times batches of vectors, which broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x M^-1 x for M = L L^T; the batch of x may be larger than that of L."""
    n = bx.size(-1)
    extra = bx.dim() - bL.dim() + 1
    if extra <= 0 or bL.shape[:-2] == bx.shape[:-1]:
        return (
            facula.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False).pow(2).sum((-2, -1))
        )
    # Vectors that share a matrix become the columns of one right-hand side, so that each matrix is
    # solved with once and never copied.
    batch = bL.shape[:-2]
    outer = bx.shape[:extra]
    x = bx.expand(outer + facula.broadcast_shapes(bx.shape[extra:-1], batch) + (n,))
    batch = x.shape[extra:-1]
    columns = x.reshape((-1, *batch, n)).movedim(0, -1)  # (*batch, n, outer)
    solved = facula.linalg.solve_triangular(bL.expand(batch + (n, n)), columns, upper=False)
    return solved.pow(2).sum(-2).movedim(-1, 0).reshape(outer + batch)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P^-1, from that of P with its rows and columns reversed."""
    reversed_factor = facula.linalg.cholesky(facula.flip(P, (-2, -1)))
    inverse = facula.transpose(facula.flip(reversed_factor, (-2, -1)), -2, -1)
    eye = facula.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return facula.linalg.solve_triangular(inverse, eye, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors, given by a mean and one of covariance, precision or Cholesky factor.

    Args:
        loc: the mean.
        covariance_matrix: the covariance, symmetric and positive definite.
        precision_matrix: its inverse.
        scale_tril: its Cholesky factor, which is what the computations use.

    Example::

        >>> from facula.distributions import MultivariateNormal
        >>> d = MultivariateNormal(facula.zeros(2), covariance_matrix=facula.eye(2))
        >>> d.log_prob(facula.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "scale_tril": scale_tril,
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = facula.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = facula.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        shape = self._batch_shape + self._event_shape + self._event_shape
        return self._unbroadcasted_scale_tril.expand(shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        shape = self._batch_shape + self._event_shape + self._event_shape
        return facula.matmul(factor, factor.mT).expand(shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        shape = self._batch_shape + self._event_shape + self._event_shape
        return facula.cholesky_inverse(self._unbroadcasted_scale_tril).expand(shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        shape = self._batch_shape + self._event_shape
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        squared = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + squared) - self._half_log_det()

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + self._half_log_det()).expand(self._batch_shape)
