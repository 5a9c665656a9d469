"""One or two distributions of every class, built from the same parameters in any package.

``P`` is facula or a package with its API. A case gives the class's name, a function that makes the
distribution from tensors, and these tensors.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    make: Callable[..., Any]
    parameters: list[Any]


def cases(P: Any) -> Iterator[Case]:
    D = P.distributions

    def t(values: Any) -> Any:
        return P.tensor(values, dtype=P.float64)

    weights = [[0.1, 0.5, 0.9], [1.0, 2.0, 3.0]]
    covariance = [[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]
    tril = [[1.5, 0.0, 0.0], [0.5, 1.0, 0.0], [0.1, -0.2, 2.0]]
    places, scales = [0.4, 3.0, 10.0], [5.0, 6.0, 2.5]

    yield Case("Bernoulli", lambda p: D.Bernoulli(probs=p), [t([0.1, 0.5, 0.9])])
    yield Case("Bernoulli", lambda p: D.Bernoulli(logits=p), [t([[0.1, -2.0, 0.9]])])
    yield Case("Beta", D.Beta, [t([0.3, 2.0, 5.0]), t([1.5, 1.5, 30.0])])
    yield Case("Binomial", lambda p: D.Binomial(10, probs=p), [t([0.1, 0.5, 0.9])])
    yield Case("Binomial", lambda p: D.Binomial(30, logits=p), [t([0.1, -1.5, 0.9])])
    yield Case("Categorical", lambda p: D.Categorical(probs=p), [t(weights)])
    yield Case("Categorical", lambda p: D.Categorical(logits=p), [t(weights[0])])
    yield Case("Cauchy", D.Cauchy, [t([0.1, -2.0]), t([[0.5], [2.0]])])
    yield Case("Chi2", D.Chi2, [t(places)])
    yield Case(
        "ContinuousBernoulli",
        lambda p: D.ContinuousBernoulli(probs=p),
        [t([0.1, 0.4995, 0.5, 0.9])],
    )
    yield Case(
        "ContinuousBernoulli", lambda p: D.ContinuousBernoulli(logits=p), [t([0.1, -2.0, 0.0])]
    )
    yield Case("Dirichlet", D.Dirichlet, [t([[0.4, 3.0, 10.0], [1.0, 2.0, 3.0]])])
    yield Case("Exponential", D.Exponential, [t(places)])
    yield Case("FisherSnedecor", D.FisherSnedecor, [t(places), t([5.0, 6.0, 4.5])])
    yield Case("Gamma", D.Gamma, [t(places), t(scales)])
    yield Case(
        "GeneralizedPareto", D.GeneralizedPareto, [t(places), t(scales), t([-0.3, 0.0, 0.2])]
    )
    yield Case("Geometric", lambda p: D.Geometric(probs=p), [t([0.1, 0.5, 0.9])])
    yield Case("Geometric", lambda p: D.Geometric(logits=p), [t([0.1, 0.5, 0.9])])
    yield Case("Gumbel", D.Gumbel, [t(places), t(scales)])
    yield Case("HalfCauchy", D.HalfCauchy, [t(places)])
    yield Case("HalfNormal", D.HalfNormal, [t(places)])
    yield Case(
        "Independent",
        lambda a, b: D.Independent(D.Normal(a, b), 1),
        [t([places]), t([scales, [1.0, 2.0, 3.0]])],
    )
    yield Case("InverseGamma", D.InverseGamma, [t([2.5, 3.0, 10.0]), t(scales)])
    yield Case("Kumaraswamy", D.Kumaraswamy, [t([0.4, 3.0, 10.0]), t(scales)])
    yield Case("LKJCholesky", lambda c: D.LKJCholesky(3, c), [t([0.4, 3.0])])
    yield Case("Laplace", D.Laplace, [t(places), t(scales)])
    yield Case("LogNormal", D.LogNormal, [t([0.4, 3.0, 1.0]), t([0.5, 0.6, 0.25])])
    yield Case("LogisticNormal", D.LogisticNormal, [t(weights), t([0.5, 0.6, 0.25])])
    yield Case(
        "LowRankMultivariateNormal",
        D.LowRankMultivariateNormal,
        [t(weights), t([[0.5, 0.6], [0.25, 0.1], [1.0, 2.0]]), t([1.0, 2.0, 3.0])],
    )
    yield Case(
        "MixtureSameFamily",
        lambda w, a, b: D.MixtureSameFamily(D.Categorical(w), D.Normal(a, b)),
        [t(weights), t([[0.5, 0.6, 1.0], [0.25, 0.1, 2.0]]), t([1.0, 2.0, 3.0])],
    )
    yield Case(
        "MixtureSameFamily",
        lambda w, a, b: D.MixtureSameFamily(D.Categorical(w), D.Independent(D.Normal(a, b), 1)),
        [t([0.4, 3.0]), t([[0.5, 0.6, 1.0], [0.25, 0.1, 2.0]]), t([1.0, 2.0, 3.0])],
    )
    yield Case("Multinomial", lambda p: D.Multinomial(5, probs=p), [t(weights)])
    yield Case("Multinomial", lambda p: D.Multinomial(5, logits=p), [t(weights[0])])
    yield Case("MultivariateNormal", D.MultivariateNormal, [t(weights), t(covariance)])
    yield Case(
        "MultivariateNormal",
        lambda m, p: D.MultivariateNormal(m, precision_matrix=p),
        [t(weights[0]), t(covariance)],
    )
    yield Case(
        "MultivariateNormal",
        lambda m, s: D.MultivariateNormal(m, scale_tril=s),
        [t(weights[0]), t([tril, covariance]).tril()],
    )
    counts = [3.0, 4.5, 0.5]
    yield Case(
        "NegativeBinomial",
        lambda n, p: D.NegativeBinomial(n, probs=p),
        [t(counts), t([0.3, 0.5, 0.9])],
    )
    yield Case(
        "NegativeBinomial",
        lambda n, p: D.NegativeBinomial(n, logits=p),
        [t(counts), t([0.3, 0.5, 0.9])],
    )
    yield Case("Normal", D.Normal, [t(places), t(scales)])
    yield Case("OneHotCategorical", lambda p: D.OneHotCategorical(probs=p), [t(weights)])
    yield Case("OneHotCategorical", lambda p: D.OneHotCategorical(logits=p), [t(weights)])
    yield Case(
        "OneHotCategoricalStraightThrough",
        lambda p: D.OneHotCategoricalStraightThrough(probs=p),
        [t(weights)],
    )
    yield Case("Pareto", D.Pareto, [t(places), t(scales)])
    yield Case("Poisson", D.Poisson, [t([0.4, 3.0, 40.0])])
    yield Case(
        "RelaxedBernoulli", lambda a, p: D.RelaxedBernoulli(a, probs=p), [t(0.5), t([0.3, 0.6])]
    )
    yield Case(
        "RelaxedBernoulli", lambda a, p: D.RelaxedBernoulli(a, logits=p), [t(0.5), t([0.3, 0.6])]
    )
    yield Case(
        "RelaxedOneHotCategorical",
        lambda a, p: D.RelaxedOneHotCategorical(a, probs=p),
        [t(0.5), t(weights)],
    )
    yield Case("StudentT", D.StudentT, [t([4.5, 3.0, 10.0]), t(scales), t([1.0, 2.0, 3.0])])
    yield Case(
        "TransformedDistribution",
        lambda a, b: D.TransformedDistribution(
            D.Normal(a, b), [D.AffineTransform(1.0, 2.0), D.SigmoidTransform()]
        ),
        [t([0.4, 0.3]), t([1.0, 2.0])],
    )
    yield Case(
        "TransformedDistribution",
        lambda a, b: D.TransformedDistribution(
            D.Normal(a, b), [D.ExpTransform(), D.ReshapeTransform((2,), (1, 2))]
        ),
        [t([0.4, 0.3]), t([1.0, 2.0])],
    )
    yield Case("Uniform", D.Uniform, [t(places), t([5.0, 6.0, 20.5])])
    yield Case("VonMises", D.VonMises, [t([0.4, 3.0, 1.0]), t([5.0, 6.0, 0.5])])
    yield Case("Weibull", D.Weibull, [t(places), t(scales)])
    yield Case("Wishart", D.Wishart, [t([4.0, 5.0]), t(covariance)])
    yield Case("Wishart", lambda n, s: D.Wishart(n, scale_tril=s), [t(4.0), t(tril)])
