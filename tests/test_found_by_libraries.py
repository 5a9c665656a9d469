"""What libraries written for PyTorch once found to be missing or to differ."""

import inspect
import os

import pytest
from package_under_test import F

from facula import nn
from facula.utils import _foreach_utils

# ---- facula.jit


def test_scripted_functions_classes_and_modules_are_returned():
    def double(x):
        return 2 * x

    net = nn.Linear(2, 3)
    for thing in (double, net, nn.Linear):
        assert F.jit.script(thing) is thing
    assert F.jit.script(double, example_inputs=[(F.ones(1),)]) is double
    assert not isinstance(net, F.jit.ScriptModule)
    assert not isinstance(double, F.jit.ScriptFunction)


def test_traced_functions_are_called_once_on_their_examples():
    seen = []

    def record(x, y=0):
        seen.append((x.tolist(), y))
        return x + y

    assert F.jit.trace(record, F.ones(1)) is record
    assert F.jit.trace(record, (F.ones(1), 2), check_inputs=[(F.zeros(1), 3)]) is record
    F.jit.trace(record, example_kwarg_inputs={"x": F.ones(1), "y": 4})
    assert seen == [([1.0], 0), ([1.0], 2), ([0.0], 3), ([1.0], 4)]


def test_what_a_traced_function_raises_shows_at_once():
    with pytest.raises(RuntimeError):
        F.jit.trace(nn.Linear(2, 3), F.ones(5))
    with pytest.raises(RuntimeError, match="either example_inputs or example_kwarg_inputs"):
        F.jit.trace(nn.Linear(2, 3))
    with pytest.raises(TypeError, match="function or a module"):
        F.jit.trace(3, F.ones(5))


def test_methods_of_a_module_are_traced_by_name():
    class Pair(nn.Module):
        calls = ()

        def forward(self, x):
            self.calls += ("forward",)
            return x

        def other(self, x, y):
            self.calls += ("other",)
            return x + y

    net = Pair()
    assert F.jit.trace_module(net, {"forward": F.ones(1), "other": (F.ones(1), F.ones(1))}) is net
    assert net.calls == ("forward", "other")
    with pytest.raises(AttributeError, match="must be a module"):
        F.jit.trace_module(len, {"forward": F.ones(1)})


def test_script_modules_are_modules_and_keep_the_values_of_attributes():
    class Table(F.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.words = F.jit.Attribute({"a": 1}, dict[str, int])
            self.weight = nn.Parameter(F.ones(2))

        @F.jit.script_method
        def forward(self, x):
            return x * self.weight * self.words["a"]

    net = Table()
    assert net.words == {"a": 1}
    assert net(F.ones(2)).tolist() == [1.0, 1.0]
    assert list(net.state_dict()) == ["weight"]


def test_forked_calls_are_futures():
    future = F.jit.fork(lambda x, y: x + y, F.ones(1), y=2)
    assert isinstance(future, F.jit.Future)
    assert F.jit.wait(future).item() == 3.0


def test_only_modules_in_evaluation_mode_freeze():
    net = nn.Dropout()
    with pytest.raises(RuntimeError, match="eval"):
        F.jit.freeze(net)
    assert F.jit.optimize_for_inference(F.jit.freeze(net.eval())) is net


def test_torchscript_files_are_refused_with_another_way(tmp_path):
    with pytest.raises(NotImplementedError, match=r"facula\.save"):
        F.jit.save(nn.Linear(2, 3), tmp_path / "net.pt")
    with pytest.raises(NotImplementedError, match=r"facula\.load"):
        F.jit.load(tmp_path / "net.pt")
    assert os.listdir(tmp_path) == []


# ---- facula.distributed


@pytest.mark.parametrize("name", ["get_rank", "get_world_size", "barrier", "get_backend"])
def test_questions_to_absent_groups_are_value_errors(name):
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        getattr(F.distributed, name)()


def test_collectives_leave_their_tensor_and_raise():
    x = F.ones(2)
    with pytest.raises(ValueError, match=r"all_reduce\(\)"):
        F.distributed.all_reduce(x, op=F.distributed.ReduceOp.MAX)
    with pytest.raises(ValueError, match=r"broadcast\(\)"):
        F.distributed.broadcast(x, 0)
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="no communication"):
        F.distributed.init_process_group("gloo")
    with pytest.raises(ValueError, match="process group"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))


# ---- what libraries ask of other namespaces


def test_divergences_are_registered_for_mixins():
    class Mixin:
        pass

    class Mine(Mixin, F.distributions.StudentT):
        pass

    @F.distributions.register_kl(Mixin, Mixin)
    def seven(p, q):
        return F.tensor(7.0)

    assert F.distributions.kl_divergence(Mine(3.0), Mine(3.0)).item() == 7.0
    with pytest.raises(TypeError, match="type_p"):
        F.distributions.register_kl(3, Mixin)


