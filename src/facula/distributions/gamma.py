"""Waiting times for several events."""

from __future__ import annotations

from typing import Any

import facula
from facula import _C, Size, Tensor
from facula.distributions import constraints
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.utils import broadcast_all

__all__ = ["Gamma"]

_standard_gamma = _C._operators["_standard_gamma"]


class Gamma(ExponentialFamily):
    """Gamma distributions.

    Args:
        concentration: the shape (alpha).
        rate: 1 / scale (beta).

    Example::

        >>> from facula.distributions import Gamma
        >>> Gamma(4., 2.).mean
        tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        # Subclasses have other constraints, on what follows from these two.
        new.concentration = self.concentration.expand(batch_shape)
        new.rate = self.rate.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # No sample is 0, where the density may be infinite.
        return value.clamp(min=facula.finfo(value.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = facula.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            facula.xlogy(self.concentration, self.rate)
            + facula.xlogy(self.concentration - 1, value)
            - self.rate * value
            - facula.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return facula.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - facula.log(self.rate)
            + facula.lgamma(self.concentration)
            + (1.0 - self.concentration) * facula.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return facula.lgamma(x + 1) + (x + 1) * facula.log(-y.reciprocal())
