"""facula.overrides: which functions can be taken over, their names, and the stack of modes."""

import inspect

import pytest
from package_under_test import F, assert_equal

overrides = F.overrides
PACKAGE = F.__name__


def test_functions_and_methods_that_take_tensors_are_listed():
    functions = overrides.get_overridable_functions()
    assert F.add in functions[F]
    assert F.Tensor.add in functions[F.Tensor]
    assert F.linalg.inv in functions[F.linalg]
    assert F.zeros not in functions[F]


def test_functions_without_tensors_are_ignored():
    ignored = overrides.get_ignored_functions()
    assert F.zeros in ignored
    assert F.manual_seed in ignored
    assert F.add not in ignored


@pytest.mark.facula_only
def test_no_operator_is_missing_from_both_lists():
    listed = {
        id(f) for functions in overrides.get_overridable_functions().values() for f in functions
    }
    listed |= {id(f) for f in overrides.get_ignored_functions()}
    public = {n: f for n, f in F._C._operators.items() if "." not in n and not n.startswith("_")}
    assert not [name for name, function in public.items() if id(function) not in listed]


@pytest.mark.facula_only
def test_listed_operators_ask_an_argument_with_an_override():
    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken over"

    for function in (F.add, F.linalg.inv, F.sum, F.cat):
        argument = [Answer()] if function is F.cat else Answer()
        arguments = (argument, 1) if function is F.add else (argument,)
        assert function(*arguments) == "taken over"


def test_dummies_have_the_signature_and_answer_minus_one():
    dummies = overrides.get_testing_overrides()
    assert dummies[F.add](1, 2) == -1
    assert "input" in inspect.signature(dummies[F.add]).parameters


def test_names():
    assert overrides.resolve_name(F.add) == f"{PACKAGE}.add"
    assert overrides.resolve_name(F.Tensor.add) == f"{PACKAGE}.Tensor.add"
    assert overrides.resolve_name(F.Tensor.grad.__get__) == f"{PACKAGE}.Tensor.grad.__get__"
    assert overrides.resolve_name(len) is None


def test_methods_and_properties_are_told_from_functions():
    assert overrides.is_tensor_method_or_property(F.Tensor.add)
    assert overrides.is_tensor_method_or_property(F.Tensor.grad.__get__)
    assert not overrides.is_tensor_method_or_property(F.add)


def test_modes_can_be_looked_at_and_left():
    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    assert overrides._get_current_function_mode() is None
    with Mode() as outer, Mode() as inner:
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        with overrides._pop_mode_temporarily() as popped:
            assert popped is inner
            assert overrides._get_current_function_mode() is outer
        assert overrides._get_current_function_mode() is inner
    assert overrides._get_current_function_mode() is None


# ---- odds and ends of facula.utils


def test_swapped_tensors_take_everything_with_them():
    a = F.nn.Parameter(F.zeros(2))
    a.note = "first"
    b = F.ones(3)
    holder = [a]
    F.utils.swap_tensors(a, b)
    assert holder[0] is a
    assert_equal(a, F.ones(3))
    assert type(a) is F.Tensor
    assert type(b) is F.nn.Parameter
    assert b.note == "first"
    assert not hasattr(a, "note")
    (b * 2).sum().backward()
    assert_equal(b.grad, F.full((2,), 2.0))
    F.utils.swap_tensors(a, b)
    assert_equal(a.grad, F.full((2,), 2.0))


def test_tensors_with_weak_references_are_not_swapped():
    import weakref

    a, b = F.zeros(1), F.ones(1)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="weakref"):
        F.utils.swap_tensors(a, b)
    assert reference() is a


def test_dictionaries_by_identity_forget_dead_keys():
    from importlib import import_module

    weak = import_module(f"{PACKAGE}.utils.weak")
    a, b = F.ones(2), F.ones(2)
    names = weak.WeakTensorKeyDictionary({a: "a"})
    names[b] = "b"
    assert names[a] == "a"
    assert len(names) == 2
    assert [k is a or k is b for k in names] == [True, True]
    del b
    assert len(names) == 1
    assert names.copy() == names
    with pytest.raises(KeyError):
        names[F.ones(2)]
    assert weak.TensorWeakRef(a)() is a


def test_capsules_carry_tensors():
    from importlib import import_module

    dlpack = import_module(f"{PACKAGE}.utils.dlpack")
    x = F.arange(3)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y[0] = 7
    assert_equal(x, F.tensor([7, 1, 2]))


# ---- backends


def test_settings_of_libraries_are_kept_and_checked():
    cudnn = F.backends.cudnn
    assert cudnn.deterministic is False
    cudnn.deterministic = True
    assert cudnn.deterministic is True
    cudnn.deterministic = False
    with pytest.raises(RuntimeError, match="bool"):
        cudnn.benchmark = 3
    with cudnn.flags(enabled=True, benchmark=True):
        assert cudnn.benchmark
    assert not cudnn.benchmark
    assert F.backends.mps.is_available() is False
    assert F.xpu.is_available() is False


def test_products_in_lower_precision_are_one_setting():
    matmul = F.backends.cuda.matmul
    before = F.get_float32_matmul_precision()
    matmul.allow_tf32 = True
    assert F.get_float32_matmul_precision() == "high"
    matmul.allow_tf32 = False
    F.set_float32_matmul_precision(before)
    with pytest.raises(AttributeError, match="Unknown attribute"):
        matmul.allow_everything = True


def test_accelerator_without_devices():
    if F.accelerator.is_available():
        return
    assert F.accelerator.current_accelerator() is None
    assert F.accelerator.device_count() == 0
    with pytest.raises(RuntimeError, match="none is available"):
        F.accelerator.synchronize()


@pytest.mark.parametrize("name", ["__add__", "__radd__", "__eq__", "__getitem__", "__rsub__"])
def test_operators_with_symbols_are_listed_and_named(name):
    operator = getattr(F.Tensor, name)
    assert operator in overrides.get_overridable_functions()[F.Tensor]
    assert overrides.get_testing_overrides()[operator](1, 2) == -1
    assert overrides.resolve_name(operator) == f"{PACKAGE}.Tensor.{name}"
    assert overrides.is_tensor_method_or_property(operator)
