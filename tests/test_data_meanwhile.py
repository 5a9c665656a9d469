"""What a program changes or watches while the loader makes batches in the place of processes, which
have copies of everything, and of which nobody sees what they compute."""

import random
from contextlib import nullcontext

import pytest

import facula
from facula.overrides import TorchFunctionMode
from facula.utils import data
from facula.utils._python_dispatch import TorchDispatchMode
from facula.utils.data._utils import pace
from facula.utils.data._utils.reading import IS_READ
from facula.utils.flop_counter import FlopCounterMode

pytestmark = pytest.mark.skipif(not IS_READ, reason="the instructions are not known")

SCALE = 1
_seen = []


def noted(value):
    _seen.append(value)
    return -value


class Part:
    factor = 1


class Rows(data.Dataset):
    def __init__(self):
        self.rows = facula.arange(12)
        self.factor = 1
        self.part = Part()
        self.part.factor = 1
        self.transform = lambda value: value
        self.places = {"only": 1}
        self.count = 0

    def __len__(self):
        return 12

    def helped(self, value):
        return value


def of(getitem):
    return type("Own", (Rows,), {"__getitem__": getitem})()


def with_cell():
    scale = 1

    def getitem(self, index):
        return self.rows[index] * scale

    def change(dataset):
        nonlocal scale
        scale = 5

    return getitem, change


def counted(self, index):
    self.count += 1
    return self.rows[index] * SCALE


def set_global(dataset):
    globals()["SCALE"] = 5


CHANGES = {
    "an attribute": (
        lambda self, index: self.rows[index] * self.factor,
        lambda dataset: setattr(dataset, "factor", 5),
    ),
    "an attribute that is gone": (
        lambda self, index: self.rows[index] * self.factor,
        lambda dataset: delattr(dataset, "factor"),
    ),
    "of a part": (
        lambda self, index: self.rows[index] * self.part.factor,
        lambda dataset: setattr(dataset.part, "factor", 5),
    ),
    "a part that loses it": (
        lambda self, index: self.rows[index] * self.part.factor,
        lambda dataset: delattr(dataset.part, "factor"),
    ),
    "other rows": (
        lambda self, index: self.rows[index],
        lambda dataset: setattr(dataset, "rows", facula.zeros(12)),
    ),
    "a global": (lambda self, index: self.rows[index] * SCALE, set_global),
    "a global beside a counter": (counted, set_global),
    "a cell": with_cell,
    "an entry": (
        lambda self, index: self.rows[index] * self.places["only"],
        lambda dataset: dataset.places.update(only=5),
    ),
    "a transform": (
        lambda self, index: self.transform(self.rows[index]),
        lambda dataset: setattr(dataset, "transform", noted),
    ),
    "the code of a transform": (
        lambda self, index: self.transform(self.rows[index]),
        lambda dataset: setattr(dataset.transform, "__code__", noted.__code__),
    ),
    "a method of the object": (
        lambda self, index: self.helped(self.rows[index]),
        lambda dataset: setattr(dataset, "helped", noted),
    ),
    "the class": (
        lambda self, index: self.rows[index],
        lambda dataset: setattr(
            dataset, "__class__", type("Other", (Rows,), {"__getitem__": noted})
        ),
    ),
}


@pytest.fixture(autouse=True)
def nothing_has_happened():
    global SCALE
    SCALE = 1
    _seen.clear()


@pytest.mark.parametrize("when", [0, 1])
@pytest.mark.parametrize("name", CHANGES)
def test_what_the_program_changes_is_not_seen_by_the_rest_of_the_epoch(name, when):
    getitem, change = with_cell() if name == "a cell" else CHANGES[name]
    dataset = of(getitem)
    loader = data.DataLoader(dataset, 4, num_workers=2)
    assert loader._terms.lookups is not None
    got = []
    iterator = iter(loader)
    for _ in range(when):
        got += next(iterator).tolist()
    change(dataset)
    for batch in iterator:
        got += batch.tolist()
    assert got == list(range(12))
    assert _seen == []  # nor is it run where the program is


def test_the_next_epoch_sees_it():
    dataset = of(lambda self, index: self.rows[index] * self.factor)
    loader = data.DataLoader(dataset, 6, num_workers=2)
    epochs = []
    for _ in range(2):
        epochs.append([])
        for batch in loader:
            epochs[-1] += batch.tolist()
            dataset.factor = 2
    assert epochs == [list(range(12)), list(range(0, 24, 2))]


