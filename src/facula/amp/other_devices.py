"""Autocast settings of devices that other packages bring: XLA and IPU.

Operators here run on none of them. A program that sets them finds its settings again, for each
thread, as in PyTorch.
"""

from __future__ import annotations

import threading
from typing import Any

from facula import _C


class _Settings(threading.local):
    def __init__(self) -> None:
        self.enabled = {"xla": False, "ipu": False}
        self.dtype = {"xla": _C.bfloat16, "ipu": _C.float16}


_settings = _Settings()


def _set_dtype(device: str, dtype: Any) -> None:
    if not isinstance(dtype, _C.dtype):
        raise TypeError(
            f"set_autocast_{device}_dtype(): expected a dtype, got {type(dtype).__name__}"
        )
    _settings.dtype[device] = dtype


def is_autocast_xla_enabled() -> bool:
    """Whether autocast is on for XLA devices.

    Example::

        >>> facula.is_autocast_xla_enabled()
        False
    """
    return _settings.enabled["xla"]


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Sets whether autocast is on for XLA devices.

    Example::

        >>> facula.set_autocast_xla_enabled(True)
        >>> facula.is_autocast_xla_enabled()
        True
        >>> facula.set_autocast_xla_enabled(False)
    """
    _settings.enabled["xla"] = bool(enabled)


def get_autocast_xla_dtype() -> Any:
    """The lower precision of autocast on XLA devices.

    Example::

        >>> facula.get_autocast_xla_dtype()
        facula.bfloat16
    """
    return _settings.dtype["xla"]


def set_autocast_xla_dtype(dtype: Any) -> None:
    """Sets the lower precision of autocast on XLA devices.

    Example::

        >>> facula.set_autocast_xla_dtype(facula.float16)
        >>> facula.get_autocast_xla_dtype()
        facula.float16
        >>> facula.set_autocast_xla_dtype(facula.bfloat16)
    """
    _set_dtype("xla", dtype)


def is_autocast_ipu_enabled() -> bool:
    """Whether autocast is on for IPU devices.

    Example::

        >>> facula.is_autocast_ipu_enabled()
        False
    """
    return _settings.enabled["ipu"]


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Sets whether autocast is on for IPU devices.

    Example::

        >>> facula.set_autocast_ipu_enabled(True)
        >>> facula.is_autocast_ipu_enabled()
        True
        >>> facula.set_autocast_ipu_enabled(False)
    """
    _settings.enabled["ipu"] = bool(enabled)


def get_autocast_ipu_dtype() -> Any:
    """The lower precision of autocast on IPU devices.

    Example::

        >>> facula.get_autocast_ipu_dtype()
        facula.float16
    """
    return _settings.dtype["ipu"]


def set_autocast_ipu_dtype(dtype: Any) -> None:
    """Sets the lower precision of autocast on IPU devices.

    Example::

        >>> facula.set_autocast_ipu_dtype(facula.bfloat16)
        >>> facula.get_autocast_ipu_dtype()
        facula.bfloat16
        >>> facula.set_autocast_ipu_dtype(facula.float16)
    """
    _set_dtype("ipu", dtype)
