"""Bytes and descriptions of storages in checkpoint files, checked as they are read."""

from __future__ import annotations

import reprlib
from typing import Any

from facula.storage import UntypedStorage


class _Shown(reprlib.Repr):
    """Short texts of objects in files, which may be endless: tuples of tuples, long numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 100, 100

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 200 else f"<a number of {x.bit_length()} bits>"


shown = _Shown().repr


def text(value: Any) -> Any:
    return value.decode("ascii") if isinstance(value, bytes) else value


def storage_id(pid: Any, length: int) -> tuple[Any, ...]:
    """('storage', type, key, location, number of elements, ...), checked."""
    if not isinstance(pid, tuple) or len(pid) != length or text(pid[0]) != "storage":
        raise RuntimeError(f"corrupt checkpoint: {shown(pid)} is no description of a storage")
    name, kind, key, location, numel, *rest = pid
    key, location = text(key), text(location)
    if not isinstance(key, str) or not isinstance(location, str):
        raise RuntimeError(f"corrupt checkpoint: storage {shown(key)} at {shown(location)}")
    if type(numel) is not int or not 0 <= numel < 1 << 59:
        raise RuntimeError(f"corrupt checkpoint: a storage of {shown(numel)} elements")
    return (name, kind, key, location, numel, *rest)


def read_exactly(file: Any, n: int, source: str) -> bytes:
    data = file.read(n)
    if len(data) != n:
        raise RuntimeError(f"{source} is truncated: {n} bytes were expected, {len(data)} are left")
    return data


def read_into(file: Any, storage: UntypedStorage, source: str) -> None:
    view = memoryview(storage)
    done = 0
    while done < view.nbytes:
        if hasattr(file, "readinto"):
            n = file.readinto(view[done:])
        else:
            part = file.read(min(view.nbytes - done, 1 << 24))
            n = len(part)
            view[done : done + n] = part
        if not n:
            raise RuntimeError(f"{source} is truncated: a storage ends {view.nbytes - done} early")
        done += n
