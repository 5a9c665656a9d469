"""jvp, linearize and dual tensors: values, structures, modes, and what they refuse."""

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

jvp, linearize = F.func.jvp, F.func.linearize
forward_ad = F.autograd.forward_ad


def vector(*values):
    return F.tensor(values, dtype=F.float64)


X, Y, T = vector(0.5, 1.0, 2.0), vector(3.0, -1.0, 0.25), vector(1.0, 10.0, -2.0)


def test_value_and_derivative_in_one_pass():
    value, derivative = jvp(F.sin, (X,), (T,))
    assert_close(value, X.sin())
    assert_close(derivative, X.cos() * T)


def test_several_inputs():
    _, derivative = jvp(lambda x, y: x * y**2, (X, Y), (T, Y))
    assert_close(derivative, T * Y**2 + X * 2 * Y * Y)


def test_trees_of_inputs_and_outputs():
    def function(pair, more):
        return {"product": pair["a"] * pair["b"], "sums": (pair["a"].sum(), more[0])}

    value, derivative = jvp(function, ({"a": X, "b": Y}, [X]), ({"a": T, "b": T}, [Y]))
    assert_close(value["product"], X * Y)
    assert_close(derivative["product"], T * Y + X * T)
    assert_close(derivative["sums"][0], T.sum())
    assert_equal(derivative["sums"][1], Y)


def test_an_output_without_influence_has_the_tangent_zero():
    _value, derivative = jvp(lambda x: (x * 2, F.ones(2)), (X,), (T,))
    assert_equal(derivative[1], F.zeros(2))
    with pytest.raises(RuntimeError, match="strict=True"):
        jvp(lambda x: F.ones(2), (X,), (T,), strict=True)


def test_aux():
    _value, derivative, aux = jvp(lambda x: (x.sin(), {"y": x * 2}), (X,), (T,), has_aux=True)
    assert_close(derivative, X.cos() * T)
    assert_equal(aux["y"], X * 2)


def test_nested():
    def function(x):
        return x.sin() * x**2

    one = F.tensor(1.0, dtype=F.float64)

    def first(x):
        return jvp(function, (x,), (one,))[1]

    def second(x):
        return jvp(first, (x,), (one,))[1]

    x = F.tensor(0.7, dtype=F.float64)
    _, third = jvp(second, (x,), (one,))
    leaf = x.clone().requires_grad_()
    expected = function(leaf)
    for _ in range(3):
        (expected,) = F.autograd.grad(expected, leaf, create_graph=True)
    assert_close(third, expected.detach())


def test_inner_derivative_by_a_variable_of_the_outer_function():
    one = F.tensor(1.0)
    x = F.tensor(3.0)

    def outer(x):
        return x * jvp(lambda y: x + y, (F.tensor(1.0),), (one,))[1]

    assert_equal(jvp(outer, (x,), (one,))[1], 1.0)


def test_in_place_operators_and_views_inside():
    def function(x):
        y = x.clone()
        y[0] = x[1] * x[2]
        y[1:].mul_(3.0)
        y.add_(x)
        out = F.zeros(4, dtype=F.float64)
        out[1:] = y
        out[0] = x.sum()
        return out**2

    leaf = X.clone().requires_grad_()
    rows = [F.autograd.grad(o, leaf, retain_graph=True)[0] for o in function(leaf)]
    _, derivative = jvp(function, (X,), (T,))
    assert_close(derivative, F.stack(rows) @ T)


def test_writing_to_the_argument_changes_value_and_tangent():
    def function(x):
        x.mul_(3.0)
        x[:1].sin_()
        return x + 1

    _, derivative = jvp(function, (X.clone(),), (T.clone(),))
    assert_close(derivative, F.cat([(3 * X[:1]).cos() * 3 * T[:1], 3 * T[1:]]))


@pytest.mark.facula_only
def test_a_tensor_multiplied_by_itself_in_place():
    _, derivative = jvp(lambda x: x.mul_(x), (X.clone(),), (T.clone(),))
    assert_close(derivative, 2 * X * T)


def test_no_grad_does_not_stop_tangents():
    def function(x):
        with F.no_grad():
            return x**2

    assert_close(jvp(function, (X,), (T,))[1], 2 * X * T)
    with F.no_grad():
        assert_close(jvp(lambda x: x**2, (X,), (T,))[1], 2 * X * T)


def test_detach_drops_the_tangent():
    _, derivative = jvp(lambda x: x * x.detach(), (X,), (T,))
    assert_close(derivative, X * T)


