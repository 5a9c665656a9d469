"""backward and grad: values, accumulation, graph retention, higher derivatives, leaves."""

import pytest
from package_under_test import F, assert_close, assert_equal, leaf


def grad(*args, **kwargs):
    return F.autograd.grad(*args, **kwargs)


# -- backward and accumulation --------------------------------------------------------------------


def test_backward_fills_the_grad_of_leaves():
    x, y = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    (x * y + x).sum().backward()
    assert_equal(x.grad, [5.0, 6.0, 7.0])
    assert_equal(y.grad, [1.0, 2.0, 3.0])
    assert x.grad.dtype == F.float64 and not x.grad.requires_grad


def test_grad_is_none_before_the_first_backward():
    x = leaf([1.0])
    assert x.grad is None
    x.sum()
    assert x.grad is None


def test_backward_accumulates_into_grad():
    x = leaf([1.0, 2.0])
    (x * 3.0).sum().backward()
    (x * 4.0).sum().backward()
    assert_equal(x.grad, [7.0, 7.0])


def test_accumulation_adds_in_place_to_the_grad_that_is_there():
    x = leaf([1.0, 2.0])
    (x * 3.0).sum().backward()
    first = x.grad
    (x * 4.0).sum().backward()
    assert x.grad is first
    assert_equal(first, [7.0, 7.0])


def test_accumulation_with_create_graph_replaces_the_grad():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert_equal(first, [2.0, 4.0])
    assert_equal(x.grad, [4.0, 8.0])
    assert x.grad.requires_grad


def test_grad_can_be_cleared_and_set():
    x = leaf([1.0, 2.0])
    (x * 3.0).sum().backward()
    x.grad = None
    assert x.grad is None
    x.grad = F.tensor([10.0, 20.0], dtype=F.float64)
    (x * 3.0).sum().backward()
    assert_equal(x.grad, [13.0, 23.0])


def test_grad_is_not_shared_with_the_incoming_gradient():
    x = leaf([1.0, 2.0])
    incoming = F.tensor([3.0, 4.0], dtype=F.float64)
    x.clone().backward(incoming)
    incoming.mul_(100.0)
    assert_equal(x.grad, [3.0, 4.0])


def test_grads_of_two_leaves_do_not_share_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    x.grad.mul_(100.0)
    assert_equal(y.grad, [1.0, 1.0])


def test_a_tensor_used_several_times_gets_the_sum():
    x = leaf([2.0])
    (x * x * x).backward()
    assert_equal(x.grad, [12.0])


def test_only_inputs_that_require_grad_get_one():
    x, y = leaf([1.0]), F.tensor([2.0], dtype=F.float64)
    (x * y).backward()
    assert_equal(x.grad, [2.0])
    assert y.grad is None


def test_the_result_requires_grad_if_an_input_does():
    x, y = leaf([1.0]), F.tensor([2.0], dtype=F.float64)
    assert (x * y).requires_grad and (x * y).grad_fn is not None
    assert not (y * y).requires_grad and (y * y).grad_fn is None
    assert not (x > 0).requires_grad


def test_backward_takes_the_incoming_gradient():
    x = leaf([1.0, 2.0])
    (x * x).backward(F.tensor([1.0, 10.0], dtype=F.float64))
    assert_equal(x.grad, [2.0, 40.0])


def test_backward_of_a_tensor_without_one_element_needs_a_gradient():
    x = leaf([1.0, 2.0])
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        (x * x).backward()


def test_backward_of_one_element_in_any_shape_needs_no_gradient():
    x = leaf([[2.0]])
    (x * x).backward()
    assert_equal(x.grad, [[4.0]])


def test_backward_of_a_leaf_itself():
    x = leaf(2.0)
    x.backward()
    assert_equal(x.grad, F.tensor(1.0))


def test_backward_with_inputs_fills_only_these():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * y).sum().backward(inputs=[x])
    assert_equal(x.grad, [3.0, 4.0])
    assert y.grad is None


def test_backward_with_inputs_accepts_a_single_tensor_and_non_leaves():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.retain_grad()
    (y * y).sum().backward(inputs=y)
    assert_equal(y.grad, [4.0, 8.0])
    assert x.grad is None


def test_backward_with_empty_inputs_is_refused():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * x).backward(inputs=[])


def test_autograd_backward_takes_several_roots():
    x, y = leaf([1.0, 2.0]), leaf(3.0)
    F.autograd.backward([x * 2.0, y * y], [F.ones(2, dtype=F.float64), None])
    assert_equal(x.grad, [2.0, 2.0])
    assert_equal(y.grad, F.tensor(6.0))


def test_autograd_backward_takes_the_same_root_twice():
    x = leaf(3.0)
    y = x * x
    F.autograd.backward([y, y])
    assert_equal(x.grad, F.tensor(12.0))


