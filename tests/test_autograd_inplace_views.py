"""Views under autograd, and changes in place through views and of their bases."""

import pytest
from package_under_test import F, assert_close, assert_equal, leaf

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace"


def matrix():
    """A non-leaf copy of a leaf, and the leaf."""
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return x, x.clone()


def name_of(tensor):
    return tensor.grad_fn.name().rpartition("::")[2]


def test_views_know_their_base():
    x = F.zeros(2, 3)
    view = x[0]
    assert view._is_view() and view._base is x
    assert view[1:]._base is x, "a view of a view has the base of both"
    assert not x._is_view() and x._base is None
    assert not x.clone()._is_view()


def test_the_result_of_an_operator_is_not_a_view():
    x = F.zeros(2, 3)
    assert not (x + 1.0)._is_view()
    assert not x[F.tensor([0])]._is_view()


@pytest.mark.parametrize(
    "make_view",
    [
        lambda x: x[0],
        lambda x: x[:, 1:],
        lambda x: x.view(6),
        lambda x: x.reshape(3, 2),
        lambda x: x.t(),
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(1, 0),
        lambda x: x.unsqueeze(0),
        lambda x: x.select(0, 1),
        lambda x: x.narrow(1, 0, 2),
        lambda x: x.diagonal(),
        lambda x: x.expand(2, 3),
        lambda x: x.squeeze(),
        lambda x: x.detach(),
    ],
)
def test_view_operators_share_memory_with_their_base(make_view):
    x = F.zeros(2, 3)
    view = make_view(x)
    view.fill_(1.0)
    assert float(x.sum()) == view.numel()


CHANGES = {
    "slice": lambda y: y[:, 1:].mul_(3.0),
    "row": lambda y: y[0].mul_(3.0),
    "element": lambda y: y[1, 2].mul_(3.0),
    "select": lambda y: y.select(1, 2).mul_(3.0),
    "narrow": lambda y: y.narrow(1, 0, 2).mul_(3.0),
    "steps": lambda y: y[:, ::2].mul_(3.0),
    "transpose": lambda y: y.t()[1:].mul_(3.0),
    "permute": lambda y: y.permute(1, 0)[0].mul_(3.0),
    "view": lambda y: y.view(6)[1:5].mul_(3.0),
    "diagonal": lambda y: y.diagonal().mul_(3.0),
    "unsqueeze": lambda y: y.unsqueeze(1)[:, 0, 1:].mul_(3.0),
    "squeeze": lambda y: y[:1].squeeze(0)[1].mul_(3.0),
    "chain": lambda y: y[:, 1:].t()[1].view(2, 1)[0].mul_(3.0),
    "whole": lambda y: y[:].mul_(3.0),
    "product of rows": lambda y: y[0].mul_(y[1].clone()),
    "assignment": lambda y: y.__setitem__((0, slice(None)), y[1] * 2.0),
    "assignment of a number": lambda y: y.__setitem__((slice(None), 1), 5.0),
    "two changes": lambda y: (y[0].mul_(3.0), y[:, 0].add_(y[:, 1])),
    "change of base after the view": lambda y: (y[0], y.mul_(3.0)),
    "augmented": lambda y: y[:, 1].__imul__(4.0),
    "fill": lambda y: y[0].fill_(2.0),
    "zero": lambda y: y[1, 1:].zero_(),
    "copy": lambda y: y[0].copy_(y[1].clone() ** 2),
    "copy of a number": lambda y: y[0].copy_(y[1, 1]),
    "masked fill": lambda y: y[0].masked_fill_(F.tensor([True, False, True]), 1.0),
    "index put": lambda y: y[0].index_put_((F.tensor([0, 2]),), y[1, :2]),
    "broadcast operand": lambda y: y[:, 1:].mul_(y[:, :1].clone()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_through_a_view_gives_the_gradient_of_finite_differences(change):
    def function(x):
        y = x * 1.0
        change(y)
        return y

    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    weights = F.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], dtype=F.float64)
    (function(x) * weights).sum().backward()
    numerical = F.zeros(2, 3, dtype=F.float64)
    with F.no_grad():
        for i in range(2):
            for j in range(3):
                step = F.zeros(2, 3, dtype=F.float64)
                step[i, j] = 1e-6
                change_of_sum = (function(x + step) - function(x - step)) * weights
                numerical[i, j] = change_of_sum.sum() / 2e-6
    assert_close(x.grad, numerical, rtol=1e-7, atol=1e-7)


def test_a_change_through_a_view_rebases_the_history_of_the_base():
    _, y = matrix()
    assert name_of(y) == "CloneBackward0"
    y[0].mul_(2.0)
    assert name_of(y) == "CopySlices"


def test_the_changed_view_gets_the_right_gradient_function():
    x, y = matrix()
    view = y[0]
    before = view.grad_fn
    view.mul_(3.0)
    assert view.grad_fn is not before
    assert view._is_view() and view._base is y
    view.sum().backward()
    assert_equal(x.grad, [[3.0, 3.0, 3.0], [0.0, 0.0, 0.0]])


