"""Datasets that only look things up in memory: nobody can tell which process does that.

Such a dataset is a list, tensors, one of those of this package over such datasets, or of a class
whose ``__getitem__`` or ``__iter__`` is simple (:mod:`reading`).
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.utils.data._utils.collate import KNOWN_TABLES, default_collate
from facula.utils.data._utils.fetch import getitem_of, rows_fetcher, rows_of_memory
from facula.utils.data._utils.known import (
    NUMBER,
    Iterator,
    Known,
    NotSimpleError,
    is_plain_tensor,
)
from facula.utils.data._utils.reading import result_of
from facula.utils.data.dataset import ConcatDataset, StackDataset, Subset, TensorDataset


def _only_looks_up(dataset: Any) -> bool:
    kind = type(dataset)
    if kind in (list, tuple, range):
        return True
    if kind is TensorDataset:
        return all(map(is_plain_tensor, dataset.tensors))
    if kind is Subset:
        return type(dataset.indices) in (list, tuple, range) and _only_looks_up(dataset.dataset)
    if kind is ConcatDataset:
        return all(map(_only_looks_up, dataset.datasets))
    if kind is StackDataset:
        parts = dataset.datasets
        return all(map(_only_looks_up, parts.values() if isinstance(parts, dict) else parts))
    if isinstance(dataset, (list, tuple, dict)) or hasattr(kind, "__getitems__"):
        return False
    function = inspect.getattr_static(kind, "__getitem__", None)
    if not isinstance(function, types.FunctionType) or "__getitems__" in vars(dataset):
        return False
    try:
        result_of(function, [Known(dataset), NUMBER], _only_looks_up)
    except NotSimpleError:
        return False
    return True


def lookups_of(dataset: Any) -> Callable[[Any], Any] | None:
    """Makes a batch of samples that are looked up in memory, from their indices, with
    :func:`default_collate`; None where there may be more to it. It raises what a worker would, and
    where samples turn out to be of types that may have code of their own."""
    if not _only_looks_up(dataset):
        return None
    fetch = _C._Fetch(getitem_of(dataset), None, default_collate, KNOWN_TABLES, False)
    rows = rows_of_memory(dataset, default_collate)
    return fetch if rows is None else rows_fetcher(rows, fetch)


def iterations_of(dataset: Any, drop_last: bool) -> Callable[[], Any] | None:
    """The same for an iterable dataset: a function that begins to iterate, and returns what makes
    a batch of the next samples."""
    function = inspect.getattr_static(type(dataset), "__iter__", None)
    if not isinstance(function, types.FunctionType):
        return None
    try:
        # An iterator that was there before would not be the worker's copy.
        if not isinstance(result_of(function, [Known(dataset)], _only_looks_up), Iterator):
            return None
    except NotSimpleError:
        return None
    return lambda: _C._Fetch(None, iter(dataset), default_collate, KNOWN_TABLES, drop_last)
