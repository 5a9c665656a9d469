"""The device beside the CPU, whatever it is: here CUDA.

Example::

    >>> device = facula.accelerator.current_accelerator() or facula.device("cpu")
    >>> facula.ones(2, device=device).sum().item()
    2.0
"""

from __future__ import annotations

from typing import Any

import facula

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """True when there is one."""
    return facula.cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return facula.cuda.device_count()


def current_accelerator(check_available: bool = False) -> facula.device | None:
    """The kind of device, without an index, or None on a machine that has none.

    Args:
        check_available: accepted for PyTorch's sake; a device is named only when it can be used.
    """
    return facula.device("cuda") if is_available() else None


def _require() -> Any:
    if not is_available():
        raise RuntimeError(
            "Cannot access accelerator device when none is available: "
            + facula.cuda.unavailable_reason()
        )
    return facula.cuda


def _index(device: Any) -> int | None:
    if device is None or isinstance(device, int):
        return device
    device = facula.device(device)
    if device.type != "cuda":
        raise ValueError(f"{device.type} doesn't match the current accelerator cuda.")
    return device.index


def current_device_index() -> int:
    """The index of the current device."""
    return _require().current_device()


def set_device_index(device: Any, /) -> None:
    """Makes a device, or the one with an index, the current one; negative indices do nothing."""
    index = _index(device)
    if index is not None and index >= 0:
        _require().set_device(index)


class device_index:
    """Makes a device the current one for a block; None does nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def synchronize(device: Any = None, /) -> None:
    """Waits until a device has finished its work."""
    _require().synchronize(_index(device))


def empty_cache() -> None:
    """Gives memory that is kept for later back to the device."""
    if is_available():
        facula.cuda.empty_cache()


def memory_allocated(device_index: Any = None, /) -> int:
    """The bytes in use by tensors."""
    return _require().memory_allocated(_index(device_index))


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that were in use by tensors."""
    return _require().max_memory_allocated(_index(device_index))


def memory_reserved(device_index: Any = None, /) -> int:
    """The bytes taken from the device."""
    return _require().memory_reserved(_index(device_index))


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Starts ``max_memory_allocated`` anew."""
    _require().reset_peak_memory_stats(_index(device_index))


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that were taken from the device."""
    return _require().max_memory_reserved(_index(device_index))


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """Figures of the allocator; see ``facula.cuda.memory_stats``."""
    return _require().memory_stats(_index(device_index))


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Starts the sums of :func:`memory_stats` anew."""
    _require().reset_accumulated_memory_stats(_index(device_index))


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes of the device's memory."""
    return _require().mem_get_info(_index(device_index))


def current_stream(device: Any = None, /) -> Any:
    """The stream that work of this thread goes to."""
    return _require().current_stream(_index(device))


def set_stream(stream: Any) -> None:
    """Makes a stream and its device current."""
    _require().set_stream(stream)


current_device_idx = current_device_index
set_device_idx = set_device_index
