"""What functions over texts and bytes return that are known to do nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from facula.utils.data._utils.arguments import check
from facula.utils.data._utils.files import (
    is_path,
    joined,
)
from facula.utils.data._utils.immutables import immutable, matched
from facula.utils.data._utils.kinds import is_shown, kind
from facula.utils.data._utils.known import (
    BYTES,
    NESTED,
    NUMBER,
    TEXT,
    TEXTS,
    Iterator,
    Known,
    NotSimpleError,
    Several,
)


def _text(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if not all(is_shown(a) or is_path(a) or immutable(a) is not None for a in arguments):
        raise NotSimpleError
    return TEXT


def _formatted(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if not all(map(is_shown, arguments)):
        raise NotSimpleError
    return TEXT


def _texts(found: Any) -> Callable[..., Any]:
    def of_text(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
        given = [a.item if isinstance(a, Iterator) else a for a in arguments]
        check(given, type(None), TEXT, TEXTS)
        return found

    return of_text


def _nested_of_text(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if names:  # functions that make other objects
        raise NotSimpleError
    check(arguments, (), TEXT, BYTES)
    return NESTED


def _bytes(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TEXT, BYTES)
    return BYTES


def _numbers_of_bytes(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TEXT, BYTES)
    return NESTED


def is_pattern(known: Any) -> bool:
    return isinstance(known, Known) and type(known.value) is re.Pattern


def _groups_of(pattern: Any) -> int:
    """How many groups a pattern has."""
    if not isinstance(pattern, Known) or type(pattern.value) not in (str, bytes, re.Pattern):
        raise NotSimpleError
    try:
        return re.compile(pattern.value).groups
    except (TypeError, re.error):
        raise NotSimpleError from None


def texts_of_pattern(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``findall`` or ``split`` of a pattern and a text."""
    check(arguments[1:], (), TEXT)
    return Several(NESTED if _groups_of(arguments[0]) else TEXT)


def text_of_pattern(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``sub`` of a pattern, of what takes its place, which may be a function, and of a text."""
    if kind(arguments[1]) != TEXT:
        raise NotSimpleError
    check(arguments[2:], (), TEXT)
    _groups_of(arguments[0])
    return TEXT


def _matches(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    return Iterator(matched(simple, called, arguments, names).of)


def _path_texts(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    joined(simple, called, arguments, names)
    return Several(TEXT)


OF_PATTERNS = {
    "findall": texts_of_pattern,
    "finditer": _matches,
    "split": texts_of_pattern,
    "sub": text_of_pattern,
    **dict.fromkeys(("fullmatch", "match", "search"), matched),
}

TEXT_RESULTS: dict[str, Callable[..., Any]] = {
    "text": _text,
    "formatted": _formatted,
    "text text": _texts(TEXT),
    "text texts": _texts(Several(TEXT)),
    "text bytes": _texts(BYTES),
    "text of": _texts(NUMBER),
    "nested of text": _nested_of_text,
    "numbers of bytes": _numbers_of_bytes,
    "bytes": _bytes,
    "texts of pattern": texts_of_pattern,
    "text of pattern": text_of_pattern,
    "match of pattern": matched,
    "matches of pattern": _matches,
    "path texts": _path_texts,
}
