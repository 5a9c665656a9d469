"""Kullback and Leibler's divergence, in closed form where there is one.

Many pairs need only what the first distribution expects of the terms in the second's log-density,
such as its mean, its variance or its mean logarithm: the divergence is then the cross entropy less
the entropy, and one function serves several pairs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any

import facula
from facula import Tensor, inf
from facula.distributions.bernoulli import Bernoulli, softplus
from facula.distributions.beta import Beta
from facula.distributions.binomial import Binomial
from facula.distributions.categorical import Categorical
from facula.distributions.cauchy import Cauchy
from facula.distributions.continuous_bernoulli import ContinuousBernoulli
from facula.distributions.dirichlet import Dirichlet
from facula.distributions.distribution import Distribution
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.exponential import Exponential
from facula.distributions.gamma import Gamma
from facula.distributions.geometric import Geometric
from facula.distributions.gumbel import Gumbel
from facula.distributions.half_normal import HalfNormal
from facula.distributions.independent import Independent
from facula.distributions.laplace import Laplace
from facula.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from facula.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from facula.distributions.normal import Normal
from facula.distributions.one_hot_categorical import OneHotCategorical
from facula.distributions.pareto import Pareto
from facula.distributions.poisson import Poisson
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.uniform import Uniform
from facula.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorates a function of (p, q) that computes the divergence for two classes.

    A pair without a function of its own takes that of the closest bases; where two are equally
    close, registering the pair itself decides.

    Example::

        >>> from facula.distributions import Normal, kl_divergence, register_kl
        >>> class Mine(Normal):
        ...     pass
        >>> @register_kl(Mine, Mine)
        ... def kl_mine(p, q):
        ...     return facula.tensor(42.)
        >>> kl_divergence(Mine(0., 1.), Mine(0., 1.))
        tensor(42.)
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        # Any class: libraries register mixins, which are distributions only in their subclasses.
        if not isinstance(cls, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def decorator(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()  # what was found before may not be the closest any more
        return function

    return decorator


@total_ordering
class _Match:
    """Orders pairs of classes: the first class at which one derives from the other decides."""

    __slots__ = ("types",)

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for x, y in zip(self.types, other.types, strict=True):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The closest registered function for two classes, or NotImplemented."""
    fitting = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fitting:
        return NotImplemented
    # By the class of p first, then by the class of q first; they should agree.
    left_p, left_q = min(_Match(*pair) for pair in fitting).types
    right_q, right_p = min(_Match(*reversed(pair)) for pair in fitting).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of ``p`` from ``q``: the mean of ``log p(x) - log q(x)`` over ``p``.

    Args:
        p: the distribution that is averaged over.
        q: the distribution that it is compared with.

    Returns:
        One number for each element of the batch.

    Example::

        >>> from facula.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0., 1.), Normal(1., 1.))
        tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    function = _KL_MEMOIZE[key]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return function(p, q)


def _x_log_x(x: Tensor) -> Tensor:
    return facula.special.xlogy(x, x)


