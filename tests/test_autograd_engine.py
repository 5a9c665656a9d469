"""How the engine runs a graph: depth, order, threads, reentry, failures and memory."""

import gc
import threading
import weakref

import numpy
import pytest
from package_under_test import F, assert_close, assert_equal, leaf

Function = F.autograd.Function


def saving_in(references):
    """An identity whose node saves memory; a weak reference to it goes into `references`."""

    class Saving(Function):
        @staticmethod
        def forward(ctx, x):
            memory = numpy.ones(1)
            references.append(weakref.ref(memory))
            ctx.save_for_backward(F.from_numpy(memory))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (one,) = ctx.saved_tensors
            return grad * one

    return Saving.apply


def alive(references):
    return [reference() is not None for reference in references]


def run_in_threads(work, count=8):
    failures = []

    def guarded(index):
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# -- depth and width ------------------------------------------------------------------------------

MILLION = 1_000_000


def test_a_chain_of_a_million_operations_goes_backward_and_is_freed():
    x = leaf(1.0)
    y = x
    for _ in range(MILLION // 2):
        y = y * 1.0
        y = y + 1.0
    y.backward()
    assert_equal(x.grad, F.tensor(1.0))
    assert y.item() == MILLION // 2 + 1
    del y


def test_a_chain_of_a_million_operations_is_freed_without_backward():
    x = leaf(1.0)
    y = x
    for _ in range(MILLION):
        y = y + 1.0
    node = weakref.ref(y)
    del y
    assert node() is None


def test_a_long_chain_of_custom_functions_goes_backward_and_is_freed():
    class Next(Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1.0

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = Next.apply(y)
    y.backward()
    assert_equal(x.grad, F.tensor(1.0))


def test_a_long_chain_of_changes_in_place_through_views():
    x = leaf([1.0, 1.0])
    y = x.clone()
    for _ in range(2_000):
        y[0].add_(1.0)
    y.sum().backward()
    assert_equal(x.grad, [1.0, 1.0])


def test_a_node_with_many_consumers():
    x = leaf(1.0)
    y = x * 1.0
    total = y
    for _ in range(10_000):
        total = total + y
    total.backward()
    assert_equal(x.grad, F.tensor(10_001.0))


def test_a_node_with_many_inputs():
    leaves = [leaf([float(i)]) for i in range(1000)]
    (F.cat(leaves) * F.arange(1000, dtype=F.float64)).sum().backward()
    assert [x.grad.item() for x in leaves] == [float(i) for i in range(1000)]


def test_diamonds_are_not_walked_along_every_path():
    # 2^200 paths: only an engine that waits for all consumers of a node ends.
    x = leaf(1.0)
    y = x
    for _ in range(200):
        y = y * 0.5 + y * 0.5
    calls = []
    x.register_hook(calls.append)
    y.backward()
    assert_close(x.grad, F.tensor(1.0))
    assert len(calls) == 1


def test_each_node_runs_once_with_its_whole_gradient():
    x = leaf(2.0)
    y = x * 3.0
    seen = []
    y.register_hook(lambda grad: seen.append(grad.item()))
    (y * y + y.sin() * 0.0 + y).backward()
    assert seen == [13.0]


def test_unequal_paths_meet():
    x = leaf(2.0)
    short = x * 1.0
    long = x * 1.0
    for _ in range(10):
        long = long * 1.0
    (short * long).backward()
    assert_equal(x.grad, F.tensor(4.0))


# -- order ----------------------------------------------------------------------------------------


def noting(tensor, name, events):
    tensor.register_hook(lambda grad: events.append(name))
    return tensor


def test_what_was_recorded_last_runs_first():
    def run():
        events = []
        x = leaf(1.0)
        branches = [noting(x * float(i), f"branch {i}", events) for i in range(5)]
        late = noting(branches[0] * 2.0, "late", events)
        (branches[4] + branches[2] + branches[3] + branches[1] + late).backward()
        return events

    expected = ["late", "branch 4", "branch 3", "branch 2", "branch 1", "branch 0"]
    assert [run() for _ in range(3)] == [expected] * 3


def test_gradients_are_added_in_a_fixed_order():
    # The consumers run from the last to the first: (-1e16 + 1e16) + 1, and not 1e16 + 1 - 1e16.
    for _ in range(3):
        x = leaf(1.0)
        small, large, negative = x * 1.0, x * 1e16, x * -1e16
        (small + large + negative).backward()
        assert x.grad.item() == 1.0


def test_two_equal_runs_give_equal_bits():
    def run():
        F.manual_seed(0)
        x = F.randn(50, dtype=F.float32).requires_grad_()
        y = x
        for i in range(20):
            y = (y.sin() * x + y.cos() * float(i)).tanh() + y
        y.sum().backward()
        return x.grad

    first = run()
    for _ in range(3):
        assert_equal(run(), first)


def test_callbacks_run_when_backward_has_ended():
    events = []
    x = leaf(1.0)
    engine = F.autograd.Variable._execution_engine

    def hook(grad):
        engine.queue_callback(lambda: events.append(("end", x.grad.item())))
        events.append("hook")

    y = x * 2.0
    y.register_hook(hook)
    y.backward()
    assert events == ["hook", ("end", 2.0)]
    with pytest.raises(RuntimeError, match="backward"):
        engine.queue_callback(lambda: None)


# -- threads --------------------------------------------------------------------------------------


def test_threads_accumulate_into_shared_leaves():
    x = leaf([1.0, 2.0])

    def work(index):
        for _ in range(50):
            (x * 3.0).sum().backward()

    run_in_threads(work)
    assert_equal(x.grad, [1200.0, 1200.0])


def test_threads_go_backward_through_a_shared_graph():
    x = leaf([1.0, 2.0])
    shared = (x * x).sin()

    def work(index):
        for _ in range(20):
            (shared * 2.0).sum().backward(retain_graph=True)

    run_in_threads(work)
    d = x.detach()
    assert_close(x.grad, 8 * 20 * 2.0 * 2 * d * (d * d).cos(), rtol=1e-12)


def test_threads_have_graphs_of_their_own():
    results = [None] * 8

    def work(index):
        x = leaf([float(index)])
        y = x
        for _ in range(200):
            y = y + x * 1.0
        (y * x).backward()
        results[index] = x.grad.item()

    run_in_threads(work)
    assert results == [2.0 * 201 * i for i in range(8)]


def test_a_graph_may_be_made_in_one_thread_and_run_in_another():
    x = leaf([3.0])
    made = []
    run_in_threads(lambda index: made.append(x * x), count=1)
    made[0].backward()
    assert_equal(x.grad, [6.0])


def test_hooks_run_in_the_thread_of_the_caller():
    x = leaf([3.0])
    seen = []
    y = x * 2.0
    y.register_hook(lambda grad: seen.append(threading.get_ident()))
    y.backward()
    assert seen == [threading.get_ident()]


# -- backward inside of backward ------------------------------------------------------------------


def square_backward(x):
    # Hooks and backward functions run without grad mode.
    with F.enable_grad():
        y = x * x
    y.backward()


def test_a_hook_may_call_backward_on_another_graph():
    x, other = leaf([1.0]), leaf([2.0])
    y = x * 3.0
    y.register_hook(lambda grad: square_backward(other))
    y.backward()
    assert_equal(x.grad, [3.0])
    assert_equal(other.grad, [4.0])


def test_a_hook_may_call_backward_into_the_same_leaf():
    x = leaf([1.0])
    y = x * 3.0
    y.register_hook(lambda grad: square_backward(x))
    y.backward()
    assert_equal(x.grad, [5.0])


class Recursive(Function):
    """y = x * factor^depth: backward builds the next level and goes backward through it."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x * 0.5**depth

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if ctx.depth == 0:
            return grad, None
        with F.enable_grad():
            inner = x.detach().requires_grad_()
            y = Recursive.apply(inner, ctx.depth - 1) * 0.5
        y.backward(grad)
        return inner.grad, None


@pytest.mark.parametrize("depth", [1, 5, 60])
def test_a_function_may_call_backward_in_backward(depth):
    x = leaf([1.0])
    Recursive.apply(x, depth).backward()
    assert_equal(x.grad, [0.5**depth])


def test_the_inner_backward_does_not_end_the_outer_one():
    events = []

    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            events.append("inner begins")
            square_backward(leaf([1.0]))
            events.append("inner ends")
            return grad * 2.0

    x = leaf([1.0])
    first = noting(x * 1.0, "first", events)
    Inner.apply(first).backward()
    assert events == ["inner begins", "inner ends", "first"]
    assert_equal(x.grad, [2.0])


# -- failures -------------------------------------------------------------------------------------


def test_after_an_exception_the_engine_can_be_used():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("broken on purpose")

    x = leaf([1.0])
    for _ in range(3):
        with pytest.raises(ValueError, match="broken on purpose"):
            (Failing.apply(x * 1.0) * 3.0).backward()
        assert F.is_grad_enabled()
        assert x.grad is None
    (x * 3.0).backward()
    assert_equal(x.grad, [3.0])


def test_an_exception_in_an_inner_backward_comes_through_both():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("broken on purpose")

    x = leaf([1.0])
    y = x * 1.0

    def fail(grad):
        with F.enable_grad():
            inner = Failing.apply(leaf([1.0]))
        inner.backward()

    y.register_hook(fail)
    with pytest.raises(ValueError, match="broken on purpose"):
        y.backward()
    assert x.grad is None
    (x * 3.0).backward()
    assert_equal(x.grad, [3.0])


class FailingBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("broken on purpose")


def fail_in_every_second_thread(x):
    def work(index):
        for _ in range(20):
            if index % 2:
                with pytest.raises(ValueError, match="broken on purpose"):
                    FailingBackward.apply(x).backward()
            else:
                (x * 1.0).backward()

    run_in_threads(work)
    assert_equal(x.grad, [80.0])


def test_an_exception_in_one_thread_stays_there():
    x = leaf([1.0])
    # The node that accumulates into x exists all the time; the next test is about the other case.
    anchor = x * 1.0
    fail_in_every_second_thread(x)
    assert anchor.requires_grad


@pytest.mark.facula_only
def test_threads_that_make_the_accumulating_node_of_a_leaf_do_not_deadlock():
    # PyTorch 2.13 hangs here: operators take the lock of the leaf and then the GIL, to keep the
    # Python object alive, while Function.apply holds the GIL and then takes the lock.
    for _ in range(20):
        fail_in_every_second_thread(leaf([1.0]))


def test_a_graph_survives_a_failed_backward_that_retains_it():
    x = leaf([2.0])
    y = x * x

    def fail(grad):
        raise KeyError("once")

    handle = y.register_hook(fail)
    z = y * 2.0
    with pytest.raises(KeyError):
        z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    assert_equal(x.grad, [8.0])


# -- memory ---------------------------------------------------------------------------------------


def test_saved_memory_is_released_as_backward_passes():
    saved, during = [], []
    save = saving_in(saved)
    x = leaf([1.0])
    y = x
    for _ in range(4):
        y = save(y)
        y.register_hook(lambda grad: during.append(alive(saved)))
    assert alive(saved) == [True] * 4
    y.backward()
    assert during == [
        [True, True, True, True],
        [True, True, True, False],
        [True, True, False, False],
        [True, False, False, False],
    ]
    assert alive(saved) == [False] * 4
    assert_equal(x.grad, [1.0])


def test_saved_memory_is_kept_by_retain_graph():
    saved = []
    save = saving_in(saved)
    y = save(save(leaf([1.0])))
    y.backward(retain_graph=True)
    assert alive(saved) == [True, True]
    y.backward()
    assert alive(saved) == [False, False]


def test_saved_memory_goes_with_the_graph():
    saved = []
    y = saving_in(saved)(leaf([1.0]))
    z = y * 2.0
    del y
    assert alive(saved) == [True]
    del z
    assert alive(saved) == [False]


def test_saved_values_cannot_be_read_after_they_were_freed():
    y = leaf([1.0]).exp()
    assert_close(y.grad_fn._saved_result, y.detach())
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result  # noqa: B018


def test_an_operator_does_not_keep_what_its_derivative_does_not_need():
    memory = numpy.ones(3)
    reference = weakref.ref(memory)
    x = leaf([1.0, 2.0, 3.0])
    y = x + F.from_numpy(memory)
    del memory
    assert reference() is None, "a sum saves no operand"
    assert_equal(y, [2.0, 3.0, 4.0])


def test_a_graph_without_backward_is_freed_by_reference_counting():
    gc.disable()
    try:
        saved = []
        y = saving_in(saved)(leaf([1.0])).exp() * 2.0
        del y
        assert alive(saved) == [False]
    finally:
        gc.enable()


class Token:
    pass


class Holding:
    """A hook that only keeps things alive, and counts."""

    def __init__(self, *held):
        self.held = held
        self.calls = 0

    def __call__(self, grad):
        self.calls += 1


@pytest.mark.facula_only
def test_cycles_through_tensor_hooks_are_collected():
    x = leaf([1.0])
    y = x * 2.0
    token = Token()
    reference = weakref.ref(token)
    y.register_hook(Holding(y, token))
    del y, token
    gc.collect()
    assert reference() is None


def test_cycles_through_hooks_of_leaves_are_collected():
    x = leaf([1.0])
    token = Token()
    reference = weakref.ref(token)
    x.register_hook(Holding(x, token))
    (x * 2.0).backward()
    del x, token
    gc.collect()
    assert reference() is None


def test_cycles_through_attributes_are_collected():
    x = leaf([1.0])
    x.itself = x
    x.token = Token()
    reference = weakref.ref(x.token)
    del x
    gc.collect()
    assert reference() is None


def test_cycles_through_the_context_of_a_function_are_collected():
    class Keeping(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.token = Token()
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Keeping.apply(leaf([1.0]))
    reference = weakref.ref(y.grad_fn.token)
    y.grad_fn.output = y
    del y
    gc.collect()
    assert reference() is None


@pytest.mark.facula_only
def test_cycles_through_the_metadata_of_a_node_are_collected():
    y = leaf([1.0]) * 2.0
    token = Token()
    reference = weakref.ref(token)
    y.grad_fn.metadata["cycle"] = (y, token)
    del y, token
    gc.collect()
    assert reference() is None


def test_a_weak_reference_lives_as_long_as_the_graph_that_leads_to_its_tensor():
    x = leaf([1.0, 2.0])
    reference = weakref.ref(x)
    y = (x * 2.0).sum()
    del x
    gc.collect()
    y.backward()
    assert_equal(reference().grad, [2.0, 2.0])
    del y
    gc.collect()
    assert reference() is None


def test_a_live_graph_keeps_its_hooks_through_a_collection():
    x = leaf([1.0])
    y = x * 2.0
    hook = Holding(y)
    y.register_hook(hook)
    z = y * 3.0
    del y
    gc.collect()
    z.backward()
    assert hook.calls == 1
    assert_equal(x.grad, [6.0])


@pytest.mark.parametrize("operation", [lambda x: x * 2, lambda x: x / 2, lambda x: x * F.ones(2)])
def test_a_number_counts_as_a_saved_operand_when_a_graph_is_run_again(operation):
    x = F.ones(2, requires_grad=True)
    y = operation(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


@pytest.mark.parametrize(
    "operation", [lambda x: x + 2, lambda x: -x, lambda x: x[0], lambda x: x.lerp(x, 0.5)]
)
def test_a_node_that_saved_nothing_can_be_run_again(operation):
    x = F.ones(2, requires_grad=True)
    y = operation(x).sum()
    y.backward()
    y.backward()


def test_a_gradient_for_an_input_in_the_middle_has_memory_of_its_own():
    x = F.ones(3, requires_grad=True)
    y = x * 2
    y.sum().backward(inputs=[y])
    y.grad.add_(1)
    assert_equal(y.grad, [2.0, 2.0, 2.0])
    assert x.grad is None


def test_joined_tensors_are_not_kept_for_their_gradients():
    """Only their shapes are, so the graph can be run again."""
    a, b, empty = F.ones(2, 3), F.ones(2, 1, dtype=F.float64), F.ones(0)
    inputs = [t.requires_grad_() for t in (a, b, empty)]
    y = F.cat(inputs, 1)
    for factor in (1.0, 2.0):
        grads = F.autograd.grad(y, inputs, F.full_like(y, factor))
        assert [g.dtype for g in grads] == [t.dtype for t in inputs]
        assert [g.shape for g in grads] == [t.shape for t in inputs]
        assert all((g == factor).all() for g in grads)


def test_weak_references_hold_as_long_as_the_tensor_they_refer_to():
    w = F.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    gradient = weakref.ref(w.grad)
    assert gradient() is w.grad
    w.grad = None
    assert gradient() is None

    ended = []
    x = F.ones(2)
    weakref.finalize(x, ended.append, "x")
    saved = weakref.ref(x)
    y = (x * w).sum()
    del x
    assert saved() is not None and ended == []  # the graph has saved it
    y.backward()
    del y
    gc.collect()
    assert saved() is None and ended == ["x"]


# ---- leaves that are frozen later ----------------------------------------------------------------


def test_a_leaf_frozen_after_the_forward_gets_no_gradient():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward(retain_graph=True)
    assert x.grad is None
    assert_equal(w.grad, [1.0, 2.0])
    x.requires_grad_(True)
    y.backward()
    assert_equal(x.grad, [3.0, 4.0])


def test_a_leaf_frozen_after_the_forward_keeps_its_gradient_and_its_hooks():
    x, seen = leaf([1.0, 2.0]), []
    x.grad = F.ones(2, dtype=x.dtype)
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("accumulated"))
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert_equal(x.grad, [1.0, 1.0])
    assert seen == [[2.0, 2.0], "accumulated"]


def test_a_detached_leaf_gets_no_gradient():
    x = leaf([1.0])
    y = x * 2
    x.detach_()
    y.backward()
    assert x.grad is None
