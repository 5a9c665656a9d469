"""Events that a program logs, and statistics that become events.

Example::

    >>> from datetime import timedelta
    >>> from facula import monitor
    >>> seen = []
    >>> handle = monitor.register_event_handler(lambda event: seen.append(event.data))
    >>> loss = monitor.Stat("loss", [monitor.MEAN], timedelta(minutes=1), max_samples=2)
    >>> loss.add(1.), loss.add(2.)
    (None, None)
    >>> seen
    [{'loss.mean': 1.5}]
    >>> monitor.unregister_event_handler(handle)
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from facula.utils.tensorboard import SummaryWriter

__all__ = [
    "COUNT",
    "MAX",
    "MEAN",
    "MIN",
    "STAT_EVENT",
    "SUM",
    "VALUE",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

data_value_t = Union[str, float, int, bool]  # noqa: UP007 - a type that programs import
STAT_EVENT = "torch.monitor.Stat"  # PyTorch's name, which handlers compare with


class Aggregation(enum.Enum):
    """What a :class:`Stat` makes of the numbers of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN


class Event:
    """Something that happened: its kind, when, and what is known of it.

    Args:
        name: the kind of event.
        timestamp: when it happened.
        data: names and values.

    Example::

        >>> from datetime import datetime
        >>> event = facula.monitor.Event("epoch", datetime(2025, 1, 1), {"loss": 0.5})
        >>> event.name, event.data
        ('epoch', {'loss': 0.5})
    """

    def __init__(self, name: str, timestamp: datetime, data: dict[str, data_value_t]) -> None:
        self.name, self.timestamp, self.data = name, timestamp, data


class EventHandlerHandle:
    """What :func:`register_event_handler` returns, to take the handler back.

    Example::

        >>> handle = facula.monitor.register_event_handler(print)
        >>> isinstance(handle, facula.monitor.EventHandlerHandle)
        True
        >>> facula.monitor.unregister_event_handler(handle)
    """

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Has a function called with every event that is logged.

    Args:
        callback: the function.

    Example::

        >>> from datetime import datetime
        >>> handle = facula.monitor.register_event_handler(lambda event: print(event.name))
        >>> facula.monitor.log_event(facula.monitor.Event("start", datetime.now(), {}))
        start
        >>> facula.monitor.unregister_event_handler(handle)
    """
    if not callable(callback):
        raise TypeError(f"the handler must be a function, got {type(callback).__name__}")
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Ends what :func:`register_event_handler` began.

    Args:
        handler: what it returned.

    Example::

        >>> handle = facula.monitor.register_event_handler(print)
        >>> facula.monitor.unregister_event_handler(handle)
    """
    if handler not in _handlers:
        raise RuntimeError("the event handler is not registered")
    _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Hands an event to all handlers.

    Args:
        event: the event.

    Example::

        >>> from datetime import datetime
        >>> facula.monitor.log_event(facula.monitor.Event("start", datetime.now(), {}))
    """
    for handle in tuple(_handlers):
        handle._callback(event)


class Stat:
    """Statistics of numbers over windows of time; each window ends with an event.

    Args:
        name: stands before the name of each statistic in the event.
        aggregations: which statistics.
        window_size: how long a window is.
        max_samples: a window ends when it has so many numbers; further ones count for the next.

    Example::

        >>> from datetime import timedelta
        >>> stat = facula.monitor.Stat("size", [facula.monitor.MAX], timedelta(minutes=1))
        >>> stat.add(3.)
        >>> stat.name, stat.count
        ('size', 1)
    """

    def __init__(
        self,
        name: str,
        aggregations: Iterable[Aggregation],
        window_size: timedelta,
        max_samples: int | None = None,
    ) -> None:
        self.name, self._aggregations = name, tuple(aggregations)
        self._window, self._most = window_size, max_samples
        self._lock = threading.Lock()
        self._values: list[float] = []
        self._last: dict[Aggregation, float] = {}
        self._begin = datetime.now()

    @property
    def count(self) -> int:
        """How many numbers the current window has."""
        with self._lock:
            return len(self._values)

    def add(self, v: float) -> None:
        """Adds a number, and logs an event when that ends a window."""
        with self._lock:
            late = self._end_if_over()
            self._values.append(float(v))
            full = self._most is not None and len(self._values) >= self._most
            events = [e for e in (late, self._end() if full else None) if e is not None]
        for event in events:
            log_event(event)

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the last window that ended."""
        with self._lock:
            event = self._end_if_over()
            result = dict(self._last)
        if event is not None:
            log_event(event)
        return result

    def _end_if_over(self) -> Event | None:
        return self._end() if datetime.now() - self._begin >= self._window else None

    def _end(self) -> Event | None:
        values, self._values, self._begin = self._values, [], datetime.now()
        if not values:
            return None
        known = {
            VALUE: values[-1],
            MEAN: sum(values) / len(values),
            COUNT: float(len(values)),
            SUM: sum(values),
            MAX: max(values),
            MIN: min(values),
        }
        self._last = {a: known[a] for a in self._aggregations}
        data: dict[str, data_value_t] = {
            f"{self.name}.{a.name.lower()}": v for a, v in self._last.items()
        }
        return Event(STAT_EVENT, self._begin, data)


class TensorboardEventHandler:
    """Writes the numbers of :class:`Stat` events as scalars.

    Args:
        writer: where they go.

    Example::

        >>> from facula.utils.tensorboard import SummaryWriter
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     handle = facula.monitor.register_event_handler(
        ...         facula.monitor.TensorboardEventHandler(writer))
        ...     facula.monitor.unregister_event_handler(handle)
    """

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
