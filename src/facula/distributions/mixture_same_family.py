"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions.categorical import Categorical
from facula.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A component is chosen by a categorical distribution, then a value by that component.

    Args:
        mixture_distribution: a ``Categorical`` over the components.
        component_distribution: a distribution whose last batch dimension is the components'.

    Example::

        >>> from facula.distributions import Categorical, MixtureSameFamily, Normal
        >>> mix = Categorical(facula.ones(2))
        >>> MixtureSameFamily(mix, Normal(facula.tensor([0., 4.]), 1.)).mean
        tensor(2.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                "facula.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "facula.distributions.Distribution"
            )
        mixture_batch = mixture_distribution.batch_shape
        component_batch = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({component_batch})"
                )
        components = mixture_distribution.logits.shape[-1]
        if component_distribution.batch_shape[-1:] != (components,):
            raise ValueError(
                f"`mixture_distribution component` ({components}) does not equal "
                f"`component_distribution.batch_shape[-1]` "
                f"({component_distribution.batch_shape[-1]})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_batch, event_shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        wider = batch_shape + (self._num_component,)
        new._component_distribution = self._component_distribution.expand(wider)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _pad(self, x: Tensor) -> Tensor:
        """A dimension for the components, left of the event."""
        return x.unsqueeze(x.dim() - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """The weights (..., K) with the dimensions of the event after them."""
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = x.shape
        return x.reshape(shape[:-1] + (1,) * missing + shape[-1:] + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # Of all: the mean of the variances plus the variance of the means.
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        dim = -1 - self._event_ndims
        within = (probs * self.component_distribution.variance).sum(dim)
        off = self.component_distribution.mean - self._pad(self.mean)
        return within + (probs * off.pow(2.0)).sum(dim)

    def cdf(self, x: Tensor) -> Tensor:
        cdf = self.component_distribution.cdf(self._pad(x))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        weights = facula.log_softmax(self.mixture_distribution.logits, dim=-1)
        return facula.logsumexp(log_prob + weights, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with facula.no_grad():
            sample_shape = Size(sample_shape)
            choice = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            event = (1,) * (self._event_ndims + 1)
            index = choice.reshape(choice.shape + event)
            index = index.expand(samples.shape[:dim] + (1,) + self.event_shape)
            return samples.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        parts = f"  {self.mixture_distribution},\n  {self.component_distribution}"
        return "MixtureSameFamily(\n" + parts + ")"
