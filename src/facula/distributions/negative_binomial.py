"""How many trials succeed before a number of them fails."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.distributions import constraints
from facula.distributions._binary import ProbsOrLogits
from facula.distributions.bernoulli import softplus
from facula.distributions.distribution import Distribution
from facula.distributions.gamma import Gamma
from facula.distributions.utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes before ``total_count`` failures.

    Args:
        total_count: the number of failures that ends the trials; it need not be whole.
        probs: the probability of a success, below 1.
        logits: its log-odds; one of the two is given.

    Example::

        >>> from facula.distributions import NegativeBinomial
        >>> NegativeBinomial(3., probs=facula.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._set_probs_or_logits(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * facula.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / facula.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # Counts are Poisson with a rate that is gamma distributed.
        return Gamma(self.total_count, facula.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with facula.no_grad():
            return facula.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # log of (1 - p)^n p^k, then the binomial coefficient; with n = 0 only k = 0 is possible
        powers = -self.total_count * softplus(self.logits) - value * softplus(-self.logits)
        coefficient = (
            facula.lgamma(self.total_count + value)
            - facula.lgamma(1.0 + value)
            - facula.lgamma(self.total_count)
        )
        return powers + coefficient.masked_fill(self.total_count + value == 0.0, 0.0)
