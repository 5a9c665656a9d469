"""The profiler's table: which columns there are and how their cells look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")

Column = tuple[str, Callable[[Any], str]]


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


def attribute_of(name: str) -> str:
    """The attribute of events that has a time or memory; all kinds of devices share theirs."""
    for device in ("cuda", "xpu", "privateuse1"):
        name = name.replace(device, "device")
    return name


def format_memory(nbytes: int) -> str:
    """A number of bytes in the unit that suits it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "-"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _host_columns(total: float, unit: str | None) -> list[Column]:
    return [
        ("Self CPU %", lambda e: _percent(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: format_time(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: _percent(e.cpu_time_total, total)),
        ("CPU total", lambda e: format_time(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: format_time(e.cpu_time, unit)),
    ]


def _device_columns(device: str, total: float, unit: str | None) -> list[Column]:
    return [
        (f"Self {device}", lambda e: format_time(e.self_device_time_total, unit)),
        (f"Self {device} %", lambda e: _percent(e.self_device_time_total, total)),
        (f"{device} total", lambda e: format_time(e.device_time_total, unit)),
        (f"{device} time avg", lambda e: format_time(e.device_time, unit)),
    ]


def _memory_columns(device: str | None) -> list[Column]:
    columns: list[Column] = [
        ("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
        ("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
    ]
    if device is not None:
        columns += [
            (f"{device} Mem", lambda e: format_memory(e.device_memory_usage)),
            (f"Self {device} Mem", lambda e: format_memory(e.self_device_memory_usage)),
        ]
    return columns


def _flop_columns(rows: list[Any]) -> list[Column]:
    """In the unit that suits the smallest of them; none where nothing was counted."""
    counted = [e.flops for e in rows if e.flops]
    if not counted:
        return []
    power = min(int(math.log10(min(counted)) / 3), len(_FLOP_UNITS) - 1)
    size = 1000.0**power
    return [(f"Total {_FLOP_UNITS[power]}", lambda e: f"{e.flops / size:.3f}" if e.flops else "--")]


def event_table(
    events: Any,
    sort_by: str | None,
    row_limit: int,
    max_name_column_width: int,
    max_shapes_column_width: int,
    header: str | None,
    top_level_events_only: bool,
    time_unit: str | None,
) -> str:
    """The text of :meth:`EventList.table`."""
    rows = list(events)
    device = (events.use_device or "cuda").upper()
    timed = any(e.self_device_time_total > 0 for e in rows)
    total, device_total = events.self_cpu_time_total, events.self_device_time_total
    if top_level_events_only:
        rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
    if sort_by is not None:
        attribute = attribute_of(sort_by)
        rows.sort(key=lambda e: getattr(e, attribute), reverse=True)

    columns: list[Column] = [("Name", lambda e: _shortened(e.key, max_name_column_width))]
    columns += _host_columns(total, time_unit)
    if timed:
        columns += _device_columns(device, device_total, time_unit)
    if events.profile_memory:
        columns += _memory_columns(device if any(e.device_memory_usage for e in rows) else None)
    columns.append(("# of Calls", lambda e: str(e.count)))
    if events.use_shapes:
        columns.append(
            ("Input Shapes", lambda e: _shortened(str(e.input_shapes), max_shapes_column_width))
        )
    if events.with_flops:
        columns += _flop_columns(rows)

    shown = rows[: None if row_limit < 0 else row_limit]
    cells = [[text for text, _ in columns], *([make(e) for _, make in columns] for e in shown)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line(texts: Iterable[str]) -> str:
        return "  ".join(t.rjust(w) for t, w in zip(texts, widths, strict=True))

    rule = "  ".join("-" * w for w in widths)
    names, *lines = map(line, cells)
    out = [header] if header else []
    out += [rule, names, rule, *lines, rule]
    out.append(f"Self CPU time total: {format_time(total, time_unit)}")
    if timed:
        out.append(f"Self {device} time total: {format_time(device_total, time_unit)}")
    return "\n".join([*out, ""])
