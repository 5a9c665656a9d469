"""Two CUDA devices, on a driver that is none (fake_cuda.py): work goes where its tensors are.

The driver refuses what belongs to another device than the one whose context is current; every
program here fails if it ever did so, and looks at the context that it leaves to other libraries.
"""

import pytest
from fake_cuda import needs_compiler

pytestmark = needs_compiler

HEAD = """
from fake_cuda_library import *

def on(device, work):
    "Runs `work`, which must launch on this device only and leave the thread's context alone."
    before = launches(0), launches(1), current_context()
    result = work()
    assert launches(device) > before[device], "nothing was launched there"
    assert launches(1 - device) == before[1 - device], "launched on the other device"
    assert before[2] in (-1, current_context()), "another context is current"
    return result

"""


@pytest.fixture
def run(run_on_fake_cuda):
    import textwrap

    def run(program: str, **variables: str) -> str:
        text = HEAD + textwrap.dedent(program)
        return run_on_fake_cuda(text, FAKE_CUDA_DEVICES="2", **variables)

    return run


def test_tensors_live_on_their_device(run):
    run("""
        assert cuda.device_count() == 2
        x, y = F.arange(6.0).cuda(0), F.arange(6.0).to("cuda:1")
        assert (x.device.index, y.device.index, x.get_device(), y.get_device()) == (0, 1, 0, 1)
        assert x.cpu().tolist() == y.cpu().tolist() == list(range(6))
        assert F.zeros(3, device="cuda:1").device == F.zeros_like(y).device == F.device("cuda", 1)
        assert y.new_empty(3).device.index == 1 and y.cuda().device.index == 0
        assert F.rand(3, device=1).device.index == 1
        assert cuda.current_device() == 0
    """)


def test_the_current_device_is_what_cuda_means(run):
    run("""
        with cuda.device(1):
            assert cuda.current_device() == 1
            assert F.zeros(2, device="cuda").device.index == F.ones(2).cuda().device.index == 1
            with cuda.device("cuda:0"):
                assert F.zeros(2, device="cuda").device.index == 0
            assert cuda.current_device() == 1
            with cuda.device_of(F.zeros(2, device="cuda:0")):
                assert cuda.current_device() == 0
            with cuda.device_of(F.zeros(2)):
                assert cuda.current_device() == 1
            with cuda.device(None), cuda.device(-1):
                assert cuda.current_device() == 1
        assert cuda.current_device() == 0
        cuda.set_device("cuda:1")
        cuda.set_device(-1)
        assert cuda.current_device() == 1 and F.empty(1, device="cuda").get_device() == 1
        try:
            with cuda.device(0):
                raise KeyError
        except KeyError:
            assert cuda.current_device() == 1
        refused(F.AcceleratorError, "device 2 does not exist", cuda.set_device, 2)
        assert cuda.current_device() == 1
    """)


def test_threads_have_current_devices_of_their_own(run):
    run("""
        import threading
        cuda.set_device(1)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
        thread.start(), thread.join()
        assert seen == [0] and cuda.current_device() == 1
    """)


def test_operators_run_where_their_tensors_are(run):
    run("""
        tensors = [F.ones(8, 8, device=d) for d in range(2)]
        for device, x in enumerate(tensors):
            for work in (
                lambda: x + 1, lambda: x.sum(), lambda: x.t().contiguous(), lambda: x.softmax(1),
                lambda: x[x > 0], lambda: x.sort(), lambda: x.cumsum(0), lambda: F.rand_like(x),
                lambda: x.fill_(3), lambda: F.cat([x, x]), lambda: x[[1, 2]], lambda: x.half(),
                lambda: F._foreach_add([x, x], 1.0), lambda: F.full_like(x, 7.0), lambda: x.var(),
                lambda: F.nn.functional.layer_norm(x, [8]), lambda: x.topk(2), lambda: 2.0 - x,
                lambda: F.nn.functional.dropout(x, 0.5), lambda: x.max(1), lambda: x.nonzero(),
                lambda: F.nn.functional.cross_entropy(x, x[:, 0].long()), lambda: x.unique(),
                lambda: F.nn.functional.interpolate(x[None, None], scale_factor=2),
            ):
                on(device, work)
            with cuda.device(1 - device):
                result = on(device, lambda: (x * 2).relu())
            assert result.device == x.device
            assert x.sum().item() == x.sum().cpu().item() and current_context() == 0
    """)


