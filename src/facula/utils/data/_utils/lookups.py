"""Datasets that only look things up in memory: nobody can tell which process does that.

Such a dataset is a list, tensors, one of those of this package over such datasets, or of a class
whose ``__getitem__`` or ``__iter__`` is simple (:mod:`reading`).
"""

from __future__ import annotations

import functools
import multiprocessing
import operator
import pickle
import random
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import facula
from facula import _C
from facula.utils.data._utils.array_random import (
    KeptArrays,
    can_exchange,
    seed_arrays,
    state_now,
)
from facula.utils.data._utils.changes import Changes
from facula.utils.data._utils.collate import (
    DEFAULT_TABLES,
    KNOWN_TABLES,
    default_collate,
    default_convert,
)
from facula.utils.data._utils.fetch import (
    getitem_of,
    make_fetcher,
    rows_fetcher,
    rows_of_memory,
)
from facula.utils.data._utils.harmless import (
    ARRAYS_DRAWN,
    ASKED,
    GENERATOR,
    SEEDED,
    TIME,
    TWISTER,
    finds_twister,
    sort_of,
)
from facula.utils.data._utils.kinds import is_data
from facula.utils.data._utils.kinds import kind as kind_of
from facula.utils.data._utils.known import (
    ARRAY,
    NULL,
    NUMBER,
    OPAQUE,
    TENSOR,
    ItemOf,
    Iterator,
    Known,
    List,
    NotSimpleError,
    asked,
    facts_here,
    in_class,
    is_plain_tensor,
    noting_in,
    types_in,
)
from facula.utils.data._utils.reading import read_with, result_of
from facula.utils.data._utils.results import has_own_table
from facula.utils.data._utils.simple import Simple
from facula.utils.data._utils.transport import INLINE_BYTES
from facula.utils.data._utils.worker import acting_as
from facula.utils.data.dataset import ConcatDataset, StackDataset, Subset, TensorDataset

begin_scope = globals()  # of functions here that a worker's errors would not come through
_WITH_MANY = (Subset, StackDataset)
_copied = _C._as_from_worker  # a batch with memory that nobody else has
_BATCH = "batch", 0, 0  # where the list of a batch's samples was made
_PARTS: dict[type, tuple[str, ...]] = {
    TensorDataset: ("tensors",),
    Subset: ("dataset", "indices"),
    ConcatDataset: ("datasets",),
    StackDataset: ("datasets",),
}
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
    # Of what each worker has a copy; then ``fetch`` is given a worker's copies of the dataset and
    # of what makes batches, and returns what does so with them.
    changes: Changes | None = None


def can_draw(needs: set[str] | frozenset[str]) -> bool:
    """Whether the loader can draw the numbers that are needed in the place of a worker."""
    if TWISTER in needs and not (_C._runs_alone() and finds_twister()):
        return False
    return ARRAYS_DRAWN not in needs or (_C._runs_alone() and can_exchange())


def _many_of(dataset: Any) -> Any:
    """What takes the indices of a batch at once: a function, NULL where it is of another kind, None
    where there is no such thing, or where it is known to do the same."""
    kind = type(dataset)
    facts_here().type_of(dataset)
    own = facts_here().attribute(dataset, "__getitems__", NULL)
    if kind in _WITH_MANY or not (hasattr(kind, "__getitems__") or own is not NULL):
        return None
    function = in_class(kind, "__getitems__")
    plain = isinstance(function, types.FunctionType) and own is NULL
    return function if plain else NULL


def _noted(parts: Any) -> Any:
    """What a dataset is made of, which is noted."""
    if type(parts) in (list, tuple):
        facts_here().items(parts)
    else:
        facts_here().give_up()
    return parts.values() if isinstance(parts, dict) else parts


def _has_many(dataset: Any) -> bool:
    """Whether a dataset over others takes the indices of a batch at once without asking those with
    code of their own whether they do."""
    parts: Any = (dataset.dataset,) if type(dataset) is Subset else dataset.datasets
    for part in parts.values() if isinstance(parts, dict) else parts:
        if in_class(type(part), "__getattr__") is not NULL:
            return False
        if type(part) in _WITH_MANY and not _has_many(part):
            return False
    return True


