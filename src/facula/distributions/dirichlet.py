"""Distributions of probabilities that add up to 1."""

from __future__ import annotations

from typing import Any

import facula
from facula import _C, Tensor
from facula.distributions import constraints
from facula.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]

_sample_dirichlet = _C._operators["_sample_dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors of positive numbers that add up to 1.

    Args:
        concentration: how many observations each component counts for, along the last dimension.

    Example::

        >>> from facula.distributions import Dirichlet
        >>> Dirichlet(facula.tensor([1., 3.])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        powers = facula.xlogy(c - 1.0, value).sum(-1)
        return powers + facula.lgamma(c.sum(-1)) - facula.lgamma(c).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        # With all below 1 the density grows towards the corners, most at that of the largest.
        below = (self.concentration < 1).all(dim=-1, keepdim=True)
        corner = facula.zeros_like(mode).scatter(
            -1, self.concentration.argmax(dim=-1, keepdim=True), 1.0
        )
        return facula.where(below, corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        c = self.concentration
        return c * (total - c) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        c, k = self.concentration, self.concentration.size(-1)
        total = c.sum(-1)
        return (
            facula.lgamma(c).sum(-1)
            - facula.lgamma(total)
            - (k - total) * facula.digamma(total)
            - ((c - 1.0) * facula.digamma(c)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - facula.lgamma(x.sum(-1))
