"""Workers that are threads: they share the dataset, nothing is copied, starting costs nothing."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from typing import Any, NamedTuple

import facula
from facula import _C
from facula.random import worker as random_state
from facula.utils.data._utils import MP_STATUS_CHECK_INTERVAL
from facula.utils.data._utils.worker import READY, Batches, Job, acting_as, append_tasks

_QUICK_SECONDS = 0.0005  # what takes longer is handed over at once
_FLUSH_SECONDS = 0.002  # a loader waits no longer for more of what is there
# Threads hand the interpreter over when they wait, or else after milliseconds: the fewer times, the
# better.
_PATIENCE = 0.001


class _Answer(NamedTuple):
    """Among batches: what is none."""

    kind: int
    content: Any


class _Epoch:
    """What a loader and its worker share while an epoch lasts."""

    def __init__(self, skipped: int) -> None:
        self.skipped = skipped
        self.begun = False
        self.tasks = _C._Tasks()
        self.made: list[Any] = []  # appended to by the worker, emptied by the loader
        self.has_answers = False


def _bytes_in(batch: Any) -> int:
    """How much memory the tensors of a batch take."""
    if isinstance(batch, facula.Tensor):
        return batch.nbytes
    if isinstance(batch, dict):
        batch = batch.values()
    elif not isinstance(batch, (list, tuple)):
        return 0
    return sum(map(_bytes_in, batch))


class ThreadWorker:
    """A worker thread as the loader sees it. Its interface is that of ProcessWorker.

    Args:
        job: what the worker does.
        number: which worker it is.
    """

    most_batches, groups_ahead = 256, 2  # more of them would keep the garbage collector busy
    bytes_per_batch = 0

    def __init__(self, job: Job, number: int) -> None:
        self.number = number
        self.reader: list[Any] = []  # batches that came, the next one last
        self.results: deque[Any] = deque()  # the same where there are answers among them
        self.seconds_per_batch: float | None = None
        self.slot_bytes_per_batch = 0
        self.ended = False
        self._closed = False
        self._epoch = _Epoch(0)
        self._tasks: queue.SimpleQueue[_Epoch | None] = queue.SimpleQueue()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._waiting = False
        self._hungry = bytearray(1)  # 1 when the loader takes whatever comes next
        self.thread = threading.Thread(
            target=self._run, args=(job,), name=f"DataLoader-worker-{number}", daemon=True
        )
        self.thread.start()

    @property
    def pid(self) -> int | None:
        return self.thread.native_id

    # ---- in the worker

    def _run(self, job: Job) -> None:
        generator = facula.Generator()
        generator.manual_seed(job.base_seed + self.number)
        random_state.generator = generator
        with acting_as(job.info(self.number)):
            batches = Batches(job, self.number)
            while (epoch := self._tasks.get()) is not None:
                if not epoch.begun:
                    epoch.begun = True
                    batches.begin(epoch.skipped)
                while epoch.tasks and epoch is self._epoch and not self._closed:
                    if batches.ended:
                        break
                    self._make_several(batches, epoch)
                    if self._waiting:
                        self._wakes.put(None)

    def _make_several(self, batches: Batches, epoch: _Epoch) -> None:
        began = time.perf_counter()
        try:
            batches.prepare(epoch.tasks.first_index())
        except Exception as error:
            epoch.tasks.popleft()
            outcome: Exception | None = error
        else:
            outcome, count, seconds = _C._make_batches(
                epoch.tasks, batches.fetch, epoch.made, self._hungry, _QUICK_SECONDS, _PATIENCE
            )
            if count:
                self.seconds_per_batch = seconds
        if outcome is not None:
            epoch.has_answers = True
            epoch.made.append(_Answer(*batches.answer_to(outcome)))
            self.seconds_per_batch = time.perf_counter() - began

    # ---- in the loader

    def may_begin(self) -> bool:
        return True

    def begin(self, epoch: int, skipped: int) -> None:
        self.reader, self.results = [], deque()
        self._epoch = _Epoch(skipped)

    def send(self, indices: Any) -> None:
        """Gives the worker tasks, as in :func:`append_tasks`."""
        append_tasks(self._epoch.tasks, indices)
        self._tasks.put(self._epoch)

    def wait(self, seconds: float) -> None:
        """Takes what is there, after waiting for it at most so long."""
        # Whoever makes something looks at the flags afterwards, so they are set before the look at
        # what is there.
        self._waiting = True
        for longest in (min(seconds, _FLUSH_SECONDS), seconds):
            if self.has_result() or not seconds:
                break
            try:
                self._wakes.get(timeout=longest)
                break
            except queue.Empty:
                self._hungry[0] = 1
        self._waiting = False
        self._hungry[0] = 0
        while not self._wakes.empty():
            self._wakes.get()
        if not self.has_result():
            self.ended = not self.thread.is_alive()

    def has_result(self) -> bool:
        if self.reader or self.results:
            return True
        made = self._epoch.made
        if not made:
            return False
        came = made[:]  # only the loader takes from it, so these are the first ones
        del made[: len(came)]
        if self._epoch.has_answers:
            self.results.extend(came)
        else:
            self.slot_bytes_per_batch = _bytes_in(came[0])
            came.reverse()
            self.reader = came
        return True

    def result(self) -> tuple[int, Any]:
        """The next answer."""
        data = self.reader.pop() if self.reader else self.results.popleft()
        return data if type(data) is _Answer else (READY, data)

    def death(self) -> str:
        return f"DataLoader worker thread {self.thread.name} ended unexpectedly"

    def close(self) -> None:
        self._closed = True
        self._tasks.put(None)

    def join(self) -> None:
        self.thread.join(timeout=MP_STATUS_CHECK_INTERVAL)
