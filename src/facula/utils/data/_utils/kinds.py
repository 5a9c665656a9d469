"""Of which kind values are of which something is known, and what can be done with them without
code of the program's."""

from __future__ import annotations

import types
from typing import Any

import numpy

import facula
from facula import _C
from facula.utils.data._utils.known import (
    ARRAY,
    ARRAYS,
    BYTES,
    DATA,
    NESTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PATH,
    PLAIN,
    RANGE,
    SLICE,
    TENSOR,
    TENSORS,
    TEXT,
    TEXTS,
    Dict,
    ItemOf,
    Kept,
    Known,
    List,
    Maybe,
    New,
    Of,
    OneOf,
    PartOf,
    Several,
    Tuple,
    asked,
    facts_here,
)

_INDICES = (NUMBER, NUMBERS, PLAIN, TENSOR, ARRAY, SLICE, NESTED)
_SEVERAL = {
    NUMBER: NUMBERS,
    TENSOR: TENSORS,
    ARRAY: ARRAYS,
    TEXT: TEXTS,
    NUMBERS: PLAIN,
    PLAIN: PLAIN,
    NOTHING: NUMBERS,
    NESTED: NESTED,
}

_BOUNDS = {int, type(None)}
_PLAIN = (int, float, bool, str, type(None))
# Not what a program has derived from them.
_OF_NUMPY = frozenset((numpy.ndarray, numpy.memmap, numpy.longlong, numpy.ulonglong))
_OF_NUMPY |= {t for t in numpy.sctypeDict.values() if issubclass(t, (numpy.number, numpy.bool_))}


_FIXED = frozenset(
    (int, float, bool, str, bytes, type(None), type, types.FunctionType, types.ModuleType)
    + (types.BuiltinFunctionType, types.MethodType)
)  # of which an object stays what it is


def kind_of_types(found: set[Any]) -> str:
    """The kind of values of these types, of which there is None for those that are not plain."""
    if found and found <= {int, float, bool}:
        return NUMBER
    if len(found) != 1:
        return OPAQUE
    (only,) = found
    if only is facula.Tensor:
        return TENSOR
    if only in (str, bytes):
        return TEXT if only is str else BYTES
    return ARRAY if only in _OF_NUMPY else OPAQUE


def _kind_of_value(value: Any) -> str:
    if type(value) is range:
        return RANGE
    if type(value) is slice:
        return SLICE if {*map(type, (value.start, value.stop, value.step))} <= _BOUNDS else OPAQUE
    if type(value) in _FIXED:
        return kind_of_types(_C._item_types((value,)))
    if type(value) not in (list, tuple):
        return kind_of_types(asked(_C._item_types, (value,)))
    found = asked(_C._item_types, value)
    if not found:
        return NUMBERS
    if found <= {list, tuple}:
        return PLAIN if _kind_of_lists(value) == NUMBERS else _nested_or_opaque(value)
    return _SEVERAL.get(kind_of_types(found)) or _nested_or_opaque(value)


def _nested_or_opaque(values: Any) -> str:
    return NESTED if asked(_C._is_data, values) else OPAQUE


def _kind_of_lists(values: Any) -> str:
    """The kind of what are lists or tuples."""
    found = asked(_C._item_types, values, ...)
    return OPAQUE if found is None else _SEVERAL.get(kind_of_types(found), OPAQUE)


def _kind_of_items(values: list[Any] | tuple[Any, ...]) -> str:
    """What every item is."""
    found = asked(_C._item_types, values)
    if found and found <= {list, tuple}:
        of_lists = _kind_of_lists(values)
        return of_lists if of_lists in (NUMBERS, TEXTS) else _nested_or_opaque(values)
    of_all = kind_of_types(found)
    return of_all if of_all != OPAQUE else _nested_or_opaque(values)


def _kind_of_each(of: Known) -> str:
    """What every item of a list is."""
    rows = kinds_of_rows(of) if of.value and type(of.value[0]) is dict else {}
    if not rows:
        return _kind_of_items(of.value)
    return OPAQUE if OPAQUE in rows.values() else NESTED


_OF_ONE_VALUE = frozenset((int, float, bool, str, bytes, type(None), facula.Tensor, numpy.ndarray))


def kinds_of_rows(of: Known) -> dict[str, str]:
    """Of a list of dicts that have the same texts as keys: the kind of what lies there, by key.
    Nothing of other lists."""
    if of.rows is None:
        by_key: dict[str, set[Any]] = {}
        for key, found in asked(_C._row_types, of.value) or ():
            by_key.setdefault(key, set()).add(found)
        of.rows = {key: _kind_of_column(types) for key, types in by_key.items()}
    return of.rows


def _kind_of_column(types: set[Any]) -> str:
    of_all = OPAQUE if True in types else kind_of_types(types)
    if of_all != OPAQUE:
        return of_all
    plain = all(t is True or t in _OF_ONE_VALUE for t in types)
    return NESTED if plain else OPAQUE


