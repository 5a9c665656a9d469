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
from facula.autograd._event_log import Wanted, events_of_log
from facula.autograd.profiler_util import (
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
)

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


def warn_of_what_is_not_recorded(**asked_for: bool) -> None:
    """Neither the stack nor the modules of a call are recorded."""
    for name, on in asked_for.items():
        if on:
            warnings.warn(f"profile({name}=True): these are not recorded", stacklevel=3)


def device_to_record(name: str | None) -> str | None:
    """The device whose times a profile can record, of the one that it is asked for."""
    if name in (None, "cpu"):
        return None
    if name != "cuda":
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=3)
        return None
    if not _C._cuda_is_available():
        warnings.warn(
            "CUDA is not available, disabling CUDA profiling: " + _C._cuda_unavailable_reason(),
            stacklevel=3,
        )
        return None
    return name


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def prepare_device(start: bool = False, memory: bool = False) -> bool:
    """Lets CUPTI record, or start what is kept; warns and gives False where it cannot."""
    try:
        if start:
            _C._cuda_start_profile(memory)
        else:
            _C._cuda_prepare_profile()
    except RuntimeError as error:
        _warn_once(f"Only times of the host are recorded, none of devices. {error}")
        return False
    return True


class profile:
    """Records the operators that run in a block, in all threads.

    Args:
        enabled: False does nothing.
        use_device: "cuda" records kernels, copies and fills, too, each with the operator that it
            was queued by; this needs CUPTI, which comes with ``facula[cuda]``.
        use_cuda: the older form of ``use_device="cuda"``.
        record_shapes: whether the shapes of the arguments are kept.
        with_flops: whether floating-point operations of products, convolutions, attention, sums and
            elementwise products are counted.
        profile_memory: whether tables show allocated memory.
        use_cpu: False leaves the operators out and keeps what devices did.

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
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use "
                "``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = use_device or "cuda"
        if enabled:
            warn_of_what_is_not_recorded(with_stack=with_stack, with_modules=with_modules)
            use_device = device_to_record(use_device)
        self.enabled = enabled
        self.use_device, self.use_cpu = use_device, use_cpu
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.entered = False
        self._on_device = False
        self._events: EventList | None = None

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if _C._profiling():
            raise RuntimeError("another profiler is recording; profilers cannot be nested")
        self.entered = True
        if self.use_device is not None:
            self._on_device = prepare_device(start=True, memory=self.profile_memory)
        self._begin = _C._profile_clock()
        _C._start_profiling(self.record_shapes or self.with_flops)
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.enabled:
            return
        log = _C._stop_profiling()
        device_log = None
        if self._on_device:
            activities, calls, dropped = _C._cuda_stop_profile()
            device_log = activities, calls
            if dropped:
                warnings.warn(f"CUPTI had no room for {dropped} records", stacklevel=2)
        wanted = Wanted(
            use_cpu=self.use_cpu,
            use_device="cuda" if self._on_device else None,
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )
        self._events = events_of_log(log, device_log, self._begin, wanted)

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
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
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

    @property
    def self_device_time_total(self) -> float:
        """Microseconds of all that devices did."""
        return self._finished().self_device_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file for the trace viewers of browsers."""
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times; see :meth:`EventList.export_stacks`."""
        events = self._finished()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

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


class _Marks:
    """A block in which operators would be ranges of another program's profiler."""

    _program: str

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> _Marks | None:
        if not self.enabled:
            return None
        raise RuntimeError(
            f"{type(self).__name__}(): operators make no ranges for {self._program}; "
            "facula.profiler.profile records them, and enabled=False does nothing"
        )

    def __exit__(self, *exc: object) -> None:
        pass


class emit_nvtx(_Marks):
    """Raises when it is entered: operators make no ranges for NVIDIA's profilers. Those that a
    program makes itself, with ``facula.cuda.nvtx``, arrive there.

    Args:
        enabled: False does nothing.
        record_shapes: for programs of PyTorch.

    Example::

        >>> with facula.autograd.profiler.emit_nvtx(enabled=False):
        ...     facula.ones(2) + 1
        tensor([2., 2.])
    """

    _program = "NVIDIA's profilers"


class emit_itt(_Marks):
    """Raises when it is entered: operators make no ranges for VTune.

    Args:
        enabled: False does nothing.
        record_shapes: for programs of PyTorch.

    Example::

        >>> with facula.autograd.profiler.emit_itt(enabled=False):
        ...     facula.ones(2) + 1
        tensor([2., 2.])
    """

    _program = "VTune"
