"""Datasets that write to themselves: each worker has a copy, also where the loader makes its
batches itself."""

import contextlib
import os
import random
from collections import Counter, OrderedDict, defaultdict, deque

import numpy
import pytest

import facula
from facula.utils import data
from facula.utils.data._utils import pace, terms
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


class Inner:
    """Counts how often it is called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, row):
        self.calls += 1
        return row * self.calls


class Memory(data.Dataset):
    """Has places to write to."""

    seen = 0

    def __init__(self, count=12):
        self.count = count
        self.rows = facula.arange(3.0 * count).view(count, 3)
        self.items = [(float(i), f"text {i}", i) for i in range(count)]
        self.cache, self.log, self.kinds = {}, [], set()
        self.filled = {0: facula.ones(3)}
        self.latest, self.order = deque(maxlen=3), OrderedDict()
        self.counts, self.numbers = Counter(), defaultdict(int)
        self.by_label = defaultdict(list, {k: [k, k + 3] for k in range(3)})
        self.none = None
        self.ages = [1, 2]
        self.inner = Inner()
        self.twister = random.Random(3)
        self.arrays = numpy.random.default_rng(4)
        self.generator = facula.Generator().manual_seed(5)

    def __len__(self):
        return self.count

    def doubled(self, row):
        self.seen += 1
        return row * 2


def list_beside_a_counter(self, index):
    self.seen += 1
    self.ages.append(index)
    return len(self.ages), self.ages[-1]


def counter(self, index):
    self.seen += 1
    return self.seen, index


def cache(self, index):
    if index not in self.cache:
        self.cache[index] = (self.rows[index] * 2, len(self.cache))
    return self.cache[index]


def cached_dicts(self, index):
    if index in self.cache:
        return self.cache[index]
    sample = {"row": self.rows[index], "before": len(self.cache)}
    self.cache[index] = sample
    return sample


def cache_by_get(self, index):
    if (row := self.filled.get(index % 4)) is None:
        row = self.filled[index % 4] = self.rows[index] * 2
    return row + len(self.filled)


def cache_by_exception(self, index):
    try:
        return self.cache[index % 3]
    except KeyError:
        self.cache[index % 3] = row = self.rows[index]
        return row


def least_recently_used(self, index):
    if index % 5 in self.order:
        self.order.move_to_end(index % 5)
    else:
        self.order[index % 5] = self.rows[index]
        if len(self.order) > 2:
            self.order.popitem(last=False)
    return self.order[index % 5]


def list_that_grows(self, index):
    self.log.append((index, self.rows[index]))
    return len(self.log), self.log[-1]


def list_made_anew(self, index):
    self.log.extend([index, 1])
    self.log += [2]
    if len(self.log) > 9:
        self.log = []
    return sum(self.log)


def list_cut(self, index):
    self.log.append(index)
    self.log = self.log[-3:]
    return sum(self.log)


def several_kinds(self, index):
    self.kinds.add(index % 3)
    self.latest.append(index)
    self.counts[index % 2] += 1
    self.numbers["all"] += index
    del self.counts[index % 2]
    return len(self.kinds), sum(self.latest), self.numbers["all"], len(self.counts)


def made_when_needed(self, index):
    if self.none is None:
        self.none = self.rows * index
    if not hasattr(self, "other"):
        self.other = index
    return self.none[index], self.other


def average(self, index):
    self.none = self.rows[index] if self.none is None else self.none * 0.5 + self.rows[index]
    return self.none


def inner_object(self, index):
    return self.doubled(self.inner(self.rows[index]))


def own_generators(self, index):
    drawn = facula.rand(2, generator=self.generator)
    return self.twister.random(), self.arrays.normal(size=2), drawn


def generator_of_worker(self, index):
    if self.none is None:
        self.none = random.Random(data.get_worker_info().seed)
    return self.none.random()


def default_generators(self, index):
    self.seen += 1
    return random.random(), numpy.random.rand(2), facula.rand(1), self.seen


def items(self, index):
    self.seen += 1
    return self.items[index]


def grouped(self, index):
    """A key that is missing is put there."""
    chosen = self.by_label[index % 3]
    return len(self.by_label[7 + index % 2]), len(self.by_label), random.choice(chosen)


CHANGING = [
    *(counter, cache, cached_dicts, cache_by_get, cache_by_exception, least_recently_used),
    *(list_that_grows, list_made_anew, list_cut, several_kinds, made_when_needed, average),
    *(inner_object, own_generators, generator_of_worker, default_generators, items, grouped),
    list_beside_a_counter,
]


def of(getitem, **more):
    return type("Own", (Memory,), {"__getitem__": getitem, **more})()


def flat(batch):
    if isinstance(batch, dict):
        return {key: flat(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [*map(flat, batch)]
    return batch.tolist() if isinstance(batch, (facula.Tensor, numpy.ndarray)) else batch


def state_of(value):
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, facula.Generator):
        return value.get_state().tolist()
    if isinstance(value, numpy.random.Generator):
        return value.bit_generator.state
    return vars(value) if isinstance(value, Inner) else value


def written(dataset):
    return {key: state_of(value) for key, value in vars(dataset).items() if key != "rows"}


def has_processes(loader, iterator):
    """Whether processes have been started, without starting them."""
    iterator = loader._iterator if loader.persistent_workers else iterator
    return iterator._crew is not None


def epochs(dataset, count=3, **options):
    """The batches of some epochs, and whether processes made the last."""
    facula.manual_seed(1)
    options = {"batch_size": 2, "num_workers": 2, "timeout": 0, **options}
    loader = data.DataLoader(dataset, **options)
    found = []
    for _ in range(count):
        iterator = iter(loader)
        found.append([*map(flat, iterator)])
    return found, has_processes(loader, iterator)


@pytest.fixture
def in_processes(monkeypatch):
    """Makes loaders leave such datasets to processes, while it lasts."""

    @contextlib.contextmanager
    def patched():
        with monkeypatch.context() as patch:
            patch.setattr(terms, "changing_lookups_of", lambda *given: None)
            yield

    return patched


def compare(make, in_processes, **options):
    """Epochs are the same as those of processes, and the program does not see what is written."""
    dataset = make()
    before = repr(written(dataset)) if isinstance(dataset, Memory) else None
    found, with_processes = epochs(dataset, **options)
    assert not with_processes
    if before is not None:
        assert repr(written(dataset)) == before
    with in_processes():
        expected, with_processes = epochs(make(), **options)
    assert with_processes
    assert found == expected


@pytest.fixture(autouse=True)
def no_processes_for_slow_machines(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)


@pytest.mark.parametrize("getitem", CHANGING)
@pytest.mark.parametrize("persistent", [False, True])
def test_batches_are_those_of_processes(getitem, persistent, in_processes):
    compare(lambda: of(getitem), in_processes, persistent_workers=persistent)


@pytest.mark.parametrize("getitem", [counter, cached_dicts, default_generators, own_generators])
@pytest.mark.parametrize(
    "options",
    [{"batch_size": None}, {"shuffle": True}, {"drop_last": True, "batch_size": 5}]
    + [{"num_workers": 1}, {"collate_fn": lambda samples: [*samples]}],
)
def test_options_make_no_difference(getitem, options, in_processes):
    compare(lambda: of(getitem), in_processes, **options)


@pytest.mark.skipif(facula.cuda.is_available(), reason="memory is pinned")
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")
def test_memory_that_cannot_be_pinned_makes_no_difference(in_processes):
    compare(lambda: of(counter), in_processes, pin_memory=True)


def test_a_subset_leads_to_what_is_written(in_processes):
    compare(lambda: data.Subset(of(counter), [4, 5, 6, 7, 1]), in_processes)


class Collates(Memory):
    """Makes batches itself, and counts them."""

    def __getitem__(self, index):
        self.seen += 1
        return self.seen, index

    def collated(self, samples):
        self.log.append(len(samples))
        return facula.tensor([a + b for a, b in samples]), len(self.log)


@pytest.mark.parametrize("persistent", [False, True])
def test_collate_fn_may_be_a_method_of_the_dataset(persistent, in_processes):
    def run():
        dataset = Collates()
        options = {"collate_fn": dataset.collated, "persistent_workers": persistent}
        found = epochs(dataset, **options)
        assert (dataset.seen, dataset.log) == (0, [])
        return found

    found, with_processes = run()
    assert not with_processes
    with in_processes():
        assert run() == (found, True)


class Counting:
    """Makes batches, and counts them."""

    def __init__(self):
        self.batches = 0

    def __call__(self, samples):
        self.batches += 1
        return facula.tensor([a + b for a, b in samples]), self.batches


@pytest.mark.parametrize("persistent", [False, True])
def test_collate_fn_may_be_an_object_that_counts(persistent, in_processes):
    def run():
        collate = Counting()
        found = epochs(of(counter), collate_fn=collate, persistent_workers=persistent)
        assert collate.batches == 0
        return found

    found, with_processes = run()
    assert not with_processes
    with in_processes():
        assert run() == (found, True)


def test_processes_go_on_with_the_copy_of_collate_fn():
    iterator = iter(data.DataLoader(of(counter), 1, num_workers=1, collate_fn=Counting()))
    assert next(iterator)[1] == 1
    assert iterator._workers[0].pid
    assert [batch[1] for batch in iterator] == [*range(2, 13)]


def test_the_worker_is_told_of_its_copy():
    def getitem(self, index):
        self.seen += 1
        return data.get_worker_info().id, self.seen

    dataset = of(getitem)
    loader = data.DataLoader(dataset, 2, num_workers=2)
    iterator = iter(loader)
    first = next(iterator)
    info = iterator._as_worker(0)[0]
    assert flat(first) == [[0, 0], [1, 2]]
    assert info.dataset is not dataset and info.dataset.seen == 2 and dataset.seen == 0
    assert info.dataset.rows is dataset.rows  # what is not written to is not copied


def test_what_the_program_writes_between_epochs_is_in_the_copies():
    dataset = of(counter)
    loader = data.DataLoader(dataset, 4, num_workers=2)
    assert flat(next(iter(loader)))[0] == [1, 2, 3, 4]
    dataset.seen = 10
    iterator = iter(loader)
    assert flat(next(iterator))[0] == [11, 12, 13, 14]
    assert iterator._crew is None
    dataset.seen = "ten"
    with pytest.raises(TypeError, match="worker process 0"):
        next(iter(loader))


# ---- errors


def fails_at_five(self, index):
    self.seen += 1
    if index == 5:
        raise ValueError(f"sample {index} after {self.seen}")
    return index, self.seen


def outcomes(dataset, **options):
    iterator = iter(data.DataLoader(dataset, **{"batch_size": 2, "num_workers": 2, **options}))
    found = []
    while True:
        try:
            found.append(flat(next(iterator)))
        except StopIteration:
            return found, iterator._crew is not None
        except Exception as error:
            found.append((type(error), str(error)))


def test_errors_are_the_workers_and_what_was_written_stays(in_processes):
    found, with_processes = outcomes(of(fails_at_five))
    assert not with_processes
    assert found[2][0] is ValueError
    assert "Caught ValueError in DataLoader worker process 0" in found[2][1]
    assert found[4] == [[8, 9], [5, 6]]  # samples 0, 1, 4 and 5 came before
    with in_processes():
        assert outcomes(of(fails_at_five)) == (found, True)


def test_an_error_of_a_collate_function_looks_the_same(in_processes):
    def collate(samples):
        return facula.tensor([1, 2]).reshape(len(samples) + 3)

    found, with_processes = outcomes(of(counter), collate_fn=collate)
    assert not with_processes
    with in_processes():
        assert outcomes(of(counter), collate_fn=collate) == (found, True)


# ---- processes that take over


def test_processes_go_on_with_what_has_been_written(monkeypatch):
    dataset = of(default_generators)

    def epoch(after):
        facula.manual_seed(3)
        loader = data.DataLoader(dataset, 1, num_workers=2)
        iterator = iter(loader)
        found = [flat(next(iterator)) for _ in range(after)]
        workers = iterator._workers  # somebody looks at them
        assert all(worker.pid for worker in workers)
        return found + [*map(flat, iterator)]

    assert epoch(5) == epoch(0)
    assert dataset.seen == 0


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_without_a_task_have_copies_when_they_need_them(persistent, shuffle, in_processes):
    options = {"batch_size": 64, "persistent_workers": persistent, "shuffle": shuffle}
    compare(lambda: of(counter), in_processes, **options)

    def epoch(looks):
        facula.manual_seed(3)
        loader = data.DataLoader(of(counter), num_workers=2, **options)
        iterator = iter(loader)
        assert not looks or all(worker.pid for worker in iterator._workers)
        return [*map(flat, iterator), *map(flat, loader)]

    assert len(epoch(True)) == 2
    assert epoch(True) == epoch(False)


def test_processes_take_over_where_that_pays(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 1e-5)
    monkeypatch.setattr(pace, "_HANDOVER_SECONDS", 0.0)
    dataset = type("Own", (Memory,), {"__getitem__": counter})(40000)
    iterator = iter(data.DataLoader(dataset, 2, num_workers=2))
    seen = [flat(batch)[0] for batch in iterator]
    assert iterator._crew is not None
    assert seen == [[2 * i + 1, 2 * i + 2] for i in range(10000) for _ in range(2)]


# ---- what is left to processes


shared_log = []


class Strange(Memory):
    """Writes to itself as others can see."""

    of_class = {}

    def __init__(self):
        super().__init__()
        self.alias = self.log
        self.outer = [self.log]
        self.bound = self.doubled
        self.shared = shared_log

    @property
    def of_process(self):
        if os.getpid() % 2:
            raise AttributeError

    @property
    def managed(self):
        return self._managed

    @managed.setter
    def managed(self, value):
        self._managed = value


def global_list(self, index):
    shared_log.append(index)
    return len(shared_log)


def global_list_beside_a_counter(self, index):
    self.seen += 1
    shared_log.append(index)
    return index


def list_of_others(self, index):
    self.shared.append(index)
    return len(self.shared)


def dict_of_class(self, index):
    self.of_class[index] = 1
    return len(self.of_class)


def list_by_two_names(self, index):
    self.log.append(index)
    return len(self.alias)


def list_in_a_list(self, index):
    self.log.append(index)
    return self.outer[0]


def method_of_the_original(self, index):
    return self.bound(self.rows[index]) + self.seen


def property_that_writes(self, index):
    self.managed = index
    return index


def writes_to_its_class(self, index):
    type(self).seen = index
    return index


def in_place(self, index):
    self.rows[index] = 0.0
    return self.rows[index]


def process_number(self, index):
    self.seen += 1
    return os.getpid()


def keeps_what_has_code(self, index):
    self.log.append(self)
    return index


def writes_to_what_it_keeps(self, index):
    inner = [index]
    self.log.append(inner)
    inner.append("text")
    return self.log[0]


def asks_for_property(self, index):
    self.seen += 1
    return int(hasattr(self, "of_process"))


@pytest.mark.parametrize(
    "getitem",
    [
        asks_for_property,
        global_list,
        global_list_beside_a_counter,
        list_of_others,
        dict_of_class,
        list_by_two_names,
        list_in_a_list,
    ]
    + [method_of_the_original, property_that_writes, writes_to_its_class, in_place]
    + [process_number, keeps_what_has_code, writes_to_what_it_keeps, asks_for_property],
)
def test_what_others_may_see_is_left_to_processes(getitem):
    dataset = type("Own", (Strange,), {"__getitem__": getitem})()
    iterator = iter(data.DataLoader(dataset, 2, num_workers=1))
    assert iterator._crew is not None


@pytest.mark.parametrize(
    "more",
    [
        {"__setattr__": lambda self, name, value: object.__setattr__(self, name, value)},
        {"__del__": lambda self: None},
        {"__slots__": ("place",)},
    ],
)
def test_objects_that_are_more_than_their_attributes_are_not_copied(more):
    iterator = iter(data.DataLoader(of(counter, **more), 2, num_workers=1))
    assert iterator._crew is not None


def test_a_list_that_somebody_else_gets_hold_of_is_left_to_processes():
    dataset = of(list_that_grows)
    loader = data.DataLoader(dataset, 2, num_workers=1)
    assert not has_processes(loader, iter(loader))
    log = dataset.log
    assert has_processes(loader, iter(loader))
    assert log == []


# ---- iterable datasets


class Stream(data.IterableDataset):
    """Counts what it gives."""

    def __init__(self, count=9):
        self.count, self.given, self.log = count, 0, []
        self.left = 0

    def __iter__(self):
        worker = data.get_worker_info()
        self.log.append(len(self.log))
        for i in range(worker.id, self.count, worker.num_workers):
            self.given += 1
            yield i, self.given, len(self.log)


class DrawingStream(Stream):
    def __iter__(self):
        for _ in range(self.count):
            self.given += 1
            yield random.random(), self.given


class Steps(Stream):
    """Is its own iterator."""

    def __iter__(self):
        self.left = self.count
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        self.given += 1
        return self.left, self.given


class FailingStream(Stream):
    def __iter__(self):
        for i in range(self.count):
            self.given += 1
            if self.given == 4:
                raise KeyError(f"sample {i}")
            yield i, self.given


@pytest.mark.parametrize("kind", [Stream, DrawingStream, Steps])
@pytest.mark.parametrize(
    "options", [{}, {"batch_size": None}, {"batch_size": 4, "drop_last": True}]
)
def test_streams_are_those_of_processes(kind, options, in_processes):
    compare(kind, in_processes, **options)


@pytest.mark.parametrize("kind", [Stream, Steps])
def test_streams_go_on_in_workers_that_stay(kind, in_processes):
    compare(kind, in_processes, persistent_workers=True)


def test_errors_of_streams_are_the_workers(in_processes):
    found, with_processes = outcomes(FailingStream())
    assert not with_processes
    assert "worker process 1" in found[3][1]
    with in_processes():
        assert outcomes(FailingStream()) == (found, True)


@pytest.mark.parametrize("epochs_before", [0, 1])
@pytest.mark.parametrize("persistent", [False, True])
def test_processes_make_a_stream_again_from_its_begin(epochs_before, persistent):
    def epoch(after):
        facula.manual_seed(3)
        options = {"num_workers": 2, "persistent_workers": persistent}
        loader = data.DataLoader(Stream(), 2, **options)
        for _ in range(epochs_before):
            list(loader)
        iterator = iter(loader)
        found = [flat(next(iterator)) for _ in range(after)]
        assert all(worker.pid for worker in iterator._workers)
        return found + [*map(flat, iterator)]

    assert epoch(3) == epoch(0)


# ---- what is the same in a copy


def generator_of_two(self, index):
    return self.twister.random() + self.inner.twister.random()


def test_a_generator_that_two_objects_have_is_one_in_a_copy(in_processes):
    def make():
        dataset = of(generator_of_two)
        dataset.inner.twister = dataset.twister
        return dataset

    compare(make, in_processes)


def test_a_copy_is_made_when_the_epoch_begins(in_processes):
    """Also of a generator that the sampler draws from as well."""

    def run():
        dataset, generator = of(own_generators), facula.Generator().manual_seed(2)
        dataset.generator = generator
        options = {"shuffle": True, "generator": generator, "num_workers": 2}
        iterator = iter(data.DataLoader(dataset, 2, **options))
        found = [flat(next(iterator))]
        dataset.twister = random.Random(99)
        return found + [*map(flat, iterator)], iterator._crew is not None

    found, with_processes = run()
    assert not with_processes
    with in_processes():
        assert run() == (found, True)


class Index(int):
    pass


def test_indices_with_code_of_their_own_go_to_processes_with_the_copy():
    dataset = of(counter)
    loader = data.DataLoader(dataset, 1, sampler=[0, 1, 2, Index(3), 4, 5], num_workers=2)
    iterator = iter(loader)
    assert [flat(batch)[0] for batch in iterator] == [[1], [1], [2], [2], [3], [3]]
    assert iterator._crew is not None


class Asks(Memory):
    def __getattr__(self, name):
        return os.getpid()

    def __getitem__(self, index):
        if index:
            self.missing = index
        return self.missing


def test_attributes_that_a_class_answers_for_are_left_to_processes():
    iterator = iter(data.DataLoader(Asks(), 2, num_workers=1))
    assert iterator._crew is not None


def keeps_its_own_list(self, index):
    self.log.append(index)
    self.none = self.log
    return index


def keeps_its_own_list_in_a_dict(self, index):
    self.log.append(index)
    self.cache[index] = [self.log]
    return index


@pytest.mark.parametrize("getitem", [keeps_its_own_list, keeps_its_own_list_in_a_dict])
def test_a_list_in_two_places_is_left_to_processes(getitem):
    iterator = iter(data.DataLoader(of(getitem), 2, num_workers=1))
    assert iterator._crew is not None


@pytest.mark.parametrize("getitem", [counter, cache_by_get, list_cut, own_generators])
def test_a_dataset_is_read_again_only_where_something_else_stands_there(getitem):
    dataset = of(getitem)
    loader = data.DataLoader(dataset, 2, num_workers=2)
    list(loader)
    before = loader._terms
    for sample in range(3):
        dataset[sample]  # what is written now is of the kinds that were read
    list(loader)
    assert loader._terms is before
    dataset.seen, dataset.filled, dataset.log = 1, {0: "text"}, ["text"]
    with contextlib.suppress(TypeError):
        next(iter(loader))
    assert (loader._terms is before) == (getitem in (counter, own_generators))
