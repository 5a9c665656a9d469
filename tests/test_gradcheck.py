"""gradcheck accepts right derivatives, rejects wrong ones and says where they are wrong."""

import pytest
from package_under_test import F, facula_module, leaf

module = facula_module("autograd.gradcheck")
gradcheck, gradgradcheck, GradcheckError = (
    module.gradcheck,
    module.gradgradcheck,
    module.GradcheckError,
)

needs_forward_mode = pytest.mark.skipif(
    not hasattr(F.autograd, "forward_ad"),
    reason="forward-mode derivatives come with the function transforms",
)
both_modes = pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])


def complex_leaf(*shape):
    F.manual_seed(0)
    return F.randn(*shape, dtype=F.complex128).requires_grad_()


def real_leaf(*shape):
    F.manual_seed(0)
    return F.randn(*shape, dtype=F.float64).requires_grad_()


def custom(forward, backward):
    """A one-argument function with the given forward and backward(x, grad)."""

    class Custom(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, *grads):
            (x,) = ctx.saved_tensors
            return backward(x, *grads)

    return Custom.apply


@both_modes
@pytest.mark.parametrize(
    "func",
    [
        F.sin,
        lambda x: x * x.exp(),
        lambda x: x.sum(),
        lambda x: x @ x.t(),
        lambda x: x,
        lambda x: x[0],
        lambda x: x.t(),
        lambda x: (x.cos(), x.sum(0)),
        lambda x: [x.cos(), x.sum(0)],
    ],
)
def test_right_real_derivatives_are_accepted(func, fast):
    assert gradcheck(func, (real_leaf(3, 3),), fast_mode=fast) is True


@both_modes
@pytest.mark.parametrize(
    "func",
    [
        lambda z: z * z,
        lambda z: z * z.conj(),
        lambda z: z.abs(),
        lambda z: z.real,
        lambda z: z.imag,
        lambda z: z.exp(),
        lambda z: z @ z,
        lambda z: (z.real * z.imag, z.conj() * 1j),
    ],
)
def test_right_complex_derivatives_are_accepted(func, fast):
    assert gradcheck(func, (complex_leaf(2, 2),), fast_mode=fast)


@both_modes
def test_real_inputs_with_complex_outputs_are_accepted(fast):
    a, b = leaf([0.5, -1.0]), leaf([2.0, 3.0])
    assert gradcheck(lambda a, b: F.complex(a, b) * (1 + 2j), (a, b), fast_mode=fast)


@both_modes
def test_a_bare_tensor_is_one_input(fast):
    assert gradcheck(F.exp, leaf([0.5, -1.0]), fast_mode=fast)


@both_modes
def test_zero_dimensional_and_empty_inputs_are_accepted(fast):
    assert gradcheck(lambda x: x**3, leaf(2.0), fast_mode=fast)
    assert gradcheck(
        lambda x: x * 2.0, F.zeros(0, dtype=F.float64).requires_grad_(), fast_mode=fast
    )


@both_modes
def test_other_arguments_are_passed_through(fast):
    x, constant, index = leaf([0.5, -1.0]), F.tensor([2.0, 3.0]).double(), F.tensor([1, 0])
    seen = []

    def func(x, constant, index, flag, name):
        seen.append((flag, name))
        return (x * constant)[index]

    assert gradcheck(func, (x, constant, index, True, "name"), fast_mode=fast)
    assert set(seen) == {(True, "name")}


@both_modes
def test_an_output_that_does_not_depend_on_an_input_is_accepted(fast):
    x, y = leaf([0.5, -1.0]), leaf([2.0])
    assert gradcheck(lambda x, y: (x * 2.0, y * x), (x, y), fast_mode=fast)
    assert gradcheck(lambda x, y: x * 2.0, (x, y), fast_mode=fast)


@both_modes
def test_integer_outputs_are_ignored(fast):
    assert gradcheck(lambda x: (x * x, (x > 0).long()), leaf([0.5, -1.0]), fast_mode=fast)


@both_modes
def test_a_wrong_real_derivative_is_rejected(fast):
    wrong = custom(lambda x: x.sin(), lambda x, grad: grad * x.sin())
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input"
    ):
        gradcheck(wrong, leaf([0.5, 2.0]), fast_mode=fast)
    assert gradcheck(wrong, leaf([0.5, 2.0]), fast_mode=fast, raise_exception=False) is False


