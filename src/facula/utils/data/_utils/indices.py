"""Which samples make which batch: many batches drawn from a sampler at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from facula.utils.data.sampler import (
    BatchSampler,
    InfiniteConstantSampler,
    RandomSampler,
    SequentialSampler,
    WeightedRandomSampler,
)

_SAMPLERS_OF_INTS = (RandomSampler, SequentialSampler, WeightedRandomSampler)


class PackedBatches:
    """Batches of indices as an array of numbers, which goes to a worker as it lies in memory.

    Args:
        numbers: the indices of all batches, one after the other.
        size: how many make a batch; the last may be shorter. 0 where each is a task by itself.
    """

    def __init__(self, numbers: numpy.ndarray[Any, Any], size: int) -> None:
        self.numbers, self.size = numbers, size

    def __len__(self) -> int:
        return -(-len(self.numbers) // (self.size or 1))

    def shorten(self) -> None:
        """Half as much to send, where that is possible."""
        if len(self.numbers) and self.numbers.max() < 1 << 31:
            self.numbers = self.numbers.astype(numpy.int32)

    def share(self, first: int, step: int) -> tuple[bytes, int, int]:
        """Every ``step``-th batch from ``first`` on, their size, and bytes of a number."""
        width = self.size or 1
        whole, rest = divmod(len(self.numbers), width)
        split = whole * width
        data = self.numbers[:split].reshape(whole, width)[first::step].tobytes()
        if rest and whole % step == first:
            data += self.numbers[split:].tobytes()
        return data, self.size, self.numbers.itemsize


class IndexBatches:
    """Goes over the batches of a sampler whose indices are ints.

    Args:
        runs: the indices, many at a time.
        size: how many make a batch, 0 for indices by themselves.
        drop_last: whether a last batch that is not full is left out.
    """

    def __init__(self, runs: Iterator[numpy.ndarray[Any, Any]], size: int, drop_last: bool) -> None:
        self.runs, self.size, self.drop_last = runs, size, drop_last
        self.left = numpy.empty(0, numpy.int64)  # of what was drawn from the sampler

    def __iter__(self) -> IndexBatches:
        return self

    def __next__(self) -> Any:
        drawn = self.draw(1).numbers.tolist()
        if not drawn:
            raise StopIteration
        return drawn if self.size else drawn[0]

    def draw(self, count: int) -> PackedBatches:
        """The next batches, at most so many."""
        width = self.size or 1
        want = count * width
        parts = [self.left[:want]]
        self.left = self.left[want:]
        want -= len(parts[0])
        while want and (run := next(self.runs, None)) is not None:
            parts.append(run[:want])
            self.left = run[want:]
            want -= len(parts[-1])
        numbers = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
        if self.drop_last:
            numbers = numbers[: len(numbers) // width * width]
        return PackedBatches(numbers, self.size)

    def draw_first(self) -> None:
        """Asks the sampler for what it gives first."""
        if not len(self.left):
            self.left = next(self.runs, self.left)


class RepeatedIndex:
    """Goes over what a sampler for an iterable dataset gives: the same again and again."""

    def __init__(self, index: Any, count: int = 0) -> None:
        self.index, self.count = index, count

    def __iter__(self) -> RepeatedIndex:
        return self

    def __next__(self) -> Any:
        return self.index

    def __len__(self) -> int:
        return self.count

    def shorten(self) -> None:
        """There is nothing longer than a number in it."""

    def draw(self, count: int) -> RepeatedIndex:
        """So many batches."""
        return RepeatedIndex(self.index, count)

    def share(self, first: int, step: int) -> tuple[Any, int]:
        """Every ``step``-th of them from ``first`` on: the index and how many."""
        return self.index, len(range(first, self.count, step))


def packed_indices_of(sampler: Any) -> IndexBatches | RepeatedIndex | None:
    """The same as iterating over a sampler, for those of which many can be drawn at once."""
    if type(sampler) is InfiniteConstantSampler:
        return RepeatedIndex(None)
    if type(sampler) is BatchSampler and type(sampler.sampler) is InfiniteConstantSampler:
        return RepeatedIndex([None] * sampler.batch_size)  # of which only the length is read
    if type(sampler) in _SAMPLERS_OF_INTS:
        return IndexBatches(sampler._runs(), 0, False)
    if type(sampler) is BatchSampler and type(sampler.sampler) in _SAMPLERS_OF_INTS:
        return IndexBatches(sampler.sampler._runs(), sampler.batch_size, sampler.drop_last)
    return None


def unpacked(first: list[Any], rest: Iterable[Any], sampler: Any) -> Iterator[Any]:
    """What is left of a sampler's indices, of which many can be drawn at once where they are ints:
    these, and then the others."""
    left = itertools.chain(first, rest)
    if type(sampler) is BatchSampler and type(sampler.sampler) in _SAMPLERS_OF_INTS:
        return IndexBatches(map(numpy.array, left), sampler.batch_size, False)
    return left


def indices_of(sampler: Any) -> Iterator[Any]:
    """An iterator over what a sampler gives."""
    if type(sampler) is BatchSampler and type(sampler.sampler) is InfiniteConstantSampler:
        return RepeatedIndex([None] * sampler.batch_size)
    return iter(sampler)


def with_first_drawn(indices: Iterator[Any]) -> Iterator[Any]:
    """The same indices; the first of them is there already. Samplers draw random numbers when they
    are first asked."""
    if isinstance(indices, IndexBatches):
        indices.draw_first()
        return indices
    if isinstance(indices, RepeatedIndex):
        return indices
    return itertools.chain(list(itertools.islice(indices, 1)), indices)
