"""Batches that a loader makes itself, in the place of its workers."""

import gc
import itertools
import os
import random
import sqlite3
import threading
import time
from collections import OrderedDict, UserDict

import numpy
import pytest

import facula
from facula.utils import data
from facula.utils.data._utils import iterators, pace
from facula.utils.data._utils.lookups import is_same_in_workers, lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


class Memory(data.Dataset):
    """Has things to look up."""

    shared = facula.arange(60.0).view(20, 3)

    def __init__(self, count=20):
        self.count = count
        self.rows = facula.rand(count, 4)
        self.array = numpy.arange(2.0 * count).reshape(count, 2)
        self.labels = list(range(count))
        self.names = {"first": self.rows, 2: [1, 2]}
        self.transform = None
        self.scale = Scale(3)
        self.chosen = [self.scale, Scale(2), picks]
        self.dicts = [{"x": i, "y": "a"} for i in range(count)]
        self.lists = [[i, i + 1] for i in range(count)]
        self.pairs = [(i, -float(i)) for i in range(count)]
        self.mixed = [i if i % 2 else Scale(i) for i in range(count)]
        self.tensors = list(facula.rand(count, 2))
        self.order = numpy.arange(count)[::-1].copy()
        self.stream = iter(self.labels)
        self.pickers = [picks, helped]

    def __len__(self):
        return self.count

    def half(self, row):
        return row / 2

    @property
    def computed(self):
        return self.rows


def of(getitem):
    return type("Own", (Memory,), {"__getitem__": getitem})()


def with_transform(self, index):
    row = self.rows[index]
    if self.transform is not None:
        row = self.transform(row)
    return row.double(), self.labels[index]


def picks(index, more=0):
    return index + more


class Scale:
    """A transform that only computes."""

    def __init__(self, by):
        self.by = by

    def __call__(self, row):
        return row * self.by


def negated(row):
    return row * (-1 if os.getpid() else 1)


def with_helpers(self, index):
    if index < 0:
        raise IndexError(f"there is no sample {index} of {len(self)}")
    total = 0
    for label in self.labels[:3]:
        total += label
    return self.half(self.rows[index]), total, picks(index, 2)


def several(self, index):
    row = self.rows[index]
    if self.chosen:
        for transform in self.chosen:
            row = transform(row)
    return row


def caught(self, index):
    try:
        return self.labels[index]
    except IndexError:
        return os.getpid()


def in_place(self, index):
    row = self.rows[index]
    row += 1
    return row


def counted(self, index):
    self.count += 1
    return index


SIMPLE = {
    "numbers": lambda self, index: (float(index), index * 2 + 1),
    "rows": lambda self, index: (self.rows[index], self.labels[index]),
    "class attribute": lambda self, index: {"row": self.shared[index], "label": -index},
    "array": lambda self, index: self.array[index] / 2,
    "tensor": lambda self, index: facula.tensor([index, 1, 2], dtype=facula.float32),
    "names": lambda self, index: self.names["first"][index].view(2, 2)[0],
    "transform": with_transform,
    "function": lambda self, index: picks(index),
    "method and condition": with_helpers,
    "property": lambda self, index: self.computed[index],
    "object that is called": lambda self, index: self.scale(self.rows[index]),
    "slice": lambda self, index: self.rows[index][1:3],
    "several indices": lambda self, index: self.array[index, :1],
    "condition": lambda self, index: 1 if index else 2,
    "condition on two": lambda self, index: 0 < index < 3 or index,
    "comprehension": lambda self, index: facula.tensor([float(i) * index for i in range(3)]),
    "comprehension of own": lambda self, index: [self.labels[i] for i in range(3)],
    "items of a list": lambda self, index: facula.tensor(self.labels[index]),
    "lists in a list": lambda self, index: facula.tensor(self.lists[index]).float(),
    "tensors in a list": lambda self, index: self.tensors[index].mul(2),
    "pairs": lambda self, index: dict(self.pairs)[index] if False else self.pairs[index],
    "defaults": lambda self, index, other=1: index + other,
    "array as index": lambda self, index: self.labels[self.order[index]],
    "numbers of arrays": lambda self, index: (int(self.order[index]), float(self.rows[index][0])),
    "made arrays": lambda self, index: numpy.array([index, 1], dtype=numpy.float32),
    "texts": lambda self, index: (str(index), f"{index:03d}"),
    "lists of tensors": lambda self, index: facula.tensor(self.rows[index].tolist()),
    "dicts in a list": lambda self, index: self.dicts[index]["x"],
    "several transforms": several,
    "types of arrays": lambda self, index: self.array[index].astype(numpy.float32),
}
NOT_SIMPLE = {
    "process": lambda self, index: os.getpid(),
    "random": lambda self, index: random.shuffle(self.labels),
    "random tensor": lambda self, index: self.rows.uniform_(),
    "function": lambda self, index: helped(index),
    "method of a list": lambda self, index: self.labels.pop(),
    "written": lambda self, index: self.__dict__.update(a=1),
    "counted": counted,
    "loop": lambda self, index: [os.getpid() for i in range(index)],
    "either way": lambda self, index: 1 if index else os.getpid(),
    "in a handler": caught,
    "in place": in_place,
    "attribute of a sample": lambda self, index: self.labels[index].real,
    "opaque items": lambda self, index: facula.tensor(self.mixed[index]),
    "an iterator that goes on": lambda self, index: list(self.stream),
    "not all are dicts": lambda self, index: self.mixed[index]["x"],
    "one of several does more": lambda self, index: self.pickers[index % 2](index),
    "written to": lambda self, index: facula.full((3,), index, out=self.shared[0]),
    "gradient": lambda self, index: facula.tensor([1.0], requires_grad=True),
    "key": lambda self, index: max(index, 3, key=helped),
    "class of its own": lambda self, index: self.array[index].astype(Scale),
    "no end": lambda self, index: endless(index),
}