# -- graph retention ------------------------------------------------------------------------------


def test_a_second_backward_needs_retain_graph():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_retain_graph_allows_a_second_backward():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_equal(x.grad, [4.0, 8.0])
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_second_backward_is_fine_where_nothing_was_saved():
    x = leaf([1.0, 2.0])
    y = (x + 1.0).sum()
    y.backward()
    y.backward()
    assert_equal(x.grad, [2.0, 2.0])


@pytest.mark.parametrize("product", [lambda x: x * 2.0, lambda x: 2.0 * x, lambda x: x / 2.0])
def test_a_second_backward_through_a_multiple_raises_on_whichever_side_the_number_is(product):
    y = product(leaf([1.0, 2.0])).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_create_graph_retains_the_graph():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    grad(y, x, create_graph=True)
    assert_equal(grad(y, x)[0], [2.0, 4.0])


def test_create_graph_without_retain_graph_frees():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    (first,) = grad(y, x, create_graph=True, retain_graph=False)
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_shared_part_of_two_graphs_is_freed_by_the_first_backward():
    x = leaf([1.0, 2.0])
    shared = x.exp()
    first, second = (shared * 2.0).sum(), (shared * 3.0).sum()
    first.backward()
    with pytest.raises(RuntimeError, match="second time"):
        second.backward()


# -- higher derivatives ---------------------------------------------------------------------------


def test_derivatives_to_the_third_order():
    x = leaf([0.5, 2.0])
    (first,) = grad((x**4).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x, create_graph=True)
    (fourth,) = grad(third.sum(), x)
    d = x.detach()
    assert_close(first, 4 * d**3)
    assert_close(second, 12 * d**2)
    assert_close(third, 24 * d)
    assert_close(fourth, [24.0, 24.0])


def test_third_derivative_of_a_composition():
    x = leaf([0.3, -0.7])
    value = x.sin().exp()
    for _ in range(3):
        (value,) = grad(value.sum(), x, create_graph=True)
    d = x.detach()
    s, c = d.sin(), d.cos()
    assert_close(value, d.sin().exp() * c * (c * c - 3 * s - 1))


def test_mixed_second_derivatives_are_symmetric():
    x, y = leaf(0.5), leaf(2.0)
    f = (x * y).sin() * x
    dx, dy = grad(f, (x, y), create_graph=True)
    assert_close(grad(dx, y, retain_graph=True)[0], grad(dy, x)[0])


def test_without_create_graph_the_gradient_is_a_constant():
    x = leaf([1.0, 2.0])
    (first,) = grad((x**3).sum(), x)
    assert not first.requires_grad and first.grad_fn is None


def test_a_hessian_vector_product():
    x = leaf([1.0, 2.0, 3.0])
    v = F.tensor([1.0, 0.0, -1.0], dtype=F.float64)
    f = (x[0] * x[1] * x[2]) + (x**2).sum()
    (g,) = grad(f, x, create_graph=True)
    (product,) = grad((g * v).sum(), x)
    hessian = F.tensor([[2.0, 3.0, 2.0], [3.0, 2.0, 1.0], [2.0, 1.0, 2.0]], dtype=F.float64)
    assert_close(product, hessian @ v)


# -- autograd.grad --------------------------------------------------------------------------------


def test_grad_returns_a_tuple_and_touches_no_grad_attribute():
    x = leaf([1.0, 2.0])
    result = grad((x * x).sum(), x)
    assert isinstance(result, tuple) and len(result) == 1
    assert_equal(result[0], [2.0, 4.0])
    assert x.grad is None


def test_grad_of_several_outputs_is_the_sum():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    dx, dy = grad([(x * y).sum(), (x * x).sum()], [x, y])
    assert_equal(dx, [5.0, 8.0])
    assert_equal(dy, [1.0, 2.0])


def test_grad_outputs_weigh_the_outputs():
    x = leaf([1.0, 2.0])
    weights = (F.tensor([1.0, 10.0], dtype=F.float64), None)
    (dx,) = grad((x * x, x.sum()), x, weights)
    assert_equal(dx, [3.0, 41.0])


def test_grad_with_respect_to_a_non_leaf():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    z = (y * y).sum()
    dy, dx = grad(z, (y, x))
    assert_equal(dy, [6.0, 12.0])
    assert_equal(dx, [18.0, 36.0])


def test_grad_with_respect_to_the_output_itself():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    (dy,) = grad(y, y)
    assert_equal(dy, F.tensor(1.0))


def test_the_same_input_may_be_named_twice():
    x = leaf([1.0, 2.0])
    first, second = grad((x * x).sum(), (x, x))
    assert_equal(first, [2.0, 4.0])
    assert_equal(second, [2.0, 4.0])


def test_grad_of_an_unused_input_is_an_error():
    x, y = leaf([1.0]), leaf([2.0])
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x * 2.0, y)


