"""autograd.Function under grad, vmap and jvp, alone and nested."""

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

Function = F.autograd.Function
func = F.func
grad, jvp, vmap = func.grad, func.jvp, func.vmap


def vector(*values):
    return F.tensor(values, dtype=F.float64)


X, T = vector(0.5, 1.0, 2.0), vector(1.0, 10.0, -2.0)


class Cube(Function):
    """x^3 with all rules written by hand."""

    calls = []

    @staticmethod
    def forward(x):
        Cube.calls.append("forward")
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        Cube.calls.append("backward")
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    @staticmethod
    def jvp(ctx, t):
        Cube.calls.append("jvp")
        (x,) = ctx.saved_tensors
        return t * 3 * x**2

    @staticmethod
    def vmap(info, in_dims, x):
        Cube.calls.append("vmap")
        return Cube.apply(x), in_dims[0]


class Mix(Function):
    """x * sin(y) and their sum, with the vmap rule generated; notes the shapes that it sees."""

    generate_vmap_rule = True
    shapes = []

    @staticmethod
    def forward(x, y, scale):
        Mix.shapes.append((tuple(x.shape), tuple(y.shape)))
        return x * y.sin() * scale, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, scale = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.scale = scale

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y.sin() * ctx.scale + h, g * x * y.cos() * ctx.scale + h, None

    @staticmethod
    def jvp(ctx, tx, ty, _):
        x, y = ctx.saved_tensors
        return (tx * y.sin() + x * y.cos() * ty) * ctx.scale, tx + ty


def mix(x, y, scale):
    return x * y.sin() * scale, x + y


@pytest.fixture(autouse=True)
def forget():
    Cube.calls.clear()
    Mix.shapes.clear()


def calls():
    return sorted(set(Cube.calls))


# ---- one level


def test_grad_uses_backward():
    assert_close(grad(lambda x: Cube.apply(x).sum())(X), 3 * X**2)
    assert calls() == ["backward", "forward"]


def test_jvp_uses_jvp():
    value, derivative = jvp(Cube.apply, (X,), (T,))
    assert_close(value, X**3)
    assert_close(derivative, 3 * X**2 * T)
    assert calls() == ["forward", "jvp"]


def test_vmap_uses_vmap():
    assert_close(vmap(Cube.apply)(X), X**3)
    assert calls() == ["forward", "vmap"]


def test_plain_tensors_inside_of_a_transform():
    result = vmap(lambda x: x * Cube.apply(X[0]))(T)
    assert_close(result, T * X[0] ** 3)
    assert calls() == ["forward"]


def test_arguments_in_containers():
    class Total(Function):
        @staticmethod
        def forward(x, others):
            return x * sum(others)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = sum(inputs[1])

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

        @staticmethod
        def vmap(info, in_dims, x, others):
            assert in_dims == (0, [None, None])
            return x * sum(others), 0

    plain = [X[0], X[1]]
    assert_close(vmap(lambda t: Total.apply(X[2], plain) * t)(T), X[2] * 1.5 * T)
    assert_close(vmap(lambda t: Total.apply(t, plain))(T), 1.5 * T)
    assert_close(grad(lambda x: Total.apply(x, plain).sum())(X), F.full_like(X, 1.5))


def test_vmap_is_told_about_the_batch():
    seen = []

    class Told(Function):
        @staticmethod
        def forward(x, y, z):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, y, z):
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape), z))
            return x + y, 0

    result = vmap(lambda x: Told.apply(x, X[0], "z"), randomness="same")(X)
    assert_close(result, X + X[0])
    assert seen == [(3, "same", (0, None, None), (3,), "z")]


def test_random_operators_in_the_vmap_method_are_not_for_this_vmap():
    class Noisy(Function):
        @staticmethod
        def forward(x):
            return x + F.rand(())

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 0 + F.rand(info.batch_size), 0

    assert tuple(vmap(Noisy.apply)(F.ones(4)).shape) == (4,)


def test_out_dims_of_the_vmap_method():
    class Rows(Function):
        @staticmethod
        def forward(x):
            return x * 2, x.sum(), 5

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            assert in_dims == (0,)
            return ((x * 2).T, x.sum(1), 5), (1, 0, None)

    x = F.arange(6.0).reshape(3, 2)
    a, b = vmap(lambda x: Rows.apply(x)[:2])(x)
    assert_close(a, x * 2)
    assert_close(b, x.sum(1))