def helped(index):
    return os.getpid() + index


def endless(index):
    return endless(index)


@pytest.mark.parametrize("name", SIMPLE)
def test_what_only_looks_things_up_is_made_here(name, monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)  # also where the machine is busy
    dataset = of(SIMPLE[name])
    assert lookups_of(dataset) is not None
    loader = data.DataLoader(dataset, 3, num_workers=2)
    iterator = iter(loader)
    samples = [dataset[i] for i in range(20)]
    expected = [data.default_collate(samples[k : k + 3]) for k in range(0, 20, 3)]
    for got, want in zip(iterator, expected, strict=True):
        assert repr(got) == repr(want)
    assert all(worker.pid is None for worker in iterator._workers)


@pytest.mark.parametrize("name", NOT_SIMPLE)
def test_what_may_do_more_is_left_to_workers(name):
    assert lookups_of(of(NOT_SIMPLE[name])) is None


def test_a_dataset_that_pickles_itself_may_be_another_one_in_a_worker(monkeypatch):
    class Pickled(Memory):
        def __getitem__(self, index):
            return index

        def __setstate__(self, state):
            self.__dict__.update(state)

    plain = of(SIMPLE["numbers"])
    for method in ("fork", "spawn", "forkserver"):
        monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none, m=method: m)
        assert is_same_in_workers(plain)
        assert is_same_in_workers(Pickled()) == (method == "fork")


class Slots:
    """Has no dict."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 3

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Answers(Memory):
    """Every attribute is the program's own answer."""

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def __getitem__(self, index):
        return self.labels[index]


@pytest.mark.parametrize("make", [Slots, Answers])
def test_objects_of_other_kinds_are_read_too(make):
    dataset = make()
    assert (lookups_of(dataset) is None) == (make is Answers)
    loader = data.DataLoader(dataset, 2, num_workers=1)
    assert [x for batch in loader for x in batch.tolist()] == list(range(dataset.count))


def test_a_loop_without_an_end_is_stopped_by_the_timeout():
    def forever(self, index):
        while index >= 0:
            index += 1
        return index

    dataset = of(forever)
    assert lookups_of(dataset) is not None
    with pytest.raises(RuntimeError, match="timed out"):
        next(iter(data.DataLoader(dataset, 3, num_workers=1, timeout=0.5)))


def test_a_transform_that_is_there_is_not_simple():
    dataset = of(with_transform)
    dataset.transform = facula.sin
    assert lookups_of(dataset) is not None
    dataset.transform = facula.Tensor.sin_
    assert lookups_of(dataset) is None


