"""One batch from a dataset."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import facula
from facula import _C
from facula.utils.data._utils.collate import (
    DEFAULT_TABLES,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    gathered,
)
from facula.utils.data._utils.known import in_class
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


def rows_fetcher(
    tensors: tuple[facula.Tensor, ...], dataset: Any, tables: Any = DEFAULT_TABLES
) -> Callable[[Any], Any]:
    """Makes batches of rows, which are a dataset's."""

    def fetch(indices: Any) -> Any:
        if {*map(type, indices)} == {int}:
            where = facula.tensor(indices)
            try:
                return [gathered(t, where) for t in tensors]
            except IndexError:  # negative ones count from the end, others have a message to give
                pass
        plain = _C._Fetch(getitem_of(dataset), None, default_collate, tables, False)
        return plain(indices)

    return fetch


def getitem_of(dataset: Any) -> Callable[[Any], Any]:
    """What ``dataset[index]`` calls."""
    function = in_class(type(dataset), "__getitem__")
    if isinstance(function, types.FunctionType):
        return types.MethodType(function, dataset)
    return functools.partial(operator.getitem, dataset)


def make_fetcher(
    iterable: bool, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
) -> Callable[[Any], Any]:
    """A function of an index, or of a batch's indices, that returns what the loader yields. At the
    end of an iterable dataset it raises StopIteration."""
    if not auto_collation:
        if iterable:
            samples = iter(dataset)
            return lambda index: collate_fn(next(samples))
        return lambda index: collate_fn(dataset[index])
    tables = DEFAULT_TABLES if collate_fn is default_collate else None
    if iterable:
        return _C._Fetch(None, iter(dataset), collate_fn, tables, drop_last)
    many = getattr(dataset, "__getitems__", None)
    if many:
        return lambda indices: collate_fn(many(indices))
    rows = rows_of_memory(dataset, collate_fn)
    if rows is not None:
        return rows_fetcher(rows, dataset)
    return _C._Fetch(getitem_of(dataset), None, collate_fn, tables, False)


class _BaseDatasetFetcher:
    """How a loader gets its batches, for loaders that libraries write."""

    _iterable = False

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last
        self._fetch = make_fetcher(self._iterable, dataset, auto_collation, collate_fn, drop_last)

    def fetch(self, possibly_batched_index: Any) -> Any:
        """What the loader yields for an index, or for the indices of a batch."""
        return self._fetch(possibly_batched_index)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Of a dataset that is asked for samples by index."""


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Of a dataset that goes through its samples; raises StopIteration after the last."""

    _iterable = True
