"""How batches travel from a worker process: a socket for what is small, shared memory for the rest.

Most batches have a short form (``_C._BatchWriter``). Others are pickled, with the bytes of tensors
and arrays left out. Small ones go along in the message. Large ones lie in slots (``_C._SlotWriter``
and ``_C._SlotReader``): memory that both processes have mapped. Batches of tensors are stacked in
one from the start, anything else is copied there. The tensors on the other side lie in the slot,
and when the last of them is gone, the slot goes back to its worker. Slots are files without a name,
whose descriptors travel over the socket, so nothing can be left behind.
"""

from __future__ import annotations

import array
import io
import itertools
import os
import pickle
import socket
import struct
from collections import deque
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy

from facula import _C

Tensor = _C.Tensor
INLINE_BYTES = 1 << 18  # of a batch in its short form
_PICKLED_BYTES = 1 << 16  # a smaller buffer of a pickle goes through the socket
_MOST_DESCRIPTORS = 253  # in one message: what the system takes


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


def pack(obj: Any, slots: Any) -> tuple[bytes, list[memoryview | Placed]]:
    """A pickle, and the large buffers that it refers to. What lies in one of the slots need not be
    copied; the slot is sent when ``obj`` is gone."""
    large: list[memoryview | Placed] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _PICKLED_BYTES:
            return True
        number = -1
        if slots.lent:
            number = slots.send(numpy.frombuffer(raw, numpy.uint8).ctypes.data)
        large.append(raw if number < 0 else Placed(number, 0, raw.nbytes))
        return False

    file = io.BytesIO()
    try:
        BatchPickler(file, keep_inside).dump(obj)
    except BaseException:
        slots.cancel([part.slot for part in large if isinstance(part, Placed)])
        raise
    return file.getvalue(), large


# ---- slots


class Placed(NamedTuple):
    """Where a buffer lies."""

    slot: int
    begin: int
    size: int


def place(buffers: list[memoryview | Placed], slots: Any) -> list[Placed]:
    """Copies those buffers into a slot that lie in none."""
    outside = [buffer for buffer in buffers if not isinstance(buffer, Placed)]
    if not outside:
        return buffers  # type: ignore[return-value]
    number, begins = slots.place(outside)
    copied = map(Placed, itertools.repeat(number), begins, (b.nbytes for b in outside))
    return [b if isinstance(b, Placed) else next(copied) for b in buffers]


def load_pickled(data: bytes, slots: Any) -> Any:
    """The batch of a message whose large buffers are in slots."""
    places, inner = pickle.loads(data)
    memory = {number: memoryview(slots.block(number)) for number in {p[0] for p in places}}
    return pickle.loads(inner, buffers=[memory[i][b : b + n] for i, b, n in places])


# ---- frames: how messages stand in the stream of bytes

# records, bytes that follow, epoch, batches, seconds that they took, bytes in slots
_FRAME = struct.Struct("<IQQIdQ")
_RECORD = struct.Struct("<BQ")  # kind, bytes


class Frame(NamedTuple):
    """One message."""

    records: list[tuple[int, bytes]]
    epoch: int = 0
    batches: int = 0
    seconds: float = 0.0
    placed: int = 0


def make_frame(frame: Frame) -> bytes:
    parts = [b""]
    for kind, data in frame.records:
        parts.append(_RECORD.pack(kind, len(data)))
        parts.append(data)
    body = b"".join(parts)
    return _FRAME.pack(len(frame.records), len(body), *frame[1:]) + body


class FrameParser:
    """Bytes as they arrive -> frames."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Frame]:
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


class Receiver:
    """Takes what arrives at a socket; descriptors go to the end of a queue."""

    def __init__(self, sock: socket.socket, descriptors: deque[int]) -> None:
        self.sock, self.descriptors = sock, descriptors
        # Pages that nothing is written to are none.
        self.memory = memoryview(numpy.empty(1 << 18, numpy.uint8))

    def receive(self) -> memoryview:
        """What has arrived, without waiting for more; nothing at the end of the stream."""
        size, ancillary, _, _ = self.sock.recvmsg_into(
            [self.memory],
            socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS),
            socket.MSG_DONTWAIT | getattr(socket, "MSG_CMSG_CLOEXEC", 0),
        )
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
                self.descriptors.extend(found)
        return self.memory[:size]
