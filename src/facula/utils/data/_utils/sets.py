"""Sets of numbers, texts and tuples of them: to look for something in them runs no code."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.utils.data._utils.kinds import is_key, kind
from facula.utils.data._utils.known import (
    NESTED,
    NOTHING,
    NUMBER,
    OPAQUE,
    TEXT,
    ItemOf,
    Known,
    List,
    NotSimpleError,
    asked,
    types_in,
)

_MOST_SETS = 1 << 9  # that are gone through before each epoch
_NUMBERS = {int, float, bool}
# Methods that write to none, and what they return if it is no set.
METHODS: dict[str, Any] = dict.fromkeys(
    ("union", "intersection", "difference", "symmetric_difference", "copy")
)
METHODS |= dict.fromkeys(("issubset", "issuperset", "isdisjoint"), NUMBER)
OPERATORS = ("-", "&", "|", "^")


def kind_of_keys(values: Any) -> str:
    """The kind of what is in a set, or of the keys of a dict."""
    return _kind_of_types(asked(types_in, values))


def _kind_of_types(found: set[type]) -> str:
    if not found:
        return NOTHING
    if found == {str}:
        return TEXT
    return NUMBER if found <= _NUMBERS else NESTED


def _types_in_all(values: Any) -> set[type]:
    """The types of what is in sets, of which none has code of the program's; else nothing."""
    if not all(type(v) in (set, frozenset) and _C._are_plain(v) for v in values):
        return {object}
    return set().union(*(types_in(v) for v in values))


def is_set(known: Any) -> bool:
    if isinstance(known, ItemOf) and kind(known) == OPAQUE:
        few = asked(len, known.values.value) <= _MOST_SETS
        return bool(few and asked(_types_in_all, known.values.value) != {object})
    if isinstance(known, Known):
        return type(known.value) in (set, frozenset)
    return isinstance(known, List) and known.type is set


def item_of_set(simple: Any, known: Any) -> Any:
    """What is in a set, or in what is made one of."""
    if isinstance(known, Known) and is_set(known):
        if not asked(_C._are_plain, known.value):
            raise NotSimpleError
        return kind_of_keys(known.value)
    if isinstance(known, ItemOf) and is_set(known):
        return _kind_of_types(asked(_types_in_all, known.values.value))
    if isinstance(known, List) and known.type is set:
        return known.item
    item = simple.iterator(known).item
    if not is_key(item):
        raise NotSimpleError
    return item
