"""What devices did during a profile, as events beside those of the operators that asked for it."""

from __future__ import annotations

from typing import Any

from facula.autograd.profiler_util import DeviceType, FunctionEvent

Times = tuple[float, float]


class DeviceEvents:
    """Turns the records of the core into events.

    Kernels, copies and fills are events of the device, and an entry of ``kernels`` in the event of
    the innermost operator or block in which they were queued. Calls that queued or waited are
    events of the host inside of it. A block of ``record_function`` also gets an event on every
    stream that worked for it, from its first kernel there to its last.

    Args:
        host: the events of the host by the number of their range.
        start_ns: the beginning of the profile.
    """

    def __init__(self, host: dict[int, FunctionEvent], start_ns: int) -> None:
        self.host, self.start_ns = host, start_ns
        self.events: list[FunctionEvent] = []
        self.threads: dict[int, int] = {}  # CUPTI's numbers of threads: ours
        self.calls: dict[int, tuple[int, FunctionEvent]] = {}  # the last of a thread and its end
        self.blocks: dict[tuple[int, int, int], FunctionEvent] = {}

    def add_call(
        self, kind: str, name: str, start: int, end: int, thread: int, correlation: int, range: int
    ) -> None:
        """Of the driver or of the run time; they come in the order of their beginnings."""
        parent = self.host.get(range)
        last_end, last = self.calls.get(thread, (0, None))
        inside = last is not None and end <= last_end  # the run time called the driver
        if inside:
            parent = last
        times = self._microseconds(start, end)
        if parent is not None:
            self.threads[thread] = parent.thread
            # Two clocks were read: what is inside shall not stick out.
            outer = parent.time_range
            first = min(max(times[0], outer.start), outer.end)
            times = first, max(first, min(times[1], outer.end))
        event = FunctionEvent(
            0,
            name,
            self.threads.get(thread, thread),
            *times,
            use_device="cuda",
            activity_type=kind,
        )
        event.linked_correlation_id = correlation
        if not inside:
            self.calls[thread] = end, event
        if parent is not None:
            event.set_cpu_parent(parent)
            parent.append_cpu_child(event)
        self.events.append(event)

    def add_activity(
        self,
        kind: str,
        name: str,
        start: int,
        end: int,
        device: int,
        stream: int,
        correlation: int,
        range: int,
        details: dict[str, Any],
    ) -> None:
        """A kernel, a copy or a fill."""
        event = self._on_device(name, kind, device, stream, self._microseconds(start, end))
        event.linked_correlation_id, event.details = correlation, details
        self.events.append(event)
        asker = self.host.get(range)
        if asker is None:
            return
        event.launched_by = asker
        asker.append_kernel(name, device, event.time_range.elapsed_us())
        outer: FunctionEvent | None = asker
        while outer is not None:
            if outer.is_user_annotation:
                self._extend_block(outer, event)
            outer = outer.cpu_parent

    def _extend_block(self, block: FunctionEvent, event: FunctionEvent) -> None:
        key = id(block), event.device_index, event.device_resource_id
        times = event.time_range
        known = self.blocks.get(key)
        if known is None:
            known = self._on_device(
                block.name, "gpu_user_annotation", *key[1:], (times.start, times.end)
            )
            self.blocks[key] = known
            self.events.append(known)
        known.time_range.start = min(known.time_range.start, times.start)
        known.time_range.end = max(known.time_range.end, times.end)

    def _on_device(
        self, name: str, kind: str, device: int, stream: int, times: Times
    ) -> FunctionEvent:
        return FunctionEvent(
            0,
            name,
            stream,
            *times,
            use_device="cuda",
            device_type=DeviceType.CUDA,
            device_index=device,
            device_resource_id=stream,
            activity_type=kind,
        )

    def _microseconds(self, start: int, end: int) -> Times:
        return (start - self.start_ns) / 1e3, (end - self.start_ns) / 1e3
