"""Transforms inside of transforms, against loops, backward passes and finite differences."""

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

func = F.func
grad, jacfwd, jacrev, jvp, vjp, vmap = (
    func.grad,
    func.jacfwd,
    func.jacrev,
    func.jvp,
    func.vjp,
    func.vmap,
)


def randn(*shape, seed=0):
    F.manual_seed(seed)
    return F.randn(*shape, dtype=F.float64)


def functions():
    """Smooth functions of a vector of four numbers, made of different kinds of operators."""

    def elementwise(x):
        return (x.sin() * x.exp() + x**3 / 2 - x.tanh()).sum()

    def matrix(x):
        m = x.reshape(2, 2)
        return ((m @ m.T) @ m[0] + (m * m.mean()).sum(1)).prod()

    def views(x):
        y = F.cat([x[1:], x[:1] * 2]).reshape(2, 2)
        a, b = y.unbind(1)
        return (y.T[0] * a).sum() + (b.expand(3, 2) * x[::2]).sum() + y.diagonal()[1] ** 2

    def in_place(x):
        y = x.clone()
        y[0] = x[1] * x[2]
        y[1:].mul_(x[0])
        z = F.zeros_like(y)
        z[::2] = y[:2].sin()
        return (z + y).pow(2).sum()

    def indexing(x):
        i = F.tensor([0, 2, 2])
        return (x[i] * x.index_select(0, i).exp()).sum() + F.where(x > 0, x**2, -x).sum()

    def reductions(x):
        m = x.reshape(2, 2)
        return m.logsumexp(0).sum() + m.var(1).sum() + (m.softmax(1) * m).amax()

    def without_grad(x):
        with F.no_grad():
            c = x * 2
        return (c.detach() * x**2).sum()

    return [elementwise, matrix, views, in_place, indexing, reductions, without_grad]


each_function = pytest.mark.parametrize("function", functions(), ids=lambda f: f.__name__)


def backward(function, x):
    leaf = x.detach().clone().requires_grad_()
    return F.autograd.grad(function(leaf), leaf)[0]


def second_backward(function, x):
    leaf = x.detach().clone().requires_grad_()
    (g,) = F.autograd.grad(function(leaf), leaf, create_graph=True)
    return F.stack([F.autograd.grad(e, leaf, retain_graph=True)[0] for e in g])


@each_function
def test_vmap_of_grad(function):
    x = randn(5, 4)
    assert_close(vmap(grad(function))(x), F.stack([backward(function, row) for row in x]))


@each_function
def test_grad_of_vmap(function):
    x = randn(5, 4)
    assert_close(
        grad(lambda x: vmap(function)(x).sum())(x), F.stack([backward(function, row) for row in x])
    )


@each_function
def test_vmap_of_vmap_of_grad(function):
    x = randn(2, 3, 4)
    expected = F.stack([F.stack([backward(function, v) for v in m]) for m in x])
    assert_close(vmap(vmap(grad(function)))(x), expected)


@each_function
def test_jvp_is_the_product_with_the_gradient(function):
    x, t = randn(4), randn(4, seed=1)
    _, derivative = jvp(function, (x,), (t,))
    assert_close(derivative, (backward(function, x) * t).sum())


@each_function
def test_jvp_of_vmap(function):
    x, t = randn(5, 4), randn(5, 4, seed=1)
    _, derivative = jvp(vmap(function), (x,), (t,))
    expected = [(backward(function, a) * b).sum() for a, b in zip(x, t, strict=True)]
    assert_close(derivative, F.stack(expected))


@each_function
def test_vmap_of_jvp(function):
    x, t = randn(5, 4), randn(5, 4, seed=1)
    derivative = vmap(lambda x, t: jvp(function, (x,), (t,))[1])(x, t)
    expected = [(backward(function, a) * b).sum() for a, b in zip(x, t, strict=True)]
    assert_close(derivative, F.stack(expected))


@each_function
@pytest.mark.parametrize("outer", [jacfwd, jacrev])
@pytest.mark.parametrize("inner", [jacfwd, jacrev])
def test_hessians(function, outer, inner):
    if function.__name__ == "without_grad":
        pytest.skip("forward mode does not heed no_grad")
    x = randn(4)
    assert_close(outer(inner(function))(x), second_backward(function, x))


