"""Reciprocals of gamma numbers."""

from __future__ import annotations

from typing import Any

from facula import Tensor, inf
from facula.distributions import constraints
from facula.distributions.gamma import Gamma
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for a gamma distributed x.

    Args:
        concentration: the shape of the gamma distribution.
        rate: its rate.

    Example::

        >>> from facula.distributions import InverseGamma
        >>> InverseGamma(3., 4.).mean
        tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(exponent=-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        finite = self.rate / (self.concentration - 1)
        return finite.masked_fill(self.concentration <= 1, inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        finite = self.rate.square() / ((c - 1).square() * (c - 2))
        return finite.masked_fill(c <= 2, inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
