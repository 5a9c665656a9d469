"""What samples are made of, in code that a loader reads to make them itself."""

import collections
import dataclasses
import functools
import math
import os
import random
import threading
import time

import numpy
import pytest

import facula
from facula import _C, nn
from facula.utils import data
from facula.utils.data._utils import pace
from facula.utils.data._utils.lookups import iterations_of, lookups_of
from facula.utils.data._utils.reading import IS_READ
from facula.utils.data._utils.terms import Terms

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")

Pair = collections.namedtuple("Pair", "value label")


@dataclasses.dataclass
class Record:
    value: float
    label: int


class Doubles(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("by", facula.full((4,), 2.0))

    def forward(self, row):
        return row * self.by


class Compose:
    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self, row):
        for step in self.steps:
            row = step(row)
        return row


class ToTensor:
    def __call__(self, row):
        return facula.from_numpy(row).float()


class Noise:
    def __call__(self, row):
        return row + numpy.random.normal(0, 1)


def refuses(row, **_) -> None:
    raise AssertionError("which is the worker's to tell")


def shifted(row, *more, by=2):
    return row + by + len(more)


class Base(data.Dataset):
    scale = 3
    lock = threading.Lock()

    def __init__(self, count=24):
        self.count = count
        self.rows = facula.arange(4.0 * count).view(count, 4)
        self.array = numpy.arange(2.0 * count).reshape(count, 2)
        self.labels = list(range(count))
        self.names = [f"name{i}" for i in range(count)]
        self.places = {f"name{i}": i for i in range(count)}
        self.pairs = [(f"p{i}", i) for i in range(count)]
        self.tensors = [(self.rows[i], i) for i in range(count)]
        self.dicts = [{"x": self.rows[i], "y": i} for i in range(count)]
        self.named = [Pair(float(i), i) for i in range(count)]
        self.records = [Record(float(i), i) for i in range(count)]
        self.mixed = [i if i % 2 else Compose() for i in range(count)]
        self.compose = Compose(ToTensor(), shifted, Doubles.forward.__get__(Doubles()))
        self.arrays = Compose(Noise(), ToTensor())
        self.partial = functools.partial(shifted, by=5)
        self.module = Doubles()
        self.relu = nn.ReLU()
        self.several = nn.Sequential(Doubles(), Doubles())
        self.inner = data.TensorDataset(self.rows, facula.arange(count))
        self.twister = random.Random(1)
        self.arrays_twister = numpy.random.RandomState(1)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.rows[index], self.labels[index]

    @staticmethod
    def doubled(value):
        return 2 * value

    @classmethod
    def scaled(cls, value):
        return cls.scale * value

    def counted(self, index):
        self.count += 1
        return index


def of(getitem):
    made = type("Own", (Base,), {})
    if "__class__" in getitem.__code__.co_freevars:
        return getitem.__globals__["with_super"]()
    made.__getitem__ = getitem
    return made()


class with_super(Base):
    def __getitem__(self, index):
        row, label = super().__getitem__(index)
        return row * 2, label


def catches(self, index):
    try:
        row = self.rows[index + 20]
    except (IndexError, KeyError):
        row = facula.zeros(4)
    else:
        row = row + 1
    return row, index


def catches_and_names(self, index):
    try:
        return self.places[self.names[index]] // (index % 3)
    except ZeroDivisionError as error:
        del error
        return -1
    except ValueError:
        return -2


def cleans_up(self, index):
    try:
        row = self.rows[index]
    finally:
        index += 1
    return row, index


def without_gradients(self, index):
    with facula.no_grad():
        row = self.rows[index] * 2
    return row


def fills_dict(self, index):
    sample = {"image": self.array[index], "label": index}
    sample["image"] = facula.from_numpy(sample["image"])
    sample["more"] = sample["image"] + 1
    return sample


def fills_list(self, index):
    rows = []
    for k in range(3):
        rows.append(self.rows[index] * k)
    rows.extend([self.rows[index], self.rows[index]])
    return facula.stack(rows)