def test_other_libraries_keep_the_context_that_they_made_current(run):
    run("""
        x = [F.ones(4, device=d) for d in range(2)]
        stream, event = cuda.Stream(1), cuda.Event(enable_timing=True)
        g = cuda.CUDAGraph()
        def capture():
            with cuda.device(1), cuda.graph(g):
                x[1] + 1
        def forget():
            held = F.empty(100, device=1)
            held.record_stream(stream)
            del held
        x[0] + 1
        for work in (
            lambda: x[1] + 1, lambda: x[1].cpu(), lambda: x[1].sum().item(), lambda: x[1].cuda(0),
            lambda: x[0].cuda(1), lambda: F.empty(1 << 22, device=1), forget,
            lambda: cuda.synchronize(1), lambda: cuda.mem_get_info(1), lambda: cuda.empty_cache(),
            lambda: event.record(stream), event.synchronize, event.query, stream.synchronize,
            stream.query, lambda: stream.priority, lambda: cuda.memory_snapshot(),
            lambda: cuda.Stream(1, priority=-2), lambda: cuda.current_stream(0).wait_event(event),
            lambda: cuda.get_device_properties(1), capture, g.replay, g.reset,
            lambda: F.from_dlpack(x[1]), lambda: x[1].__cuda_array_interface__,
            lambda: cuda.caching_allocator_delete(cuda.caching_allocator_alloc(99, 1)),
        ):
            assert current_context() == 0
            work()
            assert current_context() == 0, work
        with cuda.device(1):
            assert current_context() == 1
            x[0] + 1
            assert current_context() == 1
        assert current_context() == 0
        import ctypes
        fake.cuCtxSetCurrent(None)  # as a thread begins
        x[1] + 1
        x[0] + 1
        assert current_context() == 0
    """)


def test_a_device_that_nobody_uses_has_no_context(run):
    run("""
        x = F.ones(3, device="cuda") + 1
        F.manual_seed(3), cuda.empty_cache(), cuda.synchronize(), cuda.memory_snapshot()
        cuda.memory_stats(1), cuda.get_device_properties(1), cuda.get_rng_state_all()
        with cuda.device(1):
            assert F.ones(2).sum() == 2
        with cuda.graph(cuda.CUDAGraph()):
            x + 1
        assert fake.fake_cuda_contexts() == 1
    """)


def test_copies_between_devices_wait_for_both(run):
    run("""
        a = F.arange(6.0, device="cpu").cuda(0)
        for source in (a, a.view(2, 3).t(), a[::2], a.double(), a[:0]):
            there = source.to("cuda:1")
            assert there.device.index == 1 and there.dtype == source.dtype
            assert there.shape == source.shape
        assert a.to("cuda:1").cpu().tolist() == a.view(2, 3).to("cuda:1").view(-1).tolist()
        b = F.zeros(6, device=1)
        b.copy_(a)
        assert b.tolist() == list(range(6)) and current_context() == 0
        # The copy is queued on the stream of the destination, after what the source's stream holds,
        # and what the source's stream does next waits for the copy.
        source, target = cuda.Stream(0), cuda.Stream(1)
        def work():
            with cuda.stream(source), cuda.stream(target):
                assert cuda.current_device() == 1
                b.copy_(a)
        with cuda.stream(source):
            log = journal(lambda: (a.add_(1), work(), a.add_(1)))
        kinds = [entry.kind for entry in log]
        first, copy, last = (kinds.index("launch"), kinds.index("copy"),
                             len(kinds) - 1 - kinds[::-1].index("launch"))
        assert log[copy].stream == target.cuda_stream and log[copy].device == 1
        assert log[first].stream == log[last].stream == source.cuda_stream
        assert comes_before(log, first, copy) and comes_before(log, copy, last)
    """)


