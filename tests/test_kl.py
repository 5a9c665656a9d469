"""Divergences in closed form beside the integral, or sum, of p log(p / q)."""

import itertools
import math

import pytest
from package_under_test import F, assert_close, assert_equal

D = F.distributions
kl_divergence = D.kl_divergence
pytestmark = pytest.mark.usefixtures("keep_random_state")


def t(*values):
    return F.tensor(values, dtype=F.float64)


CONTINUOUS = {
    "Beta": [D.Beta(t(2.0, 1.5), t(3.0, 4.0)), D.Beta(t(1.2, 3.0), t(2.0, 1.7))],
    "Cauchy": [D.Cauchy(t(0.1, 0.5), t(1.0, 2.0)), D.Cauchy(t(0.3, -0.5), t(2.0, 1.5))],
    "ContinuousBernoulli": [
        D.ContinuousBernoulli(t(0.3, 0.8)),
        D.ContinuousBernoulli(t(0.5, 0.2)),
    ],
    "Exponential": [D.Exponential(t(2.0, 0.5)), D.Exponential(t(1.0, 3.0))],
    "Gamma": [D.Gamma(t(2.0, 1.5), t(1.0, 2.0)), D.Gamma(t(3.0, 0.8), t(0.5, 1.0))],
    "Gumbel": [D.Gumbel(t(0.1, 0.5), t(1.0, 2.0)), D.Gumbel(t(0.5, 0.2), t(1.5, 3.0))],
    "HalfNormal": [D.HalfNormal(t(1.0, 2.0)), D.HalfNormal(t(1.5, 0.7))],
    "Laplace": [D.Laplace(t(0.1, 0.5), t(1.0, 2.0)), D.Laplace(t(0.5, 0.2), t(1.5, 3.0))],
    "LogNormal": [D.LogNormal(t(0.1, 0.5), t(1.0, 0.5)), D.LogNormal(t(0.5, 0.2), t(0.7, 0.6))],
    "Normal": [D.Normal(t(0.1, 0.5), t(1.0, 2.0)), D.Normal(t(0.5, 0.2), t(1.5, 3.0))],
    "Pareto": [D.Pareto(t(1.0, 2.0), t(3.0, 5.0)), D.Pareto(t(0.5, 1.5), t(4.0, 2.5))],
    "Uniform": [D.Uniform(t(0.2, 0.0), t(0.7, 1.0)), D.Uniform(t(0.0, 0.0), t(1.0, 1.0))],
}
DISCRETE = {
    "Bernoulli": [D.Bernoulli(t(0.2, 0.7)), D.Bernoulli(t(0.4, 0.3))],
    "Binomial": [D.Binomial(7, t(0.2, 0.7)), D.Binomial(7, t(0.4, 0.3))],
    "Categorical": [
        D.Categorical(F.stack([t(0.2, 0.7, 0.1)] * 2)),
        D.Categorical(F.stack([t(0.4, 0.3, 0.3)] * 2)),
    ],
    "Geometric": [D.Geometric(t(0.2, 0.7)), D.Geometric(t(0.4, 0.3))],
    "Poisson": [D.Poisson(t(0.5, 4.0)), D.Poisson(t(1.0, 3.0))],
}


def registered(p, q):
    return any(
        isinstance(p, a) and isinstance(q, b)
        for a, b in D.kl._KL_REGISTRY
        if a is not D.ExponentialFamily and a is not D.TransformedDistribution
    )


def pairs(families):
    for (a, (p, _)), (b, (_, q)) in itertools.product(families.items(), families.items()):
        if registered(p, q) or a == b:
            yield pytest.param(p, q, id=f"{a}-{b}")


@pytest.fixture
def unchecked():
    """Lets values at the ends of the support, where rounding leaves it, through."""
    D.Distribution.set_default_validate_args(False)
    yield
    D.Distribution.set_default_validate_args(True)


