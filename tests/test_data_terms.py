"""What a loader has read of its dataset holds until something changes that it rests on."""

import copy
import functools
import gc
import random
import weakref

import numpy
import pytest

import facula
from facula import _C
from facula.utils import data
from facula.utils.data._utils import array_random, pace
from facula.utils.data._utils.lookups import lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="the instructions are not known")

SCALE = 2
NAMES = {"one": 1, "two": 2}


@pytest.fixture(autouse=True)
def nobody_is_in_a_hurry(monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)  # also where the machine is busy


class Rows(data.Dataset):
    def __init__(self):
        self.rows = facula.arange(24.0).reshape(12, 2)
        self.pairs = [(i, float(i)) for i in range(12)]
        self.places = {"first": 0, "second": 1}
        self.factor = 3
        self.parts = [abs, float]
        self.transform = None

    def __len__(self):
        return 12

    def helper(self, index, by=2):
        return self.factor * index * by


def dataset_with(get, **more):
    return type("Own", (Rows,), {"__getitem__": get, **more})()


def noisy(value):
    print(end="")
    return value


def with_attribute(self, index):
    return self.rows[index] * self.factor


def with_global(self, index):
    return index * SCALE


def with_helper(self, index):
    return self.helper(index)


def with_list(self, index):
    _, value = self.pairs[index]
    return value * 2


def with_dict(self, index):
    return self.rows[index][self.places["first"]]


def with_any_key(self, index):
    return self.places[("first", "second")[index % 2]]


def with_transform(self, index):
    row = self.rows[index]
    return row if self.transform is None else self.transform(row)


def with_parts(self, index):
    value = index
    for part in self.parts:
        value = part(value)
    return value


def with_keyword_default(self, index, *, by=2):
    return index * by


def with_loader_of_names(self, index):
    return index if "one" in NAMES else -index


def with_flag(self, index):
    return index if self.pairs else -index


def with_cell():
    factor = 2

    def get(self, index):
        return index * factor

    def change():
        nonlocal factor
        factor = "text"

    return get, change


def set_global(name, value):
    def change(dataset, monkeypatch):
        monkeypatch.setitem(globals(), name, value)

    return change


def set_attribute(name, value):
    return lambda dataset, monkeypatch: setattr(dataset, name, value)


def set_in_class(name, value):
    return lambda dataset, monkeypatch: setattr(type(dataset), name, value)


CHANGES = {
    "another number": (with_attribute, set_attribute("factor", 4.5)),
    "another kind": (with_attribute, set_attribute("factor", "text")),
    "another tensor": (with_attribute, set_attribute("rows", facula.ones(12, 2))),
    "a tensor with a gradient": (with_attribute, lambda d, _: d.rows.requires_grad_()),
    "another global": (with_global, set_global("SCALE", 2.5)),
    "a global that hides a builtin": (lambda self, i: abs(i), set_global("abs", noisy)),
    "another method": (with_helper, set_in_class("helper", lambda self, i: noisy(i))),
    "a method of the object": (with_helper, set_attribute("helper", noisy)),
    "a method of the base": (
        with_helper,
        lambda d, patch: patch.setattr(Rows, "helper", lambda self, i: noisy(i)),
    ),
    "other code": (
        with_helper,
        lambda d, patch: patch.setattr(
            Rows.helper, "__code__", (lambda self, index, by=2: noisy(index)).__code__
        ),
    ),
    "another default": (
        with_helper,
        lambda d, patch: patch.setattr(Rows.helper, "__defaults__", ("text",)),
    ),
    "a default by name": (
        with_keyword_default,
        lambda d, patch: patch.setitem(with_keyword_default.__kwdefaults__, "by", "text"),
    ),
    "another item": (with_list, lambda d, _: d.pairs.__setitem__(3, (3, "text"))),
    "an item more": (with_list, lambda d, _: d.pairs.append(("text", "text"))),
    "an item of another length": (with_list, lambda d, _: d.pairs.__setitem__(3, (1, 2.0, 3))),
    "another value": (with_dict, lambda d, _: d.places.__setitem__("first", "text")),
    "a value of any key": (with_any_key, lambda d, _: d.places.__setitem__("first", "text")),
    "another key": (with_any_key, lambda d, _: d.places.__setitem__(2.5, 1)),
    "a transform": (with_transform, set_attribute("transform", noisy)),
    "another part": (with_parts, lambda d, _: d.parts.append(noisy)),
    "an entry": (with_loader_of_names, lambda d, _: NAMES.__setitem__(numpy.float32(3), 1)),
    "a list that is empty": (with_flag, lambda d, _: d.pairs.clear()),
    "another __getitem__": (with_attribute, set_in_class("__getitem__", with_global)),
    "another class": (with_attribute, lambda d, _: setattr(d, "__class__", Other)),
    "another dict": (
        with_attribute,
        lambda d, _: setattr(d, "__dict__", {**vars(d), "factor": "text"}),
    ),
}