# ---- a family with itself


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    heads = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    heads = heads.masked_fill(q.probs == 0, inf).masked_fill(p.probs == 0, 0)
    tails = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    tails = tails.masked_fill(q.probs == 1, inf).masked_fill(p.probs == 1, 0)
    return heads + tails


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    # With fewer trials in p than in q the binomial coefficients do not cancel.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill(q.probs == 0, inf).masked_fill(p.probs == 0, 0)
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen (2019)
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(
    p: ContinuousBernoulli, q: ContinuousBernoulli
) -> Tensor:
    def constant(d: ContinuousBernoulli) -> Tensor:
        return d._cont_bern_log_norm() + facula.log1p(-d.probs)

    return p.mean * (p.logits - q.logits) + constant(p) - constant(q)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total_a, total_b = a.sum(-1), b.sum(-1)
    normalizers = (total_a.lgamma() - total_b.lgamma()) - (a.lgamma() - b.lgamma()).sum(-1)
    mean_logs = a.digamma() - total_a.digamma().unsqueeze(-1)
    return normalizers + ((a - b) * mean_logs).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log-normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    with facula.enable_grad():
        of_p = [theta.detach().requires_grad_() for theta in p._natural_params]
        normalizer_p = p._log_normalizer(*of_p)
        gradients = facula.autograd.grad(normalizer_p.sum(), of_p, create_graph=True)
    of_q = q._natural_params
    result = q._log_normalizer(*of_q) - normalizer_p
    for a, b, gradient in zip(of_p, of_q, gradients, strict=True):
        result = result - _sum_rightmost((b - a) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log()
        + facula.lgamma(q.concentration)
        - facula.lgamma(p.concentration)
        + (p.concentration - q.concentration) * facula.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - facula.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    off = (p.loc - q.loc) / q.scale
    mean_exp = facula.exp((1 + ratio).lgamma() - off)
    return off - ratio.log() + ratio * euler_constant + mean_exp - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "the distributions count different numbers of batch dimensions to their events: "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return off / q.scale + ratio * facula.exp(-off / p.scale) - ratio.log() - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    off = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + off - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return kl.masked_fill(p.scale < q.scale, inf)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    # A bijection applied to both changes nothing.
    if p.transforms != q.transforms:
        raise NotImplementedError("the distributions have different transforms")
    if p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"the distributions have different event shapes: {p.event_shape} and {q.event_shape}"
        )
    kl = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(kl, len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return kl.masked_fill((q.low > p.low) | (q.high < p.high), inf)


# ---- normal vectors: half of (log det ratio + trace + squared distance - dimension)


def _squared_norm(matrix: Tensor) -> Tensor:
    return matrix.pow(2).sum((-2, -1))


def _trace_of_quotient(q_tril: Tensor, p_factor: Tensor) -> Tensor:
    """The trace of (L_q L_q^T)^-1 P P^T for a factor P."""
    batch = facula.broadcast_shapes(q_tril.shape[:-2], p_factor.shape[:-2])
    factor = p_factor.expand(batch + p_factor.shape[-2:])
    return _squared_norm(
        facula.linalg.solve_triangular(
            q_tril.expand(batch + q_tril.shape[-2:]), factor, upper=False
        )
    )


def _log_det_normal(d: MultivariateNormal) -> Tensor:
    return 2 * d._half_log_det()


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(
    p: MultivariateNormal, q: MultivariateNormal
) -> Tensor:
    _same_event(p, q)
    trace = _trace_of_quotient(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril)
    squared = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    log_ratio = _log_det_normal(q) - _log_det_normal(p)
    return 0.5 * (log_ratio + trace + squared - p.event_shape[0])


def _same_event(p: Distribution, q: Distribution) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between {type(p).__name__} and {type(q).__name__} with different event "
            f"shapes cannot be computed: {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )


def _lowrank_quotient(q: LowRankMultivariateNormal, factor: Tensor) -> Tensor:
    """The trace of C_q^-1 P P^T for a factor P, by Woodbury's identity."""
    diagonal = q._unbroadcasted_cov_diag.unsqueeze(-1)
    weighted = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    corrected = weighted @ factor
    whole = (factor.pow(2) / diagonal).sum((-2, -1))
    return whole - _trace_of_quotient(q._capacitance_tril, corrected)


def _lowrank_squared(q: LowRankMultivariateNormal, off: Tensor) -> Tensor:
    return _batch_lowrank_mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, off, q._capacitance_tril
    )


def _log_det_lowrank(d: LowRankMultivariateNormal) -> Tensor:
    return _batch_lowrank_logdet(
        d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag, d._capacitance_tril
    )


