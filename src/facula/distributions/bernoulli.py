"""The distribution of one coin."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor, nan
from facula.distributions import constraints
from facula.distributions._binary import ProbsOrLogits
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with a given probability, else 0.

    Args:
        probs: the probability of 1.
        logits: its log-odds; one of the two is given.

    Example::

        >>> from facula.distributions import Bernoulli
        >>> Bernoulli(probs=facula.tensor([0.25])).log_prob(facula.tensor([1.])).exp()
        tensor([0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, nan)  # both values are

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with facula.no_grad():
            return facula.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return _log_prob_of_coin(self.logits, value)

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = facula.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (facula.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return facula.log1p(facula.exp(x))


def _log_prob_of_coin(logits: Tensor, value: Any) -> Tensor:
    """value * logits - log(1 + exp(logits)), whose terms cancel where heads are almost certain."""
    logits, value = broadcast_all(logits, value)
    if not value.is_floating_point():
        value = value.to(logits.dtype)
    return -facula.binary_cross_entropy_with_logits(logits, value)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)) without overflow and with a gradient everywhere."""
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(facula.get_default_dtype())
    return facula.logaddexp(x, facula.zeros_like(x))
