"""Datasets, samplers, batches, and loaders without workers."""

import copy
import pickle
import warnings
from collections import OrderedDict, deque, namedtuple

import numpy
import pytest

import facula

data = facula.utils.data


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def values(loader):
    return [b.tolist() if isinstance(b, facula.Tensor) else b for b in loader]


# ---- datasets


def test_tensor_dataset_gives_rows_and_refuses_other_lengths():
    dataset = data.TensorDataset(facula.arange(4), facula.arange(8).view(4, 2))
    x, y = dataset[2]
    assert (x.item(), y.tolist(), len(dataset)) == (2, [4, 5], 4)
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(facula.ones(2), facula.ones(3))


def test_concat_dataset_counts_through_and_from_the_end():
    dataset = data.ConcatDataset([range(3), range(10, 12)])
    assert [dataset[i] for i in range(5)] == [0, 1, 2, 10, 11]
    assert dataset[-1] == 11 and dataset[-5] == 0
    with pytest.raises(ValueError, match="absolute value of index"):
        dataset[-6]
    assert dataset.cumulative_sizes == [3, 5]


def test_chain_dataset_and_sum_of_iterable_datasets():
    chained = Count(2) + Count(3)
    assert list(chained) == [0, 1, 0, 1, 2] and len(chained) == 5
    with pytest.raises(AssertionError, match="IterableDataset"):
        list(data.ChainDataset([range(3)]))


def test_stack_dataset_as_tuple_and_dict():
    assert data.StackDataset([1, 2], "ab")[1] == (2, "b")
    named = data.StackDataset(x=[1, 2], y="ab")
    assert named[0] == {"x": 1, "y": "a"}
    assert named.__getitems__([1, 0]) == [{"x": 2, "y": "b"}, {"x": 1, "y": "a"}]
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset([1], [1, 2])


def test_subset_asks_for_many_samples_at_once_where_it_can():
    class Many(data.Dataset):
        def __getitem__(self, index):
            raise AssertionError

        def __getitems__(self, indices):
            return [10 * i for i in indices]

    assert data.Subset(Many(), [5, 7, 9]).__getitems__([0, 2]) == [50, 90]
    assert values(data.DataLoader(data.Subset(Many(), [5, 7, 9]), batch_size=2)) == [[50, 70], [90]]


def test_random_split_by_fractions_gives_every_sample_once():
    parts = data.random_split(range(10), [0.5, 0.3, 0.2], facula.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [5, 3, 2]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(10), [5, 4])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(2), [0.9, 0.05, 0.05])


# ---- samplers


def test_batch_sampler_drops_the_last_batch_only_when_told():
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3
    assert len(data.BatchSampler(range(5), 2, True)) == 2
    with pytest.raises(ValueError, match="batch_size"):
        data.BatchSampler(range(5), 0, False)


def test_random_sampler_goes_round_more_than_once():
    drawn = list(data.RandomSampler(range(4), num_samples=10))
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3] and len(drawn) == 10
    with pytest.raises(ValueError, match="num_samples"):
        data.RandomSampler([])
    with pytest.raises(TypeError, match="replacement"):
        data.RandomSampler(range(3), replacement=1)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_distributed_samplers_share_the_dataset_out(drop_last, shuffle):
    samplers = [
        data.DistributedSampler(range(10), 3, rank, shuffle=shuffle, drop_last=drop_last)
        for rank in range(3)
    ]
    shares = [list(s) for s in samplers]
    assert {len(s) for s in shares} == {3 if drop_last else 4}
    seen = [i for share in shares for i in share]
    assert len(set(seen)) == (9 if drop_last else 10)
    if shuffle:
        samplers[0].set_epoch(1)
        assert list(samplers[0]) != shares[0]
    with pytest.raises(ValueError, match="Invalid rank"):
        data.DistributedSampler(range(10), 3, 3)


# ---- batches

Point = namedtuple("Point", "x y")