def test_datasets_over_simple_ones_are_simple():
    rows = data.TensorDataset(facula.rand(6, 2))
    simple = [
        [1, 2],
        (1.0, 2.0),
        range(5),
        rows,
        data.Subset(rows, [1, 2]),
        data.ConcatDataset([rows, [1, 2]]),
        data.StackDataset(rows, range(6)),
        data.StackDataset(a=rows, b=[0] * 6),
    ]
    for dataset in simple:
        assert lookups_of(dataset) is not None
    strange = of(NOT_SIMPLE["random"])
    for dataset in (
        data.Subset(strange, [1]),
        data.ConcatDataset([rows, strange]),
        type("L", (list,), {})(),
    ):
        assert lookups_of(dataset) is None


def processes(loader):
    iterator = loader._iterator
    return [worker.pid for worker in iterator._workers if worker.pid]


def every_third(self):
    info = data.get_worker_info()
    yield from range(info.id, 50, info.num_workers)


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "sampler",
    [
        lambda n: {"shuffle": True},
        lambda n: {"shuffle": True, "generator": facula.Generator()},
        lambda n: {"sampler": data.WeightedRandomSampler([1.0, 2.0] * (n // 2), n)},
        lambda n: {"sampler": data.SubsetRandomSampler(range(0, n, 3))},
        lambda n: {"sampler": data.RandomSampler(range(n), replacement=True)},
    ],
)
def test_epochs_are_the_same_as_without_workers(size, workers, sampler, monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)  # also where the machine is busy
    dataset = type("Own", (Memory,), {"__getitem__": SIMPLE["rows"]})(2000)

    def epochs(**more):
        facula.manual_seed(1)
        loader = data.DataLoader(dataset, size, **sampler(2000), **more)
        return [[b[1].tolist() for b in loader] for _ in range(2)]

    assert epochs(num_workers=workers) == epochs()
    loader = data.DataLoader(dataset, size, num_workers=workers, persistent_workers=True)
    for _ in range(3):
        assert [i for b in loader for i in b[1].tolist()] == list(range(2000))
    assert not processes(loader)


def test_a_batch_that_fails_is_made_again_by_its_worker():
    loader = data.DataLoader([1, 2, 3, "four"], 2, num_workers=1, timeout=60)
    iterator = iter(loader)
    assert next(iterator).tolist() == [1, 2]
    with pytest.raises(TypeError, match="DataLoader worker process 0"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    assert not loader._pace.suits_loader()
    assert next(iter(loader)).tolist() == [1, 2]


@pytest.mark.parametrize(
    "sample", [UserDict(a=1), OrderedDict(a=1), facula.nn.Parameter(facula.ones(1))]
)
def test_samples_with_code_of_their_own_go_to_workers(sample):
    loader = data.DataLoader([sample] * 4, 2, num_workers=1, persistent_workers=True, timeout=60)
    try:
        assert len(list(loader)) == 2
    except Exception as error:  # gradients cannot be sent
        assert "worker process 0" in str(error)
    assert processes(loader)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_take_over_when_that_pays(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 1e-5)
    monkeypatch.setattr(pace, "_HANDOVER_SECONDS", 0.0)
    monkeypatch.setattr(pace, "_processors", lambda: 4)
    dataset = type("Own", (Memory,), {"__getitem__": SIMPLE["numbers"]})(5000)
    loader = data.DataLoader(dataset, 5, num_workers=4, persistent_workers=True, timeout=60)
    for _ in range(3):
        assert [int(x) for a, _ in loader for x in a] == list(range(5000))
    assert len(processes(loader)) == 4


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("iterable", [False, True])
def test_batches_without_order_may_be_in_order(iterable, monkeypatch):
    loader = data.DataLoader(range(50), 4, num_workers=3, in_order=False, persistent_workers=True)
    if iterable:
        shared = type("Shared", (data.IterableDataset,), {"__iter__": every_third})()
        loader = data.DataLoader(shared, 4, num_workers=3, in_order=False, persistent_workers=True)
    numbers = [sorted(int(x) for batch in loader for x in batch) for _ in range(2)]
    assert numbers == [[*range(50)]] * 2
    assert not processes(loader)
    # Workers take over in the middle.
    monkeypatch.setattr(pace.Pace, "suits_loader", lambda self: False)
    iterator = iter(loader)
    first = [next(iterator), next(iterator)]
    assert len(iterator._workers) == 3
    assert sorted(int(x) for batch in [*first, *iterator] for x in batch) == [*range(50)]


@pytest.mark.parametrize("came", [0, 1, 9, 300])
@pytest.mark.parametrize("kind", ["process", "thread"])
def test_state_in_the_middle(came, kind):
    dataset = type("Own", (Memory,), {"__getitem__": SIMPLE["numbers"]})(1000)
    loader = data.DataLoader(dataset, 2, shuffle=True, num_workers=2, worker_type=kind)
    list(loader)
    iterator = iter(loader)
    for _ in range(came):
        next(iterator)
    state = loader.state_dict()
    rest = [b[1].tolist() for b in iterator]
    loader.load_state_dict(state)
    assert [b[1].tolist() for b in loader] == rest


def test_a_dataset_that_changes_between_epochs_is_looked_at_again():
    dataset = of(with_transform)
    loader = data.DataLoader(dataset, 2, num_workers=1, persistent_workers=True, timeout=60)
    list(loader)
    dataset.transform = negated
    assert all((row <= 0).all() for row, _ in loader)
    assert processes(loader)


# ---- threads


class Who(data.Dataset):
    """Which worker makes a sample, in which thread, with which random number."""

    def __len__(self):
        return 3000

    def __getitem__(self, index):
        generator = facula.random.thread_safe_generator()
        number = facula.rand(1, generator=generator).item()  # generator: None in processes
        return index, data.get_worker_info().id, threading.get_ident(), number


def test_threads_are_spared_tiny_batches_and_nobody_can_tell(monkeypatch):
    def epochs(**more):
        facula.manual_seed(2)
        loader = data.DataLoader(Who(), 2, num_workers=3, worker_type="thread", **more)
        return [[[part.tolist() for part in b] for b in loader] for _ in range(3)]

    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)  # also where the machine is busy
    for more in ({}, {"persistent_workers": True}):
        here = epochs(**more)
        with monkeypatch.context() as patch:
            patch.setattr(pace.Pace, "suits_loader", lambda self: False)
            there = epochs(**more)
        me = threading.get_ident()
        assert {t for b in here[2] for t in b[2]} == {me}
        assert me not in {t for epoch in there for b in epoch for t in b[2]}
        for a, b in zip(here, there, strict=True):
            assert [[x[0], x[1], x[3]] for x in a] == [[x[0], x[1], x[3]] for x in b]
            assert [x[1][0] for x in a[:6]] == [0, 1, 2, 0, 1, 2]
    assert data.get_worker_info() is None


class Shared(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        yield from range(info.id, 500, info.num_workers)


def test_iterable_datasets_of_threads(monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)
    for persistent in (False, True):
        loader = data.DataLoader(
            Shared(), 3, num_workers=2, worker_type="thread", persistent_workers=persistent
        )
        first = [b.tolist() for b in loader]
        assert sorted(i for b in first for i in b) == list(range(500))
        for _ in range(3):
            iterator = iter(loader)
            assert iterator._is_own and iterator._crew is None
            assert [b.tolist() for b in iterator] == first


@pytest.mark.parametrize("persistent", [False, True])
def test_threads_go_on_where_the_loader_is(persistent, monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)
    options = {"num_workers": 2, "worker_type": "thread", "persistent_workers": persistent}
    for dataset in (Shared(), Who()):
        loader = data.DataLoader(dataset, 3, **options)
        expected = [repr(b[:2] if isinstance(b, list) else b) for b in loader]
        for came in (0, 1, 5):
            iterator = iter(loader)
            assert iterator._crew is None
            batches = [next(iterator) for _ in range(came)]
            assert len(iterator._workers) == 2  # somebody looks at them
            batches += iterator
            assert [repr(b[:2] if isinstance(b, list) else b) for b in batches] == expected


class Fails(data.Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        if index % 70 == 60:
            raise ValueError(f"no sample {index}")
        return index


class FailsOnTheWay(data.IterableDataset):
    def __iter__(self):
        yield from range(20)
        raise ValueError("no more")


def outcomes(loader):
    iterator, seen = iter(loader), []
    while True:
        try:
            seen.append(next(iterator).tolist())
        except StopIteration:
            return seen
        except ValueError as error:
            seen.append(str(error))


def test_errors_stand_where_their_batches_would(monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)
    loader = data.DataLoader(
        Fails(), 1, num_workers=2, worker_type="thread", persistent_workers=True
    )
    expected = [f"no sample {i}" if i % 70 == 60 else [i] for i in range(200)]
    for _ in range(3):
        assert outcomes(loader) == expected
    loader = data.DataLoader(FailsOnTheWay(), 4, num_workers=1, worker_type="thread")
    expected = [[k, k + 1, k + 2, k + 3] for k in range(0, 20, 4)] + ["no more"]
    for _ in range(3):
        assert outcomes(loader) == expected


class FailsAtOnce(data.IterableDataset):
    """Has a length; of each worker, the first sample may be missing."""

    missing: int | None = None

    def __len__(self):
        return 12

    def __iter__(self):
        info = data.get_worker_info()
        for i in range(info.id, len(self), info.num_workers):
            if i == self.missing:
                raise ValueError(f"no sample {i}")
            yield i


@pytest.mark.parametrize("has_length", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_an_error_of_the_first_batch_of_a_thread_that_iterates_arrives(
    has_length, persistent, monkeypatch
):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)
    loader = data.DataLoader(
        FailsAtOnce(), 2, num_workers=2, worker_type="thread", persistent_workers=persistent
    )
    assert not has_length or len(loader) == 6  # now each batch is counted
    everything = [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11]]
    assert outcomes(loader) == outcomes(loader) == everything
    loader.dataset.missing = 1
    expected = [[0, 2], "no sample 1", [4, 6], [8, 10]]
    assert outcomes(loader) == outcomes(loader) == expected
    loader.dataset.missing = None
    assert outcomes(loader) == everything


def test_processes_that_take_over_after_an_error_have_their_own_tasks():
    class Counts(data.Dataset):
        def __init__(self):
            self.count = 0

        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 1:
                raise ValueError(f"no sample {index}")
            self.count += 1
            return data.get_worker_info().id

    iterator = iter(data.DataLoader(Counts(), 1, num_workers=2))
    assert next(iterator).item() == 0
    with pytest.raises(ValueError, match="DataLoader worker process 1"):
        next(iterator)
    assert len(iterator._workers) == 2  # somebody looks at them
    assert [batch.item() for batch in iterator] == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("iterable", [False, True])
def test_two_epochs_at_once_may_both_fail(iterable):
    class Missing(data.IterableDataset if iterable else data.Dataset):
        def __init__(self):
            self.labels = [1, 2, 3]

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return self.labels[index]

        if iterable:

            def __iter__(self):
                for i in range(4):
                    yield self.labels[i]

    loader = data.DataLoader(Missing(), None, num_workers=1)
    both = iter(loader), iter(loader)
    for iterator in both:
        assert [next(iterator) for _ in range(3)] == [1, 2, 3]
        with pytest.raises(IndexError, match="DataLoader worker process 0"):
            next(iterator)
        with pytest.raises(StopIteration):
            next(iterator)


def test_threads_end_with_their_loader_after_errors():
    gc.collect()
    before = threading.active_count()
    gc.disable()
    try:
        loader = data.DataLoader(
            Fails(), 1, num_workers=2, worker_type="thread", persistent_workers=True
        )
        assert "no sample 60" in outcomes(loader)
        assert threading.active_count() > before
        del loader
        assert threading.active_count() == before
    finally:
        gc.enable()


class Database(data.Dataset):
    """What a thread opens is that thread's."""

    def __init__(self):
        self.connection = None

    def __len__(self):
        return 500

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = sqlite3.connect(":memory:")
        return self.connection.execute("select ?", (index,)).fetchone()[0]


def test_what_belongs_to_a_thread_stays_there():
    loader = data.DataLoader(
        Database(), 2, num_workers=1, worker_type="thread", persistent_workers=True
    )
    for _ in range(3):
        assert [i for b in loader for i in b.tolist()] == list(range(500))


class Interrupted(data.Dataset):
    interrupt = False

    def __len__(self):
        return 300

    def __getitem__(self, index):
        if index == 150 and self.interrupt:
            raise KeyboardInterrupt
        return index


def test_an_interrupt_arrives_and_the_loader_goes_on(monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)
    loader = data.DataLoader(
        Interrupted(), 1, num_workers=2, worker_type="thread", persistent_workers=True
    )
    list(loader)
    loader.dataset.interrupt = True
    iterator = iter(loader)
    seen = [next(iterator).item() for _ in range(150)]
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert seen + [b.item() for b in iterator] == [i for i in range(300) if i != 150]


class Sleeps(data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 16

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return threading.get_ident()


def test_threads_make_what_takes_time():
    dataset = Sleeps(0.01)
    loader = data.DataLoader(
        dataset, 1, num_workers=4, worker_type="thread", persistent_workers=True
    )
    for _ in range(2):
        assert len({b.item() for b in loader}) == 4
    dataset.seconds = 0
    list(loader)
    assert loader._pace.suits_loader() or loader._pace.seconds > pace._TINY_SECONDS
    dataset.seconds = 0.02  # the loader hands over when it notices
    list(loader)
    assert len({b.item() for b in loader}) == 4


def test_a_worker_that_is_prepared_or_timed_is_a_thread(monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)
    for options in ({"timeout": 60}, {"worker_init_fn": abs}):
        loader = data.DataLoader(Fails(), 1, num_workers=1, worker_type="thread", **options)
        for _ in range(2):
            iterator = iter(loader)
            assert not iterator._here
            outcomes(loader)


def test_options_may_change_between_epochs():
    loader = data.DataLoader(Who(), 2, num_workers=1, worker_type="thread")
    for workers, kind in ((1, "thread"), (3, "thread"), (2, "process"), (1, "thread")):
        loader.num_workers, loader.worker_type = workers, kind
        assert {b[1][0].item() for b in itertools.islice(loader, 10)} == set(range(workers))


# ---- how that is chosen


def test_when_processes_pay():
    def choice(seconds, pause, size, workers=2, count=10**6):
        chosen = pace.Pace(False, workers)
        chosen.bytes = size
        for _ in range(10):
            chosen.note(seconds, pause, 0)
        chosen.note(seconds, pause, count)
        return chosen.suits_loader()

    assert choice(5e-6, 1e-3, 100)  # a message takes longer
    assert not choice(5e-3, 0.0, 100) or iterators.os.cpu_count() == 1
    assert choice(5e-3, 0.0, 100, workers=1)  # which would do nothing but the same
    assert not choice(5e-3, 1e-2, 100, workers=1)  # while the program does something else
    assert choice(5e-4, 0.0, 1 << 22)  # copying
    assert choice(5e-3, 1e-2, 100, count=1)  # too little to start processes for


def test_when_threads_pay():
    def choice(between, alone, goes_back=True):
        chosen = pace.Pace(True, 2, goes_back)
        assert not chosen.suits_loader()  # they begin
        chosen.seconds = between
        chosen.note_workers(between)
        if not goes_back:
            return chosen.suits_loader()
        assert chosen.suits_loader()  # which finds out
        for _ in range(10):
            chosen.note(alone, 0.0, 1)
        return chosen.suits_loader()

    assert choice(2e-3, 1.9e-3)  # each waits for the interpreter
    assert not choice(1e-3, 1.9e-3)
    assert not choice(2e-3, 1.9e-3, goes_back=False)


# ---- what came from a worker


class Large(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return facula.full((200, 100), float(os.getpid() * 0 + index)), {"any": {index}}


def collate_first(samples):
    return data.default_collate([s[0] for s in samples])


def collate_both(samples):
    return [s[0] for s in samples], samples[0][1]


@pytest.mark.parametrize("collate", [collate_first, collate_both])
def test_memory_that_came_from_a_worker_can_be_shared(collate):
    loader = data.DataLoader(Large(), 2, num_workers=1, collate_fn=collate, timeout=60)
    for k, batch in enumerate(loader):
        tensor = batch if collate is collate_first else batch[0][1]
        view = tensor.view(-1)
        assert not tensor.is_shared()
        assert tensor.share_memory_() is tensor and tensor.is_shared() and view.is_shared()
        assert view[-1] == 2 * k + 1
        child = os.fork()
        if child == 0:
            view[-1] = 7.0
            os._exit(0)
        os.waitpid(child, 0)
        assert view[-1] == 7.0


def test_memory_that_an_array_points_to_stays():
    (batch,) = data.DataLoader(Large(), 4, num_workers=1, collate_fn=collate_first, timeout=60)
    array = batch.numpy()
    before = array.copy()
    assert batch.share_memory_().is_shared()
    batch[0] = 5.0
    del batch
    assert (array == before).all()


def test_a_dataset_is_read_when_its_loader_is_made():
    def getitem(self, index):
        return self.rows[index]

    loader = data.DataLoader(of(getitem), num_workers=2)
    assert loader._terms.lookups is not None


def test_a_dataset_that_is_completed_after_its_loader_was_made_is_read_again():
    def getitem(self, index):
        return self.later[index]

    dataset = of(getitem)
    loader = data.DataLoader(dataset, batch_size=None, num_workers=2)
    assert loader._terms.lookups is None
    dataset.later = list(range(20))
    assert list(loader) == dataset.later
    assert loader._terms.lookups is not None


def test_an_epoch_of_threads_cannot_begin_inside_of_itself(monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)

    class Nested(data.Dataset):
        loader = None
        errors = ()

        def __len__(self):
            return 6

        def __getitem__(self, index):
            if self.loader is not None and index == 3:
                loader, self.loader = self.loader, None
                try:
                    iter(loader)
                except RuntimeError as error:
                    self.errors += (str(error),)
            return index

    dataset = Nested()
    loader = data.DataLoader(
        dataset, 2, num_workers=2, worker_type="thread", persistent_workers=True
    )
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5]]
    dataset.loader = loader
    assert len(list(loader)) >= 2
    assert len(dataset.errors) == 1 and "makes a batch" in dataset.errors[0]
    assert [b.tolist() for b in loader][-1] == [4, 5]


class Indexed(data.Dataset):
    """What it does depends on what an index is."""

    def __init__(self):
        self.rows, self.asked, self.offset = list(range(10)), [], 1

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if isinstance(index, str):
            self.asked.append(index)
            return self.rows[len(index)]
        index += self.offset
        return self.rows[index]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ["a", "bcd"],
        lambda: [facula.tensor(0), facula.tensor(2)],
        lambda: [numpy.array(0), numpy.array(2)],
    ],
)
@pytest.mark.parametrize("sampled", [False, True])
def test_indices_of_a_program_are_not_taken_for_ints(make, sampled):
    dataset, indices = Indexed(), make()
    before = repr(indices)
    options = {"sampler": data.SubsetRandomSampler(indices)} if sampled else {}
    loader = data.DataLoader(
        dataset if sampled else data.Subset(dataset, indices), 2, num_workers=1, **options
    )
    for _ in range(2):
        assert sorted(facula.cat(list(loader)).tolist()) == [1, 3]
    assert dataset.asked == []  # the process wrote to its own
    assert repr(indices) == before


class Looked(data.Dataset):
    def __init__(self):
        self.rows = facula.arange(10)

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.rows[int(index)]


@pytest.mark.parametrize("make", [list, range, facula.tensor, numpy.array, tuple])
def test_indices_of_numpy_and_of_tensors_are_looked_up(make):
    indices = range(1, 4) if make is range else make([1, 2, 3])
    for loader in (
        data.DataLoader(Looked(), 3, sampler=data.SubsetRandomSampler(indices), num_workers=2),
        data.DataLoader(data.Subset(Looked(), indices), 3, num_workers=2),
    ):
        assert loader._terms.lookups is not None
        assert sorted(next(iter(loader)).tolist()) == [1, 2, 3]


class AnswersWithItsOwn(data.Dataset):
    def __init__(self):
        self.names = ["a", "b"]

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.names[index]

    def __getitems__(self, indices):
        return self.names


def test_a_batch_of_texts_is_not_the_datasets_own_list():
    loader = data.DataLoader(AnswersWithItsOwn(), 2, num_workers=2)
    assert loader._terms.lookups is not None
    for _ in range(2):
        (batch,) = loader
        assert batch == ["a", "b"]
        batch.append("more")
