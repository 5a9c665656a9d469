"""What exceeds a high threshold."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor, inf, nan
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalised Pareto distribution, which describes the excess over a high threshold.

    A ``concentration`` of 0 is the exponential distribution; a negative one has an upper end.

    Args:
        loc: the smallest value.
        scale: the scale.
        concentration: the shape (xi).

    Example::

        >>> from facula.distributions import GeneralizedPareto
        >>> GeneralizedPareto(0., 1., 0.5).mean
        tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, end.masked_fill(self.concentration >= 0, inf))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _straight(self) -> tuple[Tensor, Tensor]:
        """Where the shape is 0 to rounding, and the shape with a harmless value there."""
        straight = facula.isclose(self.concentration, facula.zeros_like(self.concentration))
        return straight, self.concentration.masked_fill(straight, 1.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(facula.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        straight, c = self._straight()
        curved = (1 + 1 / c) * facula.log1p(c * z)
        return -self.scale.log() - facula.where(straight, z, curved)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a sample above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        straight, c = self._straight()
        return facula.where(straight, -z, -facula.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of :meth:`cdf`."""
        return facula.log1p(-facula.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return facula.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        straight, c = self._straight()
        log_rest = facula.log1p(-value)
        curved = facula.expm1(-c * log_rest) / c
        return self.loc + self.scale * facula.where(straight, -log_rest, curved)

    @property
    def mean(self) -> Tensor:
        """NaN where the tail is too heavy."""
        c = self.concentration
        return (self.loc + self.scale / (1 - c)).masked_fill(c >= 1, nan)

    @property
    def variance(self) -> Tensor:
        """NaN where the tail is too heavy."""
        c = self.concentration
        return (self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))).masked_fill(c >= 0.5, nan)

    def entropy(self) -> Tensor:
        return facula.log(self.scale) + self.concentration + 1

    @property
    def mode(self) -> Tensor:
        return self.loc
