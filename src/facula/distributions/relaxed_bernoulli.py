"""Coins that gradients can flow through."""

from __future__ import annotations

from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions._binary import ProbsOrLogits
from facula.distributions.bernoulli import softplus
from facula.distributions.distribution import Distribution
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import SigmoidTransform
from facula.distributions.utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log-odds of :class:`RelaxedBernoulli` (Maddison et al. 2017).

    Args:
        temperature: the lower, the closer to a coin.
        probs: the probability of 1.
        logits: its log-odds; one of the two is given.

    Example::

        >>> from facula.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> zero = facula.tensor(0.)
        >>> LogitRelaxedBernoulli(facula.tensor(1.), logits=zero).log_prob(zero)
        tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(facula.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniforms.log() - (-uniforms).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        off = logits - value * self.temperature
        log_temperature = facula.as_tensor(self.temperature, dtype=off.dtype).log()
        return log_temperature + off - 2 * softplus(off)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that approach a coin as the temperature goes to 0.

    Args:
        temperature: the lower, the closer to a coin.
        probs: the probability of 1.
        logits: its log-odds; one of the two is given.

    Example::

        >>> from facula.distributions import RelaxedBernoulli
        >>> p = facula.tensor([0.2, 0.8], requires_grad=True)
        >>> RelaxedBernoulli(facula.tensor(0.5), probs=p).rsample().requires_grad
        True
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs
