"""Events in the form that the trace viewers of browsers read (Chrome's trace events)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from facula.autograd.profiler_util import DeviceType, FunctionEvent

_FIRST_DEVICE_ROW = 5_000_000  # devices come below all processes


def trace_events(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """A row for each thread of the host, and for each stream of each device; arrows lead from the
    calls of the driver to what they queued."""
    events = list(events)
    on_devices = [e for e in events if e.device_type is not DeviceType.CPU]
    calls = {e.linked_correlation_id: e for e in events if _is_call(e)}
    out = _row_names(on_devices)
    out += [_span(e) for e in events]
    for event in on_devices:
        start = calls.get(event.linked_correlation_id, event.launched_by)
        if start is not None and not event.is_user_annotation:
            out += _arrow(event.linked_correlation_id, start, event)
    return out


def device_properties(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """What a trace says of the devices that are in it."""
    import facula

    out = []
    for index in sorted({e.device_index for e in events if e.device_type is not DeviceType.CPU}):
        device = facula.cuda.get_device_properties(index)
        out.append(
            {
                "id": index,
                "name": device.name,
                "totalGlobalMem": device.total_memory,
                "computeMajor": device.major,
                "computeMinor": device.minor,
                "warpSize": device.warp_size,
                "numSms": device.multi_processor_count,
            }
        )
    return out


def _is_call(event: FunctionEvent) -> bool:
    return event.activity_type in ("cuda_runtime", "cuda_driver")


def _place(event: FunctionEvent) -> dict[str, int]:
    if event.device_type is DeviceType.CPU:
        return {"pid": os.getpid(), "tid": event.thread}
    return {"pid": event.device_index, "tid": event.device_resource_id}


def _span(event: FunctionEvent) -> dict[str, Any]:
    args: dict[str, Any]
    if event.device_type is DeviceType.CPU:
        args = {"External id": event.id, "Input Dims": event.input_shapes}
        if _is_call(event):
            outer = event.cpu_parent
            args = {
                "External id": outer.id if outer else 0,
                "correlation": event.linked_correlation_id,
            }
    else:
        asker = event.launched_by
        args = {"External id": asker.id if asker else 0, "device": event.device_index}
        args |= {"stream": event.device_resource_id, **event.details}
        if not event.is_user_annotation:
            args["correlation"] = event.linked_correlation_id
    if event.flops:
        args["flops"] = event.flops
    return {
        "name": event.trace_name,
        "cat": event.activity_type,
        "ph": "X",
        "ts": event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        **_place(event),
        "args": args,
    }


def _arrow(number: int, start: FunctionEvent, end: FunctionEvent) -> list[dict[str, Any]]:
    common = {"id": number, "cat": "ac2g", "name": "ac2g"}
    return [
        {**common, "ph": "s", "ts": start.time_range.start, **_place(start)},
        {**common, "ph": "f", "bp": "e", "ts": end.time_range.start, **_place(end)},
    ]


def _row_names(on_devices: list[FunctionEvent]) -> list[dict[str, Any]]:
    """Metadata; none where only the host was recorded."""
    out: list[dict[str, Any]] = []

    def name(pid: int, tid: int, what: str, **args: Any) -> None:
        out.append({"ph": "M", "name": what, "ts": 0, "pid": pid, "tid": tid, "args": args})

    if on_devices:
        name(os.getpid(), 0, "process_name", name="python")
        name(os.getpid(), 0, "process_labels", labels="CPU")
    for device in sorted({e.device_index for e in on_devices}):
        name(device, 0, "process_name", name="python")
        name(device, 0, "process_labels", labels=f"GPU {device}")
        name(device, 0, "process_sort_index", sort_index=_FIRST_DEVICE_ROW + device)
    for device, stream in sorted({(e.device_index, e.device_resource_id) for e in on_devices}):
        name(device, stream, "thread_name", name=f"stream {stream}")
        name(device, stream, "thread_sort_index", sort_index=stream)
    return out
