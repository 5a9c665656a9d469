"""DataLoader: goes over a dataset in batches, with or without workers."""

from __future__ import annotations

import multiprocessing
import os
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import facula
from facula.utils.data._utils.collate import default_collate, default_convert
from facula.utils.data._utils.iterators import MultipleWorkersIterator
from facula.utils.data._utils.own_iterators import (
    BaseIterator,
    MemoryIterator,
    SingleProcessIterator,
    rows_in_place_of_workers,
)
from facula.utils.data._utils.planning import read_ahead
from facula.utils.data._utils.worker import get_worker_info
from facula.utils.data.dataset import Dataset, IterableDataset, TensorDataset
from facula.utils.data.sampler import (
    BatchSampler,
    InfiniteConstantSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)


_InfiniteConstantSampler = InfiniteConstantSampler


class _DatasetKind:
    Map = 0
    Iterable = 1


class DataLoader(Generic[_T_co]):
    """Goes over a dataset in batches.

    Args:
        dataset: what is loaded: something with ``__getitem__`` and ``__len__``, or an
            :class:`IterableDataset`.
        batch_size: samples in a batch; None gives samples one by one.
        shuffle: whether the order is random, anew in each epoch.
        sampler: an iterable of indices, instead of ``shuffle``.
        batch_sampler: an iterable of lists of indices, instead of ``batch_size``, ``shuffle``,
            ``sampler`` and ``drop_last``.
        num_workers: how many workers load ahead; 0 loads when a batch is asked for. Small batches
            that are only looked up in memory (a list, a :class:`TensorDataset`, a ``__getitem__``
            that returns ``self.x[index], self.y[index]``) are made by the loader while that takes
            less time than to hear from a worker; so no worker is started for them. They are of what
            lists, arrays and tensors of the dataset hold then; attributes and global names that
            are set meanwhile count from the next epoch on, as with workers.
        collate_fn: makes a batch of a list of samples; :func:`default_collate` by default.
        pin_memory: whether tensors are put into pinned memory, where there is an accelerator.
        drop_last: whether a last batch that is not full is left out.
        timeout: seconds to wait for a batch of a worker; 0 waits for good.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: "fork", "spawn", "forkserver" or a context object.
        generator: where the order and the seeds of workers come from.
        prefetch_factor: batches that each worker loads ahead, 2 by default. Batches that take less
            than a fraction of a millisecond count in groups.
        persistent_workers: whether workers stay for the next epoch. Processes keep the dataset as
            it was when they began; batches that the loader makes itself are of what it holds now.
        pin_memory_device: accepted for PyTorch's sake.
        in_order: whether batches come in the sampler's order; otherwise each comes when it is made.
        worker_type: "process", or "thread" for workers that share memory with the program. Threads
            start at once and copy nothing; they run at the same time as far as the dataset waits
            for files or computes outside of Python. Batches that take less than a fraction of a
            millisecond are made by the thread that asks for them, in the worker's name; not so with
            ``worker_init_fn`` or ``timeout``.

    The order of samples, the seeds of workers and which worker makes which batch are PyTorch's.

    :meth:`state_dict` and :meth:`load_state_dict` keep the place in an epoch.

    Example::

        >>> loader = facula.utils.data.DataLoader(range(5), batch_size=2)
        >>> list(loader)
        [tensor([0, 1]), tensor([2, 3]), tensor([4])]
        >>> len(loader)
        3
    """

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler[Any] | Iterable[Any]
    pin_memory_device: str
    prefetch_factor: int | None
    worker_type: str
    _iterator: BaseIterator | None = None
    _initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: facula.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_type: str = "process",
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                f"multiprocessing. Got {num_workers}"
            )
        if timeout < 0:
            raise ValueError(f"timeout option should be non-negative, got {timeout}")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let "
                "num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError(
                f"prefetch_factor option should be non-negative, got {prefetch_factor}"
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if worker_type not in ("process", "thread"):
            raise ValueError(f"worker_type should be 'process' or 'thread', got {worker_type!r}")
        if worker_type == "thread" and multiprocessing_context is not None:
            raise ValueError("multiprocessing_context is for worker_type='process'")

        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        if pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device, ignoring {pin_memory_device=}.",
                stacklevel=2,
            )
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.worker_type = worker_type

        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but "
                        f"got {name}={value}"
                    )
        else:
            self._dataset_kind = _DatasetKind.Map
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._iterable_length: int | None = None  # what len() said of an iterable dataset
        self._pace: Any = None  # how long batches of workers take
        self._terms: Any = None  # what was read of the dataset, as long as that holds
        self._current: Any = None  # a weak reference to the last iterator
        self._resume_from: dict[str, Any] | None = None
        self._initialized = True
        self.check_worker_number_rationality()
        if num_workers > 0:
            read_ahead(self)

    # ---- options

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started; None is the system's usual way."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{known!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string "
                    "specifying the start method, but got "
                    f"multiprocessing_context={context}"
                )
        self._multiprocessing_context = context

    _FIXED = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in self._FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        # The iterator of an epoch stays where it is.
        return {**self.__dict__, "_current": None}

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def check_worker_number_rationality(self) -> None:
        """Warns when there are more worker processes than processors."""
        if self.num_workers == 0 or self.worker_type == "thread":
            return
        if hasattr(os, "sched_getaffinity"):
            processors = len(os.sched_getaffinity(0))
        else:
            processors = os.cpu_count() or 1
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {processors}, which is "
                "smaller than what this DataLoader is going to create. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze: "
                "each worker takes memory, and more of them than processors rarely load faster."
            )

    # ---- iteration

    def _get_iterator(self) -> BaseIterator:
        if self.num_workers == 0:
            return SingleProcessIterator(self)
        terms = self._terms
        if terms is not None and terms.plan is not None:
            iterator = terms.plan.begin(MultipleWorkersIterator, self.__dict__)
            if iterator is not None:
                return iterator  # type: ignore[no-any-return]
        if type(self.dataset) is TensorDataset:
            rows = rows_in_place_of_workers(self)
            if rows is not None:
                return MemoryIterator(self, rows)
        return MultipleWorkersIterator(self)

    def __iter__(self) -> BaseIterator:
        if self.persistent_workers and self.num_workers > 0:
            iterator = self._iterator
            if iterator is None or iterator.is_shut_down:
                self._iterator = iterator = self._get_iterator()
            elif self._terms is None or not self._terms.goes_on(iterator, self):
                iterator._reset(self)
        else:
            iterator = self._get_iterator()
        self.__dict__["_current"] = weakref.ref(iterator)  # __setattr__ takes longer
        return iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        self._iterable_length = length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        full, rest = divmod(length, self.batch_size)
        return full + bool(rest and not self.drop_last)

    # ---- the place in an epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the last iterator is, to go on from there with :meth:`load_state_dict`.

        The state holds how many batches came, and the state of the generator at the epoch's begin,
        from which the rest of the order follows. What was loaded ahead is loaded again. Samples of
        an indexed dataset are not loaded to get there; an iterable one is iterated over.

        Example::

            >>> loader = facula.utils.data.DataLoader(range(8), batch_size=2, shuffle=True)
            >>> iterator = iter(loader)
            >>> first = next(iterator)
            >>> state = loader.state_dict()
            >>> rest = list(iterator)
            >>> loader.load_state_dict(state)
            >>> all(facula.equal(a, b) for a, b in zip(loader, rest, strict=True))
            True
        """
        if not self.in_order:
            raise RuntimeError(
                "state_dict() needs in_order=True: without it, the batches that came are not the "
                "first ones of the order"
            )
        iterator = self._current() if self._current is not None else None
        if iterator is None or iterator.is_finished:
            if self._resume_from is not None:
                return dict(self._resume_from)
            return {"version": 1, "in_epoch": False}
        return iterator.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration begin where :meth:`state_dict` was called."""
        if not isinstance(state_dict, dict) or state_dict.get("version") != 1:
            raise ValueError(
                "load_state_dict(): expected what DataLoader.state_dict() returned, got "
                f"{state_dict!r:.100}"
            )
        if not state_dict["in_epoch"]:
            self._resume_from = None
            return
        iterable = self._dataset_kind == _DatasetKind.Iterable
        if iterable and state_dict["num_workers"] != self.num_workers:
            raise ValueError(
                f"load_state_dict(): the state is of {state_dict['num_workers']} workers, this "
                f"loader has {self.num_workers}; the batches of an iterable dataset depend on that"
            )
        self._resume_from = dict(state_dict)


_SingleProcessDataLoaderIter = SingleProcessIterator
_MultiProcessingDataLoaderIter = MultipleWorkersIterator
_BaseDataLoaderIter = BaseIterator
