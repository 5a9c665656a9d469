"""Settings of the whole program, and small functions that programs ask about it."""

import math
import os
import types

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="changes what PyTorch cannot change back")


@pytest.fixture
def deterministic():
    yield
    F.use_deterministic_algorithms(False)
    F.utils.deterministic.fill_uninitialized_memory = True


def test_determinism_is_remembered(deterministic):
    assert not F.are_deterministic_algorithms_enabled()
    F.use_deterministic_algorithms(True)
    assert F.are_deterministic_algorithms_enabled()
    assert not F.is_deterministic_algorithms_warn_only_enabled()
    assert F.get_deterministic_debug_mode() == 2
    F.use_deterministic_algorithms(True, warn_only=True)
    assert F.is_deterministic_algorithms_warn_only_enabled()
    assert F.get_deterministic_debug_mode() == 1
    for mode, number in (("default", 0), ("warn", 1), ("error", 2), (0, 0), (1, 1), (2, 2)):
        F.set_deterministic_debug_mode(mode)
        assert F.get_deterministic_debug_mode() == number
    with pytest.raises(RuntimeError, match="debug_mode"):
        F.set_deterministic_debug_mode("loud")
    with pytest.raises(RuntimeError, match="debug_mode"):
        F.set_deterministic_debug_mode(3)
    with pytest.raises(TypeError):
        F.set_deterministic_debug_mode(1.5)
    with pytest.raises(TypeError):
        F.use_deterministic_algorithms(1)


def test_unwritten_memory_is_filled_when_results_must_not_vary(deterministic):
    F.use_deterministic_algorithms(True)
    for made in (F.empty(3), F.empty_strided((3,), (1,)), F.empty_like(F.ones(3)),
                 F.ones(1).new_empty(3), F.empty(3, dtype=F.complex64)):  # fmt: skip
        assert made.isnan().all()
    assert F.empty(2, dtype=F.int16).tolist() == [32767] * 2
    assert F.empty(2, dtype=F.uint64).tolist() == [2**64 - 1] * 2
    assert F.empty(2, dtype=F.bool).tolist() == [True] * 2
    assert F.zeros_like(F.ones(2)).tolist() == [0, 0]
    F.utils.deterministic.fill_uninitialized_memory = False
    assert not F.utils.deterministic.fill_uninitialized_memory
    F.empty(3)
    with pytest.raises(TypeError):
        F.utils.deterministic.fill_uninitialized_memory = 1


def test_matmul_precision_is_remembered():
    assert F.get_float32_matmul_precision() == "highest"
    try:
        for precision in ("high", "medium", "highest"):
            F.set_float32_matmul_precision(precision)
            assert F.get_float32_matmul_precision() == precision
            assert F._C._allow_tf32() == (precision != "highest")
    finally:
        F.set_float32_matmul_precision("highest")


def test_denormal_numbers_can_be_flushed_in_every_thread():
    tiny = F.full((200_000,), 1e-310, dtype=F.float64)
    if not F.set_flush_denormal(True):
        pytest.skip("this machine cannot flush denormal numbers")
    try:
        assert (tiny * 1.0).count_nonzero().item() == 0
    finally:
        F.set_flush_denormal(False)
    assert (tiny * 1.0).count_nonzero().item() == 200_000
    with pytest.raises(TypeError):
        F.set_flush_denormal(1)