def test_allow_unused_gives_none():
    x, y = leaf([1.0]), leaf([2.0])
    dx, dy = grad(x * 2.0, (x, y), allow_unused=True)
    assert_equal(dx, [2.0])
    assert dy is None


def test_materialize_grads_gives_zeros():
    x, y = leaf([1.0]), leaf([[2.0, 3.0]])
    dx, dy = grad(x * 2.0, (x, y), materialize_grads=True)
    assert_equal(dx, [2.0])
    assert_equal(dy, [[0.0, 0.0]])


def test_materialize_grads_contradicts_allow_unused_false():
    x = leaf([1.0])
    with pytest.raises(ValueError, match="allow_unused"):
        grad(x * 2.0, x, allow_unused=False, materialize_grads=True)


def test_grad_of_an_input_that_does_not_require_grad_is_an_error():
    x, y = leaf([1.0]), F.tensor([2.0], dtype=F.float64)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(x * y, y)


def test_batched_gradients_give_a_jacobian():
    x = leaf([1.0, 2.0, 3.0])
    y = x * x
    (jacobian,) = grad(y, x, F.eye(3, dtype=F.float64), is_grads_batched=True)
    assert_equal(jacobian, [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]])


def test_batched_gradients_of_a_matrix_product():
    a, b = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
    y = a @ b
    batch = F.arange(12, dtype=F.float64).reshape(3, 2, 2)
    da, db = grad(y, (a, b), batch, is_grads_batched=True, retain_graph=True)
    for i in range(3):
        one_da, one_db = grad(y, (a, b), batch[i], retain_graph=True)
        assert_close(da[i], one_da)
        assert_close(db[i], one_db)


def test_grad_goes_no_further_than_its_inputs():
    visited = []
    x = leaf([1.0])
    y = x * 2.0
    y.register_hook(lambda g: visited.append("y"))
    z = y * 3.0
    z.register_hook(lambda g: visited.append("z"))
    grad(z * 4.0, z)
    assert visited == ["z"]


def test_grad_leaves_the_branches_it_does_not_need():
    visited = []
    x, y = leaf([1.0]), leaf([2.0])
    a, b = x * 2.0, y * 3.0
    b.register_hook(lambda g: visited.append("b"))
    (dx,) = grad(a * b, x)
    assert_equal(dx, [12.0])
    assert visited == []


# -- leaves, detach, requires_grad ----------------------------------------------------------------


def test_leaves_are_the_tensors_that_no_recorded_operation_made():
    x = leaf([1.0])
    plain = F.ones(2)
    assert x.is_leaf and plain.is_leaf and (plain * 2).is_leaf
    assert not (x * 2.0).is_leaf
    assert x.detach().is_leaf
    assert x.grad_fn is None


def test_detach_shares_memory_and_stops_gradients():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    d = y.detach()
    assert not d.requires_grad and d.grad_fn is None
    assert d.data_ptr() == y.data_ptr()
    (d * x).sum().backward()
    assert_equal(x.grad, [3.0, 6.0])


def test_detach_in_place_cuts_a_tensor_from_its_graph():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad


def test_detach_in_place_is_refused_on_views():
    x = leaf([1.0, 2.0])
    view = (x * 3.0)[:1]
    with pytest.raises(RuntimeError, match="detach"):
        view.detach_()


def test_requires_grad_can_be_turned_on_and_off_on_leaves():
    x = F.ones(2)
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad_(False)
    assert not x.requires_grad
    x.requires_grad = True
    assert x.requires_grad


def test_requires_grad_cannot_be_turned_off_on_non_leaves():
    y = leaf([1.0]) * 2.0
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    y.requires_grad_(True)
    assert y.requires_grad