def test_a_view_made_before_its_base_changed_sees_the_change():
    x, y = matrix()
    view = y[0]
    y.mul_(3.0)
    assert_equal(view, [3.0, 6.0, 9.0])
    view.sum().backward()
    assert_equal(x.grad, [[3.0, 3.0, 3.0], [0.0, 0.0, 0.0]])


def test_a_view_of_a_buffer_joins_the_graph_with_its_base():
    buffer, x = F.ones(2, 3, dtype=F.float64), leaf([1.0, 2.0, 3.0])
    view = buffer[1]
    assert not view.requires_grad
    buffer.mul_(x)
    assert view.requires_grad and view.grad_fn is not None
    (view * view).sum().backward()
    assert_equal(x.grad, [2.0, 4.0, 6.0])


def test_a_view_sees_changes_through_another_view():
    x, y = matrix()
    row, column = y[0], y[:, 1]
    row.mul_(2.0)
    column.mul_(5.0)
    assert_equal(row, [2.0, 20.0, 6.0])
    row.sum().backward()
    assert_equal(x.grad, [[2.0, 10.0, 2.0], [0.0, 0.0, 0.0]])


def test_a_leaf_view_changes_its_leaf_base():
    buffer, x = F.zeros(2, 3, dtype=F.float64), leaf([1.0, 2.0, 3.0])
    view = buffer[0]
    view.add_(x * x)
    assert buffer.requires_grad and view.requires_grad
    assert name_of(buffer) == "CopySlices"
    (buffer * 2.0).sum().backward()
    assert_equal(x.grad, [4.0, 8.0, 12.0])


def test_rows_can_be_filled_one_by_one():
    x = leaf([1.0, 2.0, 3.0])
    buffer = F.zeros(3, 3, dtype=F.float64)
    for i in range(3):
        buffer[i] = x * float(i + 1)
    assert_equal(buffer[2], [3.0, 6.0, 9.0])
    (buffer * buffer).sum().backward()
    assert_equal(x.grad, [28.0, 56.0, 84.0])


def test_a_recurrence_in_place():
    # y[t] = a y[t-1], so y[3] = a^3 y[0].
    start, a = leaf(2.0), leaf(3.0)
    y = F.zeros(4, dtype=F.float64)
    y[0] = start
    for t in range(1, 4):
        y[t] = y[t - 1].clone() * a
    y[3].backward()
    assert_equal(start.grad, F.tensor(27.0))
    assert_equal(a.grad, F.tensor(54.0))


def test_views_can_be_changed_in_a_graph_with_second_derivatives():
    x = leaf([1.0, 2.0, 3.0])
    y = x * x
    y[1:].mul_(x[:2])
    (first,) = F.autograd.grad((y * y).sum(), x, create_graph=True)
    # f = x0^4 + x1^4 x0^2 + x2^4 x1^2
    x0, x1, x2 = 1.0, 2.0, 3.0
    assert_close(
        first,
        [4 * x0**3 + 2 * x0 * x1**4, 4 * x1**3 * x0**2 + 2 * x1 * x2**4, 4 * x2**3 * x1**2],
    )
    (second,) = F.autograd.grad(first[0], x)
    assert_close(second, [12 * x0**2 + 2 * x1**4, 8 * x0 * x1**3, 0.0])


