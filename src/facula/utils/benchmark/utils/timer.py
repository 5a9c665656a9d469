"""Timer: measures statements."""

from __future__ import annotations

import enum
import textwrap
import time
import timeit
from collections.abc import Callable
from typing import Any

import facula
from facula.utils.benchmark.utils import common

__all__ = ["Language", "Timer", "timer"]


class Language(enum.Enum):
    """In which language statements are."""

    PYTHON = 0


def timer() -> float:
    """The time in seconds, after all devices have finished what they were told to do."""
    if facula.cuda.is_available() and hasattr(facula.cuda, "synchronize"):
        facula.cuda.synchronize()
    return time.perf_counter()


class Timer:
    """Measures how long a statement takes.

    Args:
        stmt: the statement, or several lines.
        setup: what runs before, unmeasured.
        global_setup: accepted for PyTorch's sake; only for C++ there.
        timer: a function that returns the time.
        globals: the names that the statement sees.
        label: a name for the table of a comparison.
        sub_label: a name for the row.
        description: a name for the column.
        env: where it is measured.
        num_threads: how many threads Facula uses meanwhile.
        language: only Python.

    Example::

        >>> t = facula.utils.benchmark.Timer("x + 1", "x = facula.ones(3)")
        >>> t.timeit(100).median > 0
        True
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`: statements are Python")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`.")
        stmt = textwrap.dedent(stmt).strip("\n").rstrip()
        setup = textwrap.dedent(setup).strip("\n").rstrip()
        names = dict(globals or {})
        names.setdefault("facula", facula)
        self._globals = names
        self._timer = self._timer_cls(stmt, setup, timer=timer, globals=names)
        self._task_spec = common.TaskSpec(
            stmt, setup, "", label, sub_label, description, env, num_threads
        )

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1_000_000) -> common.Measurement:
        """Runs the statement ``number`` times, after a hundredth as many to warm up.

        Example::

            >>> facula.utils.benchmark.Timer("1 + 1").timeit(1000).number_per_run
            1000
        """
        with common.set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return common.Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not there: use ``blocked_autorange``."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], None] | None = None) -> None:
        """Not there: use ``blocked_autorange``."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """How many runs make an interval that the clock's own cost does not disturb."""
        overhead = sorted(self._time(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._time(number)
            relative = overhead / taken
            if relative <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time or number >= 1 << 30:
                return number
            number *= 10

    def blocked_autorange(
        self,
        callback: Callable[[int, float], None] | None = None,
        min_run_time: float = 0.2,
    ) -> common.Measurement:
        """Runs the statement in blocks until at least ``min_run_time`` seconds are measured.

        Args:
            callback: called with the number of runs and the time of each block.
            min_run_time: seconds in all.

        Example::

            >>> timer = facula.utils.benchmark.Timer("sum(range(100))")
            >>> m = timer.blocked_autorange(min_run_time=0.01)
            >>> m.median > 0
            True
        """
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._measure(number, min_run_time, min_run_time, lambda m: True, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], None] | None = None,
    ) -> common.Measurement:
        """Runs the statement in blocks until the times vary by less than ``threshold`` of their
        median, for ``max_run_time`` seconds at most."""
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)

            def enough(m: common.Measurement) -> bool:
                return len(m.raw_times) >= 4 and m.meets_confidence(threshold)

            return self._measure(number, min_run_time, max_run_time, enough, callback)

    def _measure(
        self,
        number: int,
        min_run_time: float,
        max_run_time: float,
        enough: Callable[[common.Measurement], bool],
        callback: Callable[[int, float], None] | None,
    ) -> common.Measurement:
        measured = common.Measurement(number, [], self._task_spec)
        total = 0.0
        while True:
            taken = self._time(number)
            measured.raw_times.append(taken)
            total += taken
            if callback is not None:
                callback(number, taken)
            if total >= max_run_time or (total >= min_run_time and enough(measured)):
                return measured
