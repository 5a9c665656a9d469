"""The operator behind var and std on devices, here on the host."""

import pytest
from package_under_test import F

moments = F._C._operators["_moments"]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [[0], [1, 2], [0, 1, 2]])
def test_moments_are_variance_and_mean(dim, keepdim):
    F.manual_seed(0)
    x = F.randn(4, 5, 6, dtype=F.float64)
    variance, mean = moments(x, dim, 1.0, keepdim)
    assert F.allclose(variance, x.var(dim, keepdim=keepdim))
    assert F.allclose(mean, x.mean(dim, keepdim=keepdim))


def test_small_floats_are_summed_in_float32():
    variance, mean = moments(F.full((3, 1000), 300.0, dtype=F.float16), [1], 1.0, False)
    assert variance.dtype == mean.dtype == F.float32
    assert mean.tolist() == [300.0] * 3 and variance.tolist() == [0.0] * 3


def test_derivatives_of_moments():
    F.manual_seed(0)
    x = F.randn(3, 4, 2, dtype=F.float64, requires_grad=True)
    for dim in ([0], [0, 2]):
        assert F.autograd.gradcheck(lambda a, d=dim: moments(a, d, 1.0, False), (x,))
        assert F.autograd.gradgradcheck(lambda a, d=dim: moments(a, d, 0.0, True), (x,))
    rows = F.vmap(lambda a: moments(a, [0], 1.0, False)[0])(x.detach())
    assert F.allclose(rows, x.detach().var(1))


def test_the_mean_of_everything_has_a_destination():
    out = F.empty(0)
    assert F.mean(F.tensor([1.0, 2.0, 6.0]), out=out) is out and out.tolist() == 3


def test_all_and_any_of_everything_keep_dimensions():
    x = F.tensor([[0, 1], [1, 1]])
    assert x.all(keepdim=True).tolist() == [[False]]
    assert F.any(x, keepdim=True).tolist() == [[True]]
