"""Changes in place under autograd: version counters, what is refused, and gradients."""

import pytest
from package_under_test import F, assert_close, assert_equal, leaf

# -- version counters -----------------------------------------------------------------------------


def test_every_change_in_place_counts():
    x = F.zeros(3)
    assert x._version == 0
    x.add_(1.0)
    x.mul_(2.0)
    x.fill_(3.0)
    x[0] = 4.0
    x.copy_(F.ones(3))
    x.zero_()
    assert x._version == 6


def test_reading_does_not_count():
    x = F.ones(3)
    x + 1.0
    x.sum()
    x[0]
    assert x._version == 0


def test_views_share_the_version_of_their_base():
    x = F.ones(4)
    view = x[1:3]
    view.add_(1.0)
    assert x._version == 1 and view._version == 1
    x.add_(1.0)
    assert view._version == 2


def test_detach_shares_the_version_and_data_does_not():
    x = F.ones(4)
    detached, data = x.detach(), x.data
    x.add_(1.0)
    assert detached._version == 1 and data._version == 0
    data.add_(1.0)
    assert x._version == 1
    assert_equal(x, [3.0] * 4)


def test_clone_has_a_version_of_its_own():
    x = F.ones(4).add_(1.0)
    copy = x.clone()
    assert copy._version == 0
    x.add_(1.0)
    assert copy._version == 0


def test_out_counts_as_a_change():
    x = F.zeros(3)
    F.add(F.ones(3), F.ones(3), out=x)
    assert x._version == 1
    assert_equal(x, [2.0, 2.0, 2.0])


# -- changes after saving -------------------------------------------------------------------------

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace"


def test_a_change_of_a_saved_input_is_an_error():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y * y
    y.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_a_change_of_a_saved_result_is_an_error():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_a_change_of_a_tensor_that_was_not_saved_is_fine():
    x = leaf([1.0, 2.0])
    y = x.sin()
    y.add_(1.0).mul_(3.0)
    y.sum().backward()
    assert_close(x.grad, 3.0 * x.detach().cos())


