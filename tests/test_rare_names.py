"""Names that few programs use, second part: options of checkpoints, checks of pipes, monitors."""

import io
import threading
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is the reference")


# ---- checkpoints


def saved(obj):
    file = io.BytesIO()
    F.save(obj, file)
    file.seek(0)
    return file


def test_skipped_data_leaves_room_and_descriptions():
    x = F.arange(1000.0)
    with F.serialization.skip_data():
        file = saved({"x": x, "n": 3})
    assert len(file.getvalue()) > 4000
    loaded = F.load(file)
    assert loaded["n"] == 3 and loaded["x"].tolist() == [0.0] * 1000
    file = saved(x)
    with F.serialization.skip_data():
        assert F.load(file).shape == x.shape
    file.seek(0)
    assert F.load(file).tolist() == x.tolist()


def test_checksums_can_be_left_out():
    assert F.serialization.get_crc32_options()
    F.serialization.set_crc32_options(False)
    try:
        file = saved(F.arange(5))
        assert F.load(file).tolist() == [0, 1, 2, 3, 4]
    finally:
        F.serialization.set_crc32_options(True)
    assert F.load(io.BytesIO(file.getvalue())).tolist() == [0, 1, 2, 3, 4]
    if not IS_FACULA:
        return
    assert zipfile.ZipFile(file).testzip() is not None
    assert zipfile.ZipFile(saved(F.arange(5))).testzip() is None


@needs_torch
def test_files_without_checksums_go_both_ways():
    for A, B in ((F, torch), (torch, F)):
        file = io.BytesIO()
        for P in (F, torch):
            P.serialization.set_crc32_options(False)
        try:
            A.save(A.arange(5), file)
            file.seek(0)
            assert B.load(file).tolist() == [0, 1, 2, 3, 4]
        finally:
            for P in (F, torch):
                P.serialization.set_crc32_options(True)


def test_locations_and_types_of_storages():
    with pytest.raises(ValueError, match="Expected a cuda device"):
        F.serialization.validate_cuda_device("cpu")
    with pytest.raises(RuntimeError):
        F.serialization.validate_hpu_device("hpu:0")
    if not F.cuda.is_available():
        with pytest.raises(RuntimeError, match="Attempting to deserialize"):
            F.serialization.validate_cuda_device("cuda:0")
    assert F.serialization.StorageType("LongStorage").dtype is F.int64
    assert issubclass(F.serialization.SourceChangeWarning, Warning)


def test_records_one_by_one(tmp_path):
    path = tmp_path / "x.pt"
    F.save({"x": F.arange(3)}, path)
    for source in (str(path), io.BytesIO(path.read_bytes())):
        reader = F.PyTorchFileReader(source)
        assert "data/0" in reader.get_all_records() and reader.has_record("version")
        assert not reader.has_record("nothing")
        assert np.frombuffer(reader.get_record("data/0"), "int64").tolist() == [0, 1, 2]
        offset = reader.get_record_offset("data/0")
        assert offset % 64 == 0 and offset > reader.get_record_header_offset("data/0")
        assert path.read_bytes()[offset : offset + 24] == reader.get_record("data/0")
    if IS_FACULA:
        with pytest.raises(RuntimeError):
            reader.get_record("nothing")
        assert reader.get_storage_from_record("data/0", 3, F.int64).tolist() == [0, 1, 2]


# ---- pipes


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch 2.13 no longer knows the types of pipes")
def test_pipes_are_checked_by_their_annotations():
    D = F.utils.data

    class Numbers(D.IterDataPipe[int]):
        def __init__(self, values):
            self.values = values

        @D.runtime_validation
        def __iter__(self) -> Iterator[int]:
            yield from self.values

    class Sum(D.IterDataPipe):
        @D.argument_validation
        def __init__(self, source: D.IterDataPipe[int], start=0):
            self.source = source

    class Words(D.IterDataPipe[str]):
        pass

    assert list(Numbers([1, 2])) == [1, 2]
    with pytest.raises(RuntimeError, match="'a'"):
        list(Numbers([1, "a"]))
    with D.runtime_validation_disabled():
        assert list(Numbers([1, "a"])) == [1, "a"]
    Sum(Numbers([]), start=2)
    with pytest.raises(TypeError, match="must be a IterDataPipe"):
        Sum([1, 2])
    with pytest.raises(TypeError, match="must be a pipe of"):
        Sum(source=Words())
    with pytest.raises(TypeError):
        D.runtime_validation(lambda self: None)


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch 2.13 no longer knows the types of pipes")
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (int | None, [1, None], "a"),
        (tuple[int, str], [(1, "a")], ("a", 1)),
        (list[int], [[1], []], ["a"]),
        (dict[str, int], [{"a": 1}], {1: 1}),
        (tuple[int, ...], [(1, 2, 3)], (1, "a")),
    ],
)
def test_types_with_parts(kind, good, bad):
    D = F.utils.data

    class Pipe(D.IterDataPipe[kind]):
        def __init__(self, values):
            self.values = values

        @D.runtime_validation
        def __iter__(self):
            yield from self.values

    assert list(Pipe(good)) == good
    with pytest.raises(RuntimeError):
        list(Pipe([bad]))


# ---- overrides and transforms


