"""How many trials fail before the first that succeeds."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.distributions import constraints
from facula.distributions._binary import ProbsOrLogits
from facula.distributions.bernoulli import softplus
from facula.distributions.distribution import Distribution
from facula.distributions.utils import _all_true

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success, from 0 on.

    Args:
        probs: the probability of a success, above 0.
        logits: its log-odds; one of the two is given.

    Example::

        >>> from facula.distributions import Geometric
        >>> Geometric(probs=facula.tensor(0.25)).mean
        tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            valid = value > 0
            if not _all_true(valid):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to be positive but found "
                    f"invalid values:\n{value[~valid]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return facula.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        tiny = facula.finfo(self.probs.dtype).tiny
        with facula.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = facula.broadcast_tensors(value, self.probs)
        # At probs = 1 the first trial succeeds: value 0 has probability 1, not 0 * -inf.
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (softplus(self.logits) - self.probs * self.logits) / self.probs