class Other(Rows):
    def __getitem__(self, index):
        return noisy(index)


def holds(loader):
    return loader._terms.hold(loader)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(name, monkeypatch):
    get, change = CHANGES[name]
    dataset = dataset_with(get)
    loader = data.DataLoader(dataset, 4, num_workers=2)
    list(loader)
    terms = loader._terms
    list(loader)
    assert loader._terms is terms and terms.lookups is not None  # it was read once
    before = dict(NAMES)
    try:
        change(dataset, monkeypatch)
        assert not holds(loader)
    finally:
        NAMES.clear()
        NAMES.update(before)


def test_a_cell_that_changes_is_noticed():
    get, change = with_cell()
    loader = data.DataLoader(dataset_with(get), 4, num_workers=2)
    list(loader)
    assert holds(loader)
    change()
    assert not holds(loader)


@pytest.mark.parametrize(
    "option",
    [
        {"collate_fn": lambda batch: noisy(len(batch))},
        {"worker_init_fn": print},
        {"timeout": 1},
        {"num_workers": 1},
        {"prefetch_factor": 5},
        {"multiprocessing_context": "spawn"},
    ],
)
def test_another_option_is_noticed(option):
    loader = data.DataLoader(dataset_with(with_attribute), 4, num_workers=2)
    list(loader)
    assert holds(loader)
    for name, value in option.items():
        setattr(loader, name, value)
    assert not holds(loader)


def test_a_collate_function_that_is_a_partial():
    def joined(batch, scale):
        return facula.stack(batch) * scale

    collate = functools.partial(joined, scale=2)
    loader = data.DataLoader(dataset_with(with_attribute), 4, num_workers=2, collate_fn=collate)
    first = list(loader)
    assert holds(loader)
    collate.keywords["scale"] = 3
    assert not holds(loader)
    assert facula.equal(next(iter(loader)) * 2, first[0] * 3)


def test_a_change_of_a_module_in_a_dataset_is_noticed():
    dataset = dataset_with(with_transform)
    dataset.transform = facula.nn.ReLU()
    loader = data.DataLoader(dataset, 4, num_workers=2)
    list(loader)
    assert loader._terms.lookups is not None and holds(loader)
    handle = dataset.transform.register_forward_pre_hook(lambda *_: None)
    assert not holds(loader)
    handle.remove()
    assert holds(loader)
    dataset.transform.inplace = True
    assert not holds(loader)


def test_results_follow_every_change(monkeypatch):
    dataset = dataset_with(with_attribute)
    loader = data.DataLoader(dataset, 4, num_workers=2)
    for factor in (3, 4.5, 1):
        dataset.factor = factor
        assert facula.equal(facula.cat(list(loader)), dataset.rows * factor)
    type(dataset).__getitem__ = with_global
    monkeypatch.setitem(globals(), "SCALE", 7)
    assert facula.cat(list(loader)).tolist() == [7 * i for i in range(12)]
    loader.collate_fn = sum
    assert list(loader) == [7 * 6, 7 * 22, 7 * 38]


def test_terms_keep_neither_the_loader_nor_its_iterator():
    loader = data.DataLoader(
        dataset_with(with_attribute), 4, num_workers=2, persistent_workers=True
    )
    list(loader)
    assert holds(loader)
    gone = weakref.ref(loader), weakref.ref(loader._iterator)
    gc.disable()
    try:
        del loader
        assert [r() for r in gone] == [None, None]
    finally:
        gc.enable()


def test_a_copy_of_a_loader_reads_for_itself():
    loader = data.DataLoader(dataset_with(with_attribute), 4, num_workers=2)
    expected = repr(list(loader))
    copied = copy.deepcopy(loader)
    assert copied._terms is None and repr(list(copied)) == expected
    copied.dataset.factor = "text"
    assert repr(list(loader)) == expected