def writes_to_its_own(self, index):
    row = self.rows[index].clone()
    row[0] = -1.0
    row += 1
    row[1:3].mul_(2)
    array = numpy.zeros(5, dtype=numpy.float32)
    array[index % 5] = 1.0
    array *= 3
    return row, array


def asks_for_types(self, index):
    if facula.is_tensor(index):
        index = index.tolist()
    if isinstance(index, slice) or not 0 <= index < len(self):
        raise TypeError(f"there is no {index}")
    return self.rows[index], getattr(self, "labels")[index], getattr(self, "nothing", 7)  # noqa: B009


def imports(self, index):
    import math as m
    from os import path  # noqa: F401

    return m.sqrt(index)


def defines(self, index):
    row = self.rows[index]

    def plus(other):
        return row + other

    return plus(1), [row * k for k in range(2)][1]


def shuffles(self, index):
    order = list(range(6))
    random.shuffle(order)
    return facula.tensor(order), random.sample(range(9), 2), random.choice(self.names)


def draws_arrays(self, index):
    if numpy.random.rand() < 0.5:
        return numpy.random.normal(0, 1, 3), numpy.random.randint(0, 9), 0.5
    return self.array[index].sum() + numpy.random.randn(3), numpy.random.choice(5), 1.5


def draws_all(self, index):
    noise = facula.randn_like(self.rows[index]) + random.gauss(0, 1)
    return noise, float(numpy.random.uniform(0, 1)), random.gauss(0, 1)


def draws_its_own(self, index):
    generator = facula.Generator().manual_seed(index)
    arrays = numpy.random.default_rng(index)
    return (
        facula.rand(2, generator=generator),
        arrays.normal(size=2),
        random.Random(index).random(),
        numpy.random.RandomState(index).randint(0, 9, 3),
    )


def looks_up_texts(self, index):
    name = self.names[index]
    found = [self.places.get(n, -1) for n in (name, "none")]
    return f"{name!r:>9}-{index:03d}", name.upper().split("E")[0], facula.tensor(found), len(name)


def unpacks(self, index):
    name, label = self.pairs[index]
    return name + ".png", label * 2


SIMPLE = {
    "super": with_super.__getitem__,
    "caught": catches,
    "caught with a name": catches_and_names,
    "finally": cleans_up,
    "no_grad": without_gradients,
    "dict": fills_dict,
    "list": fills_list,
    "own tensors": writes_to_its_own,
    "types": asks_for_types,
    "imports": imports,
    "functions in it": defines,
    "shuffled": shuffles,
    "drawn arrays": draws_arrays,
    "drawn of all": draws_all,
    "generators of its own": draws_its_own,
    "texts": looks_up_texts,
    "facula": lambda self, i: (facula.cat([self.rows[i], self.rows[i]]), self.rows[i].std()),
    "comparisons": lambda self, i: ((self.rows[i] > 3).float(), i in (1, 2), self.names[i] == "a"),
    "one or two results": lambda self, i: (self.rows[i].max(), self.rows[i].sort()[0]),
    "numpy": lambda self, i: (numpy.sin(self.array[i]), numpy.clip(self.array[i], 0, 1)),
    "scalars": lambda self, i: (numpy.float32(i), self.array[i].mean(), numpy.int64(i)),
    "math": lambda self, i: (math.hypot(i, 1), math.pi * i, math.log1p(i), ~i),
    "pairs": unpacks,
    "parts": lambda self, i: (self.tensors[i][0] * 2, self.tensors[i][1] + 1),
    "parts of dicts": lambda self, i: (self.dicts[i]["x"] * 2, self.dicts[i]["y"] + 1),
    "named tuples": lambda self, i: (self.named[i].value * 2, self.named[i].label),
    "objects": lambda self, i: (self.records[i].value * 2, self.records[i].label),
    "transforms": lambda self, i: self.compose(self.rows[i].numpy()),
    "drawing transforms": lambda self, i: self.arrays(self.array[i]),
    "partial": lambda self, i: self.partial(self.rows[i], 1, 2),
    "module": lambda self, i: self.module(self.rows[i]),
    "modules": lambda self, i: self.several(self.rows[i]),
    "another dataset": lambda self, i: [part * 2 for part in self.inner[i]],
    "static": lambda self, i: (self.doubled(i), self.scaled(i), type(self).scale, Base.scale),
    "names": lambda self, i: shifted(self.rows[i], by=7),
    "unpacked": lambda self, i: (*self.rows[i].tolist(), i),
    "named tuple": lambda self, i: Pair(self.rows[i], i),
    "module of nn": lambda self, i: self.relu(self.rows[i] - 3),
    "dict of names": lambda self, i: dict(x=self.rows[i], y=i),
    "dict in a loop": lambda self, i: {k: self.rows[i] + len(k) for k in ("a", "b")},
}


