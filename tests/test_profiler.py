"""The recorder of operator calls: names, nesting, shapes, memory, tables, traces."""

import json
import threading
import warnings

import pytest
from package_under_test import IS_FACULA, F

profiler = F.autograd.profiler
EventList, FunctionEvent = profiler.EventList, profiler.FunctionEvent


def names(events):
    return [e.name for e in events]


def test_operators_are_recorded_in_order_with_their_parts():
    a, b = F.ones(4, 4), F.ones(4, 4)
    with profiler.profile() as p:
        a + b
        a.add_(b)
        F.outer(a[0], b[0])
    top = [e for e in p.function_events if e.cpu_parent is None]
    assert names(top) == ["aten::add", "aten::add_", "aten::select", "aten::select", "aten::outer"]
    outer = top[-1]
    assert outer.cpu_children and all(c.cpu_parent is outer for c in outer.cpu_children)
    for event in p.function_events:
        assert 0 <= event.self_cpu_time_total <= event.cpu_time_total
        assert event.time_range.start <= event.time_range.end


def test_nothing_is_recorded_outside_of_the_block_or_when_disabled():
    with profiler.profile() as p:
        pass
    F.ones(3)
    assert p.function_events == []
    with profiler.profile(enabled=False) as p:
        F.ones(3)
    with pytest.raises(RuntimeError, match="finish"):
        p.table()


def test_blocks_have_names():
    @profiler.record_function("decorated")
    def work(x):
        return x * 2

    x = F.ones(2)
    with profiler.profile() as p, profiler.record_function("block", "details"):
        work(x)
    assert names(p.function_events) == ["block", "decorated", "aten::mul"]
    inner = p.function_events[2]
    assert names([inner.cpu_parent, inner.cpu_parent.cpu_parent]) == ["decorated", "block"]
    with profiler.record_function("outside of any profile"):
        assert work(x).tolist() == [2, 2]


def test_backward_passes_are_recorded_by_node():
    x = F.ones(3, requires_grad=True)
    y = (x * 2).sum()
    with profiler.profile() as p:
        y.backward()
    found = names(p.function_events)
    assert "autograd::engine::evaluate_function: MulBackward0" in found
    assert "autograd::engine::evaluate_function: SumBackward0" in found


def test_shapes_and_memory():
    x = F.ones(2, 3)
    with profiler.profile(record_shapes=True, profile_memory=True) as p:
        kept = x + F.ones(3)
    add = p.function_events[-1]
    assert add.name == "aten::add" and add.input_shapes[:2] == [[2, 3], [3]]
    assert add.cpu_memory_usage >= kept.nbytes
    assert "CPU Mem" in p.table() and "Input Shapes" in p.table()


def test_errors_end_their_events():
    with profiler.profile() as p, pytest.raises(RuntimeError):
        F.ones(2) + F.ones(3)
    assert names(p.function_events)[-1] == "aten::add"


def test_averages_and_tables():
    x = F.ones(2)
    with profiler.profile() as p:
        for _ in range(3):
            x + 1
        x * 2
    averages = p.key_averages()
    counts = {e.key: e.count for e in averages}
    assert counts == {"aten::add": 3, "aten::mul": 1}
    total = p.total_average()
    assert total.count == 4
    assert total.self_cpu_time_total == pytest.approx(p.self_cpu_time_total)
    lines = averages.table(sort_by="count", header="what ran").splitlines()
    assert lines[0] == "what ran"
    assert lines[2].split()[0] == "Name" and "# of Calls" in lines[2]
    assert lines[4].split()[0] == "aten::add" and lines[4].split()[-1] == "3"
    assert len(averages.table(row_limit=1).splitlines()) == 6
    assert str(p) == p.table()
    assert "unfinished" in repr(profiler.profile())


def test_averages_by_shape():
    with profiler.profile(record_shapes=True) as p:
        F.ones(2) + 1
        F.ones(3) + 1
    grouped = p.key_averages(group_by_input_shape=True)
    assert sorted(e.input_shapes[0] for e in grouped if e.key == "aten::add") == [[2], [3]]


