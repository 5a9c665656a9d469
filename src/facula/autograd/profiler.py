"""Which operators a program calls, how often and for how long.

Example::

    >>> with facula.autograd.profiler.profile() as p:
    ...     _ = facula.ones(3) + 1
    >>> [e.name for e in p.function_events if e.cpu_parent is None]
    ['aten::ones', 'aten::add']
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.autograd.profiler_util import DeviceType, EventList, FunctionEvent, FunctionEventAvg

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "profile",
    "record_function",
]


def warn_of_what_is_not_recorded(*, device: bool, **asked_for: bool) -> None:
    """Only names, times on the host, shapes and memory are recorded."""
    if device:
        warnings.warn(
            "profile() records operators on the host; times on the device are not", stacklevel=3
        )
    for name, on in asked_for.items():
        if on:
            warnings.warn(f"profile({name}=True): these are not recorded", stacklevel=3)


class profile:
    """Records the operators that run in a block, in all threads.

    Times are those of the calling host threads; what a CUDA device does after an operator has
    returned is not in them.

    Args:
        enabled: False does nothing.
        record_shapes: whether the shapes of the arguments are kept.
        profile_memory: whether tables show allocated host memory.

    Example::

        >>> x = facula.ones(2, requires_grad=True)
        >>> with facula.autograd.profiler.profile(record_shapes=True) as p:
        ...     (x * 2).sum().backward()
        >>> p.key_averages().table(sort_by="count").splitlines()[1].split()[0]
        'Name'
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        if enabled:
            warn_of_what_is_not_recorded(
                device=use_cuda or use_device not in (None, "cpu"),
                with_stack=with_stack,
                with_flops=with_flops,
                with_modules=with_modules,
            )
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.entered = False
        self._events: EventList | None = None

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if _C._profiling():
            raise RuntimeError("another profiler is recording; profilers cannot be nested")
        self.entered = True
        self._begin = _C._profile_clock()
        _C._start_profiling(self.record_shapes)
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            log = _C._stop_profiling()
            self._events = EventList.from_log(
                log, self._begin, self.profile_memory, self.record_shapes
            )

    def _finished(self) -> EventList:
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running: leave its with block first")
        return self._events

    @property
    def function_events(self) -> EventList:
        """The events in the order in which they began."""
        return self._finished()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as a table; see :meth:`EventList.table`."""
        return self._finished().table(*args, **kwargs)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """One entry for each name, or for each name and shapes."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return self._finished().self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file for the trace viewers of browsers."""
        self._finished().export_chrome_trace(path)

    def __repr__(self) -> str:
        return (
            "<unfinished facula.autograd.profile>" if self._events is None else repr(self._events)
        )

    def __str__(self) -> str:
        return repr(self) if self._events is None else str(self._events)


class record_function:
    """Gives a block a name in the profiler's record; also a decorator.

    Args:
        name: what tables call it.
        args: a text that is added to the name in traces.

    Example::

        >>> with facula.autograd.profiler.profile() as p:
        ...     with facula.autograd.profiler.record_function("my block"):
        ...         _ = facula.empty(3)
        >>> [e.name for e in p.function_events]
        ['my block', 'aten::empty']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: Any = None

    def __enter__(self) -> record_function:
        if _C._profiling():
            self._open = _C._ProfiledRange(self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded
