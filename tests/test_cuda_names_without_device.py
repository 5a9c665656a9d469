"""Streams, events, pools and other names of facula.cuda on a driver that is none (fake_cuda.py)."""

import pytest
from fake_cuda import needs_compiler
from package_under_test import F

pytestmark = needs_compiler


@pytest.fixture
def run(run_on_fake_cuda):
    import textwrap

    def run(program: str, **options) -> str:
        return run_on_fake_cuda(
            "from fake_cuda_library import *\n" + textwrap.dedent(program), **options
        )

    return run


def test_streams_are_made_from_their_numbers(run):
    run(
        """
        s = cuda.Stream(1, priority=-1)
        again = cuda.Stream(stream_id=s.stream_id, device_index=s.device_index,
                            device_type=s.device_type)
        assert again == s and hash(again) == hash(s) and again.device.index == 1
        assert again.cuda_stream == s.cuda_stream and again.priority == s.priority == -1
        assert cuda.get_stream_from_external(s.cuda_stream, 1) == s != cuda.default_stream(1)
        default = cuda.default_stream()
        assert cuda.Stream(stream_id=default.stream_id, device_index=0, device_type=1) == default
        refused(ValueError, "device_type", lambda: cuda.Stream(stream_id=5, device_index=0))
        refused(TypeError, "colour", lambda: cuda.Stream(colour=1))
        low, high = cuda.Stream.priority_range()
        assert (low, high) == (0, -5)
        assert [cuda.Stream(priority=p).priority for p in (-9, -5, 0, 3)] == [-5, -5, 0, 0]
        many = [cuda.Stream() for _ in range(40)]
        assert len(set(many)) == 32 and many[0] == many[32]
    """,
        FAKE_CUDA_DEVICES="2",
    )


def test_streams_wait_for_each_other_and_say_whether_they_are_done(run):
    run("""
        a, b = cuda.Stream(), cuda.Stream()
        x = F.ones(4, device="cuda")
        def work():
            with cuda.stream(a):
                x + 1
            event = a.record_event()
            b.wait_event(event)
            with cuda.stream(b):
                x + 1
            a.wait_stream(b)
            with cuda.stream(a):
                x + 1
        log = journal(work)
        first, second, third = [n for n, w in enumerate(log) if w.kind == "launch"]
        assert comes_before(log, first, second) and comes_before(log, second, third)
        own = cuda.Event()
        assert a.record_event(own) is own and a.query() and own.query()
        hold(True)
        own.record(a)
        assert not a.query() and not own.query()
        assert cuda.Event().query()  # never recorded: nothing to wait for
        hold(False)
        assert a.query() and own.query()
    """)


def test_events_refuse_what_has_no_time(run):
    run("""
        timed, plain, never = cuda.Event(enable_timing=True), cuda.Event(), cuda.Event(True)
        timed.record(), plain.record()
        refused(ValueError, "recorded", timed.elapsed_time, never)
        refused(ValueError, "recorded", never.elapsed_time, timed)
        refused(ValueError, "enable_timing", timed.elapsed_time, plain)
        end = cuda.Event(enable_timing=True, blocking=True)
        end.record()
        hold(True)
        refused(RuntimeError, "completed", timed.elapsed_time, end)
        hold(False)
        assert timed.elapsed_time(end) > 0 > end.elapsed_time(timed)
        refused(NotImplementedError, "interprocess", lambda: cuda.Event(interprocess=True))
        refused(NotImplementedError, "processes", end.ipc_handle)
        refused(NotImplementedError, "processes", cuda.Event.from_ipc_handle, 0, b"")
        before = fake.fake_cuda_events()
        for _ in range(100):
            cuda.Event().record()
        assert fake.fake_cuda_events() == before
    """)


