"""Device memory under stress, on a driver that is none (fake_cuda.py): shortage, threads."""

import pytest
from fake_cuda import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def run(run_on_fake_cuda):
    import textwrap

    def run(program: str, **options) -> str:
        head = """
from fake_cuda_library import *

def take(megabytes, device="cuda"):
    return F.empty(megabytes << 20, dtype=F.uint8, device=device)

def consistent(device=0):
    "The figures are those that the list of blocks has, and the driver's."
    stats = cuda.memory_stats(device)
    segments = [s for s in cuda.memory_snapshot() if s["device"] == device]
    blocks = [b for s in segments for b in s["blocks"]]
    def size(*states):
        return sum(b["size"] for b in blocks if b["state"] in states)
    assert sum(s["total_size"] for s in segments) == stats["reserved_bytes.all.current"]
    assert len(segments) == stats["segment.all.current"]
    assert fake.fake_cuda_used(device) == stats["reserved_bytes.all.current"]
    assert size("active_allocated") == stats["allocated_bytes.all.current"]
    assert size("active_allocated", "active_awaiting_free") == stats["active_bytes.all.current"]
    split = [b for s in segments if len(s["blocks"]) > 1 for b in s["blocks"]
             if b["state"] == "inactive"]
    assert len(split) == stats["inactive_split.all.current"]
    assert sum(b["size"] for b in split) == stats["inactive_split_bytes.all.current"]
    requested = sum(b["requested_size"] for b in blocks if b["state"] == "active_allocated")
    assert requested == stats["requested_bytes.all.current"]
    for s in segments:
        at = s["address"]
        for b in s["blocks"]:
            assert b["address"] == at
            at += b["size"]
        assert at == s["address"] + s["total_size"]

"""
        return run_on_fake_cuda(head + textwrap.dedent(program), **options)

    return run


def test_running_out_in_a_capture_ends_the_capture_only(run):
    run("""
        held = take(600)
        g = cuda.CUDAGraph()
        try:
            with cuda.graph(g):
                inner = take(100)
                take(600)
        except cuda.OutOfMemoryError as error:
            assert "600.00 MiB" in str(error)
        else:
            raise AssertionError
        assert not cuda.is_current_stream_capturing()
        del inner
        g.reset()
        cuda.synchronize()
        consistent()
        del held
        assert take(1000).numel() == 1000 << 20  # what the capture had is free again
        with cuda.graph(g):
            take(10)
        g.replay()
    """)


def test_running_out_in_backward_is_raised_by_backward(run):
    run("""
        class Large(F.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()
            @staticmethod
            def backward(ctx, grad):
                take(2000)
        x = F.ones(3, device="cuda", requires_grad=True)
        refused(cuda.OutOfMemoryError, "2", lambda: Large.apply(x).sum().backward())
        a = F.ones(60 << 20, device="cuda", requires_grad=True)
        loss = (a * 2).sum()
        held = take(700)
        refused(cuda.OutOfMemoryError, "240.00 MiB", loss.backward)
        del held, loss
        (a * 2).sum().backward()
        assert a.grad.shape == a.shape
        consistent()
    """)


def test_running_out_in_several_threads_leaves_all_of_them_usable(run):
    run("""
        import threading
        failures, wins = [], []
        def work(n):
            stream = cuda.Stream()
            for i in range(60):
                with cuda.stream(stream):
                    try:
                        held = [take(150 + 10 * n) for _ in range(3)]
                        wins.append(n)
                        del held
                    except cuda.OutOfMemoryError:
                        failures.append(n)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert wins
        consistent()
        stats = cuda.memory_stats()
        assert stats["num_ooms"] == len(failures)
        cuda.empty_cache()
        assert fake.fake_cuda_used(0) == 0
        take(1000)
    """)


def test_what_the_driver_refuses_while_memory_is_given_back_breaks_nothing(run):
    run("""
        held = [take(100) for _ in range(5)]
        del held
        fail("cuMemFree_v2", 700, 1)
        refused(F.AcceleratorError, "cuMemFree", cuda.empty_cache)
        consistent()
        cuda.empty_cache()
        consistent()
        assert cuda.memory_reserved() == 0
        fail("cuMemAlloc_v2", 719, 1)
        refused(F.AcceleratorError, "cuMemAlloc", take, 10)
        assert take(10).numel() == 10 << 20
        x = take(100)
        x.record_stream(cuda.Stream())
        del x
        fail("cuEventQuery", 700, 1)
        refused(F.AcceleratorError, "cuEventQuery", take, 50)
        consistent()
        take(50)
        assert cuda.memory_stats()["active_bytes.all.current"] == 0
    """)


def test_memory_waits_for_a_stream_that_is_gone(run):
    run(
        """
        import ctypes
        handle = ctypes.c_void_p()
        x = take(100)
        fake.cuStreamCreateWithPriority(ctypes.byref(handle), 1, 0)
        x.record_stream(cuda.ExternalStream(handle.value))
        assert fake.cuStreamDestroy_v2(handle) == 0
        del x
        assert cuda.memory_stats()["active_bytes.all.current"] == 0
        consistent()
    """,
        misuses=True,
    )


