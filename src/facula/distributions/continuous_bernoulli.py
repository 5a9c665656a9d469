"""Numbers in [0, 1] with the density of a coin."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions._binary import ProbsOrLogits
from facula.distributions.bernoulli import _log_prob_of_coin
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.utils import _all_true, clamp_probs, lazy_property, probs_to_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers from [0, 1] with a density in proportion to ``p**x (1 - p)**(1 - x)``.

    It models pixels where a Bernoulli distribution would not be normalised (Loaiza-Ganem and
    Cunningham 2019). The formulas have a removable singularity at ``p = 1/2``; between ``lims``
    Taylor's series stands in for them.

    Args:
        probs: the parameter ``p``, in (0, 1).
        logits: its log-odds; one of the two is given.
        lims: where the series is used.

    Example::

        >>> from facula.distributions import ContinuousBernoulli
        >>> ContinuousBernoulli(probs=facula.tensor(0.5)).mean
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        if probs is not None:
            given = self.__dict__["probs"]
            # Unless a check is asked for, what lies outside is moved to the ends by clamp_probs.
            if validate_args and not _all_true(self.arg_constraints["probs"].check(given)):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(given)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new._lims = self._lims

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter, kept inside of (0, 1)."""
        return clamp_probs(facula.sigmoid(self.logits))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """The parameter where the formulas are used, and a harmless one elsewhere."""
        low = self._lims[0] * facula.ones_like(self.probs)
        return facula.where(self._outside_unstable_region(), self.probs, low)

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of what makes the density integrate to 1."""
        cut = self._cut_probs()
        # 2 atanh(1 - 2 p) / (1 - 2 p), in parts that are positive on both sides of 1/2
        below = facula.where(cut <= 0.5, cut, facula.zeros_like(cut))
        above = facula.where(cut >= 0.5, cut, facula.ones_like(cut))
        width = facula.where(cut <= 0.5, facula.log1p(-2.0 * below), facula.log(2.0 * above - 1.0))
        log_norm = facula.log((facula.log1p(-cut) - facula.log(cut)).abs()) - width
        x = (self.probs - 0.5).pow(2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return facula.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (facula.log1p(-cut) - facula.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return facula.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self) -> Tensor:
        return facula.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2)
        variance = variance + 1.0 / (facula.log1p(-cut) - facula.log(cut)).pow(2)
        x = (self.probs - 0.5).pow(2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return facula.where(self._outside_unstable_region(), variance, taylor)

    def _uniform(self, sample_shape: Any) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return facula.rand(shape, dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        u = self._uniform(sample_shape)
        with facula.no_grad():
            return self.icdf(u)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return _log_prob_of_coin(self.logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        powers = facula.pow(cut, value) * facula.pow(1.0 - cut, 1.0 - value)
        curved = (powers + cut - 1.0) / (2.0 * cut - 1.0)
        inside = facula.where(self._outside_unstable_region(), curved, value)
        inside = facula.where(value <= 0.0, facula.zeros_like(value), inside)
        return facula.where(value >= 1.0, facula.ones_like(value), inside)

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        curved = (facula.log1p(-cut + value * (2.0 * cut - 1.0)) - facula.log1p(-cut)) / (
            facula.log(cut) - facula.log1p(-cut)
        )
        return facula.where(self._outside_unstable_region(), curved, value)

    def entropy(self) -> Tensor:
        log_failure = facula.log1p(-self.probs)
        slope = log_failure - facula.log(self.probs)
        return self.mean * slope - self._cont_bern_log_norm() - log_failure

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x), by its series around 0."""
        curved = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = facula.where(curved, x, (self._lims[0] - 0.5) * facula.ones_like(x))
        log_norm = facula.log(facula.expm1(cut).abs()) - facula.log(cut.abs())
        taylor = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return facula.where(curved, log_norm, taylor)
