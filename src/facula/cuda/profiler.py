"""Which part of a program NVIDIA's profilers record.

``nsys profile --capture-range=cudaProfilerApi python program.py`` records what lies between
:func:`start` and :func:`stop`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from facula import _C

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Recording starts."""
    _C._cuda_profiler(True)


def stop() -> None:
    """Recording ends."""
    _C._cuda_profiler(False)


@contextmanager
def profile() -> Iterator[None]:
    """Records a block."""
    start()
    try:
        yield
    finally:
        stop()
