"""Small batches: collated, fetched and sent without Python in between, as if there were some."""

import collections
import itertools
import multiprocessing

import numpy
import pytest

import facula
from facula.utils import data
from facula.utils.data._utils import collate as collating
from facula.utils.data._utils import process_worker
from facula.utils.data._utils.indices import packed_indices_of, with_first_drawn

pytestmark = pytest.mark.usefixtures("workers_make_every_batch")

Point = collections.namedtuple("Point", "x y")


class Numbers(list):
    pass


def described(batch):
    """A batch in a form that can be compared: types, dtypes, shapes and values."""
    if isinstance(batch, facula.Tensor):
        return type(batch), batch.dtype, tuple(batch.shape), batch.stride(), batch.tolist()
    if isinstance(batch, dict):
        return type(batch), [(key, described(value)) for key, value in batch.items()]
    if isinstance(batch, (list, tuple)):
        return type(batch), [described(value) for value in batch]
    return type(batch), batch


ROW = facula.arange(6.0).view(2, 3)
SAMPLES = {
    "ints": [1, 2, -3],
    "long ints": [2**70 - 2**70 + 5, 2**62],
    "floats": [0.5, 1.5],
    "floats and ints": [0.5, 1],
    "ints and floats": [1, 0.5],
    "bools": [True, False],
    "texts": ["a", "b"],
    "bytes": [b"a", b"b"],
    "tuples": [(1, 0.5, "a"), (2, 1.5, "b")],
    "lists": [[1, 2.0], [3, 4.0]],
    "lists and tuples": [[1, 2], (3, 4)],
    "nested": [(1, {"a": [2.0, "x"], "b": ROW}), (3, {"b": ROW + 1, "a": [4.0, "y"]})],
    "empty tuples": [(), ()],
    "named": [Point(1, 2.0), Point(3, 4.0)],
    "own list": [Numbers([1, 2]), Numbers([3, 4])],
    "ordered dict": [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "arrays": [(numpy.ones(2), 1), (numpy.zeros(2), 2)],
    "numpy numbers": [numpy.float32(1), numpy.float32(2)],
    "rows": [ROW, ROW + 1],
    "rows of no elements": [ROW[:0], ROW[:0]],
    "transposed rows": [ROW.t(), ROW.t()],
    "rows that share memory": [ROW[0], ROW[1]],
    "two dtypes": [ROW, ROW.to(facula.float64)],
    "halves": [ROW.to(facula.bfloat16)] * 2,
    "conjugates": [facula.tensor([1 + 2j]).conj()] * 2,
    "scalars": [facula.tensor(1), facula.tensor(2)],
    "parameters": [facula.nn.Parameter(ROW)] * 2,
    "requires grad": [ROW.clone().requires_grad_()] * 2,
    "large": [facula.arange(40000)] * 4,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_default_collate_gives_what_its_table_says(name):
    samples = SAMPLES[name]
    expected = data._utils.collate.collate(samples, collate_fn_map=collating.default_collate_fn_map)
    for given in (samples, tuple(samples)):
        made = data.default_collate(given)
        if not isinstance(expected, (list, str)) or name not in ("texts", "bytes"):
            assert described(made) == described(expected)
        else:
            assert made is given
    if name == "requires grad":
        assert made.requires_grad and made.grad_fn is not None


@pytest.mark.parametrize(
    ("samples", "error"),
    [
        ([], IndexError),
        ([(1, 2), (1,)], RuntimeError),
        ([{"a": 1}, {"b": 1}], KeyError),
        ([None, None], TypeError),
        ([facula.zeros(2), facula.zeros(3)], RuntimeError),
        ([1, "a"], (TypeError, ValueError)),
        ([2**80, 1], (RuntimeError, OverflowError, ValueError)),
    ],
)
def test_samples_that_do_not_fit_are_refused(samples, error):
    with pytest.raises(error):
        data.default_collate(samples)


def test_a_sample_that_contains_itself_is_an_error():
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        data.default_collate([loop, loop])


def test_entries_of_the_table_are_obeyed(monkeypatch):
    table = collating.default_collate_fn_map
    monkeypatch.setitem(table, int, lambda batch, *, collate_fn_map: sum(batch))
    assert data.default_collate([(1, 0.5), (2, 0.5)])[0] == 3
    monkeypatch.setitem(table, tuple, lambda batch, *, collate_fn_map: "tuples")
    assert data.default_collate([(1, 0.5), (2, 0.5)]) == "tuples"


def test_batches_are_made_where_and_as_tensors_are_made():
    with facula.device("meta"):
        assert data.default_collate([1, 2]).device.type == "meta"
    with facula.inference_mode():
        assert data.default_collate([ROW, ROW]).is_inference()


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [None, 1, 3, 8])
def test_packed_indices_are_the_samplers(size, drop_last):
    numbers = data.RandomSampler(range(20))
    sampler = numbers if size is None else data.BatchSampler(numbers, size, drop_last)
    facula.manual_seed(1)
    expected = list(sampler)
    facula.manual_seed(1)
    packed = with_first_drawn(packed_indices_of(sampler))
    found = list(itertools.islice(packed, 2))
    while len(drawn := packed.draw(5)):
        tasks = [facula._C._Tasks() for _ in range(3)]
        for i in range(3):
            tasks[i].append_packed(*drawn.share(i, 3))
        assert sum(map(len, tasks)) == len(drawn)
        found += [tasks[i % 3].popleft() for i in range(len(drawn))]
        assert not any(map(len, tasks))
    assert found == expected


class Squares(data.Dataset):
    def __len__(self):
        return 5000

    def __getitem__(self, index):
        return index * index, {"half": index / 2, "text": str(index)}


@pytest.mark.parametrize("size", [None, 1, 7, 600])
@pytest.mark.parametrize("workers", [1, 2])
def test_shuffled_batches_are_the_same_with_and_without_workers(size, workers):
    batches = []
    for options in ({}, {"num_workers": workers}):
        facula.manual_seed(5)
        loader = data.DataLoader(Squares(), batch_size=size, shuffle=True, **options)
        batches.append([described(batch) for batch in loader])
    assert batches[0] == batches[1]


class Rows(data.Dataset):
    """Batches of 64 of these fill a message each, those of 300 do not fit into one."""

    def __len__(self):
        return 1200

    def __getitem__(self, index):
        return facula.full((40, 40), index % 100, dtype=facula.uint8), index


@pytest.mark.parametrize("size", [1, 64, 150, 300])
def test_messages_in_shared_memory_are_used_again_and_batches_stay_as_they_were(size):
    loader = data.DataLoader(Rows(), size, num_workers=2, persistent_workers=True)
    for _ in range(3):
        kept = list(loader)
        assert facula.equal(facula.cat([i for _, i in kept]), facula.arange(1200))
        for pictures, indices in kept:
            assert (pictures == (indices % 100).view(-1, 1, 1)).all()
    for worker in loader._iterator._workers:
        assert len(worker.slots) < 60


class Count(data.IterableDataset):
    def __iter__(self):
        return iter(range(100))


def test_the_end_of_an_iterable_dataset_arrives_at_once(monkeypatch):
    monkeypatch.setattr(process_worker, "_LONGEST_WAIT", 3600.0)
    context = multiprocessing.get_context("fork")
    loader = data.DataLoader(
        Count(),
        3,
        num_workers=2,
        timeout=60,
        persistent_workers=True,
        multiprocessing_context=context,
    )
    for _ in range(3):
        assert sum(len(batch) for batch in loader) == 200


class WaitsFor(data.Dataset):
    def __init__(self, event):
        self.event = event

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        if index == 3000:
            assert self.event.wait(60)
        return index


def test_finished_batches_do_not_wait_for_a_slow_one():
    context = multiprocessing.get_context("fork")
    event = context.Event()
    loader = data.DataLoader(
        WaitsFor(event), 1, num_workers=1, timeout=50, multiprocessing_context=context
    )
    for i, batch in enumerate(loader):
        assert batch.item() == i
        if i == 2999:
            event.set()
    assert i == 3999


class Holds(data.Dataset):
    """Refers to what refers to it."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index


def test_a_fetcher_in_a_cycle_is_collected():
    import gc
    import weakref

    dataset = Holds()
    loader = data.DataLoader(dataset, 2)
    dataset.iterator = iter(loader)
    next(dataset.iterator)
    gone = weakref.ref(dataset)
    del dataset, loader
    gc.collect()
    assert gone() is None


class Wrapper:
    """Has a length, and no samples of its own."""

    def __len__(self):
        return 2

    def __getattr__(self, name):
        if name == "__getitem__":
            return lambda index: index
        raise AttributeError(name)


def test_what_cannot_be_indexed_is_no_dataset():
    with pytest.raises(TypeError, match="not subscriptable"):
        next(iter(data.DataLoader(Wrapper())))
    assert list(data.DataLoader("ab", 2)) == [["a", "b"]]
