"""Pipes: datasets chained by methods that classes register."""

import copy
import pickle

import pytest

from facula.utils import data


class Count(data.IterDataPipe):
    def __init__(self, n=4):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


@data.functional_datapipe("test_squared")
class Squared(data.IterDataPipe):
    def __init__(self, source, shift=0):
        self.source, self.shift = source, shift

    def __iter__(self):
        for x in self.source:
            yield x * x + self.shift


@data.functional_datapipe("test_negated")
class Negated(data.MapDataPipe):
    def __init__(self, source):
        self.source = source

    def __getitem__(self, index):
        return -self.source[index]

    def __len__(self):
        return len(self.source)


class Letters(data.MapDataPipe):
    def __getitem__(self, index):
        return index + 1

    def __len__(self):
        return 3


def test_registered_classes_are_methods_of_their_kind():
    assert list(Count().test_squared(shift=1)) == [1, 2, 5, 10]
    assert list(Count().test_squared().test_squared()) == [0, 1, 16, 81]
    pipe = Letters().test_negated()
    assert [pipe[i] for i in range(len(pipe))] == [-1, -2, -3]
    with pytest.raises(AttributeError, match="test_negated"):
        Count().test_negated()
    with pytest.raises(Exception, match="already taken"):
        data.functional_datapipe("test_squared")(Squared)
    with pytest.raises(TypeError, match="functional_datapipe"):
        data.functional_datapipe("other")(int)


def test_pipes_load_in_batches_also_in_workers_and_are_copied():
    pipe = Count(5).test_squared()
    for workers in (0, 1):
        loader = data.DataLoader(pipe, batch_size=2, num_workers=workers)
        assert [b.tolist() for b in loader] == [[0, 1], [4, 9], [16]]
    for other in (copy.deepcopy(pipe), pickle.loads(pickle.dumps(pipe))):
        assert list(other) == list(pipe)
    assert isinstance(pipe, data.IterableDataset) and repr(pipe) == "Squared"


def test_functions_may_be_registered():
    data.IterDataPipe.register_function("test_total", lambda pipe, start=0: sum(pipe, start))
    assert Count().test_total(10) == 16


def test_random_pipes_are_refused_where_they_are_not_wanted():
    @data.functional_datapipe("test_maybe_random")
    @data.non_deterministic(lambda source, shuffle=False: shuffle)
    class Maybe(data.IterDataPipe):
        def __init__(self, source, shuffle=False):
            self.source = source

        def __iter__(self):
            return iter(self.source)

    assert list(Count(2).test_maybe_random(shuffle=True)) == [0, 1]
    with data.guaranteed_datapipes_determinism():
        assert list(Maybe(Count(2))) == [0, 1]
        with pytest.raises(TypeError, match="Maybe is non-deterministic"):
            Count(2).test_maybe_random(shuffle=True)
    assert list(Maybe(Count(2), shuffle=True)) == [0, 1]
    with pytest.raises(TypeError, match="IterDataPipe"):
        data.non_deterministic(int)


def test_chunks():
    chunk = data.DataChunk(range(3))
    assert chunk == [0, 1, 2] and chunk.as_str("  ") == "  [0, 1, 2]"
    assert list(chunk.raw_iterator()) == chunk.items == [0, 1, 2]