def test_redispatch_skips_one_override():
    seen = []

    class Logging(F.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return F.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if F.overrides.has_torch_function((a, b)):
            return F.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    x = F.tensor([3.0]).as_subclass(Logging)
    y = F.tensor([4.0]).as_subclass(Logging)
    seen.clear()
    result = scaled(x, y)
    assert seen == ["scaled", "mul"]
    assert type(result) is F.Tensor and result.tolist() == [13.0]


def test_redispatch_in_a_mode():
    seen = []

    class Mode(F.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                return F.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if F.overrides.has_torch_function((a, b)):
            return F.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    a, b = F.tensor([3.0]), F.tensor([4.0])
    with Mode():
        result = scaled(a, b)
    assert seen == ["scaled", "mul", "add"] and result.tolist() == [13.0]


def test_disabling_all_overrides():
    class Mode(F.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError

    with Mode(), F._C.DisableTorchFunction():
        assert (F.ones(1) + 1).item() == 2


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_functionalized_functions_do_the_same(remove):
    def f(x, y):
        z = x + 1
        z.view(-1).mul_(2)
        y.add_(z)
        return z, y[0]

    x, y = F.ones(2), F.zeros(2)
    a, b = F.func.functionalize(f, remove=remove)(x, y)
    assert a.tolist() == [4.0, 4.0] and b.item() == 4.0
    assert x.tolist() == [1.0, 1.0] and y.tolist() == [4.0, 4.0]


def test_functionalized_functions_have_gradients_and_nest():
    def f(x):
        y = x.clone()
        y.mul_(x)
        return y.sum()

    x = F.tensor([1.0, 2.0])
    assert F.func.grad(F.func.functionalize(f))(x).tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="remove"):
        F.func.functionalize(f, remove="views")(x)


def test_an_error_leaves_arguments_alone():
    def f(x):
        x.add_(1)
        raise KeyError

    x = F.zeros(1)
    with pytest.raises(KeyError):
        F.func.functionalize(f)(x)
    if IS_FACULA:
        assert x.item() == 0


# ---- the rest


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", ["xla", "ipu"])
def test_autocast_of_other_devices(device):
    def call(text, *args):
        return getattr(F, text.format(device))(*args)

    before = call("get_autocast_{}_dtype")
    assert not call("is_autocast_{}_enabled")
    call("set_autocast_{}_enabled", True)
    call("set_autocast_{}_dtype", F.float64)
    try:
        assert call("is_autocast_{}_enabled")
        assert call("get_autocast_{}_dtype") is F.float64
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(call("is_autocast_{}_enabled")))
        thread.start()
        thread.join()
        assert elsewhere == [False]
    finally:
        call("set_autocast_{}_enabled", False)
        call("set_autocast_{}_dtype", before)


def test_events_and_statistics():
    M, events = F.monitor, []
    handle = M.register_event_handler(events.append)
    try:
        kinds = [M.SUM, M.COUNT, M.MEAN, M.VALUE, M.MAX, M.MIN]
        stat = M.Stat("x", kinds, timedelta(minutes=10), 3)
        for v, count in ((2, 1), (4, 2), (7, 0)):
            stat.add(v)
            assert stat.count == count
        assert stat.get()[M.SUM] == 13 and stat.get()[M.MAX] == 7
        (event,) = events
        assert event.name == M.STAT_EVENT and event.data["x.mean"] == pytest.approx(13 / 3)
        M.log_event(M.Event("mine", datetime.now(), {"a": 1}))
        assert events[-1].data == {"a": 1}
    finally:
        M.unregister_event_handler(handle)
    M.log_event(M.Event("mine", datetime.now(), {}))
    assert len(events) == 2


def test_windows_of_statistics_end_with_time():
    stat = F.monitor.Stat("x", [F.monitor.COUNT], timedelta(milliseconds=1))
    stat.add(1.0)
    threading.Event().wait(0.01)
    stat.add(2.0)
    assert stat.get() in ({F.monitor.COUNT: 1.0}, {F.monitor.COUNT: 2.0})


def test_layers_by_the_names_of_libraries():
    x, w = F.randn(1, 2, 5, 5), F.randn(3, 2, 3, 3)
    ours = F.mkldnn_convolution(x, w, None, [1, 1], [1, 1], [1, 1], 1)
    F.testing.assert_close(ours, F.nn.functional.conv2d(x, w, padding=1), rtol=1e-4, atol=1e-4)
    assert not F.cudnn_is_acceptable(x)
    with pytest.raises(RuntimeError):
        F.cudnn_convolution(x, w, [1, 1], [1, 1], [1, 1], 1, False, False, False)


def test_small_functions():
    assert F.sym_fresh_size(4) == 4
    assert F.thread_safe_generator() is None
    assert issubclass(F.AcceleratorError, RuntimeError) and issubclass(F.FatalError, Exception)
    x = F.arange(12.0).reshape(3, 4)
    assert F.slice_inverse(x[1:2], x, 0, 1, 2).tolist() == x.tolist()
    sparse = F.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse()
    assert F.native_norm(sparse).item() == 5 and F.native_norm(sparse, 1).item() == 7
    assert not F.mtia.is_available() and F.mtia.device_count() == 0
    kind = F.utils.checkpoint.DefaultDeviceType
    before = kind.get_device_type()
    kind.set_device_type("cpu")
    assert kind.get_device_type() == "cpu"
    kind.set_device_type(before)


@pytest.mark.skipif(not IS_FACULA, reason="this package's arguments are checked")
def test_thread_workers_have_generators():
    class Draws(F.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return float(F.rand((), generator=F.thread_safe_generator()))

    loader = F.utils.data.DataLoader(Draws(), num_workers=2, worker_type="thread")
    assert len({float(x) for x in loader}) == 4
