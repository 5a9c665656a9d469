"""Profiles of a real device: which kernels are found, whom they belong to, and when they ran.

What does not need a device is tested in test_cuda_profiler_without_device.py. A failure shows all
events of the profile.
"""

import json

import pytest
from cuda_comparison import needs_cuda
from package_under_test import F

from facula.profiler import ProfilerActivity, profile, record_function, schedule

pytestmark = [
    needs_cuda,
    pytest.mark.skipif(
        F.cuda.is_available() and not F._C._cuda_can_profile(), reason="CUPTI is not installed"
    ),
]

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
CUDA = F.autograd.DeviceType.CUDA
CLOCKS = 50.0  # microseconds that the clocks of host and device may differ by


def on_device(events):
    return [e for e in events if e.device_type is CUDA and not e.is_user_annotation]


def on_host(events, name=""):
    return [e for e in events if e.device_type is not CUDA and e.name.startswith(name)]


def shown(events):
    """All events, for the messages of failures."""
    lines = ["the events were:"]
    for e in events:
        t = e.time_range
        line = f"{e.id:4} {e.activity_type:20} {t.start:12.3f} {t.end:12.3f} {e.name[:90]}"
        if e.device_type is CUDA:
            asker = e.launched_by
            line += f" [device {e.device_index}, stream {e.device_resource_id}, correlation "
            line += f"{e.linked_correlation_id}, of {asker and (asker.id, asker.name)}]"
        else:
            line += f" [thread {e.thread}, in {e.cpu_parent and e.cpu_parent.id}, correlation "
            line += f"{e.linked_correlation_id}, {len(e.kernels)} kernels]"
        lines.append(line)
    return "\n".join(lines)


def profiled(work, warm=2, **options):
    """The profile of a call that has run before."""
    for _ in range(warm):
        work()
    F.cuda.synchronize()
    with profile(activities=BOTH, **options) as p:
        work()
    check_sums(p.events())
    return p


def check_sums(events):
    """What holds in every profile: nothing is lost, counted twice, or outside of its time."""
    events, text = list(events), shown(events)
    done = on_device(events)
    for e in done:
        assert e.device_time_total > 0 and e.cpu_time_total == 0, f"{e}\n{text}"
        if e.launched_by is not None:
            late = e.time_range.start - e.launched_by.time_range.start
            assert late > -CLOCKS, f"{e} began {-late} us before its operator\n{text}"
    total = sum(e.device_time_total for e in done)
    given = sum(e.self_device_time_total for e in on_host(events))
    outside = sum(e.device_time_total for e in done if e.launched_by is None)
    assert given + outside == pytest.approx(total), f"{given} + {outside} of {total} us\n{text}"
    for e in on_host(events):
        parts = sum(c.device_time_total for c in e.cpu_children)
        assert e.device_time_total == pytest.approx(e.self_device_time_total + parts), text
        assert e.self_cpu_time_total >= -0.01, f"{e}\n{text}"
    rows = F.autograd.profiler_util.EventList(events, use_device="cuda").key_averages()
    assert rows.self_device_time_total == pytest.approx(total), text


def only(events, name):
    found = on_host(events, name)
    assert len(found) == 1, f"{len(found)} events are called {name}\n{shown(events)}"
    return found[0]