def test_gradients_come_back_to_the_device_of_each_tensor(run):
    run("""
        w = [F.ones(4, 4, device=d, requires_grad=True) for d in range(2)]
        hidden = (w[0] * 2).to("cuda:1")
        out = (hidden * w[1]).sum()
        assert out.device.index == 1
        before = launches(0), launches(1)
        out.backward()
        assert launches(0) > before[0] and launches(1) > before[1]
        assert [t.grad.device.index for t in w] == [0, 1]
        assert current_context() == 0 and cuda.current_device() == 0
        mixed = F.optim.SGD(w, lr=0.1, momentum=0.9)
        mixed.step(), mixed.step()
        F.nn.utils.clip_grad_norm_(w, 1.0)
        assert current_context() == 0
    """)


def test_operands_on_two_devices_are_refused_by_name(run):
    run("""
        a, b, c = F.ones(3, device=0), F.ones(3, device=1), F.ones(3)
        m = F.ones(3, 3, device=0)
        for work, words in (
            (lambda: a + b, ("cuda:0", "cuda:1")), (lambda: a.mul_(b), ("cuda:0", "cuda:1")),
            (lambda: F.cat([a, b]), ("cuda:0", "cuda:1")), (lambda: m @ b, ("cuda:0", "cuda:1")),
            (lambda: F.where(a > 0, a, b), ("cuda:0", "cuda:1")),
            (lambda: F.stack([b, a]), ("cuda:0", "cuda:1")),
            (lambda: F.nn.functional.linear(m, m, b), ("cuda:0", "cuda:1")),
            (lambda: F.addcmul(a, b, a), ("cuda:0", "cuda:1")),
            (lambda: F.nn.functional.mse_loss(a, b), ("cuda:0", "cuda:1")),
            (lambda: b + c, ("cuda:1", "cpu")), (lambda: a.index_select(0, b.long()), ("cuda:1",)),
            (lambda: F.nn.functional.layer_norm(m, [3], b), ("cuda:0", "cuda:1")),
            (lambda: F.nn.functional.embedding(a.long(), F.ones(3, 3, device=1)),
             ("cuda:0", "cuda:1")),
            (lambda: F.add(a, a, out=F.empty(3, device=1)), ("cuda:0", "cuda:1")),
            (lambda: a.scatter_(0, a.long(), b), ("cuda:0", "cuda:1")),
            (lambda: F._foreach_add([a], [b]), ("cuda:0", "cuda:1")),
            (lambda: m.masked_fill(F.ones(3, 3, device=1) > 0, 0.0), ("cuda:1",)),
        ):
            try:
                work()
            except RuntimeError as error:
                assert type(error) is RuntimeError, error
                for word in words:
                    assert word in str(error), (word, str(error))
            else:
                raise AssertionError(words)
        assert (a + b.sum().cpu()).device.index == 0  # a number from the host travels
        refused(RuntimeError, "cuda:1", lambda: a + b.sum())
    """)


def test_streams_and_events_belong_to_a_device(run):
    run("""
        s = cuda.Stream(device=1)
        assert s.device == F.device("cuda", 1) and s.device_index == 1
        assert cuda.current_stream(1) == cuda.default_stream(1) != cuda.default_stream(0)
        x = F.ones(3, device=1)
        with cuda.stream(s):
            assert cuda.current_device() == 1 and cuda.current_stream() == s
            assert cuda.current_stream(0) == cuda.default_stream(0)
            log = journal(lambda: x + 1)
        assert {(w.device, w.stream) for w in log} == {(1, s.cuda_stream)}
        assert cuda.current_device() == 0 and cuda.current_stream(1) == cuda.default_stream(1)
        cuda.set_stream(s)
        assert cuda.current_device() == 1 and cuda.current_stream() == s
        cuda.set_stream(cuda.default_stream(1))
        cuda.set_device(0)
        mine, other = cuda.Stream(0), s
        event = other.record_event()
        assert event.device == F.device("cuda", 1)
        mine.wait_event(event), mine.wait_stream(other), event.wait()
        refused(RuntimeError, "cuda:1 does not match", event.record, mine)
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record(mine), end.record(other)
        refused(RuntimeError, "device", start.elapsed_time, end)
        with mine, other:
            assert cuda.current_stream() == other and cuda.current_stream(0) == mine
        assert cuda.current_stream(0) == cuda.default_stream(0) and cuda.current_device() == 0
    """)


