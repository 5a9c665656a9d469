"""Where batches lie: rows of memory that need no worker, and the slots of workers."""

import os
import pickle
import threading

import numpy
import pytest

import facula
from facula import _C
from facula.utils import data
from facula.utils.data._utils import collate as collating
from facula.utils.data._utils import transport
from facula.utils.data._utils.iterators import MultipleWorkersIterator
from facula.utils.data._utils.own_iterators import MemoryIterator

pytestmark = pytest.mark.usefixtures("workers_make_every_batch")


def table(rows=50):
    return data.TensorDataset(facula.arange(rows), facula.arange(2.0 * rows).view(rows, 2))


def equal_batches(got, want):
    got, want = list(got), list(want)
    return len(got) == len(want) and all(
        type(a) is type(b) and all(facula.equal(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(got, want, strict=True)
    )


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"worker_type": "thread"}])
@pytest.mark.parametrize("size", [1, 7])
def test_small_rows_of_memory_are_the_same_with_and_without_workers(options, size):
    def epochs(**more):
        facula.manual_seed(3)
        loader = data.DataLoader(table(), batch_size=size, shuffle=True, **more)
        return [batch for _ in range(2) for batch in loader], facula.rand(1).item()

    many, after = epochs(num_workers=2, **options)
    with_workers = data.DataLoader(
        table(),
        batch_size=size,
        shuffle=True,
        num_workers=2,
        collate_fn=lambda b: data.default_collate(b),
    )
    facula.manual_seed(3)
    assert equal_batches(many[: len(with_workers)], with_workers)
    facula.manual_seed(3)
    if "persistent_workers" not in options:  # which draw one seed for all epochs
        assert equal_batches(many, epochs()[0]) and after == epochs()[1]


def test_rows_that_are_large_or_not_only_rows_go_to_workers():
    def kind(dataset, **options):
        return type(iter(data.DataLoader(dataset, num_workers=1, worker_type="thread", **options)))

    class Own(data.TensorDataset):
        pass

    assert kind(table()) is MemoryIterator
    assert kind(table(), shuffle=True, generator=facula.Generator()) is MemoryIterator
    wide = data.TensorDataset(facula.zeros(4, 1 << 21))
    assert kind(wide) is MemoryIterator
    for case in (
        kind(wide, batch_size=4),
        kind(Own(facula.zeros(4))),
        kind(table(), batch_size=None),
        kind(table(), worker_init_fn=print),
        kind(table(), collate_fn=lambda batch: batch),
        kind(table(), sampler=data.RandomSampler(table(), replacement=True)),
        kind(table(), sampler=[1, 2]),
        kind(data.TensorDataset(facula.zeros(4, requires_grad=True))),
    ):
        assert case is MultipleWorkersIterator


def test_rows_by_unusual_indices():
    loader = data.DataLoader(table(), batch_sampler=[[-1, 2], [numpy.int64(3)], [facula.tensor(4)]])
    assert [batch[0].tolist() for batch in loader] == [[49, 2], [3], [4]]
    assert [batch[1].shape for batch in loader] == [(2, 2), (1, 2), (1, 2)]
    with pytest.raises(IndexError, match="50"):
        list(data.DataLoader(table(), batch_sampler=[[0, 50]]))


