"""Distributions keep the laws of probability: densities integrate to 1, and moments, entropies and
distribution functions are what integrals, sums and samples say."""

import math
import pickle

import numpy as np
import pytest
from distribution_cases import cases
from package_under_test import F, assert_close, assert_equal

D = F.distributions
constraints = D.constraints
pytestmark = pytest.mark.usefixtures("keep_random_state")

CASES = list(cases(F))
IDS = [f"{i}-{case.name}" for i, case in enumerate(CASES)]
DISCRETE = {"Bernoulli", "Binomial", "Categorical", "Geometric", "NegativeBinomial", "Poisson"}
# Densities of one number. Cauchy's integrals of moments do not converge.
CONTINUOUS = {
    "Beta", "Cauchy", "Chi2", "ContinuousBernoulli", "Exponential", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy",
    "Laplace", "LogNormal", "Normal", "Pareto", "RelaxedBernoulli", "StudentT", "Uniform",
    "VonMises", "Weibull",
}  # fmt: skip
HEAVY = {"Cauchy", "HalfCauchy"}


@pytest.fixture
def unchecked():
    """Lets values at the ends of the support, where rounding leaves it, through."""
    D.Distribution.set_default_validate_args(False)
    yield
    D.Distribution.set_default_validate_args(True)


def chosen(names):
    pairs = [(i, case) for i, case in enumerate(CASES) if case.name in names]
    return pytest.mark.parametrize(
        "case", [c for _, c in pairs], ids=[f"{i}-{c.name}" for i, c in pairs]
    )


def value_of(function):
    """What a distribution offers, or None where it offers nothing."""
    try:
        return function()
    except (NotImplementedError, AttributeError):
        return None


def grid(case, distribution):
    """Points x of the support, dense where needed, and the steps dx between them.

    Numbers s on a line become x by an analytic function with tails like exp, so that the sum over
    the line is an integral to many digits.
    """
    s, h = F.linspace(-150, 40, 47_501, dtype=F.float64), 0.004
    s = s.reshape((-1,) + (1,) * len(distribution.batch_shape))
    support = distribution.support
    if case.name == "VonMises":
        x = math.pi * F.tanh(s)
        return x, math.pi * (1 - F.tanh(s) ** 2) * h
    low = getattr(support, "lower_bound", None)
    high = getattr(support, "upper_bound", None)
    if case.name == "GeneralizedPareto":  # an upper end for negative shapes only
        finite = F.isfinite(high)
        width = F.where(finite, high - low, 1.0)
        share = F.sigmoid(s)
        x = F.where(finite, low + width * share, low + F.exp(s))
        return x, F.where(finite, width * share * (1 - share), F.exp(s)) * h
    if low is None:  # all numbers
        return 3 * F.sinh(s / 2), 1.5 * F.cosh(s / 2) * h
    if high is None:
        return low + F.exp(s), F.exp(s) * h
    share = F.sigmoid(s)
    return low + (high - low) * share, (high - low) * share * (1 - share) * h


def without_ends(terms):
    """Sums over the line; where the support is left by rounding there is nothing to add."""
    return F.nan_to_num(terms, nan=0.0, posinf=0.0, neginf=0.0).sum(0)


@chosen(CONTINUOUS)
def test_density_integrates_to_one_and_gives_the_moments(case, unchecked):
    distribution = case.make(*case.parameters)
    x, dx = grid(case, distribution)
    log_density = distribution.log_prob(x)
    mass = F.exp(log_density) * dx
    assert_close(without_ends(mass), F.ones_like(without_ends(mass)), rtol=2e-4)
    if case.name in HEAVY:
        return
    mean, variance = value_of(lambda: distribution.mean), value_of(lambda: distribution.variance)
    if mean is not None and case.name != "VonMises":
        computed = without_ends(mass * x)
        assert_close(computed, mean.expand(computed.shape), rtol=1e-3, atol=1e-3)
        computed = without_ends(mass * (x - mean) ** 2)
        assert_close(computed, variance.expand(computed.shape), rtol=1e-3, atol=1e-3)
        assert_close(distribution.stddev**2, variance)
    entropy = value_of(distribution.entropy)
    if entropy is not None:
        computed = without_ends(-mass * log_density)
        assert_close(computed, entropy.expand(computed.shape), rtol=1e-3, atol=1e-3)


