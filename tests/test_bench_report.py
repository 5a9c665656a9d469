"""The tables of bench/report.py, without measuring anything."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "bench" / "report.py"
TIMES = {"torch": {"a": 4e-6, "b": 2e-3}, "facula": {"a": 1e-6, "b": 2e-3}}


@pytest.fixture(scope="module")
def report():
    sys.path.insert(0, str(TOOL.parent))  # as Python does for a program
    spec = importlib.util.spec_from_file_location("bench_report", TOOL)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(TOOL.parent))
    return module


def test_every_group_is_a_program(report):
    for group in report.GROUPS:
        assert (TOOL.parent / f"{group}.py").exists()


def test_summary(report):
    assert report.summary(TIMES) == pytest.approx({"geometric mean": 2.0, "lowest": 1.0})
    assert report.summary({"facula": TIMES["facula"]}) == {}


def test_tables(report):
    assert report.table(TIMES, markdown=True, memory=False).splitlines() == [
        "|  | torch | facula | ratio |",
        "| --- | ---: | ---: | ---: |",
        "| a | 4 us | 1 us | 4.00 |",
        "| b | 2 ms | 2 ms | 1.00 |",
    ]
    alone = report.table({"facula": TIMES["facula"]}, markdown=False, memory=False)
    assert alone.splitlines()[1].split() == ["a", "1", "us"]
    # Work that only one package can do has no ratio.
    assert report.table({"torch": {}, "facula": {"a": 1.0}}, True, False).endswith(
        "| - | 1 s | - |"
    )


def test_sizes_are_whole_rows_of_softmax(report):
    found = report.sizes(10**8)
    assert found[0] == 10**4 and found[-1] == 10**8
    assert all(n % report.ROW == 0 for n in found)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the figure is Linux's")
def test_peak_memory_is_not_that_of_the_process_that_started_this_one():
    held = bytearray(300_000_000)
    program = "import curves; print(curves.peak_memory())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=TOOL.parent, capture_output=True, text=True, check=True
    )
    assert 0 < int(done.stdout) * 1024 < len(held)


def test_each_piece_of_work_is_timed_in_turns():
    """Ratios of processes that run one after the other would be those of the machine's moods."""
    program = """
        import sys
        sys.path.insert(0, %r)
        import harness
        names = []
        def turn(self, name):
            names.append((self.package, name))
            return float(len(names))
        def start(self, script, package, seconds):
            self.package, self.names = package, ["x", "y", "z"]
        harness.Child.__init__, harness.Child.turn = start, turn
        harness.Child.close = lambda self: None
        best = harness.take_turns("", ["a", "b"], 2, 0.1, ["x", "z"])
        assert names == [(p, n) for n in ("x", "z") for _ in range(5) for p in "ab"] * 2, names
        assert best == {"a": {"x": 1.0, "z": 11.0}, "b": {"x": 2.0, "z": 12.0}}, best
    """
    words = [sys.executable, "-c", textwrap.dedent(program) % str(TOOL.parent)]
    subprocess.run(words, check=True)
