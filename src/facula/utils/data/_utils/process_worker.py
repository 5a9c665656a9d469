"""Workers that are processes: the loop in the worker, and the loader's hold on it."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import random
import select
import signal
import socket
import struct
import threading
import time
import weakref
from collections import deque
from typing import Any, NamedTuple

import numpy

import facula
from facula import _C
from facula.utils.data._utils import MP_STATUS_CHECK_INTERVAL, transport
from facula.utils.data._utils.array_random import (
    as_of_numpy,
    prepare_to_seed,
    seeds_as_numpy,
    states_of_workers,
)
from facula.utils.data._utils.collate import results_in
from facula.utils.data._utils.harmless import ARRAYS_DRAWN, GENERATOR, TWISTER
from facula.utils.data._utils.lookups import Lookups
from facula.utils.data._utils.worker import (
    DATA,
    END,
    ERROR,
    FORGET,
    PICKLED_DATA,
    READY,
    SHARED_DATA,
    SLOTS,
    SMALL_DATA,
    Batches,
    Job,
    acting_as,
    append_tasks,
    pack_error,
    seed_process,
    unpack_error,
)

# Finished batches wait for others no longer than this; the shorter time holds when a worker begins.
_FIRST_FLUSH_SECONDS, _FLUSH_SECONDS = 0.0001, 0.0005
_FLUSH_BYTES = 1 << 19
_COPIED_BYTES = 1 << 12  # of a message: less is sent through the socket, more lies in a slot
_SLOT_BYTES = 1 << 18  # of a group's bytes, for a batch that is copied into shared memory
_QUICK_SECONDS = 0.0005  # what takes longer is sent at once
_LONGEST_WAIT = 0.006  # of a finished batch for one that turns out slow

# The loader's ends of sockets: a forked worker must not keep those of others open.
_open_ends: weakref.WeakSet[socket.socket] = weakref.WeakSet()


# ---- in the worker


class _Epoch(NamedTuple):
    """Among the tasks: a new epoch begins."""

    number: int
    skipped: int


_SHARED = struct.Struct("<qIQQ")  # slot, batches, where they begin and end


class _Server:
    """Makes batches and sends them. Those that are made quickly are sent together."""

    def __init__(self, sock: socket.socket, job: Job, worker: int) -> None:
        self.sock, self.worker = sock, worker
        self.parent = os.getppid()
        self.parser = transport.FrameParser()
        self.slots = _C._SlotWriter()
        self.batches = Batches(job, worker)
        self.tasks = _C._Tasks()
        # What is made and not sent; two threads take from it.
        self.writer = _C._BatchWriter(transport.INLINE_BYTES, SMALL_DATA, _Epoch, self.slots)
        self.epoch = 0
        self.is_last = False  # nothing comes after the tasks that are there
        self.is_needed = False  # for objects that may ask for their process when they are read
        self.patience = _FIRST_FLUSH_SECONDS
        self.lock = threading.Lock()  # of the socket's sending side
        self.flusher: threading.Thread | None = None

    def run(self) -> None:
        while self.tasks or ((self.is_needed or not self.is_last) and self.receive()):
            self.patience = _FIRST_FLUSH_SECONDS
            self.work()

    def work(self) -> None:
        """Does the tasks that are there."""
        tasks, batches = self.tasks, self.batches
        while tasks:
            if type(tasks.first()) is _Epoch:
                epoch = tasks.popleft()
                self.flush(epoch.number)
                batches.begin(epoch.skipped)
            elif batches.ended:
                tasks.drop_until(_Epoch)
            elif batches.fetch is not None or self.prepare():
                self.make_several()

    def prepare(self) -> bool:
        """Called before an epoch's first batch. False when that is answered by an error."""
        began = time.perf_counter()
        try:
            self.batches.prepare(self.tasks.first_index())
            return True
        except Exception as error:
            self.tasks.popleft()
            self.finish(self.batches.answer_to(error), began)
            self.flush()
            return False

    def make_several(self) -> None:
        tasks = self.tasks
        if len(tasks) > 1 and self.flusher is None:
            self.flusher = threading.Thread(target=self.flush_what_waits, daemon=True)
            self.flusher.start()
        try:
            outcome = self.writer.make(
                tasks, self.batches.fetch, _QUICK_SECONDS, self.patience, _FLUSH_BYTES
            )
        except Exception as error:  # there is no shared memory for the last batch
            outcome = error
        if outcome is None:
            self.flush()
            self.patience = min(2 * self.patience, _FLUSH_SECONDS)
            return
        began = time.perf_counter()
        if type(outcome) is list:
            self.finish([READY, *outcome], began, outcome)
        else:
            self.finish(self.batches.answer_to(outcome), began)
        if not tasks or self.batches.ended:
            self.flush()

    def finish(self, answer: list[Any], began: float, batch: list[Any] | None = None) -> None:
        """Adds an answer of [kind, content] to what is sent; ``batch`` is emptied early."""
        kind = answer[0]
        if kind == READY:
            if batch is not None:
                batch.clear()
            kind, content = self.pack(answer)
        else:
            content = pack_error(answer[1], self.worker) if kind == ERROR else b""
        self.writer.add(kind, content, 1, time.perf_counter() - began)

    def flush_what_waits(self) -> None:
        """In a thread of its own: finished batches do not wait for one that turns out slow."""
        try:
            while True:
                self.writer.watch(_LONGEST_WAIT)
                with self.lock:
                    self.send_answers()
        except BaseException as error:
            # What was taken is lost, and the loader would wait for it: it must hear of an end.
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
            if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                raise

    def receive(self) -> bool:
        """Waits for tasks. False when the loader is gone."""
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        while True:
            if not poller.poll(1000 * MP_STATUS_CHECK_INTERVAL):
                loader = multiprocessing.parent_process()
                if os.getppid() != self.parent or (loader is not None and not loader.is_alive()):
                    return False
                continue
            data = self.sock.recv(1 << 16)
            if not data:
                return False
            frames = self.parser.feed(data)
            for frame in frames:
                for _, message in frame.records:
                    self.take(pickle.loads(message))
            if frames:
                return True

    def take(self, message: tuple[int, Any, list[int], int | None, bool]) -> None:
        epoch, indices, released, skipped, self.is_last = message
        self.slots.release(released)
        if skipped is not None:
            self.tasks.append(_Epoch(epoch, skipped))
        append_tasks(self.tasks, indices)

    def pack(self, answer: list[Any]) -> tuple[int, bytes]:
        """The form of ``answer[1]``, which is taken away: it must be gone when it is sent."""
        self.is_needed = True
        try:
            data, large = transport.pack(answer[1], self.slots)
            if not large:
                return DATA, data
            places = transport.place(large, self.slots)
            del large[:], answer[1:]
            sent = [(self.slots.sent(slot, size), begin, size) for slot, begin, size in places]
            return PICKLED_DATA, pickle.dumps((sent, data), 5)
        except Exception as error:
            return ERROR, pack_error(error, self.worker)

    def flush(self, next_epoch: int | None = None) -> None:
        """Sends what has been made; what is made from now on may be of another epoch."""
        with self.lock:
            surplus = self.slots.surplus()
            if surplus:
                self.writer.add(FORGET, pickle.dumps(surplus), 0, 0.0)
            self.send_answers()
            if next_epoch is not None:
                self.epoch = next_epoch

    def send_answers(self) -> None:
        answers, made, seconds, placed, slot = self.writer.take(_COPIED_BYTES)
        if not answers:
            return
        records = []
        fresh = self.slots.take_fresh()
        if fresh:
            records.append((SLOTS, pickle.dumps([made[:2] for made in fresh])))
        for kind, count, data in answers:
            if type(data) is tuple:
                kind, data = SHARED_DATA, _SHARED.pack(slot, count, *data)
            elif kind == SMALL_DATA:
                data = count.to_bytes(4, "little") + data
            records.append((kind, data))
        frame = transport.make_frame(transport.Frame(records, self.epoch, made, seconds, placed))
        if fresh:
            transport.send_with_descriptors(self.sock, frame, [made[2] for made in fresh])
        else:
            self.sock.sendall(frame)