@each_function
def test_vmap_of_hessian(function):
    if function.__name__ == "without_grad":
        pytest.skip("forward mode does not heed no_grad")
    x = randn(3, 4)
    expected = F.stack([second_backward(function, row) for row in x])
    assert_close(vmap(func.hessian(function))(x), expected)


@each_function
def test_jvp_of_vjp(function):
    """Forward over reverse: the product of the Hessian with a vector."""
    if function.__name__ == "without_grad":
        pytest.skip("forward mode does not heed no_grad")
    x, t = randn(4), randn(4, seed=1)
    one = F.ones((), dtype=F.float64)

    def gradient(x):
        _, vjp_fn = vjp(function, x)
        return vjp_fn(one)[0]

    _, derivative = jvp(gradient, (x,), (t,))
    assert_close(derivative, second_backward(function, x) @ t)


@each_function
def test_vjp_of_jvp(function):
    """Reverse over forward."""
    if function.__name__ == "without_grad":
        pytest.skip("forward mode does not heed no_grad")
    x, t = randn(4), randn(4, seed=1)
    _, vjp_fn = vjp(lambda x: jvp(function, (x,), (t,))[1], x)
    (derivative,) = vjp_fn(F.ones((), dtype=F.float64))
    assert_close(derivative, second_backward(function, x) @ t)


@each_function
def test_jvp_of_jvp(function):
    if function.__name__ == "without_grad":
        pytest.skip("forward mode does not heed no_grad")
    x, t = randn(4), randn(4, seed=1)
    _, derivative = jvp(lambda x: jvp(function, (x,), (t,))[1], (x,), (t,))
    assert_close(derivative, t @ second_backward(function, x) @ t)


@each_function
def test_linearize_is_the_jvp(function):
    if function.__name__ == "in_place" and not IS_FACULA:
        pytest.skip("PyTorch's linearize loses writes")
    x, t = randn(4), randn(3, 4, seed=1)
    _, jvp_fn = func.linearize(function, x)
    assert_close(vmap(jvp_fn)(t), t @ backward(function, x))


@each_function
def test_gradient_against_finite_differences(function):
    if function.__name__ == "without_grad":
        pytest.skip("what no_grad hides, finite differences see")
    x, step = randn(4), 1e-6
    numerical = [
        (function(x + step * e) - function(x - step * e)) / (2 * step)
        for e in F.eye(4, dtype=F.float64)
    ]
    assert_close(grad(function)(x), F.stack(numerical), rtol=1e-5, atol=1e-7)


# ---- closures over the variables of outer levels


def test_an_inner_vmap_uses_a_tracked_tensor():
    w, x = randn(3), randn(5, 3, seed=1)
    result = grad(lambda w: vmap(lambda row: (row * w).sin().sum())(x).sum())(w)
    assert_close(result, (x * (x * w).cos()).sum(0))


def test_an_inner_gradient_uses_a_batched_tensor():
    w, x = randn(5, 3), randn(3, seed=1)
    result = vmap(lambda w: grad(lambda x: (w * x**2).sum())(x))(w)
    assert_close(result, 2 * w * x)


def test_an_inner_gradient_of_a_batched_tensor_alone():
    """Nothing that the inner level tracks is batched, but what it is multiplied by is."""
    x = randn(5)
    one = F.ones((), dtype=F.float64)
    result = vmap(lambda s: grad(lambda y: y * s)(one))(x)
    assert_close(result, x)


def test_a_tangent_of_the_outer_level_inside_a_gradient():
    x, t = randn(3), randn(3, seed=1)

    def function(x):
        return grad(lambda y: (y**2 * x).sum())(x * 2)  # 2 * (2 x) * x

    _, derivative = jvp(function, (x,), (t,))
    assert_close(derivative, 8 * x * t)


def test_four_levels():
    x = randn(3, 2)

    def function(x):
        inner = vmap(grad(lambda v: v**3))(x)
        return jvp(lambda v: (v * inner).sum(), (x,), (F.ones_like(x),))[1]

    # sum(3 x^2), so 6 x for each row
    assert_close(vmap(grad(function))(x), 6 * x)


def test_gradients_of_a_closed_over_parameter_through_vmap():
    w = randn(3).requires_grad_()
    x = randn(5, 3, seed=1)
    vmap(lambda row: (row * w).sum() ** 2)(x).sum().backward()
    leaf = w.detach().clone().requires_grad_()
    ((x * leaf).sum(1) ** 2).sum().backward()
    assert_close(w.grad, leaf.grad)