def test_batches_of_rows_belong_to_the_program():
    dataset = table(4)
    for batch, _ in data.DataLoader(dataset, num_workers=1):
        batch += 100
    assert dataset.tensors[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("came", [0, 3])
def test_state_of_rows_of_memory(came):
    def loader(workers):
        return data.DataLoader(table(), batch_size=6, shuffle=True, num_workers=workers)

    facula.manual_seed(5)
    first = loader(2)
    iterator = iter(first)
    for _ in range(came):
        next(iterator)
    state = first.state_dict()
    rest = list(iterator)
    for workers in (0, 2):
        second = loader(workers)
        second.load_state_dict(state)
        assert equal_batches(second, rest)


# ---- slots


class Wide(data.Dataset):
    def __init__(self, n=12):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return facula.full((40000,), float(index)), numpy.full(30000, index)


def test_workers_stack_large_batches_in_their_slots():
    loader = data.DataLoader(Wide(), batch_size=2, num_workers=1)
    held = list(loader)
    for i, (x, y) in enumerate(held):
        assert x.dtype is facula.float32 and x[:, 7].tolist() == [2 * i, 2 * i + 1]
        assert y.dtype is facula.int64 and y[:, -1].tolist() == [2 * i, 2 * i + 1]


def test_large_rows_of_memory_lie_in_slots_too():
    rows = facula.arange(8.0).unsqueeze(1).expand(8, 1 << 21).contiguous()
    loader = data.DataLoader(
        data.TensorDataset(rows, facula.arange(8)), batch_size=4, num_workers=1
    )
    iterator = iter(loader)
    assert isinstance(iterator, MultipleWorkersIterator)
    held = list(iterator)
    assert [x[:, 5].tolist() for x, _ in held] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(IndexError):
        list(data.DataLoader(data.TensorDataset(rows), batch_sampler=[[0, 9, 1, 2]], num_workers=1))


kept = []


def keep_and_change(samples):
    """Holds on to the last batch, and writes into it while the next one is made."""
    batch = data.default_collate(samples)
    for old in kept:
        old[0].fill_(-1)
    kept[:] = [batch]
    return batch


def twice_the_same(samples):
    x, _ = data.default_collate(samples)
    return {"x": x, "again": x, "part": x[1:], "turned": x.t()}


def test_a_batch_that_the_worker_keeps_is_copied():
    loader = data.DataLoader(
        Wide(), batch_size=2, num_workers=1, collate_fn=keep_and_change, prefetch_factor=6
    )
    held = list(loader)
    assert [x[0, 0].item() for x, _ in held] == [0, 2, 4, 6, 8, 10]


def test_views_of_a_stacked_batch_arrive():
    loader = data.DataLoader(Wide(4), batch_size=2, num_workers=1, collate_fn=twice_the_same)
    for i, batch in enumerate(loader):
        assert batch["again"] is batch["x"] and batch["x"][:, 0].tolist() == [2 * i, 2 * i + 1]
        assert batch["part"][0, 5].item() == 2 * i + 1
        assert batch["turned"].shape == (40000, 2) and batch["turned"][3, 1].item() == 2 * i + 1


def test_a_slot_is_used_again_when_both_sides_are_done_with_it():
    writer = _C._SlotWriter()
    with collating.results_in(writer):
        x = _C._slot_tensor((5, 5000), facula.float32)
        assert writer.lent == 1 and writer.free == 0
        places = transport.place(transport.pack(x, writer)[1], writer)
        assert places == [(0, 0, 100000)]
        del x
        assert writer.sent(0, 100000) == 0 and writer.lent == 0 and writer.free == 0
        assert _C._slot_tensor((5, 5000), facula.float32) is not None and len(writer) == 2
        writer.release([0])
        assert writer.free == 2
        kept = [_C._slot_tensor((5, 5000), facula.float32) for _ in range(2)]
        assert len(writer) == 2 and all(t is not None for t in kept)
    assert _C._slot_tensor((5, 5000), facula.float32) is None  # outside of a worker


def test_a_slot_whose_tensor_is_held_is_copied_before_it_is_sent():
    writer = _C._SlotWriter()
    with collating.results_in(writer):
        x = _C._slot_tensor((50000,), facula.float32).fill_(1)
    (place,) = transport.place(transport.pack(x, writer)[1], writer)
    assert place.slot == 0 and writer.sent(0, place.size) == 1
    assert writer.lent == 1
    del x
    assert writer.lent == 0 and writer.free == 1


def test_a_slot_is_kept_when_pickling_fails():
    writer = _C._SlotWriter()
    with collating.results_in(writer):
        x = _C._slot_tensor((50000,), facula.float32)
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        transport.pack([x, lambda: 0], writer)
    del x
    assert writer.free == 1


def test_slots_are_returned_by_any_thread_and_outlive_their_reader():
    writer, reader = _C._SlotWriter(), _C._SlotReader()
    number, begins = writer.place([bytes(range(100)) * 1000, b"x" * 70])
    assert begins == [0, 100032]
    ((slot, size, descriptor),) = writer.take_fresh()
    assert slot == number and size >= 100102
    reader.open(slot, size, descriptor)
    os.close(descriptor)
    block = reader.block(slot)
    assert bytes(memoryview(block)[100032:100102]) == b"x" * 70
    held = [block]
    del block
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert reader.take_released() == [slot] and reader.take_released() == []
    last = memoryview(reader.block(slot))
    reader.forget([slot])
    assert len(reader) == 0
    with pytest.raises(ValueError, match="no slot"):
        reader.block(slot)
    del reader
    assert bytes(last[:3]) == bytes(range(3))


def test_free_slots_beyond_some_memory_are_dropped():
    writer = _C._SlotWriter()
    sizes = [20 << 20] * 6
    numbers = [writer.place([bytes(size)])[0] for size in sizes]
    writer.release(numbers)
    assert writer.free == 6
    assert len(writer.surplus()) == 2 and writer.free == len(writer) == 4
    assert writer.surplus() == []
    for _, _, descriptor in writer.take_fresh():
        os.close(descriptor)


def test_small_tensors_do_not_take_more_slots_than_there_may_be():
    class Kept(data.Dataset):
        def __len__(self):
            return 600

        def __getitem__(self, index):
            return facula.full((10000,), index, dtype=facula.float32)

    loader = data.DataLoader(Kept(), num_workers=1, persistent_workers=True)
    for _ in range(2):
        held = [batch for (batch,) in loader]
        assert [x[77].item() for x in held] == list(range(600))
        assert len(loader._iterator._workers[0].slots) < 400


def mixed(index):
    return facula.ones(30000, dtype=facula.float64 if index % 2 else facula.float32)


class Mixed(Wide):
    def __getitem__(self, index):
        return mixed(index)


def test_samples_of_several_dtypes_are_promoted_as_without_workers():
    (got,) = data.DataLoader(Mixed(2), batch_size=2, num_workers=1)
    (want,) = data.DataLoader(Mixed(2), batch_size=2)
    assert got.dtype is want.dtype is facula.float64 and facula.equal(got, want)
