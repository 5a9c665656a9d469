"""Builds the tree of events from what the core recorded."""

from __future__ import annotations

import dataclasses
from typing import Any

from facula.autograd._device_events import DeviceEvents
from facula.autograd._event_flops import flops_of
from facula.autograd.profiler_util import EventList, FunctionEvent


@dataclasses.dataclass
class Wanted:
    """What a profile is asked to keep."""

    use_cpu: bool = True
    use_device: str | None = None
    record_shapes: bool = False
    profile_memory: bool = False
    with_flops: bool = False


def host_events(
    log: list[tuple[Any, ...]], start_ns: int, wanted: Wanted
) -> dict[int, FunctionEvent]:
    """The events of operators and blocks by the number of their range, each with its parent."""
    found: dict[int, FunctionEvent] = {}
    open_events: dict[int, list[FunctionEvent]] = {}
    # Sorted by their beginning, the longer first: what contains another one comes before it.
    for name, start, end, thread, range_id, memory, device_memory, shapes, result in sorted(
        log, key=lambda e: (e[1], -e[2])
    ):
        event = FunctionEvent(
            0,
            name,
            thread,
            (start - start_ns) / 1e3,
            (end - start_ns) / 1e3,
            memory,
            shapes if wanted.record_shapes else (),
            device_memory_usage=device_memory,
            flops=flops_of(name, shapes, result) if wanted.with_flops else 0,
            use_device=wanted.use_device,
        )
        stack = open_events.setdefault(thread, [])
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        if stack:
            event.set_cpu_parent(stack[-1])
            stack[-1].append_cpu_child(event)
        stack.append(event)
        found[range_id] = event
    return found


def events_of_log(
    log: list[tuple[Any, ...]],
    device_log: tuple[list[Any], list[Any]] | None,
    start_ns: int,
    wanted: Wanted,
) -> EventList:
    """All events in the order in which they began."""
    host = host_events(log, start_ns, wanted) if wanted.use_cpu else {}
    events = list(host.values())
    if device_log is not None:
        activities, calls = device_log
        found = DeviceEvents(host, start_ns)
        for call in sorted(calls, key=lambda c: c[2]):
            found.add_call(*call)
        for activity in sorted(activities, key=lambda a: a[2]):
            found.add_activity(*activity)
        events += found.events
        events.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
    for place, event in enumerate(events):
        event.id = place
    return EventList(
        events,
        profile_memory=wanted.profile_memory,
        use_shapes=wanted.record_shapes,
        with_flops=wanted.with_flops,
        use_device=wanted.use_device,
    )
