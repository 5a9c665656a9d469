"""How batches travel from a worker process: a socket for what is small, shared memory for the rest.

A batch is pickled, with the bytes of tensors and arrays left out. Small ones go along in the
message. Large ones lie in slots: memory that both processes have mapped. Batches of tensors are
stacked in one from the start, anything else is copied there. The tensors on the other side lie in
the slot, and when the last of them is gone, the slot goes back to its worker. Slots are files
without a name, whose descriptors travel over the socket, so nothing can be left behind.
"""

from __future__ import annotations

import array
import ctypes
import io
import math
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

import numpy

from facula import _C

Tensor = _C.Tensor
INLINE_BYTES = 1 << 18  # below, copying takes less time than to hand over a slot
_PICKLED_BYTES = 1 << 16  # the same for a buffer of a pickle, which goes through the socket
MESSAGE_BYTES = 17 << 16  # of a slot for batches in their short form
_ALIGNMENT = 64
_KEPT_SLOTS, _KEPT_BYTES = 4, 1 << 26  # free ones that are not given back to the system
_MOST_LENT = 32
_MOST_FRESH = 64  # descriptors in one message; the system takes 253


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


def pack(obj: Any, lent: dict[int, int]) -> tuple[bytes, list[memoryview | Placed]]:
    """A pickle, and the large buffers that it refers to.

    ``lent`` has the slots, by address, that tensors were made in: what lies in one of them need
    not be copied.
    """
    large: list[memoryview | Placed] = []
    taken = set()

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _PICKLED_BYTES:
            return True
        number = lent.get(numpy.frombuffer(raw, numpy.uint8).ctypes.data) if lent else None
        if number is None or number in taken:
            large.append(raw)
        else:
            taken.add(number)
            large.append(Placed(number, 0, raw.nbytes))
        return False

    file = io.BytesIO()
    BatchPickler(file, keep_inside).dump(obj)
    return file.getvalue(), large


# ---- slots


class Placed(NamedTuple):
    """Where a buffer lies."""

    slot: int
    begin: int
    size: int


class _Slot:
    def __init__(self, size: int, descriptor: int) -> None:
        self.size = size
        self.mapping = mmap.mmap(descriptor, size)

    def block(self) -> ctypes.Array[ctypes.c_char]:
        """The memory as an object whose end can be watched."""
        return (ctypes.c_char * self.size).from_buffer(self.mapping)


class SlotWriter:
    """The slots of a worker, on its side.

    A slot is *away* from the time a batch in it is sent until the loader is done with it, and
    *lent* while a tensor of the worker itself lies in it.
    """

    def __init__(self) -> None:
        self.slots: dict[int, _Slot] = {}
        self.free: dict[int, None] = {}  # those that were in use last come last
        self.away: set[int] = set()
        self.lent: dict[int, int] = {}  # address -> slot
        self.ended: deque[tuple[int, int]] = deque()  # of lent ones; finalizers append to it
        self.count = 0
        self.fresh: list[tuple[int, int, int]] = []  # number, size, descriptor: not sent so far

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A tensor that lies in a slot of its own; None where there are many of them already."""
        if len(self.lent) >= _MOST_LENT or len(self.fresh) >= _MOST_FRESH:
            return None
        number = self._take(dtype.itemsize * math.prod(shape))
        block = self.slots[number].block()
        address = ctypes.addressof(block)
        self.lent[address] = number
        weakref.finalize(block, self.ended.append, (address, number)).atexit = False
        return _C._tensor_in_buffer(memoryview(block).cast("B"), dtype, shape, None)

    def message(self) -> tuple[int, mmap.mmap]:
        """A slot to write batches to, and its memory."""
        number = self._take(MESSAGE_BYTES)
        return number, self.slots[number].mapping

    def place(self, buffers: list[memoryview | Placed]) -> list[Placed]:
        """Copies those buffers into a slot that lie in none."""
        places: list[Placed | None] = []
        end = 0
        for buffer in buffers:
            if isinstance(buffer, Placed):
                places.append(buffer)
                continue
            places.append(Placed(-1, end, buffer.nbytes))
            end += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT
        if end:
            number = self._take(end)
            self.away.add(number)
            with memoryview(self.slots[number].mapping) as memory:
                for i, buffer in enumerate(buffers):
                    if not isinstance(buffer, Placed):
                        _, begin, size = places[i]
                        memory[begin : begin + size] = buffer
                        places[i] = Placed(number, begin, size)
        return places

    def send_off(self, places: list[Placed]) -> list[Placed]:
        """Called when the batch itself is gone: what still lies in a lent slot is held by the
        worker's own code, which may change it, so the loader gets a copy."""
        self._settle()
        held = {*self.lent.values()} - self.away if self.lent else ()
        for i, (number, _, size) in enumerate(places):
            if number in held:
                with memoryview(self.slots[number].mapping) as memory:
                    (places[i],) = self.place([memory[:size]])
            else:
                self.away.add(number)
                self.free.pop(number, None)
        return places

    def send_form(self, form: bytes, places: list[tuple[int, int, int]]) -> bytes:
        """Called when a batch is gone of which there is the short form, with (slot, bytes, where
        the slot's number stands): what the loader reads by :meth:`SlotReader.load_form`."""
        sent = self.send_off([Placed(slot, 0, size) for slot, size, _ in places])
        numbers = [place.slot for place in sent]
        for number, (slot, _, at) in zip(numbers, places, strict=True):
            if number != slot:
                form = form[:at] + number.to_bytes(8, "little") + form[at + 8 :]
        return struct.pack(f"<I{len(numbers)}q", len(numbers), *numbers) + form

    def release(self, numbers: list[int]) -> None:
        """The loader is done with these."""
        self.away.difference_update(numbers)
        self.free.update(dict.fromkeys(numbers))

    def _settle(self) -> None:
        while self.ended:
            address, number = self.ended.popleft()
            del self.lent[address]
            self.free[number] = None

    def _take(self, size: int) -> int:
        self._settle()
        fitting = [n for n in reversed(self.free) if self.slots[n].size >= size]
        if fitting:  # the first of those: the cache may hold it still
            number = min(fitting, key=lambda n: self.slots[n].size)
            del self.free[number]
            return number
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        descriptor = _C._make_shared_file(size)
        number, self.count = self.count, self.count + 1
        self.slots[number] = _Slot(size, descriptor)
        self.fresh.append((number, size, descriptor))
        return number

    def surplus(self) -> list[int]:
        """Drops free slots beyond some memory, the smallest first, and says which."""
        self._settle()
        dropped, kept, total = [], 0, 0
        for number in sorted(self.free, key=lambda n: -self.slots[n].size):
            total += self.slots[number].size
            if kept >= _KEPT_SLOTS and (total > _KEPT_BYTES or kept >= _MOST_LENT):
                dropped.append(number)
            else:
                kept += 1
        for number in dropped:
            del self.slots[number]
            del self.free[number]
        return dropped

    def take_fresh(self) -> list[tuple[int, int, int]]:
        fresh, self.fresh = self.fresh, []
        return fresh


