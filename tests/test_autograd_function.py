"""autograd.Function: both styles, its context, and what it refuses."""

import gc
import weakref

import pytest
from package_under_test import F, assert_close, assert_equal, leaf

Function = F.autograd.Function
once_differentiable = F.autograd.function.once_differentiable


class Cube(Function):
    """x^3 in the old style, where forward takes the context."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3.0 * x**2


class CubeWithSetup(Function):
    """x^3 in the new style, where setup_context fills the context."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx, grad):
        x, _ = ctx.saved_tensors
        return grad * 3.0 * x**2


both_styles = pytest.mark.parametrize("function", [Cube, CubeWithSetup], ids=["old", "new"])


# -- values and derivatives -----------------------------------------------------------------------


@both_styles
def test_forward_and_backward(function):
    x = leaf([1.0, 2.0])
    y = function.apply(x)
    assert_equal(y, [1.0, 8.0])
    assert y.requires_grad and not y.is_leaf
    (y * 2.0).sum().backward()
    assert_equal(x.grad, [6.0, 24.0])


@both_styles
def test_second_and_third_derivatives_through_a_custom_backward(function):
    x = leaf([1.0, 2.0])
    (first,) = F.autograd.grad(function.apply(x).sum(), x, create_graph=True)
    (second,) = F.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = F.autograd.grad(second.sum(), x)
    assert_equal(first, [3.0, 12.0])
    assert_equal(second, [6.0, 12.0])
    assert_equal(third, [6.0, 6.0])


@both_styles
def test_no_graph_without_an_input_that_requires_grad(function):
    y = function.apply(F.ones(2))
    assert not y.requires_grad and y.grad_fn is None
    with F.no_grad():
        assert not function.apply(leaf([1.0])).requires_grad


def test_the_node_is_named_after_the_class():
    y = Cube.apply(leaf([1.0]))
    assert y.grad_fn.name() == "CubeBackward"
    assert isinstance(y.grad_fn, F.autograd.graph.Node)


def test_forward_runs_without_recording():
    modes = []

    class Noting(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(F.is_grad_enabled())
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            modes.append(F.is_grad_enabled())
            return grad * 2.0

    x = leaf([1.0])
    y = Noting.apply(x)
    y.backward()
    F.autograd.grad(Noting.apply(x), x, create_graph=True)
    assert modes == [False, False, False, True]


def test_vjp_is_another_name_for_backward():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2.0

    x = leaf([1.0])
    Double.apply(x).backward()
    assert_equal(x.grad, [2.0])


def test_functions_compose_with_operators_and_themselves():
    x = leaf([0.5])
    y = Cube.apply(Cube.apply(x * 2.0).sin())
    y.backward()
    d = x.detach() * 2.0
    inner = d**3
    assert_close(x.grad, 3 * inner.sin() ** 2 * inner.cos() * 3 * d**2 * 2.0)


# -- arguments ------------------------------------------------------------------------------------


def test_other_arguments_pass_through_and_get_none():
    seen = []

    class Scale(Function):
        @staticmethod
        def forward(ctx, name, x, factor, options):
            seen.append((name, options))
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return None, grad * ctx.factor, None, None

    x = leaf([1.0, 2.0])
    options = {"key": [1, 2]}
    Scale.apply("name", x, 3.0, options).sum().backward()
    assert_equal(x.grad, [3.0, 3.0])
    assert seen[0][0] == "name" and seen[0][1] is options


def test_trailing_nones_are_allowed_for_default_arguments():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor=3.0):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf([1.0])
    Scale.apply(x).backward()
    Scale.apply(x, 4.0).backward()
    assert_equal(x.grad, [7.0])


def test_needs_input_grad_tells_which_gradients_are_wanted():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y, number):
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            needs_x, needs_y, _ = ctx.needs_input_grad
            return grad * y if needs_x else None, grad * x if needs_y else None, None

    x, y = leaf([2.0]), F.tensor([3.0], dtype=F.float64)
    Product.apply(x, y, 1.0).backward()
    assert_equal(x.grad, [3.0])
    assert seen == [(True, False, False)] * 2


def test_keyword_only_arguments_are_refused():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, *, factor):
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(TypeError, match="keyword"):
        Scale.apply(leaf([1.0]), factor=2.0)


