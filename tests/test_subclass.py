"""Subclasses of Tensor and __torch_function__."""

import copy
import pickle

import pytest
from package_under_test import F


class Tagged(F.Tensor):
    """A subclass that changes nothing."""


class Child(Tagged):
    """A subclass of a subclass."""


class Stranger(F.Tensor):
    """A subclass that is no relative of Tagged."""


class Recorder(F.Tensor):
    """Remembers every call that reaches it."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types, args, kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


class Duck:
    """Not a tensor, but answers for one."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types, args, kwargs or {}))
        return "quack"


class Refuses:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def tagged(*values):
    return F.tensor(list(values)).as_subclass(Tagged)


def calls_of(action):
    Recorder.calls.clear()
    action(F.ones(2).as_subclass(Recorder))
    return list(Recorder.calls)


# ---- results are of the subclass -------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: 1 + x,
        lambda x: x + F.ones(2),
        lambda x: F.ones(2) + x,
        lambda x: F.add(x, 1),
        lambda x: x == x,
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: x.view(2, 1),
        lambda x: x.clone(),
        lambda x: x.detach(),
        lambda x: x.double(),
        lambda x: x.new_zeros(2),
        lambda x: F.zeros_like(x),
        lambda x: F.stack([F.ones(2), x]),
        lambda x: x.split(1)[0],
        lambda x: x.max(0)[1],
        lambda x: next(iter(x)),
        lambda x: x.add_(1),
        lambda x: x.data,
        lambda x: x.T if x.dim() == 2 else x.mul(2),
    ],
)
def test_results_are_of_the_subclass(call):
    assert type(call(tagged(1.0, 2.0))) is Tagged


def test_values_that_are_not_tensors_stay_what_they_are():
    x = tagged(1.0, 2.0)
    assert type(x.tolist()) is list
    assert type(x.shape) is F.Size
    assert type(x.numpy()).__name__ == "ndarray"
    assert type(x.sum().item()) is float
    assert x.dtype is F.float32


def test_the_most_derived_class_wins():
    child = F.ones(2).as_subclass(Child)
    assert type(child + tagged(1.0, 2.0)) is Child
    assert type(tagged(1.0, 2.0) + child) is Child


def test_unrelated_subclasses_do_not_mix():
    with pytest.raises(TypeError):
        tagged(1.0, 2.0) + F.ones(2).as_subclass(Stranger)


def test_as_subclass_shares_memory_and_keeps_the_tape():
    x = F.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Tagged)
    assert type(y) is Tagged
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    z = F.zeros(2)
    z.as_subclass(Tagged)[0] = 5
    assert z.tolist() == [5.0, 0.0]
    assert type(tagged(1).as_subclass(F.Tensor)) is F.Tensor
    with pytest.raises(TypeError, match="inherit from Tensor"):
        F.ones(2).as_subclass(int)


def test_subclasses_are_made_by_calling_them():
    assert type(Tagged([1, 2])) is Tagged
    assert Tagged([1, 2]).tolist() == [1.0, 2.0]
    assert Tagged(2, 3).shape == (2, 3)


def test_attributes_belong_to_one_tensor():
    x = tagged(1.0, 2.0)
    x.name_of_it = "x"
    assert x.name_of_it == "x"
    assert not hasattr(x + 1, "name_of_it")
    assert not hasattr(x.view(2), "name_of_it")


def test_methods_and_slots_of_a_subclass():
    class Meters(F.Tensor):
        def to_feet(self):
            return self * 3.28084

        def __len__(self):
            return 77

    x = F.ones(2).as_subclass(Meters)
    assert type(x.to_feet()) is Meters
    assert len(x) == 77
    assert isinstance(x, F.Tensor)
    assert repr(x).startswith("Meters(")


def test_pickle_keeps_the_subclass():
    x = pickle.loads(pickle.dumps(tagged(1.0, 2.0)))
    assert type(x) is Tagged
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.facula_only
def test_deepcopy_keeps_the_subclass():
    x = tagged(1.0, 2.0)
    x.note = [1]
    y = copy.deepcopy(x)
    assert type(y) is Tagged
    assert y.tolist() == [1.0, 2.0]
    assert y.note == [1] and y.note is not x.note


