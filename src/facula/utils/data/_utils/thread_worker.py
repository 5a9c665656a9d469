"""Workers that are threads: they share the dataset, nothing is copied, starting costs nothing."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from typing import Any

import facula
from facula.random import worker as random_state
from facula.utils.data._utils import MP_STATUS_CHECK_INTERVAL
from facula.utils.data._utils.worker import Batches, Job, acting_as


class ThreadWorker:
    """A worker thread as the loader sees it. Its interface is that of ProcessWorker.

    Args:
        job: what the worker does.
        number: which worker it is.
    """

    bytes_per_batch = slot_bytes_per_batch = 0
    reader = ()
    seconds_per_batch: float | None = None

    def __init__(self, job: Job, number: int) -> None:
        self.number = number
        self.results: deque[list[Any]] = deque()
        self.epoch = 0
        self.ended = False
        self._closed = False
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
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
            while (task := self._tasks.get()) is not None:
                epoch, indices, skipped = task
                if skipped is not None:
                    batches.begin(skipped)
                for index in indices:
                    if batches.ended or self._closed or epoch != self.epoch:
                        break
                    begin = time.perf_counter()
                    answer = batches.make(index)
                    self._answers.put((epoch, time.perf_counter() - begin, answer))

    # ---- in the loader

    def may_begin(self) -> bool:
        return True

    def begin(self, epoch: int, skipped: int) -> None:
        self.epoch = epoch
        self.results.clear()
        self._tasks.put((epoch, [], skipped))

    def send(self, indices: list[Any]) -> None:
        self._tasks.put((self.epoch, indices, None))

    def wait(self, seconds: float) -> None:
        try:
            answer = self._answers.get(timeout=seconds) if seconds else self._answers.get_nowait()
            while True:
                epoch, self.seconds_per_batch, result = answer
                if epoch == self.epoch:
                    self.results.append(result)
                answer = self._answers.get_nowait()
        except queue.Empty:
            self.ended = not self.thread.is_alive()

    def has_result(self) -> bool:
        return bool(self.results)

    def result(self) -> list[Any]:
        """The next answer."""
        return self.results.popleft()

    def death(self) -> str:
        return f"DataLoader worker thread {self.thread.name} ended unexpectedly"

    def close(self) -> None:
        self._closed = True
        self._tasks.put(None)

    def join(self) -> None:
        self.thread.join(timeout=MP_STATUS_CHECK_INTERVAL)