def test_default_collate_of_every_kind_of_sample():
    collate = data.default_collate
    assert facula.equal(
        collate([facula.ones(2), facula.zeros(2)]), facula.tensor([[1.0, 1], [0, 0]])
    )
    together = collate([deque([1], maxlen=3), deque([2])])
    assert type(together) is deque and together.maxlen == 3 and together[0].tolist() == [1, 2]
    assert collate([1.5, 2.5]).dtype is facula.float64
    assert collate([1, 2]).dtype is facula.int64
    assert collate([True, False]).dtype is facula.bool
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([numpy.float32(1), numpy.float32(2)]).dtype is facula.float32
    assert collate([numpy.arange(2), numpy.arange(2)]).tolist() == [[0, 1], [0, 1]]
    both = collate([Point(1, "a"), Point(2, "b")])
    assert type(both) is Point and both.x.tolist() == [1, 2] and both.y == ("a", "b")
    assert [p.tolist() for p in collate([(1, 2.0), (3, 4.0)])] == [[1, 3], [2.0, 4.0]]
    mapped = collate([OrderedDict(a=1), OrderedDict(a=2)])
    assert type(mapped) is OrderedDict and mapped["a"].tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="equal size"):
        collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        collate([object()])
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        collate([numpy.array(["a"]), numpy.array(["b"])])


def test_collate_by_a_table_of_ones_own():
    from facula.utils.data._utils.collate import collate, default_collate_fn_map

    class Text:
        def __init__(self, text):
            self.text = text

    table = {
        **default_collate_fn_map,
        Text: lambda batch, *, collate_fn_map: [b.text for b in batch],
    }
    assert collate([(Text("a"), 1)], collate_fn_map=table)[0] == ["a"]


def test_default_convert_leaves_what_is_no_array():
    out = data.default_convert(
        {"a": numpy.ones(2), "b": ["text", numpy.int64(3)], "c": Point(1, 2)}
    )
    assert facula.equal(out["a"], facula.ones(2, dtype=facula.float64))
    assert out["b"][0] == "text" and out["b"][1].item() == 3 and out["c"] == Point(1, 2)


# ---- loaders


