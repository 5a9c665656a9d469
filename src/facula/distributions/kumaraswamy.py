"""A distribution on (0, 1) with a distribution function in closed form."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor, nan
from facula.distributions import constraints
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AffineTransform, PowerTransform
from facula.distributions.uniform import Uniform
from facula.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a: Tensor, b: Tensor, n: int) -> Tensor:
    """The mean of ``x ** n``: b B(1 + n / a, b)."""
    first = 1 + n / a
    return b * facula.exp(facula.lgamma(first) + facula.lgamma(b) - facula.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution, much like Beta: ``cdf(x) = 1 - (1 - x**a)**b``.

    Args:
        concentration1: the exponent ``a``.
        concentration0: the exponent ``b``.

    Example::

        >>> from facula.distributions import Kumaraswamy
        >>> Kumaraswamy(1., 1.).mean
        tensor(0.5000)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            facula.full_like(self.concentration0, 0),
            facula.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        super().__init__(base, self._make_transforms(), validate_args=validate_args)

    def _make_transforms(self) -> list[Any]:
        return [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new.transforms = new._make_transforms()

    @property
    def mean(self) -> Tensor:
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        """NaN where the density grows towards an end."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return mode.masked_fill((a < 1) | (b < 1) | ((a == 1) & (b == 1)), nan)

    @property
    def variance(self) -> Tensor:
        return _moments(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = facula.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - facula.log(a) - b.log()