def _diagonal_factor(d: LowRankMultivariateNormal) -> Tensor:
    return d._unbroadcasted_cov_diag.sqrt().diag_embed()


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(
    p: LowRankMultivariateNormal, q: LowRankMultivariateNormal
) -> Tensor:
    _same_event(p, q)
    trace = _lowrank_quotient(q, p._unbroadcasted_cov_factor)
    trace = trace + _lowrank_quotient(q, _diagonal_factor(p))
    squared = _lowrank_squared(q, q.loc - p.loc)
    log_ratio = _log_det_lowrank(q) - _log_det_lowrank(p)
    return 0.5 * (log_ratio + trace + squared - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(
    p: MultivariateNormal, q: LowRankMultivariateNormal
) -> Tensor:
    _same_event(p, q)
    trace = _lowrank_quotient(q, p._unbroadcasted_scale_tril)
    squared = _lowrank_squared(q, q.loc - p.loc)
    log_ratio = _log_det_lowrank(q) - _log_det_normal(p)
    return 0.5 * (log_ratio + trace + squared - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(
    p: LowRankMultivariateNormal, q: MultivariateNormal
) -> Tensor:
    _same_event(p, q)
    tril = q._unbroadcasted_scale_tril
    trace = _trace_of_quotient(tril, p._unbroadcasted_cov_factor)
    trace = trace + _trace_of_quotient(tril, _diagonal_factor(p))
    squared = _batch_mahalanobis(tril, q.loc - p.loc)
    log_ratio = _log_det_normal(q) - _log_det_lowrank(p)
    return 0.5 * (log_ratio + trace + squared - p.event_shape[0])


# ---- two families: the mean of -log q over p, less the entropy of p


def _register_many(types_p: list[type], type_q: type) -> Callable[[Divergence], Divergence]:
    def decorator(function: Divergence) -> Divergence:
        for type_p in types_p:
            register_kl(type_p, type_q)(function)
        return function

    return decorator


def _mean_log(p: Any) -> Tensor:
    """The mean of log(x)."""
    if isinstance(p, Beta):
        total = p.concentration1 + p.concentration0
        return p.concentration1.digamma() - total.digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    assert isinstance(p, Uniform)
    width = p.high - p.low
    return (_x_log_x(p.high) - _x_log_x(p.low)) / width - 1


def _outside(p: Any, low: Any, high: Any) -> Tensor | None:
    """Where p has values outside of [low, high], for the families with fixed or own ends."""
    if isinstance(p, (Beta, ContinuousBernoulli)):
        p_low: Any = facula.zeros_like(p.mean)
        p_high: Any = facula.ones_like(p.mean)
    elif isinstance(p, Uniform):
        p_low, p_high = p.low, p.high
    elif isinstance(p, Pareto):
        p_low, p_high = p.scale, None
    else:
        return None
    outside = p_low < low
    return outside if high is None or p_high is None else outside | (p_high > high)


def _where_finite(kl: Tensor, outside: Tensor | None) -> Tensor:
    return kl if outside is None else kl.masked_fill(outside, inf)


def _with_moment(p: Any, order: int) -> tuple[Any, Tensor | None]:
    """p with a moment of this order everywhere, and where p itself has none.

    Only Pareto's may be infinite. Gradients of a divergence that is infinite are zero, so the
    moment must be finite there before it is replaced: otherwise they would be 0 * inf.
    """
    if not isinstance(p, Pareto):
        return p, None
    without = p.alpha <= order
    alpha = p.alpha.masked_fill(without, order + 1.0)
    return Pareto(p.scale, alpha, validate_args=False), without


@_register_many(
    [Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform], Normal
)
def _kl_to_normal(p: Any, q: Normal) -> Tensor:
    p, without = _with_moment(p, 2)
    variance = q.scale.pow(2)
    cross = 0.5 * (2 * math.pi * variance).log()
    cross = cross + (p.variance + (p.mean - q.loc).pow(2)) / (2 * variance)
    return _where_finite(cross - p.entropy(), without)


@_register_many([Beta, ContinuousBernoulli, Gamma, Pareto, Uniform], Exponential)
def _kl_to_exponential(p: Any, q: Exponential) -> Tensor:
    p, without = _with_moment(p, 1)
    kl = q.rate * p.mean - q.rate.log() - p.entropy()
    return _where_finite(kl, _outside(p, 0, None) if without is None else without)


@_register_many([Beta, Exponential, Pareto, Uniform], Gamma)
def _kl_to_gamma(p: Any, q: Gamma) -> Tensor:
    p, without = _with_moment(p, 1)
    cross = q.concentration.lgamma() - q.concentration * q.rate.log() + q.rate * p.mean
    kl = cross - (q.concentration - 1) * _mean_log(p) - p.entropy()
    return _where_finite(kl, _outside(p, 0, None) if without is None else without)


def _mean_exp(p: Any, rate: Tensor) -> Tensor:
    """The logarithm of the mean of exp(-rate x)."""
    if isinstance(p, Exponential):
        return -facula.log1p(rate / p.rate)
    if isinstance(p, Gamma):
        return -p.concentration * facula.log1p(rate / p.rate)
    if isinstance(p, Normal):
        return -rate * p.loc + 0.5 * (rate * p.scale).pow(2)
    assert isinstance(p, Uniform)
    width = rate * (p.high - p.low)
    return -rate * p.low + facula.log(-facula.expm1(-width) / width)


@_register_many([Exponential, Gamma, Normal, Uniform], Gumbel)
def _kl_to_gumbel(p: Any, q: Gumbel) -> Tensor:
    rate = q.scale.reciprocal()
    mean_exp = facula.exp(_mean_exp(p, rate) + q.loc * rate)
    return q.scale.log() + (p.mean - q.loc) * rate + mean_exp - p.entropy()


@_register_many([Beta, Uniform], ContinuousBernoulli)
def _kl_to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    constant = facula.log1p(-q.probs) + q._cont_bern_log_norm()
    kl = -p.entropy() - p.mean * q.logits - constant
    return _where_finite(kl, _outside(p, 0, 1) if isinstance(p, Uniform) else None)


@_register_many([Beta, ContinuousBernoulli], Uniform)
def _kl_to_uniform(p: Any, q: Uniform) -> Tensor:
    kl = (q.high - q.low).log() - p.entropy()
    return _where_finite(kl, _outside(p, q.low, q.high))


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mirrored = _mean_log(Uniform(1 - p.high, 1 - p.low, validate_args=False))
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    kl = log_beta - (a - 1) * _mean_log(p) - (b - 1) * mirrored - p.entropy()
    return _where_finite(kl, _outside(p, 0, 1))


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    constant = q.alpha.log() + q.alpha * q.scale.log()
    kl = (q.alpha + 1) * _mean_log(p) - constant - p.entropy()
    return _where_finite(kl, p.low < q.scale)


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    off = (p.loc - q.loc) / p.scale
    # The mean distance of a normal number from a point.
    distance = p.scale * (
        math.sqrt(2 / math.pi) * facula.exp(-0.5 * off.pow(2))
        + off * facula.erf(off / math.sqrt(2))
    )
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


# ---- p has values that q cannot have

_INFINITE: dict[type, list[type]] = {
    Beta: [Pareto],
    ContinuousBernoulli: [Pareto],
    Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Pareto: [Beta, ContinuousBernoulli, Uniform],
    Poisson: [Bernoulli, Binomial],
}


def _kl_infinite(p: Distribution, q: Distribution) -> Tensor:
    shape = facula.broadcast_shapes(p.batch_shape, q.batch_shape)
    like = p.mean
    return facula.full(shape, inf, dtype=like.dtype, device=like.device)


for _type_p, _types_q in _INFINITE.items():
    for _type_q in _types_q:
        register_kl(_type_p, _type_q)(_kl_infinite)