def test_none_is_a_gradient_of_zero():
    class Ignore(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x, y = leaf([1.0]), leaf([2.0])
    Ignore.apply(x, y * 2.0).backward()
    assert_equal(x.grad, [1.0])
    assert y.grad is None


# -- outputs --------------------------------------------------------------------------------------


class SumAndProduct(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y, "text", x * y

    @staticmethod
    def backward(ctx, grad_sum, grad_text, grad_product):
        assert grad_text is None
        x, y = ctx.saved_tensors
        return grad_sum + grad_product * y, grad_sum + grad_product * x


def test_several_outputs_and_other_values():
    x, y = leaf([2.0]), leaf([3.0])
    total, text, product = SumAndProduct.apply(x, y)
    assert text == "text"
    assert total.grad_fn is product.grad_fn
    assert (total.output_nr, product.output_nr) == (0, 2)
    (total * 10.0 + product).backward()
    assert_equal(x.grad, [13.0])
    assert_equal(y.grad, [12.0])


def test_the_gradient_of_an_unused_output_is_zeros():
    x, y = leaf([2.0]), leaf([3.0])
    SumAndProduct.apply(x, y)[2].backward()
    assert_equal(x.grad, [3.0])
    assert_equal(y.grad, [2.0])


def test_without_materialized_grads_the_gradient_of_an_unused_output_is_none():
    seen = []

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, first, second):
            seen.append((first, second))
            return second * 3.0

    x = leaf([1.0])
    Twice.apply(x)[1].backward()
    assert seen[0][0] is None
    assert_equal(seen[0][1], [1.0])
    assert_equal(x.grad, [3.0])


def test_a_single_output_in_a_tuple_stays_in_a_tuple():
    class One(Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2.0,)

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2.0,)

    x = leaf([1.0])
    result = One.apply(x)
    assert isinstance(result, tuple)
    result[0].backward()
    assert_equal(x.grad, [2.0])


def test_an_input_may_be_returned():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5.0

    x = leaf([1.0])
    y = Identity.apply(x)
    assert y is not x and not y.is_leaf and y.data_ptr() == x.data_ptr()
    y.backward()
    assert_equal(x.grad, [5.0])


def test_non_differentiable_outputs_do_not_require_grad():
    class SortedWithMask(Function):
        @staticmethod
        def forward(ctx, x):
            mask = (x > 0.0).to(x.dtype)
            ctx.save_for_backward(mask)
            ctx.mark_non_differentiable(mask)
            return x * mask, mask

        @staticmethod
        def backward(ctx, grad, grad_mask):
            assert_equal(grad_mask, [0.0, 0.0])
            (mask,) = ctx.saved_tensors
            return grad * mask

    x = leaf([1.0, -1.0])
    y, mask = SortedWithMask.apply(x)
    assert y.requires_grad and not mask.requires_grad and mask.grad_fn is None
    (y + mask).sum().backward()
    assert_equal(x.grad, [1.0, 0.0])


def test_integer_outputs_do_not_require_grad():
    class Count(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0, (x > 0.0).long()

        @staticmethod
        def backward(ctx, grad, grad_count):
            return grad * 2.0

    x = leaf([1.0])
    y, count = Count.apply(x)
    assert not count.requires_grad
    y.backward()
    assert_equal(x.grad, [2.0])


# -- changes in place -----------------------------------------------------------------------------


class DoubleInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2.0)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


def test_a_dirty_input_is_the_output():
    x = leaf([1.0, 2.0])
    y = x.clone()
    result = DoubleInPlace.apply(y)
    assert result is y
    assert y.grad_fn.name() == "DoubleInPlaceBackward" and y._version >= 1
    assert_equal(y, [2.0, 4.0])
    (y * y).sum().backward()
    assert_equal(x.grad, [8.0, 16.0])


def test_a_dirty_leaf_is_refused():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        DoubleInPlace.apply(leaf([1.0]))


def test_a_dirty_view_changes_the_history_of_its_base():
    x = leaf([1.0, 2.0])
    y = x.clone()
    DoubleInPlace.apply(y[0])
    assert_equal(y, [2.0, 2.0])
    y.sum().backward()
    assert_equal(x.grad, [2.0, 1.0])


def test_a_dirty_input_must_be_returned():
    class Forgets(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2.0)
            ctx.mark_dirty(x)
            return x + 0.0

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="dirty"):
        Forgets.apply(leaf([1.0]).clone())


# -- saved values ---------------------------------------------------------------------------------