def test_a_change_through_a_view_is_noticed():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y * y
    y[0].fill_(0.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_a_change_through_detach_is_noticed():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y * y
    y.detach().fill_(0.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_a_change_under_no_grad_is_noticed():
    x = leaf([1.0, 2.0])
    z = x * x
    with F.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_a_change_through_data_is_not_noticed():
    x = leaf([1.0, 2.0])
    z = x * x
    x.data.fill_(10.0)
    z.sum().backward()
    assert_equal(x.grad, [20.0, 20.0])


def test_a_constant_that_was_saved_is_watched_too():
    x, c = leaf([1.0, 2.0]), F.tensor([3.0, 4.0], dtype=F.float64)
    y = x * c
    c.add_(1.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_a_factor_that_no_gradient_needs_is_not_saved():
    x, c = leaf([1.0, 2.0]), F.tensor([3.0, 4.0], dtype=F.float64)
    y = c * 2.0
    z = x * y
    c.add_(1.0)
    z.sum().backward()
    assert_equal(x.grad, [6.0, 8.0])


def test_index_tensors_are_watched_too():
    x, index = leaf([1.0, 2.0, 3.0]), F.tensor([0, 2])
    y = x.index_select(0, index)
    index.zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


# -- leaves ---------------------------------------------------------------------------------------


def test_a_leaf_that_requires_grad_cannot_be_changed_in_place():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.zero_()
    assert x._version == 0
    assert_equal(x, [1.0, 2.0])


def test_a_view_of_a_leaf_that_requires_grad_cannot_be_changed_in_place():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0] = 1.0
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x.view(2, 1).add_(1.0)
    assert_equal(x, [1.0, 2.0])


def test_under_no_grad_a_leaf_can_be_changed():
    x = leaf([1.0, 2.0])
    with F.no_grad():
        x.add_(1.0)
        x[0] = 7.0
    assert x.is_leaf and x.requires_grad and x._version == 2
    assert_equal(x, [7.0, 3.0])


def test_a_leaf_without_grad_joins_the_graph_when_something_is_written_into_it():
    buffer, x = F.zeros(2, dtype=F.float64), leaf([1.0, 2.0])
    buffer.add_(x * 3.0)
    assert buffer.requires_grad and not buffer.is_leaf
    buffer.sum().backward()
    assert_equal(x.grad, [3.0, 3.0])


# -- gradients of changes in place ----------------------------------------------------------------


def test_a_chain_of_changes_in_place_has_the_right_gradient():
    x = leaf([1.0, 2.0])
    y = x.clone()
    y.mul_(3.0).add_(1.0).sub_(2.0).div_(4.0).neg_()
    y.sum().backward()
    assert_equal(x.grad, [-0.75, -0.75])


def test_in_place_operands_get_their_gradients():
    x, factor = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 1.0
    y.mul_(factor)
    y.sum().backward()
    assert_equal(x.grad, [3.0, 4.0])
    assert_equal(factor.grad, [1.0, 2.0])


def test_an_in_place_operand_may_be_broadcast():
    x, row = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([10.0, 20.0])
    y = x.clone()
    y.add_(row)
    y.mul_(row)
    y.sum().backward()
    assert_equal(x.grad, [[10.0, 20.0], [10.0, 20.0]])
    # d/dr sum (x + r) r = sum x + 2 n r
    assert_equal(row.grad, [44.0, 86.0])


def test_a_constant_divided_in_place_by_what_requires_grad():
    divisor = leaf([2.0, 4.0])
    quotient = F.tensor([1.0, 8.0], dtype=divisor.dtype).div_(divisor, rounding_mode=None)
    quotient.sum().backward()
    assert_close(divisor.grad, F.tensor([-0.25, -0.5], dtype=divisor.dtype))


def test_the_target_of_a_change_in_place_cannot_be_broadcast():
    y = F.zeros(2)
    with pytest.raises(RuntimeError, match="shape"):
        y.add_(F.ones(3, 2))
    assert_equal(y, [0.0, 0.0])


def test_augmented_assignment_is_in_place():
    x = leaf([1.0, 2.0])
    y = x.clone()
    same = y
    y *= 3.0
    y += 1.0
    y -= 1.0
    y /= 2.0
    assert y is same and y._version == 4
    y.sum().backward()
    assert_equal(x.grad, [1.5, 1.5])


def test_zero_and_fill_cut_the_gradient():
    x = leaf([1.0, 2.0])
    for cut in (lambda y: y.zero_(), lambda y: y.fill_(5.0)):
        y = x.clone()
        cut(y)
        y.sum().backward()
        assert_equal(x.grad, [0.0, 0.0])
        x.grad = None


def test_copy_moves_the_gradient_to_the_source():
    x, source = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x.clone()
    y.copy_(source)
    (y * y).sum().backward()
    assert_equal(x.grad, [0.0, 0.0])
    assert_equal(source.grad, [6.0, 8.0])


def test_copy_broadcasts_and_converts_the_source():
    source = F.tensor([3.0], requires_grad=True)
    y = F.zeros(2, 2, dtype=F.float64)
    y.copy_(source)
    y.sum().backward()
    assert source.grad.dtype == F.float32
    assert_equal(source.grad, [4.0])


def test_masked_fill_in_place():
    x, mask = leaf([1.0, 2.0, 3.0]), F.tensor([True, False, True])
    y = x * 2.0
    y.masked_fill_(mask, 9.0)
    assert_equal(y, [9.0, 4.0, 9.0])
    y.sum().backward()
    assert_equal(x.grad, [0.0, 2.0, 0.0])


def test_masked_fill_with_a_tensor_gives_it_a_gradient():
    x, value, mask = leaf([1.0, 2.0, 3.0]), leaf(9.0), F.tensor([True, False, True])
    y = x * 2.0
    y.masked_fill_(mask, value)
    (y * F.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert_equal(x.grad, [0.0, 20.0, 0.0])
    assert_equal(value.grad, F.tensor(101.0))


def test_index_put_in_place():
    x, values = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0])
    y = x * 2.0
    y.index_put_((F.tensor([0, 2]),), values)
    assert_equal(y, [10.0, 4.0, 20.0])
    (y * y).sum().backward()
    assert_equal(x.grad, [0.0, 16.0, 0.0])
    assert_equal(values.grad, [20.0, 40.0])


def test_index_put_with_accumulation():
    x, values = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0])
    y = x * 2.0
    y.index_put_((F.tensor([1, 1]),), values, accumulate=True)
    assert_equal(y, [2.0, 34.0, 6.0])
    (y * y).sum().backward()
    assert_equal(x.grad, [8.0, 136.0, 24.0])
    assert_equal(values.grad, [68.0, 68.0])


