"""How often each category is drawn."""

from __future__ import annotations

from typing import Any

import facula
from facula import Size, Tensor, inf
from facula.distributions import constraints
from facula.distributions.binomial import Binomial
from facula.distributions.categorical import Categorical
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """The counts of the categories in ``total_count`` independent draws.

    Args:
        total_count: the number of draws, the same for the whole batch.
        probs: weights along the last dimension, which are divided by their sum.
        logits: unnormalised logarithms of probabilities; one of the two is given.

    Example::

        >>> from facula.distributions import Multinomial
        >>> Multinomial(4, probs=facula.tensor([1., 3.])).mean
        tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(
            self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args
        )

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self._event_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        draws = draws.movedim(0, -1)  # the draws of one event side by side
        counts = self._new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, draws, facula.ones_like(draws, dtype=counts.dtype))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = self.total_count
        # -log n! - n sum p log p + sum over categories of the mean of log k!
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = facula.exp(self._binomial.log_prob(values))
        log_factorials = (weights * facula.lgamma(values + 1)).sum([0, -1])
        constant = facula.lgamma(facula.tensor(n + 1, dtype=self.probs.dtype))
        return n * self._categorical.entropy() - constant + log_factorials

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = facula.lgamma(value.sum(-1) + 1) - facula.lgamma(value + 1).sum(-1)
        # Categories of probability 0 that were not drawn count for nothing.
        logits = logits.masked_fill((value == 0) & (logits == -inf), 0)
        return ways + (logits * value).sum(-1)