@pytest.fixture(autouse=True)
def _no_processes_because_of_load(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)


def in_processes(worker):
    """Has processes make the batches, since a loader does not know what this does."""
    os.getpid()


def batches_are_those_of_processes(dataset, size=5, **options):
    expected, pids = outcome(dataset, size, worker_init_fn=in_processes, **options)
    assert None not in pids
    assert outcome(dataset, size, **options) == (expected, [None, None])


def outcome(dataset, size=5, **options):
    facula.manual_seed(3)
    random.seed(4)
    numpy.random.seed(5)
    loader = data.DataLoader(dataset, size, shuffle=True, num_workers=2, **options)
    got = []
    for _ in range(2):
        iterator = iter(loader)
        for batch in iterator:
            own = random.random(), facula.rand(1).item(), numpy.random.randn(), random.gauss(0, 1)
            got.append((repr(batch), own))
    return got, [worker.pid for worker in iterator._workers]


@pytest.mark.parametrize("name", SIMPLE)
def test_batches_are_those_of_processes(name):
    if not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    dataset = of(SIMPLE[name])
    batches_are_those_of_processes(dataset)


@pytest.mark.parametrize(
    "make",
    [
        lambda: numpy.arange(20.0).reshape(10, 2),
        lambda: facula.arange(20.0).view(10, 2),
        lambda: {i: (i, str(i)) for i in range(10)},
    ],
)
def test_arrays_tensors_and_dicts_are_datasets(make):
    expected, _ = outcome(make(), worker_init_fn=in_processes)
    got, pids = outcome(make())
    assert got == expected and pids == [None, None]


# ---- what makes batches of samples


def stacks(samples):
    rows, labels = zip(*samples, strict=True)
    return facula.stack(rows), facula.tensor(labels)


def pads(samples):
    rows = [row[: 1 + label % 3] for row, label in samples]
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return {"rows": padded, "count": len(samples)}


class Gathers:
    def __call__(self, samples):
        return facula.stack([row for row, _ in samples])


def noisy(samples):
    return facula.stack([row for row, _ in samples]) + facula.randn(1), random.random()


class Odd(data.Sampler):
    """Of the program, and not to be run ahead of."""

    def __init__(self, made=None):
        self.made = made

    def __iter__(self):
        for index in range(1, 24, 2):
            yield index if self.made is None else self.made(index)


class AtOnce(Base):
    def __getitems__(self, indices):
        return [(self.rows[i] * 2, i) for i in indices]


OPTIONS = {
    "function": (Base, {"collate_fn": stacks}),
    "padding": (Base, {"collate_fn": pads}),
    "object": (Base, {"collate_fn": Gathers()}),
    "lambda": (Base, {"collate_fn": lambda samples: samples}),
    "drawing": (Base, {"collate_fn": noisy}),
    "one by one": (Base, {"batch_size": None}),
    "one by one, converted": (Base, {"batch_size": None, "collate_fn": lambda s: s[0] + s[1]}),
    "at once": (AtOnce, {}),
    "at once, with a function": (AtOnce, {"collate_fn": stacks}),
    "list of indices": (Base, {"sampler": list(range(20))}),
    "sampler": (Base, {"sampler": Odd()}),
    "sampler of batches": (Base, {"batch_sampler": [[1, 2], [3], [4, 5, 6]], "batch_size": 1}),
    "fork": (Base, {"multiprocessing_context": "fork"}),
}