def quadrature(p):
    """Points in the support of p and the steps between them."""
    s, h = F.linspace(-80, 60, 70_001, dtype=F.float64).unsqueeze(-1), 0.002
    low = getattr(p.support, "lower_bound", None)
    high = getattr(p.support, "upper_bound", None)
    if low is None:
        return 3 * F.sinh(s / 3), F.cosh(s / 3) * h
    if high is None:
        return low + F.exp(s), F.exp(s) * h
    share = F.sigmoid(s)
    return low + (high - low) * share, (high - low) * share * F.sigmoid(-s) * h


def log_prob(d, x):
    """-inf outside of the support, whatever the formula of the density says there."""
    support = d.support
    low, high = (
        getattr(support, "lower_bound", -math.inf),
        getattr(support, "upper_bound", math.inf),
    )
    inside = (x >= low) & (x <= high)
    return F.where(inside, d.log_prob(x), -math.inf)


@pytest.mark.parametrize("p, q", list(pairs(CONTINUOUS)))
def test_integral(p, q, unchecked):
    x, dx = quadrature(p)
    log_p, log_q = log_prob(p, x), log_prob(q, x).clamp(max=1e3)  # a pole is one point
    mass = F.nan_to_num(log_p.exp() * dx, nan=0.0, posinf=0.0)
    significant = mass > 1e-15  # the tails of q may be 0 to rounding where p is nothing
    terms = F.where(significant, mass * (log_p - log_q), 0.0)
    assert_close(kl_divergence(p, q), terms.sum(0), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("p, q", list(pairs(DISCRETE)))
def test_sum(p, q, unchecked):
    count = 2 if isinstance(p, D.Bernoulli) else 8 if isinstance(p, D.Binomial) else 400
    count = 3 if isinstance(p, D.Categorical) else count
    x = F.arange(count, dtype=F.float64).unsqueeze(-1)
    log_p, log_q = p.log_prob(x), q.log_prob(x)
    limit = 1 if isinstance(q, D.Bernoulli) else 7 if isinstance(q, D.Binomial) else math.inf
    log_q = F.where(x > limit, -math.inf, log_q)
    terms = F.where(log_p > -700, log_p.exp() * (log_p - log_q), 0.0)
    assert_close(kl_divergence(p, q), terms.sum(0), rtol=1e-6, atol=1e-9)


def test_dirichlet_and_wishart_by_samples():
    F.manual_seed(0)
    for p, q in (
        (D.Dirichlet(t(1.0, 2.0, 3.0)), D.Dirichlet(t(2.0, 1.5, 1.0))),
        (
            D.Wishart(t(4.0)[0], F.eye(2, dtype=F.float64)),
            D.Wishart(t(5.0)[0], 2 * F.eye(2, dtype=F.float64)),
        ),
        (D.OneHotCategorical(t(1.0, 2.0, 3.0)), D.OneHotCategorical(t(2.0, 1.5, 1.0))),
    ):
        x = p.sample((20_000,))
        estimate = (p.log_prob(x) - q.log_prob(x)).mean()
        assert_close(kl_divergence(p, q).detach(), float(estimate), rtol=0.05, atol=0.02)


def test_normal_vectors():
    F.manual_seed(1)
    a = F.randn(3, 4, 4, dtype=F.float64)
    covariance = a @ a.mT + F.eye(4, dtype=F.float64)
    p = D.MultivariateNormal(F.randn(4, dtype=F.float64), covariance)
    q = D.MultivariateNormal(F.randn(3, 4, dtype=F.float64), covariance.flip(0))
    inverse = F.linalg.inv(q.covariance_matrix)
    off = q.loc - p.loc
    expected = 0.5 * (
        (inverse @ p.covariance_matrix).diagonal(dim1=-2, dim2=-1).sum(-1)
        + (off * (inverse @ off.unsqueeze(-1)).squeeze(-1)).sum(-1)
        - 4
        + F.linalg.slogdet(q.covariance_matrix).logabsdet
        - F.linalg.slogdet(p.covariance_matrix).logabsdet
    )
    assert_close(kl_divergence(p, q), expected)


def test_low_rank_vectors_are_normal_vectors():
    F.manual_seed(2)

    def make(*batch):
        return D.LowRankMultivariateNormal(
            F.randn(*batch, 4, dtype=F.float64),
            F.randn(*batch, 4, 2, dtype=F.float64),
            F.rand(4, dtype=F.float64) + 0.5,
        )

    p, q = make(3), make()
    full_p = D.MultivariateNormal(p.loc, p.covariance_matrix)
    full_q = D.MultivariateNormal(q.loc, q.covariance_matrix)
    expected = kl_divergence(full_p, full_q)
    assert_close(kl_divergence(p, q), expected)
    assert_close(kl_divergence(full_p, q), expected)
    assert_close(kl_divergence(p, full_q), expected)


def test_events_are_summed_over():
    p, q = D.Normal(t(0.0, 1.0), 1.0), D.Normal(t(1.0, 3.0), 2.0)
    both = kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    assert_close(both, kl_divergence(p, q).sum())
    exp = [D.ExpTransform()]
    assert_close(
        kl_divergence(D.TransformedDistribution(p, exp), D.TransformedDistribution(q, exp)),
        kl_divergence(p, q),
    )


def test_impossible_outcomes_are_infinitely_far():
    sure, never = D.Bernoulli(t(1.0, 0.5, 0.0)), D.Bernoulli(t(0.0, 0.0, 0.0))
    assert kl_divergence(sure, never).tolist() == [math.inf, math.inf, 0.0]
    p, q = D.Categorical(t(0.0, 1.0)), D.Categorical(t(1.0, 0.0))
    assert float(kl_divergence(p, q)) == math.inf
    assert float(kl_divergence(D.Normal(0.0, 1.0), D.Exponential(1.0))) == math.inf
    assert (
        kl_divergence(D.Uniform(t(-1.0, 0.0), t(1.0, 1.0)), D.Uniform(t(0.0, 0.0), t(2.0, 2.0)))[0]
        == math.inf
    )


def test_gradients_flow_to_both():
    loc = t(1.0).requires_grad_()
    scale = t(2.0).requires_grad_()
    kl = kl_divergence(D.Normal(loc, 1.0), D.Normal(0.0, scale)).sum()
    a, b = F.autograd.grad(kl, (loc, scale))
    assert_close(a, t(0.25))
    assert_close(b, t(0.5 - 2 / 8))


def test_the_closest_pair_of_bases_is_taken():
    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    assert_close(kl_divergence(Mine(0.0, 1.0), Other(1.0, 1.0)), 0.5)

    @D.register_kl(Mine, D.Normal)
    def first(p, q):
        return F.tensor(1.0)

    assert_equal(kl_divergence(Mine(0.0, 1.0), Other(1.0, 1.0)), 1.0)

    @D.register_kl(D.Normal, Other)
    def second(p, q):
        return F.tensor(2.0)

    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        kl_divergence(Mine(0.0, 1.0), Other(1.0, 1.0))
    for pair in ((Mine, D.Normal), (D.Normal, Other)):
        del D.kl._KL_REGISTRY[pair]


@pytest.mark.parametrize("q", [D.Normal(0.0, 1.0), D.Exponential(1.0), D.Gamma(2.0, 1.0)])
def test_infinite_divergences_of_pareto_have_no_nan_gradients(q):
    alpha = F.tensor([0.5, 4.0], requires_grad=True)
    scale = F.tensor(2.0, requires_grad=True)
    kl = kl_divergence(D.Pareto(scale, alpha), q)
    assert kl[0] == math.inf and math.isfinite(kl[1])
    for gradient in F.autograd.grad(kl[1] + kl[0], [alpha, scale]):
        assert gradient.isfinite().all()
        assert gradient.reshape(-1)[-1] != 0


def test_refused():
    with pytest.raises(NotImplementedError, match="p type Normal and q type Cauchy"):
        kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0))
    with pytest.raises(TypeError, match="type_p to be a Distribution subclass"):
        D.register_kl(3, D.Normal)
    with pytest.raises(NotImplementedError, match="total_count"):
        kl_divergence(D.Binomial(3, F.tensor(0.1)), D.Binomial(4, F.tensor(0.1)))
    with pytest.raises(ValueError, match="different event shapes"):
        kl_divergence(
            D.MultivariateNormal(F.zeros(2), F.eye(2)), D.MultivariateNormal(F.zeros(3), F.eye(3))
        )
