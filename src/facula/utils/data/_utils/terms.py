"""On which terms a loader works with its workers: its options, and what was read of its dataset.

Reading takes longer than a short epoch. So it is noted what the conclusions rest on
(``_C._Facts``), and they hold until some of that changes.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

from facula import _C
from facula.utils.data._utils.harmless import GENERATOR
from facula.utils.data._utils.known import NUMBER, facts_here, noting_in
from facula.utils.data._utils.lookups import (
    Lookups,
    Preparation,
    changing_lookups_of,
    is_same_in_workers,
    iterations_of,
    kind_of_indices,
    lookups_of,
    preparation_of,
    prepared,
)
from facula.utils.data._utils.worker import Job
from facula.utils.data.sampler import (
    BatchSampler,
    InfiniteConstantSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

# Of an epoch that the loader makes by itself, for ``_begin_own``.
ITERATES, ONLY_INTS, STEP_BY_STEP, DRAWS, DRAWS_ALONE = 1, 2, 4, 8, 16
PERSISTENT, PLAIN, THREADS = 32, 64, 128
_OWN_SAMPLERS = (
    InfiniteConstantSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
_OPTIONS = (
    *("batch_sampler", "collate_fn", "dataset", "drop_last", "in_order", "num_workers"),
    *("persistent_workers", "prefetch_factor", "sampler", "timeout", "worker_init_fn"),
    *("worker_type", "_dataset_kind", "_multiprocessing_context"),
)


def job_of(loader: Any, base_seed: int, num_workers: int) -> Job:
    """What the loader's workers are told."""
    return Job(
        loader.dataset,
        loader._dataset_kind == 1,
        loader._auto_collation,
        loader.collate_fn,
        loader.drop_last,
        base_seed,
        num_workers,
        loader.worker_init_fn,
    )


def _sampler_of_indices(loader: Any) -> Any:
    if not loader._auto_collation:
        return loader.sampler
    return loader.batch_sampler.sampler if type(loader.batch_sampler) is BatchSampler else None