def batches(dataset, **options):
    facula.manual_seed(3)
    random.seed(4)
    loader = data.DataLoader(dataset, num_workers=2, **{"batch_size": 5, **options})
    iterator = iter(loader)
    return repr(list(iterator)), [worker.pid for worker in iterator._workers]


@pytest.mark.parametrize("name", OPTIONS)
def test_batches_of_other_options_are_those_of_processes(name):
    if name == "drawing" and not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    if name == "fork" and not hasattr(os, "fork"):
        pytest.skip("processes are not forked here")
    made, options = OPTIONS[name]
    expected, pids = batches(made(), worker_init_fn=in_processes, **options)
    assert None not in pids
    assert batches(made(), **options) == (expected, [None, None])


@pytest.mark.parametrize("options", [{"collate_fn": lambda s: s}, {"batch_size": None}])
def test_batches_do_not_lie_in_the_memory_of_the_dataset(options):
    dataset = Base()
    before = dataset.rows.clone()
    for batch in data.DataLoader(dataset, **{"batch_size": 2, "num_workers": 1, **options}):
        row, _ = batch if options.get("batch_size", 2) is None else batch[0]
        row.zero_()
    assert facula.equal(dataset.rows, before)


def test_a_stream_with_other_options():
    class Numbers(Stream):
        def __iter__(self):
            for i in range(data.get_worker_info().id, 11, 2):
                yield self.rows[i], i

    dataset = Numbers()
    for options in ({"batch_size": None}, {"collate_fn": stacks}, {"collate_fn": lambda s: s}):
        expected, pids = batches(dataset, worker_init_fn=in_processes, **options)
        assert None not in pids
        assert batches(dataset, **options) == (expected, [None, None])


class Index:
    """Has code of its own, which tells who runs it."""

    def __init__(self, at):
        self.at = at

    def __index__(self):
        return self.at if os.getpid() else 0


def test_indices_of_other_kinds_go_to_workers():
    dataset = of(lambda self, index: self.labels[index])
    expected, _ = batches(dataset, sampler=Odd(Index), worker_init_fn=in_processes)
    got, pids = batches(dataset, sampler=Odd(Index))
    assert got == expected and None not in pids


def counts(samples):
    samples[0][0].zero_()
    return len(samples)


@pytest.mark.parametrize("collate", [counts, lambda s: os.getpid(), lambda s: print(s)])
def test_what_others_would_notice_of_a_batch_is_left_to_workers(collate):
    assert lookups_of(Base(), collate) is None


# ---- what prepares a worker


def nothing(worker):
    pass


def seeds(worker):
    seed = facula.initial_seed() % 2**32
    if seed != data.get_worker_info().seed % 2**32:
        raise ValueError("another worker's")
    numpy.random.seed(seed)
    random.seed(seed + worker)


def fails_in_the_second(worker):
    return 1 // (1 - worker)


def seeds_all(worker):
    facula.manual_seed(worker + 7)
    numpy.random.seed(worker)


@pytest.mark.parametrize(
    "prepare", [nothing, seeds, seeds_all, lambda worker: numpy.random.seed(worker)]
)
def test_what_only_seeds_a_worker_needs_none(prepare):
    if not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes are seeded")
    expected, _ = outcome(Base(), worker_init_fn=in_processes)
    got, pids = outcome(Base(), worker_init_fn=prepare)
    assert got == expected and pids == [None, None]
    # Numbers that are drawn are those of a worker that was seeded.
    expected, pids = outcome(
        of(draws_all), worker_init_fn=lambda worker: (os.getpid(), prepare(worker))
    )
    assert None not in pids
    got, pids = outcome(of(draws_all), worker_init_fn=prepare)
    assert got == expected and pids == [None, None]


def test_an_error_where_a_worker_is_prepared_is_the_workers():
    loader = data.DataLoader(Base(), 4, num_workers=2, worker_init_fn=fails_in_the_second)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(ZeroDivisionError, match="DataLoader worker process 1"):
        next(iterator)


