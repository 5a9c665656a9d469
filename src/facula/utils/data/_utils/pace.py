"""Who makes the batches of a loader: its workers, or the loader itself when that is quicker."""

from __future__ import annotations

import os
from typing import Any

import facula

_START_SECONDS = 0.01  # of a worker process
_HANDOVER_SECONDS = 20e-6  # what a batch of a worker process costs the loader at least
_HANDOVER_RATE = 40e9  # bytes of such batches in a second
_COPY_RATE = 1e9  # bytes in a second: who makes so many only copies, and memory is there once
_WORKER_FACTOR = 1.2  # by which a worker is slower, which others disturb
_BELIEVED_SECONDS = 20e-6  # whoever measured that
_TINY_SECONDS = 100e-6  # handing the interpreter to a thread and back takes as long
_SMALL_SECONDS = 500e-6  # so do threads that wait for each other
_DOUBT_OF_ALONE = 0.7  # for each epoch since: it may have been others that made it slow
_TRIED_SECONDS = 5e-3  # the loader finds out what a batch of threads takes without them


def bytes_in(batch: Any) -> int:
    """How much memory the tensors of a batch take."""
    if isinstance(batch, facula.Tensor):
        return batch.nbytes
    if isinstance(batch, dict):
        batch = batch.values()
    elif not isinstance(batch, (list, tuple)):
        return 0
    return sum(map(bytes_in, batch))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pace:
    """How long a loader's batches take to make, and how long the program pauses between them.

    Args:
        threads: whether workers are threads.
        workers: how many there are.
        goes_back: whether workers may take over in mid-epoch.
    """

    def __init__(self, threads: bool, workers: int, goes_back: bool = True) -> None:
        self.threads, self.workers, self.goes_back = threads, workers, goes_back
        self.processors = _processors()
        self.seconds: float | None = None
        self.latest = 0.0  # the same as it was measured last
        self.alone: float | None = None  # the same where the loader made what threads might
        self.between: float | None = None  # seconds from batch to batch of threads
        self.pause = 0.0
        self.bytes = 0
        self.saved = 0.0  # seconds that processes would have saved so far
        self.doubt = 1.0  # grows when they did not
        self.failed = False  # a batch could not be made here
        self.unreadable = False  # nor may one be, which it takes a while to find out

    def is_of_others(self, threads: bool, workers: int) -> bool:
        """Whether the loader's options have been changed since."""
        return (self.threads, self.workers) != (threads, workers)

    def note(self, seconds: float | None, pause: float | None, count: int) -> None:
        """Takes in what was measured while the loader made so many batches."""
        # What takes long may be another program's doing: it is believed bit by bit.
        if seconds is not None:
            self.latest = seconds
            self.seconds = min(seconds, 2 * (self.seconds or 0.0) + _BELIEVED_SECONDS)
            if self.threads:
                self.alone = seconds
        if pause is not None:
            self.pause = min(pause, 2 * self.pause + _BELIEVED_SECONDS)
        if not self.threads and self.seconds is not None:
            self.saved = max(0.0, self.saved + count * self._saving(self.seconds))

    def note_workers(self, seconds: float) -> None:
        """Takes in how long it took from batch to batch while workers made them."""
        if self.threads:
            self.between = seconds
            if self.alone is not None:
                self.alone *= _DOUBT_OF_ALONE
            return
        if self.seconds is not None and seconds > self.seconds + self.pause:
            self.saved = 0.0
            self.doubt *= 4

    def _copies(self, seconds: float) -> bool:
        return self.bytes > seconds * _COPY_RATE

    def _saving(self, seconds: float) -> float:
        """Seconds of the loader that processes would save with each batch."""
        at_once = 1 if self._copies(seconds) else min(self.workers, self.processors)
        waits = seconds * _WORKER_FACTOR / at_once - self.pause
        return seconds - max(waits, _HANDOVER_SECONDS + self.bytes / _HANDOVER_RATE)

    def suits_loader(self) -> bool:
        """Whether the loader should make batches itself.

        Processes must have saved what it takes to start them; until it is known how long a batch
        takes, the loader makes them. Threads are there at once, and begin. Whether they help
        depends on how long the code goes without the interpreter, so it is tried.
        """
        if self.failed:
            return False
        if not self.threads:
            return self.saved < _START_SECONDS * self.workers * self.doubt
        seconds = self.seconds
        if seconds is None:
            return False
        if seconds <= _TINY_SECONDS:
            return True
        if self._copies(seconds):
            return self.pause < seconds
        if self.between is None or not self.goes_back:
            return seconds <= _SMALL_SECONDS and self.pause < seconds / 4
        if self.alone is None:
            return seconds <= _TRIED_SECONDS
        return self.alone + self.pause <= self.between
