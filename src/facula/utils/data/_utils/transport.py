"""How batches travel from a worker process: a socket for what is small, shared memory for the rest.

A batch is pickled, with the bytes of tensors and arrays left out. Small ones go along in the
message. Large ones are copied into a slot: memory that both processes have mapped. The tensors on
the other side lie in the slot, and when the last of them is gone, the slot goes back to its worker.
Slots are files without a name, whose descriptors travel over the socket, so nothing can be left
behind.
"""

from __future__ import annotations

import array
import ctypes
import io
import mmap
import os
import pickle
import socket
import struct
import weakref
from collections import deque
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from facula import _C

Tensor = _C.Tensor
INLINE_BYTES = 1 << 16  # below, copying through the socket is as fast as a slot
_ALIGNMENT = 64


# ---- pickling


def _is_dense(t: Any) -> bool:
    """Whether the elements fill one piece of memory without gaps, in whatever order."""
    expected = 1
    for stride, size in sorted(zip(t.stride(), t.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def _describe_tensor(t: Any) -> Any:
    if t.requires_grad or t.device.type != "cpu" or t.is_conj() or t.is_neg() or t.__dict__:
        return NotImplemented
    if t.layout is not _C.strided:
        return t.__reduce_ex__(5)  # its parts are tensors again
    strides = None
    if not t.is_contiguous():
        if _is_dense(t):
            strides = t.stride()
        else:
            t = t.contiguous()
    size = t.numel() * t.itemsize
    begin = t.storage_offset() * t.itemsize
    data = memoryview(t.untyped_storage())[begin : begin + size] if size else b""
    return _C._tensor_in_buffer, (pickle.PickleBuffer(data), t.dtype, tuple(t.shape), strides)


class BatchPickler(pickle.Pickler):
    """Writes tensors as buffers."""

    def __init__(self, file: Any, buffer_callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(file, 5, buffer_callback=buffer_callback)
        self.dispatch_table = ForkingPickler(file).dispatch_table  # type: ignore[attr-defined]

    def reducer_override(self, obj: Any) -> Any:
        return _describe_tensor(obj) if type(obj) is Tensor else NotImplemented


def pack(obj: Any) -> tuple[bytes, list[memoryview]]:
    """A pickle, and the large buffers that it refers to."""
    large: list[memoryview] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < INLINE_BYTES:
            return True
        large.append(raw)
        return False

    file = io.BytesIO()
    BatchPickler(file, keep_inside).dump(obj)
    return file.getvalue(), large


# ---- slots


class _Slot:
    def __init__(self, size: int, descriptor: int) -> None:
        self.size = size
        self.mapping = mmap.mmap(descriptor, size)


class SlotWriter:
    """The slots of a worker, on its side."""

    def __init__(self) -> None:
        self.slots: dict[int, _Slot] = {}
        self.free: set[int] = set()
        self.count = 0
        self.fresh: list[int] = []  # descriptors of slots that the other side has not seen

    def fill(self, buffers: list[memoryview]) -> tuple[int, int, list[tuple[int, int]]]:
        """Copies buffers into a slot: (its number, its size, where each of them is)."""
        places, end = [], 0
        for buffer in buffers:
            places.append((end, buffer.nbytes))
            end += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
        number = self._take(end)
        slot = self.slots[number]
        with memoryview(slot.mapping) as memory:
            for (begin, size), buffer in zip(places, buffers, strict=True):
                memory[begin : begin + size] = buffer
        return number, slot.size, places

    def _take(self, size: int) -> int:
        fitting = [n for n in self.free if self.slots[n].size >= size]
        if fitting:
            number = min(fitting, key=lambda n: self.slots[n].size)
            self.free.remove(number)
            return number
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        descriptor = _C._make_shared_file(size)
        self.slots[self.count] = _Slot(size, descriptor)
        self.fresh.append(descriptor)
        self.count += 1
        return self.count - 1

    def surplus(self, kept: int) -> list[int]:
        """Drops free slots beyond a number, the smallest first, and says which."""
        dropped = sorted(self.free, key=lambda n: -self.slots[n].size)[kept:]
        for number in dropped:
            del self.slots[number]
            self.free.remove(number)
        return dropped

    def take_fresh(self) -> list[int]:
        fresh, self.fresh = self.fresh, []
        return fresh


class SlotReader:
    """The slots of a worker, on the loader's side."""

    def __init__(self) -> None:
        self.slots: dict[int, _Slot] = {}
        self.descriptors: deque[int] = deque()
        self.released: deque[int] = deque()  # appended to whenever, and wherever, tensors die

    def load(self, data: bytes) -> Any:
        """The batch of a message whose large buffers are in a slot."""
        number, size, places, inner = pickle.loads(data)
        if number not in self.slots:
            descriptor = self.descriptors.popleft()
            try:
                self.slots[number] = _Slot(size, descriptor)
            finally:
                os.close(descriptor)
        block = (ctypes.c_char * size).from_buffer(self.slots[number].mapping)
        weakref.finalize(block, self.released.append, number).atexit = False
        memory = memoryview(block).cast("B")
        return pickle.loads(inner, buffers=[memory[b : b + n] for b, n in places])

    def take_released(self) -> list[int]:
        released = []
        while self.released:
            released.append(self.released.popleft())
        return released

    def forget(self, numbers: list[int]) -> None:
        for number in numbers:
            self.slots.pop(number, None)

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.popleft())


# ---- frames: how messages stand in the stream of bytes

# records, bytes that follow, epoch, batches, seconds that they took
_FRAME = struct.Struct("<IQQId")
_RECORD = struct.Struct("<BQ")  # kind, bytes


class Frame(NamedTuple):
    """One message."""

    records: list[tuple[int, bytes]]
    epoch: int = 0
    batches: int = 0
    seconds: float = 0.0


def make_frame(frame: Frame) -> bytes:
    parts = [b""]
    for kind, data in frame.records:
        parts.append(_RECORD.pack(kind, len(data)))
        parts.append(data)
    body = b"".join(parts)
    head = _FRAME.pack(len(frame.records), len(body), frame.epoch, frame.batches, frame.seconds)
    return head + body


class FrameParser:
    """Bytes as they arrive -> frames."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now."""
        buffer = self.buffer
        buffer += data
        frames = []
        begin = 0
        while len(buffer) - begin >= _FRAME.size:
            count, size, *rest = _FRAME.unpack_from(buffer, begin)
            if len(buffer) - begin - _FRAME.size < size:
                break
            begin += _FRAME.size
            records = []
            for _ in range(count):
                kind, length = _RECORD.unpack_from(buffer, begin)
                begin += _RECORD.size
                records.append((kind, bytes(memoryview(buffer)[begin : begin + length])))
                begin += length
            frames.append(Frame(records, *rest))
        del buffer[:begin]
        return frames


def send_with_descriptors(sock: socket.socket, data: bytes, descriptors: list[int]) -> None:
    """Sends bytes, and descriptors along with the first of them; the descriptors are closed."""
    try:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        sent = sock.sendmsg([data], [rights])
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    sock.sendall(memoryview(data)[sent:])


def receive_with_descriptors(sock: socket.socket, descriptors: deque[int]) -> bytes:
    """What has arrived without waiting for more; b"" at the end of the stream."""
    data, ancillary, _, _ = sock.recvmsg(
        1 << 20, socket.CMSG_SPACE(64), socket.MSG_DONTWAIT | getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    )
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found = array.array("i")
            found.frombytes(content[: len(content) - len(content) % found.itemsize])
            descriptors.extend(found)
    return data
