"""no_grad, enable_grad, set_grad_enabled and inference_mode as contexts and decorators."""

import threading

import pytest
from package_under_test import F, assert_equal, leaf


def test_no_grad_records_nothing():
    x = leaf([1.0])
    with F.no_grad():
        assert not F.is_grad_enabled()
        assert not (x * 2.0).requires_grad
        with F.enable_grad():
            assert (x * 2.0).requires_grad
        assert not F.is_grad_enabled()
    assert F.is_grad_enabled()


def test_grad_mode_comes_back_after_an_exception():
    with pytest.raises(KeyError), F.no_grad():
        raise KeyError
    assert F.is_grad_enabled()


def test_tensors_made_under_no_grad_may_require_grad():
    with F.no_grad():
        x = F.ones(2, requires_grad=True)
        assert x.requires_grad
    (x * 3.0).sum().backward()
    assert_equal(x.grad, [3.0, 3.0])


def test_set_grad_enabled_is_a_function_and_a_context():
    F.set_grad_enabled(False)
    try:
        assert not F.is_grad_enabled()
    finally:
        F.set_grad_enabled(True)
    with F.set_grad_enabled(False):
        assert not F.is_grad_enabled()
        with F.set_grad_enabled(True):
            assert F.is_grad_enabled()
        assert not F.is_grad_enabled()
    assert F.is_grad_enabled()


@pytest.mark.parametrize(
    ("decorator", "inside"),
    [
        (lambda: F.no_grad(), False),
        (lambda: F.no_grad, False),
        (lambda: F.set_grad_enabled(False), False),
        (lambda: F.enable_grad(), True),
        (lambda: F.inference_mode(), False),
    ],
)
def test_grad_modes_decorate_functions(decorator, inside):
    @decorator()
    def documented():
        """The docstring."""
        return F.is_grad_enabled()

    assert documented.__name__ == "documented" and documented.__doc__ == "The docstring."
    assert F.is_grad_enabled()
    with F.set_grad_enabled(not inside):
        assert documented() is inside
        assert documented() is inside, "a decorator can be used many times"
        assert F.is_grad_enabled() is (not inside)


def test_set_grad_enabled_as_a_decorator_does_not_change_the_mode_outside():
    @F.set_grad_enabled(False)
    def function():
        return F.is_grad_enabled()

    assert F.is_grad_enabled()
    assert function() is False


def test_decorated_generators_switch_the_mode_only_while_they_run():
    @F.no_grad()
    def numbers():
        received = yield F.is_grad_enabled()
        while received is not None:
            received = yield (received, F.is_grad_enabled())
        try:
            yield "waiting"
        except KeyError:
            yield ("caught", F.is_grad_enabled())

    generator = numbers()
    assert next(generator) is False
    assert F.is_grad_enabled()
    assert generator.send(3) == (3, False)
    assert F.is_grad_enabled()
    assert generator.send(None) == "waiting"
    assert generator.throw(KeyError("k")) == ("caught", False)
    assert F.is_grad_enabled()
    with pytest.raises(StopIteration):
        next(generator)


def test_decorated_generators_return_their_value():
    @F.no_grad()
    def inner():
        yield 1
        return "done"

    def outer():
        return (yield from inner())

    generator = outer()
    assert next(generator) == 1
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "done"


def test_grad_mode_belongs_to_the_thread():
    seen = []
    with F.no_grad():
        thread = threading.Thread(target=lambda: seen.append(F.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode_makes_inference_tensors():
    x = leaf([1.0])
    with F.inference_mode():
        assert F.is_inference_mode_enabled() and not F.is_grad_enabled()
        y = x * 2.0
        assert y.is_inference() and not y.requires_grad
    assert not F.is_inference_mode_enabled()
    assert y.is_inference() and not x.is_inference()
    with F.inference_mode(False):
        assert not F.is_inference_mode_enabled()


def test_inference_tensors_cannot_be_saved_for_backward():
    x = leaf([1.0])
    with F.inference_mode():
        y = F.ones(1, dtype=F.float64)
    with pytest.raises(RuntimeError, match=r"[Ii]nference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="requires_grad"):
        y.requires_grad_()
    assert (x + y).requires_grad


def test_inference_tensors_cannot_be_changed_in_place_outside():
    with F.inference_mode():
        y = F.ones(1)
        y.add_(1.0)
    with pytest.raises(RuntimeError, match=r"[Ii]nplace update to inference tensor"):
        y.add_(1.0)
    assert not y.clone().is_inference()


@pytest.mark.facula_only
def test_a_refused_change_in_place_leaves_the_values_alone():
    with F.inference_mode():
        y = F.ones(1)
    with pytest.raises(RuntimeError):
        y.add_(1.0)
    assert_equal(y, [1.0])


def test_inference_tensors_have_no_version():
    with F.inference_mode():
        y = F.ones(1)
    with pytest.raises(RuntimeError, match="version counter"):
        y._version  # noqa: B018


def test_views_in_inference_mode_are_what_they_view():
    x = leaf([[1.0, 2.0]])
    with F.inference_mode():
        made = F.ones(1, 2)
        views = [
            lambda t: t.detach(),
            lambda t: t.view(2),
            lambda t: t.reshape(2),
            lambda t: t[0],
            lambda t: t.T,
            lambda t: t.unbind()[0],
            lambda t: F.broadcast_tensors(t, t)[1][:1],
        ]
        for view in views:
            assert not view(x).is_inference() and view(made).is_inference()
        kept, copied = x.detach(), x.clone()
    assert copied.is_inference()
    (x * kept).sum().backward()
    assert_equal(x.grad, [[1.0, 2.0]])
    assert_equal(kept.add_(1.0), [[2.0, 3.0]])
    assert x._version == 1


def test_state_dict_of_inference_mode_can_be_trained_with():
    source = F.nn.Linear(1, 1)
    with F.inference_mode():
        state = source.state_dict()
    module = F.nn.Linear(1, 1)
    module.load_state_dict(state, assign=True)
    module(F.ones(1, 1)).sum().backward()
    assert module.weight.grad.tolist() == [[1.0]]
