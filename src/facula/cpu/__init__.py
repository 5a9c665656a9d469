"""The host as a device, with the functions that programs ask of every device's module."""

from __future__ import annotations

from typing import Any

from facula.cpu.streams import Event, Stream, StreamContext, current_stream, stream

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True.

    Example::

        >>> facula.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """True: the host needs no preparation."""
    return True


def device_count() -> int:
    """1: all cores are one device."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one host. Raises for other devices."""
    from facula import device as make_device

    if make_device(device).type != "cpu":
        raise ValueError(f"expected the device 'cpu', got {device!r}")


def synchronize(device: Any = None) -> None:
    """Returns at once: operators on the host are done when they return."""


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("facula.cpu.amp")
    raise AttributeError(f"module 'facula.cpu' has no attribute {name!r}")