def serve(
    sock: socket.socket, job: Job, worker: int, drawn: tuple[Any, Any, Any], facts: Any
) -> None:
    """The main function of a worker process; ``drawn`` are the states of generators, where the
    loader has drawn numbers in its place. It began with the epoch, so to speak: what the program
    has changed since then is put back, as far as that is known by ``facts``."""
    if facts is not None:
        facts.put_back()
    for end in list(_open_ends):
        end.close()
    try:
        facula.set_num_threads(1)
        seed_process(job.base_seed, worker)
        with acting_as(job.info(worker)):
            server = _Server(sock, job, worker)
            generator, twister, arrays = drawn  # after ``worker_init_fn``, which may seed
            if generator is not None:
                facula.set_rng_state(generator)
            if twister is not None:
                random.setstate(twister)
            if arrays is not None:
                numpy.random.set_state(arrays)
            with results_in(server.slots):
                server.run()
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass  # the loader has other things to do, or is gone
    finally:
        sock.close()


# ---- in the loader


@functools.cache
def _seeds_as_python() -> bool:
    """Whether Python seeds as ever, so that it can be done without it, which takes less time."""
    own = _C._seeded_twisters((1 << 32) - 2, 4)  # of one word and of two
    as_ever = [random.Random((1 << 32) - 2 + i) for i in range(4)]
    return own is not None and [t.getstate() for t in own] == [t.getstate() for t in as_ever]