def test_the_value_saved_by_a_view_is_watched():
    _, y = matrix()
    z = y[0] * y[0]
    y[1].mul_(2.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


def test_a_change_in_place_of_an_expanded_tensor_is_refused():
    x = F.ones(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.expand(3).add_(1.0)
    assert_equal(x, [1.0])


# -- views that retain their gradient --------------------------------------------------------------


@pytest.mark.parametrize("write", ["base", "view", "another view", "twice"])
def test_a_view_retains_its_gradient_after_a_write(write):
    x, y = matrix()
    view = y[0]
    view.retain_grad()
    if write == "base":
        y.mul_(2.0)
    elif write == "view":
        view.mul_(2.0)
    elif write == "another view":
        y[:, 1:].mul_(2.0)
    else:
        y.add_(1.0)
        view.mul_(2.0)
    (view * F.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert_equal(view.grad, [1.0, 10.0, 100.0])
    factor = {"another view": [1.0, 2.0, 2.0]}.get(write, [2.0, 2.0, 2.0])
    assert_equal(x.grad[0], F.tensor(factor) * F.tensor([1.0, 10.0, 100.0]))


# -- views and grad modes -------------------------------------------------------------------------


def test_a_view_made_under_no_grad_cannot_be_changed_with_grad():
    _, y = matrix()
    with F.no_grad():
        view = y[0]
    with pytest.raises(RuntimeError, match="no_grad mode and is being modified inplace"):
        view.mul_(2.0)


def test_a_view_made_under_no_grad_can_be_changed_under_no_grad():
    x, y = matrix()
    with F.no_grad():
        view = y[0]
        view.mul_(2.0)
    y.sum().backward()
    assert_equal(y[0], [2.0, 4.0, 6.0])
    assert_equal(x.grad, F.ones(2, 3))


def test_a_view_made_under_no_grad_has_no_history():
    x, y = matrix()
    with F.no_grad():
        view = y[0]
    assert view.grad_fn is None and view._is_view()
    (view * leaf([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad is None


def test_a_view_made_under_no_grad_requires_grad_like_its_base():
    for x in (leaf([1.0, 2.0]), leaf([1.0, 2.0]) * 1.0):
        with F.no_grad():
            view = x[:1]
            assert view.requires_grad
        assert view.requires_grad and view.is_leaf and view.grad_fn is None
        assert not view.detach().requires_grad and not view.data.requires_grad
        with pytest.raises(RuntimeError, match="numpy"):
            view.numpy()
        with pytest.raises(RuntimeError, match="out="):
            F.add(F.ones(1), 1.0, out=view)
        view.requires_grad_(False)
        assert view.requires_grad


def test_what_is_computed_from_a_view_made_under_no_grad_leads_nowhere():
    x = leaf([1.0, 2.0])
    with F.no_grad():
        view = x[:1]
    y = view * 3.0
    assert y.requires_grad and y.grad_fn.next_functions[0] == (None, 0)
    part = view[0]
    assert part.requires_grad and name_of(part) == "SelectBackward0"
    y.sum().backward()
    assert x.grad is None and view.grad is None
    assert F.autograd.grad((x * 2.0).sum(), view, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="allow_unused"):
        F.autograd.grad((x * 2.0).sum(), view)
    with pytest.raises(RuntimeError, match="does not require grad"):
        view.sum().backward(inputs=[F.ones(1)])


def test_a_view_made_under_no_grad_collects_gradients_once_it_is_made_a_leaf():
    x = leaf([1.0, 2.0])
    with F.no_grad():
        view = x[:1]
    view.requires_grad_()
    (view * 3.0).sum().backward()
    assert_equal(view.grad, [3.0])
    assert x.grad is None


def test_a_view_of_no_grad_times_follows_its_base_once_that_turns_to_a_leaf_without_grad():
    x = leaf([1.0, 2.0])
    with F.no_grad():
        view = x[:1]
    x.requires_grad_(False)
    assert not view.requires_grad


@pytest.mark.parametrize("pool", [F.nn.functional.max_pool1d, F.nn.functional.max_pool2d])
def test_pooling_a_view_whose_base_got_a_history_after_it_was_made(pool):
    x = F.zeros(1, 2, 4, 4)
    view = x[0]
    w = F.arange(32.0).reshape(1, 2, 4, 4).requires_grad_()
    x.add_(w)
    pool(view, 2).sum().backward()
    assert w.grad.sum() == (16 if pool is F.nn.functional.max_pool1d else 8)


def test_a_window_that_is_a_view_whose_base_got_a_history_later():
    base = F.zeros(8)
    window = base[:4]
    w = F.ones(8, requires_grad=True)
    base.add_(w)
    F.stft(F.arange(16.0), 4, window=window, return_complex=True).abs().sum().backward()
    assert w.grad[:4].abs().sum() > 0 and w.grad[4:].abs().sum() == 0


def test_changes_of_a_detached_view_stay_out_of_the_graph():
    x, y = matrix()
    y.detach()[0].mul_(2.0)
    assert name_of(y) == "CloneBackward0"
    y.sum().backward()
    assert_equal(x.grad, F.ones(2, 3))


MANY = "is the output of a function that returns multiple views"


@pytest.mark.parametrize(
    "make_views",
    [
        lambda y: y.unbind(0),
        lambda y: y.split(1, 0),
        lambda y: y.split([1, 2], 1),
        lambda y: y.chunk(2, 0),
        lambda y: tuple(y),
    ],
    ids=["unbind", "split", "split by sizes", "chunk", "iteration"],
)
def test_one_of_several_views_cannot_be_changed(make_views):
    _, y = matrix()
    first = make_views(y)[0]
    with pytest.raises(RuntimeError, match=MANY):
        first.mul_(2.0)


def test_several_views_without_grad_can_be_changed():
    x = F.ones(2, 3)
    for row in x.unbind(0):
        row.mul_(2.0)
    assert_equal(x, F.full((2, 3), 2.0))


def test_one_of_several_views_can_be_changed_under_no_grad():
    x, y = matrix()
    first = y.unbind(0)[0]
    with F.no_grad():
        first.zero_()
    y.sum().backward()
    assert_equal(x.grad, F.ones(2, 3))


def test_several_views_give_gradients():
    x, y = matrix()
    first, second = y.unbind(0)
    (first * second).sum().backward()
    assert_equal(x.grad, [[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]])


def test_a_view_made_without_grad_of_a_view_that_became_a_leaf_is_not_written_to_under_the_tape():
    x = F.ones(9).reshape(3, 3).requires_grad_()
    with F.no_grad():
        v = x.diagonal()
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        v.sub_(F.ones((), requires_grad=True))
    assert x.is_leaf and x.tolist() == [[1.0] * 3] * 3
