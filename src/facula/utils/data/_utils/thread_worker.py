"""Workers that are threads: they share the dataset, nothing is copied, starting costs nothing."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from typing import Any, NamedTuple

import facula
from facula import _C
from facula.utils.data._utils import MP_STATUS_CHECK_INTERVAL
from facula.utils.data._utils.pace import bytes_in
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

    def __init__(self, skipped: int, here: bool, context: Any) -> None:
        self.skipped = skipped
        self.here = here  # the loader makes the batches itself
        self.begun = False
        self.tasks = _C._Tasks()
        self.made: list[Any] = []  # appended to by the worker, emptied by the loader
        self.has_answers = False
        self.own = _C._OwnBatches(self.tasks, self.made, context)


class ThreadWorker:
    """A worker thread as the loader sees it. Its interface is that of ProcessWorker.

    The loader may make the worker's batches itself. Then its code acts as the worker's, and the
    thread, if it has been started by then, leaves the tasks alone.

    Args:
        job: what the worker does.
        number: which worker it is.
        context: what the loader has acted as in the worker's place, if it has.
    """

    most_batches, groups_ahead = 256, 2  # more of them would keep the garbage collector busy
    bytes_per_batch = 0

    def __init__(self, job: Job, number: int, context: Any = None) -> None:
        self.number = number
        self.reader: list[Any] = []  # batches that came, the next one last
        self.results: deque[Any] = deque()  # the same where there are answers among them
        self.seconds_per_batch: float | None = None
        self.slot_bytes_per_batch = 0
        self.ended = False
        self._closed = False
        if context is None:
            generator = facula.Generator()
            generator.manual_seed(job.base_seed + number)
            context = job.info(number, "thread"), generator
        self._job, self.context = job, context
        # What prepares a worker may be meant for its thread.
        self._batches = Batches(job, number) if job.init_fn is None else None
        self._lock = threading.Lock()  # of ``_batches``
        self._epoch = _Epoch(0, False, self.context)
        self._tasks: queue.SimpleQueue[_Epoch | None] = queue.SimpleQueue()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._waiting = False
        self._hungry = bytearray(1)  # 1 when the loader takes whatever comes next
        self.thread = threading.Thread(
            target=self._run, name=f"DataLoader-worker-{number}", daemon=True
        )
        if self._batches is None:
            self.thread.start()

    @property
    def pid(self) -> int | None:
        return self.thread.native_id

    # ---- in the worker

    def _run(self) -> None:
        with acting_as(*self.context):
            if self._batches is None:
                self._batches = Batches(self._job, self.number)
            while (epoch := self._tasks.get()) is not None:
                while self._work(self._batches, epoch):
                    if self._waiting:
                        self._wakes.put(None)

    def _work(self, batches: Batches, epoch: _Epoch) -> bool:
        """Makes some batches. False when there is nothing to do."""
        with self._lock:
            if not epoch.tasks or epoch is not self._epoch or epoch.here or self._closed:
                return False
            self._begin(batches, epoch)
            if batches.ended:
                return False
            self._make_several(batches, epoch)
            return True

    def _begin(self, batches: Batches, epoch: _Epoch) -> None:
        if not epoch.begun:
            epoch.begun = True
            batches.begin(epoch.skipped)

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
            del outcome  # its traceback refers to this frame, and later to the loader
            self.seconds_per_batch = time.perf_counter() - began

    # ---- in the loader

    def may_begin(self) -> bool:
        return True

    def begin(self, epoch: int, skipped: int, here: bool) -> None:
        self.reader, self.results = [], deque()
        self._epoch = _Epoch(skipped, here, self.context)

    def send(self, indices: Any) -> None:
        """Gives the worker tasks, as in :func:`append_tasks`."""
        append_tasks(self._epoch.tasks, indices)
        self._wake()

    def _wake(self) -> None:
        if self.thread.ident is None:
            self.thread.start()
        self._tasks.put(self._epoch)

    @property
    def own(self) -> Any:
        """The batches of the epoch that the loader makes itself."""
        return self._epoch.own

    def go_on_with(self, fetch: Any, generators: Any) -> None:
        """The loader has begun to iterate in the place of the thread."""
        if fetch is None:
            return
        epoch, batches = self._epoch, self._batches
        assert batches is not None
        with self._lock:
            self._begin(batches, epoch)
            batches.fetch = epoch.own.fetch = fetch

    def keep(self, indices: Any) -> None:
        """Notes tasks of which the loader makes the batches itself."""
        append_tasks(self._epoch.tasks, indices)

    def prepare_here(self) -> None:
        """Called by the loader before it makes a batch of the epoch for the first time."""
        with self._lock:  # the thread may be at work, if only for an earlier epoch
            epoch, batches = self._epoch, self._batches
            assert batches is not None
            self._begin(batches, epoch)
            if epoch.tasks:
                with acting_as(*self.context):
                    batches.prepare(epoch.tasks.first_index())
            epoch.own.fetch = batches.fetch

    def answer_to(self, error: Exception) -> list[Any]:
        """The answer where the loader failed to make a batch."""
        assert self._batches is not None
        return self._batches.answer_to(error)

    def move_here(self) -> None:
        """From now on the loader makes the batches itself, after what the thread has begun."""
        self._epoch.here = True
        self._hungry[0] = 1

    def move_away(self, given: int) -> None:
        """From now on the thread makes the batches."""
        epoch, batches = self._epoch, self._batches
        epoch.here, epoch.own.error = False, None
        if not given and epoch.own.fetch is not None:  # what has failed cannot go on iterating
            assert batches is not None
            batches.fetch = None
        self._wake()

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
            self.slot_bytes_per_batch = bytes_in(came[0])
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
        if self.thread.ident is not None:
            self.thread.join(timeout=MP_STATUS_CHECK_INTERVAL)
