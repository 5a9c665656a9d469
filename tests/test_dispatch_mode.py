"""Modes that are given every kernel: ``utils._python_dispatch``."""

import pytest

import facula
from facula.utils._python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    is_in_torch_dispatch_mode,
    is_traceable_wrapper_subclass,
)

aten = facula.ops.aten


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def names_of(function):
    with Names() as mode:
        function()
    return mode.seen


def test_operators_come_by_the_names_of_aten():
    x = facula.ones(2, 3)
    assert names_of(lambda: x + 1) == ["aten.add.Tensor"]
    assert names_of(lambda: x @ x.t()) == ["aten.t.default", "aten.mm.default"]
    assert names_of(lambda: x.clone().add_(1)) == ["aten.clone.default", "aten.add_.Tensor"]
    assert names_of(lambda: x[0]) == ["aten.select.int"]
    assert names_of(lambda: x > 0) == ["aten.gt.Scalar"]
    assert names_of(lambda: x == x) == ["aten.eq.Tensor"]
    assert names_of(lambda: x**2) == ["aten.pow.Tensor_Scalar"]
    out = facula.empty(2, 3)
    assert names_of(lambda: facula.add(x, x, out=out)) == ["aten.add.out"]


def test_operators_can_be_compared_with_those_of_the_program():
    class Count(TorchDispatchMode):
        found = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.found += func is aten.mm.default
            return func(*args, **(kwargs or {}))

    x = facula.ones(2, 2)
    with Count() as mode:
        x.mm(x).mm(x).exp()
    assert mode.found == 2


def test_results_are_the_same_and_gradients_flow():
    x = facula.randn(3, 3, requires_grad=True)

    def loss():
        return (x.mm(x).exp() + facula.nn.functional.softmax(x, 1)).sum()

    plain = facula.autograd.grad(loss(), x)[0]
    with Names() as mode:
        value = loss()
        assert value.requires_grad
        grad = facula.autograd.grad(value, x)[0]
    facula.testing.assert_close(grad, plain)
    assert mode.seen.count("aten.mm.default") == 3  # once forward, twice for the gradients


def test_a_mode_may_change_arguments_and_results():
    class Twice(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func == aten.exp.default:
                return func(args[0] * 2)
            if func == aten.sin.default:
                return func(*args) + 1
            if func == aten.cos.default:
                return args[0]
            return func(*args, **(kwargs or {}))

    x = facula.tensor([0.5, 1.0])
    with Twice():
        power = x.exp()
        sine = x.sin()
        same = x.cos()
    facula.testing.assert_close(power, (x * 2).exp())
    facula.testing.assert_close(sine, x.sin() + 1)
    assert same.equal(x) and same is not x


def test_lists_and_several_results_pass():
    class Back(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            results = func(*args, **(kwargs or {}))
            return type(results)(results) if isinstance(results, list) else results

    x = facula.arange(6.0).view(2, 3)
    with Back():
        values, indices = x.max(1)
        parts = x.split(1)
    assert values.tolist() == [2, 5] and indices.tolist() == [2, 2]
    assert [p.tolist() for p in parts] == [[[0, 1, 2]], [[3, 4, 5]]]


def test_modes_nest_and_are_off_inside_of_themselves():
    order = []

    class Outer(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(("outer", str(func)))
            return func(*args, **(kwargs or {}))

    class Inner(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(("inner", str(func)))
            args[0].abs()  # seen by the outer mode alone
            return func(*args, **(kwargs or {}))

    x = facula.ones(2)
    with Outer() as outer, Inner() as inner:
        assert _get_current_dispatch_mode() is inner
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        x.exp()
        with _disable_current_modes():
            assert not is_in_torch_dispatch_mode()
            x.log()
        assert is_in_torch_dispatch_mode()
    assert order == [
        ("inner", "aten.exp.default"),
        ("outer", "aten.abs.default"),
        ("outer", "aten.exp.default"),
    ]
    assert _get_current_dispatch_mode() is None


def test_nothing_inside_of_a_mode_is_recorded():
    states = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            states.append((result.requires_grad, (args[0] * 2).requires_grad))
            return result

    x = facula.ones(2, requires_grad=True)
    with Watch():
        y = x.exp()
    assert states == [(False, False)] and y.requires_grad


def test_errors_leave_and_the_mode_goes_on():
    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func == aten.exp.default:
                raise ValueError("no exp")
            return func(*args, **(kwargs or {}))

    x = facula.ones(2)
    with Refuse():
        with pytest.raises(ValueError, match="no exp"):
            x.exp()
        assert x.sin().shape == (2,)
    assert x.exp().shape == (2,)
    with pytest.raises(NotImplementedError), TorchDispatchMode():
        x.exp()
    with pytest.raises(TypeError, match="return tensors"), Wrong():
        x.exp()
    with BaseTorchDispatchMode():
        assert x.exp().shape == (2,)


class Wrong(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return 3


def test_in_place_calls_count_once():
    x = facula.ones(2)
    with Names():
        x.add_(1)
    assert x._version == 1 and x.tolist() == [2, 2]


def test_subclasses_that_can_be_taken_apart():
    class Apart(facula.Tensor):
        def __tensor_flatten__(self):
            return [], None

        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return inner

    assert is_traceable_wrapper_subclass(facula.ones(1).as_subclass(Apart))
    assert not is_traceable_wrapper_subclass(facula.ones(1))