def test_traces_for_browsers(tmp_path):
    with profiler.profile() as p:
        F.ones(2) + 1
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    events = json.loads(path.read_text())
    assert [e["name"] for e in events if e["name"] == "aten::add"] == ["aten::add"]
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in events)


def test_threads_are_told_apart():
    def work():
        F.ones(2) * 3

    with profiler.profile() as p:
        F.ones(2) + 1
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    found = {e.name: e.thread for e in p.function_events}
    assert found["aten::add"] != found["aten::mul"]


def test_profilers_do_not_nest():
    with profiler.profile() as p:
        with pytest.raises(RuntimeError, match="nested"), profiler.profile():
            pass
        F.ones(2)
    assert "aten::ones" in names(p.function_events)


def test_what_is_not_recorded_is_said_and_is_zero_in_every_event():
    for options in ({"use_device": "toaster"}, {"with_stack": True}, {"with_modules": True}):
        with pytest.warns(UserWarning, match="not"):
            profiler.profile(**options)
    with pytest.warns(FutureWarning, match="use_device"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # where there is no CUDA
        profiler.profile(use_cuda=True)
    if not F.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
            assert profiler.profile(use_device="cuda").use_device is None
    with profiler.profile() as p:
        F.ones(2) + 1
    for event in (p.function_events[0], p.key_averages()[0]):
        assert event.device_type is F.autograd.DeviceType.CPU
        assert event.device_time_total == event.self_cuda_time_total == event.flops == 0
        assert event.device_memory_usage == 0 and event.device_time_total_str == "0.000us"
        assert len(event.stack) == 0 and not event.is_remote
    rows = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=1).splitlines()
    assert len(rows) == 6  # a rule, names, a rule, one row, a rule, the total


def test_tables_show_times_in_the_unit_that_is_asked_for():
    with profiler.profile() as p:
        F.ones(2) + 1
    last = p.key_averages().table(time_unit="s").splitlines()[-1]
    assert last.startswith("Self CPU time total: 0.0") and last.endswith("s")
    assert not last.endswith(("us", "ms"))
    with pytest.raises(ValueError, match="unit"):
        p.key_averages().table(time_unit="h")


def test_floating_point_operations_are_counted():
    x, y = F.ones(5, 6, requires_grad=True), F.ones(6, 7)
    image, weight = F.ones(2, 3, 8, 8), F.ones(4, 3, 3, 3)
    with profiler.profile(with_flops=True) as p:
        ((x @ y) + 1).mul(2).sum().backward()
        F.nn.functional.conv2d(image, weight)
        F.nn.functional.conv2d(image[0], weight)
        F.nn.functional.linear(y, F.ones(4, 7))
        F.addmm(F.ones(3), F.ones(2, 5), F.ones(5, 3))
        with pytest.raises(RuntimeError):
            F.ones(2) + F.ones(3)
    flops = {e.key: e.flops for e in p.key_averages()}
    assert flops["aten::mm"] == 2 * 5 * 6 * 7 * 2  # and in the backward pass
    assert flops["aten::matmul"] == flops["aten::ones"] == 0
    assert flops["aten::add"] == 35 and flops["aten::mul"] == 2 * 35
    assert flops["aten::conv2d"] == 15552 + 15552 // 2 and flops["aten::convolution"] == 0
    assert flops["aten::linear"] == 2 * 6 * 7 * 4 and flops["aten::addmm"] == 2 * 2 * 5 * 3
    assert p.function_events[0].input_shapes == []  # which were not asked for
    rows = [line.split("  ")[-1].strip() for line in p.key_averages().table().splitlines()]
    assert "Total FLOPs" in rows and "--" in rows and "840.000" in rows
    with profiler.profile(with_flops=True) as p:
        F.ones(1000, 600) + F.ones(600)
        F.ones(3)
    assert "Total KFLOPs" in p.table() and "600.000" in p.table()
    with profiler.profile(with_flops=True) as p:
        F.ones(3)
    assert "FLOPs" not in p.table()