def test_tangents_can_be_differentiated():
    x, t = X.clone().requires_grad_(), T.clone().requires_grad_()
    _, derivative = jvp(lambda x: x**3, (x,), (t,))
    gx, gt = F.autograd.grad(derivative.sum(), (x, t))
    assert_close(gx, 6 * X * T)
    assert_close(gt, 3 * X**2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.cumprod(0),
        lambda x: x.logsumexp(0),
        lambda x: x.prod(),
        lambda x: x.softmax(0),
        lambda x: x.std(),
        lambda x: x.norm(),
        lambda x: x.sort()[0] * x,
    ],
    ids=["cumprod", "logsumexp", "prod", "softmax", "std", "norm", "sort"],
)
def test_reverse_over_forward_of_operators_without_a_formula(function):
    """The derivative of x -> (J(x) t, v) by x, against two backward passes."""
    leaf = X.clone().requires_grad_()
    v = F.ones_like(function(X)) * 0.7
    (g,) = F.autograd.grad(function(leaf), leaf, v, create_graph=True)
    (expected,) = F.autograd.grad((g * T).sum(), leaf)
    x = X.clone().requires_grad_()
    _, derivative = jvp(function, (x,), (T,))
    (actual,) = F.autograd.grad((derivative * v).sum(), x)
    assert_close(actual, expected)


def test_complex_tangents():
    z = F.tensor([1.0 + 2.0j, -0.5j], dtype=F.complex128)
    t = F.tensor([0.5j, 1.0 + 1.0j], dtype=F.complex128)
    _, derivative = jvp(lambda z: z**2, (z,), (t,))
    assert_close(derivative, 2 * z * t)
    _, derivative = jvp(lambda z: z.conj() * z, (z,), (t,))
    assert_close(derivative, t.conj() * z + z.conj() * t)


def test_integer_results_have_no_tangent():
    value, derivative = jvp(lambda x: (x * 2, x.argmax()), (X,), (T,))
    assert value[1].item() == 2
    assert derivative[1].item() == 0


@pytest.mark.parametrize(
    ("primals", "tangents", "words"),
    [
        (X, (T,), "Expected primals to be a tuple"),
        ((X,), T, "same python structure"),
        ((X, X), (T,), "same python structure"),
        ((), (), "at least one Tensor"),
        ((3.0,), (T,), "Expected primals to only contain Tensors"),
        ((X,), (3.0,), "Expected tangents to only contain Tensors"),
        ((X,), (T[:2],), "different size"),
    ],
)
def test_arguments_that_do_not_fit(primals, tangents, words):
    with pytest.raises(RuntimeError, match=words):
        jvp(lambda *x: x[0], primals, tangents)


def test_arguments_must_be_continuous():
    with pytest.raises(ValueError, match="floating point or complex"):
        jvp(lambda x: x, (F.tensor([1, 2]),), (F.tensor([1.0, 2.0]),))


def test_outputs_that_do_not_fit():
    with pytest.raises(RuntimeError, match="only tensors, got unsupported type"):
        jvp(lambda x: (x, 3), (X,), (T,))
    with pytest.raises(RuntimeError, match="non-empty output"):
        jvp(lambda x: (), (X,), (T,))
    with pytest.raises(RuntimeError, match=r"should be a tuple: \(output, aux\)"):
        jvp(lambda x: x, (X,), (T,), has_aux=True)


# ---- linearize


def test_linearize_gives_the_jvp_at_a_point():
    def function(x, y):
        return {"product": x * y, "sine": x.sin().sum()}

    output, jvp_fn = linearize(function, X, Y)
    assert_close(output["product"], X * Y)
    for t in (T, 2 * T):
        result = jvp_fn(t, Y)
        _, expected = jvp(function, (X, Y), (t, Y))
        assert_close(result["product"], expected["product"])
        assert_close(result["sine"], expected["sine"])


def test_linearize_runs_under_vmap():
    _, jvp_fn = linearize(lambda x: x**2, X)
    assert_close(F.func.vmap(jvp_fn)(F.eye(3, dtype=F.float64)), F.diag(2 * X))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch evaluates the function twice")
def test_linearize_evaluates_the_function_once():
    calls = []
    _, jvp_fn = linearize(lambda x: (calls.append(1), x**2)[1], X)
    jvp_fn(T)
    jvp_fn(T)
    assert calls == [1]


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch traces tensors only")
def test_linearize_of_outputs_without_derivative():
    output, jvp_fn = linearize(lambda x: (x * 2, x.argmax(), "name"), X)
    assert output[1].item() == 2 and output[2] == "name"
    tangent, index, name = jvp_fn(T)
    assert_equal(tangent, 2 * T)
    assert index.item() == 0 and name == "name"


