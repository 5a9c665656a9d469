"""One batch from a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import facula
from facula.utils.data._utils.collate import (
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    gathered,
)
from facula.utils.data.dataset import TensorDataset


def rows_of_memory(dataset: Any, collate_fn: Any) -> tuple[facula.Tensor, ...] | None:
    """The tensors of which batches are nothing but copied rows.

    Such a batch depends on neither the process that makes it nor its random numbers.
    """
    if type(dataset) is not TensorDataset or collate_fn is not default_collate:
        return None
    if default_collate_fn_map.get(facula.Tensor) is not collate_tensor_fn:
        return None
    for t in dataset.tensors:
        if type(t) is not facula.Tensor or t.requires_grad or t.device.type != "cpu":
            return None
        if t.is_conj() or t.is_neg():
            return None
    return dataset.tensors


def _rows_fetcher(tensors: tuple[facula.Tensor, ...], plain: Any) -> Callable[[Any], Any]:
    def fetch(indices: Any) -> Any:
        if {*map(type, indices)} == {int}:
            where = facula.tensor(indices)
            try:
                return [gathered(t, where) for t in tensors]
            except IndexError:  # negative ones count from the end, others have a message to give
                pass
        return plain(indices)

    return fetch


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

    def fetch(indices: Any) -> Any:
        return collate_fn([dataset[i] for i in indices])

    rows = rows_of_memory(dataset, collate_fn)
    return fetch if rows is None else _rows_fetcher(rows, fetch)


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
