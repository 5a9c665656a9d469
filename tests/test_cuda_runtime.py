"""Streams, events, graphs, memory and interchange on a CUDA device."""

import gc

import numpy as np
import pytest
from package_under_test import F
from test_cuda_device import close, pytestmark  # noqa: F401  (the mark skips without a device)

cuda = F.cuda


# ---- numbers and sequences


def test_numbers_travel_with_the_launch():
    x = F.arange(5.0)
    a = x.cuda()
    close(a + 2, x + 2)
    close(2 - a, 2 - x)
    close(F.where(a > 2, a, -1.0), F.where(x > 2, x, -1.0))
    close(F.clamp(a, 1, 3), F.clamp(x, 1, 3))
    close(a * F.tensor(3.0), x * 3)
    close(a.to(F.complex128) * (1 + 2j), x.to(F.complex128) * (1 + 2j))
    close(F.lerp(a, a + 1, 0.25), F.lerp(x, x + 1, 0.25))
    for exponent in (2, 3, 0.5, -1, 1.5):
        close((a + 1) ** exponent, (x + 1) ** exponent)


@pytest.mark.parametrize("dtype", [F.int32, F.int64, F.float32, F.float64, F.float16])
def test_sequences_are_made_on_the_device(dtype):
    assert (
        F.arange(3, 1000, 7, dtype=dtype, device="cuda")
        .cpu()
        .equal(F.arange(3, 1000, 7, dtype=dtype))
    )
    close(F.linspace(0, 100, 37, dtype=dtype, device="cuda"), F.linspace(0, 100, 37, dtype=dtype))
    assert F.arange(10, 0, -1, device="cuda").tolist() == list(range(10, 0, -1))
    assert F.linspace(3, 3, 1, device="cuda").tolist() == [3.0]
    assert F.arange(0, device="cuda").numel() == 0


def test_reversal_keeps_values():
    x = F.arange(24).reshape(2, 3, 4)
    assert x.cuda().flip(0, 2).tolist() == x.flip(0, 2).tolist()


# ---- streams and events


def test_work_on_another_stream_is_ordered_by_events():
    side = cuda.Stream()
    x = F.ones(1 << 22, device="cuda")
    for _ in range(20):
        x = x * 2 - 1
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x.sum()
        x.record_stream(side)
    cuda.current_stream().wait_stream(side)
    assert y.item() == 1 << 22
    assert side.query()


def test_events_measure_time():
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    x = F.ones(1 << 24, device="cuda")
    start.record()
    for _ in range(10):
        x = x + 1
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 10_000
    with pytest.raises(ValueError, match="enable_timing"):
        event = cuda.Event()
        event.record()
        start.elapsed_time(event)


def test_copies_from_pinned_memory_need_not_wait():
    x = F.arange(1_000_000, dtype=F.float32).pin_memory()
    assert x.is_pinned()
    y = x.to("cuda", non_blocking=True)
    back = (y * 2).to("cpu", non_blocking=True)
    cuda.synchronize()
    assert back.is_pinned() and back.equal(x * 2)


def test_pinned_memory_is_not_used_again_before_its_copy_is_done():
    expected = []
    copies = []
    for i in range(50):
        host = F.full((300_000,), float(i)).pin_memory()
        copies.append(host.to("cuda", non_blocking=True))
        expected.append(float(i))
        del host
    assert [c.mean().item() for c in copies] == expected


# ---- graphs


def test_a_graph_replays_on_new_inputs():
    x = F.zeros(1000, device="cuda")
    w = F.full((1000,), 3.0, device="cuda")
    warm = (x * w + 1).sum()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = (x * w + 1).sum()
    for value in (1.0, 2.0):
        x.fill_(value)
        g.replay()
        assert y.item() == 1000 * (3 * value + 1)
    del warm


def test_a_whole_training_step_in_a_graph():
    F.manual_seed(0)
    w = F.randn(8, 8, device="cuda").requires_grad_()
    x, target = F.randn(16, 8, device="cuda"), F.randn(16, 8, device="cuda")

    def step():
        loss = ((x @ w).tanh() - target).pow(2).mean()
        (grad,) = F.autograd.grad(loss, w)
        with F.no_grad():
            w.sub_(0.1 * grad)
        return loss

    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(3):
            step()
    cuda.current_stream().wait_stream(side)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        loss = step()
    before = w.detach().clone()
    g.replay()
    first = loss.item()
    for _ in range(20):
        g.replay()
    assert loss.item() < first
    assert not w.detach().equal(before)


