"""What a worker is and does, be it a process or a thread."""

from __future__ import annotations

import pickle
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import facula
from facula import _C
from facula.utils.data._utils.array_random import seed_arrays
from facula.utils.data._utils.fetch import make_fetcher

__all__ = ["WorkerInfo", "get_worker_info"]


@_C._note_worker_info
@dataclass(frozen=True)
class WorkerInfo:
    """What :func:`get_worker_info` returns in a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


def get_worker_info() -> WorkerInfo | None:
    """The worker that runs the calling code: its ``id``, ``num_workers``, ``seed`` and ``dataset``
    (the worker's copy, unless workers are threads). None outside of workers.

    Example::

        >>> facula.utils.data.get_worker_info() is None
        True
    """
    here = _C._acting_as()
    return None if here is None else here[0]


@contextmanager
def acting_as(info: WorkerInfo, generator: facula.Generator | None = None) -> Iterator[None]:
    """Makes :func:`get_worker_info` return ``info`` in this thread, and
    :func:`facula.random.thread_safe_generator` the generator."""
    before = _C._act_as((info, generator))
    try:
        yield
    finally:
        _C._act_as(before)


@dataclass
class Job:
    """What every worker of a loader is told when it starts."""

    dataset: Any
    iterable: bool
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    num_workers: int
    init_fn: Callable[[int], None] | None

    def info(self, worker: int, method: str = "multiprocessing") -> WorkerInfo:
        seed = self.base_seed + worker
        return _C._worker_info(worker, self.num_workers, seed, self.dataset, method)

    def fetcher(self) -> Callable[[Any], Any]:
        return make_fetcher(
            self.iterable, self.dataset, self.auto_collation, self.collate_fn, self.drop_last
        )


def seed_process(base_seed: int, worker: int) -> None:
    """Gives each worker process random numbers of its own, which follow from the loader's seed."""
    seed = base_seed + worker
    random.seed(seed)
    facula.manual_seed(seed)
    seed_arrays(base_seed, worker)


# What a worker answers to a task.
DATA, SMALL_DATA, SHARED_DATA, PICKLED_DATA = range(4)
ERROR, END, FORGET, SLOTS, READY = range(4, 9)


def append_tasks(tasks: Any, indices: Any) -> None:
    """One task for each index or batch of indices: a list of them, the share of a
    :class:`PackedBatches`, or an index and how often it comes."""
    if type(indices) is list:
        for index in indices:
            tasks.append(index)
    elif len(indices) == 2:
        tasks.append_repeated(*indices)
    else:
        tasks.append_packed(*indices)


class Batches:
    """What a worker makes batches with, epoch after epoch; what goes wrong is an answer, too.

    Args:
        job: what to do.
        worker: which worker this is.
    """

    def __init__(self, job: Job, worker: int) -> None:
        self.job, self.worker = job, worker
        self.fetch: Callable[[Any], Any] | None = None
        self.ended = False
        self.failure: BaseException | None = None
        try:
            if job.init_fn is not None:
                job.init_fn(worker)
        except Exception as error:
            self.failure = error

    def begin(self, skipped: int) -> None:
        """Begins an epoch; the first ``skipped`` batches of an iterable dataset are dropped."""
        self.ended = False
        self.fetch = None
        self.skipped = skipped

    def prepare(self, index: Any) -> None:
        """Makes ``fetch``, before the epoch's first batch, which is of ``index``."""
        if self.failure is not None:
            raise self.failure
        if self.fetch is None:
            fetch = self.job.fetcher()
            for _ in range(self.skipped):
                fetch(index)
            self.fetch = fetch

    def answer_to(self, error: Exception) -> list[Any]:
        """The answer where making a batch raised an exception."""
        if self.job.iterable and isinstance(error, StopIteration):
            self.ended = True
            return [END, None]
        return [ERROR, error]


class _Verbatim(str):
    """The text of a KeyError, which would be shown in quotes and on one line."""

    def __repr__(self) -> str:
        return str(self)


def pack_error(error: BaseException, worker: int) -> bytes:
    """An exception with its traceback, for another process."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    text = f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal {trace}"
    parts = []
    for part in (type(error), error.__dict__):  # either may refuse: local classes, open files
        try:
            parts.append(pickle.dumps(part))
        except Exception:
            parts.append(b"")
    return pickle.dumps((text, *parts))


def _loaded(data: bytes) -> Any:
    try:
        return pickle.loads(data) if data else None
    except Exception:
        return None


def unpack_error(data: bytes) -> BaseException:
    """The exception of another process: of its type, with its attributes and traceback."""
    text, kind_data, state_data = pickle.loads(data)
    kind, state = _loaded(kind_data), _loaded(state_data)
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        return RuntimeError(text)
    text = _Verbatim(text) if issubclass(kind, KeyError) else text
    try:
        error = kind(text)
    except Exception:  # its constructor wants something else
        error = kind.__new__(kind, text)
        error.args = (text,)
    error.__dict__.update(state or {})
    return error