@both_modes
def test_a_forgotten_conjugate_is_rejected(fast):
    right = custom(lambda z: z * z, lambda z, grad: grad * 2 * z.conj())
    wrong = custom(lambda z: z * z, lambda z, grad: grad * 2 * z)
    assert gradcheck(right, complex_leaf(3), fast_mode=fast)
    with pytest.raises(GradcheckError):
        gradcheck(wrong, complex_leaf(3), fast_mode=fast)


@both_modes
def test_a_wrong_derivative_of_the_second_input_is_rejected(fast):
    class Product(F.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            _, y = ctx.saved_tensors
            return grad * y, grad * y

    with pytest.raises(GradcheckError, match="with respect to input 1"):
        gradcheck(Product.apply, (leaf([0.5, 2.0]), leaf([1.5, -2.0])), fast_mode=fast)


def test_the_error_names_the_worst_entry():
    def backward(x, grad):
        result = grad.clone()
        result[1, 0] = 3 * grad[1, 0]
        return result

    wrong = custom(lambda x: x.clone(), backward)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong, real_leaf(2, 2))
    assert "d output[1, 0] / d input[1, 0] is 1 by finite differences and 3 by" in str(caught.value)


def test_an_output_that_was_cut_from_the_graph_is_rejected():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2.0, leaf([0.5, 2.0]))


def test_a_constant_function_is_accepted():
    assert gradcheck(lambda x: F.ones(2), leaf([0.5, 2.0]))


def test_a_backward_that_adds_a_constant_is_rejected():
    # Right for every single projection that is compared with a tolerance above the constant.
    wrong = custom(lambda x: x.clone(), lambda x, grad: grad + 1e-6)
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(wrong, leaf([0.5, 2.0]))


def test_a_backward_that_changes_from_run_to_run_is_rejected():
    runs = []

    def backward(x, grad):
        runs.append(None)
        return grad * (1.0 + 1e-7 * len(runs))

    unsteady = custom(lambda x: x.clone(), backward)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(unsteady, leaf([0.5, 2.0]))
    assert gradcheck(unsteady, leaf([0.5, 2.0]), nondet_tol=1e-3)


