"""Events that the profiler recorded: lists of them, averages and tables."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class DeviceType(enum.Enum):
    """The kind of device that an event is of."""

    CPU = 0
    CUDA = 1


class Interval:
    """From when to when, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(microseconds: float, unit: str | None = None) -> str:
    """A duration in a unit ("s", "ms", "us"), by default the one that suits it.

    Example::

        >>> facula.autograd.profiler_util.format_time(1500.)
        '1.500ms'
    """
    if unit is None:
        unit = next((u for u, size in _MICROSECONDS.items() if microseconds >= size), "us")
    if unit not in _MICROSECONDS:
        raise ValueError(f"the unit of times is one of s, ms and us, not {unit!r}")
    return f"{microseconds / _MICROSECONDS[unit]:.3f}{unit}"


def format_memory(nbytes: int) -> str:
    """A number of bytes in the unit that suits it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


class _Times:
    """What single events and averages have in common."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    # Only the host is measured, and no more of a call than its name, times, memory and shapes:
    # these are what programs find of events that PyTorch knows no more about.
    device_type = DeviceType.CPU
    use_device: str | None = None
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    device_time_str = device_time_total_str = self_device_time_total_str = "0.000us"
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    cuda_memory_usage = self_cuda_memory_usage = 0
    flops = 0
    scope = 0
    node_id = -1
    stack: tuple[str, ...] = ()
    overload_name = ""
    is_async = is_remote = is_legacy = is_user_annotation = False

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """``cpu_time`` with its unit."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """``cpu_time_total`` with its unit."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """``self_cpu_time_total`` with its unit."""
        return format_time(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One call of an operator, or one block of ``record_function``."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        cpu_memory_usage: int = 0,
        input_shapes: Iterable[tuple[int, ...]] = (),
    ) -> None:
        # Steps are one entry of the averages; the trace tells them apart.
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.id, self.thread = id, thread
        self.time_range = Interval(start_us, end_us)
        self.cpu_memory_usage = cpu_memory_usage
        self.input_shapes = [list(shape) for shape in input_shapes]
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.count = 1
        self.trace_name = name
        self.fwd_thread: int | None = None
        self.sequence_nr = self.device_index = self.device_resource_id = -1
        self.kernels: list[Any] = []

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from its beginning to its end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds outside of the events that it contains."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that stayed allocated, without those of the events that it contains."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that this one contains."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets the event that contains this one."""
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """Events of one name together."""

    def __init__(self) -> None:
        self.key = ""
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.input_shapes: list[list[int]] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Takes another event into account."""
        self.key = self.key or other.key
        self.input_shapes = self.input_shapes or other.input_shapes
        self.count += other.count
        # A call inside of a call of the same name is part of its time already.
        outer = not isinstance(other, FunctionEvent) or not _inside_of_itself(other)
        self.cpu_time_total += other.cpu_time_total if outer else 0
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage if outer else 0
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} count={self.count}>"
        )


def _inside_of_itself(event: FunctionEvent) -> bool:
    outer = event.cpu_parent
    while outer is not None:
        if outer.name == event.name:
            return True
        outer = outer.cpu_parent
    return False


class EventList(list):  # type: ignore[type-arg]
    """Events, or averages of them, that know how to print themselves."""

    def __init__(
        self, events: Iterable[Any] = (), *, profile_memory: bool = False, use_shapes: bool = False
    ) -> None:
        super().__init__(events)
        self.profile_memory = profile_memory
        self.use_shapes = use_shapes

    @classmethod
    def from_log(
        cls, log: list[tuple[Any, ...]], start_ns: int, profile_memory: bool, use_shapes: bool
    ) -> EventList:
        """Builds the tree of events from the log of the core."""
        events = cls(profile_memory=profile_memory, use_shapes=use_shapes)
        open_events: dict[int, list[FunctionEvent]] = {}
        # Sorted by their beginning, the longer first: what contains another one comes before it.
        for name, start, end, thread, memory, shapes in sorted(log, key=lambda e: (e[1], -e[2])):
            event = FunctionEvent(
                len(events),
                name,
                thread,
                (start - start_ns) / 1e3,
                (end - start_ns) / 1e3,
                memory,
                shapes,
            )
            stack = open_events.setdefault(thread, [])
            while stack and stack[-1].time_range.end < event.time_range.end:
                stack.pop()
            if stack:
                event.set_cpu_parent(stack[-1])
                stack[-1].append_cpu_child(event)
            stack.append(event)
            events.append(event)
        return events

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """One entry for each name, or for each name and shapes."""
        groups: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = tuple(map(tuple, event.input_shapes)) if group_by_input_shapes else ()
            groups.setdefault((event.key, shapes), FunctionEventAvg()).add(event)
        for (_, shapes), average in groups.items():
            average.input_shapes = [list(shape) for shape in shapes]
        return EventList(
            groups.values(), profile_memory=self.profile_memory, use_shapes=group_by_input_shapes
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table.

        Args:
            sort_by: an attribute such as "self_cpu_time_total", "cpu_time_total", "cpu_time",
                "cpu_memory_usage" or "count"; the largest come first. Times on devices, such as
                "cuda_time_total", are all zero.
            row_limit: how many rows at most; -1 for all.
            header: a line above the table.
            top_level_events_only: leaves events inside of others out.
            time_unit: "s", "ms" or "us"; by default each time has the one that suits it.
        """
        rows = list(self)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        total = self.self_cpu_time_total

        def percent(time: float) -> str:
            return f"{100 * time / total:.2f}%" if total else "-"

        def shortened(text: str, width: int) -> str:
            return text if len(text) <= width else text[: width - 3] + "..."

        columns: list[tuple[str, Callable[[Any], str]]] = [
            ("Name", lambda e: shortened(e.key, max_name_column_width)),
            ("Self CPU %", lambda e: percent(e.self_cpu_time_total)),
            ("Self CPU", lambda e: format_time(e.self_cpu_time_total, time_unit)),
            ("CPU total %", lambda e: percent(e.cpu_time_total)),
            ("CPU total", lambda e: format_time(e.cpu_time_total, time_unit)),
            ("CPU time avg", lambda e: format_time(e.cpu_time, time_unit)),
        ]
        if self.profile_memory:
            columns.append(("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)))
            columns.append(("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)))
        columns.append(("# of Calls", lambda e: str(e.count)))
        if self.use_shapes:
            columns.append(
                (
                    "Input Shapes",
                    lambda e: shortened(str(e.input_shapes), max_shapes_column_width),
                )
            )
        cells = [
            [make(e) for _, make in columns] for e in rows[: None if row_limit < 0 else row_limit]
        ]
        widths = [max(len(t), *(len(r[i]) for r in cells)) if cells else len(t)
                  for i, (t, _) in enumerate(columns)]  # fmt: skip

        def line(texts: Iterable[str]) -> str:
            first, *rest = (t.rjust(w) for t, w in zip(texts, widths, strict=True))
            return "  ".join([first, *rest])

        rule = "  ".join("-" * w for w in widths)
        out = [header] if header else []
        out += [rule, line(t for t, _ in columns), rule, *map(line, cells), rule]
        return "\n".join([*out, f"Self CPU time total: {format_time(total, time_unit)}", ""])

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file for the trace viewers of browsers."""
        trace = [
            {
                "name": e.trace_name,
                "ph": "X",
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "tid": e.thread,
                "pid": "CPU functions",
                "args": {"input_shapes": e.input_shapes},
            }
            for e in self
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)

    def __str__(self) -> str:
        return self.table()