@chosen(CONTINUOUS)
def test_distribution_function_is_the_integral_and_has_an_inverse(case, unchecked):
    distribution = case.make(*case.parameters)
    x, dx = grid(case, distribution)
    cdf = value_of(lambda: distribution.cdf(x))
    if cdf is None:
        return
    mass = F.nan_to_num(F.exp(distribution.log_prob(x)) * dx, nan=0.0, posinf=0.0)
    assert float((mass.cumsum(0) - 0.5 * mass - F.nan_to_num(cdf, nan=1.0)).abs().max()) < 1e-3
    shares = F.linspace(0.01, 0.99, 25, dtype=F.float64)
    shares = shares.reshape((-1,) + (1,) * len(distribution.batch_shape))
    shares = shares.expand((25, *distribution.batch_shape))
    inverse = value_of(lambda: distribution.icdf(shares))
    if inverse is not None:
        assert_close(distribution.cdf(inverse), shares, rtol=1e-7)


@chosen(DISCRETE)
def test_probabilities_add_up_to_one_and_give_the_moments(case):
    distribution = case.make(*case.parameters)
    if distribution.has_enumerate_support:
        values = distribution.enumerate_support()
        assert_equal(distribution.enumerate_support(expand=False).expand(values.shape), values)
    else:
        values = F.arange(3000, dtype=F.float64).reshape(
            (-1,) + (1,) * len(distribution.batch_shape)
        )
    log_p = distribution.log_prob(values)
    p = log_p.exp()
    assert_close(p.sum(0), F.ones_like(p.sum(0)), rtol=1e-9)
    entropy = value_of(distribution.entropy)
    if entropy is not None:
        assert_close(-(p * log_p.clamp(min=-1e3)).sum(0), entropy, rtol=1e-6)
    if case.name == "Categorical":
        assert bool(distribution.mean.isnan().all())
        return
    assert_close((p * values).sum(0), distribution.mean, rtol=1e-9)
    assert_close((p * (values - distribution.mean) ** 2).sum(0), distribution.variance, rtol=1e-8)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_samples_have_the_moments_and_lie_in_the_support(case):
    distribution = case.make(*case.parameters)
    F.manual_seed(3)
    n = 4000
    samples = distribution.sample((n,))
    assert tuple(samples.shape) == (n, *distribution.batch_shape, *distribution.event_shape)
    assert bool(distribution.support.check(samples).all())
    assert not samples.requires_grad
    mean, variance = value_of(lambda: distribution.mean), value_of(lambda: distribution.variance)
    if mean is None or case.name in HEAVY | {"Categorical", "VonMises"}:
        return
    deviation = (variance / n).sqrt()
    off = (samples.double().mean(0) - mean).abs() / deviation
    # Six deviations; heavy tails have no finite third moment and need more room.
    room = 20 if case.name in ("FisherSnedecor", "Pareto", "InverseGamma") else 6
    assert float(F.nan_to_num(off).max()) < room


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_density_of_samples_is_finite_and_has_a_gradient(case):
    parameters = [p.clone().requires_grad_() for p in case.parameters]
    distribution = case.make(*parameters)
    F.manual_seed(4)
    log_prob = distribution.log_prob(distribution.sample((5,)))
    assert tuple(log_prob.shape) == (5, *distribution.batch_shape)
    assert bool(F.isfinite(log_prob).all())
    gradients = F.autograd.grad(log_prob.sum(), parameters, allow_unused=True)
    assert any(g is not None for g in gradients)
    assert all(bool(F.isfinite(g).all()) for g in gradients if g is not None)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.make(*c.parameters).has_rsample],
    ids=[i for i, c in zip(IDS, CASES, strict=True) if c.make(*c.parameters).has_rsample],
)
def test_samples_pull_gradients_to_the_parameters(case):
    parameters = [p.clone().requires_grad_() for p in case.parameters]
    distribution = case.make(*parameters)
    F.manual_seed(5)
    samples = distribution.rsample((7,))
    assert samples.requires_grad
    F.manual_seed(5)
    drawn = distribution.sample((7,))
    if case.name not in ("Normal", "Independent"):  # sample() of these draws in another way
        assert_close(drawn, samples.detach(), rtol=1e-12)
    gradients = F.autograd.grad((samples**2).sum(), parameters, allow_unused=True)
    assert all(bool(F.isfinite(g).all()) for g in gradients if g is not None)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_expanding_repeats_the_distribution(case):
    distribution = case.make(*case.parameters)
    wider = distribution.expand((3, 2, *distribution.batch_shape))
    assert type(wider) is type(distribution)
    assert tuple(wider.batch_shape) == (3, 2, *distribution.batch_shape)
    assert wider.event_shape == distribution.event_shape
    F.manual_seed(6)
    sample = distribution.sample((3, 2))
    assert_close(wider.log_prob(sample), distribution.log_prob(sample), rtol=1e-9)
    assert tuple(wider.sample((4,)).shape) == (4, *sample.shape)
    again = wider.expand((5, *wider.batch_shape))
    assert tuple(again.sample().shape) == (5, *sample.shape)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_pickled_distributions_give_the_same_densities(case):
    try:
        restored = pickle.loads(pickle.dumps(case.make(*case.parameters)))
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        pytest.fail(str(error))
    distribution = case.make(*case.parameters)
    sample = distribution.sample((2,))
    assert_equal(restored.log_prob(sample), distribution.log_prob(sample))


