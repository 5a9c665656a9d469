"""What is known of values before a function runs: some are there already, of others the kind."""

from __future__ import annotations

import itertools
import types
from dataclasses import dataclass
from typing import Any

import numpy

import facula


class Known:
    """It is there already."""

    __slots__ = ("items", "kind", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.kind = self.items = ""  # what kind() has found out of it, and of its items

    def __eq__(self, other: object) -> bool:
        return type(other) is Known and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True)
class ItemOf:
    """One of a list, whichever."""

    values: Known


@dataclass(frozen=True)
class Tuple:
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Iterator:
    """A new one, over things of which that is known."""

    item: Any


@dataclass(frozen=True)
class Method:
    """A function that is given its first argument."""

    function: types.FunctionType
    owner: Any


@dataclass(frozen=True)
class Made:
    """A function that was defined by the one that is read."""

    code: types.CodeType
    scope: Known  # its global names
    cells: tuple[Any, ...]


# Of others, their kind. An opaque one is passed on, nothing else.
NUMBER, NUMBERS, TENSOR, ARRAY = "number", "numbers", "tensor", "array"
RANGE, SLICE, TEXT, WORKER = "range", "slice", "text", "worker"
PLAIN = "plain"  # a number, or lists of them in lists
OPAQUE, NULL = "opaque", "null"
_INDICES = (NUMBER, NUMBERS, PLAIN, TENSOR, ARRAY, SLICE)

_PLAIN = (int, float, bool, str, type(None))
_MOST_LOOKED_AT = 1 << 18  # numbers in lists
_MOST_OBJECTS = 1 << 12  # items that are no numbers


class NotSimpleError(Exception):
    """The function may do something that others notice."""


def in_class(owner: type, name: str) -> Any:
    """What a class or its bases have under that name, NULL if nothing. Runs no code."""
    for base in owner.__mro__:
        found = base.__dict__.get(name, NULL)
        if found is not NULL:
            return found
    return NULL


def is_plain_tensor(t: Any) -> bool:
    """Whether nothing but its elements depends on it."""
    return type(t) is facula.Tensor and not t.requires_grad and t.device.type == "cpu"


def _kind_of_value(value: Any) -> str:
    if type(value) in (int, float, bool):
        return NUMBER
    if is_plain_tensor(value):
        return TENSOR
    if type(value) is numpy.ndarray and value.dtype.kind in "biufc":
        return ARRAY
    if type(value) in (list, tuple) and len(value) <= _MOST_LOOKED_AT:
        return NUMBERS if {*map(type, value)} <= {int, float, bool} else OPAQUE
    return RANGE if type(value) is range else OPAQUE


def _kind_of_items(values: list[Any] | tuple[Any, ...]) -> str:
    """What every item is."""
    if not values or len(values) > _MOST_LOOKED_AT:
        return OPAQUE
    found = {*map(type, values)}
    if found <= {int, float, bool}:
        return NUMBER
    if found <= {list, tuple}:
        if sum(map(len, values)) > _MOST_LOOKED_AT:
            return OPAQUE
        inner = {*map(type, itertools.chain.from_iterable(values))}
        return NUMBERS if inner <= {int, float, bool} else OPAQUE
    if len(found) > 1 or len(values) > _MOST_OBJECTS:
        return OPAQUE
    return either({*map(_kind_of_value, values)})


def kind(known: Any) -> str:
    """The kind of a value that is there, or is not."""
    if isinstance(known, str):
        return known
    if isinstance(known, Known):
        known.kind = known.kind or _kind_of_value(known.value)
        return known.kind
    if isinstance(known, ItemOf):
        of = known.values
        of.items = of.items or _kind_of_items(of.value)
        return of.items
    if isinstance(known, Tuple) and all(kind(v) == NUMBER for v in known.items):
        return NUMBERS
    return OPAQUE


def are(of: str, values: list[Any]) -> bool:
    return all(kind(v) == of for v in values)


def is_index(known: Any) -> bool:
    if isinstance(known, Tuple):
        return all(map(is_index, known.items))
    if isinstance(known, Known) and (known.value is None or known.value is Ellipsis):
        return True
    return kind(known) in _INDICES


def is_plain(known: Any) -> bool:
    """Whether to compare it, or to make a text of it, runs no code."""
    return isinstance(known, Known) and type(known.value) in _PLAIN


def either(found: set[Any]) -> Any:
    """What is known of a value that is one of these."""
    if len(found) == 1:
        return found.pop()
    kinds = {kind(v) for v in found}
    return kinds.pop() if len(kinds) == 1 else OPAQUE
