"""The largest of many numbers."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Tensor
from facula.distributions import constraints
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AffineTransform, ExpTransform
from facula.distributions.uniform import Uniform
from facula.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The limit of the largest of many numbers: ``loc - scale * log(-log(u))`` of a uniform ``u``.

    Args:
        loc: the mode.
        scale: the scale.

    Example::

        >>> from facula.distributions import Gumbel
        >>> Gumbel(0., 1.).mean
        tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = facula.finfo(self.loc.dtype)
        ends = (facula.full_like(self.loc, info.tiny), facula.full_like(self.loc, 1 - info.eps))
        super().__init__(Uniform(*ends, validate_args=validate_args), [], validate_args)
        self._set_transforms()

    def _set_transforms(self) -> None:
        self.transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-facula.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new._set_transforms()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