@pytest.mark.parametrize("prepare", [lambda worker: facula.seed(), print, os.nice])
def test_what_does_more_to_a_worker_is_left_to_it(prepare):
    loader = data.DataLoader(Base(), num_workers=2, worker_init_fn=prepare)
    assert Terms(loader, True).lookups is None


# ---- what others would notice


def swallows(self, index):
    try:
        return self.rows[index]
    except:  # noqa: E722 - an interrupt as well
        return 0


def swallows_in_the_end(self, index):
    try:
        return self.rows[index]
    finally:
        return 0  # noqa: B012, SIM107


def catches_interrupts(self, index):
    try:
        return self.rows[index]
    except BaseException:
        return 0


def waits(self, index):
    with self.lock:
        return index


def reads(self, index):
    with open(os.devnull) as file:
        return file.read()


def writes_through_a_view(self, index):
    row = self.rows[index].view(2, 2)
    row[0] = 1.0
    return row


def writes_through_numpy(self, index):
    facula.from_numpy(self.array[index]).add_(1)
    return index


def writes_through_asarray(self, index):
    array = numpy.asarray(self.array[index])
    array[0] = 1
    return array


def writes_either(self, index):
    row = self.rows[index]
    if index % 2:
        row = row.clone()
    row += 1
    return row


def writes_to_a_list_in_a_list(self, index):
    lists = [self.labels]
    lists[0].append(index)
    return index


def writes_by_another_name(self, index):
    """The second name must be known to have an object in it, too."""
    numbers = []
    both = [numbers]
    numbers.append(self.mixed[index])
    return facula.tensor(both[0])


def writes_in_a_loop(self, index):
    """Two lists are made by one instruction, and one of them gets an object."""
    kept = []
    for k in range(2):
        made = []
        if k:
            made.append(self.mixed[index])
        else:
            made.append(1)
            kept = made
    return facula.tensor(kept), facula.tensor(made)


def fill(values, value):
    values.append(value)


def writes_in_a_call(self, index):
    values = []
    fill(values, self.mixed[index])
    return facula.tensor(values)


def goes_over_what_grows(self, index):
    values = [1]
    total = 0
    for value in values:
        total = value + total
        if len(values) < 3:
            values.append(self.mixed[index])
    return total


def defines_too_early(self, index):
    value = 1

    def later():
        return value + 1

    value = self.mixed[index]
    return later()


def with_hook(self, index):
    return self.hooked(self.rows[index])


def writes_through_a_plus(self, index):
    row = +self.rows[index]
    row += 1
    return row


def writes_to_one_of_several(self, index):
    _, row = numpy.atleast_1d(numpy.zeros(2), self.array[index])
    row += 1
    return row


NOT_SIMPLE = {
    "bare except": swallows,
    "plus": writes_through_a_plus,
    "one of several views": writes_to_one_of_several,
    "returns from finally": swallows_in_the_end,
    "interrupts": catches_interrupts,
    "lock": waits,
    "file": reads,
    "view": writes_through_a_view,
    "numpy": writes_through_numpy,
    "asarray": writes_through_asarray,
    "either": writes_either,
    "list in a list": writes_to_a_list_in_a_list,
    "another name": writes_by_another_name,
    "in a loop": writes_in_a_loop,
    "in a call": writes_in_a_call,
    "what grows": goes_over_what_grows,
    "too early": defines_too_early,
    "hook": with_hook,
    "counted": lambda self, i: super(type(self), self).counted(i),
    "out of a ufunc": lambda self, i: numpy.sin(self.array[i], self.array[0]),
    "out of a function": lambda self, i: numpy.max(self.array, 0, self.array[0]),
    "out by name": lambda self, i: numpy.sin(self.array[i], out=self.array[0]),
    "sorted in place": lambda self, i: self.array[i].sort(),
    "in place": lambda self, i: nn.functional.relu(self.rows[i], True),
    "in place by a number": lambda self, i: nn.functional.relu(self.rows[i], i > 1),
    "another device": lambda self, i: self.rows[i].to("cuda"),
    "generator of the dataset": lambda self, i: self.twister.random(),
    "arrays of the dataset": lambda self, i: self.arrays_twister.rand(),
    "seeded": lambda self, i: numpy.random.seed(i),
    "shuffled": lambda self, i: numpy.random.shuffle(self.array),
    "dict of the dataset": lambda self, i: self.places.update(a=i),
    "mixed": lambda self, i: self.mixed[i] + 1,
    "always raises": lambda self, i: refuses(self.rows[i], by=2),
    "sleeps": lambda self, i: time.sleep(0),
}


