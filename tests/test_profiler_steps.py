"""facula.profiler: schedules, steps, traces."""

import gzip
import json

import pytest

import facula
from facula import profiler
from facula.profiler import ProfilerAction, profile, record_function, schedule


def work():
    with record_function("my part"):
        return (facula.ones(4, 4) @ facula.ones(4, 4)).exp()


def test_a_block_is_recorded_whole():
    with profile(record_shapes=True, profile_memory=True) as p:
        work()
    names = {e.key: e for e in p.key_averages()}
    assert names["aten::exp"].count == 1 and names["my part"].cpu_time_total > 0
    assert "aten::exp" in p.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total")
    assert p.total_average().count == len(p.events())


def test_schedules_go_in_cycles():
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    n, w, r, s = ProfilerAction
    assert [plan(i) for i in range(10)] == [n, n, w, r, s, n, w, r, s, n]
    endless = schedule(wait=0, warmup=1, active=1)
    assert [endless(i) for i in range(4)] == [w, s, w, s]
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match="schedule"):
        schedule(wait=0, warmup=1, active=0)


@pytest.mark.parametrize("accumulated", [False, True])
def test_each_cycle_gives_a_trace_of_its_steps(accumulated):
    traces = []

    def ready(p):
        traces.append([e.trace_name for e in p.events() if e.name == "ProfilerStep*"])

    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=ready,
        acc_events=accumulated,
    ) as p:
        for _ in range(10):
            work()
            p.step()
    first, second = ["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]
    assert traces == [first, first + second if accumulated else second]
    assert not facula._C._profiling()


def test_leaving_in_mid_cycle_gives_what_there_is():
    with profile(schedule=schedule(wait=0, warmup=1, active=5)) as p:
        for _ in range(3):
            work()
            p.step()
    assert [e.trace_name for e in p.events() if "Step" in e.name] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
        "ProfilerStep#3",
    ]


def test_steps_are_one_entry_of_the_averages_and_told_apart_in_the_trace(tmp_path):
    with profile(schedule=schedule(wait=0, warmup=1, active=3)) as p:
        for _ in range(4):
            work()
            p.step()
    assert [(e.key, e.count) for e in p.key_averages() if "Step" in e.key] == [("ProfilerStep*", 3)]
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    text = (tmp_path / "trace.json").read_text()
    assert "ProfilerStep#2" in text and "ProfilerStep*" not in text


@pytest.mark.parametrize("packed", [False, True])
def test_traces_are_what_browsers_read(tmp_path, packed):
    handler = profiler.tensorboard_trace_handler(str(tmp_path), "me", use_gzip=packed)
    with profile(on_trace_ready=handler) as p:
        p.add_metadata("kind", "test")
        work()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".gz" if packed else ".json")
    with gzip.open(path, "rt") if packed else open(path) as file:
        trace = json.load(file)
    assert trace["kind"] == "test"
    names = [e["name"] for e in trace["traceEvents"]]
    assert "aten::exp" in names and all(e["dur"] >= 0 for e in trace["traceEvents"])


def test_what_is_not_recorded_is_said():
    with pytest.warns(UserWarning, match="with_stack"):
        profile(with_stack=True)
    activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
    if not facula.cuda.is_available():
        assert profiler.supported_activities() == {profiler.ProfilerActivity.CPU}
        with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
            assert profile(activities=activities).use_device is None
    with pytest.warns(FutureWarning, match="activities"):
        assert profile(activities=activities, use_cuda=False).use_device is None
    with pytest.raises(AssertionError, match="no trace"):
        profile().events()


def test_devices_that_are_not_here_are_left_out(tmp_path):
    both = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.XPU]
    with pytest.warns(UserWarning, match="XPU is not available"), profile(activities=both) as p:
        facula.ones(2) + 1
    assert "aten::add" in [e.key for e in p.key_averages()]
    p.export_chrome_trace(str(tmp_path / "trace.json"), use_python_export=True)
    p.export_stacks(str(tmp_path / "stacks.txt"))
    assert (tmp_path / "stacks.txt").read_text() == ""
    assert "aten::add" in (tmp_path / "trace.json").read_text()
