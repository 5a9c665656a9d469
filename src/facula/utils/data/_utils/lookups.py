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

import numpy

from facula import _C
from facula.random import default_generator
from facula.utils.data._utils.array_random import can_exchange
from facula.utils.data._utils.collate import KNOWN_TABLES, default_collate, default_convert
from facula.utils.data._utils.fetch import getitem_of, rows_fetcher, rows_of_memory
from facula.utils.data._utils.harmless import ARRAYS_DRAWN, GENERATOR, SEEDED, TIME, TWISTER
from facula.utils.data._utils.known import (
    ARRAY,
    NULL,
    NUMBER,
    TENSOR,
    Iterator,
    Known,
    List,
    NotSimpleError,
    in_class,
    is_plain_tensor,
)
from facula.utils.data._utils.known import kind as kind_of
from facula.utils.data._utils.reading import read_with, result_of
from facula.utils.data._utils.simple import Simple
from facula.utils.data._utils.transport import INLINE_BYTES
from facula.utils.data._utils.worker import acting_as
from facula.utils.data.dataset import ConcatDataset, StackDataset, Subset, TensorDataset

_WITH_MANY = (Subset, StackDataset)
_BATCH = "batch", 0, 0  # where the list of a batch's samples was made
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


def _many_of(dataset: Any) -> Any:
    """What takes the indices of a batch at once: a function, NULL where it is of another kind, None
    where there is no such thing, or where it is known to do the same."""
    kind = type(dataset)
    own = getattr(dataset, "__dict__", ())
    if kind in _WITH_MANY or not (hasattr(kind, "__getitems__") or "__getitems__" in own):
        return None
    function = in_class(kind, "__getitems__")
    plain = isinstance(function, types.FunctionType) and "__getitems__" not in own
    return function if plain else NULL


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
    if isinstance(dataset, (list, tuple, dict)) or _many_of(dataset) is not None:
        return False
    if in_class(kind, "__getattribute__") is not object.__getattribute__:
        return False
    function = in_class(kind, "__getitem__")
    if not isinstance(function, types.FunctionType):
        return False
    try:
        result_of(function, [Known(dataset), NUMBER], inner, needs)
    except NotSimpleError:
        return False
    return True


def is_same_in_workers(dataset: Any, context: Any = None) -> bool:
    """Whether a worker process has the dataset as it is. Those that are not forked are sent a
    pickle, and what that becomes may be the class's own choice."""
    method = (context or multiprocessing).get_start_method(allow_none=True)
    if (method or multiprocessing.get_all_start_methods()[0]) == "fork":
        return True
    return all(in_class(type(dataset), n) is vars(object).get(n, NULL) for n in _OF_PICKLES)


def copied(batch: Any) -> Any:
    """The batch as it comes from a worker: nobody else has its memory. Raises where it has no short
    form, and might have code of its own."""
    packed = _C._pack_batch(batch, INLINE_BYTES)
    if packed is None:
        raise TypeError(f"a {type(batch).__name__} has no short form")
    return _C._unpack_batch(packed)


def can_prepare_here(init_fn: Any, job: Any) -> bool:
    """Whether a ``worker_init_fn`` does nothing but to look things up and to seed generators, and
    raises no exception in any worker: then what draws no numbers needs no such worker."""
    needs: set[str] = set()

    def begin(simple: Simple) -> None:
        simple.may_seed = True
        simple.call(Known(init_fn), [NUMBER])

    try:
        read_with(begin, functools.partial(_only_looks_up, needs=needs), needs)
    except NotSimpleError:
        return False
    if needs & _GENERATORS or TIME in needs or (SEEDED in needs and not _C._runs_alone()):
        return False
    return _runs_without_errors(init_fn, job, SEEDED in needs)


def _runs_without_errors(init_fn: Any, job: Any, seeds: bool) -> bool:
    """Runs it in the name of each worker, with the worker's generators where it asks for them."""
    if seeds and not _C._runs_alone():
        return False  # others might draw from the generators of Python and NumPy meanwhile
    before = (default_generator.get_state(), random.getstate()) if seeds else None
    arrays = numpy.random.get_state() if seeds else None
    try:
        for number in range(job.num_workers):
            if seeds:
                default_generator.manual_seed(job.base_seed + number)
            with acting_as(job.info(number)):
                init_fn(number)
    except Exception:
        return False
    finally:
        if before is not None:
            default_generator.set_state(before[0])
            random.setstate(before[1])
            numpy.random.set_state(arrays)
    return True


