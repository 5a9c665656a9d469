"""Gradients at NaN, at ties and at corners are those of PyTorch."""

import math

import pytest

import facula

NAN = math.nan


def slope(function, *values, dtype=facula.float64):
    inputs = [facula.tensor(v, dtype=dtype, requires_grad=True) for v in values]
    grads = facula.autograd.grad(function(*inputs).sum(), inputs, allow_unused=True)
    return [g.tolist() for g in grads]


def same(actual, expected):
    facula.testing.assert_close(
        facula.tensor(actual), facula.tensor(expected), equal_nan=True, rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_an_extremum_that_is_nan_has_gradients_of_nan(name):
    (grad,) = slope(lambda x: getattr(x, name)(), [1.0, NAN, 2.0])
    same(grad, [NAN] * 3)
    (grad,) = slope(lambda x: getattr(x, name)(1), [[1.0, NAN], [3.0, 3.0]])
    same(grad, [[NAN, NAN], [0.5, 0.5]])


def test_scattered_extrema_that_are_nan_have_gradients_of_nan():
    index = facula.tensor([0, 1, 0, 1])
    start = facula.zeros(2, dtype=facula.float64)
    (grad,) = slope(lambda x: start.scatter_reduce(0, index, x, "amax"), [NAN, 1.0, 2.0, 1.0])
    same(grad, [NAN, 0.5, NAN, 0.5])
    (grad,) = slope(lambda x: start.index_reduce(0, index, x, "amin"), [NAN, -1.0, 2.0, 1.0])
    same(grad, [NAN, 1.0, NAN, 0.0])


def test_logit_with_limits():
    (grad,) = slope(lambda x: facula.logit(x, 0.2), [NAN, 0.1, 0.5, 0.9])
    same(grad, [NAN, 0.0, 4.0, 0.0])
    (grad,) = slope(facula.logit, [NAN, -0.1, 0.5, 1.1])
    same(grad, [NAN, NAN, 4.0, NAN])


def test_smooth_l1_of_nan():
    loss = facula.nn.functional.smooth_l1_loss
    grads = slope(lambda x, y: loss(x, y, reduction="none"), [NAN, 0.5, 3.0], [0.0, 0.0, 0.0])
    same(grads[0], [NAN, 0.5, 1.0])
    same(grads[1], [NAN, -0.5, -1.0])


def test_a_class_at_the_margin_has_no_gradient():
    target = facula.tensor([0])
    loss = facula.nn.functional.multi_margin_loss
    (grad,) = slope(lambda x: loss(x, target), [[1.0, 0.0, 2.0]])
    same(grad, [[-1 / 3, 0.0, 1 / 3]])


def test_copysign_of_infinities_and_nan():
    one = facula.ones((), dtype=facula.float64)
    values = [2.0, -2.0, 0.0, NAN, math.inf, -math.inf]
    (grad,) = slope(lambda x: facula.copysign(x, one), values)
    same(grad, [1.0, -1.0, 0.0, NAN, NAN, NAN])


def test_nextafter_goes_nowhere_from_where_it_is():
    grads = slope(facula.nextafter, [1.0, 1.0], [1.0, 2.0])
    assert grads == [[0.0, 1.0], [0.0, 0.0]]


CUT_OFF = {
    "clamp_min": lambda x: x.clamp_min(0.0).sqrt(),
    "clamp_min of a tensor": lambda x: x.clamp(min=facula.zeros(3, dtype=x.dtype)).sqrt(),
    "clamp": lambda x: x.clamp(0.0, 9.0).sqrt(),
    "clamp of tensors": lambda x: x.clamp(x.new_zeros(3), x.new_full((3,), 9.0)).sqrt(),
    "clamp_max": lambda x: (-x).clamp_max(0.0).neg().sqrt(),
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_an_element_beyond_its_limit_has_no_gradient_even_of_infinity(name):
    (grad,) = slope(CUT_OFF[name], [-1.0, 4.0, 1.0])
    same(grad, [0.0, 0.25, 0.5])


def test_limits_have_the_gradients_of_what_they_cut_off():
    x = facula.tensor([-1.0, 5.0])
    (low, high) = slope(lambda low, high: x.clamp(low, high).sqrt(), [0.0, 1.0], [3.0, 4.0])
    same(low, [math.inf, 0.0])
    same(high, [0.0, 0.25])


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "trunc", "round"])
def test_steps_have_no_gradient_even_of_infinity(name):
    (grad,) = slope(lambda x: getattr(x, name)().abs().sqrt(), [0.0, 4.0])
    same(grad, [0.0, 0.0])


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_elements_beside_an_extremum_have_no_gradient_even_of_infinity(name):
    (grad,) = slope(
        lambda x: getattr(x - getattr(x.detach(), name)(), name)().sqrt(), [1.0, 2.0, 4.0]
    )
    at = {"max": 2, "min": 0}.get(name, 1)
    same(grad, [math.inf if i == at else 0.0 for i in range(3)])
