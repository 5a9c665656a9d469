"""What devices did, in profiles, on a driver and a CUPTI that are none (fake_cuda.py): records,
whom they are given to, tables and traces."""

import textwrap

import pytest
from fake_cuda import needs_compiler

pytestmark = needs_compiler

HEAD = """
import json, warnings
from pathlib import Path
from facula.profiler import ProfilerActivity, profile, record_function, schedule
from fake_cuda_library import *
warnings.simplefilter("error")
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
CUDA = F.autograd.DeviceType.CUDA
def on_device(events):
    return [e for e in events if e.device_type is CUDA and not e.is_user_annotation]
def close(a, b):
    return abs(a - b) < 1e-6
def named(events, name):
    found = [e for e in events if e.key == name and e.device_type is not CUDA]
    assert len(found) == 1, [e.key for e in events]
    return found[0]
"""


@pytest.fixture
def run(run_on_fake_cuda):
    def run(program: str, **options) -> str:
        return run_on_fake_cuda(HEAD + textwrap.dedent(program), **options)

    return run


def test_kernels_belong_to_the_innermost_operator(run):
    run("""
        x = F.ones(4, 4, device="cuda")
        with F.autograd.profiler.profile(use_device="cuda") as p:
            with record_function("block"):
                y = (x + 1).exp()
                z = F.ones(3).cuda()
        events = p.function_events
        add, exp = named(events, "aten::add"), named(events, "aten::exp")
        for e in (add, exp):
            ((name, device, duration),) = e.kernels
            assert name == "work(float*, int)" and device == 0 and close(duration, 2.0), e.kernels
            assert close(e.device_time_total, 2.0) and close(e.self_cuda_time_total, 2.0)
            assert e.device_time_str == e.self_device_time_total_str == "2.000us"
        block = named(events, "block")
        assert block.kernels == [] and block.self_device_time_total == 0
        done = on_device(events)
        assert close(block.device_time_total, 5.012)
        assert [e.name for e in done] == [
            "work(float*, int)", "work(float*, int)", "Memcpy HtoD (Pageable -> Device)"
        ]
        for e in done:
            assert (e.device_index, e.device_resource_id, e.activity_type) == (
                0, 7, "gpu_memcpy" if "Mem" in e.name else "kernel")
            assert e.cpu_time_total == e.self_cpu_time_total == 0 and e.use_device == "cuda"
            assert e.launched_by.time_range.start < e.time_range.start
        assert close(p.self_device_time_total, 5.012)
        call = named(events, "cudaMemcpyAsync")
        assert call.cpu_parent.kernels[0].name.startswith("Memcpy") and call.device_time_total == 0
        assert call.activity_type == "cuda_runtime" and call.thread == call.cpu_parent.thread
        # What the run time asks of the driver is part of its call; other calls do nothing.
        wait = named(events, "cudaStreamSynchronize")
        assert call.cpu_parent.cpu_children[-2:] == [call, wait], call.cpu_parent.cpu_children
        assert wait.cpu_children == [named(events, "cuStreamSynchronize")]
        assert close(wait.self_cpu_time_total, 0.2) and wait.kernels == []
        assert not [e for e in events if e.name in ("cuMemcpyHtoDAsync", "cudaGetLastError")]
        assert all(e.self_cpu_time_total >= 0 for e in events)
    """)


def test_times_are_on_the_clock_of_the_host(run):
    run("""
        x = F.ones(4, device="cuda")
        x + 1
        with profile(activities=BOTH) as p:
            for _ in range(50):
                x + 1
        adds = [e for e in p.events() if e.key == "aten::add"]
        assert len(adds) == 50
        for e, kernel in zip(adds, on_device(p.events()), strict=True):
            # the fake device begins 1 us after the call, when it has nothing else to do
            late = kernel.time_range.start - e.time_range.start
            assert 0 < late < 500_000, (late, e, kernel)
            inner = [c for c in e.cpu_children if c.name == "cuLaunchKernel"]
            assert len(inner) == 1 and inner[0].cpu_parent is e
            assert e.time_range.start <= inner[0].time_range.start
            assert inner[0].time_range.end <= e.time_range.end
            assert e.self_cpu_time_total >= 0
    """)


