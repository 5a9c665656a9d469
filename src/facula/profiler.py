"""Where the time of a program goes: per-operator tables and traces for browsers, step by step.

Example::

    >>> from facula.profiler import profile, record_function
    >>> with profile(record_shapes=True) as p:
    ...     with record_function("my part"):
    ...         _ = facula.ones(3, 3) @ facula.ones(3, 3)
    >>> "my part" in [e.key for e in p.key_averages()]
    True
"""

from __future__ import annotations

import enum
import gzip
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from facula import _C
from facula.autograd._event_trace import device_properties, trace_events
from facula.autograd.profiler import (
    device_to_record,
    prepare_device,
    record_function,
    warn_of_what_is_not_recorded,
)
from facula.autograd.profiler import profile as _Recorder
from facula.autograd.profiler_util import DeviceType, EventList, FunctionEventAvg

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What is recorded."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What the profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded here: operators on the host, and what CUDA devices do where there are
    a device and CUPTI.

    Example::

        >>> facula.profiler.ProfilerActivity.CPU in facula.profiler.supported_activities()
        True
    """
    cuda = {ProfilerActivity.CUDA} if _C._cuda_can_profile() else set()
    return {ProfilerActivity.CPU} | cuda


def kineto_available() -> bool:
    """False: the record is Facula's own."""
    return False


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Says for each step what the profiler does: in cycles of waiting, warming up and recording.

    Args:
        wait: steps without recording.
        warmup: steps before recording.
        active: steps that are recorded.
        repeat: how many cycles; 0 goes on until the end.
        skip_first: steps before the first cycle.
        skip_first_wait: 1 leaves the waiting of the first cycle out.

    Example::

        >>> plan = facula.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            "Invalid profiler schedule arguments: active must be positive and the others not "
            f"negative, got wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}"
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """For ``on_trace_ready``: writes each trace to a file of its own in a folder."""

    def write(p: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        p.export_chrome_trace(os.path.join(dir_name, name))

    return write


_HERE = (ProfilerActivity.CPU, ProfilerActivity.CUDA)
_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Records the operators that run in a block.

    Args:
        activities: what to record: operators on the host (``ProfilerActivity.CPU``), what CUDA
            devices do (``ProfilerActivity.CUDA``); by default all that can be recorded here.
        schedule: step -> :class:`ProfilerAction`; by default everything is recorded. The program
            calls :meth:`step` after each step.
        on_trace_ready: called with the profiler when a cycle of the schedule is over.
        record_shapes: whether the shapes of arguments are kept.
        profile_memory: whether tables show allocated memory.
        with_flops: whether floating-point operations are counted.
        with_stack, with_modules: not recorded; asking for them warns.
        acc_events: whether events of all cycles are kept, rather than those of the last.

    Example::

        >>> from facula.profiler import profile, schedule
        >>> def ready(p):
        ...     print("recorded", sum(e.name == "ProfilerStep*" for e in p.events()), "steps")
        >>> with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as p:
        ...     for _ in range(4):
        ...         _ = facula.ones(3) + 1
        ...         p.step()
        recorded 2 steps
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ) -> None:
        wanted = supported_activities() if activities is None else set(activities)
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
            cuda = {ProfilerActivity.CUDA}
            wanted = wanted | cuda if use_cuda else wanted - cuda
        if not wanted:
            raise AssertionError("No valid profiler activities found")
        elsewhere = [a for a in ProfilerActivity if a in wanted and a not in _HERE]
        for activity in elsewhere:
            warnings.warn(
                f"{activity.name} is not available, disabling {activity.name} profiling",
                stacklevel=2,
            )
        warn_of_what_is_not_recorded(with_stack=with_stack, with_modules=with_modules)
        self.activities = wanted
        self.use_device = device_to_record("cuda" if ProfilerActivity.CUDA in wanted else None)
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_flops = with_flops
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._recorder: _Recorder | None = None
        self._warming = False
        self._step: record_function | None = None
        self._events: EventList | None = None
        self._metadata: dict[str, Any] = {}

    # ---- recording

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with the first step."""
        self._begin_step()

    def stop(self) -> None:
        """Ends; what was recorded of an unfinished cycle is a trace, too."""
        self._end_step()
        if self._recorder is not None:
            self._finish_trace()
        elif self._warming:
            _C._cuda_stop_profile()

    def step(self) -> None:
        """Says that a step of the program is over."""
        self._end_step()
        self.step_num += 1  # a handler of the trace sees the steps that are done
        if self.current_action is ProfilerAction.RECORD_AND_SAVE:
            self._finish_trace()
        self.current_action = self.schedule(self.step_num)
        if self._recorder is not None and self.current_action not in _RECORDING:
            self._finish_trace()
        self._begin_step()

    def _begin_step(self) -> None:
        if self.current_action in _RECORDING and self._recorder is None:
            self._recorder = _Recorder(
                use_device=self.use_device,
                use_cpu=ProfilerActivity.CPU in self.activities,
                record_shapes=self.record_shapes,
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
            )
            self._recorder.__enter__()
            self._warming = False
        elif self.current_action is ProfilerAction.WARMUP and self.use_device is not None:
            # Its start takes long; the steps that are recorded shall not show it.
            self._warming = prepare_device()
        if self.record_steps and self._recorder is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _finish_trace(self) -> None:
        assert self._recorder is not None
        self._recorder.__exit__(None, None, None)
        found = self._recorder.function_events
        self._recorder = None
        if self.acc_events and self._events is not None:
            found = found.like([*self._events, *found])
        self._events = found
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # ---- what was recorded

    def events(self) -> EventList:
        """The events of the last trace, in the order in which they began."""
        if self._events is None:
            raise AssertionError("no trace is complete: leave the with block, or call step()")
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry for each name, or for each name and shapes; ``.table()`` shows them."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        return self.events().total_average()

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the traces."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds an object, given as JSON, to the traces."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times; see ``EventList.export_stacks``. None are recorded, so
        the file is empty."""
        self.events().export_stacks(path, metric)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the trace for the viewers of browsers (Perfetto, ``chrome://tracing``); a name
        that ends with ``.gz`` is compressed.

        Example::

            >>> import json, tempfile
            >>> with facula.profiler.profile() as p:
            ...     _ = facula.ones(2).exp()
            >>> with tempfile.NamedTemporaryFile() as file:
            ...     p.export_chrome_trace(file.name)
            ...     [e["name"] for e in json.load(file)["traceEvents"]][-1]
            'aten::exp'
        """
        events = self.events()
        trace = {
            "schemaVersion": 1,
            "deviceProperties": device_properties(events),
            "traceName": os.fspath(path),
            "displayTimeUnit": "ms",
            **self._metadata,
            "traceEvents": trace_events(events),
        }
        text = json.dumps(trace)
        if os.fspath(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as packed:
                packed.write(text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