def test_inverses_of_transforms_have_a_class_of_their_own():
    transforms = F.distributions.transforms
    assert isinstance(transforms.ExpTransform().inv, transforms._InverseTransform)


def test_tensors_are_grouped_by_device_and_dtype():
    single, double = F.ones(1), F.ones(2, dtype=F.float64)
    groups = _foreach_utils._group_tensors_by_device_and_dtype(
        [[single, double, single], [None, double, double], []], with_indices=True
    )
    cpu = F.device("cpu")
    lists, indices = groups[cpu, F.float32]
    assert indices == [0, 2]
    assert lists[0][0] is single
    assert lists[1][0] is None and lists[1][1] is double
    assert lists[2] == []
    assert groups[cpu, F.float64][1] == [1]
    with pytest.raises(RuntimeError, match="as long as the first"):
        _foreach_utils._group_tensors_by_device_and_dtype([[single], [single, single]])


def test_libraries_of_compiled_operators_are_os_errors():
    with pytest.raises(OSError, match="custom_op"):
        F.ops.load_library("/nowhere/operators.so")
    assert not F.ops.loaded_libraries


def test_the_class_tensor_names_the_default_type():
    x = F.arange(2)
    assert x.type(F.Tensor).dtype is F.float32
    F.set_default_dtype(F.float64)
    try:
        assert x.type(F.Tensor).dtype is F.float64
        assert x.type("facula.Tensor").dtype is F.float64
    finally:
        F.set_default_dtype(F.float32)


def test_the_hub_lies_in_the_folder_of_facula(monkeypatch):
    monkeypatch.setenv("FACULA_HOME", "/somewhere")
    assert F.hub._get_torch_home() == "/somewhere"


def test_marks_of_the_symbolic_tracer_change_nothing():
    assert F.fx.wrap(len) is len
    assert F.fx.wrap("len") == "len"
    with pytest.raises(RuntimeError, match="function or its name"):
        F.fx.wrap(3)


def test_a_getattr_of_a_subclass_sees_parameters_buffers_and_modules():
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = []
            self.weight = nn.Parameter(F.ones(1))
            self.register_buffer("mean", F.zeros(1))
            self.layer = nn.ReLU()
            self.seen.clear()

        def __getattr__(self, name):
            found = super().__getattr__(name)
            self.seen.append(name)
            return found

    class Derived(Watched):
        pass

    for net in (Watched(), Derived()):
        assert net.weight is net._parameters["weight"]
        assert net.mean is net._buffers["mean"]
        assert net.layer is net._modules["layer"]
        assert net.seen == ["weight", "mean", "layer"]
        with pytest.raises(AttributeError, match="nothing"):
            _ = net.nothing


@pytest.mark.parametrize("device", ["mps", "xpu", "xla", "hpu"])
def test_autocast_is_off_on_devices_of_pytorch(device):
    with F.autocast("cpu"):
        assert F.is_autocast_enabled(device) is False
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        F.set_autocast_enabled(device, True)


def test_assertions_of_tensors_raise_their_message():
    F._assert_async(F.tensor([2]))
    F._assert_async(F.zeros(1, device="meta"))
    with pytest.raises(RuntimeError, match="out of range"):
        F._assert_async(F.tensor(False), "out of range")
    with pytest.raises(RuntimeError, match="got zero"):
        F._assert_async(F.tensor(0.0))
    with pytest.raises(RuntimeError, match="ambiguous"):
        F._assert_async(F.ones(2))


def test_transforms_are_active_inside_of_them_only():
    active = F._C._are_functorch_transforms_active
    seen = []
    F.func.vmap(lambda x: seen.append(active()) or x)(F.ones(2))
    F.func.grad(lambda x: seen.append(active()) or x)(F.tensor(1.0))
    assert seen == [True, True]
    assert active() is False


def test_nothing_is_exported_or_counted():
    assert F.onnx.is_in_onnx_export() is False
    assert F._C._get_tracing_state() is None
    assert F._C._log_api_usage_once("a.b") is None


def test_complex_numbers_of_two_halves_are_a_label():
    assert F.complex32 is F.chalf
    assert F.complex32.is_complex and not F.complex32.is_floating_point
    assert F.complex32.itemsize == 4
    assert F.ones(1, dtype=F.complex64).dtype != F.complex32
    pairs = F.tensor([1, 2], dtype=F.int32)
    assert pairs.view(F.complex32).view(F.int32).tolist() == [1, 2]


def test_tensors_are_told_apart_by_a_number():
    x = F.ones(1)
    assert isinstance(x._cdata, int)
    kept = [x]
    assert kept[0]._cdata == x._cdata
    assert x.detach()._cdata != x._cdata


def test_modules_have_a_signature_and_their_classes_that_of_init():
    class Mine(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()

    assert str(inspect.signature(Mine(3))) == "(*args, **kwargs)"
    assert list(inspect.signature(Mine).parameters) == ["width"]
    assert list(inspect.signature(nn.Linear).parameters)[:2] == ["in_features", "out_features"]
