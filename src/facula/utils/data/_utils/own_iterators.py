"""One pass over a loader's dataset, without workers or in the place of some."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import facula
from facula import _C
from facula.random import default_generator
from facula.utils.data._utils.fetch import rows_fetcher, rows_of_memory
from facula.utils.data._utils.indices import indices_of, with_first_drawn
from facula.utils.data._utils.pin_memory import pin_memory
from facula.utils.data._utils.terms import PERSISTENT, PLAIN, job_of
from facula.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    drawn_seed,
)

_IN_PLACE_BYTES = 1 << 24  # of a batch of rows: copied in a millisecond
_DRAWN_AT_ONCE = (RandomSampler, SequentialSampler, SubsetRandomSampler)


class BaseIterator:
    """What iterators with and without workers have in common.

    Args:
        loader: the DataLoader.
    """

    # What is so in nearly every epoch is not written down in each: tiny ones are over in the time.
    is_shut_down = is_finished = False
    _pin_memory = False
    _resumed: dict[str, Any] | None = None
    _loader_length: int | None = None
    _warned = False
    _drew_seed = True
    _num_yielded = 0

    def __init__(self, loader: Any) -> None:
        self._index_sampler = loader._index_sampler
        self._iterable = loader._dataset_kind == 1
        if loader.pin_memory:
            self._pin_memory = self._can_pin()
        self._begin(loader, new_seed=True)

    def _can_pin(self) -> bool:
        if facula.cuda.is_available() and hasattr(facula.Tensor, "pin_memory"):
            return True
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned "
            "memory won't be used."
        )
        return False

    def _begin(self, loader: Any, new_seed: bool) -> None:
        """Begins an epoch, or goes on in one."""
        if not new_seed:
            self._warned = self.is_finished = self._drew_seed = False
            self._num_yielded = 0
        if loader._iterable_length is not self._loader_length:
            self._loader_length = loader._iterable_length
        if loader._resume_from is not None or self._resumed is not None:
            self._resumed = loader._resume_from
        own = loader.generator
        if self._resumed is not None:
            self._go_on(loader, self._resumed, new_seed)
            return
        self._generator_state = (default_generator if own is None else own).get_state()
        self._indices: Iterator[Any] = self._new_indices(loader)
        # The sampler's order follows from what is drawn after this, so it is drawn again when
        # that epoch is gone on with, by whatever iterator.
        if new_seed:
            self._base_seed = drawn_seed(own)

    def _go_on(self, loader: Any, resumed: dict[str, Any], new_seed: bool) -> None:
        """Begins an epoch in the middle, where a state was."""
        loader._resume_from = None
        own = loader.generator
        generator = default_generator if own is None else own
        before = generator.get_state()
        generator.set_state(resumed["generator"])
        self._generator_state = generator.get_state()
        try:
            self._indices = self._new_indices(loader)
            self._drew_seed = bool(resumed.get("drew_seed", new_seed))
            if self._drew_seed:
                drawn_seed(own)
            if new_seed:
                self._base_seed = resumed["base_seed"]
            self._num_yielded = resumed["num_yielded"]
            self._skip(resumed)
        finally:
            # The program's own numbers go on as if the epoch had not begun a second time.
            if own is None:
                generator.set_state(before)

    def _new_indices(self, loader: Any) -> Iterator[Any]:
        return indices_of(self._index_sampler)

    def _skip(self, resumed: dict[str, Any]) -> None:
        if self._iterable:
            return
        for done in range(self._num_yielded):
            if next(self._indices, self) is self:
                raise RuntimeError(
                    f"the state has {self._num_yielded} batches, but the sampler gives only {done}"
                )
        self._indices = with_first_drawn(self._indices)  # while the generator is set back

    def state_dict(self) -> dict[str, Any]:
        return {
            "version": 1,
            "in_epoch": True,
            "num_yielded": self._num_yielded,
            "generator": self._generator_state,
            "base_seed": self._base_seed,
            "drew_seed": self._drew_seed,
            "num_workers": 0,
        }

    def __iter__(self) -> BaseIterator:
        return self

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        try:
            data = self._next_data()
        except StopIteration:
            self.is_finished = True
            raise
        self._num_yielded = came = self._num_yielded + 1
        if self._loader_length is not None and came > self._loader_length:
            self._warn_of_length()
        return pin_memory(data) if self._pin_memory else data

    def _warn_of_length(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"Length of IterableDataset was reported to be {self._loader_length} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker: each goes over the whole "
                "dataset unless its __iter__ shares the work out by get_worker_info()."
            )

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class SingleProcessIterator(BaseIterator):
    """Loads a batch when it is asked for."""

    def __init__(self, loader: Any) -> None:
        if loader.timeout != 0:
            raise AssertionError("SingleProcessIterator requires timeout == 0")
        super().__init__(loader)
        self._fetch = job_of(loader, 0, 0).fetcher()
        if self._iterable and self._resumed is not None:
            for _ in range(self._num_yielded):
                self._fetch(next(self._indices))

    def _next_data(self) -> Any:
        return self._fetch(next(self._indices))


class MemoryIterator(_C._BatchStream, SingleProcessIterator):  # type: ignore[misc]
    """In the place of workers where they would cost more than what there is to do.

    Batches that are copied rows of memory are the same whoever makes them, and up to some size
    they are made in less time than a worker's message takes.
    """

    def __init__(self, loader: Any, rows: Any) -> None:
        BaseIterator.__init__(self, loader)
        self._fetch = rows_fetcher(rows, loader.dataset)
        self._begin_where_workers_would()

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._begin(loader, new_seed=False)
        self._begin_where_workers_would()

    def _begin_where_workers_would(self) -> None:
        """They would have been given indices by now, and the generator moved on."""
        if self._pin_memory:
            self._indices = with_first_drawn(self._indices)
            return
        self._begin_own(self._indices, 1, self._fetch, 1, PLAIN | PERSISTENT)

    def _next_after_turns(self) -> Any:
        return BaseIterator.__next__(self)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if not self._pin_memory:
            state["num_yielded"] += self._own_state()[0]
        return state

    @property
    def _workers(self) -> list[Any]:
        return []

    def _shutdown_workers(self) -> None:
        """There are none; trainers that end them by themselves may call it."""
        self.is_shut_down = True


def rows_in_place_of_workers(loader: Any) -> Any:
    """The rows of a :class:`TensorDataset` of which a :class:`MemoryIterator` makes batches, where
    nobody can tell that it is not a number of workers; None for other loaders."""
    if loader.worker_init_fn is not None or loader.multiprocessing_context is not None:
        return None
    if _C._is_watched():
        return None
    sampler = getattr(loader.batch_sampler, "sampler", None)
    if type(loader.batch_sampler) is not BatchSampler or type(sampler) not in _DRAWN_AT_ONCE:
        return None
    if type(sampler) is RandomSampler and (sampler.replacement or sampler._num_samples):
        return None
    rows = rows_of_memory(loader.dataset, loader.collate_fn)
    if not rows or not len(rows[0]):
        return None
    size = loader.batch_size * sum([t.nbytes for t in rows])
    return rows if size <= _IN_PLACE_BYTES * len(rows[0]) else None
