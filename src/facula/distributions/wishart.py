"""Random covariance matrices."""

from __future__ import annotations

import math
import warnings
from typing import Any

import facula
from facula import Size, Tensor, nan
from facula.distributions import constraints
from facula.distributions.chi2 import Chi2
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.multivariate_normal import _precision_to_scale_tril
from facula.distributions.utils import lazy_property

__all__ = ["Wishart"]

_log_2 = math.log(2)


class Wishart(ExponentialFamily):
    """The sum of ``df`` products ``x x^T`` of normal vectors of mean 0.

    Args:
        df: the degrees of freedom, more than the size of the matrices less 1.
        covariance_matrix: the covariance of the vectors.
        precision_matrix: its inverse.
        scale_tril: its Cholesky factor; one of the three is given.

    Example::

        >>> from facula.distributions import Wishart
        >>> Wishart(facula.tensor(3.), covariance_matrix=facula.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, (int, float)):
            df = facula.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = facula.broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = facula.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        # The squared diagonal of Bartlett's factor is chi-squared, with fewer degrees row by row.
        rows = facula.arange(event_shape[-1], dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - rows.expand(batch_shape + (-1,)))

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(
            batch_shape + self.event_shape
        )
        new._dist_chi2 = self._dist_chi2.expand(batch_shape + self.event_shape[-1:])

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return self._matrix(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._matrix(facula.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN where the density has none."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        p = self._event_shape[-1]
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        diagonal = diagonal.clamp(min=facula.finfo(diagonal.dtype).eps)
        noise = diagonal.diag_embed(dim1=-2, dim2=-1)
        rows, columns = facula.tril_indices(p, p, offset=-1)
        below = facula.randn(
            Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,),
            dtype=noise.dtype,
            device=noise.device,
        )
        noise[..., rows, columns] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draws samples; those that come out singular are drawn again.

        Args:
            max_try_correction: how often at most; 10 times by default.
        """
        if max_try_correction is None:
            max_try_correction = 10
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        # PyTorch draws the sound ones again, too, where it meant the others. Doing the same keeps
        # its numbers for a seed; the samples are as good.
        chosen = self._any_of_batch(self.support.check(sample))
        for _ in range(max_try_correction):
            if not chosen.any():
                break
            sample[chosen] = self._bartlett_sampling(chosen[chosen].shape)
            chosen = self._any_of_batch(~self.support.check(sample))
        return sample

    def _any_of_batch(self, found: Tensor) -> Tensor:
        dims = tuple(range(found.dim() - len(self._batch_shape), found.dim()))
        return found.amax(dims) if dims else found

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        trace = facula.cholesky_solve(value, self._unbroadcasted_scale_tril)
        trace = trace.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -nu * (p * _log_2 / 2 + log_det)
            - facula.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * facula.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (
            (p + 1) * (p * _log_2 / 2 + log_det)
            + facula.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _multidigamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-facula.linalg.slogdet(-2 * x).logabsdet + _log_2 * p) + facula.mvlgamma(
            half, p=p
        )


def _multidigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of ``mvlgamma``."""
    halves = facula.arange(p, dtype=x.dtype, device=x.device) / 2
    return facula.digamma(x.unsqueeze(-1) - halves.expand(x.shape + (-1,))).sum(-1)