# ---- overriding ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action, func",
    [
        (lambda x: F.add(x, 1), lambda: F.add),
        (lambda x: x.add(1), lambda: F.Tensor.add),
        (lambda x: x + 1, lambda: F.Tensor.add),
        (lambda x: x @ x, lambda: F.Tensor.matmul),
        (lambda x: x.add_(1), lambda: F.Tensor.add_),
        (lambda x: F.sum(x, 0), lambda: F.sum),
        (lambda x: x.sum(), lambda: F.Tensor.sum),
        (lambda x: x.size(), lambda: F.Tensor.size),
        (lambda x: x[0], lambda: F.Tensor.__getitem__),
        (lambda x: x.__setitem__(0, 1), lambda: F.Tensor.__setitem__),
        (lambda x: x.to(F.float64), lambda: F.Tensor.to),
        (lambda x: F.stack([F.ones(2), x]), lambda: F.stack),
        (lambda x: F.zeros_like(x), lambda: F.zeros_like),
        (lambda x: F.where(F.tensor(True), x, 0), lambda: F.where),
        (lambda x: x.shape, lambda: F.Tensor.shape.__get__),
        (lambda x: x.dtype, lambda: F.Tensor.dtype.__get__),
        (lambda x: x.requires_grad, lambda: F.Tensor.requires_grad.__get__),
    ],
)
def test_the_function_called_is_seen(action, func):
    ((seen, types, _, _),) = calls_of(action)
    assert seen == func()
    assert types == (Recorder,)


def test_arguments_are_seen_as_they_were_given():
    ((_, _, args, kwargs),) = calls_of(lambda x: F.sum(x, 0, keepdim=True))
    assert type(args[0]) is Recorder
    assert args[1] == 0
    assert kwargs == {"keepdim": True}
    ((_, _, args, _),) = calls_of(lambda x: 1 + x)
    assert type(args[0]) is Recorder
    assert args[1] == 1