# ---- what single families promise


def test_numbers_make_distributions_of_the_default_dtype():
    normal = D.Normal(0, 1)
    assert normal.loc.dtype == F.get_default_dtype()
    assert normal.batch_shape == ()
    mixed = D.Normal(F.zeros(2, dtype=F.float64), 1)
    assert mixed.scale.dtype == F.float64


def test_parameters_keep_their_identity():
    loc = F.zeros(3, requires_grad=True)
    assert D.Normal(loc, F.ones(3)).loc is loc


def test_probabilities_and_logits_follow_from_each_other():
    p = F.tensor([0.2, 0.7], dtype=F.float64)
    assert_close(D.Bernoulli(probs=p).logits, (p / (1 - p)).log())
    assert_close(D.Bernoulli(logits=(p / (1 - p)).log()).probs, p)
    assert_close(D.Categorical(probs=p).probs, p / 0.9)


def test_certain_outcomes_have_probability_one():
    coin = D.Bernoulli(probs=F.tensor([0.0, 1.0]))
    assert_close(coin.log_prob(F.tensor([0.0, 1.0])), [0.0, 0.0], atol=1e-6)
    first = D.Geometric(probs=F.tensor(1.0))
    assert_equal(first.log_prob(F.tensor(0.0)), 0.0)
    weights = D.Multinomial(2, probs=F.tensor([1.0, 0.0]))
    assert_close(weights.log_prob(F.tensor([2.0, 0.0])), 0.0, atol=1e-6)
    impossible = D.Multinomial(2, logits=F.tensor([0.0, -math.inf]))
    assert_close(impossible.log_prob(F.tensor([2.0, 0.0])), 0.0)


def test_entropy_of_categories_with_probability_zero_is_finite():
    entropy = D.Categorical(logits=F.tensor([0.0, 0.0, -math.inf])).entropy()
    assert_close(entropy, math.log(2))