def test_linearize_checks_tangents():
    _, jvp_fn = linearize(F.sin, X)
    with pytest.raises(RuntimeError, match="same argspec"):
        jvp_fn(T, T)
    with pytest.raises(RuntimeError, match="shape"):
        jvp_fn(T[:2])
    with pytest.raises(RuntimeError, match="dtype"):
        jvp_fn(T.to(F.float32))


# ---- forward_ad


def test_dual_tensors_carry_tangents():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, T)
        value, tangent = forward_ad.unpack_dual(dual.sin() * 2)
    assert_close(value, 2 * X.sin())
    assert_close(tangent, 2 * X.cos() * T)


def test_unpack_gives_a_named_tuple():
    with forward_ad.dual_level():
        unpacked = forward_ad.unpack_dual(forward_ad.make_dual(X, T))
        assert isinstance(unpacked, forward_ad.UnpackedDualTensor)
        assert_equal(unpacked.primal, X)
        assert_equal(unpacked.tangent, T)
        assert forward_ad.unpack_dual(X).tangent is None
    assert forward_ad.unpack_dual(X).tangent is None


def test_tangents_end_with_their_level():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, T)
        kept = dual * 2
    assert forward_ad.unpack_dual(dual).tangent is None
    assert_equal(kept + 1, X * 2 + 1)
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(kept * 2).tangent is None


def test_levels_are_numbered():
    with forward_ad.dual_level() as level:
        assert level == 0
        dual = forward_ad.make_dual(X, T, level=level)
        assert_equal(forward_ad.unpack_dual(dual, level=0).tangent, T)
    level = forward_ad.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        forward_ad.exit_dual_level(level=level + 1)
    forward_ad.exit_dual_level(level=level)
    with pytest.raises(RuntimeError):
        forward_ad.exit_dual_level()


def test_dual_level_decorates():
    @forward_ad.dual_level()
    def slope(x):
        return forward_ad.unpack_dual(forward_ad.make_dual(x, F.ones_like(x)) ** 2).tangent

    assert_close(slope(X), 2 * X)
    assert_close(slope(Y), 2 * Y)


@pytest.mark.facula_only
def test_levels_nest():
    one = F.ones((), dtype=F.float64)
    x = F.tensor(3.0, dtype=F.float64)
    with forward_ad.dual_level():
        outer = forward_ad.make_dual(x, one)
        with forward_ad.dual_level():
            inner = forward_ad.make_dual(outer, one)
            first = forward_ad.unpack_dual(inner**3).tangent
        second = forward_ad.unpack_dual(first).tangent
        assert_close(jvp(lambda y: outer * y, (x,), (one,))[1] + 0, outer + 0)
    assert_close(second, 18.0)


def test_a_dual_tensor_has_the_graph_of_its_value():
    x = X.clone().requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, T)
        assert dual.requires_grad
        assert not forward_ad.make_dual(X, T).requires_grad
        value, tangent = forward_ad.unpack_dual(dual**3)
    gv, gt = (F.autograd.grad(t.sum(), x, retain_graph=True)[0] for t in (value, tangent))
    assert_close(gv, 3 * X**2)
    assert_close(gt, 6 * X * T)


def test_forward_over_reverse_with_the_plain_tape():
    x, w = X.clone().requires_grad_(), Y.clone().requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, T)
        output = (w * dual**3).sum()
        for source in (dual, x):
            (gradient,) = F.autograd.grad(output, source, create_graph=True)
            value, tangent = forward_ad.unpack_dual(gradient)
            assert_close(value, 3 * Y * X**2)
            assert_close(tangent, 6 * Y * X * T)
        (gradient,) = F.autograd.grad(output, w)
        assert_close(forward_ad.unpack_dual(gradient).tangent, 3 * X**2 * T)


def test_set_fwd_grad_enabled_switches_tangents_off():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, T)
        with forward_ad._set_fwd_grad_enabled(False):
            assert forward_ad.unpack_dual(dual * 2).tangent is None
        assert_equal(forward_ad.unpack_dual(dual * 2).tangent, T * 2)