class Slotted:
    __slots__ = ("factor",)


def test_a_slot_that_is_emptied_is_noticed():
    dataset = dataset_with(lambda self, index: self.held.factor * index)
    dataset.held = Slotted()
    dataset.held.factor = 2
    loader = data.DataLoader(dataset, 4, num_workers=2)
    list(loader)
    assert holds(loader)
    del dataset.held.factor
    assert not holds(loader)


@pytest.mark.parametrize("size", [1, 5])
def test_a_subset_takes_the_indices_of_a_batch_at_once(size):
    class Asked(Rows):
        def __getitem__(self, index):
            return index

        def __getattr__(self, name):
            raise AttributeError(noisy(name))

    for inner in (dataset_with(with_global), Asked()):
        dataset = data.Subset(data.Subset(inner, range(1, 12)), [3, 0, 5, 9, 2, 2])
        loaders = [data.DataLoader(dataset, size, num_workers=n) for n in (0, 2)]
        assert repr(list(loaders[0])) == repr(list(loaders[1]))


class HasIterator(Rows):
    def __getitem__(self, index):
        return index


def test_an_iterator_that_its_dataset_has_is_collected():
    dataset = HasIterator()
    dataset.iterator = iter(data.DataLoader(dataset, 4, num_workers=2))
    next(dataset.iterator)
    gone = weakref.ref(dataset)
    del dataset
    gc.collect()
    assert gone() is None


# ---- facts


def test_items_that_stay_what_they_are_need_not_be_asked():
    settled = [1, 2.5, "text", None, True, b"bytes", (1, ("two", 3.0))]
    facts = _C._Facts()
    assert facts.settle(settled) and facts.settle(settled) and len(facts) == 1
    assert facts.hold({})
    settled[-1] = (1, ("two", 3.5))
    assert not facts.hold({})
    facts = _C._Facts()
    for item in ([1], {}, facula.ones(1), numpy.ones(1), (1, [2]), numpy.float64(1)):
        assert not facts.settle([1, item])
    assert not facts.settle({1: 2}) and len(facts) == 0


def test_facts_of_all_kinds():
    class Thing:
        pass

    thing, values, numbers = Thing(), {"a": 1}, [1, 2]

    def function(a=1, *, b=2):
        return thing

    facts = _C._Facts()
    facts.type_of(thing)
    facts.of_class(Thing)
    facts.item(values, "a")
    facts.item(values, "b")
    facts.attribute(thing, "name")
    facts.cell(function.__closure__[0])
    facts.function(function)
    facts.items(numbers)
    facts.answer(len, (numbers,), 2)
    facts.given_item({"x": None}, "x")
    assert len(facts) == 11  # `b` of the function is one as well
    assert facts.hold({"x": None}) and not facts.hold({"x": 1}) and not facts.hold({})
    facts.give_up()
    assert not facts.hold({"x": None})


@pytest.mark.parametrize(
    "note, change",
    [
        (lambda f, t: f.type_of(t), lambda t: setattr(type(t), "new", 1)),
        (lambda f, t: f.of_class(type(t)), lambda t: setattr(Rows, "new", 1)),
        (lambda f, t: f.attribute(t, "new"), lambda t: setattr(t, "new", 1)),
        (lambda f, t: f.attribute(t, "factor"), lambda t: delattr(t, "factor")),
        (lambda f, t: f.item(t.places, "first"), lambda t: t.places.clear()),
        (lambda f, t: f.items(t.parts), lambda t: t.parts.reverse()),
        (lambda f, t: f.answer(bool, (t.parts,), True), lambda t: t.parts.clear()),
    ],
)
def test_a_fact_ends(note, change):
    thing = dataset_with(with_attribute)
    facts = _C._Facts()
    note(facts, thing)
    assert facts.hold({})
    try:
        change(thing)
        assert not facts.hold({})
    finally:
        if hasattr(Rows, "new"):
            del Rows.new


class WithClassAttributes:
    number, data_descriptor = 1, property(lambda self: 2)

    def method(self):
        pass


def test_own_attributes_are_told_from_those_of_the_class():
    thing, missing = WithClassAttributes(), object()
    names = ("number", "method", "data_descriptor", "none")
    assert [_C._Facts().attribute(thing, n, missing) for n in names] == [missing] * 4
    thing.number, thing.method = 3, abs
    vars(thing)["data_descriptor"] = 4
    assert [_C._Facts().attribute(thing, n, missing) for n in names] == [3, abs, 4, missing]


