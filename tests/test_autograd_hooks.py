"""Hooks on tensors, on nodes of the graph and on saved tensors."""

import gc
import weakref

import pytest
from package_under_test import F, assert_close, assert_equal, leaf

graph = F.autograd.graph


def ones(n, **kwargs):
    return F.ones(n, dtype=F.float64, **kwargs)


# -- tensor hooks ---------------------------------------------------------------------------------


def test_a_tensor_hook_sees_the_gradient():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    seen = []
    y.register_hook(seen.append)
    (y * y).sum().backward()
    assert len(seen) == 1
    assert_equal(seen[0], [6.0, 12.0])
    assert_equal(x.grad, [18.0, 36.0])


def test_a_tensor_hook_replaces_the_gradient():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.register_hook(lambda grad: grad * 10.0)
    y.sum().backward()
    assert_equal(x.grad, [30.0, 30.0])


def test_a_hook_of_a_leaf_changes_what_is_accumulated():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda grad: grad * 2.0)
    (x * 3.0).sum().backward()
    (x * 3.0).sum().backward()
    assert_equal(x.grad, [12.0, 12.0])


def test_a_hook_of_a_leaf_sees_the_whole_gradient_once():
    x = leaf([1.0])
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()))
    (x * 2.0 + x * 3.0 + x * 4.0).backward()
    assert seen == [9.0]


def test_tensor_hooks_run_in_the_order_of_registration():
    x = leaf([1.0])
    y = x * 1.0
    y.register_hook(lambda grad: grad + 1.0)
    y.register_hook(lambda grad: grad * 10.0)
    y.backward()
    assert_equal(x.grad, [20.0])


def test_a_removed_hook_does_not_run():
    x = leaf([1.0])
    handle = x.register_hook(lambda grad: grad * 10.0)
    handle.remove()
    handle.remove()
    (x * 2.0).backward()
    assert_equal(x.grad, [2.0])


def test_a_handle_is_a_context_that_removes_the_hook():
    x = leaf([1.0])
    with x.register_hook(lambda grad: grad * 10.0):
        (x * 2.0).backward()
    (x * 2.0).backward()
    assert_equal(x.grad, [22.0])


def test_a_hook_may_remove_itself():
    x = leaf([1.0])
    calls = []

    def once(grad):
        calls.append(grad)
        handle.remove()

    handle = x.register_hook(once)
    other = []
    x.register_hook(other.append)
    for _ in range(2):
        (x * 2.0).backward()
    assert len(calls) == 1 and len(other) == 2


def test_a_hook_runs_again_in_every_backward():
    x = leaf([1.0])
    y = x * x
    calls = []
    y.register_hook(calls.append)
    z = y * 2.0
    for _ in range(3):
        z.backward(retain_graph=True)
    assert len(calls) == 3


def test_hooks_need_a_tensor_that_requires_grad():
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require"
    ):
        ones(2).register_hook(print)


def test_a_hook_must_return_a_tensor_or_none():
    x = leaf([1.0])
    x.register_hook(lambda grad: "text")
    with pytest.raises(TypeError, match="str"):
        (x * 2.0).backward()
    assert x.grad is None


def test_a_hook_must_keep_the_shape():
    x = leaf([1.0])
    x.register_hook(lambda grad: ones(2))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        (x * 2.0).backward()


def test_an_exception_in_a_hook_comes_through():
    x = leaf([1.0])

    def fail(grad):
        raise KeyError("in the hook")

    handle = x.register_hook(fail)
    with pytest.raises(KeyError, match="in the hook"):
        (x * 2.0).backward()
    handle.remove()
    (x * 2.0).backward()
    assert_equal(x.grad, [2.0])


def test_hooks_run_with_create_graph_and_are_differentiable():
    x = leaf([2.0])
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (first,) = F.autograd.grad(y, x, create_graph=True)
    # 2 x * x
    assert_equal(first, [8.0])
    (second,) = F.autograd.grad(first, x)
    assert_equal(second, [8.0])


def test_hooks_run_without_grad_mode_unless_a_graph_is_created():
    x = leaf([2.0])
    modes = []
    y = x * x
    y.register_hook(lambda grad: modes.append(F.is_grad_enabled()))
    y.backward(retain_graph=True)
    F.autograd.grad(y, x, create_graph=True)
    assert modes == [False, True]


