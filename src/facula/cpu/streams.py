"""Streams and events of the host, for programs that have one text for every device.

Operators on the host are done when they return, so there is nothing to wait for.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["Event", "Stream", "StreamContext", "current_stream", "stream"]


class Stream:
    """Stands where programs want a queue of work; work on the host runs at once.

    Example::

        >>> with facula.cpu.stream(facula.cpu.Stream()):
        ...     x = facula.ones(2)
        >>> x
        tensor([1., 1.])
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Returns at once."""

    def record_event(self) -> None:
        """Returns at once."""

    def wait_event(self, event: Any) -> None:
        """Returns at once."""


class Event:
    """Stands where programs want to know that work is done; on the host it always is.

    Example::

        >>> facula.cpu.Event().query()
        True
    """

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Returns at once."""

    def synchronize(self) -> None:
        """Returns at once."""

    def wait(self, stream: Any = None) -> None:
        """Returns at once."""


class _Current(threading.local):
    stream: Stream | None = None


_default = Stream()
_current = _Current()


def current_stream(device: Any = None) -> Stream:
    """The stream of the innermost ``with stream(...)``, or the default one.

    Example::

        >>> type(facula.cpu.current_stream()).__name__
        'Stream'
    """
    return _current.stream or _default


class StreamContext:
    """Makes a stream the current one inside of a ``with`` block; None changes nothing.

    Example::

        >>> with facula.cpu.StreamContext(None):
        ...     facula.ones(1)
        tensor([1.])
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[Stream | None] = []

    def __enter__(self) -> None:
        self._before.append(_current.stream)
        if self.stream is not None:
            _current.stream = self.stream

    def __exit__(self, *exception: object) -> None:
        _current.stream = self._before.pop()


def stream(stream: Stream | None) -> StreamContext:
    """A ``with`` block in which a stream is the current one.

    Example::

        >>> s = facula.cpu.Stream()
        >>> with facula.cpu.stream(s):
        ...     facula.cpu.current_stream() is s
        True
    """
    return StreamContext(stream)