def test_multinomial_entropy_is_the_sum_over_all_counts():
    d = D.Multinomial(3, probs=F.tensor([0.2, 0.5, 0.3], dtype=F.float64))
    counts = [(a, b, 3 - a - b) for a in range(4) for b in range(4 - a)]
    log_p = d.log_prob(F.tensor(counts, dtype=F.float64))
    assert_close(log_p.exp().sum(), 1.0)
    assert_close(d.entropy(), float(-(log_p.exp() * log_p).sum()))


def test_multivariate_normal_takes_any_of_three_matrices():
    covariance = F.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=F.float64)
    loc = F.tensor([1.0, -1.0], dtype=F.float64)
    x = F.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=F.float64)
    off = x - loc
    inverse = np.linalg.inv(covariance.numpy())
    squared = np.einsum("ni,ij,nj->n", off.numpy(), inverse, off.numpy())
    expected = -0.5 * (
        squared + math.log(np.linalg.det(covariance.numpy())) + 2 * math.log(2 * math.pi)
    )
    for how in (
        {"covariance_matrix": covariance},
        {"precision_matrix": F.tensor(inverse)},
        {"scale_tril": F.linalg.cholesky(covariance)},
    ):
        d = D.MultivariateNormal(loc, **how)
        assert_close(d.log_prob(x), F.tensor(expected))
        assert_close(d.covariance_matrix, covariance)
        assert_close(d.precision_matrix, F.tensor(inverse))
        assert_close(d.scale_tril, F.linalg.cholesky(covariance))


@pytest.mark.parametrize(
    "x_shape, batch", [((5, 3, 2), (3,)), ((4, 1, 2), (3,)), ((6, 4, 3, 2), (4, 1))]
)
def test_multivariate_normal_broadcasts_values(x_shape, batch):
    F.manual_seed(0)
    a = F.randn(*batch, 2, 2, dtype=F.float64)
    tril = F.linalg.cholesky(a @ a.mT + F.eye(2, dtype=F.float64))
    x = F.randn(*x_shape, dtype=F.float64)
    d = D.MultivariateNormal(F.zeros(*batch, 2, dtype=F.float64), scale_tril=tril)
    full = F.broadcast_shapes(x_shape[:-1], batch)
    wide = D.MultivariateNormal(
        F.zeros(*full, 2, dtype=F.float64), scale_tril=tril.expand(*full, 2, 2)
    )
    assert_close(d.log_prob(x), wide.log_prob(x.expand(*full, 2)))


def test_lowrank_normal_is_the_normal_of_its_covariance():
    F.manual_seed(1)
    loc, factor = F.randn(4, dtype=F.float64), F.randn(3, 4, 2, dtype=F.float64)
    diagonal = F.rand(4, dtype=F.float64) + 0.5
    low = D.LowRankMultivariateNormal(loc, factor, diagonal)
    full = D.MultivariateNormal(loc, low.covariance_matrix)
    x = F.randn(5, 3, 4, dtype=F.float64)
    assert_close(low.log_prob(x), full.log_prob(x))
    assert_close(low.entropy(), full.entropy())
    assert_close(low.scale_tril, full.scale_tril)
    assert_close(low.precision_matrix, full.precision_matrix)
    assert_close(low.variance, full.variance)


def test_wishart_entropy_agrees_with_that_of_its_family():
    covariance = F.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=F.float64)
    d = D.Wishart(F.tensor([3.0, 7.5], dtype=F.float64), covariance)
    F.manual_seed(2)
    samples = d.sample((20_000,))
    estimate = -d.log_prob(samples).mean(0)
    assert_close(estimate, d.entropy(), rtol=0.02, atol=0.05)


def test_lkj_density_is_flat_over_correlations_for_concentration_one():
    d = D.LKJCholesky(2, F.tensor(1.0, dtype=F.float64))
    r = F.tensor([-0.9, 0.0, 0.5], dtype=F.float64)
    zero = F.zeros_like(r)
    factors = F.stack([F.stack([zero + 1, zero], -1), F.stack([r, (1 - r**2).sqrt()], -1)], -2)
    assert_close(d.log_prob(factors), F.full_like(r, -math.log(2)))