def kind(known: Any) -> str:
    """The kind of a value that is there, or is not."""
    if isinstance(known, str):
        return known
    if isinstance(known, New):
        return known.of
    if isinstance(known, Known):
        known.kind = known.kind or _kind_of_value(known.value)
        return known.kind
    if isinstance(known, ItemOf):
        of = known.values
        of.items = of.items or _kind_of_each(of)
        return of.items
    if isinstance(known, PartOf):
        parts = known.values.parts
        if known.key not in parts:
            found = asked(_C._item_types, known.values.value, known.key)
            of_all = OPAQUE if found is None else kind_of_types(found)
            if of_all == OPAQUE and kind(ItemOf(known.values)) == NESTED:
                of_all = NESTED
            parts[known.key] = of_all
        return parts[known.key]
    if isinstance(known, (List, Several)):
        if isinstance(known, List) and known.type is not list:  # which few things take for one
            return OPAQUE
        return _SEVERAL.get(kind(known.item), OPAQUE)
    if isinstance(known, Tuple):
        kinds = {kind(v) for v in known.items} or {NOTHING}
        return _SEVERAL.get(kinds.pop(), OPAQUE) if len(kinds) == 1 else OPAQUE
    if isinstance(known, OneOf):
        kinds = {*map(kind, known.found)}
        return kinds.pop() if len(kinds) == 1 else DATA
    if isinstance(known, Kept) and known.slot.type is list:
        return _SEVERAL.get(kind(known.slot.item()), OPAQUE)
    return OPAQUE


_OF_DATA = frozenset(
    (NUMBER, NUMBERS, TENSOR, ARRAY, TEXT, PLAIN, TENSORS, ARRAYS, TEXTS, BYTES, DATA, NESTED)
    + (NOTHING,)
)
_MOST_TUPLES = 256  # that are gone through before each epoch


def _are_tuples_of_data(values: Any) -> bool:
    return {*map(type, values)} == {tuple} and all(is_data(Known(v)) for v in values)


def is_data(known: Any) -> bool:
    """Whether it is nothing but numbers, texts, tensors and arrays, in lists, tuples and dicts, so
    that no code of the program's is needed to make a batch of it."""
    if kind(known) in _OF_DATA:
        return True
    if isinstance(known, Tuple):
        return all(map(is_data, known.items))
    if isinstance(known, (List, Several)):
        return is_data(known.item) and getattr(known, "type", list) is list
    if isinstance(known, Dict):
        return all(map(is_data, known.values()))
    if isinstance(known, OneOf):
        return all(map(is_data, known.found))
    if isinstance(known, Kept):
        return known.slot.type in (list, dict) and is_data(known.slot.item())
    if isinstance(known, Maybe):
        return is_data(known.of)
    if isinstance(known, Known):
        if known.value is None:  # whoever makes a batch of it says so
            return True
        return type(known.value) is tuple and all(is_data(Known(v)) for v in known.value)
    if isinstance(known, ItemOf):
        values = known.values.value
        if facts_here().settle(values):
            return _are_tuples_of_data(values)
        return len(values) <= _MOST_TUPLES and bool(asked(_are_tuples_of_data, values))
    return False


def are(of: str, values: list[Any]) -> bool:
    return all(kind(v) == of for v in values)


def is_index(known: Any) -> bool:
    if isinstance(known, Tuple):
        return all(map(is_index, known.items))
    if isinstance(known, Known) and (known.value is None or known.value is Ellipsis):
        return True
    return kind(known) in _INDICES


def is_bound(known: Any) -> bool:
    """Whether a slice can begin or end there without code of the program's."""
    return known == Known(None) or kind(known) in (NUMBER, TENSOR, ARRAY, NESTED)


def is_key(known: Any) -> bool:
    """Whether to look for it in a dict or a set, or to compare it, runs no code."""
    if isinstance(known, Tuple):
        return all(map(is_key, known.items))
    if isinstance(known, Known) and type(known.value) is tuple:
        return all(is_key(Known(v)) for v in known.value)
    if isinstance(known, Maybe):
        return is_key(known.of)
    if isinstance(known, Of) or kind(known) == PATH:
        return True
    return is_plain(known) or kind(known) in _KEYS


def is_plain(known: Any) -> bool:
    """Whether to compare it, or to make a text of it, runs no code."""
    return isinstance(known, Known) and type(known.value) in _PLAIN


def is_shown(known: Any) -> bool:
    """Whether a text of it is made without code of the program."""
    if isinstance(known, Of):
        return True
    return is_plain(known) or kind(known) in _SHOWN


_KEYS = (NUMBER, NUMBERS, TEXT, TEXTS, PLAIN, BYTES, NESTED)
_SHOWN = (NUMBER, NUMBERS, TEXT, TEXTS, PLAIN, BYTES, PATH, NESTED)


def is_dtype(known: Any) -> bool:
    if isinstance(known, Of):
        return known.type in (facula.dtype, numpy.dtype)
    value = known.value if isinstance(known, Known) else None
    if isinstance(value, type):
        return value in (int, float, bool) or issubclass(value, numpy.generic)
    return isinstance(value, (facula.dtype, numpy.dtype))
