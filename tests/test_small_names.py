"""Names that few programs use: futures, runs, fake quantization, names of other libraries."""

import copy
import gc
import threading
import warnings

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is the reference")


def both(data):
    """The same array as a tensor of each package."""
    array = np.asarray(data)
    return F.tensor(array.tolist(), dtype=getattr(F, str(array.dtype))), torch.tensor(array)


def same(ours, theirs, rtol=1e-6):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol, atol=1e-7)


# ---- runs


@needs_torch
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize("by", ["lengths", "offsets"])
def test_segment_reduce(reduce, initial, by):
    data = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
    runs = {"lengths": [2, 0, 3, 1], "offsets": [0, 2, 2, 5, 6]}[by]
    (x, tx), (r, tr) = both(data), both(np.array(runs, "int64"))
    x, tx = x.requires_grad_(), tx.requires_grad_()
    ours = F.segment_reduce(x, reduce, **{by: r}, axis=0, initial=initial)
    theirs = torch.segment_reduce(tx, reduce, **{by: tr}, axis=0, initial=initial)
    same(ours, theirs)
    ours[[0, 2, 3]].sum().backward()
    theirs[[0, 2, 3]].sum().backward()
    if initial is None:
        same(x.grad, tx.grad)


@needs_torch
def test_segment_reduce_with_lengths_of_each_row():
    (x, tx), (n, tn) = both(np.arange(12.0).reshape(2, 6)), both(np.array([[2, 4], [3, 3]]))
    same(
        F.segment_reduce(x, "mean", lengths=n, axis=1),
        torch.segment_reduce(tx, "mean", lengths=tn, axis=1),
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"lengths": [2, 3]},
        {"lengths": [-1, 7]},
        {"lengths": [6], "axis": 1},
        {"lengths": [6], "reduce": "middle"},
    ],
)
def test_segment_reduce_refuses(arguments):
    arguments = {
        key: F.tensor(value) if isinstance(value, list) else value
        for key, value in arguments.items()
    }
    with pytest.raises((RuntimeError, IndexError)):
        F.segment_reduce(F.arange(6.0), **{"reduce": "sum", **arguments})


# ---- fake quantization


@needs_torch
def test_fake_quantize():
    data = np.linspace(-3, 3, 24, dtype="float32").reshape(4, 6)
    scale, zero = np.array([0.1, 0.2, 0.5, 1], "float32"), np.array([0, 1, 2, 3], "int32")
    for take in (
        lambda T, x, s, z: T.fake_quantize_per_tensor_affine(x, 0.13, 3, 0, 20),
        lambda T, x, s, z: T.fake_quantize_per_tensor_affine(x, s[1], z[1], -8, 7),
        lambda T, x, s, z: T.fake_quantize_per_channel_affine(x, s, z, 0, -8, 7),
    ):
        (x, tx), (s, ts), (z, tz) = both(data), both(scale), both(zero)
        ours = take(F, x.requires_grad_(), s, z)
        theirs = take(torch, tx.requires_grad_(), ts, tz)
        same(ours, theirs)
        ours.sum().backward()
        theirs.sum().backward()
        same(x.grad, tx.grad)


def test_fake_quantize_refuses():
    x = F.ones(2, 3)
    with pytest.raises(RuntimeError):
        F.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 4)
    with pytest.raises(RuntimeError):
        F.fake_quantize_per_channel_affine(x, F.ones(2), F.zeros(2, dtype=F.int32), 1, 0, 5)


# ---- operators named after libraries


def test_cond_calls_one_of_two():
    x = F.tensor([2.0], requires_grad=True)
    for pred, wanted in ((True, 2.0), (F.tensor([False]), -1.0)):
        x.grad = None
        F.cond(pred, lambda t: t * 2, lambda t: -t, (x,)).backward()
        assert x.grad.item() == wanted


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch compiles cond, whose errors are of other types")
def test_cond_refuses():
    with pytest.raises(RuntimeError):
        F.cond(True, 3, lambda: 1)
    with pytest.raises(RuntimeError):
        F.cond(F.ones(2), lambda: 1, lambda: 2)


def test_sym_constrain_range():
    F.sym_constrain_range(3, min=1, max=3)
    F.sym_constrain_range_for_size(0)
    with pytest.raises(RuntimeError):
        F.sym_constrain_range(4, min=1, max=3)
    with pytest.raises(RuntimeError):
        F.sym_constrain_range_for_size(-1)


def test_versions_compare():
    version = F.torch_version.TorchVersion("2.13.0+cpu")
    assert version > (2, 9) and version >= "2.13" and version < "3" and version != "2.12"
    assert F.torch_version.TorchVersion("2.13.0a1") < "2.13"
    assert F.torch_version.TorchVersion("1.10.0") == (1, 10)
    assert str(version) == "2.13.0+cpu"


# ---- futures


def test_future_of_another_thread():
    future = F.futures.Future()
    following = future.then(lambda f: f.wait() + 1)
    threading.Thread(target=future.set_result, args=(1,)).start()
    assert following.wait() == 2
    assert future.done() and future.value() == 1
    with pytest.raises(RuntimeError):
        future.set_result(2)


def test_future_with_an_error():
    future = F.futures.Future()
    following = future.then(lambda f: f.wait())
    future.set_exception(ValueError("no"))
    for waiting in (future, following):
        with pytest.raises((ValueError, RuntimeError), match="no"):
            waiting.wait()
    with pytest.raises(AssertionError):
        F.futures.Future().set_exception("no")


def test_all_futures():
    futures = [F.futures.Future() for _ in range(3)]
    together = F.futures.collect_all(futures)
    for i, future in enumerate(futures):
        assert not together.done()
        future.set_result(i)
    assert [f.wait() for f in together.wait()] == [0, 1, 2]
    assert F.futures.wait_all(futures) == [0, 1, 2]