def test_batched_inputs_that_require_grad():
    x = randn(5, 3).requires_grad_()
    vmap(lambda row: row.sin().sum())(x).sum().backward()
    assert_close(x.grad, x.detach().cos())


# ---- per-sample gradients of a small network


def network(params, x):
    hidden = (x @ params["w1"] + params["b1"]).tanh()
    return hidden @ params["w2"] + params["b2"]


def parameters():
    return {
        "w1": randn(3, 4, seed=1),
        "b1": randn(4, seed=2),
        "w2": randn(4, 2, seed=3),
        "b2": randn(2, seed=4),
    }


def loss(params, x, target):
    logits = network(params, x)
    return logits.logsumexp(-1) - logits.gather(0, target.reshape(1)).sum()


def test_per_sample_gradients():
    params, x, targets = parameters(), randn(6, 3), F.tensor([0, 1, 1, 0, 1, 0])
    batched = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, targets)
    for i in range(6):
        leaves = {k: v.clone().requires_grad_() for k, v in params.items()}
        loss(leaves, x[i], targets[i]).backward()
        for k, v in leaves.items():
            assert_close(batched[k][i], v.grad)


@pytest.mark.parametrize("chunk_size", [1, 4])
def test_per_sample_gradients_in_chunks(chunk_size):
    params, x, targets = parameters(), randn(6, 3), F.tensor([0, 1, 1, 0, 1, 0])
    plain = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, targets)
    chunked = vmap(grad(loss), in_dims=(None, 0, 0), chunk_size=chunk_size)(params, x, targets)
    for k, v in plain.items():
        assert_close(chunked[k], v)


def test_an_ensemble_of_networks():
    x = randn(6, 3)
    models = [{k: v + i for k, v in parameters().items()} for i in range(3)]
    stacked = {k: F.stack([m[k] for m in models]) for k in models[0]}
    result = vmap(network, in_dims=(0, None))(stacked, x)
    assert_close(result, F.stack([network(m, x) for m in models]))


def test_hessian_of_the_loss_by_the_parameters():
    params, x, target = parameters(), randn(3), F.tensor(1)
    result = func.hessian(loss)(params, x, target)
    leaves = {k: v.clone().requires_grad_() for k, v in params.items()}
    (g,) = F.autograd.grad(loss(leaves, x, target), leaves["w2"], create_graph=True)
    rows = [F.autograd.grad(e, leaves["b1"], retain_graph=True)[0] for e in g.reshape(-1)]
    assert_close(result["w2"]["b1"], F.stack(rows).reshape(4, 2, 4))


def test_a_step_of_gradient_descent_is_differentiable():
    """The gradient by the learning rate, through the inner gradient."""
    x = randn(3)

    def after_step(rate):
        moved = x - rate * grad(lambda x: (x**4).sum())(x)
        return (moved**2).sum()

    rate = F.tensor(0.1, dtype=F.float64)
    expected = (2 * (x - 0.1 * 4 * x**3) * (-4 * x**3)).sum()
    assert_close(grad(after_step)(rate), expected)


def test_levels_are_left_in_order_after_errors():
    def failing(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: jvp(lambda x: grad(failing)(x), (x,), (x,)))(randn(3))
    assert_equal(vmap(lambda x: x * 2)(F.ones(2)), F.full((2,), 2.0))
    assert not F.ones(1).requires_grad


# ---- what changes a tensor itself


@pytest.mark.parametrize(
    "turn",
    [
        lambda y: y.t_(),
        lambda y: y.transpose_(0, 1),
        lambda y: y.unsqueeze_(0),
        lambda y: y.unsqueeze_(0).squeeze_(),
        lambda y: y.squeeze_(),
    ],
    ids=["t_", "transpose_", "unsqueeze_", "squeeze_ again", "squeeze_"],
)
def test_geometry_changed_in_place(turn):
    def function(x):
        y = x.reshape(2, 2) * 1
        turn(y)
        weights = F.arange(1.0, 5.0, dtype=F.float64).reshape(y.shape)
        return (y**2 * weights).sum()

    x = randn(3, 4)
    expected = F.stack([backward(function, row) for row in x])
    assert_close(vmap(grad(function))(x), expected)
    assert_close(grad(lambda x: vmap(function)(x).sum())(x), expected)
    _, pushed = jvp(vmap(function), (x,), (x,))
    assert_close(pushed, (expected * x).sum(1))
    assert_close(vmap(lambda x: turn(x.reshape(2, 2) * 1) * 2)(x)[1], turn(x[1].reshape(2, 2) * 2))