def _seeded_twisters(seed: int, count: int) -> Any:
    if _seeds_as_python():
        return _C._seeded_twisters(seed, count)
    return [random.Random(seed + i) for i in range(count)]


def generators_of(
    base_seed: int, first: int, count: int, draws: frozenset[str]
) -> list[tuple[Any, Any, Any]]:
    """The generators that so many processes begin with: Facula's, Python's and NumPy's, None for
    those that are not drawn from."""
    seed = base_seed + first
    own: Any = [None] * count
    twisters = arrays = own
    if TWISTER in draws:
        twisters = _seeded_twisters(seed, count)
    if ARRAYS_DRAWN in draws:
        arrays = states_of_workers(base_seed, first, count)
    if GENERATOR in draws:
        own = [facula.Generator().manual_seed(seed + i) for i in range(count)]
    return [*zip(own, twisters, arrays, strict=True)]


def begin_as_ever(draws: frozenset[str]) -> bool:
    """Whether generators begin as the core begins them."""
    return (TWISTER not in draws or _seeds_as_python()) and (
        ARRAYS_DRAWN not in draws or seeds_as_numpy()
    )


class ProcessWorker:
    """A worker process as the loader sees it.

    Args:
        job: what the worker does.
        number: which worker it is.
        context: how processes are started.
        lookups: makes batches as the process would, where the loader may do that itself; the
            process is started when it has something to do.
        generators: the process's, where the loader has drawn from them already.
        facts: what has to be there as it was when the epoch began, if it did before.
    """

    most_batches = 1024  # in a message
    groups_ahead = 5  # a few milliseconds: nobody waits for a processor that is busy elsewhere

    def __init__(
        self,
        job: Job,
        number: int,
        context: Any,
        lookups: Lookups | None = None,
        generators: Any = None,
        facts: Any = None,
    ) -> None:
        self.number, self.of = number, job.num_workers
        self._job, self._context, self._lookups, self._facts = job, context, lookups, facts
        self.process: Any = None
        self.results: deque[tuple[int, Any]] = deque()
        self.reader: Any = ()  # batches that come before ``results``
        self.slots = _C._SlotReader()
        self.descriptors: deque[int] = deque()  # of slots that are announced in the stream
        self.parser = transport.FrameParser()
        self.epoch = self.begun = 0  # the one whose answers count, the one that the worker is in
        self.told = self.told_before = 0  # the last two that the worker was given tasks of
        self.skipped = 0  # batches at the begin of the epoch
        self.ended = False  # the stream of answers is over
        self.seconds_per_batch: float | None = None
        self.bytes_per_batch = self.slot_bytes_per_batch = 0
        self.own: Any = None  # batches of the epoch that the loader makes itself
        # The process's generators, from which the loader draws in its place.
        draws = lookups.draws if lookups is not None else frozenset()
        generators = generators or generators_of(job.base_seed, number, 1, draws)[0]
        self.generator, self.twister, self.arrays = generators
        if lookups is None:
            self.start()

    def _drawn(self) -> tuple[Any, Any, Any]:
        """The states of the process's generators."""
        return (
            None if self.generator is None else self.generator.get_state(),
            None if self.twister is None else self.twister.getstate(),
            None if self.arrays is None else as_of_numpy(self.arrays),
        )

    def start(self, drawn: tuple[Any, Any, Any] | None = None) -> None:
        """Starts the process, if it is not there, with its generators in those states."""
        if self.process is not None:
            return
        prepare_to_seed()  # which imports numpy.random: once here, not in each process
        self.sock, theirs = socket.socketpair()
        self.receiver = transport.Receiver(self.sock, self.descriptors)
        _open_ends.add(self.sock)
        self.poller = select.poll()
        self.poller.register(self.sock, select.POLLIN)
        process = self._context.Process(
            target=serve,
            args=(theirs, self._job, self.number, drawn or self._drawn(), self._facts),
            name=f"DataLoader-worker-{self.number}",
            daemon=True,
        )
        try:
            process.start()
        except BaseException:
            self.sock.close()
            raise
        finally:
            theirs.close()
        self.process = process

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def may_begin(self) -> bool:
        """Whether the worker is at most one epoch behind. What it makes for those that were left
        early takes memory until it is read."""
        return self.begun >= self.told_before

    def begin(self, epoch: int, skipped: int, here: bool) -> None:
        """Begins an epoch; answers to earlier tasks are dropped from now on. The worker hears of
        it with its first tasks."""
        if self.process is not None:
            while not self.ended and self.poller.poll(0):
                self.read()
            self.discard_results()
        self.epoch, self.skipped = epoch, skipped
        if not here:
            self.start()
        else:
            self.own = _C._OwnBatches(_C._Tasks(), [], (self._job.info(self.number), None))
            assert self._lookups is not None
            self.own.fetch = self._fetch_first if self._job.iterable else self._lookups.fetch
            self.own.generator, self.own.twister = self.generator, self.twister
            self.own.arrays = self.arrays
            if self._job.iterable:
                self.own.iterates = True
                self._drawn_before = self._drawn()

    def go_on_with(self, fetch: Any, generators: Any) -> None:
        """The loader has begun to iterate in the place of the process, and drawn numbers."""
        if fetch is not None:
            self.own.fetch = fetch
        if generators is not None:
            self.generator, self.twister, self.arrays = generators
            self.own.generator, self.own.twister, self.own.arrays = generators

    def may_draw_here(self, draws: frozenset[str]) -> bool:
        """Whether the loader has the process's generators, and the process has not drawn itself."""
        known = self._lookups.draws if self._lookups is not None else frozenset()
        return draws <= known and not (known and self.process is not None)

    def keep(self, indices: Any) -> None:
        """Notes tasks of which the loader makes the batches itself."""
        append_tasks(self.own.tasks, indices)

    def _fetch_first(self, indices: Any) -> Any:
        """Begins to iterate in the place of the process, and makes a batch."""
        assert self._lookups is not None
        fetch = self._lookups.fetch()
        for _ in range(self.skipped):
            fetch(indices)
        self.own.fetch = fetch
        return fetch(indices)

    def answer_to(self, error: Exception) -> list[Any]:
        """The answer where an iterable dataset has come to its end."""
        return [END, None]

    def move_away(self, given: int) -> None:
        """From now on the process makes the batches. Of an iterable dataset, it makes those again
        that the program was given, and drops them."""
        if self._job.iterable:
            self.skipped = given
            self.start(self._drawn_before)  # it draws again what was drawn
        self.start()
        tasks = self.own.tasks
        if tasks:
            self.send([tasks.popleft() for _ in range(len(tasks))])

    def send(self, indices: Any, are_last: bool = False) -> None:
        """Gives the worker tasks, one for each index or batch of indices, which may be packed. When
        the last are done it ends, which takes a process longer than a small batch."""
        skipped = None
        if self.told != self.epoch:
            skipped = self.skipped
            self.told_before, self.told = self.told, self.epoch
        message = (self.epoch, indices, self.slots.take_released(), skipped, are_last)
        record = [(DATA, pickle.dumps(message, 5))]
        data = memoryview(transport.make_frame(transport.Frame(record)))
        while data and not self.ended:
            try:
                data = data[self.sock.send(data, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                # The worker may itself be waiting for its answers to be read.
                self.poller.modify(self.sock, select.POLLIN | select.POLLOUT)
                for _, events in self.poller.poll(1000):
                    if events & ~select.POLLOUT:
                        self.read()
                self.poller.modify(self.sock, select.POLLIN)
                self.check_alive()
            except OSError:
                self.ended = True

    def wait(self, seconds: float) -> None:
        """Reads what has arrived, after waiting for it at most so long."""
        if self.poller.poll(1000 * seconds):
            self.read()
        else:
            self.check_alive()

    def check_alive(self) -> None:
        # A process that the worker started may hold its end of the socket open.
        if not self.process.is_alive():
            while not self.ended and self.poller.poll(0):
                self.read()
            self.ended = True

    def read(self) -> None:
        try:
            data = self.receiver.receive()
        except BlockingIOError:
            return
        except OSError:
            data = memoryview(b"")
        if not data:
            self.ended = True
            return
        for frame in self.parser.feed(data):
            self.begun = frame.epoch
            size = 0
            block = None
            for kind, content in frame.records:
                size += len(content)
                if kind == SLOTS:
                    self.open_slots(pickle.loads(content))
                elif kind == FORGET:
                    self.slots.forget(pickle.loads(content))
                elif kind == SHARED_DATA:
                    slot, count, begin, end = _SHARED.unpack(content)
                    if block is None:  # of which there is one in a message
                        block = self.slots.block(slot)
                    size += end - begin
                    self.results.append((SMALL_DATA, (block, count, begin, end)))
                elif kind == SMALL_DATA:
                    count = int.from_bytes(content[:4], "little")
                    self.results.append((kind, (content, count, 4, len(content))))
                else:
                    if kind == PICKLED_DATA:
                        size += _SLOT_BYTES
                    self.results.append((kind, content))
            if frame.epoch != self.epoch:
                self.discard_results()
            if frame.batches:
                self.seconds_per_batch = frame.seconds / frame.batches
                self.bytes_per_batch = size // frame.batches
                self.slot_bytes_per_batch = frame.placed // frame.batches

    def open_slots(self, made: list[tuple[int, int]]) -> None:
        """Maps new slots, whose descriptors have come."""
        for number, size in made:
            descriptor = self.descriptors.popleft()
            try:
                self.slots.open(number, size, descriptor)
            finally:
                os.close(descriptor)

    def discard_results(self) -> None:
        """Drops batches that nobody waits for; to read them frees their slots."""
        while self.reader or self.results:
            if self.reader:
                deque(self.reader, maxlen=0)
                continue
            kind, content = self.results.popleft()
            if kind == SMALL_DATA:
                self.reader = _C._read_batches(*content, self.slots)
            elif kind == PICKLED_DATA:
                transport.load_pickled(content, self.slots)

    def has_result(self) -> bool:
        return bool(self.reader or self.results)

    def result(self) -> tuple[int, Any]:
        """The next answer."""
        if self.reader:
            return READY, next(self.reader)
        kind, content = self.results.popleft()
        if kind == SMALL_DATA:
            self.reader = _C._read_batches(*content, self.slots)
            return READY, next(self.reader)
        if kind == DATA:
            return READY, pickle.loads(content)
        if kind == PICKLED_DATA:
            return READY, transport.load_pickled(content, self.slots)
        if kind == ERROR:
            return ERROR, unpack_error(content)
        return kind, content

    def death(self) -> str:
        """How a worker ended that should not have."""
        self.process.join(timeout=MP_STATUS_CHECK_INTERVAL)
        code = self.process.exitcode
        which = f"worker {self.number} of {self.of}, {self.process.name}"
        if code is None:
            return f"DataLoader worker (pid {self.pid}) closed its connection ({which})"
        if code >= 0:
            return (
                f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly with code {code} "
                f"({which})"
            )
        try:
            name, text = signal.Signals(-code).name, signal.strsignal(-code)
        except ValueError:
            name, text = f"signal {-code}", "unknown"
        hint = ""
        if -code == signal.SIGKILL:
            hint = ". The system kills processes this way when memory runs out"
        return (
            f"DataLoader worker (pid {self.pid}) is killed by signal: {text} ({name}; {which})"
            f"{hint}"
        )

    def close(self) -> None:
        """Tells the worker to end."""
        if self.process is None:
            return
        _open_ends.discard(self.sock)
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # also wakes a worker whose end others hold
        self.sock.close()
        while self.descriptors:
            os.close(self.descriptors.popleft())
        self.ended = True

    def join(self) -> None:
        """Waits for the end of the worker, and makes one in the end."""
        if self.process is None:
            return
        self.process.join(timeout=MP_STATUS_CHECK_INTERVAL)
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(timeout=1)
