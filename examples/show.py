"""What the examples share: a progress bar, line charts as SVG and grey pictures as PNG.

Everything is written with the standard library, so that the examples need nothing but Facula.
"""

from __future__ import annotations

import math
import struct
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLOURS = ("#0b5ed7", "#cf222e", "#1a7f37", "#8250df")


class Progress:
    """A bar redrawn in place on a terminal; ten plain lines where the output is a file."""

    def __init__(self, total: int) -> None:
        self.total, self.start = total, time.perf_counter()
        self.live = sys.stdout.isatty()
        self.full, self.empty = "█·" if sys.stdout.encoding.lower() == "utf-8" else "#."
        self.next_draw = 0.0

    def show(self, done: int, text: str) -> None:
        now = time.perf_counter()
        if self.live and now < self.next_draw and done < self.total:
            return  # at most 20 frames a second: drawing must not slow the training
        if not self.live and done * 10 // self.total == (done - 1) * 10 // self.total:
            return
        self.next_draw = now + 0.05
        filled = 30 * done // self.total
        rate = done / max(now - self.start, 1e-9)
        line = f"{done:5d}/{self.total} steps  {rate:6.0f} steps/s  {text}"
        if self.live:
            bar = self.full * filled + self.empty * (30 - filled)
            print(f"\r[{bar}] {line}", end="\n" if done == self.total else "", flush=True)
        else:
            print(line, flush=True)


def smooth(values: Sequence[float], window: int) -> list[float]:
    """Means of `window` values each, as many as there are windows."""
    return [
        sum(values[i : i + window]) / window for i in range(0, len(values) - window + 1, window)
    ]


def line_chart(path: Path, title: str, lines: dict[str, Sequence[float]], xlabel: str) -> None:
    """Draws named lines over 0, 1, 2 ... into an SVG file."""
    width, height, left, bottom, top = 760, 420, 70, 50, 50
    values = [v for line in lines.values() for v in line if math.isfinite(v)]
    low, high = min(values), max(values)
    high = high if high > low else low + 1
    longest = max(len(line) for line in lines.values())

    def x(i: float) -> float:
        return left + (width - left - 20) * i / max(longest - 1, 1)

    def y(v: float) -> float:
        return height - bottom - (height - bottom - top) * (v - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="28" font-size="17">{title}</text>',
        f'<text x="{width / 2}" y="{height - 12}" text-anchor="middle">{xlabel}</text>',
    ]
    for k in range(5):
        v = low + (high - low) * k / 4
        parts.append(
            f'<line x1="{left}" x2="{width - 20}" y1="{y(v):.1f}" y2="{y(v):.1f}" '
            'stroke="#e5e5e5"/>'
            f'<text x="{left - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.3g}</text>'
        )
    for i, (name, line) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x(k):.1f},{y(v):.1f}" for k, v in enumerate(line) if math.isfinite(v))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{width - 25}" y="{top + 4 + 18 * i}" text-anchor="end" '
            f'fill="{colour}">{name}</text>'
        )
    path.write_text("\n".join([*parts, "</svg>"]), encoding="utf-8")


def write_png(path: Path, rows: Sequence[Sequence[float]], zoom: int = 4) -> None:
    """Writes a grey picture; 0 is black, 1 white, and every pixel is a square of `zoom` pixels."""
    lines = []
    for row in rows:
        line = b"".join(bytes([round(255 * min(max(v, 0.0), 1.0))]) * zoom for v in row)
        lines += [b"\0" + line] * zoom
    size = struct.pack(">IIBBBBB", zoom * len(rows[0]), zoom * len(rows), 8, 0, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    body = (
        chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(b"".join(lines))) + chunk(b"IEND", b"")
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def tile(pictures: Any, columns: int) -> list[list[float]]:
    """Pictures (N, height, width) side by side, with a margin, as rows for `write_png`."""
    count, height, width = pictures.shape
    rows = math.ceil(count / columns)
    sheet = [[0.5] * (columns * (width + 1) + 1) for _ in range(rows * (height + 1) + 1)]
    for n, picture in enumerate(pictures.tolist()):
        top, start = n // columns * (height + 1) + 1, n % columns * (width + 1) + 1
        for i, line in enumerate(picture):
            sheet[top + i][start : start + width] = line
    return sheet