@pytest.mark.parametrize("dtype", [F.int64, F.int32, F.uint8, F.bool])
def test_integer_tensors_cannot_require_grad(dtype):
    with pytest.raises(RuntimeError, match="floating point"):
        F.ones(2, dtype=dtype).requires_grad_()
    with pytest.raises(RuntimeError, match="floating point"):
        F.ones(2, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("dtype", [F.float16, F.bfloat16, F.float32, F.float64, F.complex64])
def test_floating_and_complex_tensors_can_require_grad(dtype):
    assert F.ones(2, dtype=dtype, requires_grad=True).requires_grad


def test_gradients_pass_through_changes_of_dtype():
    x = F.tensor([1.0, 2.0], requires_grad=True)
    (x.double() * F.tensor([0.5, 0.25], dtype=F.float64)).sum().backward()
    assert x.grad.dtype == F.float32
    assert_equal(x.grad, [0.5, 0.25])
    x.to(F.bfloat16).sum().backward()
    assert_equal(x.grad, [1.5, 1.25])


def test_a_change_to_an_integer_dtype_ends_the_graph():
    assert not leaf([1.5]).long().requires_grad


def test_gradients_of_broadcast_operands_are_summed_to_their_shape():
    x, y, z = leaf([[1.0], [2.0]]), leaf([3.0, 4.0, 5.0]), leaf(2.0)
    (x * y * z).sum().backward()
    assert_equal(x.grad, [[24.0], [24.0]])
    assert_equal(y.grad, [6.0, 6.0, 6.0])
    assert_equal(z.grad, F.tensor(36.0))


def test_gradients_of_a_zero_size_tensor_have_its_shape():
    x = F.zeros(0, 3, dtype=F.float64, requires_grad=True)
    (x * 2.0).sum().backward()
    assert tuple(x.grad.shape) == (0, 3)


def test_the_grad_of_a_non_leaf_is_kept_only_when_asked_for():
    x = leaf([1.0, 2.0])
    y, z = x * 2.0, x * 3.0
    y.retain_grad()
    assert y.retains_grad and not z.retains_grad
    (y * z).sum().backward()
    assert_equal(y.grad, [3.0, 6.0])
    with pytest.warns(UserWarning, match="non-leaf Tensor"):
        assert z.grad is None


def test_retain_grad_accumulates_like_a_leaf():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert_equal(y.grad, [8.0, 16.0])


def test_retain_grad_of_a_leaf_changes_nothing():
    x = leaf([1.0])
    x.retain_grad()
    assert not x.retains_grad
    (x * 2.0).backward()
    assert_equal(x.grad, [2.0])


def test_retain_grad_needs_requires_grad():
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        F.ones(2).retain_grad()


def test_the_numbers_of_a_tensor_on_the_tape_are_read_through_detach():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    assert x.detach().numpy().tolist() == [1.0]


# -- the dtype of gradients ------------------------------------------------------------------------


def test_gradients_have_the_dtype_of_their_leaf_unless_it_says_otherwise():
    x = F.ones(2, dtype=F.bfloat16, requires_grad=True)
    assert x.grad_dtype == F.bfloat16
    total = (x * 2.0).sum()
    x.grad_dtype = F.float32  # also for graphs that exist
    seen = []
    x.register_hook(lambda grad: seen.append(grad.dtype))
    total.backward()
    (x * 3.0).sum().backward()
    assert x.grad.dtype == F.float32 and x.grad.tolist() == [5.0, 5.0]
    assert F.autograd.grad((x * 2.0).sum(), x)[0].dtype == F.float32
    assert set(seen) == {F.float32}
    assert x.detach().grad_dtype == F.bfloat16


def test_a_leaf_that_asks_for_no_dtype_takes_gradients_as_they_come():
    class Wide(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            return grad.double()

    for dtype, expected in ((None, F.float64), (F.float32, F.float32)):
        x = F.ones(2, requires_grad=True)
        x.grad_dtype = dtype
        assert x.grad_dtype == dtype
        Wide.apply(x).sum().backward()
        assert x.grad.dtype == expected


def test_grad_dtype_says_which_gradients_may_be_assigned():
    x = F.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad"):
        x.grad = F.ones(2, dtype=F.float64)
    x.grad_dtype = F.float64
    x.grad = F.ones(2, dtype=F.float64)
    with pytest.raises(RuntimeError, match="grad"):
        x.grad = F.ones(2)
    with pytest.raises(RuntimeError, match="already a gradient"):
        x.grad_dtype = F.float16
    x.grad_dtype = None
    x.grad = F.ones(2)


def test_grad_dtype_is_that_of_leaves_and_a_dtype():
    y = F.ones(2, requires_grad=True) * 2.0
    with pytest.raises(RuntimeError, match="leaf"):
        y.grad_dtype  # noqa: B018
    with pytest.raises(RuntimeError, match="leaf"):
        y.grad_dtype = F.float64
    with pytest.raises(RuntimeError, match="dtype or None"):
        F.ones(2).grad_dtype = "float64"


def test_an_optimizer_steps_by_gradients_of_another_dtype():
    x = F.ones(2, dtype=F.bfloat16, requires_grad=True)
    x.grad_dtype = F.float32
    (x * 2.0).sum().backward()
    F.optim.SGD([x], lr=0.25).step()
    assert x.dtype == F.bfloat16 and x.tolist() == [0.5, 0.5]


def test_requires_grad_takes_a_bool():
    for wrong in ("yes", 1, None):
        with pytest.raises(TypeError, match="must be bool"):
            F.ones(2).requires_grad_(wrong)


def test_backward_takes_an_edge_of_the_graph_as_input():
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    edge = F.autograd.graph.get_gradient_edge(x)
    F.autograd.backward((x * y).sum(), inputs=[edge])
    assert_equal(x.grad, [1.0, 2.0])
    assert y.grad is None
