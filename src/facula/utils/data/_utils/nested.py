"""What can be done with numbers, texts, tensors and arrays in lists, tuples and dicts that nobody
writes to (:data:`known.NESTED`), where it is not known which of these a value is."""

from __future__ import annotations

from typing import Any

import numpy

import facula
from facula.utils.data._utils.harmless import ARRAY_METHODS, READING_TENSOR_METHODS
from facula.utils.data._utils.kinds import is_data, is_dtype, kind
from facula.utils.data._utils.known import (
    ARRAY,
    NESTED,
    NUMBER,
    SLICE,
    Iterator,
    NotSimpleError,
    Tuple,
)


def _all_of(its_type: type, *others: str) -> frozenset[str]:
    return frozenset(n for n in vars(its_type) if not n.startswith("_") and n not in others)


# Methods of each type that write nothing.
_OF_TYPES: dict[type, frozenset[str]] = {
    str: _all_of(str, "format_map", "translate"),
    bytes: _all_of(bytes, "translate"),
    dict: frozenset(("get", "keys", "values", "items", "copy")),
    list: frozenset(("index", "count", "copy")),
    tuple: frozenset(("index", "count")),
    int: _all_of(int),
    float: _all_of(float),
    facula.Tensor: READING_TENSOR_METHODS,
    numpy.ndarray: ARRAY_METHODS,
    numpy.generic: ARRAY_METHODS,
}
# Those that write nothing whatever the value is.
METHODS = frozenset(
    name
    for name in frozenset().union(*_OF_TYPES.values())
    if all(name in own or not hasattr(of, name) for of, own in _OF_TYPES.items())
)
_OUT = 1  # from this argument on, methods of arrays may write to one


def call_of_nested(name: str, arguments: list[Any]) -> Any:
    """What such a method returns."""
    for at, given in enumerate(arguments):
        if not (is_data(given) or is_dtype(given) or kind(given) in (NUMBER, SLICE)):
            raise NotSimpleError
        if at >= _OUT and kind(given) in (ARRAY, NESTED):
            raise NotSimpleError
    if name == "to" and not all(map(is_dtype, arguments)):  # another device, maybe
        raise NotSimpleError
    if name in ("keys", "values"):
        return Iterator(NESTED)
    return Iterator(Tuple((NESTED, NESTED))) if name == "items" else NESTED
