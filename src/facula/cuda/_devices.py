"""Which device is meant by an argument."""

from __future__ import annotations

from typing import Any

from facula import _C


def index_of(which: Any = None) -> int:
    """The index that an int, a name, a ``facula.device`` or None (the current one) stands for."""
    if which is None:
        return _C._cuda_current_device()
    if isinstance(which, int):
        return _C._cuda_current_device() if which < 0 else which
    found = which if isinstance(which, _C.device) else _C.device(which)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return _C._cuda_current_device() if found.index is None else found.index
