"""grad, grad_and_value and vjp: values, structures, modes, and what they refuse."""

import functools

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

grad, grad_and_value, vjp = F.func.grad, F.func.grad_and_value, F.func.vjp


def vector(*values):
    return F.tensor(values, dtype=F.float64)


X, Y = vector(0.5, 1.0, 2.0), vector(3.0, -1.0, 0.25)


def test_gradient_of_a_scalar_function():
    assert_close(grad(lambda x: (x**3).sum())(X), 3 * X**2)


def test_the_inputs_stay_as_they_were():
    x = X.clone()
    result = grad(lambda x: x.sin().sum())(x)
    assert not x.requires_grad and x.grad is None and x.is_leaf
    assert not result.requires_grad


def test_argnums_choose_arguments():
    def function(x, y):
        return (x * y**2).sum()

    assert_close(grad(function)(X, Y), Y**2)
    assert_close(grad(function, argnums=1)(X, Y), 2 * X * Y)
    assert_close(grad(function, argnums=-1)(X, Y), 2 * X * Y)
    both = grad(function, argnums=(1, 0))(X, Y)
    assert isinstance(both, tuple)
    assert_close(both[0], 2 * X * Y)
    assert_close(both[1], Y**2)


def test_gradients_come_in_the_structure_of_the_argument():
    params = {"w": X, "rest": [Y, (X * 2,)]}

    def loss(params, z):
        return (params["w"] * z).sum() + params["rest"][0].sum() * params["rest"][1][0].sum()

    result = grad(loss)(params, Y)
    assert_close(result["w"], Y)
    assert_close(result["rest"][0], (X * 2).sum().expand(3))
    assert_close(result["rest"][1][0], Y.sum().expand(3))


def test_an_argument_without_influence_gets_zeros():
    assert_equal(grad(lambda x, y: y.sum())(X, Y), F.zeros(3, dtype=F.float64))
    assert_equal(grad(lambda x, y: (x * 0 + 1).detach().sum())(X, Y), F.zeros(3, dtype=F.float64))


def test_aux_is_returned_beside_the_gradient():
    def function(x):
        y = x * 2
        return y.sum(), {"y": y, "pair": (x, y + 1)}

    result, aux = grad(function, has_aux=True)(X)
    assert_equal(result, F.full((3,), 2.0, dtype=F.float64))
    assert_equal(aux["y"], X * 2)
    assert_equal(aux["pair"][1], X * 2 + 1)
    assert not aux["y"].requires_grad


def test_grad_and_value():
    result, value = grad_and_value(lambda x: (x**2).sum())(X)
    assert_close(result, 2 * X)
    assert_close(value, (X**2).sum())
    result, (value, aux) = grad_and_value(lambda x: ((x**2).sum(), x), has_aux=True)(X)
    assert_close(value, (X**2).sum())
    assert_equal(aux, X)


def test_keyword_arguments_are_passed_on_and_not_differentiated():
    assert_close(grad(lambda x, scale: (x * scale).sum())(X, scale=Y), Y)


def test_nested_gradients():
    def function(x):
        return x.sin() * x**3

    x = F.tensor(0.7, dtype=F.float64)
    derivative, point = function, x
    for order in range(1, 5):
        derivative = grad(derivative)
        if order == 1:
            assert_close(derivative(x), x.cos() * x**3 + x.sin() * 3 * x**2)
    leaf = x.clone().requires_grad_()
    expected = function(leaf)
    for _ in range(4):
        (expected,) = F.autograd.grad(expected, leaf, create_graph=True)
    assert_close(derivative(point), expected.detach())


def test_inner_gradient_by_a_variable_of_the_outer_function():
    def outer(x):
        return grad(lambda y: (x**2 * y**3).sum())(Y).sum()

    # d/dx sum(x^2 * 3 y^2)
    assert_close(grad(outer)(X), 2 * X * 3 * Y**2)


def test_inner_function_that_mixes_both_variables_confuses_nothing():
    # The classic trap: the derivative of y -> x + y is 1, so the outer one is that of x * 1.
    x = F.tensor(3.0)
    result = grad(lambda x: x * grad(lambda y: x + y)(F.tensor(1.0)))(x)
    assert_equal(result, 1.0)


def test_gradients_flow_to_plain_tensors_that_are_closed_over():
    w = vector(1.0, 2.0, 3.0).requires_grad_()
    result = grad(lambda x: (w * x**2).sum())(X)
    assert result.requires_grad
    result.sum().backward()
    assert_close(w.grad, 2 * X)