def without_materialized_grads(backward):
    class TwoOutputs(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2.0, x * 3.0

    TwoOutputs.backward = staticmethod(lambda ctx, a, b: backward(a, b))
    return TwoOutputs.apply


def test_a_backward_that_does_not_accept_undefined_gradients_is_rejected():
    def careful(a, b):
        if a is None and b is None:
            return None
        return (0.0 if a is None else a * 2.0) + (0.0 if b is None else b * 3.0)

    def careless(a, b):
        if a is None or b is None:
            raise RuntimeError("a gradient is missing")
        return a * 2.0 + b * 3.0

    x = leaf([0.5, 2.0])
    # Single outputs are differentiated by an engine that leaves the other gradient undefined, so
    # the careless one fails on the way; all that counts is that it does not pass.
    assert gradcheck(without_materialized_grads(careful), x)
    with pytest.raises(RuntimeError, match="a gradient is missing"):
        gradcheck(without_materialized_grads(careless), x)


def test_undefined_gradients_of_a_single_output_are_checked():
    class Careless(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            if grad is None:
                raise RuntimeError("a gradient is missing")
            return grad * 2.0

    x = leaf([0.5, 2.0])
    with pytest.raises(GradcheckError, match="undefined gradient"):
        gradcheck(Careless.apply, x)
    assert gradcheck(Careless.apply, x, check_undefined_grad=False)


@both_modes
def test_the_inputs_are_restored_bit_by_bit(fast):
    x, z = real_leaf(3), complex_leaf(3)
    before = x.detach().clone(), z.detach().clone()
    version = x._version
    gradcheck(lambda x, z: x * z, (x, z), fast_mode=fast)
    assert bool((x == before[0]).all()) and bool((z == before[1]).all())
    assert x.grad is None and z.grad is None
    assert x._version == version


def test_the_inputs_are_restored_when_the_function_raises():
    x = leaf([0.5, 2.0])
    calls = []

    def func(x):
        calls.append(None)
        if len(calls) == 4:
            raise KeyError("inside")
        return x * 2.0

    with pytest.raises(KeyError):
        gradcheck(func, x)
    assert x.tolist() == [0.5, 2.0]


@both_modes
def test_a_function_may_reach_its_input_through_a_closure(fast):
    x = leaf([0.5, 2.0])
    assert gradcheck(lambda _: x * x, x, fast_mode=fast)


@both_modes
def test_inputs_may_be_views_and_results_of_operators(fast):
    base = real_leaf(4, 4)
    assert gradcheck(lambda x: x.sin(), base[::2, 1:3], fast_mode=fast)
    assert gradcheck(lambda x: x.sin(), base * 2.0, fast_mode=fast)
    assert gradcheck(lambda x: x.sin(), base.t(), fast_mode=fast)


def test_inputs_without_requires_grad_are_refused():
    with pytest.raises(ValueError, match="require"):
        gradcheck(F.sin, F.ones(2, dtype=F.float64))


def test_expanded_inputs_are_refused():
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(F.sin, leaf([0.5]).expand(3))


def test_single_precision_warns():
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(F.sin, leaf([0.5, 2.0], F.float32), eps=1e-2, atol=1e-2)


def test_some_derivative_has_to_be_checked():
    with pytest.raises(ValueError, match="check_backward_ad"):
        gradcheck(F.sin, leaf([0.5]), check_backward_ad=False)
    with pytest.raises(ValueError, match="check_forward_ad"):
        gradcheck(F.sin, leaf([0.5]), check_batched_forward_grad=True)


@both_modes
def test_the_global_random_state_is_left_alone(fast):
    F.manual_seed(7)
    state = F.get_rng_state()
    gradcheck(F.sin, leaf([0.5, 2.0]), fast_mode=fast)
    assert bool((F.get_rng_state() == state).all())


@both_modes
def test_batched_gradients_are_accepted(fast):
    x, y = leaf([0.5, 2.0]), leaf([1.0])
    assert gradcheck(lambda x, y: x.exp() * x, (x, y), check_batched_grad=True, fast_mode=fast)


@both_modes
@pytest.mark.parametrize(
    "func",
    [
        lambda x: x**3,
        lambda x: x.sin() * x,
        lambda x: (x.exp(), x.sum(0)),
        lambda x: x @ x,
        lambda x: x * 2.0,
    ],
)
def test_right_second_derivatives_are_accepted(func, fast):
    assert gradgradcheck(func, (real_leaf(2, 2),), fast_mode=fast)


@both_modes
def test_right_second_complex_derivatives_are_accepted(fast):
    assert gradgradcheck(lambda z: z * z * z.conj(), complex_leaf(3), fast_mode=fast)
    assert gradgradcheck(lambda z: z.abs(), complex_leaf(3), fast_mode=fast)


@both_modes
def test_a_wrong_second_derivative_is_rejected(fast):
    # The gradient is right, but it hides its dependence on x.
    wrong = custom(lambda x: x**3, lambda x, grad: grad * 3.0 * x.detach() ** 2)
    x = leaf([0.5, 2.0])
    assert gradcheck(wrong, x, fast_mode=fast)
    with pytest.raises(GradcheckError):
        gradgradcheck(wrong, x, fast_mode=fast)
    assert gradgradcheck(wrong, x, fast_mode=fast, raise_exception=False) is False


def test_second_derivatives_take_given_and_non_contiguous_gradients():
    x = real_leaf(2, 2)
    grad = leaf([[1.0, 2.0], [3.0, 4.0]])
    assert gradgradcheck(lambda x: x.sin(), x, grad)
    assert gradgradcheck(lambda x: x.sin(), (x,), (grad,))
    layouts = []

    class Sine(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            layouts.append(grad.is_contiguous())
            return grad * ctx.saved_tensors[0].cos()

    assert gradgradcheck(Sine.apply, x, gen_non_contig_grad_outputs=True)
    assert False in layouts


def test_gradcheck_error_is_a_runtime_error():
    assert issubclass(GradcheckError, RuntimeError)


@needs_forward_mode
@both_modes
def test_forward_mode_derivatives_are_checked(fast):
    x, z = leaf([0.5, 2.0]), complex_leaf(2)
    assert gradcheck(lambda x, z: (x * z, x.sin()), (x, z), check_forward_ad=True, fast_mode=fast)
    assert gradcheck(
        lambda x: x.sin() * x,
        (x,),
        check_forward_ad=True,
        check_backward_ad=False,
        check_batched_forward_grad=True,
        fast_mode=fast,
    )
    assert gradgradcheck(lambda x: x**3, x, check_fwd_over_rev=True, fast_mode=fast)


@needs_forward_mode
@both_modes
def test_a_wrong_forward_mode_derivative_is_rejected(fast):
    class Sine(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0].cos()

        @staticmethod
        def jvp(ctx, tangent):
            return -tangent * ctx.saved_tensors[0].cos()

    assert gradcheck(Sine.apply, leaf([0.5, 2.0]), fast_mode=fast)
    with pytest.raises(GradcheckError, match="forward mode"):
        gradcheck(Sine.apply, leaf([0.5, 2.0]), check_forward_ad=True, fast_mode=fast)
