"""One batch from a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any


def make_fetcher(
    iterable: bool, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
) -> Callable[[Any], Any]:
    """A function of an index, or of a batch's indices, that returns what the loader yields."""
    if iterable:
        return IterableFetcher(iter(dataset), auto_collation, collate_fn, drop_last)
    if not auto_collation:
        return lambda index: collate_fn(dataset[index])
    many = getattr(dataset, "__getitems__", None)
    if many:
        return lambda indices: collate_fn(many(indices))
    return lambda indices: collate_fn([dataset[i] for i in indices])


class IterableFetcher:
    """Takes the next samples of an iterator; raises StopIteration at its end."""

    def __init__(
        self, samples: Iterator[Any], auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.samples, self.collate_fn, self.drop_last = samples, collate_fn, drop_last
        self.auto_collation = auto_collation

    def __call__(self, indices: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(next(self.samples))
        wanted = len(indices)
        batch = list(itertools.islice(self.samples, wanted))
        if not batch or (self.drop_last and len(batch) < wanted):
            raise StopIteration
        return self.collate_fn(batch)
