"""One pass over a loader's dataset with workers."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from facula import _C
from facula.utils.data._utils.crew import Crew
from facula.utils.data._utils.indices import (
    IndexBatches,
    RepeatedIndex,
    indices_of,
    packed_indices_of,
    unpacked,
)
from facula.utils.data._utils.lookups import with_collate
from facula.utils.data._utils.own_epochs import OwnEpochs
from facula.utils.data._utils.own_iterators import BaseIterator
from facula.utils.data._utils.pace import bytes_in
from facula.utils.data._utils.planning import plan_of
from facula.utils.data._utils.process_worker import ProcessWorker
from facula.utils.data._utils.thread_worker import ThreadWorker
from facula.utils.data._utils.worker import END, ERROR, READY, Job

_GROUP_SECONDS = 0.001  # of work in one message to a worker
_PACKED_BATCHES = 2  # that many are drawn faster as an array
_FIRST_BATCHES = 4  # that each worker hears of at once
_HERE_SECONDS = 0.004  # of work that a loader plans to do itself
_MOST_HERE = 1024  # batches of each worker in that
_SIZED = 16  # batches of which one is measured, in bytes
_GROUP_BYTES = 1 << 20
_SMALL_GROUP_BYTES = 1 << 18
_GROUP_SLOT_BYTES = 1 << 21
# Why an epoch is not left to the loader.
_KEEPS_GOING, _BELONGS_TO_WORKERS, _FAILED, _CHANGED = range(4)


def _are_ints(indices: list[Any]) -> bool:
    """Whether all of them are ints, or lists of ints."""
    types = {*map(type, indices)}
    if types == {list}:
        types = {*map(type, itertools.chain.from_iterable(indices))}
    return types <= {int}


class MultipleWorkersIterator(OwnEpochs):
    """Has batches made by workers.

    Batch i is made by worker i modulo their number, as in PyTorch. Each worker has tasks for
    ``prefetch_factor`` batches. When batches are made in less time than messages take, as many as
    fill a millisecond go into one message, and the worker's answers come in one, too. Such batches
    are read by ``_BatchStream.__next__``, which counts them; ``_settle`` brings that up to date.

    The loader makes batches itself, in the place of its workers, where nobody can tell and it
    takes less time than to hear from them (:class:`Pace`): those of worker threads, whose memory is
    the loader's, and those that are looked up in memory, whoever does that. A batch that fails is
    made again by its worker, so that the error is the worker's.

    As long as nothing but that is to be done, there are no tasks and nobody to hand them to
    (:class:`OwnEpochs`).
    """

    def __init__(self, loader: Any) -> None:  # what a plan does that fits
        terms = self._terms = self._come_to_terms(loader)
        self._pace.saved = 0.0
        BaseIterator.__init__(self, loader)
        if terms.is_free and self._is_own:
            self._begin_by_itself(terms)
            return
        self._may_be_here = self._may_make_batches(terms)
        if terms.is_prepared and terms.plan is None:
            terms.plan = plan_of(terms, loader)
        if self._is_own and self._may_be_here:
            self._begin_by_itself(terms)
            return
        self._may_be_here = self._may_be_here and self._terms.changes is None
        lookups = self._terms.lookups if self._may_be_here else None
        self._have_workers(lookups, self._generators)
        self._begin_with_workers()

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._make_what_was_given()
        terms = self._terms
        if self._crew is None or self._may_be_here:
            terms = self._come_to_terms(loader)  # the dataset may have changed since
            if self._crew is not None and terms.threads and self._is_own:
                self._spare_threads()
        self._is_own = self._is_own and self._crew is None
        self._begin(loader, new_seed=False)
        if self._crew is None:
            fits = terms is self._terms or terms.follows(self._terms)
            self._may_be_here = fits and self._may_make_batches(terms)
            if self._is_own and self._may_be_here:
                self._terms = terms
                self._begin_by_itself(terms)
                return
            self._may_be_here = self._may_be_here and self._terms.changes is None
            drawn = self._generators_drawn_from()
            self._forget_own(False)  # what the last epoch began with is not gone back to
            self._have_workers(self._terms.lookups, drawn)
        elif self._may_be_here and not terms.threads:
            lookups = terms.lookups
            self._may_be_here = self._may_make_batches(terms) and all(
                worker.may_draw_here(lookups.draws) for worker in self._workers
            )
        self._begin_with_workers()

    def _leave_own(self, task: Any, why: int) -> None:
        """Called where a task is not the loader's, or failed, or where the program has changed
        something that workers would have copies of."""
        if why == _CHANGED:
            self._may_be_here = False
        self._hand_over([task])
        if why == _FAILED:
            self._pace.failed = True
        if why != _KEEPS_GOING and self._here:
            self._move_away()

    def _hand_over(self, first: list[Any]) -> None:
        """What is left becomes tasks of workers, be they processes or not yet."""
        came, given, exhausted, next_worker, fetches, ahead, rest = self._own_state()
        drawn = self._generators_drawn_from()
        if not self._iterable:
            tasks, left = first + ahead, [] if rest is None else rest
            if self._left_to_make is not None:
                few = itertools.islice(itertools.chain(tasks, left), self._left_to_make)
                tasks, left = list(few), []
            self._indices = unpacked(tasks, left, self._index_sampler)
        self._may_be_here = self._may_be_here and self._terms.changes is None
        # Processes that iterate begin to do so once more.
        lookups, facts = self._terms.lookups, self._terms.facts
        self._have_workers(lookups, {} if self._iterable else drawn, facts)
        self._num_yielded += came
        self._resumed = {"given": given, "exhausted": exhausted, "next_worker": next_worker}
        if self._iterable:  # who has given nothing may have failed, and begins once more
            fetches = [fetch if n else None for fetch, n in zip(fetches, given, strict=True)]
        self._begin_with_workers([(fetch, drawn.get(n)) for n, fetch in enumerate(fetches)])
        self._given = given

    # ---- an epoch of workers

    @property
    def _workers(self) -> list[Any]:
        if self._crew is None:
            self._hand_over([])
        assert self._crew is not None
        return self._crew

    def _spare_threads(self) -> None:
        """Workers that are threads end where the loader makes epochs by itself; who they are stays
        the same."""
        assert self._crew is not None
        crew, self._crew = self._crew, None
        crew.dismiss()
        self._stay_as([worker.context for worker in crew])

    def _job_in_copy(self, job: Job, copies: Any) -> Job:
        """What a worker is told that goes on with its copies, or, of what is iterated over, begins
        once more."""
        changes = self._terms.changes
        if changes is None:
            return job
        copies = copies or changes.copies(changes.roots)
        dataset, collate_fn = with_collate(job.collate_fn, copies)
        return dataclasses.replace(job, dataset=dataset, collate_fn=collate_fn)

    def _have_workers(self, lookups: Any, drawn: Mapping[int, Any], facts: Any = None) -> None:
        """Makes workers, of which processes begin at once where they are not to be waited for.

        Args:
            lookups: what makes batches in their place.
            drawn: their generators, from which the loader has drawn.
            facts: what has to be as it was when the epoch began, if it did before.
        """
        terms = self._terms
        copies = self._own_copies()
        threads = terms.job.num_workers if terms.threads else 0
        contexts = [self._as_worker(number) for number in range(threads)]
        self._forget_own(False)
        self._timeout, self._prefetch, self._in_order = (
            terms.timeout,
            terms.prefetch,
            terms.in_order,
        )
        self._groups, self._own_sampler = terms.may_run_ahead, terms.own_sampler
        # Whether the loader, when it makes batches itself, draws an index for each that it gives.
        self._one_by_one = not self._groups and not self._iterable and self._in_order
        # Whether processes may end when they have done their last task. What iterates says so.
        self._ends_processes = not (terms.threads or terms.persistent or self._iterable)
        self._group, self._groups_ahead = 1, 1
        self._epoch = 0
        self._crew = crew = Crew()
        job = terms.job_with(self._base_seed)
        try:
            for i in range(job.num_workers):
                if terms.threads:
                    crew.append(ThreadWorker(job, i, contexts[i]))
                else:
                    own = self._job_in_copy(job, copies.get(i))
                    known = lookups if terms.changes is None else None
                    crew.append(ProcessWorker(own, i, terms.context, known, drawn.get(i), facts))
        except BaseException:
            self._shutdown_workers()
            raise

    def _begin_with_workers(self, so_far: list[tuple[Any, Any]] | None = None) -> None:
        """Begins an epoch, or goes on in one.

        Args:
            so_far: of each worker, what the loader has made its batches with, and its generators.
        """
        try:
            self._begin_in_workers(so_far or [])
        except BaseException:
            self._shutdown_workers()
            raise

    def _begin_in_workers(self, so_far: list[tuple[Any, Any]]) -> None:
        count = len(self._workers)
        self._epoch += 1
        self._given = [0] * count  # batches that came from each worker
        self._exhausted = [False] * count
        self._forget_plan()
        self._next_worker = self._num_yielded % count
        resumed, self._resumed = self._resumed, None
        if resumed is not None and self._iterable:
            self._given = list(resumed["given"])
            self._exhausted = list(resumed["exhausted"])
        # A state of an indexed dataset may be one of another number of workers.
        if resumed is not None and (self._iterable or "num_workers" not in resumed):
            self._next_worker = resumed["next_worker"]
        self._no_more_indices = False
        self._refill_at = 0
        self._open = [0] * count  # tasks of each worker that wait for an answer
        self._pause_ends()
        self._here = self._may_be_here and self._pace.suits_loader()
        self._made_before, self._noted_at = self._num_yielded, time.monotonic()
        for worker, given in zip(self._workers, self._given, strict=True):
            self._wait_for(worker, worker.may_begin)
            worker.begin(self._epoch, given, self._here)
        if self._here or self._terms.threads:
            for worker, (fetch, generators) in zip(self._workers, so_far, strict=False):
                worker.go_on_with(fetch, generators)
        self._hand_out()

    def state_dict(self) -> dict[str, Any]:
        if self._crew is None:
            came, given, exhausted, next_worker, *_ = self._own_state()
            return {
                **super().state_dict(),
                "num_yielded": came,
                "num_workers": self._terms.job.num_workers,
                "given": given,
                "exhausted": exhausted,
                "next_worker": next_worker,
            }
        self._settle()
        return {
            **super().state_dict(),
            "num_workers": len(self._workers),
            "given": list(self._given),
            "exhausted": list(self._exhausted),
            "next_worker": self._first_planned() if self._planned() else self._next_worker,
        }

    def _new_indices(self, loader: Any) -> Iterator[Any]:
        packed = None
        if self._terms.may_run_ahead and not self._is_own:
            packed = packed_indices_of(self._index_sampler)
        return packed or indices_of(self._index_sampler)

    def _forget_plan(self) -> None:
        for number in range(len(self._workers)):
            self._unplan(number, True)
        self._turns_taken()
        self._allow([], 0)

    # ---- tasks

    def _hand_out(self) -> None:
        """Gives tasks to workers, in the order of the sampler."""
        if self._one_by_one and self._here and self._planned() and not self._slow_here():
            if not self._no_more_indices:
                self._keep_next()
            return
        active = len(self._workers) - sum(self._exhausted)
        if self._here and active:
            if not self._planned() or self._slow_here():
                self._adapt_here()
            elif self._groups:
                return
        if self._no_more_indices or not active:
            return
        ahead = self._prefetch
        if self._group > 1:
            ahead = max(ahead, self._groups_ahead * self._group)
        room = ahead * active - self._planned()
        least = self._group * active if self._group > 1 else 1
        # The loader's own come to an end before there are more.
        self._refill_at = 1 if self._here else ahead * active - least
        if room < least:
            return
        if not self._planned() and not self._here:  # workers begin while the rest is drawn and sent
            first = min(room, _FIRST_BATCHES * active)
            self._give(first)
            room -= first
        if room and not self._no_more_indices:
            self._give(room)

    def _keep_next(self) -> None:
        """The next task, in the place of the one that is done."""
        drawn = list(itertools.islice(self._indices, 1))
        if not drawn:
            self._no_more_indices = True
            return
        number = self._next_worker
        self._next_worker = (number + 1) % len(self._workers)
        self._plan([number], 1)
        self._open[number] += 1
        if self._own_sampler or _are_ints(drawn):
            self._workers[number].keep(drawn)
        else:
            self._move_away()  # an index may be an object with code of its own
            self._workers[number].send(drawn)

    def _give(self, room: int) -> None:
        """Gives workers tasks for so many batches."""
        drawn: Any
        packed = room >= _PACKED_BATCHES and isinstance(
            self._indices, (IndexBatches, RepeatedIndex)
        )
        if packed:
            drawn = self._indices.draw(room)  # type: ignore[attr-defined]
            if not self._here:
                drawn.shorten()
        else:
            drawn = list(itertools.islice(self._indices, room))
            if self._here and not self._own_sampler and not _are_ints(drawn):
                self._move_away()  # an index may be an object with code of its own
        count = len(drawn)
        self._no_more_indices = count < room
        takers = self._takers(count)
        self._plan(takers, count)
        step = len(takers)
        ends = self._no_more_indices and self._ends_processes
        for i, number in enumerate(takers[:count]):
            self._open[number] += len(range(i, count, step))
            share = drawn.share(i, step) if packed else drawn[i::step]
            worker = self._workers[number]
            if self._here:
                worker.keep(share)
            elif ends:
                worker.send(share, are_last=True)
            else:
                worker.send(share)
        if ends and not self._here:
            self._end_processes({*takers[:count]})

    def _end_processes(self, told: set[int]) -> None:
        """Tells the others that no task will come any more."""
        for number, worker in enumerate(self._workers):
            if number not in told:
                worker.send([], are_last=True)

    def _takers(self, count: int) -> list[int]:
        """The workers that take the next tasks, in turn."""
        active = [i for i, exhausted in enumerate(self._exhausted) if not exhausted]
        if not self._in_order and not self._here:
            return sorted(active, key=lambda i: self._open[i])
        first = next((k for k, i in enumerate(active) if i >= self._next_worker), 0)
        takers = active[first:] + active[:first]
        self._next_worker = takers[count % len(takers)]
        return takers

    def _adapt_here(self) -> None:
        """Chooses who makes the next batches, and of how many tasks are handed out at once."""
        self._note_times()
        pace = self._pace
        # A thread cannot begin to iterate once more: that may be noticed.
        stays = pace.threads and self._iterable and self._num_yielded
        if not pace.suits_loader() and not stays:
            self._move_away()
            return
        if self._groups and pace.seconds is not None:
            seconds = max(pace.latest, pace.seconds, 1e-6) * len(self._workers)
            self._group = max(1, min(int(_HERE_SECONDS / seconds), _MOST_HERE))
            self._groups_ahead = 1

    def _note_times(self) -> None:
        now = time.monotonic()
        count, self._made_before = self._num_yielded - self._made_before, self._num_yielded
        if self._here:
            self._pace.note(*self._times_here(), count)
        elif self._may_be_here and count:
            self._pace.note_workers((now - self._noted_at) / count)
        self._noted_at = now

    def _move_away(self) -> None:
        """From now on workers make the batches."""
        workers = self._workers
        self._note_times()
        self._here, self._group = False, 1
        for number, worker in enumerate(workers):
            if not self._exhausted[number]:
                worker.move_away(self._given[number])
        if self._no_more_indices and self._ends_processes:
            self._end_processes(set())

    def _move_here(self) -> None:
        """From now on the loader makes the batches of its threads, if it should."""
        self._here = True
        for worker in self._workers:
            worker.move_here()

    def _adapt(self, worker: Any) -> None:
        """Chooses how many batches make a message."""
        seconds = worker.seconds_per_batch
        pace = self._pace
        if pace.threads and self._may_be_here and seconds is not None:
            pace.seconds, pace.bytes = seconds, worker.slot_bytes_per_batch
            if pace.suits_loader() and not self._iterable and all(self._given):
                self._move_here()
                return
        if not self._groups or seconds is None:
            return
        fitting = min(
            int(_GROUP_SECONDS / max(seconds, 1e-6)),
            _GROUP_BYTES // max(worker.bytes_per_batch, 1),
            worker.most_batches,
        )
        if worker.slot_bytes_per_batch:
            fitting = min(fitting, _GROUP_SLOT_BYTES // worker.slot_bytes_per_batch)
        self._group = max(1, fitting)
        size = worker.slot_bytes_per_batch + worker.bytes_per_batch
        small = self._group * size <= _SMALL_GROUP_BYTES
        # Of larger ones, a batch more is memory that is not in the cache.
        self._groups_ahead = worker.groups_ahead if small else min(worker.groups_ahead, 3)

    # ---- answers

    def _next_after_turns(self) -> Any:
        """What ``__next__`` of the base does when the next batch must be waited for."""
        self._settle()
        data = BaseIterator.__next__(self)
        if self._group > 1 and self._in_order and not self._pin_memory and not self._loader_length:
            count = self._planned() - (0 if self._no_more_indices else self._refill_at)
            if count > 0:
                here = self._here
                self._allow([w.own if here else w.reader for w in self._workers], count)
        return data

    def _settle(self) -> None:
        """Notes which batches have come through the base."""
        for number, came in enumerate(self._turns_taken()):
            self._open[number] -= came
            self._given[number] += came
            self._num_yielded += came
        self._allow([()] * len(self._workers), 0)

    def _next_data(self) -> Any:
        while True:
            if self.is_shut_down or not self._planned():
                self._note_times()
                if self._terms.persistent and not self.is_shut_down:
                    raise StopIteration
                self._shutdown_workers()
                raise StopIteration
            in_order = self._in_order or self._here  # what the loader makes is there in order
            number = self._first_planned() if in_order else self._wait_for_any()
            if self._exhausted[number]:  # the task came too late for an iterable dataset
                self._unplan(number, False)
                continue
            worker = self._workers[number]
            if self._here and not worker.has_result():
                answer = self._answer_from_here(number, worker)
                if answer is None:
                    continue
                kind, data = answer
            else:
                if not worker.has_result():
                    self._wait_for(worker, worker.has_result)
                    self._adapt(worker)
                try:
                    kind, data = worker.result()
                except BaseException:
                    self._shutdown_workers()
                    raise
            self._unplan(number, False)
            self._open[number] -= 1
            if kind == END:
                self._exhausted[number] = True
                self._unplan(number, True)
                if not self._terms.persistent:
                    worker.close()
                self._hand_out()
                continue
            self._given[number] += 1
            self._hand_out()
            if kind == ERROR:
                try:
                    raise data
                finally:
                    del data  # the traceback refers to this frame
            return data

    def _answer_from_here(self, number: int, worker: Any) -> tuple[int, Any] | None:
        """What the worker would answer. None when it is to be asked instead."""
        own = worker.own
        try:
            if own.fetch is None:
                worker.prepare_here()
            shared = own.twister is not None or own.arrays is not None
            if shared and not _C._runs_alone():
                self._move_away()  # others might draw from the generators of Python and NumPy
                return None
            made = self._make_here(own)
        except Exception:
            self._pace.failed = True
            self._move_away()
            return None
        except BaseException:  # nobody will make it again
            self._unplan(number, False)
            self._open[number] -= 1
            raise
        if made is not None:
            if self._num_yielded % _SIZED == 0:
                self._pace.bytes = bytes_in(made[0])
            return READY, made[0]
        if own.error is None:  # its thread has not finished what it began
            self._wait_for(worker, lambda: worker.has_result() or not own.tasks.busy)
            return None
        ended = self._iterable and isinstance(own.error, StopIteration)
        if ended or (self._iterable and self._pace.threads and self._given[number]):
            error, own.error = own.error, None
            own.tasks.popleft()
            kind, data = worker.answer_to(error)
            return kind, data
        self._pace.failed = True
        self._move_away()
        return None

    def _wait_for(self, worker: Any, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout if self._timeout else None
        while not ready():
            if worker.ended:
                self._fail(worker.death())
            worker.wait(self._patience(deadline))

    def _patience(self, deadline: float | None) -> float:
        if deadline is None:
            return 1.0
        left = deadline - time.monotonic()
        if left <= 0:
            self._fail(f"DataLoader timed out after {self._timeout} seconds")
        return min(left, 1.0)

    def _wait_for_any(self) -> int:
        deadline = time.monotonic() + self._timeout if self._timeout else None
        waiting = [i for i, tasks in enumerate(self._open) if tasks and not self._exhausted[i]]
        waiting.sort(key=lambda i: not self._workers[i].has_result())
        pause = 0.0
        while True:
            for number in waiting:
                worker = self._workers[number]
                if worker.has_result():
                    return number
                if worker.ended:
                    self._fail(worker.death())
                worker.wait(min(pause, self._patience(deadline)))
            pause = min(0.01, 2 * pause + 0.0005)

    def _fail(self, message: str) -> None:
        self._shutdown_workers(at_once=True)
        self._forget_plan()
        raise RuntimeError(message)

    # ---- the end

    def _shutdown_workers(self, at_once: bool = False) -> None:
        if self.is_shut_down:
            return
        self.is_shut_down = True
        if self._crew is None:
            self._forget_own(True)
        else:
            self._crew.dismiss(at_once)