def test_callables_become_graphs():
    F.manual_seed(0)
    module = F.nn.Sequential(F.nn.Linear(8, 16), F.nn.Tanh(), F.nn.Linear(16, 4)).cuda()
    x = F.randn(5, 8, device="cuda", requires_grad=True)
    expected = module(x)
    expected.sum().backward()
    wanted, of_input = [p.grad.clone() for p in module.parameters()], x.grad.clone()
    module.zero_grad()
    graphed = cuda.make_graphed_callables(module, (F.randn(5, 8, device="cuda").requires_grad_(),))
    y = x.detach().clone().requires_grad_()
    result = graphed(y)
    close(result.detach(), expected.detach().cpu())
    result.sum().backward()
    close(y.grad, of_input.cpu())
    for p, g in zip(module.parameters(), wanted, strict=True):
        close(p.grad, g.cpu())


def test_replays_draw_the_numbers_that_calls_would_draw():
    own = F.Generator("cuda")

    def work():
        x = F.rand(1000, device="cuda") + F.randn(1000, device="cuda", generator=own)
        y = F.nn.functional.dropout(F.ones(1000, device="cuda"), 0.5)
        return x, y, F.poisson(F.full((1000,), 4.0, device="cuda"))

    work()
    F.cuda.manual_seed(3)
    own.manual_seed(4)
    wanted = [work() for _ in range(3)]
    F.cuda.manual_seed(3)
    own.manual_seed(4)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        results = work()
    for numbers in wanted:
        g.replay()
        assert all(a.equal(b) for a, b in zip(results, numbers, strict=True))
    assert not wanted[0][0].equal(wanted[1][0])
    del wanted
    F.cuda.manual_seed(3)
    g.replay()
    first = results[0].clone()
    F.cuda.manual_seed(3)
    own.set_offset(0)
    own.manual_seed(5)
    g.replay()
    assert not results[0].equal(first)