def test_pools_keep_memory_apart(run):
    run("""
        def take():
            return F.empty(5 << 20, dtype=F.uint8, device="cuda")
        common = take().data_ptr()
        pool = cuda.MemPool()
        assert pool.use_count() == 1 and pool.snapshot() == [] and pool.allocator is None
        with cuda.use_mem_pool(pool):
            x = take()
            assert x.data_ptr() != common
            with cuda.use_mem_pool(other := cuda.MemPool()):
                y = take()
            again = take()
        assert take().data_ptr() == common
        assert sum(s["allocated_size"] for s in pool.snapshot()) == 10 << 20
        assert sum(s["allocated_size"] for s in other.snapshot()) == 5 << 20
        assert cuda.memory_snapshot(pool.id) == pool.snapshot()
        place = x.data_ptr()
        del x
        assert take().data_ptr() == common  # the pool's memory is for the pool
        with cuda.use_mem_pool(pool):
            assert take().data_ptr() == place
        import threading
        places = []
        def elsewhere():
            places.append(take().data_ptr())
        with cuda.use_mem_pool(pool):
            thread = threading.Thread(target=elsewhere)
            thread.start(), thread.join()
        assert places == [common]  # other threads are not concerned
        try:
            with cuda.use_mem_pool(pool):
                raise KeyError
        except KeyError:
            assert take().data_ptr() == common
        del again, y
        cuda.empty_cache()
        assert cuda.memory_reserved() == 40 << 20  # pools hold their memory
        del pool, other
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0
        refused(NotImplementedError, "MemPool", lambda: cuda.MemPool(use_on_oom=True))
    """)


def test_memory_for_other_libraries(run):
    run(
        """
        a = cuda.caching_allocator_alloc(1000)
        b = cuda.caching_allocator_alloc(1000, "cuda:1", cuda.Stream(1))
        assert [cuda.memory_allocated(d) for d in range(2)] == [1024, 1024]
        cuda.caching_allocator_delete(b)
        assert [cuda.memory_allocated(d) for d in range(2)] == [1024, 0]
        cuda.caching_allocator_delete(a)
        cuda.caching_allocator_delete(cuda.caching_allocator_alloc(0))
        refused(ValueError, "no device memory", cuda.caching_allocator_delete, 12345)
        assert cuda.memory_allocated() == 0
    """,
        FAKE_CUDA_DEVICES="2",
    )


def test_pinned_memory_is_counted(run):
    run("""
        def now():
            return cuda.host_memory_stats()
        base = now()
        x = F.ones(1000).pin_memory()
        stats = now()
        assert stats["active_requests.current"] == base["active_requests.current"] + 1
        assert stats["active_bytes.current"] == base["active_bytes.current"] + 4096
        assert stats["num_host_alloc"] == base["num_host_alloc"] + 1
        assert cuda.host_memory_stats_as_nested_dict()["active_bytes"]["peak"] >= 4096
        del x
        assert now()["active_requests.current"] == base["active_requests.current"]
        assert now()["allocations.current"] == base["allocations.current"] + 1
        y = F.ones(900).pin_memory()  # the same block again
        assert now()["num_host_alloc"] == base["num_host_alloc"] + 1
        del y
        cuda.empty_cache()
        stats = now()
        assert stats["allocations.current"] == base["allocations.current"]
        assert stats["num_host_free"] == base["num_host_free"] + 1
        assert stats["active_bytes.peak"] > stats["active_bytes.current"]
        cuda.memory.reset_peak_host_memory_stats()
        assert now()["active_bytes.peak"] == now()["active_bytes.current"]
        cuda.memory.reset_accumulated_host_memory_stats()
        assert now()["num_host_alloc"] == now()["active_bytes.allocated"] == 0
    """)


def test_snapshots_leave_lines_out_where_asked(run):
    run("""
        cuda.memory._record_memory_history()
        x = F.ones(3, device="cuda")
        def lines(**options):
            return [b["frames"] for s in cuda.memory_snapshot(**options) for b in s["blocks"]]
        assert any(lines()) and not any(lines(include_traces=False))
        assert cuda.memory._snapshot()["segments"] == cuda.memory_snapshot()
    """)


def test_architectures_and_their_flags(run):
    run("""
        assert cuda.get_arch_list() == ["sm_80", "sm_90"]
        assert cuda.get_gencode_flags() == (
            "-gencode compute=compute_80,code=sm_80 -gencode compute=compute_90,code=sm_90")
        assert cuda.ipc_collect() is None
    """)


def test_what_does_not_exist_says_so():
    with pytest.raises(NotImplementedError, match="source text"):
        F.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")
    with pytest.raises(NotImplementedError, match="source text"):
        F.cuda.jiterator._create_multi_output_jit_fn("", 2)
    tunable = F.cuda.tunable
    assert not tunable.is_enabled() and not tunable.tuning_is_enabled()
    assert tunable.get_results() == () == tunable.get_validators()
    for function in (tunable.enable, tunable.tuning_enable, tunable.record_untuned_enable):
        assert function(False) is None
        with pytest.raises(NotImplementedError, match="not tuned"):
            function()
