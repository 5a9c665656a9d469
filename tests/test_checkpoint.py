"""Checkpointed regions give the same gradients, keep nothing, and notice when they changed."""

import gc
import threading
import warnings
import weakref
from contextlib import contextmanager

import numpy
import pytest
from package_under_test import F, assert_close, assert_equal, facula_module, leaf

module = facula_module("utils.checkpoint")
checkpoint, checkpoint_sequential = module.checkpoint, module.checkpoint_sequential
CheckpointError = module.CheckpointError

both_variants = pytest.mark.parametrize("reentrant", [False, True], ids=["hooks", "reentrant"])


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def saving_in(collected):
    """An identity that saves memory which it adds to `collected` as weak references."""

    class Saving(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            memory = numpy.ones(3)
            collected.append(weakref.ref(memory))
            ctx.save_for_backward(F.from_numpy(memory))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (ones,) = ctx.saved_tensors
            return grad * ones.sum() / 3.0

    return Saving.apply


def alive(references):
    gc.collect()
    return sum(reference() is not None for reference in references)


@both_variants
def test_the_gradients_are_those_of_the_plain_function(reentrant):
    function = Counted(lambda x, y: (x * y).sin().exp() * x)
    x, y = leaf([0.5, -1.0]), leaf([2.0, 3.0])
    expected = F.autograd.grad(function(x, y).sum(), (x, y))
    function.calls = 0
    result = checkpoint(function, x, y, use_reentrant=reentrant)
    assert function.calls == 1
    result.sum().backward()
    assert function.calls == 2
    assert_equal(x.grad, expected[0])
    assert_equal(y.grad, expected[1])


@both_variants
def test_gradients_flow_through_the_region(reentrant):
    x = leaf([0.5, -1.0])
    (checkpoint(F.sin, x * 2.0, use_reentrant=reentrant) * 3.0).sum().backward()
    assert_close(x.grad, 6.0 * (2.0 * x.detach()).cos())


@both_variants
def test_several_outputs_and_other_values_pass_through(reentrant):
    x = leaf([0.5, -1.0])
    first, name, second = checkpoint(
        lambda x, scale: (x * scale, "name", x.exp()), x, 2.0, use_reentrant=reentrant
    )
    assert name == "name"
    (first * second).sum().backward()
    plain = leaf([0.5, -1.0])
    (plain * 2.0 * plain.exp()).sum().backward()
    assert_close(x.grad, plain.grad)


@both_variants
def test_parameters_in_the_closure_get_gradients(reentrant):
    x, weight = leaf([0.5, -1.0]), leaf([2.0, 3.0])
    checkpoint(lambda x: (x * weight).exp(), x, use_reentrant=reentrant).sum().backward()
    assert_close(weight.grad, (x * (x * weight).exp()).detach())


@both_variants
def test_regions_can_be_nested(reentrant):
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=reentrant) * x

    x = leaf([0.5, -1.0])
    checkpoint(outer, x, use_reentrant=reentrant).sum().backward()
    plain = leaf([0.5, -1.0])
    (inner(plain.cos()) * plain).sum().backward()
    assert_equal(x.grad, plain.grad)


@both_variants
def test_the_recomputation_sees_the_same_random_numbers(reentrant):
    x = F.ones(5, dtype=F.float64, requires_grad=True)
    F.manual_seed(0)
    result = checkpoint(lambda x: x * F.rand_like(x), x, use_reentrant=reentrant)
    following = F.rand(3)
    state = F.get_rng_state()
    result.sum().backward()
    assert_equal(x.grad, result.detach())
    assert bool((F.get_rng_state() == state).all()), "backward must not advance the generator"
    F.manual_seed(0)
    F.rand(5, dtype=F.float64)
    assert_equal(following, F.rand(3))


@both_variants
def test_random_state_is_not_preserved_when_asked_not_to(reentrant):
    x = F.ones(5, dtype=F.float64, requires_grad=True)
    F.manual_seed(0)
    result = checkpoint(
        lambda x: x * F.rand_like(x), x, use_reentrant=reentrant, preserve_rng_state=False
    )
    result.sum().backward()
    assert bool((x.grad != result.detach()).all())