def test_gradients_flow_to_inputs_that_require_grad():
    x = X.clone().requires_grad_()
    result = grad(lambda x: (x**3).sum())(x)
    (second,) = F.autograd.grad(result.sum(), x)
    assert_close(second, 6 * X)


def test_value_keeps_its_graph_outside():
    x = X.clone().requires_grad_()
    _, value = grad_and_value(lambda x: (x**3).sum())(x)
    (first,) = F.autograd.grad(value, x)
    assert_close(first, 3 * X**2)


def test_in_place_operators_and_views_inside():
    def function(x):
        y = x.clone()
        y[0] = x[1] * x[2]
        y[1:].mul_(3.0)
        y.add_(x)
        return (y**2).sum()

    leaf = X.clone().requires_grad_()
    (expected,) = F.autograd.grad(function(leaf), leaf)
    assert_close(grad(function)(X), expected)


def test_tensors_made_inside_may_be_written_to():
    def function(x):
        out = F.zeros(4, dtype=F.float64)
        out[0] = x[0] * x[1]
        out[1:] = x**2
        return out.sum()

    leaf = X.clone().requires_grad_()
    (expected,) = F.autograd.grad(function(leaf), leaf)
    assert_close(grad(function)(X), expected)


def test_writing_to_a_captured_tensor_is_refused():
    captured = F.zeros(3, dtype=F.float64)
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(lambda x: captured.copy_(x).sum())(X)
    assert_equal(captured, F.zeros(3, dtype=F.float64))


# ---- modes


def test_no_grad_inside_holds():
    def function(x):
        with F.no_grad():
            c = x**2
        return (x - c).sum()

    assert_equal(grad(function)(X), F.ones(3, dtype=F.float64))


def test_no_grad_inside_holds_for_outer_transforms_too():
    def function(x):
        with F.no_grad():
            c = x**2
        return x * c

    x = F.tensor(3.0)
    assert_equal(grad(function)(x), 9.0)
    assert_equal(grad(grad(function))(x), 0.0)
    assert_equal(F.func.jvp(grad(function), (x,), (F.tensor(1.0),))[1], 6.0)


def test_no_grad_around_does_not_matter_to_the_gradient():
    with F.no_grad():
        assert_close(grad(lambda x: (x**2).sum())(X), 2 * X)
        assert_close(grad(grad(lambda x: x**3))(F.tensor(2.0)), 12.0)
        assert not F.is_grad_enabled()


def test_no_grad_around_holds_for_plain_tensors_inside():
    w = Y.clone().requires_grad_()
    with F.no_grad():
        result = grad(lambda x: (x * w * 2).sum())(X)
        inner = []
        grad(lambda x: (inner.append(w * 2), x.sum())[1])(X)
    assert not result.requires_grad
    assert not F.func.debug_unwrap(inner[0]).requires_grad


def test_no_grad_between_two_levels():
    def outer(x):
        with F.no_grad():
            inner = grad(lambda y: (y**2 * x).sum())(x)
        return (inner * x).sum()

    # The inner gradient, 2 x^2, is a constant for the outer one.
    assert_close(grad(outer)(X), 2 * X**2)


def test_detach_cuts_all_levels():
    x = F.tensor(3.0)
    assert_equal(grad(grad(lambda x: x * x.detach() ** 2))(x), 0.0)


def test_set_grad_mode_is_restored_after_an_error():
    def failing(x):
        raise KeyError("own")

    for mode in (True, False):
        with F.set_grad_enabled(mode):
            with pytest.raises(KeyError):
                grad(failing)(X)
            assert F.is_grad_enabled() == mode


def test_inference_mode_around():
    with F.inference_mode():
        assert_close(grad(lambda x: (x**2).sum())(X), 2 * X)


# ---- vjp


def test_vjp_multiplies_by_the_transposed_jacobian():
    output, vjp_fn = vjp(lambda x, y: (x * y, x.sum()), X, Y)
    assert_close(output[0], X * Y)
    assert_close(output[1], X.sum())
    v = (vector(1.0, 2.0, 3.0), F.tensor(10.0, dtype=F.float64))
    gx, gy = vjp_fn(v)
    assert_close(gx, v[0] * Y + 10.0)
    assert_close(gy, v[0] * X)


def test_vjp_function_can_be_called_again():
    _, vjp_fn = vjp(F.sin, X)
    for scale in (1.0, 2.0):
        (result,) = vjp_fn(F.full((3,), scale, dtype=F.float64))
        assert_close(result, scale * X.cos())