def test_saved_inputs_are_watched_for_changes():
    x = leaf([1.0])
    y = x.clone()
    z = Cube.apply(y)
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_saved_outputs_are_watched_for_changes():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = leaf([1.0])
    y = Exp.apply(x)
    (y * 2.0).backward(retain_graph=True)
    assert_close(x.grad, 2.0 * x.detach().exp())
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_saved_tensors_are_freed_by_backward():
    x = leaf([1.0])
    y = Cube.apply(x)
    assert y.grad_fn.saved_tensors[0] is x
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn.saved_tensors  # noqa: B018


def test_none_and_intermediate_tensors_can_be_saved():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, F.tensor([0.5], dtype=F.float64))
            return x * 0.5

        @staticmethod
        def backward(ctx, grad):
            nothing, half = ctx.saved_tensors
            assert nothing is None
            return grad * half

    x = leaf([1.0])
    Half.apply(x).backward()
    assert_equal(x.grad, [0.5])


def test_only_tensors_can_be_saved():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(TypeError, match="save_for_backward"):
        Wrong.apply(leaf([1.0]))


def test_a_function_that_saves_its_output_is_freed_without_the_collector():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            ctx.token = token_of_this_run.pop()
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    class Token:
        pass

    token = Token()
    reference = weakref.ref(token)
    token_of_this_run = [token]
    del token
    gc.disable()
    try:
        y = Exp.apply(leaf([1.0]))
        assert reference() is not None
        del y
        assert reference() is None
    finally:
        gc.enable()


# -- the context ----------------------------------------------------------------------------------


def test_each_call_has_a_context_of_its_own():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf([1.0])
    (Scale.apply(x, 2.0) + Scale.apply(x, 3.0)).backward()
    assert_equal(x.grad, [5.0])