def test_a_dataset_that_was_read_has_no_more_memory_than_before():
    # With a dict made for the one who reads, Python 3.11 and 3.12 find attributes slower.
    dataset = dataset_with(with_attribute)
    before = list(map(type, gc.get_referents(dataset)))
    assert len(list(data.DataLoader(dataset, 4, num_workers=2))) > 1
    assert list(map(type, gc.get_referents(dataset))) == before


# ---- an epoch that the loader makes by itself


def epoch_and_after(dataset, workers, **options):
    facula.manual_seed(3)
    random.seed(4)
    numpy.random.seed(5)
    loader = data.DataLoader(dataset, 4, num_workers=workers, **options)
    got = [repr(list(loader)) for _ in range(2)]
    return got, facula.rand(1).item(), random.random(), numpy.random.rand()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_random_numbers_of_the_program_go_on_as_with_processes(shuffle, persistent, request):
    dataset = dataset_with(lambda self, i: (random.random(), numpy.random.rand(2), facula.rand(1)))
    options = {"shuffle": shuffle, "persistent_workers": persistent}
    here = epoch_and_after(dataset, 2, **options)
    request.getfixturevalue("workers_make_every_batch")
    assert here == epoch_and_after(dataset, 2, **options)


def test_workers_that_stay_go_on_with_the_numbers_that_the_loader_drew(monkeypatch):
    dataset = dataset_with(lambda self, i: (random.random(), numpy.random.rand(2), facula.rand(1)))
    here = epoch_and_after(dataset, 2, persistent_workers=True)
    # Processes make the second epoch, and not the first one.
    monkeypatch.setattr(pace.Pace, "suits_loader", lambda self: False)
    assert here == epoch_and_after(dataset, 2, persistent_workers=True)


class Log(data.Sampler):
    def __init__(self):
        self.drawn = 0

    def __iter__(self):
        for i in range(12):
            self.drawn += 1
            yield i

    def __len__(self):
        return 12


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_a_sampler_is_asked_as_far_ahead_as_by_workers(factor, monkeypatch):
    def drawn():
        sampler = Log()
        dataset = dataset_with(with_global)
        options = {"num_workers": 2, "prefetch_factor": factor, "sampler": sampler}
        iterator = iter(data.DataLoader(dataset, 1, **options))
        return [sampler.drawn] + [sampler.drawn for _ in iterator]

    here = drawn()
    assert here == [min(2 * factor + i, 12) for i in range(13)]
    monkeypatch.setattr(pace.Pace, "suits_loader", lambda self: False)
    assert here == drawn()


def test_a_batch_that_nobody_else_has_is_not_copied():
    rows = facula.ones(4, 2)
    kept = [facula.zeros(2)]
    as_from_worker = _C._as_from_worker
    fresh = facula.ones(3)
    place = fresh.data_ptr()
    assert as_from_worker([fresh.clone(), {"n": 1}], 1 << 18)[1] == {"n": 1}
    assert as_from_worker(fresh, 1 << 18).data_ptr() != place  # it has a name here
    for shared in (rows[0], kept[0], facula.from_numpy(numpy.ones(2))):
        copy = as_from_worker([shared], 1 << 18)[0]
        assert facula.equal(copy, shared) and copy.data_ptr() != shared.data_ptr()
    assert as_from_worker(None, 1 << 18) is None
    with pytest.raises(TypeError, match="no short form"):
        as_from_worker([1 << 70], 1 << 18)
    with pytest.raises(TypeError, match="no short form"):
        as_from_worker(object(), 1 << 18)


def test_arrays_that_nobody_else_has_are_not_copied():
    def place(array):
        return array.__array_interface__["data"][0]

    rows = numpy.ones((3, 2))
    copied = object()
    for shared in (rows, rows[1], rows.T, numpy.frombuffer(b"12345678")):
        assert _C._as_from_worker([shared], 1 << 18, lambda batch: copied) is copied
    assert _C._as_from_worker([numpy.array(["a"])], 1 << 18, lambda batch: copied) is copied
    places = []

    def made():
        array = rows + 1
        places.append(place(array))
        return [array, {"n": 1}]

    assert place(_C._as_from_worker(made(), 1 << 18)[0]) == places[0]