def test_backward_passes_and_threads(run):
    run("""
        import threading
        x = F.ones(4, device="cuda", requires_grad=True)
        def work():
            with record_function("on a thread"):
                x * 3
        with profile(activities=BOTH) as p:
            (x.exp() * 2).sum().backward()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        events = p.events()
        node = named(events, "autograd::engine::evaluate_function: ExpBackward0")
        assert close(node.device_time_total, 2.0) and node.kernels == []
        assert [c.name for c in node.cpu_children if c.kernels] == ["aten::mul"]
        assert close(named(events, "on a thread").device_time_total, 2.0)
        assert all(e.launched_by is not None for e in on_device(events))
        assert sum(len(e.kernels) for e in events) == len(on_device(events))
    """)


def test_averages_and_tables(run):
    run("""
        x = F.ones(4, device="cuda")
        with profile(activities=BOTH, record_shapes=True) as p:
            for _ in range(3):
                x + 1
            x * 2
            with record_function("block"):
                x.exp()
        averages = p.key_averages()
        rows = {(e.key, e.device_type is CUDA, e.is_user_annotation): e for e in averages}
        add, kernel = rows["aten::add", False, False], rows["work(float*, int)", True, False]
        assert add.count == 3 and close(add.device_time_total, 6.0)
        assert close(add.device_time, 2.0) and close(add.self_cuda_time_total, 6.0)
        assert kernel.count == 5 and close(kernel.device_time_total, 10.0)
        assert kernel.cpu_time_total == 0
        assert close(rows["block", True, True].device_time_total, 2.0)  # on the device
        assert close(rows["block", False, True].device_time_total, 2.0)
        assert close(averages.self_device_time_total, 10.0)
        for key in ("cuda_time_total", "self_cuda_time_total", "device_time_total",
                    "self_device_time_total"):
            lines = averages.table(sort_by=key, row_limit=2).splitlines()
            assert lines[3].split()[0] == "work(float*,", lines
            assert lines[4].split()[0] == "aten::add", lines
            assert lines[-1] == "Self CUDA time total: 10.000us", lines
            assert lines[-2].startswith("Self CPU time total: ")
        for name in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"):
            assert name in lines[1]
        assert "60.00%" in lines[4]
        shapes = p.key_averages(group_by_input_shape=True)
        assert next(e for e in shapes if e.key == "aten::add").input_shapes[0] == [4]
        assert "cuda_time=2.000us" in repr(p.events()[0]), repr(p.events()[0])
    """)


