"""Power laws."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.distributions import constraints
from facula.distributions.exponential import Exponential
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AffineTransform, ExpTransform
from facula.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Pareto's distribution of type 1: the density falls off like ``x ** -(alpha + 1)``.

    Args:
        scale: the smallest value.
        alpha: the exponent of the tail.

    Example::

        >>> from facula.distributions import Pareto
        >>> Pareto(1., 2.).mean
        tensor(2.)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, self._make_transforms(), validate_args=validate_args)

    def _make_transforms(self) -> list[Any]:
        return [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new.transforms = new._make_transforms()

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        above = self.alpha.clamp(min=1)  # infinite below
        return above * self.scale / (above - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        above = self.alpha.clamp(min=2)
        return self.scale.pow(2) * above / ((above - 1).pow(2) * (above - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