def test_graphed_callables_take_names_and_add_up_gradients():
    class Layer(F.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = F.nn.Parameter(F.tensor([1.0, 2.0, 3.0], device="cuda"))

        def forward(self, x, factor):
            return {"y": x * self.weight * factor}, None

    sample = (F.ones(3, device="cuda"), F.ones(3, device="cuda"))
    layer = cuda.make_graphed_callables(Layer(), sample)
    for factor in (2.0, 5.0):
        # Other tensors than the samples, into which the graph's inputs are copied.
        x, y = F.full((3,), 4.0, device="cuda"), F.full((3,), factor, device="cuda")
        result, nothing = layer(factor=y, x=x)
        assert nothing is None
        assert result["y"].tolist() == [4 * factor, 8 * factor, 12 * factor]
        result["y"].sum().backward()
    assert layer.weight.grad.tolist() == [28.0] * 3  # of both calls


def test_backward_on_the_streams_of_forward_gives_the_same_gradients():
    F.manual_seed(0)
    start = F.randn(512, 512)
    streams = [cuda.Stream() for _ in range(3)]

    def forward(x, streams):
        parts = []
        for stream in streams:
            if stream:
                stream.wait_stream(cuda.current_stream())
            with cuda.stream(stream):
                y = x
                for _ in range(6):
                    y = (y @ x / 30).sin()
                parts.append(y)
            if stream:
                cuda.current_stream().wait_stream(stream)
        return sum(parts)

    def gradient(streams):
        x = start.cuda().requires_grad_()
        for _ in range(3):  # later rounds use memory of the first again
            x.grad = None
            forward(x, streams).square().sum().backward()
        return x.grad

    expected = gradient([None] * 3)
    for caller in (cuda.current_stream(), cuda.Stream()):
        caller.wait_stream(cuda.current_stream())
        with cuda.stream(caller):
            found = gradient(streams)
        cuda.current_stream().wait_stream(caller)
        close(found, expected.cpu(), rtol=1e-4, atol=1e-4)


def test_a_capture_may_fork_streams_in_forward_and_backward():
    side = cuda.Stream()
    x = F.full((1000,), 2.0, device="cuda", requires_grad=True)

    def step():
        main = cuda.current_stream()
        side.wait_stream(main)
        with cuda.stream(side):
            y = x * x
        main.wait_stream(side)
        return F.autograd.grad((y * 3).sum(), [x])[0]

    with cuda.stream(cuda.Stream()):
        step()
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        found = step()
    for value in (2.0, 7.0):
        with F.no_grad():
            x.fill_(value)
        graph.replay()
        assert found.unique().tolist() == [6 * value]


def test_pools_hold_real_memory():
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = F.arange(10, device="cuda")
    y = F.zeros(10, device="cuda")
    assert x.sum().item() == 45 and y.sum().item() == 0
    held = sum(s["allocated_size"] for s in pool.snapshot())
    assert held == 512 and pool.use_count() == 1


@pytest.mark.skipif(cuda.device_count() < 2, reason="needs two devices")
def test_two_devices_compute_and_exchange():
    x = F.randn(1000, requires_grad=True)
    a = x.detach().cuda(0).requires_grad_()
    b = (a * 2).to("cuda:1")
    c = (b.sin() + F.ones(1000, device="cuda:1")).to("cuda:0")
    c.sum().backward()
    ((x * 2).sin() + 1).sum().backward()
    close(a.grad, x.grad)
    with cuda.device(1):
        s = cuda.Stream()
        with cuda.stream(s):
            close(F.arange(100.0, device="cuda") + 1, F.arange(100.0) + 1)
    assert cuda.current_device() == 0


def test_memory_of_a_graph_is_not_given_away():
    x = F.zeros(1 << 20, device="cuda")
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = x + 1
        z = y * 2
        del y
    noise = [F.full((1 << 20,), -7.0, device="cuda") for _ in range(8)]
    g.replay()
    assert z.eq(2).all().item() and all(n.eq(-7).all().item() for n in noise)


# ---- memory


def test_out_of_memory_is_survived():
    free, _ = cuda.mem_get_info()
    with pytest.raises(cuda.OutOfMemoryError, match="Tried to allocate"):
        F.empty(2 * free, dtype=F.uint8, device="cuda")
    assert F.ones(3, device="cuda").sum().item() == 3


@pytest.mark.parametrize("setting", ["True", "False"])
def test_growing_segments_hold_real_memory(setting):
    side = cuda.Stream()
    cuda.memory._set_allocator_settings(f"expandable_segments:{setting}")
    try:
        with cuda.stream(side):
            parts = [F.full((5_000_000,), float(i), device="cuda") for i in range(8)]
            sums = [p.mean().item() for p in parts]
            del parts
            whole = F.ones(40_000_000, device="cuda")
            assert sums == [float(i) for i in range(8)] and whole.sum().item() == 40_000_000
            del whole
        gc.collect()
        cuda.empty_cache()
    finally:
        cuda.memory._set_allocator_settings("expandable_segments:False")


def test_statistics_have_pytorchs_names():
    stats = cuda.memory_stats()
    for what in ("allocated_bytes", "reserved_bytes", "active", "segment", "requested_bytes"):
        for pool in ("all", "small_pool", "large_pool"):
            for number in ("current", "peak", "allocated", "freed"):
                assert f"{what}.{pool}.{number}" in stats
    assert "Allocated memory" in cuda.memory_summary()


def test_storages_grow_on_the_device():
    x = F.arange(4.0).cuda()
    x.resize_(100_000)
    assert x[:4].tolist() == [0, 1, 2, 3]


# ---- bad indices


def test_a_bad_index_is_an_exception_and_the_device_stays_usable():
    x = F.arange(6.0).reshape(2, 3).cuda()
    with pytest.raises(IndexError, match="index 7 is out of bounds") as caught:
        F.gather(x, 1, F.tensor([[0, 7, 1]]).cuda())
        cuda.synchronize()
    assert isinstance(caught.value, F.AcceleratorError)  # as in PyTorch
    assert (x + 1).sum().item() == 21


# ---- other libraries


def test_dlpack_and_the_array_interface_share_memory_with_pytorch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no device")
    x = F.arange(6.0).cuda().reshape(2, 3)
    y = torch.from_dlpack(x)
    y += 1
    torch.cuda.synchronize()
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    back = F.from_dlpack(y.t())
    assert back.data_ptr() == x.data_ptr() and back.stride() == (1, 3)
    z = torch.as_tensor(x, device="cuda")
    assert z.data_ptr() == x.data_ptr()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        w = torch.full((1 << 20,), 2.0, device="cuda")
        taken = F.from_dlpack(w)
    cuda.synchronize()
    assert taken.sum().item() == 2 << 20


def test_the_array_interface_of_cupy():
    cupy = pytest.importorskip("cupy")
    x = F.arange(5.0).cuda()
    assert cupy.asarray(x).get().tolist() == [0, 1, 2, 3, 4]
    assert F.from_dlpack(cupy.arange(3)).tolist() == [0, 1, 2]


def test_arrays_of_numpy_go_to_the_device():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert F.from_numpy(array).cuda().t().cpu().numpy().tolist() == array.T.tolist()


def test_the_management_library_tells_about_the_device():
    try:
        watts = F.cuda.power_draw() / 1000
    except RuntimeError as error:
        pytest.skip(str(error))  # containers may hide it
    assert 0 < watts < 2000
    assert 0 < F.cuda.temperature() < 120
    assert 0 <= F.cuda.utilization() <= 100 and 0 <= F.cuda.memory_usage() <= 100
    assert 0 < F.cuda.clock_rate() < 10_000
    assert F.cuda.device_memory_used() > 0
