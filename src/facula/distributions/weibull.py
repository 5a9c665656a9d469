"""Life times with a hazard that grows or falls like a power."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.distributions import constraints
from facula.distributions.exponential import Exponential
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AffineTransform, PowerTransform
from facula.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull's distribution: ``cdf(x) = 1 - exp(-(x / scale) ** concentration)``.

    Args:
        scale: the scale.
        concentration: the exponent.

    Example::

        >>> from facula.distributions import Weibull
        >>> Weibull(2., 1.).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(facula.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._make_transforms(), validate_args=validate_args)

    def _make_transforms(self) -> list[Any]:
        return [
            PowerTransform(exponent=self.concentration.reciprocal()),
            AffineTransform(loc=0, scale=self.scale),
        ]

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new.transforms = new._make_transforms()

    def _moment(self, n: int) -> Tensor:
        return self.scale.pow(n) * facula.exp(facula.lgamma(1 + n / self.concentration))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """0 where the density falls from the start."""
        c = self.concentration.clamp(min=1)
        return self.scale * ((c - 1) / c).pow(c.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + facula.log(self.scale * inverse) + 1
