"""Event files: records with checksums, each an Event message."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
import time
import weakref
from typing import Any

from facula import _C
from facula.utils.tensorboard import wire

_count = itertools.count()


def masked_checksum(data: bytes) -> int:
    """The checksum of a record, turned so that checksums of checksums differ from them."""
    crc = _C._crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Length, its checksum, the data, their checksum."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        [
            length,
            struct.pack("<I", masked_checksum(length)),
            data,
            struct.pack("<I", masked_checksum(data)),
        ]
    )


class RecordWriter:
    """Writes records to a file."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115

    def write(self, data: bytes) -> None:
        """Adds one record."""
        self._file.write(record(data))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class EventFile:
    """The event file of one writer.

    Args:
        folder: where it goes; made if it is not there.
        max_queue: how many events may wait in memory.
        flush_secs: and for how long.
        suffix: the end of its name.
    """

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str) -> None:
        os.makedirs(folder, exist_ok=True)
        name = (
            f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}."
            f"{next(_count)}{suffix}"
        )
        self.path = os.path.join(folder, name)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._waiting, self._last_flush = 0, time.monotonic()
        self._lock = threading.Lock()
        self._records = RecordWriter(self.path)
        self._close = weakref.finalize(self, RecordWriter.close, self._records)  # also at exit
        self.add(wire.data(3, "brain.Event:2"), None, None)
        self.flush()

    def add(self, content: bytes, step: Any, walltime: float | None) -> None:
        """Adds an event: the fields of its content, with the time and the step."""
        event = wire.double(1, time.time() if walltime is None else walltime)
        if step is not None:
            event += wire.integer(2, int(step))
        with self._lock:
            if not self._close.alive:
                raise RuntimeError("the writer is closed")
            self._records.write(event + content)
            self._waiting += 1
            late = time.monotonic() - self._last_flush > self._flush_secs
            if self._waiting > self._max_queue or late:
                self._flush()

    def _flush(self) -> None:
        self._records.flush()
        self._waiting, self._last_flush = 0, time.monotonic()

    def flush(self) -> None:
        with self._lock:
            if self._close.alive:
                self._flush()

    @property
    def closed(self) -> bool:
        """Whether the file has ended."""
        return not self._close.alive

    def close(self) -> None:
        with self._lock:
            self._close()
