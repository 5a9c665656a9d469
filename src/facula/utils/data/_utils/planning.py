"""What is found out of a loader before its epochs."""

from __future__ import annotations

import itertools
from typing import Any

from facula import _C
from facula.random import default_generator
from facula.utils.data._utils.harmless import ARRAYS_DRAWN, GENERATOR, TWISTER
from facula.utils.data._utils.indices import RepeatedIndex, indices_of
from facula.utils.data._utils.pace import Pace
from facula.utils.data._utils.process_worker import begin_as_ever
from facula.utils.data._utils.terms import Terms
from facula.utils.data.sampler import BatchSampler, SequentialSampler, drawn_seed

_NUMBERS_OF_DRAWS = {GENERATOR: 1, TWISTER: 2, ARRAYS_DRAWN: 4}  # as the core knows them


def new_terms(loader: Any) -> Terms:
    """Reads a loader's options and dataset, which it keeps."""
    if loader.num_workers <= 0 or loader.prefetch_factor <= 0:
        raise AssertionError("workers need num_workers > 0 and prefetch_factor > 0")
    threads = loader.worker_type == "thread"
    pace = loader._pace
    if pace is None or pace.is_of_others(threads, loader.num_workers):
        goes_back = not threads or loader._dataset_kind == 0
        pace = loader._pace = Pace(threads, loader.num_workers, goes_back)
    terms = loader._terms = Terms(loader, reads=not pace.unreadable)
    pace.unreadable = terms.lookups is None and not threads
    if terms.preparation is None:
        terms.plan = plan_of(terms, loader)
    return terms


def read_ahead(loader: Any) -> None:
    """Reads a loader's dataset before its first epoch, which may be shorter than that takes."""
    if loader.prefetch_factor > 0:
        new_terms(loader)
        loader._pace.unreadable = False  # the program may not be done with its dataset


def _order_of(sampler: Any) -> tuple[Any, Any, bool] | None:
    """Where a sampler's indices are in order: what is counted, who says how many make a batch, and
    whether the last has to be full."""
    if type(sampler) is SequentialSampler:
        return sampler.data_source, None, False
    if type(sampler) is not BatchSampler or type(sampler.sampler) is not SequentialSampler:
        return None
    return sampler.sampler.data_source, sampler, sampler.drop_last


def plan_of(terms: Terms, loader: Any) -> Any:
    """How epochs begin that the loader makes by itself, in C++; None where there is more to ask."""
    sampler = loader._index_sampler
    if not terms.may_be_own:
        return None
    iterable = terms.job.iterable
    draws = terms.lookups.draws if terms.lookups is not None else frozenset()
    indices: Any = indices_of
    if iterable:
        indices = indices_of(sampler)
        if type(indices) not in (RepeatedIndex, itertools.repeat):
            return None
    sized, batches, drop_last = _order_of(sampler) or (None, None, False)
    return _C._EpochPlan(
        terms=terms,
        facts=terms.facts,
        pace=loader._pace,
        sampler=sampler,
        indices=indices,
        task=next(indices) if iterable else None,
        sized=sized,
        batches=batches,
        drop_last=int(drop_last),
        fetch=None if terms.threads and not iterable else terms.fetch(),
        copier=terms.changes and terms.changes.copies,
        roots=terms.changes and terms.changes.roots,
        generator=default_generator,
        draw_seed=drawn_seed,
        first=terms.first_tasks,
        workers=terms.job.num_workers,
        flags=terms.own_flags,
        draws=sum(_NUMBERS_OF_DRAWS[name] for name in draws),
        made_of_seed=int(begin_as_ever(draws)),
    )