def test_memory_is_counted_for_each_device(run):
    run("""
        x = F.empty(1 << 20, dtype=F.uint8, device="cuda:1")
        assert cuda.memory_allocated() == cuda.memory_allocated(0) == 0
        assert cuda.memory_allocated(1) == cuda.memory_allocated("cuda:1") == 1 << 20
        with cuda.device(1):
            assert cuda.memory_allocated() == 1 << 20
            assert cuda.memory_reserved() == fake.fake_cuda_used(1) == 20 << 20
        assert fake.fake_cuda_used(0) == 0
        assert cuda.mem_get_info(1)[0] == (1 << 30) - (20 << 20)
        assert cuda.mem_get_info(0)[0] == 1 << 30
        assert {s["device"] for s in cuda.memory_snapshot()} == {1}
        cuda.set_per_process_memory_fraction(0.5, 1)
        assert cuda.get_per_process_memory_fraction(1) == 0.5
        assert cuda.get_per_process_memory_fraction(0) == 1.0
        held = F.empty(700 << 20, dtype=F.uint8, device="cuda:0")
        refused(cuda.OutOfMemoryError, "GPU 1", lambda: F.empty(700 << 20, dtype=F.uint8, device=1))
        del x, held
        cuda.empty_cache()  # of all devices
        assert fake.fake_cuda_used(0) == fake.fake_cuda_used(1) == 0
    """)


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_memory_is_freed_on_its_own_device_from_any_other(run, settings):
    run(
        """
        import random, threading
        random.seed(3)
        streams = [[None, cuda.Stream(d)] for d in range(2)]
        def work(seed):
            choose, live = random.Random(seed), []
            for _ in range(300):
                d = choose.randrange(2)
                with cuda.device(choose.randrange(2)), cuda.stream(choose.choice(streams[d])):
                    live.append(F.empty(int(2 ** choose.uniform(0, 24)), dtype=F.uint8, device=d))
                    if choose.random() < 0.3:
                        live[-1].record_stream(streams[d][1])
                    while len(live) > 8 or (live and choose.random() < 0.4):
                        live.pop(choose.randrange(len(live)))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        cuda.empty_cache()
        for d in range(2):
            assert cuda.memory_allocated(d) == cuda.memory_reserved(d) == 0
            assert fake.fake_cuda_used(d) == 0
        """,
        FACULA_CUDA_ALLOC_CONF=settings,
    )


def test_pickles_and_files_keep_devices_or_move_them(run):
    run("""
        import copy, io, pickle
        x = F.arange(3.0).to("cuda:1")
        for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert again.device == x.device and again.tolist() == [0, 1, 2]
        buffer = io.BytesIO()
        F.save({"x": x, "y": F.ones(2, device="cuda:0")}, buffer)
        def load(where):
            buffer.seek(0)
            found = F.load(buffer, map_location=where)
            return str(found["x"].device), str(found["y"].device)
        assert load(None) == ("cuda:1", "cuda:0")
        assert load("cuda:0") == load(F.device("cuda:0")) == ("cuda:0", "cuda:0")
        assert load("cpu") == ("cpu", "cpu")
        assert load({"cuda:1": "cuda:0", "cuda:0": "cuda:1"}) == ("cuda:0", "cuda:1")
        assert load(lambda storage, where: storage.cuda(1)) == ("cuda:1", "cuda:1")
        with cuda.device(1):
            assert load("cuda") == ("cuda:1", "cuda:1")
        assert cuda.current_device() == 0 and current_context() == 0
    """)


def test_a_file_from_a_device_that_is_missing_says_so(run, run_on_fake_cuda, tmp_path):
    run(f"F.save(F.ones(2, device='cuda:1'), {str(tmp_path / 'file')!r})")
    run_on_fake_cuda(f"""
        try:
            F.load({str(tmp_path / "file")!r})
        except RuntimeError as error:
            assert "map_location" in str(error) and "1" in str(error), error
        else:
            raise AssertionError
        assert F.load({str(tmp_path / "file")!r}, map_location="cuda:0").device.index == 0
    """)


