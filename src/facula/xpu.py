"""Intel's GPUs, which Facula has no kernels for: programs that ask are told so."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["current_device", "device_count", "empty_cache", "is_available", "synchronize"]


def is_available() -> bool:
    """False.

    Example::

        >>> facula.xpu.is_available()
        False
    """
    return False


def device_count() -> int:
    """0."""
    return 0


def empty_cache() -> None:
    """Does nothing: there is no cache."""


def current_device() -> NoReturn:
    """Raises: there is no device."""
    raise RuntimeError("Facula has no 'xpu' devices; use 'cpu' or 'cuda'")


def synchronize(device: object = None) -> NoReturn:
    """Raises: there is no device to wait for."""
    raise RuntimeError("Facula has no 'xpu' devices; use 'cpu' or 'cuda'")
