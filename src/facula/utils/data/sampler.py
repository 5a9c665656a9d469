"""In which order samples are loaded: iterables of indices, or of batches of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy

import facula
from facula import _C, Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)
_RUN = 1 << 15  # numbers that are counted at a time
Run = numpy.ndarray[Any, numpy.dtype[numpy.int64]]


def drawn_seed(generator: Generator | None = None) -> int:
    """A seed that a generator draws, the default one for None."""
    seed: int | None = _C._drawn_seed(generator)
    if seed is None:
        seed = int(facula.empty((), dtype=facula.int64).random_(generator=generator).item())
    return seed


class Sampler(Generic[_T_co]):
    """The base of samplers: a subclass has ``__iter__``, and ``__len__`` when it knows it.

    Example::

        >>> class EverySecond(facula.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return iter(range(0, len(self.data), 2))
        >>> loader = facula.utils.data.DataLoader(
        ...     "abcde", batch_size=None, sampler=EverySecond("abcde"))
        >>> list(loader)
        ['a', 'c', 'e']
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError(f"{type(self).__name__} should implement __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2 and so on.

    Example::

        >>> list(facula.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def _runs(self) -> Iterator[Run]:
        """The same indices, many at a time."""
        count = len(self.data_source)
        for begin in range(0, count, _RUN):
            yield numpy.arange(begin, min(begin + _RUN, count))

    def __len__(self) -> int:
        return len(self.data_source)


def _is_positive_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class RandomSampler(Sampler[int]):
    """Indices in random order, or drawn independently.

    Args:
        data_source: what is sampled; it has a length.
        replacement: whether an index may come again before all others came.
        num_samples: how many indices; the dataset's length by default. Without replacement, one
            permutation follows the other.
        generator: where the numbers come from. By default each iteration takes a seed from the
            default generator and goes on alone.

    Example::

        >>> sampler = facula.utils.data.RandomSampler(range(4), generator=facula.Generator())
        >>> sorted(sampler)
        [0, 1, 2, 3]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices one iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(run.tolist() for run in self._runs())

    def _runs(self) -> Iterator[Run]:
        n, left = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(drawn_seed())
        size = 32 if self.replacement else n
        while left >= size:
            yield self._drawn(n, size, generator)
            left -= size
        if left or self.generator is not None:  # a shared generator moves on even for nothing
            yield self._drawn(n, left, generator)

    def _drawn(self, n: int, count: int, generator: Generator) -> Run:
        if self.replacement:
            return facula.randint(n, (count,), generator=generator).cpu().numpy()
        return facula.randperm(n, generator=generator)[:count].cpu().numpy()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Example::

        >>> sorted(facula.utils.data.SubsetRandomSampler([3, 5]))
        [3, 5]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in facula.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities that are proportional to weights.

    Args:
        weights: a weight for each index; they need not add up to 1.
        num_samples: how many indices.
        replacement: whether an index may be drawn again.
        generator: where the numbers come from.

    Example::

        >>> list(facula.utils.data.WeightedRandomSampler([0., 1., 0.], 3))
        [1, 1, 1]
    """

    weights: facula.Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = facula.as_tensor(weights, dtype=facula.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(run.tolist() for run in self._runs())

    def _runs(self) -> Iterator[Run]:
        drawn = facula.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield drawn.cpu().numpy()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Indices of another sampler in batches.

    Args:
        sampler: any iterable of indices.
        batch_size: how many make a batch.
        drop_last: whether a last batch that is not full is left out.

    Example::

        >>> list(facula.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not _is_positive_int(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        smallest = self.batch_size if self.drop_last else 1
        while len(batch := list(itertools.islice(indices, self.batch_size))) >= smallest:
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + bool(rest and not self.drop_last)


class InfiniteConstantSampler(Sampler[Any]):
    """None without end: iterable datasets choose their samples themselves."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)
