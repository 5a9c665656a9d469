"""Batches in pinned memory, from which devices copy without waiting."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import facula
from facula.utils.data._utils.collate import _rebuilt


def pin_memory(data: Any, device: Any = None) -> Any:
    """``data`` with every tensor in pinned memory; objects may have a ``pin_memory`` of their own.

    Example::

        >>> from facula.utils.data._utils.pin_memory import pin_memory
        >>> pin_memory(["text", 1])
        ['text', 1]
    """
    if isinstance(data, facula.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        items = {key: pin_memory(value, device) for key, value in data.items()}
        return _rebuilt(data, items, MutableMapping)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(d, device) for d in data))
    if isinstance(data, tuple):
        return [pin_memory(d, device) for d in data]
    if isinstance(data, Sequence):
        return _rebuilt(data, [pin_memory(d, device) for d in data], MutableSequence)
    return data