def test_memory_is_not_used_again_before_the_other_stream_is_done(run):
    run("""
        side = cuda.Stream()
        events = fake.fake_cuda_events()
        for _ in range(3):
            x = take(100)
            place = x.data_ptr()
            x.record_stream(side)
            hold(True)
            del x
            y = take(100)
            assert y.data_ptr() != place
            assert cuda.memory_stats()["active_bytes.all.current"] == 200 << 20
            hold(False)
            del y
            z = take(100)
            assert cuda.memory_stats()["active_bytes.all.current"] == 100 << 20
            del z
            cuda.empty_cache()
        assert fake.fake_cuda_events() <= events + 1  # events are used again
        consistent()
    """)


def test_memory_can_be_freed_by_another_thread_on_another_stream(run):
    run("""
        import threading
        side = cuda.Stream()
        x = [take(50)]
        place = x[0].data_ptr()
        def free():
            with cuda.stream(side):
                x.clear()
                assert take(50).data_ptr() != place  # it belongs to the other stream
        thread = threading.Thread(target=free)
        thread.start(), thread.join()
        assert take(50).data_ptr() == place
        consistent()
    """)


def test_a_capture_defers_what_other_streams_use(run):
    run("""
        side = cuda.Stream()
        x = take(30)
        x.record_stream(side)
        unused = take(70)
        del unused
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            before = fake.fake_cuda_used(0)
            del x
            cuda.empty_cache()  # gives nothing back: that would wait for the device
            assert fake.fake_cuda_used(0) == before
            assert cuda.memory_stats()["active_bytes.all.current"] == 30 << 20
            take(10)
        cuda.empty_cache()
        assert cuda.memory_stats()["active_bytes.all.current"] == 0
        g.reset()
        cuda.empty_cache()
        assert fake.fake_cuda_used(0) == 0
        consistent()
    """)


def test_graphs_that_are_gone_leave_nothing_behind(run):
    run("""
        for _ in range(50):
            g = cuda.CUDAGraph()
            with cuda.graph(g):
                y = take(5)
            pool = g.pool()
            del g
            assert [s for s in cuda.memory_snapshot() if s["segment_pool_id"] == pool]
            del y
            cuda.empty_cache()
            assert cuda.memory_reserved() == 0 and not cuda.memory_snapshot()
        consistent()
    """)


@pytest.mark.parametrize(
    "settings", ["", "expandable_segments:True", "max_split_size_mb:32"], ids=str
)
def test_threads_and_streams_at_random(run, settings):
    run(
        """
        import random, threading, time
        streams = [None] + [cuda.Stream() for _ in range(3)]
        shared, lock, problems = [], threading.Lock(), []
        end = time.monotonic() + 4

        def work(seed):
            choose, live = random.Random(seed), []
            mark = seed * 31 % 251
            try:
                while time.monotonic() < end:
                    with cuda.stream(choose.choice(streams)):
                        try:
                            size = int(2 ** choose.uniform(4, 27))
                            x = F.empty(size, dtype=F.uint8, device="cuda")
                        except cuda.OutOfMemoryError:
                            live.clear()
                            with lock:
                                shared.clear()
                            continue
                        # The first bytes are this thread's own as long as it has the tensor.
                        x[:8].fill_(mark)
                        live.append(x)
                        if choose.random() < 0.3:
                            live[-1].record_stream(choose.choice(streams[1:]))
                        if choose.random() < 0.2:
                            with lock:
                                shared.append(live.pop())
                                if len(shared) > 5:
                                    shared.pop(choose.randrange(len(shared)))
                        while len(live) > 10 or (live and choose.random() < 0.4):
                            y = live.pop(choose.randrange(len(live)))
                            if set(y[:8].tolist()) != {mark}:
                                raise AssertionError("someone else wrote here")
                        if choose.random() < 0.02:
                            cuda.empty_cache()
                        if choose.random() < 0.02:
                            cuda.memory_stats(), cuda.memory_snapshot()
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not problems, problems
        shared.clear()
        consistent()
        cuda.synchronize()
        cuda.empty_cache()
        consistent()
        assert cuda.memory_allocated() == cuda.memory_reserved() == fake.fake_cuda_used(0) == 0
        assert cuda.memory_stats()["active.all.current"] == 0
        """,
        FACULA_CUDA_ALLOC_CONF=settings,
    )


def test_the_end_of_a_program_releases_nothing_twice(run):
    """What lives in modules, cycles, threads and static places dies in any order."""
    run("""
        import atexit, threading, sys
        class Keeper: pass
        keeper = Keeper()
        keeper.self, keeper.x, keeper.event = keeper, take(3), cuda.Event()
        keeper.event.record()
        sys.modules["kept"] = keeper
        F.kept = take(5)
        g = cuda.CUDAGraph()
        with cuda.graph(g):
            y = F.rand(10, device="cuda")
        pinned = F.ones(10).pin_memory()
        there = pinned.to("cuda", non_blocking=True)
        there.record_stream(cuda.Stream())
        x = F.ones(3, device="cuda", requires_grad=True)
        kept = (x * 2).sum()
        sys.modules["pool"] = pool = cuda.MemPool()
        with cuda.use_mem_pool(pool):
            F.pooled = take(1)
        atexit.register(lambda: take(1))
        thread = threading.Thread(target=lambda: [take(1) for _ in range(200)])
        thread.start()
        g.replay()
    """)
