"""Meta's accelerators, which Facula has no kernels for: programs that ask are told so."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "init",
    "is_available",
    "is_initialized",
    "synchronize",
]


def is_available() -> bool:
    """False.

    Example::

        >>> facula.mtia.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """False.

    Example::

        >>> facula.mtia.is_initialized()
        False
    """
    return False


def device_count() -> int:
    """0.

    Example::

        >>> facula.mtia.device_count()
        0
    """
    return 0


def empty_cache() -> None:
    """Does nothing: there is no cache.

    Example::

        >>> facula.mtia.empty_cache()
    """


def init() -> NoReturn:
    """Raises: there is no device.

    Example::

        >>> facula.mtia.init()
        Traceback (most recent call last):
            ...
        RuntimeError: Facula has no 'mtia' devices; use 'cpu' or 'cuda'
    """
    raise RuntimeError("Facula has no 'mtia' devices; use 'cpu' or 'cuda'")


def current_device() -> NoReturn:
    """Raises: there is no device.

    Example::

        >>> facula.mtia.current_device()
        Traceback (most recent call last):
            ...
        RuntimeError: Facula has no 'mtia' devices; use 'cpu' or 'cuda'
    """
    raise RuntimeError("Facula has no 'mtia' devices; use 'cpu' or 'cuda'")


def synchronize(device: object = None) -> NoReturn:
    """Raises: there is no device to wait for.

    Example::

        >>> facula.mtia.synchronize()
        Traceback (most recent call last):
            ...
        RuntimeError: Facula has no 'mtia' devices; use 'cpu' or 'cuda'
    """
    raise RuntimeError("Facula has no 'mtia' devices; use 'cpu' or 'cuda'")
