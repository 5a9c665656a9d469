"""Streams and events: queues of work on a device, and marks in them."""

from __future__ import annotations

import ctypes
from typing import Any

from facula import _C
from facula.cuda._devices import index_of

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]


class Stream:
    """A queue of work: what is in one runs in order, what is in several runs side by side.

    Streams come from a pool of 32 for each device and priority and are never destroyed.

    Args:
        device: where; the current device by default.
        priority: lower numbers run first; 0 is the lowest priority.
        stream_id, device_index, device_type: those of another stream: this one is the same queue.

    Example::

        >>> if facula.cuda.is_available():
        ...     s = facula.cuda.Stream()
        ...     with facula.cuda.stream(s):
        ...         x = facula.ones(3, device="cuda")
        ...     facula.cuda.current_stream().wait_stream(s)
    """

    device_type = 1

    def __init__(
        self,
        device: Any = None,
        priority: int = 0,
        *,
        stream_ptr: int | None = None,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> None:
        if stream_id is not None:
            if device_index is None or device_type != Stream.device_type:
                raise ValueError(
                    "a stream_id needs the device_index and the device_type of its stream "
                    f"({Stream.device_type} for CUDA), got {device_index} and {device_type}"
                )
            device, stream_ptr = device_index, stream_id
        self.device_index = index_of(device)
        if stream_ptr is None:
            stream_ptr = _C._cuda_stream_new(self.device_index, priority)
        self.cuda_stream = stream_ptr

    @property
    def device(self) -> _C.device:
        """The device of the stream."""
        return _C.device("cuda", self.device_index)

    @property
    def stream_id(self) -> int:
        """A number that tells streams of a device apart."""
        return self.cuda_stream

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    @property
    def priority(self) -> int:
        """Lower numbers run first."""
        return _C._cuda_stream_priority(self.device_index, self.cuda_stream)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority."""
        return _C._cuda_stream_priority_range(_C._cuda_current_device())

    def wait_event(self, event: Event) -> None:
        """Work queued from now on waits for the event; the program does not."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Work queued from now on waits for the work that is in another stream now."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Puts a mark, a new one by default, behind the work that is in the stream now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """True when all work is done."""
        return _C._cuda_stream_query(self.device_index, self.cuda_stream)

    def synchronize(self) -> None:
        """Waits until all work is done."""
        _C._cuda_stream_synchronize(self.device_index, self.cuda_stream)

    def is_capturing(self) -> bool:
        """True while the stream's work becomes a graph."""
        return _C._cuda_stream_is_capturing(self.device_index, self.cuda_stream)

    def __enter__(self) -> Stream:
        self._entered = [*getattr(self, "_entered", []), StreamContext(self)]
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entered.pop().__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and self.cuda_stream == other.cuda_stream
            and self.device_index == other.device_index
        )

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device_index))

    def __repr__(self) -> str:
        return f"<facula.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its address; that library keeps it alive.

    Example::

        >>> if facula.cuda.is_available():
        ...     s = facula.cuda.Stream()
        ...     assert facula.cuda.ExternalStream(s.cuda_stream, s.device) == s
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, stream_ptr=int(stream_ptr))