def kind_of_indices(indices: Any) -> str:
    """The kind of each of them: NumPy's numbers or texts, say, are not taken for ints."""
    if type(indices) is range:
        return NUMBER
    if type(indices) is numpy.ndarray:
        return ARRAY if asked(_dtype_of, indices).kind in "iu" and indices.ndim else OPAQUE
    if type(indices) in (list, tuple):
        return kind_of(ItemOf(Known(indices))) if asked(bool, indices) else NUMBER
    return TENSOR if asked(is_plain_tensor, indices) else OPAQUE


_dtype_of = operator.attrgetter("dtype")


def _only_looks_up(dataset: Any, needs: set[str], index: str = NUMBER) -> bool:
    """Whether indexing it does no more than that.

    Args:
        dataset: what is indexed.
        needs: is told what that may need.
        index: the kind of an index.
    """
    if index == OPAQUE:  # which may have code of its own
        return False
    kind = type(dataset)
    if kind in (list, tuple, range) or kind_of(Known(dataset)) in (TENSOR, ARRAY):
        return True
    if kind is dict:
        return bool(asked(types_in, dataset) <= {int})
    inner = functools.partial(_only_looks_up, needs=needs, index=index)
    facts = facts_here()
    facts.type_of(dataset)
    for name in _PARTS.get(kind, ()):
        facts.attribute(dataset, name)
    if kind is TensorDataset:
        return all(asked(is_plain_tensor, t) for t in _noted(dataset.tensors))
    if kind is Subset:
        return inner(dataset.dataset, index=kind_of_indices(dataset.indices))
    if kind is ConcatDataset:
        return all(map(inner, _noted(dataset.datasets)))
    if kind is StackDataset:
        return all(map(inner, _noted(dataset.datasets)))
    if isinstance(dataset, (list, tuple, dict)) or _many_of(dataset) is not None:
        return False
    if in_class(kind, "__getattribute__") is not object.__getattribute__:
        return False
    function = in_class(kind, "__getitem__")
    if not isinstance(function, types.FunctionType):
        return False
    try:
        by_numbers = functools.partial(_only_looks_up, needs=needs)
        result_of(function, [Known(dataset), index], by_numbers, needs)
    except NotSimpleError:
        return False
    return True


def is_same_in_workers(dataset: Any, context: Any = None) -> bool:
    """Whether a worker process has the dataset as it is. Those that are not forked are sent a
    pickle, and what that becomes may be the class's own choice."""
    # What the next line asks.
    facts_here().item(vars(multiprocessing), "get_start_method")
    facts_here().attribute(multiprocessing.context._default_context, "_actual_context")
    facts_here().type_of(dataset)
    method = (context or multiprocessing).get_start_method(allow_none=True)
    if (method or multiprocessing.get_all_start_methods()[0]) == "fork":
        return True
    return all(in_class(type(dataset), n) is vars(object).get(n, NULL) for n in _OF_PICKLES)


class Preparation(NamedTuple):
    """What a ``worker_init_fn`` does that nobody has to see."""

    seeds: bool  # generators are begun anew
    is_settled: bool  # whether it raises depends on nothing that may change unnoticed


_SETTLED = frozenset(
    (int, float, bool, str, bytes, type(None), type, types.FunctionType, types.ModuleType)
    + (types.BuiltinFunctionType,)
)


def preparation_of(init_fn: Any) -> Preparation | None:
    """What a ``worker_init_fn`` does, if that is nothing but to look things up and to seed
    generators: then there need be no such worker, unless it raises an exception."""
    needs: set[str] = set()
    found: dict[int, Known] = {}

    def begin(simple: Simple) -> None:
        simple.may_seed = True
        simple.call(Known(init_fn), [NUMBER])
        found.update(simple.values())

    try:
        read_with(begin, functools.partial(_only_looks_up, needs=needs), needs)
    except NotSimpleError:
        return None
    if needs & _GENERATORS or TIME in needs:
        return None
    settled = ASKED not in needs and type(init_fn) is types.FunctionType
    for known in found.values():
        plain = type(known.value) in _SETTLED or sort_of(known.value)
        settled = settled and bool(plain)
    return Preparation(SEEDED in needs, settled)