def test_output_of_the_vmap_method_without_batch():
    class Constant(Function):
        @staticmethod
        def forward(x):
            return F.ones(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return F.ones(2), None

    assert_equal(vmap(Constant.apply)(X), F.ones(3, 2))


# ---- nested levels


def test_nested_gradients_use_the_custom_backward():
    x = X[2]
    assert_close(grad(grad(Cube.apply))(x), 6 * x)
    assert_close(grad(grad(grad(Cube.apply)))(x), 6.0)


def test_outer_levels_do_not_look_into_forward():
    class Lying(Function):
        """A derivative that is not that of forward."""

        @staticmethod
        def forward(x):
            return x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return Lying.apply(g) * 0 + g * 100 * ctx.saved_tensors[0]

    x = F.tensor(3.0)
    assert_equal(grad(Lying.apply)(x), 300.0)
    assert_equal(grad(lambda x: grad(lambda y: y * Lying.apply(x))(F.tensor(1.0)))(x), 300.0)
    assert_equal(grad(grad(Lying.apply))(x), 100.0)


def test_vmap_of_grad_and_grad_of_vmap():
    assert_close(vmap(grad(Cube.apply))(X), 3 * X**2)
    assert calls() == ["backward", "forward", "vmap"]
    assert_close(grad(lambda x: vmap(Cube.apply)(x).sum())(X), 3 * X**2)


def test_vmap_of_jvp_and_jvp_of_vmap():
    result = vmap(lambda x, t: jvp(Cube.apply, (x,), (t,))[1])(X, T)
    assert_close(result, 3 * X**2 * T)
    assert_close(jvp(vmap(Cube.apply), (X,), (T,))[1], 3 * X**2 * T)


def test_vmap_of_vmap():
    x = F.arange(6.0).reshape(2, 3)
    assert_close(vmap(vmap(Cube.apply))(x), x**3)
    assert_close(vmap(vmap(Cube.apply), in_dims=1, out_dims=1)(x), x**3)


def test_hessian_and_jacobians():
    assert_close(func.jacrev(Cube.apply)(X), F.diag(3 * X**2))
    assert_close(func.jacfwd(Cube.apply)(X), F.diag(3 * X**2))
    assert_close(func.hessian(lambda x: Cube.apply(x).sum())(X), F.diag(6 * X))


def test_forward_over_reverse_and_reverse_over_forward():
    assert_close(jvp(lambda x: grad(lambda x: Cube.apply(x).sum())(x), (X,), (T,))[1], 6 * X * T)
    result = grad(lambda x: jvp(Cube.apply, (x,), (T,))[1].sum())(X)
    assert_close(result, 6 * X * T)


def test_the_plain_tape_goes_on_below():
    x = X.clone().requires_grad_()
    vmap(Cube.apply)(x).sum().backward()
    assert_close(x.grad, 3 * X**2)
    (g,) = F.autograd.grad(grad(lambda x: Cube.apply(x).sum())(x).sum(), x)
    assert_close(g, 6 * X)


def test_saved_tensors_of_a_level_that_is_over():
    class Product(Function):
        @staticmethod
        def forward(a, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    class Exponential(Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            return Product.apply(g, ctx.saved_tensors[0])

    x, g = X.clone().requires_grad_(), T.clone().requires_grad_()
    _, vjp_fn = func.vjp(Exponential.apply, x)
    (result,) = vjp_fn(g)
    gx, gg = F.autograd.grad(result.sum(), (x, g))
    assert_close(gx, X.exp() * T)
    assert_close(gg, X.exp())


# ---- generate_vmap_rule


Y = vector(0.1, -0.3, 0.7)


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_generated_rule(in_dims):
    args = [v if d == 0 else v[1] for v, d in zip((X, Y), in_dims, strict=True)]
    result = vmap(lambda x, y: Mix.apply(x, y, 2.0), in_dims=in_dims)(*args)
    expected = mix(*args, 2.0)
    assert_close(result[0], expected[0])
    assert_close(result[1], expected[1])
    assert Mix.shapes == [((), ())]


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_generated_rule_differentiates(in_dims):
    args = tuple(v if d == 0 else v[1] for v, d in zip((X, Y), in_dims, strict=True))

    def total(function):
        def run(*args):
            a, b = vmap(lambda x, y: function(x, y, 2.0), in_dims=in_dims)(*args)
            return (a * T).sum() + (b**2).sum()

        return run

    custom = grad(total(Mix.apply), argnums=(0, 1))(*args)
    expected = grad(total(mix), argnums=(0, 1))(*args)
    for a, b in zip(custom, expected, strict=True):
        assert_close(a, b)
    leaves = [a.clone().requires_grad_() for a in args]
    total(Mix.apply)(*leaves).backward()
    for leaf, b in zip(leaves, expected, strict=True):
        assert_close(leaf.grad, b)
    tangents = tuple(a * 0.3 for a in args)
    assert_close(jvp(total(Mix.apply), args, tangents)[1], jvp(total(mix), args, tangents)[1])


def test_generated_rule_inside_other_transforms():
    def scalar(function):
        return lambda x, y: (lambda r: (r[0] * r[1]).sum())(function(x, y, 2.0))

    custom = vmap(grad(scalar(Mix.apply), argnums=(0, 1)))(X, Y)
    expected = vmap(grad(scalar(mix), argnums=(0, 1)))(X, Y)
    for a, b in zip(custom, expected, strict=True):
        assert_close(a, b)
    x, y = F.stack([X, X * 2]), F.stack([Y, Y - 1])
    custom = vmap(vmap(lambda x, y: Mix.apply(x, y, 2.0)))(x, y)
    assert_close(custom[0], mix(x, y, 2.0)[0])
    nested = vmap(vmap(grad(scalar(Mix.apply))))(x, y)
    assert_close(nested, vmap(vmap(grad(scalar(mix))))(x, y))
    second = vmap(grad(grad(scalar(Mix.apply))))(X, Y)
    assert_close(second, vmap(grad(grad(scalar(mix))))(X, Y))


def test_shapes_in_the_generated_rule_are_those_of_one_example():
    class Total(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.shape = inputs[0].shape

        @staticmethod
        def backward(ctx, g):
            return g.expand(ctx.shape)

    x = F.arange(6.0).reshape(2, 3)
    result = grad(lambda x: (vmap(Total.apply)(x) * F.tensor([1.0, 10.0])).sum())(x)
    assert_equal(result, F.tensor([[1.0] * 3, [10.0] * 3]))
    result = grad(lambda x: (vmap(Total.apply, in_dims=1)(x) * F.arange(3.0)).sum())(x)
    assert_equal(result, F.arange(3.0).expand(2, 3))


def test_broadcast_gradients_of_the_generated_rule_are_summed():
    class Plus(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g, g

    x, y = F.ones(4, 3), F.ones(4)
    gx, gy = grad(lambda x, y: vmap(Plus.apply)(x, y).sum(), argnums=(0, 1))(x, y)
    assert_equal(gx, F.ones(4, 3))
    assert_equal(gy, F.full((4,), 3.0))


# ---- in place, constants, context


class Doubled(Function):
    """x.mul_(2)"""

    @staticmethod
    def forward(x):
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t.mul_(2)

    @staticmethod
    def vmap(info, in_dims, x):
        return x.mul_(2), in_dims[0]


def test_functions_that_write_to_their_argument():
    def function(x):
        y = x.clone()
        z = Doubled.apply(y)
        assert z is y
        return (z * y).sum()

    assert_close(grad(function)(X), 8 * X)
    assert_close(jvp(function, (X,), (T,))[1], (8 * X * T).sum())
    assert_close(vmap(grad(function))(X), 8 * X)
    assert_close(vmap(function)(X), 4 * X**2)


def test_a_jvp_that_does_not_write_in_place_is_refused():
    class Careless(Doubled):
        @staticmethod
        def jvp(ctx, t):
            return t * 2

    with pytest.raises(RuntimeError, match="inplace"):
        jvp(lambda x: Careless.apply(x.clone()), (X,), (T,))


def test_outputs_marked_as_constant():
    class Order(Function):
        @staticmethod
        def forward(x):
            return x * 2, x.argsort(), x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1], output[2])

        @staticmethod
        def backward(ctx, g, _, __):
            return g * 2

    def function(x):
        a, i, c = Order.apply(x)
        return (a[i] * c).sum()

    assert_close(grad(function)(X), 6 * X)


def test_missing_gradients_are_zeros_or_none():
    seen = []

    class Pair(Function):
        @staticmethod
        def forward(x, materialize):
            return x * 1, x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(inputs[1])

        @staticmethod
        def backward(ctx, g, h):
            seen.append(h is None)
            return g if h is None else g + 2 * h, None

        @staticmethod
        def jvp(ctx, t, _):
            seen.append(t is None)
            return t, t * 2

    for materialize in (True, False):
        grad(lambda x, m=materialize: Pair.apply(x, m)[0].sum())(X)
    assert seen == [False, True]


def test_tangents_that_are_missing():
    seen = []

    class Sum(Function):
        @staticmethod
        def forward(x, y, materialize):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(inputs[2])

        @staticmethod
        def jvp(ctx, tx, ty, _):
            seen.append(ty is None)
            return tx

    for materialize in (True, False):
        _, derivative = jvp(lambda x, m=materialize: Sum.apply(x, X, m), (X,), (T,))
        assert_equal(derivative, T)
    assert seen == [False, True]


def test_needs_input_grad_is_that_of_the_level():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return g * y, g * x

    assert_close(grad(lambda x: Product.apply(x, T).sum())(X), T)
    assert seen == [(True, False)]


def test_a_plain_parameter_gets_its_gradient_through_a_level():
    w = T.clone().requires_grad_()

    class Product(Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    result = grad(lambda x: (Product.apply(x, w) ** 2).sum())(X)
    (gw,) = F.autograd.grad(result.sum(), w)
    assert_close(gw, 4 * X * T)


def test_defaults_and_keywords_of_forward():
    class Power(Function):
        @staticmethod
        def forward(x, exponent=2, scale=1.0):
            return scale * x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent, ctx.scale = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.scale * ctx.exponent * x ** (ctx.exponent - 1), None, None

    leaf = X.clone().requires_grad_()
    Power.apply(leaf).sum().backward()
    assert_close(leaf.grad, 2 * X)
    assert_close(grad(lambda x: Power.apply(x, 3).sum())(X), 3 * X**2)
    if IS_FACULA:  # PyTorch documents it, and raises
        assert_close(grad(lambda x: Power.apply(x, scale=5.0).sum())(X), 10 * X)
        with pytest.raises(TypeError):
            Power.apply(X, other=1)


def test_forward_runs_without_recording_and_backward_in_the_modes_of_the_pass():
    modes = []

    class Noting(Function):
        @staticmethod
        def forward(x):
            modes.append(F.is_grad_enabled())
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            modes.append(F.is_grad_enabled())

        @staticmethod
        def backward(ctx, g):
            return g * 2

    grad(lambda x: Noting.apply(x).sum())(X)
    assert not any(modes)
    assert F.is_grad_enabled()


# ---- forward_ad


def test_a_forward_that_takes_ctx_works_with_dual_tensors():
    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0].cos()

    forward_ad = F.autograd.forward_ad
    x = X.clone().requires_grad_()
    with forward_ad.dual_level():
        value, tangent = forward_ad.unpack_dual(Sine.apply(forward_ad.make_dual(x, T)))
    assert_close(tangent, X.cos() * T)
    (g,) = F.autograd.grad(value.sum(), x, retain_graph=True)
    assert_close(g, X.cos())


# ---- what is refused


def test_forward_that_takes_ctx():
    class Old(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    for run in (
        lambda: grad(lambda x: Old.apply(x).sum())(X),
        lambda: vmap(Old.apply)(X),
        lambda: jvp(Old.apply, (X,), (T,)),
    ):
        with pytest.raises(RuntimeError, match="must override the setup_context"):
            run()


def test_missing_and_ambiguous_vmap_rules():
    class Without(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    class Both(Without):
        generate_vmap_rule = True

        @staticmethod
        def vmap(info, in_dims, x):
            return x, 0

    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Without.apply)(X)
    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden"):
        vmap(Both.apply)(X)
    with pytest.raises(NotImplementedError, match="jvp"):
        jvp(Without.apply, (X,), (T,))
    with pytest.raises(NotImplementedError, match="backward"):
        grad(lambda x: Without.apply(x).sum())(X)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda x: x, "two returns"),
        (lambda x: (x, 0, 0), "two returns"),
        (lambda x: (x, (0, 0)), "incompatible"),
    ],
)
def test_results_of_vmap_that_do_not_fit(returned, words):
    class Bad(Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return returned(x * 1)

    with pytest.raises(RuntimeError, match=words):
        vmap(Bad.apply)(X)


@pytest.mark.parametrize(
    ("returned", "words"),
    [(lambda t: (t, t), "number of forward gradients"), (lambda t: t[:2], "size")],
)
def test_results_of_jvp_that_do_not_fit(returned, words):
    class Bad(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, t):
            return returned(t)

    with pytest.raises(RuntimeError, match=words):
        jvp(Bad.apply, (X,), (T,))