def test_mixture_density_is_the_weighted_sum():
    weights, loc = F.tensor([0.3, 0.7], dtype=F.float64), F.tensor([0.0, 5.0], dtype=F.float64)
    mixture = D.MixtureSameFamily(D.Categorical(weights), D.Normal(loc, 1.0))
    x = F.tensor([-1.0, 2.0, 5.0], dtype=F.float64)
    parts = D.Normal(loc, 1.0).log_prob(x.unsqueeze(-1)).exp()
    assert_close(mixture.log_prob(x).exp(), (parts * weights).sum(-1))
    cdfs = D.Normal(loc, 1.0).cdf(x.unsqueeze(-1))
    assert_close(mixture.cdf(x), (cdfs * weights).sum(-1))


def test_straight_through_samples_have_the_gradient_of_the_probabilities():
    logits = F.tensor([0.1, 0.2, 0.3], dtype=F.float64, requires_grad=True)
    weights = F.tensor([1.0, 2.0, 3.0], dtype=F.float64)
    F.manual_seed(0)
    sample = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    assert sorted(sample.tolist()) == [0, 0, 1]
    (through,) = F.autograd.grad((sample * weights).sum(), logits)
    (direct,) = F.autograd.grad((F.softmax(logits, -1) * weights).sum(), logits)
    assert_close(through, direct)


def test_exponential_families_agree_with_their_entropies():
    for case in CASES:
        d = case.make(*case.parameters)
        if not isinstance(d, D.ExponentialFamily) or case.name in ("Beta", "Dirichlet", "Poisson"):
            continue  # the mean of their carrier measure is not known
        own = D.ExponentialFamily.entropy(d)
        assert_close(own.detach(), d.entropy().expand(own.shape), rtol=1e-5, atol=1e-6)


# ---- what is refused


def test_bad_parameters_are_named_with_their_constraint():
    with pytest.raises(ValueError, match=r"Expected parameter scale \(Tensor of shape \(2,\)\)"):
        D.Normal(F.zeros(2), -F.ones(2))
    with pytest.raises(ValueError, match=r"GreaterThan\(lower_bound=0.0\), but found invalid"):
        D.Exponential(F.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"Simplex\(\)"):
        D.Categorical(F.tensor([-1.0, 2.0]))
    D.Normal(F.zeros(2), -F.ones(2), validate_args=False)


def test_bad_values_are_named_with_the_support():
    with pytest.raises(ValueError, match=r"within the support \(Boolean\(\)\)"):
        D.Bernoulli(F.tensor(0.5)).log_prob(F.tensor(0.5))
    with pytest.raises(ValueError, match="not broadcastable with batch_shape"):
        D.Normal(F.zeros(2), 1.0).log_prob(F.zeros(3))
    with pytest.raises(ValueError, match="right-most size of value must match event_shape"):
        D.Dirichlet(F.ones(3)).log_prob(F.ones(2))
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.0)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: D.Bernoulli(), ValueError, "Either `probs` or `logits`"),
        (lambda: D.Bernoulli(0.1, 0.1), ValueError, "Either `probs` or `logits`"),
        (lambda: D.Categorical(F.tensor(1.0)), ValueError, "at least one-dimensional"),
        (lambda: D.Dirichlet(F.tensor(1.0)), ValueError, "at least one-dimensional"),
        (lambda: D.Uniform(1.0, 0.0), ValueError, "parameter low"),
        (lambda: D.Geometric(F.tensor([0.0, 0.5])), ValueError, "to be positive"),
        (lambda: D.Normal("a", 1.0), ValueError, "must all be instances of Number"),
        (lambda: D.MultivariateNormal(F.zeros(2)), ValueError, "Exactly one of"),
        (lambda: D.MultivariateNormal(F.tensor(0.0), F.eye(1)), ValueError, "loc must be"),
        (lambda: D.LKJCholesky(1), ValueError, "greater than or equal to 2"),
        (lambda: D.Wishart(F.tensor(1.0), F.eye(2)), ValueError, "greater than ndim - 1"),
        (lambda: D.Multinomial(F.tensor([1, 2]), F.ones(2)), NotImplementedError, "total_count"),
        (lambda: D.Independent(D.Normal(F.zeros(2), 1.0), 2), ValueError, "actual 2 vs 1"),
        (lambda: D.MixtureSameFamily(3, 4), ValueError, "Mixture distribution"),
        (
            lambda: D.MixtureSameFamily(D.Categorical(F.ones(3)), D.Normal(F.zeros(4), 1.0)),
            ValueError,
            "does not equal",
        ),
        (
            lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
            ValueError,
            "must be a Transform",
        ),
        (lambda: D.Distribution.set_default_validate_args(3), ValueError, ""),
        (lambda: D.Poisson(1.0).rsample(), NotImplementedError, ""),
        (lambda: D.Normal(0.0, 1.0).enumerate_support(), NotImplementedError, ""),
        (
            lambda: D.Binomial(F.tensor([1, 2]), F.tensor([0.1, 0.2])).enumerate_support(),
            NotImplementedError,
            "Inhomogeneous total count",
        ),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text or None):
        make()