def _form_head(data: bytes) -> tuple[tuple[int, ...], int]:
    """The slots of a batch in its short form, and where the form begins."""
    (count,) = struct.unpack_from("<I", data)
    return struct.unpack_from(f"<{count}q", data, 4), 4 + 8 * count


class SlotReader:
    """The slots of a worker, on the loader's side."""

    def __init__(self) -> None:
        self.slots: dict[int, _Slot] = {}
        self.descriptors: deque[int] = deque()
        self.released: deque[int] = deque()  # appended to whenever, and wherever, tensors die

    def open(self, made: list[tuple[int, int]]) -> None:
        """Maps new slots, whose descriptors have come."""
        for number, size in made:
            descriptor = self.descriptors.popleft()
            try:
                self.slots[number] = _Slot(size, descriptor)
            finally:
                os.close(descriptor)

    def load(self, data: bytes) -> Any:
        """The batch of a message whose large buffers are in slots."""
        places, inner = pickle.loads(data)
        memory: dict[int, memoryview] = {}
        for number, _, _ in places:
            if number not in memory:
                memory[number] = memoryview(self.block(number)).cast("B")
        return pickle.loads(inner, buffers=[memory[i][b : b + n] for i, b, n in places])

    def load_form(self, data: bytes) -> Any:
        """The batch of a message that is its short form, with tensors in slots."""
        return _C._unpack_batch(memoryview(data)[_form_head(data)[1] :], self.block)

    def form_bytes(self, data: bytes) -> int:
        """How much shared memory a batch takes."""
        return sum(self.slots[number].size for number in _form_head(data)[0])

    def discard_form(self, data: bytes) -> None:
        """Frees the slots of a batch that nobody reads."""
        self.released.extend(_form_head(data)[0])

    def block(self, number: int) -> ctypes.Array[ctypes.c_char]:
        """A slot's memory; the slot is free again when it is gone."""
        block = self.slots[number].block()
        weakref.finalize(block, self.released.append, number).atexit = False
        return block

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
        self.memory = memoryview(bytearray(1 << 18))

    def receive(self) -> memoryview:
        """What has arrived, without waiting for more; nothing at the end of the stream."""
        size, ancillary, _, _ = self.sock.recvmsg_into(
            [self.memory],
            socket.CMSG_SPACE(4 * _MOST_FRESH),
            socket.MSG_DONTWAIT | getattr(socket, "MSG_CMSG_CLOEXEC", 0),
        )
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
                self.descriptors.extend(found)
        return self.memory[:size]