def test_threads():
    before = F.get_num_interop_threads()
    F.set_num_interop_threads(3)
    assert F.get_num_interop_threads() == 3
    F.set_num_interop_threads(before)
    for bad, error in ((0, RuntimeError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error):
            F.set_num_interop_threads(bad)
    assert F.autograd.is_multithreading_enabled()
    with F.autograd.set_multithreading_enabled(False):
        assert not F.autograd.is_multithreading_enabled()
    assert F.autograd.is_multithreading_enabled()


def test_symbols_exist_and_nothing_is_one():
    for kind in (F.SymInt, F.SymFloat, F.SymBool):
        assert not isinstance(3, kind) and not isinstance(F.ones(1).shape[0], kind)
        with pytest.raises(TypeError, match=kind.__name__):
            kind(3)
    assert F.sym_max(3, 2.0) == 3.0 and isinstance(F.sym_max(3, 2.0), float)
    assert F.sym_min(3, 2) == 2 and isinstance(F.sym_min(3, 2), int)
    assert F.sym_int(-2.7) == -2 and F.sym_float(2) == 2.0 and F.sym_not(0) is True
    assert F.sym_sum([1, 2, 3]) == 6 and F.sym_sqrt(16) == 4.0
    assert F.sym_ite(True, 1, 2) == 1
    with pytest.raises(TypeError):
        F.sym_ite(True, 1, 2.0)


def test_assert_takes_numbers_and_tensors():
    F._assert(True, "m")
    F._assert(F.tensor(1), "m")
    with pytest.raises(AssertionError, match="why"):
        F._assert(F.tensor(False), "why")


def test_checks_raise_what_they_are_named_after():
    kinds = {
        F._check: RuntimeError,
        F._check_index: IndexError,
        F._check_value: ValueError,
        F._check_type: TypeError,
        F._check_not_implemented: NotImplementedError,
    }
    for check, error in kinds.items():
        check(True, lambda: 1 / 0)
        with pytest.raises(error, match="why"):
            check(False, lambda: "why")
        with pytest.raises(error, match="True"):
            check(False)
    F._check_is_size(3, max=3)
    for bad in ({"i": -1}, {"i": 4, "max": 3}):
        with pytest.raises(RuntimeError):
            F._check_is_size(**bad)
    F._check_tensor_all(F.tensor([True]))
    with pytest.raises(RuntimeError):
        F._check_tensor_all(F.tensor([True, False]))
    for bad in (lambda: F._check(F.tensor(True)), lambda: F._check(False, "text"),
                lambda: F._check_tensor_all(F.ones(1))):  # fmt: skip
        with pytest.raises(TypeError):
            bad()


def test_versions_and_modules():
    assert F.version.__version__ == F.__version__
    assert F.version.cuda is None and F.version.debug is False
    assert F.__config__.show().startswith("Facula " + F.__version__)
    assert str(F.get_num_threads()) in F.__config__.parallel_info()
    assert F.get_device_module("cpu") is F.cpu
    assert F.get_device_module("cuda:1") is F.cuda
    assert isinstance(F.get_device_module(), types.ModuleType)
    with pytest.raises(RuntimeError):
        F.get_device_module("meta")
    assert F.cpu.is_available() and F.cpu.device_count() == 1 and F.cpu.current_device() == "cpu"
    F.cpu.synchronize()
    F.cpu.set_device("cpu")
    with pytest.raises(ValueError):
        F.cpu.set_device("cuda")


def test_types_for_annotations():
    assert isinstance(F.device("cpu"), F.types.Device)
    assert isinstance(3, F.types.Number)
    assert isinstance(F.ones(1).untyped_storage(), F.types.Storage)
    assert F.types._int is int and F.types._dtype is F.dtype


def test_layouts_and_formats_to_compare_with():
    assert F.legacy_contiguous_format is F.contiguous_format
    others = [F.sparse_coo, F.sparse_csr, F.sparse_csc, F.sparse_bsr, F.sparse_bsc, F.jagged]
    assert all(F.ones(1).layout is not other for other in others)
    assert repr(F.sparse_coo) == "facula.sparse_coo"
    assert F.zeros(2, layout=F.strided).tolist() == [0, 0]
    assert F.zeros(2, layout=F.sparse_coo).layout is F.sparse_coo
    with pytest.raises(ValueError, match="sparse_coo"):
        F.ones(2, layout=F.sparse_coo)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_shared_memory_is_seen_by_child_processes():
    t = F.zeros(4)
    view = t[1:]
    assert not t.is_shared()
    assert t.share_memory_() is t and t.is_shared() and view.is_shared()
    child = os.fork()
    if child == 0:
        view[0] = 7
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert t.tolist() == [0, 7, 0, 0] and view[0].item() == 7
    assert F.zeros(0).share_memory_().tolist() == []
    borrowed = F.frombuffer(bytearray(8), dtype=F.float32)
    assert borrowed.share_memory_().is_shared() and borrowed.tolist() == [0, 0]


def test_files_as_memory(tmp_path):
    path = str(tmp_path / "numbers")
    t = F.from_file(path, shared=True, size=4, dtype=F.int32)
    t.copy_(F.arange(4))
    assert os.path.getsize(path) == 16
    again = F.from_file(path, size=3, dtype=F.int32)
    assert again.tolist() == [0, 1, 2]
    again[0] = 9  # private
    assert F.from_file(path, size=1, dtype=F.int32).tolist() == [0]
    assert F.from_file(path, size=0).tolist() == []
    with pytest.raises(RuntimeError, match="16 bytes"):
        F.from_file(path, size=100)
    with pytest.raises(FileNotFoundError):
        F.from_file(str(tmp_path / "none"), size=1)
    with pytest.raises(RuntimeError):
        F.from_file(path, size=-1)


def test_versions_of_memory_can_be_counted_by_hand():
    x = F.ones(2, requires_grad=True)
    y = x * 1
    z = y.exp()
    F.autograd.graph.increment_version([z])
    with pytest.raises(RuntimeError, match="modified"):
        z.sum().backward()


def test_dim_order():
    x = F.ones(2, 3, 4, 5)
    assert x.dim_order() == (0, 1, 2, 3)
    assert x.to(memory_format=F.channels_last).dim_order() == (0, 2, 3, 1)
    assert x.permute(3, 1, 0, 2).dim_order() == (2, 1, 3, 0)
    assert F.ones(2, 3).expand(2, 2, 3).dim_order() == (0, 1, 2)
    with pytest.raises(RuntimeError, match="unique"):
        F.ones(2, 1).dim_order(ambiguity_check=True)


def test_dense_tensors_answer_questions_about_sparse_ones():
    x = F.ones(2, 3)
    assert x.to_dense() is x and x.to_dense(F.float64).dtype is F.float64
    assert x.sparse_dim() == 0 and x.dense_dim() == 2
    assert not x.is_distributed() and x.const_data_ptr() == x.data_ptr()


def test_limits_of_dtypes():
    assert F.finfo(F.float16).max == 65504 and F.finfo(F.bfloat16).eps == 2.0**-7
    assert F.finfo(F.complex64).dtype == "float32" and F.finfo().bits == 32
    assert math.isclose(F.finfo(F.float64).tiny, 2.0**-1022)
    assert F.iinfo(F.uint64).max == 2**64 - 1 and F.iinfo(F.int8).min == -128
    with pytest.raises(TypeError):
        F.iinfo(F.bool)
    with pytest.raises(TypeError):
        F.finfo(F.int32)


def test_settings_of_onednn_are_kept_for_a_block():
    mkldnn = F.backends.mkldnn
    before = mkldnn.set_flags(_enabled=True)
    with mkldnn.flags(enabled=False):
        assert not mkldnn.enabled
    assert mkldnn.enabled
    mkldnn.set_flags(*before[:3])


def test_streams_of_the_host():
    before, mine = F.cpu.current_stream(), F.cpu.Stream()
    with F.cpu.stream(mine):
        assert F.cpu.current_stream() is mine
        with F.cpu.stream(None):
            assert F.cpu.current_stream() is mine
    assert F.cpu.current_stream() is before
    event = F.cpu.Event()
    for wait in (event.record, event.synchronize, event.wait, mine.record_event):
        assert wait() is None
    assert event.query()
    assert mine.wait_stream(before) is None and mine.wait_event(event) is None
