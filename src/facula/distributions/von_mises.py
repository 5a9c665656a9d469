"""Angles around a direction."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Tensor
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_i0(x: Tensor) -> Tensor:
    """log of the modified Bessel function of order 0, without overflow."""
    return facula.special.i0e(x).log() + x.abs()


class VonMises(Distribution):
    """Angles between -pi and pi, with a density in proportion to ``exp(k cos(x - loc))``.

    Args:
        loc: the mean direction, in radians.
        concentration: how close angles are to it.

    Example::

        >>> from facula.distributions import VonMises
        >>> VonMises(0., 1.).variance
        tensor(0.5536)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        exponent = self.concentration * facula.cos(value - self.loc)
        return exponent - math.log(2 * math.pi) - _log_i0(self.concentration)

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(facula.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(facula.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy proposal; by its series for small concentrations."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        return facula.where(kappa < 1e-5, 1 / kappa + kappa, r)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws samples by rejection from a wrapped Cauchy distribution (Best and Fisher 1979)."""
        with facula.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, kappa, r = (
                t.expand(shape) for t in (self._loc, self._concentration, self._proposal_r)
            )
            x = facula.empty(shape, dtype=loc.dtype, device=self.loc.device)
            done = facula.zeros(shape, dtype=facula.bool, device=self.loc.device)
            while not done.all():
                u = facula.rand((3, *shape), dtype=loc.dtype, device=self.loc.device)
                u1, u2, u3 = u.unbind()
                z = facula.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = facula.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        """The mean direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance: 1 less the length of the mean vector."""
        return 1 - facula.special.i1e(self.concentration) / facula.special.i0e(self.concentration)
