"""Sets of numbers, texts and tuples of them: to look for something in them runs no code."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.utils.data._utils.kinds import is_key
from facula.utils.data._utils.known import (
    NESTED,
    NOTHING,
    NUMBER,
    TEXT,
    Known,
    List,
    NotSimpleError,
    asked,
    types_in,
)

_NUMBERS = {int, float, bool}
# Methods that write to none, and what they return if it is no set.
METHODS: dict[str, Any] = dict.fromkeys(
    ("union", "intersection", "difference", "symmetric_difference", "copy")
)
METHODS |= dict.fromkeys(("issubset", "issuperset", "isdisjoint"), NUMBER)
OPERATORS = ("-", "&", "|", "^")


def kind_of_keys(values: Any) -> str:
    """The kind of what is in a set, or of the keys of a dict."""
    found = asked(types_in, values)
    if not found:
        return NOTHING
    if found == {str}:
        return TEXT
    return NUMBER if found <= _NUMBERS else NESTED


def is_set(known: Any) -> bool:
    if isinstance(known, Known):
        return type(known.value) in (set, frozenset)
    return isinstance(known, List) and known.type is set


def item_of_set(simple: Any, known: Any) -> Any:
    """What is in a set, or in what is made one of."""
    if isinstance(known, Known) and is_set(known):
        if not asked(_C._are_plain, known.value):
            raise NotSimpleError
        return kind_of_keys(known.value)
    if isinstance(known, List) and known.type is set:
        return known.item
    item = simple.iterator(known).item
    if not is_key(item):
        raise NotSimpleError
    return item