def prepared(
    preparation: Preparation, init_fn: Any, job: Any, draws: frozenset[str]
) -> dict[int, tuple[Any, Any, Any]] | None:
    """Runs a ``worker_init_fn`` in the name of each worker. None where it raises an exception,
    which is the worker's; else the generators that each worker then draws from, by number."""
    seeds = preparation.seeds or bool(draws)
    if seeds and not _C._runs_alone():
        return None  # others might draw from the generators of Python and NumPy meanwhile
    before = (random.getstate(), KeptArrays()) if seeds else None
    found = {}
    try:
        for number in range(job.num_workers):
            generator = facula.Generator()
            if seeds:
                generator.manual_seed(job.base_seed + number)
                _C._draw_from(generator)
            if TWISTER in draws:
                random.seed(job.base_seed + number)
            if ARRAYS_DRAWN in draws:
                seed_arrays(job.base_seed, number)
            with acting_as(job.info(number)):
                init_fn(number)
            found[number] = generator if GENERATOR in draws else None, *_numbers_now(draws)
    except Exception:
        return None
    finally:
        if before is not None:
            _C._draw_from(None)
            random.setstate(before[0])
            before[1].put_back()
    return found


def _numbers_now(draws: frozenset[str]) -> tuple[Any, Any]:
    """Copies of the generators of Python and NumPy, those that are drawn from."""
    twister = None
    if TWISTER in draws:
        twister = random.Random(0)
        twister.setstate(random.getstate())
    return twister, state_now() if ARRAYS_DRAWN in draws else None


def _read_batch(dataset: Any, collate_fn: Any, alone: bool, needs: set[str], index: str) -> bool:
    """Whether making a batch does no more than to look things up and to compute."""
    inner = functools.partial(_only_looks_up, needs=needs)
    many = None if alone else _many_of(dataset)

    def begin(simple: Simple) -> None:
        known = Known(dataset)
        samples: Any
        if many is None:
            sample = simple.item(known, index)
            samples = sample if alone else List(sample, _BATCH)
        else:
            samples = simple.call_function(many, [known, List(index, _BATCH)])
        if collate_fn not in (default_collate, default_convert):
            simple.call(Known(collate_fn), [samples])

    if many is NULL or not (many is not None or _only_looks_up(dataset, needs, index)):
        return False
    try:
        read_with(begin, inner, needs)
    except NotSimpleError:
        return False
    return True


def _pickled(batch: Any) -> Any:
    """A batch without a short form, as it comes from a worker."""
    return pickle.loads(pickle.dumps(batch, 5))


def _pickled_data(batch: Any) -> Any:
    """The same of arrays and packed sequences; nothing that has code of its own."""
    packed = sys.modules.get("facula.nn.utils.rnn")
    parts = batch if type(batch) in (list, tuple) else (batch,)
    inside = [tuple(p) if packed and type(p) is packed.PackedSequence else p for p in parts]
    if not _C._is_data(inside):
        raise TypeError(f"a {type(batch).__name__} may have code of its own")
    return _pickled(batch)


def _collated(many: Callable[[Any], Any], indices: Any) -> Any:
    samples = many(indices)
    batch = _C._collate(samples, *KNOWN_TABLES)
    # A list of texts makes a batch as it is, but it may be the dataset's.
    return batch[:] if batch is samples else batch


def _fetcher(dataset: Any, collate_fn: Any, alone: bool) -> Callable[[Any], Any]:
    get = getitem_of(dataset)
    if alone:
        if collate_fn is default_convert:
            return lambda index: default_convert(_copied(get(index), INLINE_BYTES, _pickled_data))
        return lambda index: _copied(collate_fn(get(index)), INLINE_BYTES, _pickled_data)
    many = getattr(dataset, "__getitems__", None) if _many_of(dataset) is not None else None
    if collate_fn is default_collate:
        assert many is not None
        return functools.partial(_collated, many)
    if many is not None:
        return lambda indices: _copied(collate_fn(many(indices)), INLINE_BYTES, _pickled_data)
    fetch = _C._Fetch(get, None, collate_fn, None, False)
    return lambda indices: _copied(fetch(indices), INLINE_BYTES, _pickled_data)