# ---- checkpoints


def test_group_of_backwards_computes_a_region_once():
    from importlib import import_module

    checkpoint = import_module(f"{F.__name__}.utils.checkpoint")
    calls = []

    def region(t):
        calls.append(1)
        return t.sin(), t.cos()

    x = F.ones(2, requires_grad=True)
    a, b = checkpoint.checkpoint(region, x, use_reentrant=False, early_stop=False)
    with checkpoint.GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
    assert len(calls) == 2
    assert x.grad.tolist() == pytest.approx([np.cos(1) - np.sin(1)] * 2)


# ---- pipes


def test_pipes_in_a_loader():
    from importlib import import_module

    data = import_module(f"{F.__name__}.utils.data")

    class Numbers(data.IterDataPipe):
        def __iter__(self):
            return iter(range(4))

    class Doubled(data.IterDataPipe):
        def __init__(self, source, by=2):
            self.source, self.by = source, by

        def __iter__(self):
            return (self.by * x for x in self.source)

    try:
        data.functional_datapipe("tests_doubled")(Doubled)
        with pytest.raises(Exception, match="already taken"):
            data.functional_datapipe("tests_doubled")(Doubled)
        pipe = Numbers().tests_doubled(by=3)
        assert isinstance(pipe, Doubled)
        batches = list(data.DataLoader(pipe, batch_size=2))
        assert [b.tolist() for b in batches] == [[0, 3], [6, 9]]
        with pytest.raises(AttributeError):
            _ = pipe.tests_halved
    finally:
        data.IterDataPipe.functions.pop("tests_doubled", None)
    with pytest.raises(TypeError):
        data.functional_datapipe("tests_number")(int)


def test_pipes_of_any_order_are_refused_when_determinism_is_asked_for():
    from importlib import import_module

    data = import_module(f"{F.__name__}.utils.data")

    @data.non_deterministic(lambda shuffled: shuffled)
    class Files(data.IterDataPipe):
        def __init__(self, shuffled):
            self.shuffled = shuffled

    with data.guaranteed_datapipes_determinism():
        assert not Files(False).shuffled
        with pytest.raises(TypeError):
            Files(True)
    assert Files(True).shuffled


def test_batch_norms_without_statistics_under_vmap():
    m = F.nn.Sequential(F.nn.BatchNorm1d(2), F.nn.Linear(2, 1))
    assert F.func.replace_all_batch_norm_modules_(m) is m
    x = F.arange(24.0).reshape(3, 4, 2)
    wanted = F.stack([m(part) for part in x])
    assert F.allclose(F.func.vmap(m)(x), wanted, atol=1e-6)


def test_errors_of_callbacks_do_not_reach_who_sets_the_result():
    future, seen = F.futures.Future(), []
    future.add_done_callback(lambda done: 1 / 0)
    future.add_done_callback(lambda done: seen.append(done.wait()))
    failed = future.then(lambda done: 1 / 0)
    future.set_result(3)
    assert seen == [3]
    with pytest.raises((ZeroDivisionError, RuntimeError)):
        failed.wait()
    with pytest.raises(TypeError):
        F.futures.Future().then(3)


def test_weak_dictionaries_are_copied_with_their_keys():
    x, y = F.ones(1), F.ones(1)
    names = F.utils.weak.WeakIdKeyDictionary({x: ["x"]})
    for copied in (names.copy(), copy.copy(names)):
        copied[y] = []
        assert copied[x] is names[x] and len(names) == 1
    deep = copy.deepcopy(names)
    assert deep[x] == ["x"] and deep[x] is not names[x]
    del x
    gc.collect()
    assert len(names) == len(deep) == 0


def test_typed_storages_can_be_shared():
    storage = F.FloatStorage([1.0, 2.0])
    assert not storage.is_shared()
    assert storage.share_memory_().is_shared() and storage.tolist() == [1, 2]


def test_warn_if_has_hooks_names_hooks_that_a_pickle_lacks():
    x = F.ones(1, requires_grad=True)
    x.register_hook(F.utils.hooks.unserializable_hook(lambda g: g))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.utils.hooks.warn_if_has_hooks(x)
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="will not be serialized"):
        F.utils.hooks.warn_if_has_hooks(x)


def test_untyped_storages_are_made_of_files_buffers_and_shared_memory(tmp_path):
    path = str(tmp_path / "bytes")
    F.UntypedStorage.from_file(path, True, 4).fill_(3)
    assert F.UntypedStorage.from_file(path, False, 4).tolist() == [3] * 4
    with open(path, "rb") as file:
        assert file.read() == bytes([3] * 4)
    made = F.UntypedStorage.from_buffer(b"\1\2\3\4", dtype=F.int16, byte_order="big")
    assert made.tolist() == [2, 1, 4, 3]
    assert F.UntypedStorage._new_shared(4).is_shared()
    assert F.FloatStorage._new_shared(3).is_shared()


def test_untyped_storages_move_and_convert():
    storage = F.UntypedStorage([1, 0, 3, 4])
    assert storage.untyped() is storage and storage.to(device="cpu") is storage
    assert storage.float().dtype is F.float32 and storage.float().tolist() == [1, 0, 3, 4]
    assert storage.bool().tolist() == [True, False, True, True]
    assert not storage.is_pinned() and not storage.is_sparse and storage.get_device() is None
    assert storage.new().nbytes() == 0
    assert storage.type().endswith("storage.UntypedStorage")
    assert storage.byteswap(F.int16) is None and storage.tolist() == [0, 1, 4, 3]
    typed = F.DoubleStorage([1.0, 2.0])
    assert typed.to(device="cpu").tolist() == [1, 2] and typed.resizable() and not typed.is_pinned()
