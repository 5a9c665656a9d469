"""Measurements: times of a statement, and what is known about it."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy

import facula

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9  # two ticks of most clocks
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25
_FIELDS = ("stmt", "setup", "global_setup", "label", "sub_label", "description", "env")
_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"),
          "s": (1.0, "second")}  # fmt: skip


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement when it is short."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n" + textwrap.indent(
            self.stmt, "  "
        )

    def setup_str(self) -> str:
        """The setup as it is shown."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return "setup:\n" + textwrap.indent(self.setup, "  ")
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, one line for each."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(p for p in parts if p)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one task.

    Args:
        number_per_run: how often the statement ran in each measured interval.
        raw_times: the intervals in seconds.
        task_spec: what was measured.
        metadata: anything to go along.

    Example::

        >>> spec = facula.utils.benchmark.TaskSpec("pass", "pass")
        >>> facula.utils.benchmark.Measurement(10, [1., 2., 6.], spec).median
        0.2
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """Seconds of one run of the statement, for each interval."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, q: float) -> float:
        if not self.raw_times:
            raise ValueError("the measurement has no times")
        return float(numpy.quantile(self.times, q))

    @property
    def median(self) -> float:
        """The middle of the times."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The average of the times."""
        if not self.raw_times:
            raise ValueError("the measurement has no times")
        return float(numpy.mean(self.times))

    @property
    def iqr(self) -> float:
        """Between the quarters: how far apart the middle half of the times is."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, from how much the middle half of the times
        varies."""
        n = len(self.raw_times)
        middle = sorted(self.times)[n // 4 : -(-3 * n // 4)]
        spread = float(numpy.std(middle)) / math.sqrt(len(middle))
        interval = max(1.645 * spread, _MIN_CONFIDENCE_INTERVAL)
        relative = -math.log10(interval / self.median) if self.median > 0 else 0
        return min(max(math.floor(relative), 1), _MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary too much to be trusted."""
        return self.median > 0 and self.iqr / self.median > _IQR_WARN_THRESHOLD

    def meets_confidence(self, threshold: float = _IQR_WARN_THRESHOLD) -> bool:
        """Whether the times vary less than ``threshold`` of the median."""
        return self.iqr / self.median < threshold if self.median > 0 else True

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        spec = self.task_spec
        return spec.sub_label or spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name in (*_FIELDS, "num_threads"):
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        lines = [f"{object.__repr__(self)}", self.task_spec.summarize()]
        n = len(self.raw_times)
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}")
        if n > 3:  # fewer have no quarters to speak of
            low, high = (self._quantile(q) / scale for q in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = self.task_spec.num_threads
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement' if n > 1 else ''}, {threads} thread{'s' if threads > 1 else ''}"
        )
        if n > 1 and self.has_warnings:
            percent = 100 * self.iqr / self.median
            serious = (
                "This suggests significant environmental influence."
                if (percent > 100 * _IQR_GROSS_WARN_THRESHOLD)
                else "This could indicate system fluctuation."
            )
            lines.append(
                f"  WARNING: Interquartile range is {percent:.1f}% of the median measurement.\n"
                f"           {serious}"
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task joined."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        merged = []
        for spec, group in groups.items():
            times = [t for m in group for t in m.times]
            merged.append(Measurement(1, times, spec))
        return merged


def select_unit(t: float) -> tuple[str, float]:
    """The unit that suits a time in seconds, and its length.

    Example::

        >>> facula.utils.benchmark.select_unit(0.0025)
        ('ms', 0.001)
    """
    for name in ("s", "ms", "us"):
        if t >= _UNITS[name][0]:
            return name, _UNITS[name][0]
    return "ns", 1e-9


def unit_to_english(u: str) -> str:
    """The name of a unit."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` with ``n`` digits that count.

    Example::

        >>> facula.utils.benchmark.trim_sigfig(1.23456, 3)
        1.23
    """
    if x == 0 or not math.isfinite(x):
        return float(x)
    magnitude = math.floor(math.log10(abs(x))) + 1
    return float(round(x, n - magnitude))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they first come."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Runs a block with ``n`` threads.

    Example::

        >>> with facula.utils.benchmark.set_torch_threads(1):
        ...     facula.get_num_threads()
        1
    """
    before = facula.get_num_threads()
    facula.set_num_threads(n)
    try:
        yield
    finally:
        facula.set_num_threads(before)