def lookups_of(
    dataset: Any, collate_fn: Any = default_collate, alone: bool = False, index: str = NUMBER
) -> Lookups | None:
    """Makes a batch of samples that are looked up in memory, from their indices; None where there
    may be more to it. It raises what a worker would, and where samples turn out to be of types that
    may have code of their own.

    Args:
        dataset: what is indexed.
        collate_fn: what makes a batch of samples, or converts one.
        alone: whether samples come one by one.
        index: the kind of an index.
    """
    needs: set[str] = set()
    as_ever = collate_fn is default_collate and not alone and _many_of(dataset) is None
    if as_ever:
        simple = _only_looks_up(dataset, needs, index)
    else:
        simple = _read_batch(dataset, collate_fn, alone, needs, index)
    if not simple or not can_draw(needs):
        return None
    fetch: Callable[[Any], Any]
    if as_ever and type(dataset) in _WITH_MANY and _has_many(dataset):
        many = dataset.__getitems__
        fetch = lambda indices: _C._collate(many(indices), *KNOWN_TABLES)  # noqa: E731
    elif as_ever:
        fetch = _C._Fetch(getitem_of(dataset), None, default_collate, KNOWN_TABLES, False)
        rows = rows_of_memory(dataset, default_collate)
        if rows is not None:
            facts_here().give_up()  # it rests on more than their elements
            fetch = rows_fetcher(rows, dataset, KNOWN_TABLES)
    else:
        fetch = _fetcher(dataset, collate_fn, alone)
    return Lookups(fetch, _GENERATORS & needs, TIME in needs)


def iterations_of(
    dataset: Any, drop_last: bool, collate_fn: Any = default_collate, alone: bool = False
) -> Lookups | None:
    """The same for an iterable dataset: a function that begins to iterate, and returns what makes
    a batch of the next samples."""
    facts_here().type_of(dataset)
    function = in_class(type(dataset), "__iter__")
    if not isinstance(function, types.FunctionType):
        return None
    needs: set[str] = set()

    def read(simple: Simple) -> None:
        # An iterator that was there before, which would not be the worker's copy, is none of these.
        found = simple.iterator(Known(dataset))
        if collate_fn not in (default_collate, default_convert):
            simple.call(Known(collate_fn), [found.item if alone else List(found.item, _BATCH)])

    try:
        read_with(read, functools.partial(_only_looks_up, needs=needs), needs)
    except NotSimpleError:
        return None
    if not can_draw(needs):
        return None

    def begin() -> Any:
        samples = iter(dataset)
        if alone and collate_fn is default_convert:
            return lambda index: default_convert(
                _copied(next(samples), INLINE_BYTES, _pickled_data)
            )
        if alone:
            return lambda index: _copied(collate_fn(next(samples)), INLINE_BYTES, _pickled_data)
        if collate_fn is default_collate:
            return _C._Fetch(None, samples, default_collate, KNOWN_TABLES, drop_last)
        fetch = _C._Fetch(None, samples, collate_fn, None, drop_last)
        return lambda indices: _copied(fetch(indices), INLINE_BYTES, _pickled_data)

    return Lookups(begin, _GENERATORS & needs, True)


# ---- datasets that write to themselves

_MOST_READINGS = 8


def with_collate(collate_fn: Any, copies: list[Any]) -> tuple[Any, Any]:
    """A worker's dataset and what it makes batches with, of copies of both; a method has the copy
    of its object."""
    dataset, own = copies
    if type(collate_fn) is types.MethodType:
        return dataset, types.MethodType(collate_fn.__func__, own)
    return dataset, own