def test_a_product_takes_the_time_that_events_measure():
    a, b = F.randn(4096, 4096, device="cuda"), F.randn(4096, 4096, device="cuda")
    p = profiled(lambda: a @ b)
    text = shown(p.events())
    product = only(p.events(), "aten::matmul")
    assert product.device_time_total == pytest.approx(p.events().self_device_time_total), text
    assert on_device(p.events()), text
    begin, end = (F.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(5):
        a @ b
    end.record()
    end.synchronize()
    measured = begin.elapsed_time(end) * 1000 / 5
    assert 0.5 * measured < product.device_time_total < 1.5 * measured, f"{measured} us\n{text}"


def test_an_elementwise_operator_has_one_kernel():
    x = F.randn(1 << 24, device="cuda")
    p = profiled(lambda: x.exp())
    text = shown(p.events())
    exp = only(p.events(), "aten::exp")
    (kernel,) = on_device(p.events())
    assert [k.name for k in exp.kernels] == [kernel.name], text
    assert kernel.launched_by is exp and kernel.activity_type == "kernel", text
    assert kernel.device_index == F.cuda.current_device() and kernel.linked_correlation_id > 0, text
    # 128 MB to be moved: more than 10 us anywhere, and less than 10 ms.
    assert 10 < kernel.device_time_total < 10_000, text
    call = only(p.events(), "cuLaunchKernel")
    assert call.linked_correlation_id == kernel.linked_correlation_id, text
    assert call.cpu_parent is exp and call.kernels == [], text
    assert kernel.time_range.start > call.time_range.start - CLOCKS, text
    assert all(n > 0 for n in (*kernel.details["grid"], *kernel.details["block"])), kernel.details


def test_copies_have_directions_and_bytes():
    host, pinned = F.randn(1 << 20), F.randn(1 << 20).pin_memory()
    x = F.randn(1 << 20, device="cuda")

    def work():
        x.copy_(host)
        x.copy_(pinned, non_blocking=True)
        x.cpu()
        x.clone()

    p = profiled(work)
    text = shown(p.events())
    copies = [e for e in on_device(p.events()) if e.activity_type == "gpu_memcpy"]
    names = [e.name for e in copies]
    assert names[0] == "Memcpy HtoD (Pageable -> Device)", text
    assert names[1] == "Memcpy HtoD (Pinned -> Device)", text
    assert names[2].startswith("Memcpy DtoH (Device -> "), text
    assert all(e.details["bytes"] == 1 << 22 for e in copies), [e.details for e in copies]
    assert all(e.launched_by is not None for e in on_device(p.events())), text
    assert all(e.launched_by.name.startswith("aten::") for e in copies), text
    assert only(p.events(), "aten::clone").device_time_total > 0, text


def test_kernels_of_backward_belong_to_its_operators():
    x = F.randn(512, 512, device="cuda", requires_grad=True)
    w = F.randn(512, 512, device="cuda", requires_grad=True)

    def work():
        x.grad = w.grad = None
        (x @ w).exp().sum().backward()

    p = profiled(work)
    events = p.events()
    text = shown(events)
    for node in ("MmBackward0", "ExpBackward0"):
        node = only(events, f"autograd::engine::evaluate_function: {node}")
        assert node.device_time_total > 0, text
    assert all(e.launched_by is not None for e in on_device(events)), text


def test_a_training_step():
    nn = F.nn
    F.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.LayerNorm(512), nn.Linear(512, 10))
    model.cuda()
    optimizer = F.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = F.randn(64, 256, device="cuda"), F.randint(0, 10, (64,), device="cuda")

    def step():
        optimizer.zero_grad()
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    p = profiled(step, record_shapes=True)
    events = p.events()
    text = shown(events)
    assert all(e.launched_by is not None for e in on_device(events)), text
    forward = only(events, "forward")
    optimizer_block = only(events, "Optimizer.step")
    assert forward.device_time_total > 0 and optimizer_block.device_time_total > 0, text
    assert len(only(events, "aten::cross_entropy").cpu_children) > 0, text
    linears = on_host(events, "aten::linear")
    assert len(linears) == 2 and all(e.device_time_total > 0 for e in linears), text
    blocks = {e.name: e for e in events if e.device_type is CUDA and e.is_user_annotation}
    assert blocks["forward"].device_time_total >= forward.device_time_total * 0.99, text
    table = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10)
    lines = table.splitlines()
    for name in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg", "# of Calls"):
        assert name in lines[1], table
    assert lines[-1].startswith("Self CUDA time total: "), table
    assert lines[-2].startswith("Self CPU time total: "), table