def test_vjp_of_trees():
    output, vjp_fn = vjp(lambda t: {"first": t[0].sin(), "second": t[1] * 2}, [X, Y])
    ones = F.ones(3, dtype=F.float64)
    ((gx, gy),) = vjp_fn({"first": ones, "second": ones})
    assert_close(gx, X.cos())
    assert_equal(gy, ones * 2)
    assert set(output) == {"first", "second"}


def test_vjp_aux():
    output, vjp_fn, aux = vjp(lambda x: (x.sin(), x * 3), X, has_aux=True)
    assert_close(output, X.sin())
    assert_equal(aux, X * 3)
    assert_close(vjp_fn(F.ones(3, dtype=F.float64))[0], X.cos())


def test_vjp_by_an_argument_without_influence():
    _, vjp_fn = vjp(lambda x, y: x * 2, X, Y)
    assert_equal(vjp_fn(X)[1], F.zeros(3, dtype=F.float64))
    _, vjp_fn = vjp(lambda x: F.ones(2), X)
    assert_equal(vjp_fn(F.ones(2))[0], F.zeros(3, dtype=F.float64))


def test_vjp_is_differentiable_in_the_cotangents_and_in_the_inputs():
    x = X.clone().requires_grad_()
    v = Y.clone().requires_grad_()
    _, vjp_fn = vjp(lambda x: x**3, x)
    (result,) = vjp_fn(v)
    gx, gv = F.autograd.grad(result.sum(), (x, v))
    assert_close(gx, 6 * X * Y)
    assert_close(gv, 3 * X**2)


def test_vjp_under_no_grad():
    with F.no_grad():
        _, vjp_fn = vjp(lambda x: x**2, X)
        assert_close(vjp_fn(Y)[0], 2 * X * Y)


def test_complex_gradients_follow_the_convention():
    z = F.tensor([1.0 + 2.0j, -0.5j], dtype=F.complex128)
    leaf = z.clone().requires_grad_()
    (expected,) = F.autograd.grad((leaf * leaf).abs().sum(), leaf)
    assert_close(grad(lambda z: (z * z).abs().sum())(z), expected)


# ---- what is refused


@pytest.mark.parametrize(
    ("argnums", "words"),
    [
        (2, "Got argnum=2, but only 2 positional inputs"),
        (-3, "Got argnum=-3, but only 2 positional inputs"),
        ((0, 0), "argnums elements must be unique"),
        ((0, -2), "argnums elements must be unique"),
        ((), "argnums must be non-empty"),
        ([0], "argnums must be int or Tuple"),
        ((0.0,), "argnum must be int"),
    ],
)
def test_argnums_that_do_not_fit(argnums, words):
    with pytest.raises(RuntimeError, match=words):
        grad(lambda x, y: x.sum(), argnums=argnums)(X, Y)


def test_output_must_be_a_scalar_tensor():
    with pytest.raises(RuntimeError, match="scalar Tensor, got tensor with 1 dims"):
        grad(lambda x: x * 2)(X)
    with pytest.raises(RuntimeError, match="to return a Tensor, got"):
        grad(lambda x: (x.sum(), x.sum()))(X)
    with pytest.raises(RuntimeError, match="to return a Tensor, got"):
        grad(lambda x: 3.0)(X)


@pytest.mark.parametrize("transform", [grad, grad_and_value])
def test_aux_needs_a_pair(transform):
    for bad in (lambda x: x.sum(), lambda x: (x.sum(), x, x), lambda x: [x.sum(), x]):
        with pytest.raises(RuntimeError, match=r"should be a tuple: \(output, aux\)"):
            transform(bad, has_aux=True)(X)
    with pytest.raises(RuntimeError, match=r"should be a tuple: \(output, aux\)"):
        vjp(lambda x: x, X, has_aux=True)


def test_aux_holds_tensors_only():
    with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
        grad(lambda x: (x.sum(), 3.0), has_aux=True)(X)


def test_arguments_to_differentiate_by_are_tensors():
    with pytest.raises(ValueError, match="must be Tensor, got"):
        grad(lambda x: x)(3.0)
    with pytest.raises(ValueError, match="must be Tensor, got"):
        vjp(lambda x: x, [X, 3.0])
    with pytest.raises(RuntimeError, match="floating point"):
        grad(lambda x: x.sum())(F.tensor([1, 2]))