def test_own_subclasses_are_expanded_or_asked_to():
    class Shifted(D.Normal):
        def log_prob(self, value):
            return super().log_prob(value - 1)

    wide = Shifted(0.0, 1.0).expand((3,))
    assert type(wide) is Shifted

    class Other(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="custom"):
        Other().expand((3,))


def test_distributions_without_support_warn_and_go_on():
    class Flat(D.Distribution):
        arg_constraints = {}

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return F.zeros_like(value)

    with pytest.warns(UserWarning, match="does not define `support`"):
        Flat().log_prob(F.zeros(()))
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        D.Distribution()


def test_sampling_many_at_once_under_its_old_name_warns():
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


# ---- constraints


@pytest.mark.parametrize(
    "constraint, good, bad",
    [
        (constraints.boolean, [0.0, 1.0], [0.5]),
        (constraints.one_hot, [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]),
        (constraints.nonnegative_integer, [0.0, 7.0], [-1.0, 0.5]),
        (constraints.positive_integer, [1.0, 7.0], [0.0]),
        (constraints.integer_interval(1, 3), [1.0, 3.0], [0.0, 4.0, 1.5]),
        (constraints.real, [0.0, math.inf], [math.nan]),
        (constraints.positive, [0.1], [0.0, -1.0]),
        (constraints.nonnegative, [0.0], [-0.1]),
        (constraints.less_than(2.0), [1.9], [2.0]),
        (constraints.unit_interval, [0.0, 0.5, 1.0], [-0.1, 1.1]),
        (constraints.half_open_interval(0.0, 1.0), [0.0], [1.0]),
        (constraints.simplex, [[0.5, 0.5]], [[0.5, 0.4], [1.5, -0.5]]),
        (constraints.multinomial(3), [[1.0, 2.0]], [[4.0, 0.0], [-1.0, 2.0]]),
        (constraints.lower_triangular, [[[1.0, 0.0], [2.0, -3.0]]], [[[1.0, 1.0], [2.0, 3.0]]]),
        (constraints.lower_cholesky, [[[1.0, 0.0], [2.0, 3.0]]], [[[1.0, 0.0], [2.0, -3.0]]]),
        (constraints.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 0.6]]]),
        (constraints.symmetric, [[[1.0, 2.0], [2.0, 3.0]]], [[[1.0, 2.0], [0.0, 3.0]]]),
        (
            constraints.positive_semidefinite,
            [[[1.0, 0.0], [0.0, 0.0]]],
            [[[1.0, 2.0], [2.0, 1.0]]],
        ),
        (constraints.positive_definite, [[[2.0, 1.0], [1.0, 2.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
        (constraints.square, [[[1.0, 2.0], [2.0, 3.0]]], []),
        (constraints.real_vector, [[1.0, 2.0]], [[1.0, math.nan]]),
    ],
    ids=repr,
)
def test_constraints_tell_good_from_bad(constraint, good, bad):
    assert constraint.check(F.tensor(good, dtype=F.float64)).tolist() == [True] * len(good)
    if bad:
        assert constraint.check(F.tensor(bad, dtype=F.float64)).tolist() == [False] * len(bad)


def test_constraints_made_of_others():
    both = constraints.cat([constraints.positive, constraints.real], 0, [1, 2])
    assert both.check(F.tensor([-1.0, -1.0, 2.0])).tolist() == [False, True, True]
    stacked = constraints.stack([constraints.positive, constraints.real], -1)
    assert stacked.check(F.tensor([[1.0, -1.0], [-1.0, 0.0]])).tolist() == [
        [True, True],
        [False, True],
    ]
    assert stacked.event_dim == 1
    rows = constraints.independent(constraints.positive, 1)
    assert rows.check(F.tensor([[1.0, 2.0], [0.0, 1.0]])).tolist() == [True, False]
    with pytest.raises(ValueError, match="Expected value"):
        rows.check(F.tensor(1.0))


def test_dependent_constraints_cannot_be_checked():
    assert constraints.is_dependent(D.Uniform.support)
    assert not constraints.is_dependent(D.Normal.support)
    with pytest.raises(ValueError, match="Cannot determine validity"):
        constraints.dependent.check(F.zeros(1))
    with pytest.raises(NotImplementedError, match="is_discrete cannot be determined"):
        constraints.dependent.is_discrete  # noqa: B018
    assert constraints.dependent(is_discrete=True, event_dim=1).event_dim == 1


def test_stacked_constraints_leave_further_slices_alone():
    stacked = constraints.stack([constraints.positive, constraints.real], -1)
    assert stacked.check(F.tensor([[1.0, -1.0, 5.0]])).tolist() == [[True, True]]


def test_log_probs_of_almost_certain_heads_keep_their_digits():
    logits = F.tensor([15.0, 20.0, 50.0, 90.0])
    found = D.Bernoulli(logits=logits).log_prob(F.ones(4))
    assert_close(found, -F.exp(-logits.double()).log1p().float(), 1e-5)
    assert (found < 0).all()
    # Values may be numbers, of another shape, and integers.
    coin = D.Bernoulli(probs=F.tensor([0.25, 0.5]), validate_args=False)
    assert_close(coin.log_prob(1.0).exp(), F.tensor([0.25, 0.5]), 1e-6)
    assert coin.log_prob(F.zeros(3, 1)).shape == (3, 2)


def test_continuous_coins_move_probabilities_inside_unless_a_check_is_asked_for():
    outside = F.tensor([-0.5, 1.5])
    eps = F.finfo(F.float32).eps
    assert D.ContinuousBernoulli(outside).probs.tolist() == [eps, 1 - eps]
    with pytest.raises(ValueError, match="The parameter probs has invalid values"):
        D.ContinuousBernoulli(outside, validate_args=True)


def test_the_variance_of_student_has_gradients_where_it_is_infinite():
    df = F.tensor([2.0, 4.0], requires_grad=True)
    scale = F.tensor(1.0, requires_grad=True)
    variance = D.StudentT(df, 0.0, scale).variance
    assert variance.tolist() == [math.inf, 2.0]
    by_df, by_scale = F.autograd.grad(variance.sum(), [df, scale])
    assert by_df.tolist() == [0.0, -0.5]
    assert by_scale.item() == 4.0


def test_independent_names_its_base_in_annotations():
    assert D.Independent[D.Normal].__origin__ is D.Independent


def test_log_odds_of_binomial_numbers_may_be_integers():
    whole = D.Binomial(F.tensor([2, 2]), logits=F.tensor([0, 0]))
    assert_close(whole.log_prob(F.tensor([1.0, 2.0])).exp(), F.tensor([0.5, 0.25]), 1e-6)
