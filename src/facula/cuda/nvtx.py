"""Marks and ranges that NVIDIA's profilers show beside the kernels.

They go to NVIDIA's libnvToolsExt (``pip install nvidia-nvtx-cu12``). Without it nobody listens and
the functions only count how deep ranges are nested.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_state = threading.local()


@functools.cache
def _library() -> Any:
    places = ["libnvToolsExt.so.1"]
    for site in sys.path:
        places += glob.glob(f"{site}/nvidia/nvtx/lib/libnvToolsExt.so.1")
    places += sorted(glob.glob("/usr/local/cuda*/lib64/libnvToolsExt.so.1"))
    for place in places:
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        library.nvtxRangeStartA.restype = ctypes.c_uint64
        library.nvtxRangeEnd.argtypes = [ctypes.c_uint64]
        return library
    return None


def range_push(msg: str) -> int:
    """Opens a range of this thread; returns how many were open before."""
    depth = getattr(_state, "depth", 0)
    _state.depth = depth + 1
    if library := _library():
        library.nvtxRangePushA(str(msg).encode())
    return depth


def range_pop() -> int:
    """Closes the innermost range of this thread; returns how many are left."""
    _state.depth = max(getattr(_state, "depth", 0) - 1, 0)
    if library := _library():
        library.nvtxRangePop()
    return _state.depth


def range_start(msg: str) -> int:
    """Opens a range that any thread may close with :func:`range_end` and the number returned."""
    library = _library()
    return library.nvtxRangeStartA(str(msg).encode()) if library else 0


def range_end(range_id: int) -> None:
    """Closes what :func:`range_start` opened."""
    if library := _library():
        library.nvtxRangeEnd(range_id)


def mark(msg: str) -> None:
    """A point in time."""
    if library := _library():
        library.nvtxMarkA(str(msg).encode())


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block; ``msg.format(*args, **kwargs)`` is its name.

    Example::

        >>> with facula.cuda.nvtx.range("step {}", 3):
        ...     pass
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