def test_loader_gives_batches_samples_and_lengths():
    assert values(data.DataLoader(range(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert values(data.DataLoader(range(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert values(data.DataLoader("abc", batch_size=None)) == ["a", "b", "c"]
    assert values(data.DataLoader(range(4), batch_sampler=[[3, 1], [0]])) == [[3, 1], [0]]
    assert len(data.DataLoader(range(5), batch_size=2)) == 3
    assert len(data.DataLoader(Count(5), batch_size=2)) == 3
    assert values(data.DataLoader(Count(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]


def test_shuffled_loader_repeats_with_the_seed_and_changes_with_the_epoch():
    def epochs(seed):
        loader = data.DataLoader(
            range(20), batch_size=20, shuffle=True, generator=facula.Generator().manual_seed(seed)
        )
        return [values(loader)[0] for _ in range(2)]

    assert epochs(1) == epochs(1) and epochs(1) != epochs(2)
    first, second = epochs(1)
    assert first != second and sorted(first) == sorted(second) == list(range(20))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "prefetch_factor"),
        ({"persistent_workers": True}, "persistent_workers"),
        ({"sampler": [0], "shuffle": True}, "mutually exclusive"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "drop_last"),
        ({"worker_type": "coroutine"}, "worker_type"),
        ({"multiprocessing_context": "fork"}, "num_workers > 0"),
        ({"multiprocessing_context": "thread", "num_workers": 1}, "valid start method"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader(range(3), **options)


def test_iterable_dataset_refuses_orders():
    for options in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match="IterableDataset"):
            data.DataLoader(Count(3), **options)


def test_options_cannot_change_afterwards():
    loader = data.DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 2


def test_more_samples_than_announced_are_warned_of_once():
    class Liar(Count):
        def __len__(self):
            return 2

    loader = data.DataLoader(Liar(4))
    assert len(loader) == 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert len(list(loader)) == 4
    assert len(seen) == 1 and "Length of IterableDataset" in str(seen[0].message)


# ---- going on in mid-epoch


@pytest.mark.parametrize("own_generator", [False, True])
@pytest.mark.parametrize("came", [0, 1, 3])
def test_state_goes_on_where_it_was(own_generator, came):
    def make():
        generator = facula.Generator().manual_seed(5) if own_generator else None
        return data.DataLoader(range(9), batch_size=2, shuffle=True, generator=generator)

    facula.manual_seed(3)
    loader = make()
    iterator = iter(loader)
    for _ in range(came):
        next(iterator)
    state = loader.state_dict()
    rest = values(iterator)

    facula.manual_seed(99)
    before = facula.get_rng_state()
    resumed = make()
    resumed.load_state_dict(state)
    assert resumed.state_dict()["num_yielded"] == came
    assert values(resumed) == rest
    if not own_generator:
        assert facula.equal(facula.get_rng_state(), before)  # the program's numbers are its own
    assert sorted(i for b in values(resumed) for i in b) == list(range(9))


def test_state_of_iterable_and_finished_loaders():
    loader = data.DataLoader(Count(5), batch_size=2)
    iterator = iter(loader)
    next(iterator)
    again = data.DataLoader(Count(5), batch_size=2)
    again.load_state_dict(loader.state_dict())
    assert values(again) == [[2, 3], [4]]
    assert list(iterator) and loader.state_dict() == {"version": 1, "in_epoch": False}
    with pytest.raises(ValueError, match="expected what DataLoader"):
        loader.load_state_dict({})
    with pytest.raises(RuntimeError, match="in_order=True"):
        data.DataLoader(range(3), in_order=False).state_dict()


# ---- the same as PyTorch


def test_orders_are_pytorchs():
    torch = pytest.importorskip("torch")
    theirs = torch.utils.data

    def orders(module, package):
        package.manual_seed(7)
        generator = package.Generator().manual_seed(11)
        out = [
            list(package.RandomSampler(range(10))),
            list(package.RandomSampler(range(10), replacement=True, num_samples=40)),
            list(package.RandomSampler(range(10), num_samples=25, generator=generator)),
            list(package.RandomSampler(range(5), True, 33, generator=generator)),
            list(package.SubsetRandomSampler([3, 1, 4, 1, 5], generator=generator)),
            list(package.WeightedRandomSampler([0.1, 0.9, 0.4], 6, generator=generator)),
            list(package.WeightedRandomSampler([0.1, 0.9, 0.4], 3, False, generator=generator)),
            list(package.DistributedSampler(range(10), 3, 1, seed=4)),
            [list(p.indices) for p in package.random_split(range(10), [3, 7], generator)],
            [list(p.indices) for p in package.random_split(range(10), [0.55, 0.45])],
            [b.tolist() for b in package.DataLoader(range(9), batch_size=4, shuffle=True)],
        ]
        return [*out, module.rand(1).item()]

    class Both:
        def __init__(self, module, package):
            self.module, self.package = module, package

        def __getattr__(self, name):
            return getattr(self.package if hasattr(self.package, name) else self.module, name)

    assert orders(facula, Both(facula, data)) == orders(torch, Both(torch, theirs))


def test_old_spelling_of_cumulative_sizes_warns():
    both = facula.utils.data.ConcatDataset([[1, 2], [3]])
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert both.cummulative_sizes == [2, 3]


def test_iterable_dataset_without_iter_cannot_be_made():
    class Nothing(facula.utils.data.IterableDataset):
        pass

    with pytest.raises(TypeError, match="__iter__"):
        Nothing()


def test_pin_memory_device_warns():
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated"):
        facula.utils.data.DataLoader([1], pin_memory_device="cuda")


def test_a_loader_can_be_pickled_and_copied_in_an_epoch_and_after_it():
    loader = facula.utils.data.DataLoader([1, 2, 3], batch_size=None, num_workers=2)
    left = iter(loader)
    assert next(left) == 1
    for other in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        assert list(other) == [1, 2, 3]
    assert list(left) == [2, 3]
    assert list(pickle.loads(pickle.dumps(loader))) == [1, 2, 3]