def test_vjp_checks_outputs():
    with pytest.raises(RuntimeError, match="only tensors, got unsupported type"):
        vjp(lambda x: (x, 1), X)
    with pytest.raises(RuntimeError, match="non-empty output"):
        vjp(lambda x: (), X)
    with pytest.raises(RuntimeError, match="must be floating-point or complex"):
        vjp(lambda x: (x, x.argmax()), X)


def test_vjp_checks_cotangents():
    _, vjp_fn = vjp(lambda x: (x, x), X)
    with pytest.raises(RuntimeError, match="pytree structure of cotangents"):
        vjp_fn(X)
    with pytest.raises(RuntimeError):
        vjp_fn((X, F.ones(2, dtype=F.float64)))


def test_saved_tensor_hooks_are_refused():
    hooks = F.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with hooks, pytest.raises(RuntimeError, match="saved tensor hooks"):
        grad(lambda x: x.sum())(X)

    def function(x):
        with hooks:
            return x.sin().sum()

    with pytest.raises(RuntimeError, match="saved tensor hooks"):
        grad(function)(X)


def test_wraps_the_function():
    def named(x):
        """Says what it does."""
        return x.sum()

    assert grad(named).__name__ == "named" and grad(named).__doc__ == "Says what it does."
    assert_close(grad(functools.partial(F.sum))(X), F.ones(3, dtype=F.float64))


def test_a_tracked_tensor_prints_its_value():
    texts = []
    grad(lambda x: (texts.append(repr(x)), x)[1])(F.tensor(2.0))
    assert texts[0].startswith("GradTrackingTensor(lvl=1, value=\n")
    assert "tensor(2." in texts[0]


def test_numbers_may_be_read_and_branched_on():
    def function(x):
        return x**2 if x > 0 else -x * float(x.item())

    assert_equal(grad(function)(F.tensor(3.0)), 6.0)
    assert_equal(grad(function)(F.tensor(-3.0)), 3.0)


@pytest.mark.skipif(not IS_FACULA, reason="looks at the core's tensors")
def test_a_pass_that_nobody_outside_records_makes_no_second_graph():
    kept = []

    class Spy(F.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            kept.append(F.is_grad_enabled())
            return g * 2

    grad(lambda x: Spy.apply(x).sum())(X)
    grad(lambda x: Spy.apply(x).sum())(X.clone().requires_grad_())
    assert kept == [False, True]


# -- in inference mode -----------------------------------------------------------------------------


def cubes(x):
    return (x**3).sum()


INFERRED = {
    "grad": (lambda x: F.func.grad(cubes)(x), [3.0, 12.0]),
    "grad of grad": (lambda x: F.func.grad(lambda y: F.func.grad(cubes)(y).sum())(x), [6.0, 12.0]),
    "value": (lambda x: F.func.grad_and_value(cubes)(x)[1], 9.0),
    "vjp": (lambda x: F.func.vjp(cubes, x)[1](F.ones(()))[0], [3.0, 12.0]),
    "jvp": (lambda x: F.func.jvp(cubes, (x,), (F.ones(2),))[1], 15.0),
    "jacrev": (lambda x: F.func.jacrev(cubes)(x), [3.0, 12.0]),
    "jacfwd": (lambda x: F.func.jacfwd(cubes)(x), [3.0, 12.0]),
    "hessian": (lambda x: F.func.hessian(cubes)(x), [[6.0, 0.0], [0.0, 12.0]]),
}


@pytest.mark.parametrize("name", INFERRED)
@pytest.mark.parametrize("inside", [True, False])
def test_transforms_differentiate_in_inference_mode_and_give_normal_tensors(name, inside):
    function, expected = INFERRED[name]
    with F.inference_mode():
        x = F.tensor([1.0, 2.0])
    for given in (x, F.tensor([1.0, 2.0])):
        with F.inference_mode(inside):
            result = function(given)
            assert F.is_inference_mode_enabled() == inside
        assert not result.is_inference() and not result.requires_grad
        assert_equal(result, expected)


def test_there_is_no_inference_mode_inside_of_a_function_that_is_differentiated():
    seen = []

    def function(x):
        seen.append((F.is_inference_mode_enabled(), F.ones(1).is_inference()))
        return (x * x).sum()

    with F.inference_mode():
        F.func.grad(function)(F.ones(2))
        F.func.vmap(function)(F.ones(2))
        with pytest.raises(ZeroDivisionError):
            F.func.grad(lambda x: 1 // 0)(F.ones(2))
        assert F.is_inference_mode_enabled()
    assert seen == [(False, False), (True, True)]
