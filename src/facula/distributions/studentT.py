"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Size, Tensor, inf, nan
from facula.distributions import constraints
from facula.distributions.chi2 import Chi2
from facula.distributions.distribution import Distribution
from facula.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number divided by an independent estimate of its deviation.

    Args:
        df: the degrees of freedom of the estimate.
        loc: the median.
        scale: the scale.

    Example::

        >>> from facula.distributions import StudentT
        >>> StudentT(4.).variance
        tensor(2.)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        # Where the variance is infinite, the gradients of what stands in for it are zero, not NaN.
        df = self.df.masked_fill(self.df <= 2, 3.0)
        finite = self.scale.pow(2) * df / (df - 2)
        return finite.masked_fill(self.df <= 2, inf).masked_fill(self.df <= 1, nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        estimate = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * normal * facula.rsqrt(estimate / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + facula.lgamma(0.5 * self.df)
            - facula.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * facula.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = facula.lgamma(half) + math.lgamma(0.5) - facula.lgamma(more)
        digammas = more * (facula.digamma(more) - facula.digamma(half))
        return self.scale.log() + digammas + 0.5 * self.df.log() + log_beta