def test_an_override_may_return_anything():
    class Always42(F.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 42

    x = F.ones(2).as_subclass(Always42)
    assert x + 1 == 42
    assert F.exp(x) == 42
    assert x.shape == 42


def test_exceptions_of_an_override_come_through():
    class Angry(F.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("not today")

    with pytest.raises(KeyError, match="not today"):
        F.ones(2).as_subclass(Angry) + 1


def test_disabling_overrides():
    with F._C.DisableTorchFunctionSubclass():
        assert calls_of(lambda x: x + 1) == []
        assert type(tagged(1.0, 2.0) + 1) is F.Tensor
    assert type(tagged(1.0, 2.0) + 1) is Tagged


def test_a_subclass_may_switch_overrides_off_for_itself():
    class Parameterlike(F.Tensor):
        __torch_function__ = F._C._disabled_torch_function_impl

        def __new__(cls, data, requires_grad=True):
            return F.Tensor._make_subclass(cls, data, requires_grad)

    p = Parameterlike(F.ones(2))
    assert type(p) is Parameterlike
    assert p.requires_grad and p.is_leaf
    assert type(p + 1) is F.Tensor
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2.0, 2.0]
    p.note = "kept"
    assert p.note == "kept"
    source = F.ones(2)
    shared = Parameterlike(source, requires_grad=False)
    source[0] = 9
    assert shared.tolist() == [9.0, 1.0]


# ---- objects that are not tensors ------------------------------------------------------------


@pytest.mark.parametrize(
    "call, func",
    [
        (lambda d: F.add(d, 1), lambda: F.add),
        (lambda d: F.add(F.ones(2), d), lambda: F.add),
        (lambda d: F.ones(2).add(d), lambda: F.Tensor.add),
        (lambda d: F.ones(2) + d, lambda: F.Tensor.add),
        (lambda d: F.stack([F.ones(2), d]), lambda: F.stack),
        (lambda d: F.sum(d), lambda: F.sum),
        (lambda d: F.add(F.ones(2), 1, out=d), lambda: F.add),
        (lambda d: F.ones(2)[d], lambda: F.Tensor.__getitem__),
    ],
)
def test_ducks_answer(call, func):
    Duck.calls.clear()
    assert call(Duck()) == "quack"
    ((seen, types, _, _),) = Duck.calls
    assert seen == func()
    assert types == (Duck,)


def test_not_implemented_everywhere_is_a_type_error():
    with pytest.raises(TypeError, match="NotImplemented"):
        F.add(Refuses(), 1)
    with pytest.raises(TypeError, match="NotImplemented"):
        F.add(F.ones(2), Refuses())
    with pytest.raises(TypeError):
        F.ones(2) + Refuses()


def test_the_next_type_is_asked_when_one_declines():
    class Second:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return sorted(t.__name__ for t in types)

    assert F.add(Refuses(), Second()) == ["Refuses", "Second"]
    assert F.add(Second(), Refuses()) == ["Refuses", "Second"]


# ---- the overrides module --------------------------------------------------------------------


def test_questions_about_overrides():
    from importlib import import_module

    overrides = import_module(F.__name__ + ".overrides")
    plain, duck = F.ones(2), Duck()
    assert overrides.is_tensor_like(duck)
    assert overrides.is_tensor_like(plain)
    assert not overrides.is_tensor_like(3)
    assert overrides.has_torch_function((plain, duck))
    assert overrides.has_torch_function((tagged(1.0),))
    assert not overrides.has_torch_function((plain, 3))
    assert overrides.handle_torch_function(F.add, (duck,), duck, 1) == "quack"


def test_functions_written_in_python_can_take_part():
    from importlib import import_module

    overrides = import_module(F.__name__ + ".overrides")

    def twice(x):
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(twice, (x,), x)
        return x * 2

    Duck.calls.clear()
    assert twice(Duck()) == "quack"
    assert Duck.calls[0][0] is twice
    assert twice(F.ones(1)).tolist() == [2.0]


OPERATORS = {
    "==": (lambda x: x == 1, "__eq__"),
    "== from the right": (lambda x: F.ones(2) == x, "__eq__"),
    "<": (lambda x: x < 1, "lt"),
    "+": (lambda x: x + 1, "add"),
    "/ from the right": (lambda x: 2 / x, "__rtruediv__"),
    "//": (lambda x: x // 2, "__floordiv__"),
    "~": (lambda x: ~x, "__invert__"),
    "-": (lambda x: -x, "neg"),
    "&=": (lambda x: x.__iand__(1), "__iand__"),
    "|=": (lambda x: x.__ior__(1), "__ior__"),
    "^=": (lambda x: x.__ixor__(1), "__ixor__"),
    "<<=": (lambda x: x.__ilshift__(1), "__ilshift__"),
    ">>=": (lambda x: x.__irshift__(1), "__irshift__"),
    "+=": (lambda x: x.__iadd__(1), "add_"),
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_symbols_arrive_as_the_methods_that_stand_for_them(symbol):
    call, name = OPERATORS[symbol]
    Recorder.calls.clear()
    result = call(F.ones(2, dtype=F.int64).as_subclass(Recorder))
    (function, types, _, _) = Recorder.calls[0]
    assert function is getattr(F.Tensor, name) or function == getattr(F.Tensor, name)
    assert types == (Recorder,) and type(result) is Recorder and len(Recorder.calls) == 1


def test_in_place_symbols_give_the_tensor_itself():
    x = F.ones(2, dtype=F.int64).as_subclass(Tagged)
    before = x
    x &= 1
    x <<= 2
    assert x is before and x.tolist() == [4, 4]


class Named:
    """No tensor, but it takes calls over."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__


DUCK_CALLS = {
    "broadcast_tensors": lambda d: F.broadcast_tensors(d, F.ones(1)),
    "atleast_1d": lambda d: F.atleast_1d(d),
    "atleast_2d": lambda d: F.atleast_2d(d),
    "atleast_3d": lambda d: F.atleast_3d(d),
    "allclose": lambda d: F.allclose(F.ones(1), d),
    "is_floating_point": lambda d: F.is_floating_point(d),
    "is_complex": lambda d: F.is_complex(d),
    "is_nonzero": lambda d: F.is_nonzero(d),
    "is_same_size": lambda d: F.is_same_size(d, F.ones(1)),
    "numel": lambda d: F.numel(d),
    "interpolate": lambda d: F.nn.functional.interpolate(d, 2),
    "max_unpool2d": lambda d: F.nn.functional.max_unpool2d(d, d, 2),
    "pad_sequence": lambda d: F.nn.utils.rnn.pad_sequence([d]),
    "uniform_": lambda d: F.nn.init.uniform_(d),
    "grad": lambda d: F.autograd.grad(d, F.ones(1)),
    "backward": lambda d: F.autograd.backward(d),
}


@pytest.mark.parametrize("name", DUCK_CALLS)
def test_functions_written_in_python_hand_strangers_their_call(name):
    assert DUCK_CALLS[name](Named()) == name


def test_a_function_of_several_operators_arrives_as_one_call():
    Recorder.calls.clear()
    x = F.ones(1, 1, 2).as_subclass(Recorder)
    result = F.nn.functional.interpolate(x, scale_factor=2)
    assert [call[0].__name__ for call in Recorder.calls] == ["interpolate"]
    assert type(result) is Recorder and result.shape == (1, 1, 4)


def test_attention_of_several_heads_can_be_taken_over():
    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args)

    forward = F.nn.functional.multi_head_attention_forward
    arguments = (Other(), 1, 1, 4, 1, None, None, None, None, False, 0.0, None, None)
    assert forward(*arguments) == ("multi_head_attention_forward", 13)


def test_functions_of_python_have_readable_names():
    resolve = F.overrides.resolve_name
    assert resolve(F.nn.init.kaiming_uniform_) == f"{F.__name__}.nn.init.kaiming_uniform_"
    assert resolve(F.tensor) == f"{F.__name__}.tensor"
    assert resolve(F.Tensor.numpy) == f"{F.__name__}.Tensor.numpy"
    assert resolve(F.Tensor.requires_grad_) == f"{F.__name__}.Tensor.requires_grad_"
    assert resolve(len) is None


def test_torch_function_as_a_plain_method_is_called_on_its_object():
    class Named:
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self.name, func.__name__, len(args)

    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert F.add(Named("a"), 1) == ("a", "add", 2)
        assert F.stack([Named("b"), Named("c")]) == ("b", "stack", 1)