def test_a_hook_applies_to_the_gradient_that_grad_returns():
    x = leaf([1.0])
    y = x * 2.0
    y.register_hook(lambda grad: grad * 10.0)
    x.register_hook(lambda grad: grad * 100.0)
    assert_equal(F.autograd.grad(y * 1.0, y)[0], [10.0])
    assert_equal(F.autograd.grad(y * 1.0, x)[0], [2000.0])


def test_each_output_of_a_node_has_its_own_hooks():
    x = leaf([1.0, 2.0])
    first, second = x.unbind(0)
    first.register_hook(lambda grad: grad * 10.0)
    (first + second).backward()
    assert_equal(x.grad, [10.0, 1.0])


def test_a_hook_with_no_other_reference_stays_alive():
    x = leaf([1.0])
    calls = []
    x.register_hook(lambda grad: calls.append(1))
    gc.collect()
    (x * 2.0).backward()
    assert calls == [1]


def test_hooks_are_not_copied_to_new_tensors():
    x = leaf([1.0])
    calls = []
    x.register_hook(calls.append)
    y = x.detach().requires_grad_()
    (y * 2.0).backward()
    assert calls == []


# -- retain_grad with hooks and changes in place --------------------------------------------------


def test_retain_grad_keeps_the_gradient_after_all_hooks():
    x = leaf([1.0])
    y = x * 2.0
    y.register_hook(lambda grad: grad * 10.0)
    y.retain_grad()
    y.register_hook(lambda grad: grad * 10.0)
    y.backward()
    assert_equal(y.grad, [100.0])
    assert_equal(x.grad, [200.0])


def test_after_a_change_in_place_retain_grad_means_the_new_value():
    x = leaf([1.0])
    y = x * 2.0
    y.retain_grad()
    y.mul_(3.0)
    (y * 5.0).backward()
    assert_equal(y.grad, [5.0])
    assert_equal(x.grad, [30.0])


def test_after_a_change_in_place_old_hooks_mean_the_old_value():
    x = leaf([1.0])
    y = x * 2.0
    seen = {}
    y.register_hook(lambda grad: seen.__setitem__("old", grad.item()))
    y.mul_(3.0)
    y.register_hook(lambda grad: seen.__setitem__("new", grad.item()))
    (y * 5.0).backward()
    assert seen == {"old": 15.0, "new": 5.0}


def test_retain_grad_of_a_view_whose_base_is_changed():
    x = leaf([1.0, 2.0])
    y = x.clone()
    view = y[0]
    view.retain_grad()
    (view * 3.0).backward()
    assert_equal(view.grad, F.tensor(3.0))


# -- hooks after accumulation ---------------------------------------------------------------------


def test_a_post_accumulate_hook_sees_the_accumulated_grad():
    x = leaf([1.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.item())))
    (x * 2.0).backward()
    (x * 3.0).backward()
    assert seen == [(True, 2.0), (True, 5.0)]


def test_a_post_accumulate_hook_may_step_and_free_the_grad():
    x = leaf([1.0, 2.0])

    def step(p):
        with F.no_grad():
            p.sub_(0.5 * p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2.0).sum().backward()
    assert x.grad is None
    assert_equal(x, [0.0, 1.0])


def test_post_accumulate_hooks_run_in_order_after_tensor_hooks():
    x = leaf([1.0])
    events = []
    x.register_post_accumulate_grad_hook(lambda p: events.append("first after"))
    x.register_post_accumulate_grad_hook(lambda p: events.append("second after"))
    x.register_hook(lambda grad: events.append("before"))
    (x * 2.0).backward()
    assert events == ["before", "first after", "second after"]


def test_post_accumulate_hooks_do_not_run_in_grad():
    x = leaf([1.0])
    calls = []
    x.register_post_accumulate_grad_hook(calls.append)
    F.autograd.grad(x * 2.0, x)
    assert calls == []


def test_post_accumulate_hooks_are_for_leaves():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2.0).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="require"):
        ones(1).register_post_accumulate_grad_hook(print)


def test_a_post_accumulate_hook_can_be_removed():
    x = leaf([1.0])
    calls = []
    x.register_post_accumulate_grad_hook(calls.append).remove()
    (x * 2.0).backward()
    assert calls == []


# -- nodes ----------------------------------------------------------------------------------------