def _takes_one_by_one(dataset: Any) -> bool:
    """Whether the samples of a batch are those that ``__getitem__`` returns."""
    if type(dataset) not in _WITH_MANY:
        return _many_of(dataset) is None
    parts: Any = (dataset.dataset,) if type(dataset) is Subset else dataset.datasets
    inside = parts.values() if isinstance(parts, dict) else parts
    return _has_many(dataset) and all(map(_takes_one_by_one, inside))


def _sample_of(simple: Simple, dataset: Any) -> Any:
    """What one comes upon when iterating over a dataset."""
    facts_here().type_of(dataset)
    function = in_class(type(dataset), "__iter__")
    if type(function) is not types.FunctionType:
        raise NotSimpleError
    found = simple.call_function(function, [Known(dataset)])
    if found == Known(dataset):
        function = in_class(type(dataset), "__next__")
        if type(function) is not types.FunctionType:
            raise NotSimpleError
        return simple.call_function(function, [Known(dataset)])
    if not isinstance(found, Iterator):
        raise NotSimpleError
    return found.item


def changing_lookups_of(
    dataset: Any,
    collate_fn: Any,
    iterable: bool,
    alone: bool = False,
    drop_last: bool = False,
    index: str = NUMBER,
) -> Lookups | None:
    """The same for a dataset that also writes to itself, of which each worker has a copy."""
    called, first, own = collate_fn, [], collate_fn
    if type(collate_fn) is types.MethodType:
        called, own = collate_fn.__func__, collate_fn.__self__
        first = [Known(own)]
    changes = Changes(dataset, own)
    default = collate_fn is default_collate or collate_fn is default_convert

    def nothing_else(value: Any) -> bool:
        return False

    def read(simple: Simple) -> None:
        simple.changes = changes
        changes.begin()
        if not iterable and not alone and not _takes_one_by_one(dataset):
            raise NotSimpleError
        known = Known(dataset)
        sample = _sample_of(simple, dataset) if iterable else simple.item(known, index)
        # What has code of its own might lead to what is copied.
        if not is_data(sample):
            raise NotSimpleError
        if not default:
            given = [*first, sample if alone else List(sample, _BATCH)]
            simple.call(Known(called), given)
        elif not asked(has_own_table):
            raise NotSimpleError

    needs: set[str] = set()
    try:
        for _ in range(_MOST_READINGS):
            needs, facts = set(), _C._Facts()
            try:
                with noting_in(facts):
                    read_with(read, nothing_else, needs)
            except NotSimpleError:
                if not changes.grew:  # else more is known next time
                    raise
            if not changes.grew:
                break
        if changes.grew or not changes.slots:
            return None
        with noting_in(facts):
            changes.settle()
    except NotSimpleError:
        return None
    if not asked(facts.hold, {}):  # those of the last reading
        facts_here().give_up()
    facts_here().watch_all_of(facts)
    if not can_draw(needs):
        return None

    getitem = in_class(type(dataset), "__getitem__")
    tables = DEFAULT_TABLES if collate_fn is default_collate else None
    one_by_one = not alone and not iterable and type(dataset) not in _WITH_MANY

    def begin_quickly(copies: list[Any]) -> Any:
        get = types.MethodType(getitem, copies[0])
        return _C._Fetch(get, None, default_collate, DEFAULT_TABLES, False)

    def begin(copies: list[Any]) -> Any:
        copy, collate = with_collate(collate_fn, copies)
        if one_by_one:  # which make_fetcher finds out
            fetch = _C._Fetch(types.MethodType(getitem, copy), None, collate, tables, False)
        else:
            fetch = make_fetcher(iterable, copy, not alone, collate, drop_last)
        if collate_fn is default_collate and not alone:
            return fetch
        return lambda task: _copied(fetch(task), INLINE_BYTES, _pickled)

    def iterate_quickly(copies: list[Any]) -> Any:
        return _C._Fetch(None, iter(copies[0]), default_collate, DEFAULT_TABLES, drop_last)

    if collate_fn is default_collate and (one_by_one or (iterable and not alone)):
        begin = begin_quickly if one_by_one else iterate_quickly
    return Lookups(begin, _GENERATORS & needs, iterable or TIME in needs, changes)