def test_traces_have_rows_for_streams_and_arrows(run, tmp_path):
    run(f"""
        path = {str(tmp_path / "trace.json")!r}
        x = F.ones(4, device="cuda")
        side = cuda.Stream()
        with profile(activities=BOTH) as p:
            x + 1
            with record_function("block"), cuda.stream(side):
                x * 2
            x.copy_(F.ones(4))
            F._C._cuda_synchronize(0)
        p.export_chrome_trace(path)
        trace = json.loads(Path(path).read_text())
        assert trace["deviceProperties"][0]["id"] == 0 and trace["deviceProperties"][0]["warpSize"]
        events = trace["traceEvents"]
        kernels = [e for e in events if e.get("cat") == "kernel"]
        assert [e["name"] for e in kernels] == ["work(float*, int)"] * 2
        assert [(e["pid"], e["tid"]) for e in kernels] == [(0, 7), (0, 8)]
        args = kernels[0]["args"]
        assert args["device"] == 0 and args["stream"] == 7 and args["context"] == 1
        assert args["grid"] == [2, 3, 4] and args["block"] == [32, 16, 8]
        assert args["shared memory"] == 1536 and args["registers per thread"] == 40
        (copy,) = [e for e in events if e.get("cat") == "gpu_memcpy"]
        assert copy["args"]["bytes"] == 16 and close(copy["dur"], 1.016)
        (block,) = [e for e in events if e.get("cat") == "gpu_user_annotation"]
        assert (block["name"], block["tid"], block["ts"]) == ("block", 8, kernels[1]["ts"])
        calls = {{e["args"]["correlation"]: e for e in events
                 if e.get("cat") in ("cuda_driver", "cuda_runtime")
                 and "Synchronize" not in e["name"]}}
        for e in [*kernels, copy]:
            number = e["args"]["correlation"]
            start, end = [a for a in events if a.get("cat") == "ac2g" and a["id"] == number]
            assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
            assert all(end[key] == e[key] for key in ("pid", "tid", "ts")), (end, e)
            call = calls[number]
            assert all(start[key] == call[key] for key in ("pid", "tid", "ts")), (start, call)
            asker = [a for a in events if a.get("cat") == "cpu_op"
                     and a["args"]["External id"] == e["args"]["External id"]]
            assert len(asker) == 1 and asker[0]["ts"] <= call["ts"], (asker, call)
        rows = [e for e in events if e["name"] == "thread_name"]
        assert [(e["pid"], e["tid"], e["args"]["name"]) for e in rows] == [
            (0, 7, "stream 7"), (0, 8, "stream 8")
        ]
        p.events().export_chrome_trace(path)
        assert len(json.loads(Path(path).read_text())) == len(events)
    """)


def test_graphs_belong_to_what_surrounds_their_launch(run):
    run("""
        x, g = F.ones(4, device="cuda"), cuda.CUDAGraph()
        with cuda.graph(g):
            y = x + 1
        with F.autograd.profiler.profile(use_device="cuda") as p:
            with record_function("replay"):
                g.replay()
            g.replay()
        assert [k.name for k in named(p.function_events, "replay").kernels] == ["replayed"]
        assert [e.launched_by is None for e in on_device(p.function_events)] == [False, True]
    """)


def test_profiles_follow_each_other(run):
    run(
        """
        x = F.ones(4, device="cuda")
        counts = []
        for n in (200, 0, 3):
            x + 1  # not in any of them
            with F.autograd.profiler.profile(use_device="cuda") as p:
                for _ in range(n):
                    x + 1
            counts.append(len(on_device(p.function_events)))
            assert all(e.launched_by.name == "aten::add" for e in on_device(p.function_events))
        assert counts == [200, 0, 3]
        with F.autograd.profiler.profile() as p:
            x + 1
        assert on_device(p.function_events) == [] and "CUDA" not in p.table()
    """,
        FAKE_CUPTI_BUFFER="1000",
    )


def test_schedules(run):
    run("""
        x = F.ones(4, device="cuda")
        traces = []
        def ready(p):
            kernels = on_device(p.events())
            steps = [e for e in p.events() if e.name.startswith("ProfilerStep") and e.use_device]
            times = [(e.trace_name, round(e.device_time_total, 3)) for e in steps
                     if e.device_type is not CUDA]
            traces.append((len(kernels), times))
        with profile(activities=BOTH, on_trace_ready=ready,
                     schedule=schedule(wait=1, warmup=1, active=2, repeat=2)) as p:
            for step in range(9):
                for _ in range(step + 1):
                    x + 1
                p.step()
        assert traces == [
            (7, [("ProfilerStep#2", 6.0), ("ProfilerStep#3", 8.0)]),
            (15, [("ProfilerStep#6", 14.0), ("ProfilerStep#7", 16.0)]),
        ], traces
        with profile(activities=BOTH, schedule=schedule(wait=0, warmup=5, active=1)) as p:
            x + 1
        with profile(activities=BOTH) as p:
            x + 1
        assert len(on_device(p.events())) == 1
    """)