def test_nodes_have_names_and_edges():
    x, y = leaf([1.0]), leaf([2.0])
    z = (x * y).exp()
    node = z.grad_fn
    assert node.name() == "ExpBackward0"
    ((product, output),) = node.next_functions
    assert product.name() == "MulBackward0" and output == 0
    assert [edge[0].variable for edge in product.next_functions] == [x, y]
    assert all("AccumulateGrad" in edge[0].name() for edge in product.next_functions)


def test_an_edge_to_a_constant_is_none():
    x = leaf([1.0])
    z = x * ones(1)
    assert z.grad_fn.next_functions[1] == (None, 0)


def test_edges_tell_which_output_they_come_from():
    x = leaf([1.0, 2.0])
    first, second = x.unbind(0)
    assert first.output_nr == 0 and second.output_nr == 1
    assert first.grad_fn is second.grad_fn
    assert (second * 2.0).grad_fn.next_functions[0] == (first.grad_fn, 1)


def test_a_node_keeps_its_identity():
    x = leaf([1.0])
    y = x * 2.0
    assert y.grad_fn is y.grad_fn
    z = y.exp()
    assert z.grad_fn.next_functions[0][0] is y.grad_fn
    accumulate = y.grad_fn.next_functions[0][0]
    assert (x * 3.0).grad_fn.next_functions[0][0] is accumulate


def test_nodes_have_metadata_of_their_own():
    y = leaf([1.0]) * 2.0
    y.grad_fn.metadata["key"] = "value"
    assert y.grad_fn.metadata == {"key": "value"}
    assert (y * 1.0).grad_fn.metadata == {}


def test_nodes_show_what_they_saved():
    x = leaf([1.0, 2.0])
    y = x.exp()
    assert_equal(y.grad_fn._saved_result, y.detach())
    z = x * y
    assert z.grad_fn._saved_self is x
    z.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result  # noqa: B018


def test_a_node_hook_sees_and_replaces_the_gradients_of_the_inputs():
    x, y = leaf([2.0]), leaf([3.0])
    z = x * y
    seen = []

    def hook(grad_inputs, grad_outputs):
        seen.append([g.item() for g in grad_inputs] + [g.item() for g in grad_outputs])
        return grad_inputs[0] * 10.0, grad_inputs[1]

    z.grad_fn.register_hook(hook)
    (z * 5.0).backward()
    assert seen == [[15.0, 10.0, 5.0]]
    assert_equal(x.grad, [150.0])
    assert_equal(y.grad, [10.0])


def test_a_node_prehook_replaces_the_gradients_of_the_outputs():
    x = leaf([2.0])
    z = x * x
    z.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 10.0,))
    z.backward()
    assert_equal(x.grad, [40.0])


def test_hooks_of_tensor_and_node_run_from_the_outside_in():
    x = leaf([1.0])
    y = x * 2.0
    events = []
    y.grad_fn.register_hook(lambda gi, go: events.append("after node"))
    y.grad_fn.register_prehook(lambda go: events.append("before node"))
    y.register_hook(lambda g: events.append("tensor"))
    y.backward()
    assert events == ["tensor", "before node", "after node"]


def test_node_hooks_can_be_removed():
    x = leaf([1.0])
    y = x * 2.0
    calls = []
    y.grad_fn.register_hook(lambda gi, go: calls.append(1)).remove()
    y.grad_fn.register_prehook(lambda go: calls.append(1)).remove()
    y.backward()
    assert calls == []


def test_the_node_of_a_leaf_takes_hooks():
    x = leaf([1.0])
    accumulate = graph.get_gradient_edge(x).node
    calls = []
    accumulate.register_hook(lambda gi, go: calls.append(x.grad.item()))
    (x * 2.0).backward()
    assert calls == [2.0]


def test_a_gradient_edge_stands_for_its_tensor():
    x = leaf([1.0, 2.0])
    y = x.unbind(0)[1]
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 1
    z = (y * y) * 3.0
    del y
    (grad,) = F.autograd.grad(z, edge)
    assert_equal(grad, F.tensor(12.0))
    assert graph.get_gradient_edge(x).output_nr == 0
    with pytest.raises(RuntimeError, match="require grad"):
        graph.get_gradient_edge(ones(1))


def test_nodes_are_instances_of_node():
    assert isinstance((leaf([1.0]) * 2.0).grad_fn, graph.Node)


