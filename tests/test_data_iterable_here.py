"""Iterable datasets that only look things up: the loader iterates in the place of its workers."""

import itertools
import os
import random

import numpy
import pytest

import facula
from facula import _C
from facula.utils import data
from facula.utils.data._utils import pace
from facula.utils.data._utils.lookups import iterations_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


class Memory(data.IterableDataset):
    """Has things to iterate over."""

    def __init__(self, count=50):
        self.count = count
        self.rows = facula.rand(count, 3)
        self.array = numpy.arange(2.0 * count).reshape(count, 2)
        self.labels = list(range(count))
        self.stream = iter(self.labels)
        self.began = 0


def of(iterate):
    return type("Own", (Memory,), {"__iter__": iterate})()


def share(self):
    info = data.get_worker_info()
    return iter(range(info.id, self.count, info.num_workers) if info else range(self.count))


def generator(self):
    info = data.get_worker_info()
    first, step = (0, 1) if info is None else (info.id, info.num_workers)
    for i in range(first, len(self.rows), step):
        if i % 5 == 3:
            continue
        yield self.rows[i], {"label": self.labels[i], "twice": 2 * i}


def nested(self):
    for i, (row, label) in enumerate(zip(self.rows, self.labels, strict=True)):
        for k in range(2):
            yield row * k, label + i


def chunks(self):
    begin = 0
    while begin < self.count:
        yield self.rows[begin].sum(), self.array[begin, 0]
        begin += 3


def unequal(self):
    """Workers come to their ends at different times."""
    return iter(range(7 + 20 * data.get_worker_info().id))


def drawing(self):
    for x in self.labels:
        yield x + random.random()
    if random.random() < 0.5:
        yield 100.0


def noisy(self):
    first = data.get_worker_info().id
    for i in facula.randperm(self.count):
        yield self.rows[i] + facula.randn(1), first


def twice(x):
    return 2 * x


SIMPLE = {
    "a share of a range": share,
    "generator": generator,
    "loops in a loop": nested,
    "while": chunks,
    "unequal": unequal,
    "list": lambda self: iter(self.labels),
    "tensor": lambda self: iter(self.rows),
    "expression": lambda self: (float(x) for x in self.labels),
    "functions": lambda self: map(twice, itertools.islice(self.labels, 4, None)),
    "chain": lambda self: itertools.chain(self.labels, range(3)),
    "seed": lambda self: iter([data.get_worker_info().seed]),
    "nothing": lambda self: iter(()),
    "drawn": drawing,
    "drawn at the begin": lambda self: iter(facula.randperm(len(self.rows)).tolist()),
    "drawn tensors": noisy,
}


def counting(self):
    self.began += 1
    return iter(self.labels)


def cleaning(self):
    try:
        yield from self.labels
    finally:
        os.getpid()


NOT_SIMPLE = {
    "an iterator that goes on": lambda self: self.stream,
    "process": lambda self: iter([os.getpid()]),
    "counted": counting,
    "cleaned up": cleaning,
    "random": lambda self: iter([random.shuffle(self.labels)]),
    "no iterator": lambda self: self.labels,
}


@pytest.fixture(autouse=True)
def _no_processes_because_of_load(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)


def nothing(worker):
    """Has processes make the batches, since it asks which one it is."""
    os.getpid()


def same(got, want):
    assert len(got) == len(want)
    assert repr(got) == repr(want)


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", SIMPLE)
def test_batches_are_those_of_processes(name, workers, size):
    if name == "drawn" and not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    dataset = of(SIMPLE[name])
    assert iterations_of(dataset, False) is not None
    for drop_last in (False, True):
        options = {"batch_size": size, "num_workers": workers, "drop_last": drop_last}
        facula.manual_seed(5)
        expected = list(data.DataLoader(dataset, worker_init_fn=nothing, **options))
        facula.manual_seed(5)
        iterator = iter(data.DataLoader(dataset, **options))
        same(list(iterator), expected)
        assert all(worker.pid is None for worker in iterator._workers)