@both_variants
def test_without_grad_mode_the_function_just_runs(reentrant):
    function = Counted(F.sin)
    x = leaf([0.5])
    with F.no_grad():
        result = checkpoint(function, x, use_reentrant=reentrant)
    assert not result.requires_grad and function.calls == 1
    assert_close(result, x.sin())


@both_variants
def test_forward_keeps_nothing_that_the_region_saved(reentrant):
    saved = []
    save = saving_in(saved)
    x = leaf([0.5, -1.0])
    plain = save(save(x))
    assert alive(saved) == 2
    del plain
    assert alive(saved) == 0
    result = checkpoint(lambda x: save(save(x)), x, use_reentrant=reentrant)
    assert alive(saved) == 0
    result.sum().backward()
    assert_equal(x.grad, [1.0, 1.0])
    assert alive(saved) == 0


def test_recomputed_memory_goes_as_backward_passes():
    saved, during = [], []
    save = saving_in(saved)
    x = leaf([0.5, -1.0])

    def region(x):
        first = save(x)
        first.register_hook(lambda grad: during.append(alive(saved)))
        return save(first)

    # The hook runs after the last node of the region has been passed, and before the first one.
    checkpoint(region, x, use_reentrant=False).sum().backward()
    assert during == [1]


def test_a_retained_graph_does_not_retain_the_recomputed_memory():
    saved = []
    save = saving_in(saved)
    x = leaf([0.5, -1.0])
    function = Counted(lambda x: save(save(x)))
    loss = checkpoint(function, x, use_reentrant=False).sum()
    loss.backward(retain_graph=True)
    assert alive(saved) == 0
    loss.backward()
    assert function.calls == 3
    assert_equal(x.grad, [2.0, 2.0])


def test_the_region_is_freed_with_its_graph():
    class Payload:
        pass

    payload = Payload()
    reference = weakref.ref(payload)
    x = leaf([0.5, -1.0])
    result = checkpoint(lambda x, payload: x.sin(), x, payload, use_reentrant=False)
    del payload
    assert reference() is not None
    del result
    assert reference() is None, "freed by reference counting, without the cycle collector"


def test_early_stop_ends_after_the_last_saved_tensor():
    ends = []

    def function(x):
        y = x.sin()
        ends.append("saved")
        y = y + 1.0
        ends.append("end")
        return y

    x = leaf([0.5])
    checkpoint(function, x, use_reentrant=False).backward()
    assert ends == ["saved", "end"], "sin saves its input before it returns"
    checkpoint(function, x, use_reentrant=False, early_stop=False).backward()
    assert ends == ["saved", "end"] * 3
    with module.set_checkpoint_early_stop(False):
        result = checkpoint(function, x, use_reentrant=False)
    result.backward()
    assert ends == ["saved", "end"] * 5
    with module.set_checkpoint_early_stop(True):
        result = checkpoint(function, x, use_reentrant=False, early_stop=False)
    result.backward()
    assert ends == ["saved", "end"] * 6
    assert_close(x.grad, [4 * numpy.cos(0.5)])


def test_early_stop_passes_handlers_of_exceptions():
    def function(x):
        try:
            return x.sin()
        except Exception:
            return x.cos()

    x = leaf([0.5])
    checkpoint(function, x, use_reentrant=False).backward()
    assert_close(x.grad, [numpy.cos(0.5)])


def test_keyword_arguments_and_nested_results_are_supported():
    x, y = leaf([0.5, -1.0]), leaf([2.0, 3.0])
    result = checkpoint(
        lambda x, *, y, flag: {"out": [x * y]}, x, y=y, flag=True, use_reentrant=False
    )
    result["out"][0].sum().backward()
    assert_equal(x.grad, y.detach())
    assert_equal(y.grad, x.detach())


def test_grad_function_and_higher_derivatives_are_supported():
    x = leaf([0.5, -1.0])
    result = checkpoint(lambda x: x.sin() * x, x, use_reentrant=False)
    (first,) = F.autograd.grad(result.sum(), x, create_graph=True)
    (second,) = F.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = F.autograd.grad(second.sum(), x)
    d = x.detach()
    assert_close(first, d.cos() * d + d.sin())
    assert_close(second, 2 * d.cos() - d * d.sin())
    assert_close(third, -3 * d.sin() - d * d.cos())