def test_graphs_are_captured_on_the_current_device(run):
    run("""
        x = [F.ones(3, device=d) for d in range(2)]
        graphs = []
        for device in (1, 0, 1):
            g = cuda.CUDAGraph()
            with cuda.device(device):
                with cuda.graph(g):
                    assert cuda.current_device() == device and cuda.is_current_stream_capturing()
                    y = x[device] * 2
                    r = F.rand(5, device=device)
                assert cuda.current_device() == device
            graphs.append((device, g))
        assert current_context() == 0
        for device, g in graphs:
            before = [cuda.default_generators[d].get_offset() for d in range(2)]
            log = journal(g.replay)
            assert {(w.device) for w in log} == {device} and log[-1].kind == "graph"
            after = [cuda.default_generators[d].get_offset() for d in range(2)]
            assert after[device] > before[device] and after[1 - device] == before[1 - device]
        s = cuda.Stream(1)
        with cuda.graph(graphs[0][1].__class__(), stream=s):
            assert cuda.current_device() == 1
        assert cuda.current_device() == 0
    """)


def test_random_numbers_have_a_state_for_each_device(run):
    run("""
        F.manual_seed(5)
        states = cuda.get_rng_state_all()
        assert len(states) == 2 and states[0].tolist() == states[1].tolist()
        F.rand(10, device=1)
        assert cuda.get_rng_state(0).tolist() == states[0].tolist()
        assert cuda.get_rng_state(1).tolist() != states[1].tolist()
        cuda.set_rng_state_all(states)
        assert cuda.get_rng_state("cuda:1").tolist() == states[1].tolist()
        with cuda.device(1):
            cuda.manual_seed(9)
            assert cuda.initial_seed() == 9
        assert cuda.initial_seed() == 5
        cuda.manual_seed_all(11)
        assert [g.initial_seed() for g in cuda.default_generators] == [11, 11]
        g = F.Generator("cuda:1")
        assert g.device.index == 1
        F.rand(3, device="cuda:1", generator=g)
        refused(RuntimeError, "cuda:1", lambda: F.rand(3, device="cuda:0", generator=g))
        with F.random.fork_rng(devices=[1]):
            F.rand(9, device=1)
        fresh = F.Generator("cuda:1").manual_seed(11)
        assert cuda.get_rng_state(1).tolist() == fresh.get_state().tolist()
    """)


def test_modules_move_between_devices(run):
    run("""
        model = F.nn.Sequential(F.nn.LayerNorm(3), F.nn.BatchNorm1d(3))
        assert {p.device.index for p in model.cuda(1).parameters()} == {1}
        assert {str(b.device) for b in model.buffers()} == {"cuda:1"}
        out = on(1, lambda: model(F.ones(2, 3, device=1)))
        assert out.device.index == 1
        assert {p.device.index for p in model.to("cuda:0").parameters()} == {0}
        with F.device("cuda:1"):
            assert F.nn.LayerNorm(3).weight.device.index == 1
        x = F.ones(3).pin_memory().to("cuda:1", non_blocking=True)
        assert x.device.index == 1 and x.tolist() == [1, 1, 1]
        assert cuda.can_device_access_peer(0, 1) and not cuda.can_device_access_peer(1, 1)
    """)


def test_data_parallel_modules_use_both_devices(run):
    run("""
        model = F.nn.Sequential(F.nn.LayerNorm(4), F.nn.GELU()).cuda(0)
        parallel = F.nn.DataParallel(model, device_ids=[0, 1])
        x = F.ones(6, 4, device=0, requires_grad=True)
        streams = [cuda.Stream(d) for d in range(2)]
        def step():
            before = launches(0), launches(1)
            y = parallel(x)
            assert y.shape == x.shape and y.device.index == 0
            y.sum().backward()
            assert launches(0) > before[0] and launches(1) > before[1]
            assert model[0].weight.grad.device.index == x.grad.device.index == 0
            assert cuda.current_device() == 0
        step()
        with streams[1], streams[0]:
            step()
        assert current_context() == 0
    """)