def test_packed_sequences_that_nobody_else_has_are_not_copied():
    pack = facula.nn.utils.rnn.pack_sequence
    rows = [facula.arange(2), facula.arange(3)]

    def fail(batch):
        raise AssertionError("it is as good as a copy")

    got = _C._as_from_worker((pack(rows, enforce_sorted=False), 1), 1 << 18, fail)[0]
    assert got.unsorted_indices.tolist() == [1, 0]
    packed = pack(rows, enforce_sorted=False)
    with pytest.raises(AssertionError):
        _C._as_from_worker((packed, 1), 1 << 18, fail)


def test_numbers_with_code_of_their_own_are_no_data():
    class Loud(numpy.float64):
        def __mul__(self, other):
            raise AssertionError("somebody hears that")

    assert _C._is_data([numpy.float64(1), numpy.int8(2), numpy.bool_(True)])
    assert not _C._is_data([Loud(1)])
    dataset = dataset_with(lambda self, i: self.rows[i] * 2)
    dataset.rows = [Loud(i) for i in range(4)]
    assert not lookups_of(dataset)


def test_numpy_is_seeded_as_it_seeds_itself():
    assert array_random.can_exchange()
    assert array_random.seeds_as_numpy()
    for base_seed, worker in ((0, 0), (1, 3), ((1 << 63) - 1, 11), (123456789012, 2)):
        expected = [array_random._seeded_by_numpy(base_seed, worker + i) for i in range(3)]
        assert array_random.states_of_workers(base_seed, worker, 3) == expected


def test_a_worker_init_fn_that_depends_on_the_seed_is_tried_each_time():
    def fails_for_odd_seeds(worker):
        numpy.random.seed(-(facula.initial_seed() % 2))

    dataset = dataset_with(with_global)
    loader = data.DataLoader(dataset, 4, num_workers=1, worker_init_fn=fails_for_odd_seeds)
    outcomes = set()
    for seed in range(12):
        facula.manual_seed(seed)
        base_seed = facula.empty((), dtype=facula.int64).random_().item()
        facula.manual_seed(seed)
        try:
            list(loader)
            failed = False
        except ValueError:
            failed = True
        assert failed == bool(base_seed % 2)
        outcomes.add(failed)
    assert outcomes == {True, False}


def seed_worker(worker):
    seed = facula.initial_seed() % 2**32
    numpy.random.seed(seed)
    random.seed(seed + worker)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("moved_after", [None, 0, 1, 4])
@pytest.mark.parametrize("kind", ["map", "stream"])
@pytest.mark.parametrize("prepare", [None, seed_worker])
def test_a_worker_that_draws_and_may_be_seeded(persistent, moved_after, kind, prepare):
    if not _C._runs_alone():
        pytest.skip("a thread of another test is still there")
    dataset = dataset_with(lambda self, i: (random.random(), numpy.random.rand(2), facula.rand(1)))
    if kind == "stream":
        dataset = DrawnStream()

    def epochs(init_fn, moves):
        facula.manual_seed(3)
        random.seed(4)
        numpy.random.seed(5)
        options = {"worker_init_fn": init_fn, "persistent_workers": persistent}
        loader = data.DataLoader(dataset, 2, num_workers=2, **options)
        got = []
        for _ in range(2):
            iterator = iter(loader)
            for i in range(12):
                if moves and i == moved_after:
                    iterator._settle()
                    iterator._move_away()
                if (batch := next(iterator, None)) is not None:
                    got.append(repr(batch))
        pids = [worker.pid for worker in iterator._workers]
        return got, pids, facula.rand(1).item(), random.random(), numpy.random.rand()

    expected = epochs(lambda worker: (noisy(worker), prepare and prepare(worker)), False)
    got = epochs(prepare, True)
    assert (None in got[1]) == (moved_after is None)
    assert got[0] == expected[0] and got[2:] == expected[2:]


class DrawnStream(data.IterableDataset):
    def __iter__(self):
        for _ in range(7):
            yield random.random(), numpy.random.rand(2), facula.rand(1)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_size_of_batches_may_change_in_mid_epoch(workers):
    loader = data.DataLoader(dataset_with(with_global), 1, num_workers=workers)
    sizes = []
    for batch in loader:
        sizes.append(len(batch))
        loader.batch_sampler.batch_size += 1
    assert sizes == [1, 2, 3, 4, 2]
    assert [len(batch) for batch in loader] == [6, 6]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", ["process", "thread"])