class Terms:
    """What holds as long as nothing changes that matters; it does not keep the loader alive.

    Args:
        loader: the DataLoader.
        reads: whether to find out if the loader can make batches in the place of processes.
    """

    def __init__(self, loader: Any, reads: bool) -> None:
        self.facts = _C._Facts()
        self._note_options(loader)
        self.threads = loader.worker_type == "thread"
        self.job = job_of(loader, 0, loader.num_workers)
        self.context = loader.multiprocessing_context or multiprocessing
        self.timeout, self.prefetch = loader.timeout, loader.prefetch_factor
        self.in_order, self.persistent = loader.in_order, loader.persistent_workers
        sampler = _sampler_of_indices(loader)
        # Whether indices come from samplers of this package alone.
        self.own_sampler = type(sampler) in _OWN_SAMPLERS
        # Whether nobody can notice how far ahead they are drawn: a sampler of the program's own may
        # look at what the training does meanwhile, and a generator may be drawn from.
        self.may_run_ahead = self.own_sampler and getattr(sampler, "generator", None) is None
        self.preparation: Preparation | None = None
        self.is_prepared = False
        self.plan: Any = None  # begins epochs that the loader makes by itself
        self.lookups: Lookups | None = None
        if reads and not self.threads:
            for changes in (False, True):
                with noting_in(self.facts):
                    self.lookups = self._read(loader, changes)
                if self.lookups is not None or changes:
                    break
                self.facts = _C._Facts()  # what was noted holds on to what may be written to
                self._note_options(loader)
        # What each worker has a copy of.
        self.changes = self.lookups.changes if self.lookups is not None else None
        self._note_own_epochs()

    def _note_own_epochs(self) -> None:
        """How the loader makes an epoch by itself, if it may."""
        job, draws = self.job, self.lookups.draws if self.lookups is not None else frozenset()
        # Processes that take over begin to iterate once more, with the numbers that were there at
        # the begin of the epoch: those of the seed, if no other epoch came before.
        again = self.preparation is not None or self.persistent
        self.may_be_own = self.lookups is not None and not (draws and job.iterable and again)
        if self.threads:  # whose memory is the loader's; what prepares one may be meant for it
            self.may_be_own = not self.timeout and job.init_fn is None
        # Whether that depends on nothing that the program does besides.
        self.is_free = self.may_be_own and not draws and self.preparation is None
        # One is enough where nobody notices, or one of each worker that may have to be prepared.
        least = job.num_workers if draws or self.changes is not None else 1
        self.first_tasks = least if self.may_run_ahead else self.prefetch * job.num_workers
        self.own_flags = (PERSISTENT if self.persistent else 0) | (THREADS if self.threads else 0)
        if job.iterable:
            self.own_flags |= ITERATES
        elif not self.may_run_ahead:
            self.own_flags |= STEP_BY_STEP
        if not self.own_sampler:
            self.own_flags |= ONLY_INTS
        if draws:
            self.own_flags |= DRAWS if draws == {GENERATOR} else DRAWS | DRAWS_ALONE

    def fetch(self) -> Any:
        """For an epoch that the loader makes by itself: what makes a batch, or, where there is
        something to begin for each worker, begins that and returns what makes batches."""
        if self.lookups is not None:
            return self.lookups.fetch
        return self.job.fetcher if self.job.iterable else self.job.fetcher()

    def __reduce__(self) -> Any:
        """A copy of the loader, in which everything may be another one, has none."""
        return type(None), ()

    def _note_options(self, loader: Any) -> None:
        options = loader.__dict__
        for name in _OPTIONS:
            if name not in options:  # a subclass has its own way
                self.facts.give_up()
            self.facts.given_item(options, name)
        batches, sampler = loader.batch_sampler, _sampler_of_indices(loader)
        if batches is not None:
            self.facts.type_of(batches)
            # The one task of an iterable dataset is made once.
            size = ("batch_size",) if loader._dataset_kind == 1 else ()
            for name in ("sampler", "drop_last", *size):
                self.facts.attribute(batches, name)
        if sampler is not None:
            self.facts.type_of(sampler)
            for name in ("generator", "data_source"):
                self.facts.attribute(sampler, name)

    def _read(self, loader: Any, changes: bool) -> Lookups | None:
        """What makes batches as worker processes would, where nobody can tell who it was.

        Args:
            loader: the DataLoader.
            changes: whether the dataset may write to itself.
        """
        context = loader.multiprocessing_context
        # Who asks for another way to start processes has a reason.
        if context is not None and type(context) is not type(multiprocessing.get_context("fork")):
            return None
        if not is_same_in_workers(loader.dataset, context):
            return None
        self.facts.watch()
        alone, collate_fn = not loader._auto_collation, loader.collate_fn
        iterable = loader._dataset_kind == 1
        if changes:
            drop_last = loader.drop_last
            more = drop_last, self._kind_of_index(loader)
            found = changing_lookups_of(loader.dataset, collate_fn, iterable, alone, *more)
        elif iterable:
            found = iterations_of(loader.dataset, loader.drop_last, collate_fn, alone)
        else:
            index = self._kind_of_index(loader)
            found = lookups_of(loader.dataset, collate_fn, alone, index)
        if found is None or (found.loops and loader.timeout):
            return None
        if loader.worker_init_fn is not None:
            self.preparation = preparation_of(loader.worker_init_fn)
            if self.preparation is None:
                return None
        return found

    def _kind_of_index(self, loader: Any) -> str:
        """What one that the sampler gives is; those of the program's own have to be ints."""
        sampler = _sampler_of_indices(loader)
        if type(sampler) is not SubsetRandomSampler:
            return NUMBER
        facts_here().attribute(sampler, "indices")
        return kind_of_indices(sampler.indices)

    def goes_on(self, iterator: Any, loader: Any) -> bool:
        """Begins another epoch with an iterator, if that is planned."""
        return self.plan is not None and bool(self.plan.begin_again(iterator, loader.__dict__))

    def hold(self, loader: Any) -> bool:
        """Whether all is as it was."""
        return bool(self.facts.hold(loader.__dict__))

    def follows(self, before: Terms) -> bool:
        """Whether workers that were started on other terms do the same on these."""
        a, b = self.job, before.job
        draws = self.lookups.draws if self.lookups is not None else frozenset()
        drew = before.lookups.draws if before.lookups is not None else frozenset()
        same = a.collate_fn is b.collate_fn and a.init_fn is b.init_fn
        if self.changes is not None or before.changes is not None:
            return False  # each has copies of its own
        return same and a.num_workers == b.num_workers and draws <= drew

    def job_with(self, base_seed: int) -> Job:
        """What workers are told."""
        job = self.job
        return Job(
            *(job.dataset, job.iterable, job.auto_collation, job.collate_fn, job.drop_last),
            *(base_seed, job.num_workers, job.init_fn),
        )

    def prepared(self, base_seed: int) -> dict[int, Any] | None:
        """What :func:`lookups.prepared` says of ``worker_init_fn``: of one that is settled, and of
        numbers that nobody draws, once for all."""
        if self.preparation is None or self.is_prepared:
            return {}
        draws = self.lookups.draws if self.lookups is not None else frozenset()
        found = prepared(self.preparation, self.job.init_fn, self.job_with(base_seed), draws)
        self.is_prepared = found is not None and self.preparation.is_settled and not draws
        return found
