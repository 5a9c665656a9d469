"""Exponential families: entropy and divergence follow from the log-normaliser."""

from __future__ import annotations

import facula
from facula import Tensor
from facula.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    r"""Distributions with a density :math:`\exp(t(x) \cdot \theta - F(\theta) + k(x))`.

    A subclass gives the natural parameters theta (``_natural_params``), the log-normaliser F
    (``_log_normalizer``) and the mean of the carrier measure k (``_mean_carrier_measure``). The
    mean of the statistic t is the gradient of F, which autograd computes, so that the entropy
    :math:`F(\theta) - \theta \cdot \nabla F(\theta) - E[k]` needs no formula of its own
    (Nielsen and Nock 2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        with facula.enable_grad():
            parameters = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*parameters)
            gradients = facula.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - carrier
        for parameter, gradient in zip(parameters, gradients, strict=True):
            result = result - (parameter * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