def test_the_size_of_batches_of_what_is_iterated_over_may_change(kind, persistent, monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)

    class Twelve(data.IterableDataset):
        def __iter__(self):
            return iter(range(12))

    loader = data.DataLoader(
        Twelve(), 2, num_workers=1, worker_type=kind, persistent_workers=persistent
    )
    for size, sizes in ((2, [2] * 6), (5, [5, 5, 2]), (4, [4] * 3)):
        loader.batch_sampler.batch_size = size
        for _ in range(3):
            assert [len(batch) for batch in loader] == sizes


def test_a_subclass_may_have_an_iterator_of_its_own():
    class Counted:
        is_shut_down = False

        def __init__(self, iterator):
            self.iterator, self.count = iterator, 0

        def __next__(self):
            batch = next(self.iterator)
            self.count += 1
            return batch

        def __iter__(self):
            return self

        def _reset(self, loader):
            self.iterator._reset(loader)

    class Loader(data.DataLoader):
        def _get_iterator(self):
            return Counted(super()._get_iterator())

    loader = Loader(list(range(4)), 2, num_workers=1, persistent_workers=True)
    for _ in range(3):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    assert loader._iterator.count == 6


@pytest.mark.parametrize("workers", [0, 2])
def test_a_last_batch_has_to_be_as_full_as_the_first_was_asked_to_be(workers):
    loader = data.DataLoader(range(15), 4, drop_last=True, num_workers=workers)
    sizes = []
    for batch in loader:
        sizes.append(len(batch))
        loader.batch_sampler.batch_size = 2
    assert sizes == [4]


def test_a_length_that_begins_the_epoch_once_more_is_refused(monkeypatch):
    monkeypatch.setattr(pace, "_TINY_SECONDS", 1.0)

    class Nested(data.Dataset):
        loader = None

        def __len__(self):
            if self.loader is not None:
                loader, self.loader = self.loader, None
                list(loader)
            return 6

        def __getitem__(self, index):
            return index

    dataset = Nested()
    options = {"num_workers": 2, "worker_type": "thread", "persistent_workers": True}
    loader = data.DataLoader(dataset, 2, **options)
    expected = [batch.tolist() for batch in loader]
    dataset.loader = loader
    with pytest.raises(RuntimeError, match="begins one"):
        list(loader)
    assert [batch.tolist() for batch in loader] == expected


class CountsAndFails(data.Dataset):
    def __init__(self):
        self.seen = []

    def __len__(self):
        return 12

    def __getitem__(self, index):
        self.seen.append(index)
        if index in (1, 2, 3):
            raise ValueError(f"not {index}")
        return index


def test_a_task_comes_for_each_that_failed():
    # With a generator of the program's own, tasks are drawn one by one.
    options = {"num_workers": 1, "prefetch_factor": 2, "generator": facula.Generator()}
    iterator, found = iter(data.DataLoader(CountsAndFails(), 1, **options)), []
    while True:
        try:
            found.append(next(iterator).item())
        except ValueError as error:
            found.append(str(error).splitlines()[0].split()[0])
        except StopIteration:
            break
    assert found == [0, *["Caught"] * 3, *range(4, 12)]


def test_what_iterating_workers_that_stay_have_written_is_kept():
    class Counts(data.IterableDataset):
        def __init__(self):
            self.seen = []

        def __len__(self):
            return 4

        def __iter__(self):
            for i in range(4):
                self.seen.append(i)
                yield len(self.seen)

    loader = data.DataLoader(Counts(), 2, num_workers=1, persistent_workers=True)
    assert [batch.tolist() for batch in loader] == [[1, 2], [3, 4]]
    assert len(loader) == 2  # from now on the length is watched
    assert [batch.tolist() for batch in loader] == [[5, 6], [7, 8]]
    assert [batch.tolist() for batch in loader] == [[9, 10], [11, 12]]


def test_a_dataset_without_a_length_says_so_in_each_epoch():
    class Endless(data.Dataset):
        def __getitem__(self, index):
            return index

        def __len__(self):
            raise ValueError("no end")

    loader = data.DataLoader(Endless(), 2, num_workers=2)
    for _ in range(3):
        with pytest.raises(ValueError, match="no end"):
            list(loader)
