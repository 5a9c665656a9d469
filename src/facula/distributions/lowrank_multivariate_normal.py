"""Normal vectors whose covariance is a few factors and a diagonal."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from facula.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    weighted = W.mT / D.unsqueeze(-2)
    capacitance = facula.matmul(weighted, W).contiguous()
    eye = facula.eye(W.size(-1), dtype=W.dtype, device=W.device)
    return facula.linalg.cholesky(capacitance + eye)


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """log det(W W^T + D), by the matrix determinant lemma."""
    diagonal = capacitance_tril.diagonal(dim1=-2, dim2=-1)
    return 2 * diagonal.log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """x (W W^T + D)^-1 x, by Woodbury's identity."""
    weighted = W.mT / D.unsqueeze(-2)
    diagonal = (x.pow(2) / D).sum(-1)
    return diagonal - _batch_mahalanobis(capacitance_tril, _batch_mv(weighted, x))


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    With few factors this costs far less than :class:`MultivariateNormal`.

    Args:
        loc: the mean.
        cov_factor: the factors, of shape (..., D, R).
        cov_diag: the diagonal, of shape (..., D).

    Example::

        >>> from facula.distributions import LowRankMultivariateNormal
        >>> factor = facula.tensor([[1.], [0.]])
        >>> d = LowRankMultivariateNormal(facula.zeros(2), factor, facula.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m, "
                f"got {tuple(cov_factor.shape)}"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(
                f"cov_diag must be a batch of vectors with shape {event_shape}, "
                f"got {tuple(cov_diag.shape)}"
            )
        try:
            batch_shape = facula.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + (-1,))
        self.cov_diag = cov_diag.expand(batch_shape + (-1,))
        self.cov_factor = cov_factor.expand(batch_shape + (-1, -1))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        squared = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        return (squared + self._unbroadcasted_cov_diag).expand(
            self._batch_shape + self._event_shape
        )

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance: D^(1/2) chol(I + D^(-1/2) W W^T D^(-1/2))."""
        n = self._event_shape[0]
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = facula.matmul(scaled, scaled.mT).contiguous()
        inner = inner + facula.eye(n, dtype=inner.dtype, device=inner.device)
        return self._matrix(root * facula.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        full = facula.matmul(factor, factor.mT) + facula.diag_embed(self._unbroadcasted_cov_diag)
        return self._matrix(full)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        diagonal = self._unbroadcasted_cov_diag
        weighted = self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
        solved = facula.linalg.solve_triangular(self._capacitance_tril, weighted, upper=False)
        return self._matrix(facula.diag_embed(diagonal.reciprocal()) - solved.mT @ solved)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        eps_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **like)
        eps_diagonal = _standard_normal(shape, **like)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, eps_factor)
            + self._unbroadcasted_cov_diag.sqrt() * eps_diagonal
        )

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        squared = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + squared)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