def test_a_backward_inside_of_the_region_is_supported():
    def penalty(x):
        (slope,) = F.autograd.grad((x**3).sum(), x, create_graph=True)
        return (slope * slope).sum()

    for early_stop in (True, False):
        x = leaf([0.5, -1.0])
        checkpoint(penalty, x, use_reentrant=False, early_stop=early_stop).backward()
        # d/dx (3 x^2)^2 = 36 x^3
        assert_close(x.grad, 36.0 * x.detach() ** 3)


def test_a_retained_graph_can_be_used_in_several_threads():
    x = F.ones(3, dtype=F.float64, requires_grad=True)
    loss = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum()
    expected = F.autograd.grad(loss, x, retain_graph=True)[0]
    results = []

    def work():
        results.append(F.autograd.grad(loss, x, retain_graph=True)[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        assert_equal(result, expected)


def test_contexts_surround_forward_and_recomputation():
    events = []

    @contextmanager
    def noting(name):
        events.append(f"enter {name}")
        try:
            yield
        finally:
            events.append(f"exit {name}")

    x = leaf([0.5])
    contexts = noting("forward"), noting("recompute")
    result = checkpoint(F.sin, x, use_reentrant=False, context_fn=lambda: contexts)
    assert events == ["enter forward", "exit forward"]
    result.backward()
    assert events[2:] == ["enter recompute", "exit recompute"]


def test_a_different_number_of_saved_tensors_is_an_error():
    state = {"second": False}

    def function(x):
        return x.sin() if state["second"] else x.sin().cos()

    x = leaf([0.5, 1.0])
    result = checkpoint(function, x, use_reentrant=False)
    state["second"] = True
    with pytest.raises(CheckpointError, match=r"different number of tensors.*2 during forward, 1"):
        result.sum().backward()


def test_more_saved_tensors_are_an_error_without_early_stop():
    state = {"second": False}

    def function(x):
        return x.sin().cos() if state["second"] else x.sin()

    x = leaf([0.5, 1.0])
    result = checkpoint(function, x, use_reentrant=False, early_stop=False)
    state["second"] = True
    with pytest.raises(CheckpointError, match=r"different number of tensors.*1 during forward, 2"):
        result.sum().backward()


def test_different_shapes_of_saved_tensors_are_an_error():
    state = {"size": 3}
    x = leaf([0.5, 1.0, 1.5])

    def function(x):
        return x[: state["size"]].sin().sum()

    result = checkpoint(function, x, use_reentrant=False)
    state["size"] = 2
    with pytest.raises(CheckpointError, match="different metadata") as caught:
        result.backward()
    assert "shape (3,)" in str(caught.value) and "shape (2,)" in str(caught.value)


def test_debug_mode_says_where_the_tensors_were_saved():
    state = {"second": False}

    def function(x):
        if state["second"]:
            return x.double().exp()
        return x.sin().exp()

    x = F.ones(2, requires_grad=True)
    result = checkpoint(function, x, use_reentrant=False, debug=True)
    state["second"] = True
    with pytest.raises(CheckpointError) as caught:
        result.sum().backward()
    text = str(caught.value)
    assert "return x.sin().exp()" in text and "return x.double().exp()" in text
    assert "test_checkpoint.py:" in text

    state["second"] = False
    with module.set_checkpoint_debug_enabled(True):
        result = checkpoint(function, x, use_reentrant=False)
    state["second"] = True
    with pytest.raises(CheckpointError, match="Saved during forward"):
        result.sum().backward()


def test_checkpoint_error_is_a_runtime_error():
    assert issubclass(CheckpointError, RuntimeError)


def test_the_check_of_metadata_can_be_turned_off():
    state = {"dtype": F.float32}
    x = leaf([0.5, 1.0])

    def function(x):
        return x.to(state["dtype"]).sin().to(F.float64)

    result = checkpoint(function, x, use_reentrant=False, determinism_check="none")
    state["dtype"] = F.float64
    try:
        result.sum().backward()
    except CheckpointError:  # pragma: no cover
        pytest.fail("the check was turned off")
    except RuntimeError:
        pass  # the tape may refuse the other dtype by itself
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(F.sin, x, use_reentrant=False, determinism_check="strict")


@both_variants
def test_arguments_changed_in_place_are_noticed(reentrant):
    x = F.ones(2, dtype=F.float64, requires_grad=True)
    y = x * 2.0
    result = checkpoint(F.sin, y, use_reentrant=reentrant)
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@both_variants
def test_exceptions_of_the_function_come_through(reentrant):
    state = {"second": False}

    def function(x):
        if state["second"]:
            raise KeyError("in the second run")
        return x.sin()

    x = leaf([0.5])
    result = checkpoint(function, x, use_reentrant=reentrant)
    state["second"] = True
    with pytest.raises(KeyError, match="in the second run"):
        result.backward()
    state["second"] = False
    checkpoint(function, x, use_reentrant=reentrant).backward()
    assert_close(x.grad, [numpy.cos(0.5)])


def test_the_reentrant_variant_refuses_autograd_grad():
    x = leaf([0.5])
    result = checkpoint(F.sin, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"checkpoint is incompatible with \.grad\(\)"):
        F.autograd.grad(result, x)
    refused = r"When use_reentrant=True, .*passing an `inputs` parameter"
    with pytest.raises(RuntimeError, match=refused):
        checkpoint(F.sin, x, use_reentrant=True).backward(inputs=[x])


def test_the_reentrant_variant_refuses_what_it_does_not_support():
    x = leaf([0.5])
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(F.sin, x, use_reentrant=True, context_fn=lambda: None)
    with pytest.raises(ValueError, match="debug"):
        checkpoint(F.sin, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="scale"):
        checkpoint(F.sin, x, use_reentrant=True, scale=1.0)


def test_the_reentrant_variant_warns_when_no_input_requires_grad():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(F.sin, F.ones(2), use_reentrant=True)


def test_the_variant_should_be_named():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(F.sin, leaf([0.5]))
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint_sequential([F.sin], 1, leaf([0.5]))


def test_nothing_that_requires_grad_may_be_passed_without_reentry():
    weight = leaf([2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = checkpoint(lambda x: (x * weight).sin(), F.ones(2), use_reentrant=False)
    result.sum().backward()
    assert_close(weight.grad, weight.detach().cos())


@both_variants
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_a_sequence_is_checkpointed_in_segments(segments, reentrant):
    layers = [Counted(f) for f in (F.sin, F.exp, F.tanh, F.cos, lambda x: x * x)]
    x = leaf([0.5, -1.0])
    result = checkpoint_sequential(layers, segments, x, use_reentrant=reentrant)
    result.sum().backward()
    plain = leaf([0.5, -1.0])
    value = plain
    for layer in layers:
        value = layer.function(value)
    value.sum().backward()
    assert_equal(result, value.detach())
    assert_equal(x.grad, plain.grad)
    in_last = len(layers) - (len(layers) // segments) * (segments - 1)
    twice = [layer.calls == 2 for layer in layers]
    assert twice == [True] * (len(layers) - in_last) + [False] * in_last


def test_a_module_gives_its_children_as_the_sequence():
    class Sequential:
        def children(self):
            return iter([F.sin, F.exp])

    x = leaf([0.5])
    checkpoint_sequential(Sequential(), 2, x, use_reentrant=False).backward()
    assert_close(x.grad, [numpy.cos(0.5) * numpy.exp(numpy.sin(0.5))])


def test_a_sequence_refuses_bad_segments_and_arguments():
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([F.sin], 2, leaf([0.5]), use_reentrant=False)
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([F.sin], 0, leaf([0.5]), use_reentrant=False)
    with pytest.raises(ValueError, match="surplus"):
        checkpoint_sequential([F.sin], 1, leaf([0.5]), use_reentrant=False, surplus=1)


@pytest.mark.skipif(not hasattr(F, "autocast"), reason="needs autocast")
@both_variants
def test_the_recomputation_runs_under_the_same_autocast(reentrant):
    seen = []

    def function(x):
        result = x @ x
        seen.append(result.dtype)
        return result.sum() * 1.0

    x = F.ones(2, 2, requires_grad=True)
    with F.autocast("cpu", dtype=F.bfloat16):
        result = checkpoint(function, x, use_reentrant=reentrant)
    result.backward()
    assert seen[:1] == [F.bfloat16] and set(seen) == {F.bfloat16}
    assert_close(x.grad, F.full((2, 2), 4.0))