# -- hooks for several tensors --------------------------------------------------------------------


def test_a_multi_grad_hook_runs_once_with_all_gradients():
    x, y, z = leaf([1.0]), leaf([2.0]), leaf([3.0])
    seen = []
    handle = graph.register_multi_grad_hook(
        (x, y, z), lambda grads: seen.append([g if g is None else g.item() for g in grads])
    )
    (x * 2.0 + y * 3.0).backward()
    assert seen == [[2.0, 3.0, None]]
    (x * y * z).backward()
    assert seen[1:] == [[6.0, 3.0, 2.0]]
    handle.remove()
    (x * y * z).backward()
    assert len(seen) == 2


def test_a_multi_grad_hook_in_any_mode_runs_with_the_first_gradient():
    x, y = leaf([1.0]), leaf([2.0])
    seen = []
    graph.register_multi_grad_hook((x, y), lambda g: seen.append(g.item()), mode="any")
    (x * 2.0 + y * 2.0).backward()
    assert seen == [2.0]
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((x, y), print, mode="some")


# -- hooks on saved tensors -----------------------------------------------------------------------


def test_saved_tensor_hooks_pack_and_unpack():
    x = leaf([1.0, 2.0])
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        return len(packed) - 1

    def unpack(index):
        unpacked.append(index)
        return F.tensor(packed[index], dtype=F.float64)

    with graph.saved_tensors_hooks(pack, unpack):
        y = x.exp() * x
    assert unpacked == []
    y.sum().backward()
    assert len(packed) == 3 and sorted(unpacked) == [0, 1, 2]
    assert_close(x.grad, (x.detach() + 1) * x.detach().exp())


def test_saved_tensor_hooks_decide_what_backward_sees():
    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(lambda t: t.detach() * 10.0, lambda t: t):
        y = x * x
    y.sum().backward()
    assert_equal(x.grad, [20.0, 40.0])


def test_saved_tensor_hooks_end_with_their_context():
    x = leaf([1.0])
    calls = []

    def pack(tensor):
        calls.append(1)
        return tensor

    with graph.saved_tensors_hooks(pack, lambda t: t):
        pass
    x.exp()
    assert calls == []


def test_of_nested_saved_tensor_hooks_the_inner_ones_apply():
    x = leaf([1.0])
    calls = []

    def noting(name):
        return graph.saved_tensors_hooks(lambda t: calls.append(name) or t, lambda t: t)

    with noting("outer"):
        with noting("inner"):
            x.exp()
        x.exp()
    assert calls == ["inner", "outer"]


def test_saved_tensor_hooks_keep_second_derivatives():
    x = leaf([0.5, 2.0])
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.sin() * x
    (first,) = F.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = F.autograd.grad(first.sum(), x)
    d = x.detach()
    assert_close(first, d.cos() * d + d.sin())
    assert_close(second, 2 * d.cos() - d * d.sin())