class Event:
    """A mark in a stream: other streams or the program can wait for it, and it tells the time.

    Args:
        enable_timing: whether ``elapsed_time`` can be asked.
        blocking: the program sleeps while it waits, instead of polling.
        interprocess: events that other processes can use do not exist here.

    Example::

        >>> if facula.cuda.is_available():
        ...     start, end = (facula.cuda.Event(enable_timing=True) for _ in range(2))
        ...     start.record()
        ...     end.record()
        ...     end.synchronize()
        ...     assert start.elapsed_time(end) >= 0
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError("Event(interprocess=True) is not supported")
        self.enable_timing, self.blocking = enable_timing, blocking
        self.cuda_event = 0
        self.device_index = -1

    @property
    def device(self) -> _C.device | None:
        """Where it was recorded; None before that."""
        return None if self.device_index < 0 else _C.device("cuda", self.device_index)

    @property
    def event_id(self) -> int:
        """A number that tells events apart; 0 before the first ``record``."""
        return self.cuda_event

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark behind the work that is in the stream, the current one by default."""
        stream = current_stream() if stream is None else stream
        if self.device_index not in (-1, stream.device_index):
            raise RuntimeError(
                f"Event device cuda:{self.device_index} does not match recording stream's device "
                f"{stream.device}."
            )
        if not self.cuda_event:
            self.device_index = stream.device_index
            self.cuda_event = _C._cuda_event_new(
                self.device_index, self.enable_timing, self.blocking
            )
        _C._cuda_event_record(self.device_index, self.cuda_event, stream.cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Work that is queued in the stream, the current one by default, waits for the mark."""
        if self.cuda_event:
            stream = current_stream() if stream is None else stream
            _C._cuda_stream_wait(stream.device_index, stream.cuda_stream, self.cuda_event)

    def query(self) -> bool:
        """True when the work before the mark is done, and before the first ``record``."""
        return not self.cuda_event or _C._cuda_event_query(self.device_index, self.cuda_event)

    def synchronize(self) -> None:
        """Waits until the work before the mark is done."""
        if self.cuda_event:
            _C._cuda_event_synchronize(self.device_index, self.cuda_event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between the mark and another one; both must be done."""
        if not self.cuda_event or not end_event.cuda_event:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True' to ask for the "
                "elapsed time."
            )
        if self.device_index != end_event.device_index:
            raise RuntimeError(
                f"Both events must be recorded on the same device, but they are on {self.device} "
                f"and {end_event.device}."
            )
        if not (self.query() and end_event.query()):
            raise RuntimeError(
                "Both events must be completed before calculating elapsed time; call "
                "synchronize() on the later one."
            )
        return _C._cuda_event_elapsed(self.device_index, self.cuda_event, end_event.cuda_event)

    def ipc_handle(self) -> bytes:
        """Events that other processes can use do not exist here."""
        raise NotImplementedError("events cannot be shared with other processes")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """Events that other processes can use do not exist here."""
        raise NotImplementedError("events cannot be shared with other processes")

    # The function is an argument since the module's names may be gone when Python ends.
    def __del__(self, free: Any = _C._cuda_event_free) -> None:
        event, self.cuda_event = getattr(self, "cuda_event", 0), 0
        if event:
            free(self.device_index, event)

    def __repr__(self) -> str:
        where = f"{self.cuda_event:#x}" if self.cuda_event else "uninitialized"
        return f"<facula.cuda.Event {where}>"


def current_stream(device: Any = None) -> Stream:
    """The stream that work of this thread goes to."""
    index = index_of(device)
    return Stream(index, stream_ptr=_C._cuda_stream_current(index))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The stream that another library made, by its address, as :class:`ExternalStream`."""
    return ExternalStream(data_ptr, device)


def default_stream(device: Any = None) -> Stream:
    """The stream that a device starts with."""
    return Stream(index_of(device), stream_ptr=0)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream and its device current; None changes nothing. Prefer :func:`stream`."""
    if stream is not None:
        _C._cuda_set_device(stream.device_index)
        _C._cuda_stream_set(stream.device_index, stream.cuda_stream)


class StreamContext:
    """Makes a stream and its device current inside ``with``; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        stream = self.stream
        if stream is None:
            return
        self._device = _C._cuda_current_device()
        self._before = _C._cuda_stream_current(stream.device_index)
        set_stream(stream)

    def __exit__(self, *exc: object) -> None:
        stream = self.stream
        if stream is None:
            return
        _C._cuda_stream_set(stream.device_index, self._before)
        _C._cuda_set_device(self._device)


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes to ``stream``."""
    return StreamContext(stream)
