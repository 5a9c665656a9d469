"""Gradients of gamma and beta samples beside the distribution functions that define them."""

import numpy as np
import pytest
from package_under_test import F, assert_close

pytestmark = pytest.mark.facula_only


def t(values):
    return F.tensor(values, dtype=F.float64)


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 2.5, 10.0, 300.0, 2e5])
def test_moving_with_the_shape_keeps_the_share_of_smaller_samples(shape):
    quantiles = shape + np.sqrt(shape) * np.array([-2.0, -0.7, 0.0, 0.5, 3.0])
    x = t(quantiles[quantiles > 0].tolist() + [shape * 0.7])
    a = t(shape).expand(x.shape)
    gradient = F._standard_gamma_grad(a, x)
    h = shape * 1e-4
    after = F.special.gammainc(a + h, x + h * gradient)
    before = F.special.gammainc(a - h, x - h * gradient)
    density = F.distributions.Gamma(a, 1.0).log_prob(x).exp()
    error = (after - before) / (2 * h * density)
    likely = density > 1e-30
    assert float((error / gradient)[likely].abs().max()) < 1e-4


def beta_cdf(x, a, b):
    """By quadrature over a line that is mapped to (0, 1)."""
    s = np.linspace(-60, 40, 100_001)
    u = 1 / (1 + np.exp(-s))
    mass = np.exp(a * np.log(u) + b * (-s + np.log(u)))  # u^a (1 - u)^b, as du = u (1 - u) ds
    total = np.cumsum((mass[1:] + mass[:-1]) / 2)
    at = np.log(x) - np.log1p(-x)
    return np.interp(at, s, np.concatenate([[0], total])) / total[-1]


@pytest.mark.parametrize("a, b", [(2.0, 3.0), (0.5, 4.0), (4.0, 0.6), (30.0, 20.0)])
def test_moving_with_the_first_parameter_keeps_the_share_of_smaller_beta_samples(a, b):
    for x in (0.2, 0.5, 0.6, 0.85):
        gradient = float(F._dirichlet_grad(t(x), t(a), t(a + b))) * (1 - x)
        h = 1e-3
        moved = beta_cdf(x + h * gradient, a + h, b) - beta_cdf(x - h * gradient, a - h, b)
        slope = beta_cdf(x + h, a, b) - beta_cdf(x - h, a, b)
        assert abs(moved) < 2e-3 * abs(gradient * slope) + 1e-9


def test_large_parameters_continue_the_series():
    """On both sides of where the approximation for large parameters begins."""
    below, above = t(99_999.0), t(100_001.0)
    for z in (-2.0, 0.0, 0.001, 3.0):
        a = F._standard_gamma_grad(below, below + z * below.sqrt())
        b = F._standard_gamma_grad(above, above + z * above.sqrt())
        assert_close(a, float(b), rtol=1e-6)
    for x in (0.499, 0.5, 0.502):
        a = F._dirichlet_grad(t(x), below, 2 * below) * below
        b = F._dirichlet_grad(t(x), above, 2 * above) * above
        assert_close(a, float(b), rtol=1e-4)


def test_dirichlet_samples_stay_on_the_simplex_when_they_move():
    concentration = t([0.5, 2.0, 4.0]).requires_grad_()
    F.manual_seed(0)
    sample = F._sample_dirichlet(concentration)
    (gradient,) = F.autograd.grad(sample.sum(), concentration)
    assert_close(gradient, t([0.0, 0.0, 0.0]), atol=1e-12)


def test_edges():
    nan = float("nan")
    assert F._standard_gamma(t([0.0, nan])).isnan().tolist() == [False, True]
    assert F._standard_gamma_grad(t([1.0, -1.0, nan]), t([0.0, 1.0, 1.0])).isnan().tolist() == [
        False,
        True,
        True,
    ]
    assert F._standard_gamma(F.zeros(0, 3)).shape == (0, 3)
    assert F._standard_gamma(F.ones(2, device="meta")).device.type == "meta"
    assert F._dirichlet_grad(*[F.ones(2, device="meta")] * 3).device.type == "meta"
    with pytest.raises(RuntimeError, match="at least one dimension"):
        F._sample_dirichlet(F.tensor(1.0))
    for bad in (F.ones(2, dtype=F.int64), F.ones(2, dtype=F.complex64)):
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            F._standard_gamma(bad)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_samples_keep_their_dtype_and_stay_inside(dtype):
    kind = getattr(F, dtype)
    shapes = F.full((2000,), 0.01, dtype=kind)
    samples = F._standard_gamma(shapes)
    assert samples.dtype == kind
    assert float(samples.double().min()) >= F.finfo(kind).tiny
    shares = F._sample_dirichlet(F.full((500, 3), 0.02, dtype=kind))
    assert shares.dtype == kind
    assert float(shares.double().max()) < 1
    assert float(shares.double().min()) >= F.finfo(kind).tiny


def test_samples_under_vmap():
    shapes = F.rand(3, 4) + 0.5
    drawn = F.vmap(F._standard_gamma, randomness="different")(shapes)
    assert drawn.shape == (3, 4)
    x = F.rand(3, 4) + 0.5
    batched = F.vmap(F._standard_gamma_grad)(shapes, x)
    assert_close(batched, F._standard_gamma_grad(shapes, x))