def test_tables_of_events_that_devices_worked_for():
    event = profiler.FunctionEvent(0, "aten::mm", 1, 0.0, 10.0, use_device="cuda")
    inner = profiler.FunctionEvent(1, "aten::fill_", 1, 2.0, 3.0, use_device="cuda")
    event.append_cpu_child(inner)
    inner.set_cpu_parent(event)
    event.append_kernel("gemm", 0, 30.0)
    inner.append_kernel("fill", 0, 10.0)
    kernels = [
        profiler.FunctionEvent(
            2, name, 7, 5.0, 5.0 + time, use_device="cuda", device_type=profiler.DeviceType.CUDA
        )
        for name, time in (("gemm", 30.0), ("fill", 10.0))
    ]
    assert event.device_time_total == event.cuda_time_total == 40
    assert event.self_device_time_total == 30 and event.device_time_str == "40.000us"
    assert kernels[0].cpu_time_total == 0 and kernels[0].device_time_total == 30
    with pytest.raises(AssertionError, match="CPU"):
        kernels[0].append_kernel("gemm", 0, 1.0)
    events = profiler.EventList([event, inner, *kernels], use_device="cuda")
    lines = events.key_averages().table(sort_by="self_cuda_time_total").splitlines()
    assert "  ".join(lines[1].split()[14:]) == (
        "Self  CUDA  Self  CUDA  %  CUDA  total  CUDA  time  avg  #  of  Calls"
    )
    assert [line.split()[0] for line in lines[3:7]] == ["aten::mm", "gemm", "aten::fill_", "fill"]
    assert lines[3].split()[6:] == ["30.000us", "75.00%", "40.000us", "40.000us", "1"]
    assert lines[-2:] == ["Self CPU time total: 10.000us", "Self CUDA time total: 40.000us"]


def test_stacks_of_events_are_written_for_flame_graphs(tmp_path):
    file = tmp_path / "stacks.txt"
    event = FunctionEvent(0, "aten::mm", 1, 0.0, 9.5)
    event.stack = ["inner; part", "outer"]
    events = EventList([event, FunctionEvent(1, "aten::add", 1, 0.0, 5.0)])
    events.export_stacks(file, "self_cpu_time_total")
    assert file.read_text() == "outer;inner__part 9\n"
    events.export_stacks(file, "self_cuda_time_total")  # no device did anything
    assert file.read_text() == ""
    with pytest.raises(ValueError, match="self_cpu_time_total"):
        events.export_stacks(file, "count")


def test_a_profile_has_no_stacks(tmp_path):
    with pytest.warns(UserWarning, match="with_stack"), profiler.profile(with_stack=True) as p:
        F.ones(2) + 1
    p.export_stacks(tmp_path / "stacks.txt")
    assert (tmp_path / "stacks.txt").read_text() == ""
    with profiler.profile() as p:
        F.ones(2) + 1
    with pytest.raises(AssertionError, match="with_stack=True"):
        p.export_stacks(tmp_path / "stacks.txt")


@pytest.mark.parametrize("name", ["emit_nvtx", "emit_itt"])
def test_ranges_for_other_profilers_can_only_be_switched_off(name):
    marks = getattr(profiler, name)
    with marks(enabled=False) as entered:
        assert entered is None
    if IS_FACULA:
        with pytest.raises(RuntimeError, match=name), marks(record_shapes=True):
            pass


def test_tables_are_sorted_by_times_of_any_device():
    with profiler.profile() as p:
        F.ones(2) + 1
    averages = p.key_averages(group_by_overload_name=True)
    for column in ("xpu_time_total", "self_privateuse1_time_total", "cuda_memory_usage"):
        assert "aten::add" in averages.table(sort_by=column)
