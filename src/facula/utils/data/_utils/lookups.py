"""Datasets that only look things up in memory: nobody can tell which process does that.

Such a dataset is a list, tensors, one of those of this package over such datasets, or of a class
whose ``__getitem__`` or ``__iter__`` is simple (:mod:`reading`).
"""

from __future__ import annotations

import functools
import multiprocessing
import random
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from facula import _C
from facula.utils.data._utils.array_random import can_exchange
from facula.utils.data._utils.collate import KNOWN_TABLES, default_collate
from facula.utils.data._utils.fetch import getitem_of, rows_fetcher, rows_of_memory
from facula.utils.data._utils.harmless import ARRAYS_DRAWN, GENERATOR, TIME, TWISTER
from facula.utils.data._utils.known import (
    ARRAY,
    NULL,
    NUMBER,
    TENSOR,
    Iterator,
    Known,
    NotSimpleError,
    in_class,
    is_plain_tensor,
)
from facula.utils.data._utils.known import kind as kind_of
from facula.utils.data._utils.reading import result_of
from facula.utils.data.dataset import ConcatDataset, StackDataset, Subset, TensorDataset

_GENERATORS = frozenset((GENERATOR, TWISTER, ARRAYS_DRAWN))


_OF_PICKLES = (
    *("__getnewargs__", "__getnewargs_ex__", "__getstate__"),
    *("__reduce__", "__reduce_ex__", "__setstate__"),
)


class Lookups(NamedTuple):
    """What makes batches as a worker would."""

    fetch: Callable[..., Any]  # makes a batch, or begins to iterate and returns what makes batches
    draws: frozenset[str]  # the default generators that numbers are drawn from
    loops: bool  # it may not come to an end


@functools.cache
def _can_stand_in_for_twister() -> bool:
    return bool(_C._find_twister(random._inst))  # type: ignore[attr-defined]


def _can_draw(needs: set[str]) -> bool:
    """Whether the loader can draw the numbers that are needed in the place of a worker."""
    if TWISTER in needs and not (_C._runs_alone() and _can_stand_in_for_twister()):
        return False
    return ARRAYS_DRAWN not in needs or (_C._runs_alone() and can_exchange())


def _only_looks_up(dataset: Any, needs: set[str]) -> bool:
    """Whether indexing it does no more than that; ``needs`` is told what it may need."""
    kind = type(dataset)
    if kind in (list, tuple, range) or kind_of(Known(dataset)) in (TENSOR, ARRAY):
        return True
    if kind is dict:
        return {*map(type, dataset)} <= {int}
    inner = functools.partial(_only_looks_up, needs=needs)
    if kind is TensorDataset:
        return all(map(is_plain_tensor, dataset.tensors))
    if kind is Subset:
        return type(dataset.indices) in (list, tuple, range) and inner(dataset.dataset)
    if kind is ConcatDataset:
        return all(map(inner, dataset.datasets))
    if kind is StackDataset:
        parts = dataset.datasets
        return all(map(inner, parts.values() if isinstance(parts, dict) else parts))
    if isinstance(dataset, (list, tuple, dict)) or hasattr(kind, "__getitems__"):
        return False
    if in_class(kind, "__getattribute__") is not object.__getattribute__:
        return False
    function = in_class(kind, "__getitem__")
    own = getattr(dataset, "__dict__", ())
    if not isinstance(function, types.FunctionType) or "__getitems__" in own:
        return False
    try:
        result_of(function, [Known(dataset), NUMBER], inner, needs)
    except NotSimpleError:
        return False
    return True


def is_same_in_workers(dataset: Any) -> bool:
    """Whether a worker process has the dataset as it is. Those that are not forked are sent a
    pickle, and what that becomes may be the class's own choice."""
    method = multiprocessing.get_start_method(allow_none=True)
    if (method or multiprocessing.get_all_start_methods()[0]) == "fork":
        return True
    return all(in_class(type(dataset), n) is vars(object).get(n, NULL) for n in _OF_PICKLES)


def lookups_of(dataset: Any) -> Lookups | None:
    """Makes a batch of samples that are looked up in memory, from their indices, with
    :func:`default_collate`; None where there may be more to it. It raises what a worker would, and
    where samples turn out to be of types that may have code of their own."""
    needs: set[str] = set()
    if not _only_looks_up(dataset, needs):
        return None
    if not _can_draw(needs):
        return None
    fetch: Callable[[Any], Any]
    fetch = _C._Fetch(getitem_of(dataset), None, default_collate, KNOWN_TABLES, False)
    rows = rows_of_memory(dataset, default_collate)
    if rows is not None:
        fetch = rows_fetcher(rows, fetch)
    return Lookups(fetch, _GENERATORS & needs, TIME in needs)


def iterations_of(dataset: Any, drop_last: bool) -> Lookups | None:
    """The same for an iterable dataset: a function that begins to iterate, and returns what makes
    a batch of the next samples."""
    function = in_class(type(dataset), "__iter__")
    if not isinstance(function, types.FunctionType):
        return None
    needs: set[str] = set()
    inner = functools.partial(_only_looks_up, needs=needs)
    try:
        # An iterator that was there before would not be the worker's copy.
        if not isinstance(result_of(function, [Known(dataset)], inner, needs), Iterator):
            return None
    except NotSimpleError:
        return None
    if not _can_draw(needs):
        return None

    def begin() -> Any:
        return _C._Fetch(None, iter(dataset), default_collate, KNOWN_TABLES, drop_last)

    return Lookups(begin, _GENERATORS & needs, True)