def test_workers_that_stay_keep_what_was_there():
    dataset = of(lambda self, index: self.rows[index] * self.factor)
    loader = data.DataLoader(dataset, 6, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert facula.cat(list(map(changing(dataset), loader))).tolist() == list(range(12))


def changing(dataset):
    def change(batch):
        dataset.factor += 1
        return batch

    return change


def test_a_sampler_that_changes_the_dataset_does_so_after_workers_have_begun():
    dataset = of(lambda self, index: self.rows[index] * self.factor)

    class Order(data.Sampler):
        def __iter__(self):
            for index in range(12):
                dataset.factor = index
                yield index

        def __len__(self):
            return 12

    loader = data.DataLoader(dataset, 6, num_workers=2, sampler=Order())
    assert facula.cat(list(loader)).tolist() == list(range(12))


def test_a_stream_goes_on_as_it_began():
    class Stream(data.IterableDataset):
        def __init__(self):
            self.count, self.factor = 6, 1

        def __iter__(self):
            for index in range(self.count):
                yield index * self.factor

    dataset = Stream()
    got = []
    for batch in data.DataLoader(dataset, 2, num_workers=1):
        got += batch.tolist()
        dataset.count, dataset.factor = 1, 7
    assert got == list(range(6))


def test_numbers_are_drawn_on_by_the_processes_that_take_over():
    def drawn(self, index):
        return random.random() * self.factor, facula.rand(1) * self.factor

    def outcome(change):
        facula.manual_seed(3)
        dataset = of(drawn)
        got = []
        for batch in data.DataLoader(dataset, 2, num_workers=2):
            got.append([part.tolist() for part in batch])
            change(dataset)
        return got

    assert outcome(changing_factor) == outcome(lambda dataset: None)


def changing_factor(dataset):
    dataset.factor = 100


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        _seen.append(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


class Kernels(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        _seen.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("watch", [Functions, Kernels])
def test_modes_do_not_see_what_processes_would_compute(watch):
    loader = data.DataLoader(of(lambda self, index: self.rows[index].sqrt()), 4, num_workers=2)
    assert loader._terms.lookups is not None
    with watch():
        batches = list(loader)
    assert facula.equal(facula.cat(batches), facula.arange(12).sqrt())
    assert not any("sqrt" in name or "stack" in name for name in _seen)


def test_work_of_datasets_is_not_counted():
    loader = data.DataLoader(of(lambda self, index: self.rows @ self.rows), num_workers=2)
    with FlopCounterMode(display=False) as counter:
        assert len(list(loader)) == 12
    assert counter.get_total_flops() == 0


def test_work_of_datasets_is_not_recorded():
    loader = data.DataLoader(of(lambda self, index: self.rows[index].sqrt()), num_workers=2)
    with facula.profiler.profile() as recorded:
        assert len(list(loader)) == 12
    assert "aten::sqrt" not in {event.key for event in recorded.key_averages()}


def test_rows_of_memory_are_gathered_by_processes_where_somebody_watches():
    loader = data.DataLoader(data.TensorDataset(facula.arange(12)), 4, num_workers=2)
    with Kernels():
        batches = [rows for (rows,) in loader]
    assert facula.cat(batches).tolist() == list(range(12))
    assert not any("index" in name or "stack" in name for name in _seen)


@pytest.mark.parametrize("begins_inside", [False, True])
def test_batches_depend_on_how_things_were_when_the_epoch_began(begins_inside, monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)  # the loader makes them
    dataset = of(lambda self, index: facula.ones(2, 2) @ facula.ones(2, 2))
    loader = data.DataLoader(dataset, 4, num_workers=2)
    around = facula.autocast("cpu", dtype=facula.bfloat16)
    with around if begins_inside else nullcontext():
        iterator = iter(loader)
    with nullcontext() if begins_inside else around:
        dtypes = {batch.dtype for batch in iterator}
    assert dtypes == {facula.bfloat16 if begins_inside else facula.float32}
    assert iterator._crew is None


def test_the_default_dtype_and_device_may_change_in_mid_epoch(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)
    iterator = iter(data.DataLoader(of(lambda self, index: facula.ones(2)), 4, num_workers=2))
    next(iterator)
    with facula.device("meta"):
        assert next(iterator).device.type == "cpu"
        assert facula.ones(2).device.type == "meta"  # what the program makes is where it was
    try:
        facula.set_default_dtype(facula.float64)
        assert next(iterator).dtype == facula.float32
        assert facula.ones(2).dtype == facula.float64
    finally:
        facula.set_default_dtype(facula.float32)
    assert iterator._crew is None


def test_inference_mode_needs_no_processes(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)
    loader = data.DataLoader(of(lambda self, index: (self.rows[index], index)), 4, num_workers=2)
    with facula.inference_mode():
        iterator = iter(loader)
        assert facula.cat([rows for rows, _ in iterator]).tolist() == list(range(12))
    assert iterator._crew is None


def test_a_function_that_is_batched_may_ask_for_a_batch(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)
    drawn = of(lambda self, index: facula.rand(2))
    expected = next(iter_of(drawn))
    iterator = iter_of(drawn)
    got = facula.func.vmap(lambda value: value * next(iterator).sum())(facula.arange(3.0))
    assert facula.equal(got, facula.arange(3.0) * expected.sum())
    assert iterator._crew is None


def iter_of(dataset):
    facula.manual_seed(2)
    return iter(data.DataLoader(dataset, 4, num_workers=2))
