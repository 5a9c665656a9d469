"""Which arguments functions may be given, so that they do no more than to return something."""

from __future__ import annotations

from typing import Any

import facula
from facula.utils.data._utils.kinds import is_dtype, kind
from facula.utils.data._utils.known import (
    ARRAY,
    NESTED,
    NUMBER,
    NUMBERS,
    PLAIN,
    Known,
    NotSimpleError,
    Of,
)


def check(arguments: list[Any], values: Any, *kinds: str) -> None:
    """They must be numbers, of these kinds, or values of these types."""
    for a in arguments:
        known = isinstance(a, Known) and issubclass(type(a.value), values)
        known = known or (values != () and isinstance(a, Of) and issubclass(a.type, values))
        if not known and kind(a) not in (NUMBER, NUMBERS, NESTED, *kinds):
            raise NotSimpleError


def _is_dtype_or_mode(known: Any) -> bool:
    """Whether NumPy takes it for a dtype, or for a word like the name of a mode."""
    word = isinstance(known, Known) and isinstance(known.value, (str, type(None)))
    return word or is_dtype(known)


def check_arrays(arguments: list[Any], *kinds: str, most: int = 2) -> None:
    """The first may be arrays; from the third on, functions of NumPy may write to one."""
    others = [a for a in arguments if not _is_dtype_or_mode(a)]
    check(others, (), ARRAY, PLAIN, *kinds)
    if any(kind(a) in (ARRAY, NESTED) for a in arguments[most:]):
        raise NotSimpleError


def any_nested(arguments: list[Any]) -> bool:
    """Whether an array of these may be one of lists and dicts that the program has."""
    return any(kind(a) == NESTED for a in arguments)


_HOST = facula.device("cpu")


def is_host(known: Any) -> bool:
    """Whether it says where tensors are anyway."""
    value = known.value if isinstance(known, Known) else None
    if type(value) is facula.device:
        return bool(value == _HOST)
    return type(value) is str and value == "cpu"