def _read_batch(dataset: Any, collate_fn: Any, alone: bool, needs: set[str]) -> bool:
    """Whether making a batch does no more than to look things up and to compute."""
    inner = functools.partial(_only_looks_up, needs=needs)
    many = None if alone else _many_of(dataset)

    def begin(simple: Simple) -> None:
        known = Known(dataset)
        samples: Any
        if many is None:
            sample = simple.item(known, NUMBER)
            samples = sample if alone else List(sample, _BATCH)
        else:
            samples = simple.call_function(many, [known, List(NUMBER, _BATCH)])
        if collate_fn not in (default_collate, default_convert):
            simple.call(Known(collate_fn), [samples])

    if many is NULL or not (many is not None or _only_looks_up(dataset, needs)):
        return False
    try:
        read_with(begin, inner, needs)
    except NotSimpleError:
        return False
    return True


def _fetcher(dataset: Any, collate_fn: Any, alone: bool) -> Callable[[Any], Any]:
    get = getitem_of(dataset)
    if alone:
        if collate_fn is default_convert:
            return lambda index: default_convert(copied(get(index)))
        return lambda index: copied(collate_fn(get(index)))
    many = getattr(dataset, "__getitems__", None) if _many_of(dataset) is not None else None
    if collate_fn is default_collate:
        assert many is not None
        return lambda indices: _C._collate(many(indices), *KNOWN_TABLES)
    if many is not None:
        return lambda indices: copied(collate_fn(many(indices)))
    fetch = _C._Fetch(get, None, collate_fn, None, False)
    return lambda indices: copied(fetch(indices))


def lookups_of(
    dataset: Any, collate_fn: Any = default_collate, alone: bool = False
) -> Lookups | None:
    """Makes a batch of samples that are looked up in memory, from their indices; None where there
    may be more to it. It raises what a worker would, and where samples turn out to be of types that
    may have code of their own.

    Args:
        dataset: what is indexed.
        collate_fn: what makes a batch of samples, or converts one.
        alone: whether samples come one by one.
    """
    needs: set[str] = set()
    as_ever = collate_fn is default_collate and not alone and _many_of(dataset) is None
    if as_ever:
        simple = _only_looks_up(dataset, needs)
    else:
        simple = _read_batch(dataset, collate_fn, alone, needs)
    if not simple or not _can_draw(needs):
        return None
    fetch: Callable[[Any], Any]
    if as_ever:
        fetch = _C._Fetch(getitem_of(dataset), None, default_collate, KNOWN_TABLES, False)
        rows = rows_of_memory(dataset, default_collate)
        if rows is not None:
            fetch = rows_fetcher(rows, fetch)
    else:
        fetch = _fetcher(dataset, collate_fn, alone)
    return Lookups(fetch, _GENERATORS & needs, TIME in needs)


def iterations_of(
    dataset: Any, drop_last: bool, collate_fn: Any = default_collate, alone: bool = False
) -> Lookups | None:
    """The same for an iterable dataset: a function that begins to iterate, and returns what makes
    a batch of the next samples."""
    function = in_class(type(dataset), "__iter__")
    if not isinstance(function, types.FunctionType):
        return None
    needs: set[str] = set()

    def read(simple: Simple) -> None:
        found = simple.call_function(function, [Known(dataset)])
        # An iterator that was there before would not be the worker's copy.
        if not isinstance(found, Iterator):
            raise NotSimpleError
        if collate_fn not in (default_collate, default_convert):
            simple.call(Known(collate_fn), [found.item if alone else List(found.item, _BATCH)])

    try:
        read_with(read, functools.partial(_only_looks_up, needs=needs), needs)
    except NotSimpleError:
        return None
    if not _can_draw(needs):
        return None

    def begin() -> Any:
        samples = iter(dataset)
        if alone and collate_fn is default_convert:
            return lambda index: default_convert(copied(next(samples)))
        if alone:
            return lambda index: copied(collate_fn(next(samples)))
        if collate_fn is default_collate:
            return _C._Fetch(None, samples, default_collate, KNOWN_TABLES, drop_last)
        fetch = _C._Fetch(None, samples, collate_fn, None, drop_last)
        return lambda indices: copied(fetch(indices))

    return Lookups(begin, _GENERATORS & needs, True)