def test_the_context_is_the_node():
    class Marked(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark = "here"
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Marked.apply(leaf([1.0]))
    assert y.grad_fn.mark == "here"
    y.grad_fn.other = 3
    assert y.grad_fn.other == 3


def test_the_context_reads_and_writes_attributes():
    values = []

    class Attributes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.number, ctx.name = 3, "n"
            with pytest.raises(AttributeError):
                ctx.missing  # noqa: B018
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            values.append((ctx.number, ctx.name))
            ctx.number += 1
            return grad

    y = Attributes.apply(leaf([1.0]))
    y.backward(retain_graph=True)
    y.backward()
    assert values == [(3, "n"), (4, "n")]


def test_setup_context_sees_inputs_and_outputs():
    seen = []

    class Noting(Function):
        @staticmethod
        def forward(x, number):
            return x * number, x + number

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((len(inputs), inputs[1], len(output)))
            ctx.number = inputs[1]

        @staticmethod
        def backward(ctx, product, total):
            return product * ctx.number + total, None

    x = leaf([1.0])
    product, total = Noting.apply(x, 4.0)
    (product + total).backward()
    assert_equal(x.grad, [5.0])
    assert seen == [(2, 4.0, 2)]


# -- differentiable once --------------------------------------------------------------------------


class OnceCube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        assert not F.is_grad_enabled()
        (x,) = ctx.saved_tensors
        return grad * 3.0 * x**2


def test_a_function_that_is_differentiable_once_has_a_first_derivative():
    x = leaf([2.0])
    OnceCube.apply(x).backward()
    assert_equal(x.grad, [12.0])


def test_a_function_that_is_differentiable_once_refuses_the_second_derivative():
    x = leaf([2.0])
    (first,) = F.autograd.grad(OnceCube.apply(x) ** 2, x, create_graph=True)
    assert_equal(first, [192.0])
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


# -- what is refused ------------------------------------------------------------------------------


def returning(result):
    class Returning(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return result(grad)

    return Returning.apply


def test_the_number_of_gradients_must_be_right():
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        returning(lambda grad: (grad, grad))(leaf([1.0])).backward()


def test_gradients_must_be_tensors_or_none():
    with pytest.raises((TypeError, RuntimeError), match="str"):
        returning(lambda grad: "text")(leaf([1.0])).backward()


def test_gradients_must_have_the_shape_of_the_input():
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0.*5.*3"):
        returning(lambda grad: F.ones(5, dtype=F.float64))(leaf([1.0, 2.0, 3.0])).sum().backward()


def test_gradients_are_summed_to_the_shape_of_the_input_if_that_can_be():
    x = leaf([1.0])
    returning(lambda grad: F.ones(4, 1, dtype=F.float64))(x).backward()
    assert_equal(x.grad, [4.0])


def test_gradients_are_converted_to_the_dtype_of_the_input():
    x = leaf([1.0])
    returning(lambda grad: F.ones(1, dtype=F.float32))(x).backward()
    assert x.grad.dtype == F.float64


def test_a_function_without_backward_is_refused_in_backward():
    class ForwardOnly(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

    y = ForwardOnly.apply(leaf([1.0]))
    with pytest.raises(NotImplementedError, match="backward"):
        y.backward()


def test_a_function_without_forward_is_refused():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(leaf([1.0]))


def test_exceptions_in_forward_and_backward_come_through():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x, where):
            if where == "forward":
                raise KeyError("in forward")
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            raise LookupError("in backward")

    x = leaf([1.0])
    with pytest.raises(KeyError, match="in forward"):
        Failing.apply(x, "forward")
    assert F.is_grad_enabled()
    y = Failing.apply(x, "backward")
    with pytest.raises(LookupError, match="in backward"):
        y.backward()
    assert F.is_grad_enabled() and x.grad is None


# -- forward mode ---------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(F.autograd, "forward_ad"), reason="needs forward mode")
def test_jvp_gives_the_derivative_in_forward_mode():
    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x.sin()

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * ctx.saved_tensors[0].cos()

    forward_ad = F.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(F.tensor([0.5]), F.tensor([2.0]))
        primal, tangent = forward_ad.unpack_dual(Sine.apply(x))
    assert_close(primal, F.tensor([0.5]).sin())
    assert_close(tangent, 2.0 * F.tensor([0.5]).cos())


# -- writing to what a Function returns ------------------------------------------------------------


class _Doubled(F.autograd.Function):
    """Changes its argument in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


class _Reversed(F.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return -grad


def test_an_input_returned_as_it_is_cannot_be_written_to_which_would_go_round_the_function():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    out = _Reversed.apply(y)
    with pytest.raises(RuntimeError, match="custom Function"):
        out.add_(1.0)
    assert y.tolist() == [1.0, 2.0]
    out = _Reversed.apply(y).clone().add_(1.0)
    out.sum().backward()
    assert_equal(x.grad, [-1.0, -1.0])
    with F.no_grad():
        _Reversed.apply(x * 1.0).add_(1.0)


def test_an_input_returned_as_it_is_cannot_be_used_after_the_input_was_written_to():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    out = _Reversed.apply(y)
    before = out * 3.0
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="its base or another view of its base"):
        out * 3.0
    before.sum().backward()
    assert_equal(x.grad, [-3.0, -3.0])


def test_a_view_of_a_leaf_cannot_be_marked_dirty():
    with pytest.raises(RuntimeError, match="view of a leaf"):
        _Doubled.apply(leaf([1.0, 2.0])[:1])
    with pytest.raises(RuntimeError, match="leaf"):
        _Doubled.apply(leaf([1.0, 2.0]))


def test_marking_something_dirty_that_is_no_input_warns():
    class Product(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2.0

    x = leaf([1.0, 2.0])
    with pytest.warns(UserWarning, match="not an input"):
        y = Product.apply(x)
    y.sum().backward()
    assert_equal(x.grad, [2.0, 2.0])


def test_a_view_of_an_input_that_is_marked_as_non_differentiable_requires_no_grad():
    class Part(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            part = x[:1]
            ctx.mark_non_differentiable(part)
            return x * 2.0, part

        @staticmethod
        def backward(ctx, grad, _):
            return grad * 2.0

    y, part = Part.apply(leaf([1.0, 2.0]))
    assert y.requires_grad and not part.requires_grad and part.tolist() == [1.0]


def test_names_of_old_programs_on_the_context_warn_and_work():
    class Square(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            with pytest.warns(FutureWarning, match="mark_shared_storage"):
                ctx.mark_shared_storage((x, x))
            return x * x

        @staticmethod
        def backward(ctx, grad):
            with pytest.warns(DeprecationWarning, match="saved_variables"):
                (x,) = ctx.saved_variables
            return 2.0 * x * grad

    x = leaf([1.0, 3.0])
    Square.apply(x).sum().backward()
    assert_equal(x.grad, [2.0, 6.0])


def test_mark_dirty_counts_a_write_that_nobody_saw():
    class Exp(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values = x.detach().numpy()
            values[:] = 7
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf([1.0, 2.0]) * 1
    squares = x * x
    before = x._version
    Exp.apply(x)
    assert x._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.sum().backward()
