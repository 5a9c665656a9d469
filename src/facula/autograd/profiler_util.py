"""Events that the profiler recorded: lists of them, averages and tables."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from facula.autograd._event_table import attribute_of, event_table, format_time

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
]


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


class Kernel(NamedTuple):
    """What an operator had a device do: a kernel, a copy or a fill, with its microseconds.

    Example::

        >>> from facula.autograd.profiler_util import FunctionEvent
        >>> event = FunctionEvent(0, "aten::mm", 1, 0.0, 9.0)
        >>> event.append_kernel("gemm", 0, 20.0)
        >>> event.kernels
        [Kernel(name='gemm', device=0, duration=20.0)]
    """

    name: str
    device: int
    duration: float


def _formatted(name: str) -> property:
    def text(self: Any) -> str:
        return format_time(getattr(self, name))

    return property(text, doc=f"``{name}`` with its unit.")


def _same_as(name: str) -> property:
    def value(self: Any) -> Any:
        return getattr(self, name)

    return property(value, doc=f"The older name of ``{name}``.")


class _Times:
    """What single events and averages have in common."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float
    # No more is recorded of a call than its name, times, memory, shapes and what it had devices do:
    # these are what programs find of events that PyTorch knows more about.
    scope = 0
    node_id = -1
    stack: Sequence[str] = ()
    overload_name = ""
    is_async = is_remote = is_legacy = False

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds on devices of one call."""
        return self.device_time_total / self.count if self.count else 0.0

    cpu_time_str = _formatted("cpu_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    device_time_str = _formatted("device_time")
    device_time_total_str = _formatted("device_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")
    cuda_time = _same_as("device_time")
    cuda_time_total = _same_as("device_time_total")
    self_cuda_time_total = _same_as("self_device_time_total")
    cuda_time_str = _same_as("device_time_str")
    cuda_time_total_str = _same_as("device_time_total_str")
    self_cuda_time_total_str = _same_as("self_device_time_total_str")
    cuda_memory_usage = _same_as("device_memory_usage")
    self_cuda_memory_usage = _same_as("self_device_memory_usage")


_OPERATORS = ("aten::", "autograd::")


class FunctionEvent(_Times):
    """One call of an operator, one block of ``record_function``, or one kernel of a device."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        cpu_memory_usage: int = 0,
        input_shapes: Iterable[tuple[int, ...]] = (),
        *,
        device_memory_usage: int = 0,
        flops: int = 0,
        use_device: str | None = None,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = -1,
        device_resource_id: int = -1,
        activity_type: str | None = None,
    ) -> None:
        # Steps are one entry of the averages; the trace tells them apart.
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.id, self.thread = id, thread
        self.time_range = Interval(start_us, end_us)
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.input_shapes = [list(shape) for shape in input_shapes]
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Kernel] = []
        self.count = 1
        self.flops = flops
        self.trace_name = name
        self.fwd_thread: int | None = None
        self.sequence_nr = -1
        self.use_device, self.device_type = use_device, device_type
        self.device_index, self.device_resource_id = device_index, device_resource_id
        if activity_type is None:
            on_host = "cpu_op" if name.startswith(_OPERATORS) else "user_annotation"
            activity_type = on_host if self.on_host else "kernel"
        self.activity_type = activity_type  # as traces call it
        self.is_user_annotation = activity_type.endswith("user_annotation")
        self.linked_correlation_id = 0  # of a call of the driver and of what it queued
        self.launched_by: FunctionEvent | None = None  # the operator of what a device did
        self.details: dict[str, Any] = {}  # for traces

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def on_host(self) -> bool:
        """Whether it is an event of the host."""
        return self.device_type is DeviceType.CPU

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from its beginning to its end."""
        return self.time_range.elapsed_us() if self.on_host else 0.0

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds outside of the events that it contains."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds that devices worked for it and for the events that it contains."""
        if not self.on_host:
            return self.time_range.elapsed_us()
        return self.self_device_time_total + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds that devices worked for it alone."""
        if not self.on_host:
            return self.time_range.elapsed_us()
        return sum((k.duration for k in self.kernels), 0.0)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that stayed allocated, without those of the events that it contains."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The same on devices."""
        return self.device_memory_usage - sum(c.device_memory_usage for c in self.cpu_children)

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds what a device did for this event of the host."""
        if not self.on_host:
            raise AssertionError("Expected device_type to be CPU")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that this one contains."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets the event that contains this one."""
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"cpu_time={self.cpu_time_str} {self.use_device or 'cuda'}_time={self.device_time_str} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """Events of one name together."""

    def __init__(self) -> None:
        self.key = ""
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.device_time_total = 0.0
        self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.flops = 0
        self.device_type = DeviceType.CPU
        self.use_device: str | None = None
        self.is_user_annotation = False
        self.input_shapes: list[list[int]] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Takes another event into account."""
        if not self.count:
            self.key = self.key or other.key
            self.device_type, self.use_device = other.device_type, other.use_device
            self.is_user_annotation = other.is_user_annotation
        self.input_shapes = self.input_shapes or other.input_shapes
        self.count += other.count
        self.self_cpu_time_total += other.self_cpu_time_total
        self.self_device_time_total += other.self_device_time_total
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.flops += other.flops
        # A call inside of a call of the same name is part of its time already.
        if isinstance(other, FunctionEvent) and _inside_of_itself(other):
            return self
        self.cpu_time_total += other.cpu_time_total
        self.device_time_total += other.device_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} count={self.count}>"
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
        self,
        events: Iterable[Any] = (),
        *,
        profile_memory: bool = False,
        use_shapes: bool = False,
        with_flops: bool = False,
        use_device: str | None = None,
    ) -> None:
        super().__init__(events)
        self.profile_memory = profile_memory
        self.use_shapes = use_shapes
        self.with_flops = with_flops
        self.use_device = use_device

    def like(self, events: Iterable[Any], **changes: Any) -> EventList:
        """Other events that are shown in the same way."""
        return EventList(
            events,
            **{
                "profile_memory": self.profile_memory,
                "use_shapes": self.use_shapes,
                "with_flops": self.with_flops,
                "use_device": self.use_device,
                **changes,
            },
        )

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    @property
    def self_device_time_total(self) -> float:
        """Microseconds of all that devices did, each counted once."""
        times: list[float] = [
            e.self_device_time_total
            for e in self
            if e.device_type is not DeviceType.CPU and not e.is_user_annotation
        ]
        return sum(times)

    def total_average(self) -> FunctionEventAvg:
        """All events together; what devices did counts in the operator and as itself."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry for each name, or for each name and shapes; kernels have their own."""
        groups: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = tuple(map(tuple, event.input_shapes)) if group_by_input_shapes else ()
            key = event.key, event.device_type, event.is_user_annotation, shapes
            groups.setdefault(key, FunctionEventAvg()).add(event)
        for (*_, shapes), average in groups.items():
            average.input_shapes = [list(shape) for shape in shapes]
        return self.like(groups.values(), use_shapes=group_by_input_shapes)

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
                "self_cuda_time_total", "cuda_time_total", "cpu_memory_usage" or "count"; the
                largest come first.
            row_limit: how many rows at most; -1 for all.
            header: a line above the table.
            top_level_events_only: leaves events inside of others out.
            time_unit: "s", "ms" or "us"; by default each time has the one that suits it.
        """
        return event_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file for the trace viewers of browsers."""
        from facula.autograd._event_trace import trace_events

        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace_events(self), file)

    @property
    def supported_export_stacks_metrics(self) -> list[str]:
        """What :meth:`export_stacks` can weigh stacks by."""
        return [f"self_{device}_time_total" for device in ("cpu", "cuda", "xpu", "privateuse1")]

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line for each event that has a stack: the stack, and the microseconds spent in
        it. Stacks are not recorded, so that only events of a program's own have lines.

        Args:
            path: the file.
            metric: which microseconds: one of ``supported_export_stacks_metrics``.
        """
        if metric not in self.supported_export_stacks_metrics:
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics}")
        apart = str.maketrans(" ;\t\n", "____")  # what the format has between frames
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                time = int(getattr(event, attribute_of(metric)))
                if len(event.stack) > 0 and time > 0:
                    frames = [frame.translate(apart) for frame in reversed(event.stack)]
                    file.write(f"{';'.join(frames)} {time}\n")

    def __str__(self) -> str:
        return self.table()