def test_captured_tensors_may_take_tangents():
    b = F.zeros(3, dtype=F.float64)
    with forward_ad.dual_level():
        b.copy_(forward_ad.make_dual(X, T))
        assert_equal(forward_ad.unpack_dual(b).tangent, T)
    assert_equal(b, X)


def test_writes_to_a_view_reach_the_tangent_of_its_base():
    b = F.zeros(2, 3, dtype=F.float64)
    with forward_ad.dual_level():
        row = b[0]
        row.add_(forward_ad.make_dual(X, T))
        tangent = forward_ad.unpack_dual(b).tangent
        assert_equal(tangent, F.stack([T, T * 0]))


@pytest.mark.facula_only
def test_dual_level_inside_vmap():
    def slope(x, t):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(x, t) ** 2).tangent

    assert_close(F.func.vmap(slope)(X, T), 2 * X * T)
    assert_close(F.func.vmap(slope, in_dims=(None, 0))(X[0], T), 2 * X[0] * T)


@pytest.mark.facula_only
def test_dual_level_around_vmap():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, T)
        assert_close(forward_ad.unpack_dual(F.func.vmap(F.sin)(dual)).tangent, X.cos() * T)

        def slope(x, t):
            return forward_ad.unpack_dual(forward_ad.make_dual(x, t) ** 2).tangent

        assert_close(F.func.vmap(slope)(X, T), 2 * X * T)


def test_prints_the_tangent():
    with forward_ad.dual_level():
        text = repr(forward_ad.make_dual(F.tensor([1.0]), F.tensor([2.0])))
    assert text == "tensor([1.], tangent=tensor([2.]))"


def test_make_dual_checks_its_arguments():
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(X, T)
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            forward_ad.make_dual(X, T[:2])
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            forward_ad.make_dual(F.tensor([1]), F.tensor([1.0]))
        with pytest.raises(ValueError, match="Expected tangent to be floating point"):
            forward_ad.make_dual(F.tensor([1.0]), F.tensor([1]))
        dual = forward_ad.make_dual(X, T)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            forward_ad.make_dual(dual, T)
        with pytest.raises(RuntimeError, match="itself has a forward gradient"):
            forward_ad.make_dual(X, dual)


# ---- results that are written to


def broadcast_then_rows(x):
    y = F.ones(5, 3) + x
    y[0].zero_()
    y[1] = 7.0
    y[2].mul_(3)
    return y


def layer_then_views(x):
    y = F.nn.functional.linear(F.ones(5, 4), F.ones(3, 4), x)
    y.mul_(3)
    y.view(-1)[:4].mul_(2)
    return y


def sum_then_product(x):
    y = x + 1
    y.mul_(2)
    return F.cat([x, y])


def difference_then_element(x):
    y = x - 1
    y[0] = 5.0
    return F.cat([x, y])


def added_then_element(x):
    y = F.zeros(3)
    y.add_(x)
    y[0] = 9.0
    return F.cat([x, y])


def transposed_then_row(x):
    y = F.zeros(4, 3).t() + x[:, None]
    y[0].zero_()
    return y


WRITTEN = (
    broadcast_then_rows,
    layer_then_views,
    sum_then_product,
    difference_then_element,
    added_then_element,
    transposed_then_row,
)


@pytest.mark.parametrize("function", WRITTEN, ids=lambda f: f.__name__)
def test_writing_to_a_result_changes_its_own_tangent_only(function):
    x = F.tensor([1.0, 2.0, 3.0])
    backward = F.func.jacrev(function)(x)
    assert F.func.jacfwd(function)(x).tolist() == backward.tolist()
    direction = F.tensor([1.0, -1.0, 2.0])
    tangent = F.func.jvp(function, (x,), (direction,))[1]
    assert tangent.tolist() == (backward @ direction).tolist()


@pytest.mark.parametrize("function", [broadcast_then_rows, lambda x: F.ones(5, 3) + x])
def test_tangents_lie_like_their_results(function):
    x = F.ones(3)
    out, tangent = F.func.jvp(function, (x,), (F.ones(1).expand(3),))
    assert tangent.stride() == out.stride()


def test_integers_do_not_move():
    x, t = F.tensor([1.5, 2.5]), F.ones(2)
    value, tangent = F.func.jvp(lambda x: x.long(), (x,), (t,))
    assert value.tolist() == [1, 2] and tangent.tolist() == [0, 0]
    assert F.func.jvp(lambda x: x.long() * x, (x,), (t,))[1].tolist() == [1.0, 2.0]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        assert forward_ad.unpack_dual(dual.long()).tangent is None
