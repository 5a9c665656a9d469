"""Probability distributions: sampling, densities, divergences, and the transforms between them.

Two ways lead to gradients of expectations. The score function estimates them for any distribution,
with ``log_prob`` of a sample::

    action = policy.sample()
    loss = -policy.log_prob(action) * reward

Where ``has_rsample`` is true, ``rsample`` gives samples through which gradients flow to the
parameters, which has less variance::

    z = posterior.rsample()
    loss = reconstruction_error(decoder(z)) + kl_divergence(posterior, prior)

Example::

    >>> from facula.distributions import Normal
    >>> loc = facula.zeros(2, requires_grad=True)
    >>> Normal(loc, 1.).rsample((1000,)).sum().backward()
    >>> loc.grad
    tensor([1000., 1000.])
"""

from facula.distributions import transforms
from facula.distributions.bernoulli import Bernoulli
from facula.distributions.beta import Beta
from facula.distributions.binomial import Binomial
from facula.distributions.categorical import Categorical
from facula.distributions.cauchy import Cauchy
from facula.distributions.chi2 import Chi2
from facula.distributions.constraint_registry import biject_to, transform_to
from facula.distributions.continuous_bernoulli import ContinuousBernoulli
from facula.distributions.dirichlet import Dirichlet
from facula.distributions.distribution import Distribution
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.exponential import Exponential
from facula.distributions.fishersnedecor import FisherSnedecor
from facula.distributions.gamma import Gamma
from facula.distributions.generalized_pareto import GeneralizedPareto
from facula.distributions.geometric import Geometric
from facula.distributions.gumbel import Gumbel
from facula.distributions.half_cauchy import HalfCauchy
from facula.distributions.half_normal import HalfNormal
from facula.distributions.independent import Independent
from facula.distributions.inverse_gamma import InverseGamma
from facula.distributions.kl import kl_divergence, register_kl
from facula.distributions.kumaraswamy import Kumaraswamy
from facula.distributions.laplace import Laplace
from facula.distributions.lkj_cholesky import LKJCholesky
from facula.distributions.log_normal import LogNormal
from facula.distributions.logistic_normal import LogisticNormal
from facula.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from facula.distributions.mixture_same_family import MixtureSameFamily
from facula.distributions.multinomial import Multinomial
from facula.distributions.multivariate_normal import MultivariateNormal
from facula.distributions.negative_binomial import NegativeBinomial
from facula.distributions.normal import Normal
from facula.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from facula.distributions.pareto import Pareto
from facula.distributions.poisson import Poisson
from facula.distributions.relaxed_bernoulli import RelaxedBernoulli
from facula.distributions.relaxed_categorical import RelaxedOneHotCategorical
from facula.distributions.studentT import StudentT
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import *  # noqa: F403
from facula.distributions.uniform import Uniform
from facula.distributions.von_mises import VonMises
from facula.distributions.weibull import Weibull
from facula.distributions.wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    *transforms.__all__,
]