def test_saved_tensor_hooks_apply_to_custom_functions():
    class Square(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2.0 * x

    x = leaf([3.0])
    calls = []
    with graph.saved_tensors_hooks(
        lambda t: calls.append("pack") or t.detach(), lambda t: calls.append("unpack") or t
    ):
        y = Square.apply(x)
    assert calls == ["pack"]
    y.backward()
    assert calls == ["pack", "unpack"]
    assert_equal(x.grad, [6.0])


def test_numbers_pass_by_the_saved_tensor_hooks():
    calls = []
    with graph.saved_tensors_hooks(lambda t: calls.append(1) or t, lambda t: t):
        leaf([1.0]) * 3.0
        leaf([1.0]) + ones(1)
    assert calls == []


def test_the_packed_object_lives_as_long_as_the_graph():
    class Packed:
        pass

    x = leaf([1.0])
    references = []

    def pack(tensor):
        packed = Packed()
        packed.tensor = tensor.detach()
        references.append(weakref.ref(packed))
        return packed

    with graph.saved_tensors_hooks(pack, lambda packed: packed.tensor):
        y = x.exp()
        z = x.exp()
    assert [r() is not None for r in references] == [True, True]
    y.backward()
    assert [r() is not None for r in references] == [False, True]
    del z
    assert [r() is not None for r in references] == [False, False]


def test_the_unpack_hook_must_return_a_tensor():
    with graph.saved_tensors_hooks(lambda t: 3, lambda t: t):
        y = leaf([1.0]).exp()
    with pytest.raises(TypeError, match=r"[Uu]npack"):
        y.backward()


def test_the_pack_hook_must_not_change_the_tensor():
    x = leaf([1.0])
    with graph.saved_tensors_hooks(lambda t: t.add_(1.0), lambda t: t), pytest.raises(RuntimeError):
        x.exp()


def test_exceptions_of_saved_tensor_hooks_come_through():
    x = leaf([1.0])

    def fail(value):
        raise KeyError("in the hook")

    with graph.saved_tensors_hooks(fail, lambda t: t), pytest.raises(KeyError, match="in the hook"):
        x.exp()
    with graph.saved_tensors_hooks(lambda t: t.detach(), fail):
        y = x.exp()
    with pytest.raises(KeyError, match="in the hook"):
        y.backward()
    x.exp().backward()
    assert_close(x.grad, x.detach().exp())


def test_saved_tensor_hooks_can_be_forbidden():
    def enter_hooks():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    with (
        graph.disable_saved_tensors_hooks("not in this region"),
        pytest.raises(RuntimeError, match="not in this region"),
    ):
        enter_hooks()
    enter_hooks()


def test_save_on_cpu_gives_the_same_gradients():
    x = leaf([1.0, 2.0])
    with graph.save_on_cpu():
        y = x.exp() * x
    y.sum().backward()
    assert_close(x.grad, (x.detach() + 1) * x.detach().exp())


def test_hooks_after_accumulation_may_return_what_in_place_methods_return():
    x = F.zeros(2, requires_grad=True)
    hook = x.register_post_accumulate_grad_hook(lambda p: p.sub_(p.grad))
    x.backward(F.tensor([1.0, 2.0]))
    assert x.tolist() == [-1, -2]
    hook.remove()
    x.register_post_accumulate_grad_hook(lambda p: 5)
    with pytest.raises(TypeError, match="should return None, but it returned 'int'"):
        x.backward(F.ones(2))


# -- what a tensor and a node say of their hooks --------------------------------------------------


def test_the_hooks_of_a_tensor_are_in_its_dict():
    x = leaf([1.0])
    assert x._backward_hooks is None and x._post_accumulate_grad_hooks is None
    handle = x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda p: None)
    assert len(x._backward_hooks) == 1 and len(x._post_accumulate_grad_hooks) == 1
    handle.remove()
    assert len(x._backward_hooks) == 0
    y = x * 1
    assert y._backward_hooks is None
    y.register_hook(lambda g: g)
    assert len(y._backward_hooks) == 1


def test_hooks_can_be_registered_for_one_saved_tensor():
    x = leaf([1.0, 2.0])
    y = x * x
    packed = []
    y.grad_fn._raw_saved_self.register_hooks(
        lambda t: packed.append(t.shape) or t.detach() * 10, lambda t: t / 10
    )
    assert packed == [(2,)]
    with pytest.raises(RuntimeError, match="only one pair of hooks is allowed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert_close(x.grad, [2.0, 4.0])
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_hooks_for_a_saved_result_and_for_second_derivatives():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach().clone(), lambda t: t)
    (g,) = F.autograd.grad(y.sum(), x, create_graph=True)
    (g2,) = F.autograd.grad(g.sum(), x)
    assert_close(g2, y.detach())


def test_a_saved_tensor_that_is_not_there_has_no_hooks():
    node = (leaf([1.0]) * 2).grad_fn
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_a_node_knows_what_its_gradients_look_like():
    (meta,) = (ones(3, requires_grad=True) * 2).grad_fn._input_metadata
    assert tuple(meta.shape) == (3,) and meta.dtype == F.float64 and meta.device.type == "cpu"


def test_nodes_that_are_no_operator_have_names_with_a_namespace():
    x = ones(3, requires_grad=True)
    y = x.clone()
    y[0] = 1.0
    accumulate = graph.get_gradient_edge(x).node
    assert accumulate.name() == "torch::autograd::AccumulateGrad"
    assert type(accumulate).__name__ == "AccumulateGrad"
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert F.zeros(3, dtype=F.float64).copy_(x).grad_fn.name() == "torch::autograd::CopyBackwards"


# -- hooks of nodes and what is asked for ----------------------------------------------------------