def test_data_may_not_be_exchanged():
    def function(x):
        y = x * 1
        y.data = y.data * 2
        return y.sum()

    for run in (lambda: grad(function)(randn(3)), lambda: vmap(function)(randn(3, 2))):
        with pytest.raises(RuntimeError):
            run()


def test_backward_inside_of_a_transform_is_refused():
    w = randn(3).requires_grad_()

    def function(x):
        (x * w).sum().backward()
        return x.sum()

    for run in (lambda: grad(function)(randn(3)), lambda: vmap(function)(randn(2, 3))):
        with pytest.raises(RuntimeError, match=r"backward\(\) called inside"):
            run()
    assert w.grad is None
    with F.autograd.forward_ad.dual_level():
        (w * 2).sum().backward()
    assert_equal(w.grad, F.full((3,), 2.0, dtype=F.float64))


def log_determinant(x):
    return F.logdet(x @ x.mT)


def log_absolute_determinant(x):
    return F.linalg.slogdet(x).logabsdet


def square_of_the_solution(x):
    return F.linalg.solve(x, F.tensor([1.0, 2.0], dtype=F.float64)).square().sum()


@pytest.mark.parametrize(
    "function",
    [log_determinant, log_absolute_determinant, F.linalg.det, square_of_the_solution],
)
def test_second_derivatives_of_what_goes_through_factors(function):
    x = F.tensor([[2.0, 1.0], [-1.0, 3.0]], dtype=F.float64)
    forward_over_reverse = func.hessian(function)(x)
    assert_close(forward_over_reverse, jacrev(jacrev(function))(x), rtol=1e-10)
    if IS_FACULA:  # PyTorch takes the batch for a dimension of the factors
        assert_close(vmap(func.hessian(function))(x.expand(2, 2, 2))[1], forward_over_reverse)


def test_hessian_of_a_logarithm_of_a_determinant_has_its_numbers():
    hessian = func.hessian(F.logdet)(F.tensor([[2.0, 0.0], [0.0, 4.0]]))
    assert hessian[0, 0].tolist() == [[-0.25, 0.0], [0.0, 0.0]]
    assert hessian[0, 1].tolist() == [[0.0, 0.0], [-0.125, 0.0]]


COMPLEX = [F.sigmoid, F.tanh, F.sin, *([F.nn.functional.silu] if IS_FACULA else [])]


@pytest.mark.parametrize("function", COMPLEX)
def test_second_derivatives_of_complex_functions(function):
    z = F.tensor([0.3 + 0.7j, -1.2 + 0.4j], dtype=F.complex128)
    direction = F.tensor([1.0 - 2.0j, 0.5 + 1.0j], dtype=F.complex128)

    def loss(z):
        return (z - function(z)).abs().square().sum()

    step = 1e-6
    between = (grad(loss)(z + step * direction) - grad(loss)(z - step * direction)) / (2 * step)
    assert_close(jvp(grad(loss), (z,), (direction,))[1], between, rtol=1e-7, atol=1e-8)


def test_second_derivatives_of_a_modulus_at_zero_are_no_nan():
    z = F.tensor([0j, 3 + 4j], dtype=F.complex128)
    tangent = jvp(grad(lambda z: z.abs().sum()), (z,), (F.ones(2, dtype=F.complex128),))[1]
    assert_close(tangent, F.tensor([0j, 0.128 - 0.096j], dtype=F.complex128))


def test_second_derivatives_of_products_with_zeros():
    x = F.tensor([2.0, 0.0, 3.0], dtype=F.float64)
    hessian = func.hessian(lambda x: F.cumprod(x, 0)[-1])(x)
    assert hessian.tolist() == [[0.0, 3.0, 0.0], [3.0, 0.0, 2.0], [0.0, 2.0, 0.0]]


def test_second_derivatives_of_a_norm_of_no_rows():
    x = F.zeros(0, 2, requires_grad=True)
    weight = F.ones(2, requires_grad=True)
    y = F.nn.functional.layer_norm(x, (2,), weight)
    by_x = F.autograd.grad(y.sum(), x, create_graph=True)[0]
    again = F.autograd.grad(by_x.square().sum(), (x, weight), allow_unused=True)
    assert again[0].shape == (0, 2) and again[1].tolist() == [0.0, 0.0]
