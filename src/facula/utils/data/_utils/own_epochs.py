"""Epochs whose batches the loader makes itself, in the place of its workers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import facula
from facula import _C
from facula.utils.data._utils.lookups import begin_scope, can_draw
from facula.utils.data._utils.own_iterators import BaseIterator
from facula.utils.data._utils.pace import bytes_in
from facula.utils.data._utils.planning import new_terms
from facula.utils.data._utils.process_worker import generators_of
from facula.utils.data._utils.terms import Terms
from facula.utils.data._utils.worker import pack_error, unpack_error


class OwnEpochs(_C._BatchStream, BaseIterator):  # type: ignore[misc]
    """The part of an iterator in which there are no workers yet.

    ``_BatchStream.__next__`` draws indices and makes batches of them (``_begin_own``). That ends
    with the epoch, or where workers or a look at each batch are needed after all
    (``_hand_over``, which is a subclass's).
    """

    _crew: Any = None  # the workers, once tasks are handed out
    _left_to_make: int | None = None  # tasks that there are yet in an epoch that is left early
    _generators: Mapping[int, Any] = {}  # of workers, from which the loader draws

    def _come_to_terms(self, loader: Any) -> Terms:
        """What was read of the loader, and whether it makes the epoch by itself."""
        terms: Terms = loader._terms
        if (
            terms is None
            or not terms.hold(loader)
            or not (terms.lookups or terms.threads or loader._pace.unreadable)
        ):
            terms = new_terms(loader)
        self._pace = pace = loader._pace
        # A state and a promised length are seen to with each batch, and so is pinned memory.
        self._is_own = (
            terms.may_be_own
            and loader._resume_from is None
            and loader._iterable_length is None
            and not (loader.pin_memory and facula.cuda.is_available())
            and pace.suits_loader()
        )
        return terms

    def _may_make_batches(self, terms: Terms) -> bool:
        """Whether the loader may do so in the place of workers."""
        if terms.is_free:
            return True
        lookups = terms.lookups
        if lookups is None or (lookups.draws and not can_draw(lookups.draws)):
            return False
        if lookups.draws and self._generators:
            return True  # those of workers that have been prepared, if they are
        if terms.preparation is None:
            return True
        generators = terms.prepared(self._base_seed)
        if generators is None:
            return False
        self._generators = {**generators, **self._generators}
        return True

    def _make_what_was_given(self) -> None:
        """Makes the batches that workers have tasks for when an epoch is left early, as processes
        do before the next one begins: they move generators, and what a dataset keeps, on."""
        terms = self._terms
        matters = terms.lookups is not None and (terms.lookups.draws or terms.changes is not None)
        by_itself = self._here if self._crew is not None else self._is_own
        if terms.threads or not matters or not by_itself:
            return
        try:
            for left in range(terms.prefetch * terms.job.num_workers, 0, -1):
                self._left_to_make = left
                with contextlib.suppress(Exception):  # nobody asked for this batch
                    if next(self, self) is self:
                        return
        finally:
            self._left_to_make = None

    def _begin_by_itself(self, terms: Terms) -> None:
        tasks: Any = self._indices
        # Workers would have been given indices by now, and generators moved on.
        first = terms.first_tasks
        if self._iterable:
            tasks = next(tasks)  # which is always the same
        changes, workers = terms.changes, terms.job.num_workers
        copies = () if changes is None else (changes.copies, changes.roots)
        self._made_before = 0
        given = tasks, first, terms.fetch(), workers, terms.own_flags
        self._begin_own(*given, terms.facts, *copies)

    def _raise_as_worker(self, number: int, error: Exception) -> None:
        """Raises an exception that came up while a worker's batch was made, as from there."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals is begin_scope:
            trace = trace.tb_next
        raise unpack_error(pack_error(error.with_traceback(trace), number))

    def _generators_of(self, number: int, count: int) -> Any:
        """The generators of a worker that numbers are drawn from, and perhaps of those that follow,
        so many in all: two take hardly longer to make than one."""
        lookups = self._terms.lookups
        assert lookups is not None
        found = self._generators.get(number)
        if found is None:
            made = generators_of(self._base_seed, number, count, lookups.draws)
            found = made[0]
            more = {number: found} if count == 1 else dict(enumerate(made, number))
            self._generators = {**more, **self._generators} if self._generators else more
        return found

    def _generators_drawn_from(self) -> Mapping[int, Any]:
        """Those of workers that the loader has, by number."""
        return {**self._own_generators(), **self._generators}

    def _look_at_pace(self, batch: Any) -> None:
        """Called after some milliseconds of work, with the last batch."""
        self._pace.bytes = bytes_in(batch)
        came = self._own_state()[0]
        self._pace.note(*self._times_here(), came - self._made_before)
        self._made_before = came
        # A thread cannot begin to iterate once more: that may be noticed.
        stays = self._terms.threads and self._iterable
        if not self._pace.suits_loader() and not stays:
            self._hand_over([])

    def _hand_over(self, first: list[Any]) -> None:
        raise NotImplementedError