def test_retain_grad_keeps_what_the_tensors_hooks_made_and_not_what_its_nodes_prehooks_make():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 7.0,))
    y.register_hook(lambda grad: grad * 3.0)
    y.sum().backward()
    assert_equal(y.grad, [3.0, 3.0])
    assert_equal(x.grad, [42.0, 42.0])


def test_a_gradient_that_is_asked_for_passes_by_the_prehooks_of_the_node_it_would_go_to():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    calls = []
    y.grad_fn.register_prehook(lambda grads: calls.append("node"))
    y.register_hook(lambda grad: grad * 5.0)
    (grad,) = F.autograd.grad((y * 3.0).sum(), y, retain_graph=True)
    assert_equal(grad, [15.0, 15.0])
    assert calls == []
    F.autograd.grad((y * 3.0).sum(), x)
    assert calls == ["node"]


def test_prehooks_of_an_accumulator_run_where_it_accumulates():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda grads: (grads[0] * 7.0,))
    assert_equal(F.autograd.grad(y.sum(), x, retain_graph=True)[0], [2.0, 2.0])
    y.sum().backward(inputs=[x])
    assert_equal(x.grad, [14.0, 14.0])


@pytest.mark.parametrize("register", ["register_prehook", "register_hook"])
def test_what_a_node_hook_returns_must_be_gradients(register):
    for returned, error, words in (
        (1, TypeError, "hook must return None or a Tensor, not int"),
        (F.ones(3), RuntimeError, "hook has changed the size of value"),
        (F.ones(2, dtype=F.float32), RuntimeError, "hook has changed the type of value"),
    ):
        y = leaf([1.0, 2.0]).exp()
        getattr(y.grad_fn, register)(lambda *_, returned=returned: (returned,))
        with pytest.raises(error, match=words):
            y.sum().backward()


# -- gradients of means ---------------------------------------------------------------------------

MEANS = {
    "all": lambda x: x.mean(),
    "dims": lambda x: x.mean((2, 3)).sum(),
    "flattened": lambda x: x.flatten(1).mean(1).sum(),
    "pool": lambda x: F.nn.functional.adaptive_avg_pool2d(x, 1).sum(),
}


def write(grad):
    assert grad.is_contiguous()
    grad.view(-1).mul_(2)
    return grad


@pytest.mark.parametrize("name", MEANS)
def test_gradients_of_means_may_be_written_to(name):
    x = F.ones(2, 3, 4, 4, requires_grad=True)
    (grad,) = F.autograd.grad(MEANS[name](x), x)
    plain = grad.flatten()[0].item()
    assert_close(write(grad), F.full((2, 3, 4, 4), 2 * plain))


@pytest.mark.parametrize("name", MEANS)
def test_hooks_may_write_to_gradients_of_means(name):
    x = F.ones(2, 3, 4, 4, requires_grad=True)
    (plain,) = F.autograd.grad(MEANS[name](x), x)
    for register in ("register_hook", "retain_grad"):
        y = x * 1
        if register == "register_hook":
            y.register_hook(write)
        else:
            y.retain_grad()
        (grad,) = F.autograd.grad(MEANS[name](y), x)
        assert_close(grad, plain * (2 if register == "register_hook" else 1))
    leaf_of_hook = F.ones(2, 3, 4, 4, requires_grad=True)
    leaf_of_hook.register_hook(write)
    MEANS[name](leaf_of_hook).backward()
    assert_close(leaf_of_hook.grad, plain * 2)
    y = x * 1
    y.grad_fn.register_prehook(lambda grads: (write(grads[0]),))
    assert_close(F.autograd.grad(MEANS[name](y), x)[0], plain * 2)


@pytest.mark.parametrize("name", MEANS)
def test_functions_may_write_to_gradients_of_means(name):
    class Twice(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return write(grad)

    x = F.ones(2, 3, 4, 4, requires_grad=True)
    (plain,) = F.autograd.grad(MEANS[name](x), x)
    MEANS[name](Twice.apply(x)).backward()
    assert_close(x.grad, plain * 2)


@pytest.mark.parametrize("name", MEANS)
def test_gradients_of_means_in_transforms_are_written_out(name):
    grad = F.func.grad(MEANS[name])(F.ones(2, 3, 4, 4))
    assert grad.is_contiguous()