@pytest.mark.parametrize("name", NOT_SIMPLE)
def test_what_may_do_more_is_left_to_workers(name):
    assert iterations_of(of(NOT_SIMPLE[name]), False) is None


def test_nobody_is_a_worker_between_batches():
    for _ in data.DataLoader(of(generator), 4, num_workers=2):
        assert data.get_worker_info() is None


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("name", ["drawn", "drawn at the begin", "drawn tensors"])
def test_numbers_go_on_from_epoch_to_epoch(name, drop_last):
    dataset = of(SIMPLE[name])

    def epochs(moved, **options):
        facula.manual_seed(7)
        workers = {"num_workers": 2, "persistent_workers": True}
        loader = data.DataLoader(dataset, 4, drop_last=drop_last, **workers, **options)
        got = [list(loader)]
        iterator = iter(loader)
        some = [next(iterator) for _ in range(moved)]
        if moved:
            iterator._settle()
            iterator._move_away()
        got.append(some + list(iterator))
        got.append(list(loader))
        pids = [worker.pid for worker in loader._iterator._workers]
        assert (None in pids) == (not moved and not options)
        return got

    expected = epochs(0, worker_init_fn=nothing)
    same(epochs(0), expected)
    same(epochs(5), expected)


def test_persistent_workers_begin_anew_each_epoch():
    loader = data.DataLoader(of(generator), 4, num_workers=2, persistent_workers=True)
    first = list(loader)
    next(iter(loader))
    same(list(loader), first)
    same(list(loader), first)
    assert all(worker.pid is None for worker in loader._iterator._workers)


@pytest.mark.parametrize("came", [0, 1, 5, 9])
def test_state_in_the_middle(came):
    loader = data.DataLoader(of(generator), 4, num_workers=2)
    iterator = iter(loader)
    for _ in range(came):
        next(iterator)
    state = loader.state_dict()
    rest = list(iterator)
    other = data.DataLoader(loader.dataset, 4, num_workers=2)
    other.load_state_dict(state)
    same(list(other), rest)


def failing(self):
    for i in range(self.count):
        yield 1 / (30 - i)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_the_middle_is_the_workers(workers):
    def outcome(**options):
        loader = data.DataLoader(of(failing), 4, num_workers=workers, **options)
        came = []
        with pytest.raises(ZeroDivisionError) as caught:
            for batch in loader:
                came.append(batch)
        return came, str(caught.value)

    (came, text), (expected, expected_text) = outcome(), outcome(worker_init_fn=nothing)
    same(came, expected)
    assert text == expected_text
    assert "worker process" in text


def test_samples_with_code_of_their_own_go_to_workers():
    class Pid(float):
        def __new__(cls, value):
            return super().__new__(cls, os.getpid())

    dataset = of(lambda self: iter(self.labels))
    dataset.labels = [1.0, 2.0, Pid(3.0), 4.0]
    got = list(data.DataLoader(dataset, 2, num_workers=1))
    assert got[0].tolist() == [1.0, 2.0]
    assert got[1].tolist() == [float(dataset.labels[2]), 4.0]


def test_processes_take_over_in_the_middle(monkeypatch):
    dataset = of(generator)
    expected = list(data.DataLoader(dataset, 2, num_workers=2, worker_init_fn=nothing))
    iterator = iter(data.DataLoader(dataset, 2, num_workers=2))
    got = [next(iterator) for _ in range(3)]
    assert all(worker.pid is None for worker in iterator._workers)
    iterator._settle()
    iterator._pace.failed = True  # as if they were quicker
    iterator._move_away()
    got += iterator
    same(got, expected)


def test_a_prepared_worker_is_a_process():
    loader = data.DataLoader(of(share), 4, num_workers=1, worker_init_fn=nothing)
    iterator = iter(loader)
    next(iterator)
    assert iterator._workers[0].pid is not None
