"""What passes between a loader and its workers: the begin of epochs, threads, forks, failures."""

import errno
import gc
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
import time

import numpy
import pytest

import facula
from facula.utils import data
from facula.utils.data._utils import process_worker
from facula.utils.data._utils.indices import PackedBatches

pytestmark = pytest.mark.usefixtures("workers_make_every_batch")

KINDS = [{"worker_type": "thread"}, {}]


class Numbers(data.Dataset):
    def __init__(self, count=300):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index, float(index)


# ---- epochs


@pytest.mark.parametrize("kind", KINDS, ids=["threads", "processes"])
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_epochs_of_any_length_follow_one_another(workers, kind):
    for count in (0, 1, 3, 40):
        loader = data.DataLoader(
            Numbers(count), 1, num_workers=workers, persistent_workers=True, timeout=60, **kind
        )
        for _ in range(6):
            assert [i.item() for i, _ in loader] == list(range(count))


@pytest.mark.parametrize("kind", KINDS, ids=["threads", "processes"])
def test_epochs_that_are_left_early_follow_one_another(kind):
    loader = data.DataLoader(
        Numbers(), 2, num_workers=2, persistent_workers=True, timeout=60, **kind
    )
    for left_at in (0, 1, 2, 0, 0, 0, 50, 0, 1):
        iterator = iter(loader)
        for expected in range(left_at):
            assert next(iterator)[0].tolist() == [2 * expected, 2 * expected + 1]
    assert sum(len(i) for i, _ in loader) == 300


class Pictures(data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return facula.full((3, 64, 64), float(index)), {"index": index, "text": str(index)}


@pytest.mark.parametrize("size", [1, 4, 16])
def test_slots_of_batches_that_nobody_read_are_used_again(size):
    loader = data.DataLoader(Pictures(), size, num_workers=2, persistent_workers=True, timeout=60)
    for _ in range(60):  # a worker is at most two epochs behind
        next(iter(loader))
    for worker in loader._iterator._workers:
        assert len(worker.slots) <= 4 * 32  # of up to 1920 pictures
    for picture, other in loader:
        assert (picture == other["index"].view(-1, 1, 1, 1)).all()
        assert other["text"] == [str(i) for i in other["index"].tolist()]


def test_indices_beyond_31_bits_arrive():
    wide = PackedBatches(numpy.array([1, 1 << 40, 5, 6, 7]), 2)
    narrow = PackedBatches(numpy.array([1, 2, 5, 6, 7]), 2)
    for packed in (wide, narrow):
        packed.shorten()
    for packed, first in ((wide, [1, 1 << 40]), (narrow, [1, 2])):
        tasks = facula._C._Tasks()
        tasks.append_packed(*packed.share(0, 1))
        assert tasks.first_index() == first and len(tasks) == 3
        assert [tasks.popleft() for _ in range(3)] == [first, [5, 6], [7]]
    assert narrow.share(0, 1)[2] == 4 and wide.share(0, 1)[2] == 8
    with pytest.raises(ValueError, match="bytes"):
        facula._C._Tasks().append_packed(b"", 1, 3)


# ---- threads


class WaitsFor(data.Dataset):
    """Sample 30 comes when somebody says so."""

    def __init__(self):
        self.event = threading.Event()

    def __len__(self):
        return 60

    def __getitem__(self, index):
        if index == 30:
            assert self.event.wait(60)
        return index


def test_finished_batches_of_a_thread_do_not_wait_for_a_slow_one():
    for _ in range(5):
        dataset = WaitsFor()
        loader = data.DataLoader(dataset, 1, num_workers=1, worker_type="thread", timeout=50)
        for i, batch in enumerate(loader):
            assert batch.item() == i
            if i == 29:
                dataset.event.set()
        assert i == 59


class Fails(Numbers):
    def __getitem__(self, index):
        if index % 7 == 3:
            raise ValueError(f"no sample {index}")
        return index


def test_errors_of_threads_stand_where_their_batches_would():
    loader = data.DataLoader(Fails(20), 1, num_workers=2, worker_type="thread", timeout=60)
    iterator, seen = iter(loader), []
    while True:
        try:
            seen.append(next(iterator).item())
        except StopIteration:
            break
        except ValueError as error:
            seen.append(str(error))
    assert seen == [f"no sample {i}" if i % 7 == 3 else i for i in range(20)]


class Count(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id, 101, info.num_workers))


def test_threads_share_an_iterable_dataset_in_each_epoch():
    loader = data.DataLoader(
        Count(), 3, num_workers=2, worker_type="thread", persistent_workers=True, timeout=60
    )
    for _ in range(3):
        assert sorted(i for batch in loader for i in batch.tolist()) == list(range(101))


# ---- forks and failures


def test_an_iterator_that_ends_in_a_forked_process_leaves_the_workers_alone():
    loader = data.DataLoader(Numbers(2000), 1, num_workers=2, timeout=60)
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            iterator._shutdown_workers()
            del iterator, loader
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert sum(1 for _ in iterator) == 1999


def test_a_process_that_is_forked_while_numbers_are_drawn_can_draw_some():
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            facula.rand(200000)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(30):
            child = os.fork()
            if child == 0:
                facula.manual_seed(3)
                os._exit(int(facula.rand(1).item() >= 1))
            deadline = time.monotonic() + 60
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                assert time.monotonic() < deadline
                time.sleep(0.001)
            assert ended == (child, 0)
    finally:
        stop.set()
        thread.join()


class SlowLater(Numbers):
    def __getitem__(self, index):
        if index == 200:
            time.sleep(30)
        return index


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_answers_that_a_worker_fails_to_send_are_no_reason_to_wait(monkeypatch):
    send = process_worker._Server.send_answers

    def fail_in_threads(server):
        if threading.current_thread() is not threading.main_thread():
            raise OSError(errno.ENOBUFS, "no room")
        send(server)

    monkeypatch.setattr(process_worker._Server, "send_answers", fail_in_threads)
    context = multiprocessing.get_context("fork")
    loader = data.DataLoader(
        SlowLater(), 1, num_workers=1, timeout=60, multiprocessing_context=context
    )
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader worker"):
        list(loader)
    assert time.monotonic() - began < 25


def allow_only_small_files(worker):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))


def test_a_worker_without_shared_memory_says_so():
    loader = data.DataLoader(
        Pictures(), 4, num_workers=1, timeout=60, worker_init_fn=allow_only_small_files
    )
    with pytest.raises(RuntimeError, match="bytes to be shared"):
        list(loader)


ENDS_WHILE_THREADS_WORK = """
import time, facula
from facula.utils import data

class Slow(data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        time.sleep(0.002)
        return facula.ones(3), index

iterator = iter(data.DataLoader(Slow(), 4, num_workers=2, worker_type="thread"))
next(iterator)
facula.kept = iterator
"""


def test_a_program_may_end_while_worker_threads_are_at_work():
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", ENDS_WHILE_THREADS_WORK],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
