"""The functions that the driver of the tests (cpp/fake_cuda_driver.cpp) has for programs on it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any, NamedTuple

fake = ctypes.CDLL(os.environ["FACULA_CUDA_PATH"] + "/libcuda.so.1")
for _name in ("launches", "launches_on", "misuses", "contexts", "events", "used"):
    getattr(fake, f"fake_cuda_{_name}").restype = ctypes.c_uint64
fake.fake_cuda_journal.restype = ctypes.c_char_p


def launches(device: int | None = None) -> int:
    """Kernels launched so far, on one device or on all."""
    return fake.fake_cuda_launches() if device is None else fake.fake_cuda_launches_on(device)


def current_context() -> int:
    """The device whose context is current on this thread, as any library sees it; -1: none."""
    return fake.fake_cuda_current()


def fail(function: str, code: int, times: int = 1) -> None:
    """Lets the next calls of a function of the driver give an error."""
    fake.fake_cuda_fail(function.encode(), code, times)


def hold(on: bool) -> None:
    """While the device is held, nothing that was queued is done."""
    fake.fake_cuda_hold(int(on))


class Work(NamedTuple):
    """What was queued: "launch", "copy", "set", "graph", "record" or "wait"."""

    kind: str
    device: int
    stream: int
    event: int


def journal(work: Callable[[], Any]) -> list[Work]:
    """What a function queues."""
    fake.fake_cuda_keep_journal()
    work()
    lines = fake.fake_cuda_journal().decode().splitlines()
    return [Work(kind, *map(int, rest)) for kind, *rest in map(str.split, lines)]


def comes_before(log: list[Work], first: int, second: int) -> bool:
    """Whether streams and events make entry `first` of a journal end before `second` begins."""
    done: set[Any] = {(log[first].device, log[first].stream)}
    for place in range(first + 1, second + 1):
        entry = log[place]
        stream = (entry.device, entry.stream)
        if entry.kind == "record":
            done.discard(entry.event)
            if stream in done:
                done.add(entry.event)
        elif entry.kind == "wait" and entry.event in done:
            done.add(stream)
    return (log[second].device, log[second].stream) in done


def refused(kind: type[BaseException], words: str, work: Callable[..., Any], *args: Any) -> None:
    """Fails unless the call raises an exception of this very type whose text has the words."""
    try:
        work(*args)
    except BaseException as error:
        assert type(error) is kind, (type(error), error)
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")