def test_assignment_with_a_mask_and_with_an_index_tensor():
    x, value = leaf([1.0, 2.0, 3.0]), leaf([5.0, 6.0])
    y = x.clone()
    y[F.tensor([True, False, True])] = value
    y[F.tensor([0])] = y[F.tensor([0])] * 2.0
    y.sum().backward()
    assert_equal(x.grad, [0.0, 1.0, 0.0])
    assert_equal(value.grad, [2.0, 1.0])


def test_scatter_in_place():
    x, source = leaf([1.0, 2.0, 3.0]), leaf([7.0, 8.0])
    y = x.clone()
    y.scatter_(0, F.tensor([2, 0]), source)
    assert_equal(y, [8.0, 2.0, 7.0])
    (y * F.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert_equal(x.grad, [0.0, 10.0, 0.0])
    assert_equal(source.grad, [100.0, 1.0])


def test_clamp_and_relu_in_place():
    x = leaf([-1.0, 0.5, 3.0])
    y = x.clone()
    y.clamp_(max=1.0)
    y = y + 0.0
    y.relu_()
    assert_equal(y, [0.0, 0.5, 1.0])
    y.sum().backward()
    assert_equal(x.grad, [0.0, 1.0, 0.0])


def test_the_old_and_the_new_value_can_both_be_used():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    before = y + 0.0
    y.mul_(5.0)
    (before + y).sum().backward()
    assert_equal(x.grad, [12.0, 12.0])


# -- .grad, .data, out= ---------------------------------------------------------------------------


def test_grad_must_fit_the_tensor():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="size"):
        x.grad = F.ones(3, dtype=F.float64)
    with pytest.raises(RuntimeError, match="type"):
        x.grad = F.ones(2, dtype=F.float32)
    with pytest.raises(TypeError, match="grad"):
        x.grad = 1.0
    assert x.grad is None


def test_a_tensor_cannot_be_its_own_grad():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x


def test_grad_keeps_the_identity_of_what_was_set():
    x, g = leaf([1.0]), F.ones(1, dtype=F.float64)
    x.grad = g
    assert x.grad is g


def test_data_reads_without_the_graph():
    x = leaf([1.0, 2.0])
    data = x.data
    assert not data.requires_grad and data.data_ptr() == x.data_ptr()
    assert not (data * 2.0).requires_grad


def test_data_can_be_replaced():
    x = leaf([1.0, 2.0])
    x.data = F.tensor([5.0, 6.0, 7.0], dtype=F.float64)
    assert x.is_leaf and x.requires_grad
    (x * x).sum().backward()
    assert_equal(x.grad, [10.0, 12.0, 14.0])


def test_a_gradient_step_through_data_does_not_disturb_the_graph():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    x.data.sub_(0.5 * x.grad)
    assert_equal(x, [0.0, 0.0])
    assert x.is_leaf


def test_out_refuses_arguments_that_require_grad():
    x, out = leaf([1.0, 2.0]), F.zeros(2, dtype=F.float64)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        F.mul(x, x, out=out)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        F.exp(F.ones(2, dtype=F.float64), out=leaf([1.0, 2.0]))
    with F.no_grad():
        F.mul(x, x, out=out)
    assert_equal(out, [1.0, 4.0])


def test_set_item_of_something_that_requires_grad_into_a_constant():
    x = leaf(3.0)
    buffer = F.zeros(3, dtype=F.float64)
    buffer[1] = x
    (buffer * 5.0).sum().backward()
    assert_equal(x.grad, F.tensor(5.0))


def test_an_integer_tensor_takes_no_gradient_from_what_is_copied_in():
    x = leaf([1.7, 2.2])
    y = F.zeros(2, dtype=F.int64)
    y.copy_(x)
    assert not y.requires_grad
    assert_equal(y, [1, 2])


def test_detaching_in_place_is_no_write():
    x = leaf([1.0, 2.0])
    y = x.exp()
    total = (y + 1.0).sum()
    before = y._version
    y.detach_()
    assert y._version == before and y.is_leaf and not y.requires_grad
    total.backward()
    assert_close(x.grad, F.exp(x.detach()))


def test_a_saved_tensor_that_was_detached_in_place_has_no_second_derivative():
    x = leaf([1.0, 2.0])
    y = x.exp()
    total = (y * y).sum()
    y.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        F.autograd.grad(total, x, create_graph=True)
    (slope,) = F.autograd.grad(total, x)
    assert_close(slope, 2.0 * F.exp(2.0 * x.detach()))


def test_requires_grad_of_a_result_is_not_assigned():
    y = leaf([1.0]) * 2.0
    for on in (True, False):
        with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
            y.requires_grad = on
    assert y.requires_grad_() is y
