"""First derivatives of the operators that the other autograd tests build on, by hand formula."""

import pytest
from package_under_test import F, assert_close, assert_equal, leaf

X = [0.3, 1.2, 2.5]


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        (lambda x: x + 2.0, lambda x: F.ones_like(x)),
        (lambda x: 2.0 - x, lambda x: -F.ones_like(x)),
        (lambda x: x * 3.0, lambda x: F.full_like(x, 3.0)),
        (lambda x: 1.0 / x, lambda x: -1.0 / x**2),
        (lambda x: x / 4.0, lambda x: F.full_like(x, 0.25)),
        (lambda x: -x, lambda x: -F.ones_like(x)),
        (lambda x: x**3, lambda x: 3 * x**2),
        (lambda x: 2.0**x, lambda x: 2.0**x * 0.6931471805599453),
        (lambda x: x**x, lambda x: x**x * (x.log() + 1)),
        (F.exp, F.exp),
        (F.log, lambda x: 1.0 / x),
        (F.sin, F.cos),
        (F.cos, lambda x: -F.sin(x)),
        (F.tanh, lambda x: 1 - F.tanh(x) ** 2),
        (F.sigmoid, lambda x: F.sigmoid(x) * (1 - F.sigmoid(x))),
        (F.sqrt, lambda x: 0.5 / F.sqrt(x)),
        (F.abs, lambda x: F.ones_like(x)),
        (lambda x: F.relu(x - 1.0), lambda x: (x > 1.0).double()),
        (lambda x: x.clamp(1.0, 2.0), lambda x: F.tensor([0.0, 1.0, 0.0])),
        (lambda x: x.cumsum(0), lambda x: F.tensor([3.0, 2.0, 1.0])),
        (lambda x: x.prod(), lambda x: x.prod() / x),
        (lambda x: x.mean(), lambda x: F.full_like(x, 1 / 3)),
        (lambda x: x.max(), lambda x: F.tensor([0.0, 0.0, 1.0])),
        (lambda x: x.min(), lambda x: F.tensor([1.0, 0.0, 0.0])),
        (lambda x: x.norm(), lambda x: x / x.norm()),
        (lambda x: x.var(), lambda x: x - x.mean()),
        (lambda x: F.where(x > 1.0, x * x, -x), lambda x: F.where(x > 1.0, 2 * x, -1.0)),
    ],
)
def test_derivative_of_a_function_of_one_tensor(function, derivative):
    x = leaf(X)
    function(x).sum().backward()
    assert_close(x.grad, derivative(F.tensor(X, dtype=F.float64)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.view(3, 2)[0], [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
        (lambda x: x.reshape(-1)[::2], [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        (lambda x: x.transpose(0, 1)[1], [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]),
        (lambda x: x.t()[2], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
        (lambda x: x.permute(1, 0)[0, 1], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
        (lambda x: x.unsqueeze(0).expand(4, 2, 3), [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]),
        (lambda x: x[:1].squeeze(0), [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]),
        (lambda x: x.select(1, 2), [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
        (lambda x: x.narrow(1, 1, 2), [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]),
        (lambda x: x.diagonal(), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        (lambda x: x.unbind(1)[0], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
        (lambda x: x.split([1, 2], 1)[1], [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]),
        (lambda x: x.chunk(2, 0)[1], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
        (lambda x: F.cat([x, x[:1]]), [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]),
        (lambda x: F.stack([x, x * 2.0]), [[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]]),
        (lambda x: x.gather(1, F.tensor([[0, 0], [2, 1]])), [[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
        (lambda x: x.index_select(1, F.tensor([1, 1])), [[0.0, 2.0, 0.0], [0.0, 2.0, 0.0]]),
        (lambda x: x[F.tensor([0, 0, 1])], [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]),
        (lambda x: x[x > 2.5], [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]),
        (lambda x: x.masked_fill(x > 2.5, 0.0), [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
        (lambda x: x.scatter(1, F.tensor([[0], [1]]), 9.0), [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]),
        (lambda x: x.sum(0), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
        (lambda x: x.sum(1, keepdim=True), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
        (lambda x: x.mean(1), [[1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 1 / 3]]),
        (lambda x: x.max(1)[0], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
        (lambda x: x.min(0)[0], [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]),
    ],
)
def test_derivative_of_a_selection_or_sum(function, expected):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    function(x).sum().backward()
    assert_close(x.grad, expected)


def test_gradients_of_a_matrix_product():
    a, b = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), leaf([[1.0, -1.0], [0.5, 2.0]])
    weights = F.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=F.float64)
    ((a @ b) * weights).sum().backward()
    assert_close(a.grad, weights @ b.detach().t())
    assert_close(b.grad, a.detach().t() @ weights)


def test_gradients_of_a_vector_and_of_a_batched_product():
    a, v = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([5.0, 6.0])
    (a @ v).sum().backward()
    assert_equal(a.grad, [[5.0, 6.0], [5.0, 6.0]])
    assert_equal(v.grad, [4.0, 6.0])
    batch = F.ones(3, 2, 2, dtype=F.float64, requires_grad=True)
    v.grad = None
    F.matmul(batch, v).sum().backward()
    assert_equal(v.grad, [6.0, 6.0])
    assert_equal(batch.grad[2], [[5.0, 6.0], [5.0, 6.0]])


STRAIGHT = {
    "relu": F.relu,
    "leaky_relu": F.nn.functional.leaky_relu,
    "prelu": lambda x: F.nn.functional.prelu(x, F.full((1,), 0.2)),
    "hardtanh": F.nn.functional.hardtanh,
    "relu6": F.nn.functional.relu6,
    "threshold": lambda x: F.nn.functional.threshold(x, 0.1, 20.0),
    "hardshrink": F.nn.functional.hardshrink,
    "softshrink": F.nn.functional.softshrink,
    "l1_loss": lambda x: F.nn.functional.l1_loss(x, F.zeros(3)),
    "first power": lambda x: x**1,
    "max_pool1d": lambda x: F.nn.functional.max_pool1d(x[None], 2),
    "max_pool2d": lambda x: F.nn.functional.max_pool2d(x[None, None], (1, 2)),
    "avg_pool1d": lambda x: F.nn.functional.avg_pool1d(x[None], 2),
    "avg_pool3d": lambda x: F.nn.functional.avg_pool3d(x[None, None, None], (1, 1, 2)),
    "adaptive_avg_pool1d": lambda x: F.nn.functional.adaptive_avg_pool1d(x[None], 2),
    "adaptive_max_pool1d": lambda x: F.nn.functional.adaptive_max_pool1d(x[None], 2),
    "reflection": lambda x: F.nn.functional.pad(x[None], (1, 1), mode="reflect"),
    "replication": lambda x: F.nn.functional.pad(x[None], (1, 1), mode="replicate"),
    "nll_loss": lambda x: F.nn.functional.nll_loss(x[None], F.tensor([1])),
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_second_derivatives_of_straight_pieces_are_zeros_and_not_missing(name):
    x = F.tensor([-2.0, 0.3, 1.5], requires_grad=True)
    weight = F.ones(3, requires_grad=True)
    (slope,) = F.autograd.grad(STRAIGHT[name](x).sum(), x, create_graph=True)
    assert slope.requires_grad
    (slope,) = F.autograd.grad(STRAIGHT[name](x * weight).sum(), x, create_graph=True)
    (curvature,) = F.autograd.grad(slope.sum(), x)
    assert curvature.shape == (3,) and bool((curvature == 0.0).all())


def test_second_derivative_of_a_network_of_relu_is_zero():
    net = F.nn.Sequential(F.nn.Linear(2, 8), F.nn.ReLU(), F.nn.Linear(8, 1))
    x = F.ones(3, 2, requires_grad=True)
    (slope,) = F.autograd.grad(net(x).sum(), x, create_graph=True)
    (curvature,) = F.autograd.grad(slope[:, 0].sum(), x, create_graph=True)
    assert curvature.tolist() == [[0.0, 0.0]] * 3
    (curvature.pow(2).sum() + slope.pow(2).sum()).backward()
    assert net[0].weight.grad.abs().sum() > 0


def test_graphs_of_slopes_that_do_not_change_lead_on_to_what_the_gradient_came_from():
    pool = F.nn.functional.avg_pool1d
    x = F.ones(1, 4, requires_grad=True)
    seed = F.tensor([[1.0, 2.0]], requires_grad=True)
    (slope,) = F.autograd.grad(pool(x, 2), x, seed, create_graph=True)
    by_seed, by_x = F.autograd.grad(slope, (seed, x), F.tensor([[1.0, 3.0, 5.0, 7.0]]))
    assert by_seed.tolist() == [[2.0, 6.0]] and by_x.tolist() == [[0.0] * 4]


def test_slopes_that_do_not_change_save_nothing_and_are_plain_tensors_without_create_graph():
    x = F.ones(1, 4, requires_grad=True)
    y = F.nn.functional.avg_pool1d(x, 2).sum()
    (slope,) = F.autograd.grad(y, x)
    assert slope.grad_fn is None and not slope.requires_grad
    slope = F.func.grad(lambda x: F.nn.functional.avg_pool1d(x, 2).sum())(x.detach())
    assert not slope.requires_grad
    curvature = F.func.hessian(lambda x: F.nn.functional.avg_pool1d(x, 2).sum())(x.detach())
    assert curvature.shape == (1, 4, 1, 4) and bool((curvature == 0.0).all())


@pytest.mark.parametrize("dtype", [F.float64, F.complex64, F.bfloat16])
def test_elements_of_an_expanded_tensor_share_the_gradient_of_their_place(dtype):
    x = F.tensor([1.0, 2.0, 3.0], dtype=dtype, requires_grad=True)
    shown = x.expand(2, 3).as_strided((2,), (1,), 1)
    shown.sum().abs().backward()
    assert_equal(x.grad, F.tensor([0.0, 1.0, 1.0], dtype=dtype))


def test_second_derivatives_through_overlapping_windows_seen_as_memory():
    x = F.ones(3, dtype=F.float64, requires_grad=True)
    memory = (x * 2).unfold(0, 2, 1).as_strided((3,), (1,), 0)
    (first,) = F.autograd.grad((memory**3).sum(), x, create_graph=True)
    (second,) = F.autograd.grad(first.sum(), x)
    assert_equal(first, F.full_like(x, 24.0))
    assert_equal(second, F.full_like(x, 48.0))