def test_what_devices_did_alone(run):
    run("""
        x = F.ones(4, device="cuda")
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            x + 1
        (kernel,) = on_device(p.events())
        assert kernel.name == "work(float*, int)" and kernel.launched_by is None
        assert not any(e.name.startswith("aten") for e in p.events())
        assert ProfilerActivity.CUDA in F.profiler.supported_activities()
        with profile() as p:
            x + 1
        assert len(on_device(p.events())) == 1
    """)


def test_memory_of_devices(run):
    run("""
        with profile(activities=BOTH, profile_memory=True) as p:
            x = F.ones(1 << 20, device="cuda")
            del x
            x = F.ones(4)
        first, second = [e for e in p.events() if e.key == "aten::ones"]
        assert first.device_memory_usage == first.cuda_memory_usage >= 1 << 22, first
        assert second.device_memory_usage == 0 and first.self_device_memory_usage > 0
        table = p.key_averages().table()
        assert "CUDA Mem" in table and "Self CUDA Mem" in table and "4.00 MB" in table, table
    """)


def test_devices_are_told_apart(run):
    run(
        """
        tensors = [F.ones(4, device=d) for d in (0, 1)]
        with profile(activities=BOTH) as p:
            for x in tensors:
                x + 1
        assert [e.device_index for e in on_device(p.events())] == [0, 1]
        assert [e.kernels[0].device for e in p.events() if e.key == "aten::add"] == [0, 1]
    """,
        FAKE_CUDA_DEVICES="2",
    )


@pytest.mark.parametrize(
    "place", ["extras/CUPTI/lib64", "nvidia/cu13/lib", "nvidia/cuda_cupti/lib"]
)
def test_cupti_is_found_in_installations_and_wheels(run, fake_cuda_folder, tmp_path, place):
    (tmp_path / place).mkdir(parents=True)
    for name in ("libcuda.so.1", "libnvrtc.so.12"):
        (tmp_path / name).symlink_to(fake_cuda_folder / name)
    version = 12 if "cuda_cupti" in place else 13
    (tmp_path / place / f"libcupti.so.{version}").symlink_to(fake_cuda_folder / "libcupti.so.13")
    run(
        """
        x = F.ones(4, device="cuda")
        with profile(activities=BOTH) as p:
            x + 1
        assert [e.name for e in on_device(p.events())] == ["work(float*, int)"]
    """,
        FACULA_CUDA_PATH=str(tmp_path),
    )


WARNS = """
    def profiled():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with F.autograd.profiler.profile(use_device="cuda") as p:
                F.ones(3) + 1
        assert "aten::add" in [e.name for e in p.function_events]
        assert on_device(p.function_events) == []
        assert p.function_events[0].device_time_total == 0
        return [str(w.message) for w in said]
    texts = profiled()
    assert len(texts) == 1 and "Only times of the host" in texts[0], texts
    assert profiled() == []  # it is said once
"""


def test_without_cupti_only_the_host_is_recorded(run):
    # No CUPTI is old enough for such a driver, whatever is installed.
    run(
        textwrap.dedent(WARNS)
        + textwrap.dedent("""
            assert "Could not find CUPTI" in texts[0], texts
            assert "pip install facula[cuda]" in texts[0], texts
            assert F.profiler.supported_activities() == {ProfilerActivity.CPU}
        """),
        FAKE_CUDA_VERSION="11000",
    )


def test_a_cupti_that_refuses_is_named(run):
    run(
        textwrap.dedent(WARNS) + "assert 'INSUFFICIENT_PRIVILEGES' in texts[0], texts",
        FAKE_CUPTI_FAILS="1",
    )


def test_records_that_found_no_room_are_mentioned(run):
    run(
        """
        x = F.ones(4, device="cuda")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with F.autograd.profiler.profile(use_device="cuda") as p:
                x + 1
        assert ["no room for 5 records" in str(w.message) for w in said] == [True], said
    """,
        FAKE_CUPTI_DROPS="5",
    )