@pytest.mark.parametrize("name", NOT_SIMPLE)
def test_what_others_would_notice_is_left_to_workers(name):
    dataset = of(NOT_SIMPLE[name])
    dataset.hooked = Doubles()
    dataset.hooked.register_forward_hook(lambda *_: None)
    assert lookups_of(dataset) is None


class Stream(data.IterableDataset):
    def __init__(self, count=30):
        self.count = count
        self.rows = facula.rand(count, 2)


def passes_on(self):
    info = data.get_worker_info()
    yield from range(info.id, self.count, info.num_workers)


def gathers(self):
    held = []
    for i in range(data.get_worker_info().id, self.count):
        held.append(i)
        if len(held) == 4:
            yield from held
            held = []
    yield from held


def asks_for_the_next(self):
    numbers = iter(range(self.count))
    while True:
        try:
            number = next(numbers)
        except StopIteration:
            return
        yield self.rows[number], number


def draws(self):
    rng = numpy.random.default_rng(data.get_worker_info().seed)
    for _ in range(self.count):
        yield rng.random(2), numpy.random.rand(), {"more": [numpy.random.randn()]}


def yields_in_a_context(self):
    with facula.no_grad():
        yield from range(3)


STREAMS = {"yield from": passes_on, "held": gathers, "next": asks_for_the_next, "drawn": draws}


@pytest.mark.parametrize("name", STREAMS)
def test_iterable_datasets_are_read(name):
    if name == "drawn" and not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    dataset = type("Own", (Stream,), {"__iter__": STREAMS[name]})()

    def batches(**options):
        facula.manual_seed(3)
        numpy.random.seed(5)
        iterator = iter(data.DataLoader(dataset, 4, num_workers=2, **options))
        return repr(list(iterator)), [worker.pid for worker in iterator._workers]

    expected, pids = batches(worker_init_fn=in_processes)
    assert None not in pids
    assert batches() == (expected, [None, None])


def test_a_context_is_not_left_open():
    assert iterations_of(type("Own", (Stream,), {"__iter__": yields_in_a_context})(), False) is None


@pytest.mark.parametrize("moved_after", [1, 4])
def test_processes_go_on_with_numbers_of_numpy_and_of_gauss(moved_after):
    if not _C._runs_alone():
        pytest.skip("a thread of another test is still there, so processes draw")
    dataset = of(draws_all)
    expected, _ = outcome(dataset, worker_init_fn=in_processes)
    facula.manual_seed(3)
    random.seed(4)
    numpy.random.seed(5)
    iterator = iter(data.DataLoader(dataset, 5, shuffle=True, num_workers=2))
    got = []
    for k, batch in enumerate(iterator):
        own = random.random(), facula.rand(1).item(), numpy.random.randn(), random.gauss(0, 1)
        got.append((repr(batch), own))
        if k == moved_after:
            iterator._settle()
            iterator._move_away()
    assert got == expected[: len(got)]
    assert None not in [worker.pid for worker in iterator._workers]


def test_another_source_of_numbers_is_left_to_processes():
    dataset = of(lambda self, index: numpy.random.rand())
    before = numpy.random.get_bit_generator()
    try:
        numpy.random.set_bit_generator(numpy.random.PCG64(3))
        assert lookups_of(dataset) is None
    finally:
        numpy.random.set_bit_generator(before)
    if _C._runs_alone():
        assert lookups_of(dataset) is not None
