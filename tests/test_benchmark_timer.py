"""facula.utils.benchmark: what is measured and shown; no time is compared with another."""

import pytest

import facula
from facula.utils.benchmark import Compare, Measurement, TaskSpec, Timer, trim_sigfig


class Clock:
    """A clock on which every run of the statement takes the time it says."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def timer(clock, seconds, **options):
    return Timer(
        "clock.now += next(seconds)",
        timer=clock,
        globals={"clock": clock, "seconds": iter(seconds)},
        **options,
    )


def endless(value):
    while True:
        yield value


def test_timeit_counts_the_measured_runs_only():
    m = timer(Clock(), endless(0.5)).timeit(10)
    assert m.number_per_run == 10 and m.median == pytest.approx(0.5) and len(m.times) == 1
    assert "500.00 ms" in repr(m) and "1 measurement, 10 runs" in repr(m)


def test_blocked_autorange_measures_long_enough():
    seen = []
    m = timer(Clock(), endless(0.01)).blocked_autorange(
        lambda n, t: seen.append((n, t)), min_run_time=1.0
    )
    assert sum(m.raw_times) >= 1.0 and len(m.raw_times) == len(seen)
    assert m.median == pytest.approx(0.01) and m.iqr == pytest.approx(0) and not m.has_warnings


def test_adaptive_autorange_stops_when_times_agree_or_time_is_up():
    steady = timer(Clock(), endless(0.01)).adaptive_autorange(min_run_time=0.02)
    assert sum(steady.raw_times) < 1

    def jumping():
        while True:
            yield 0.01
            yield 0.05

    restless = timer(Clock(), jumping()).adaptive_autorange(threshold=0.01, max_run_time=2.0)
    assert sum(restless.raw_times) >= 2.0 and restless.has_warnings
    assert "WARNING" in repr(restless)


def test_statements_see_facula_their_globals_and_their_setup():
    m = Timer("y = x.sum() + z", "x = facula.ones(3)", globals={"z": 1}).timeit(3)
    assert m.median > 0
    before = facula.get_num_threads()
    Timer("pass", num_threads=1).timeit(1)
    assert facula.get_num_threads() == before


def test_what_is_not_python_is_refused():
    with pytest.raises(ValueError, match="str"):
        Timer(lambda: None)
    with pytest.raises(ValueError, match="language"):
        Timer("int x = 1;", language="c++")
    with pytest.raises(NotImplementedError):
        Timer("pass").autorange()


def measured(seconds, **spec):
    return Measurement(1, [seconds], TaskSpec("f(x)", "", **spec))


def test_measurements_of_one_task_are_merged():
    a, b = measured(1.0, label="t"), measured(3.0, label="t")
    other = measured(5.0, label="u")
    merged = Measurement.merge([a, other, b])
    assert [m.median for m in merged] == [2.0, 5.0]
    assert a.title == "t" and a.label == "t" and a.num_threads == 1
    with pytest.raises(AttributeError):
        _ = a.nothing


def test_tables_have_a_column_for_each_description_and_a_row_for_each_sub_label():
    results = [
        measured(t * 1e-6, label="sums", sub_label=row, description=column, num_threads=threads)
        for threads in (1, 2)
        for row, scale in (("small", 1), ("large", 100))
        for column, t in (("ours", 1.5 * scale), ("theirs", 4 * scale))
    ]
    text = str(Compare(results))
    lines = text.splitlines()
    assert "sums" in lines[0] and "ours" in lines[1] and "theirs" in lines[1]
    assert lines[2].startswith("1 threads: ---") and lines[5].startswith("2 threads: ---")
    assert lines[3].split() == ["small", "|", "1.5", "|", "4.0"]
    assert lines[4].split() == ["large", "|", "150.0", "|", "400.0"]
    assert "microseconds (us)" in text
    table = Compare(results)
    table.trim_significant_figures()
    table.colorize(rowwise=True)
    table.highlight_warnings()
    assert "\033[92m" in str(table)
    with pytest.raises(ValueError, match="Measurement"):
        Compare([1.0])


def test_significant_figures():
    assert trim_sigfig(123.456, 2) == 120.0 and trim_sigfig(0.001234, 3) == 0.00123
    spec = TaskSpec("f", "")
    assert Measurement(1, [1.0] * 100, spec).significant_figures == 4
    assert Measurement(1, [1.0, 2.0, 3.0, 4.0], spec).significant_figures == 1


def measurement(times, **options):
    return Measurement(1, times, TaskSpec("f()", "pass", **options))


def test_a_measurement_shows_its_median_and_quarters_with_two_digits():
    lines = repr(measurement([1e-3, 2e-3, 3e-3, 1e-2])).splitlines()[1:4]
    assert lines == ["f()", "  Median: 2.50 ms", "  IQR:    3.00 ms (1.75 to 4.75)"]
    lines = repr(measurement([1.0, 5.0], num_threads=2)).splitlines()[1:4]
    assert lines == [
        "f()",
        "  Median: 3.00 s",
        "  2 measurements, 1 runs per measurement, 2 threads",
    ]
    assert measurement([1.0]).env is None


def test_rows_of_one_environment_stand_together_under_its_name():
    results = [
        measurement([1e-5 * (i + 1)] * 4, label="sums", sub_label=name, description="ours", env=env)
        for i, name in enumerate(("small", "large"))
        for env in ("old", "new")
    ]
    results.append(measurement([1e-5, 2e-5, 9e-5, 9e-5], sub_label="noisy", label="sums", env="new",
                               description="ours"))  # fmt: skip
    table = Compare(results)
    table.highlight_warnings()
    lines = str(table).splitlines()
    assert [line.partition("|")[0].rstrip() for line in lines[3:8]] == [
        "  (new)  small",
        "         large",
        "         noisy",
        "  (old)  small",
        "         large",
    ]
    assert "55.0 (! 132%)" in lines[5] and lines[-1].startswith("(! XX%) Measurement has high")


def test_points_stand_below_each_other_and_colours_compare_within_a_section():
    results = [
        measurement([t], label="sums", sub_label=row, description=column, num_threads=threads)
        for row, column, threads, t in (
            ("small", "ours", 1, 2e-6),
            ("large", "ours", 1, 123e-6),
            ("large", "theirs", 1, 150e-6),
            ("small", "ours", 2, 12e-6),
        )
    ]
    assert str(Compare(results)) == (
        "[------------ sums ------------]\n"
        "             |   ours  |  theirs\n"
        "1 threads: ---------------------\n"
        "      small  |    2.0  |        \n"
        "      large  |  123.0  |  150.0 \n"
        "2 threads: ---------------------\n"
        "      small  |   12.0  |        \n\n"
        "Times are in microseconds (us).\n"
    )
    best, worst, end = "\033[92m\033[1m", "\033[31m\033[1m", "\033[0m\033[0m"
    table = Compare(results)
    table.colorize()
    lines = str(table).splitlines()
    assert lines[3] == f"      small  |  {best}  2.0{end}  |        "
    assert lines[4] == f"      large  |  {worst}123.0{end}  |  {best}150.0 {end}"
    assert lines[6] == f"      small  |  {best} 12.0{end}  |        "
    table.colorize(rowwise=True)
    assert str(table).splitlines()[4] == f"      large  |  {best}123.0{end}  |  150.0 "


def test_digits_are_those_of_the_middle_half_of_the_times():
    times = [1.0] * 6 + [9.0] * 2  # the last quarter says nothing
    assert Measurement(1, times, TaskSpec("f", "")).significant_figures == 4
    assert Measurement(1, [1.0, 1.1, 1.2, 1.3], TaskSpec("f", "")).significant_figures == 1
    assert Measurement(1, [1.0, 1.01, 1.02, 1.03], TaskSpec("f", "")).significant_figures == 2