def test_convolutions_of_cudnn_are_found():
    x = F.randn(8, 32, 56, 56, device="cuda", requires_grad=True)
    conv = F.nn.Conv2d(32, 64, 3, padding=1).cuda()
    p = profiled(lambda: conv(x).sum().backward(), with_flops=True)
    events = p.events()
    text = shown(events)
    forward = only(events, "aten::conv2d")
    assert forward.device_time_total > 0, text
    assert forward.flops == 2 * 8 * 56 * 56 * 64 * 32 * 9
    node = only(events, "autograd::engine::evaluate_function: ConvolutionBackward0")
    assert node.device_time_total > 0, text
    assert all(e.launched_by is not None for e in on_device(events)), text
    assert "GFLOPs" in p.key_averages().table() or "MFLOPs" in p.key_averages().table()


def test_streams_are_told_apart():
    x = F.randn(1 << 16, device="cuda")
    side = F.cuda.Stream()

    def work():
        x + 1
        with F.cuda.stream(side):
            x * 2

    events = profiled(work).events()
    streams = [e.device_resource_id for e in on_device(events)]
    assert len(streams) == 2 and len(set(streams)) == 2, shown(events)


def test_replays_of_graphs_belong_to_what_surrounds_them():
    x = F.randn(1 << 16, device="cuda")
    for _ in range(2):
        (x * 2).exp()
    F.cuda.synchronize()
    graph = F.cuda.CUDAGraph()
    with F.cuda.graph(graph):
        (x * 2).exp()

    def work():
        with record_function("replay"):
            graph.replay()

    events = profiled(work).events()
    replay = only(events, "replay")
    assert len(replay.kernels) == 2, shown(events)
    assert only(events, "cuGraphLaunch").cpu_parent is replay, shown(events)


def test_traces(tmp_path):
    x = F.randn(1 << 16, device="cuda")
    p = profiled(lambda: (x + 1, x.cpu()))
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    text = shown(p.events())
    assert trace["deviceProperties"][0]["name"] == F.cuda.get_device_name(), trace
    found = {e["cat"] for e in trace["traceEvents"] if "cat" in e}
    assert {"kernel", "gpu_memcpy", "cpu_op", "cuda_driver", "ac2g"} <= found, (found, text)
    for e in trace["traceEvents"]:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            arrow = [a for a in trace["traceEvents"] if a.get("id") == e["args"]["correlation"]]
            assert [a["ph"] for a in arrow] == ["s", "f"], (e, arrow, text)
            assert e["dur"] > 0 and e["pid"] == e["args"]["device"], e


def test_profiles_follow_each_other():
    x = F.randn(1 << 16, device="cuda")
    x + 1
    for n in (300, 0, 2):
        x * 2  # is in none of them
        with profile(activities=BOTH) as p:
            for _ in range(n):
                x + 1
        check_sums(p.events())
        kernels = on_device(p.events())
        assert len(kernels) == n, f"{n} calls\n{shown(p.events())}"
        assert all(e.launched_by.name == "aten::add" for e in kernels), shown(p.events())


def test_schedules():
    x = F.randn(1 << 16, device="cuda")
    x + 1
    counts = []

    def ready(p):
        check_sums(p.events())
        steps = on_host(p.events(), "ProfilerStep")
        counts.append([(e.trace_name, sum(len(c.kernels) for c in e.cpu_children)) for e in steps])

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(activities=BOTH, schedule=plan, on_trace_ready=ready) as p:
        for step in range(9):
            for _ in range(step + 1):
                x + 1
            p.step()
    assert counts == [
        [("ProfilerStep#2", 3), ("ProfilerStep#3", 4)],
        [("ProfilerStep#6", 7), ("ProfilerStep#7", 8)],
    ], shown(p.events())


def test_memory_of_the_device():
    p = profiled(lambda: F.zeros(1 << 22, device="cuda"), profile_memory=True)
    zeros = only(p.events(), "aten::zeros")
    assert zeros.device_memory_usage >= 1 << 24, shown(p.events())
    assert "CUDA Mem" in p.key_averages().table()


def test_no_call_of_many_is_lost_or_recorded_after_the_end():
    x = F.randn(16, device="cuda")
    count = 2000

    def calls():
        for _ in range(count):
            x + 1
        F.cuda.synchronize()

    with profile(activities=BOTH) as p:
        calls()
    calls()
    assert len(on_device(p.events())) == count
    assert sum(e.name == "cuLaunchKernel" for e in p.events()) == count
