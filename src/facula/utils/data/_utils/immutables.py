"""Objects of Python's own types that cannot change: dates, spans of time, matches, numbers, bytes.
What their attributes, methods and operators give, which run no code of the program's."""

from __future__ import annotations

import datetime
import operator
import re
import time
from typing import Any

import numpy

import facula
from facula import _C
from facula.utils.data._utils.harmless import ASKED
from facula.utils.data._utils.kinds import are, kind
from facula.utils.data._utils.known import (
    BYTES,
    NESTED,
    NUMBER,
    NUMBERS,
    OPAQUE,
    TEXT,
    TEXTS,
    ItemOf,
    Known,
    Maybe,
    NotSimpleError,
    Of,
    PartOf,
    Several,
    asked,
)

_DATE, _MOMENT, _SPAN = Of(datetime.date), Of(datetime.datetime), Of(datetime.timedelta)
_TIME, _ZONE, _MATCH = Of(datetime.time), Of(datetime.timezone), Of(re.Match)
_FIELDS, _COMPLEX = Of(time.struct_time), Of(complex)


def _each(names: str, result: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), result)


_CLOCK = _each("hour minute second microsecond fold", NUMBER)
_OF_DATES = _each("weekday isoweekday toordinal", NUMBER) | {
    **_each("isoformat strftime ctime", TEXT),
    "timetuple": _FIELDS,
}
ATTRIBUTES: dict[type, dict[str, Any]] = {
    datetime.date: _each("year month day", NUMBER),
    datetime.datetime: _each("year month day", NUMBER) | _CLOCK,
    datetime.time: _CLOCK,
    datetime.timedelta: _each("days seconds microseconds", NUMBER),
    datetime.timezone: {},
    time.struct_time: {n: NUMBER for n in dir(time.struct_time) if n.startswith("tm_")},
    re.Match: {
        "string": TEXT,
        **_each("lastindex lastgroup", NESTED),
        **_each("pos endpos", NUMBER),
    },
    complex: _each("real imag", NUMBER),
    facula.dtype: _each("is_complex is_floating_point itemsize", NUMBER),
    facula.device: {"type": TEXT, "index": NESTED},
    numpy.dtype: _each("char kind name str", TEXT) | _each("itemsize num", NUMBER),
}
METHODS: dict[type, dict[str, Any]] = {
    datetime.date: {**_OF_DATES, "replace": _DATE},
    datetime.datetime: {
        **_OF_DATES,
        **_each("timestamp", NUMBER),
        **_each("replace", _MOMENT),
        "date": _DATE,
        "time": _TIME,
    },
    datetime.time: {**_each("isoformat strftime", TEXT), "replace": _TIME},
    datetime.timedelta: {"total_seconds": NUMBER},
    re.Match: {
        **_each("start end", NUMBER),
        **_each("group groups groupdict", NESTED),
        "span": NUMBERS,
    },
    complex: {"conjugate": _COMPLEX},
}
# Of kinds.
_OF_BYTES: dict[str, Any] = {
    **_each("decode hex", TEXT),
    **_each("split rsplit splitlines partition rpartition", Several(BYTES)),
    **_each("count endswith find index isalpha isdigit isspace rfind startswith", NUMBER),
    **_each("capitalize center join ljust lower lstrip removeprefix removesuffix replace", BYTES),
    **_each("rjust rstrip strip swapcase title upper zfill", BYTES),
}
_OF_NUMBERS: dict[str, Any] = {
    **_each("bit_count bit_length conjugate is_integer", NUMBER),
    "as_integer_ratio": NUMBERS,
    "to_bytes": BYTES,
}
METHODS_OF_KINDS = {BYTES: _OF_BYTES, NUMBER: _OF_NUMBERS, TEXT: {"translate": TEXT}}
# What functions of classes return.
_CONSTRUCTED: dict[tuple[type, str], Any] = {
    (int, "from_bytes"): NUMBER,
    (float, "fromhex"): NUMBER,
    (bytes, "fromhex"): BYTES,
    (datetime.date, "fromisoformat"): _DATE,
    (datetime.date, "fromordinal"): _DATE,
    (datetime.date, "fromtimestamp"): _DATE,
    (datetime.date, "today"): _DATE,
    (datetime.datetime, "combine"): _MOMENT,
    (datetime.datetime, "fromisoformat"): _MOMENT,
    (datetime.datetime, "fromordinal"): _MOMENT,
    (datetime.datetime, "fromtimestamp"): _MOMENT,
    (datetime.datetime, "now"): _MOMENT,
    (datetime.datetime, "strptime"): _MOMENT,
    (datetime.datetime, "today"): _MOMENT,
    (datetime.time, "fromisoformat"): _TIME,
}
_ASK_THE_CLOCK = ("now", "today")
# By number, since others may have code that is run to compare them.
_MADE = {
    *map(id, (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, complex)),
}

_SUMS: dict[tuple[Any, str, Any], Any] = {
    (_DATE, "-", _DATE): _SPAN,
    (_MOMENT, "-", _MOMENT): _SPAN,
    (NUMBER, "*", _SPAN): _SPAN,
    (_SPAN, "/", _SPAN): NUMBER,
    (_SPAN, "//", _SPAN): NUMBER,
    (_SPAN, "%", _SPAN): _SPAN,
    **{(_SPAN, o, _SPAN): _SPAN for o in "+-"},
    **{(_SPAN, o, NUMBER): _SPAN for o in ("*", "/", "//")},
    **{(of, o, _SPAN): of for o in "+-" for of in (_DATE, _MOMENT)},
    **{(_SPAN, "+", of): of for of in (_DATE, _MOMENT)},
    **{(_COMPLEX, o, of): _COMPLEX for o in ("+", "-", "*", "/") for of in (NUMBER, _COMPLEX)},
    **{(NUMBER, o, _COMPLEX): _COMPLEX for o in ("+", "-", "*", "/")},
}


_ZONES = {type(None), datetime.timezone}
_MOST_MOMENTS = 1 << 14  # of which the zones are gone through before each epoch


def _has_own_zone(value: Any) -> bool:
    """Whether the time zone of a value is none, or one without code of the program's."""
    return type(getattr(value, "tzinfo", None)) in _ZONES


def _of_one_type(values: Any, *part: Any) -> type | None:
    """The type of all of them, or of what they have at an index or under a name, if it is one of
    those that cannot change."""
    if part and type(part[0]) is str and type(values[0]) is not dict:
        found = _C._attribute_types(values, *part)
    else:
        found = _C._item_types(values, *part)
    if not found or len(found) != 1:
        return None
    (only,) = found
    if only not in ATTRIBUTES:
        return None
    if only in (datetime.datetime, datetime.time):
        if part and type(part[0]) is str and type(values[0]) is not dict:
            values = [getattr(v, part[0]) for v in values]
        elif part:
            values = [v[part[0]] for v in values]
        if len(values) > _MOST_MOMENTS:
            return None
        zones = {*map(type, map(operator.attrgetter("tzinfo"), values))}
        return only if zones <= _ZONES else None
    return only  # type: ignore[no-any-return]


def of_attribute(known: ItemOf, name: str) -> Of | None:
    """What objects have under a name, if that is such an object."""
    found = asked(_of_one_type, known.values.value, name)
    return Of(found) if found is not None else None


def immutable(known: Any) -> Of | None:
    """What is known of a value, if it is an object that cannot change."""
    if isinstance(known, Of):
        return known
    if isinstance(known, Maybe):
        return immutable(known.of)
    if isinstance(known, Known):
        value = known.value
        return Of(type(value)) if type(value) in ATTRIBUTES and _has_own_zone(value) else None
    if kind(known) != OPAQUE or not isinstance(known, (ItemOf, PartOf)):
        return None
    part = (known.key,) if isinstance(known, PartOf) else ()
    found = asked(_of_one_type, known.values.value, *part)
    return Of(found) if found is not None else None


def _check(given: list[Any]) -> None:
    for a in given:
        plain = a == Known(None) or kind(a) in (NUMBER, NUMBERS, TEXT, TEXTS, BYTES, NESTED)
        table = isinstance(a, Known) and type(a.value) is dict and asked(_C._is_data, a.value)
        if not plain and not table and immutable(a) is None:
            raise NotSimpleError


def attribute_of(known: Any, name: str) -> Any:
    """What an object that cannot change has under that name; None for methods and the like."""
    found = immutable(known)
    return ATTRIBUTES[found.type].get(name) if found is not None else None


def is_method(known: Any, name: str) -> bool:
    found_kind = kind(known)
    if found_kind != OPAQUE:
        return name in METHODS_OF_KINDS.get(found_kind, ())
    if isinstance(known, Known) and type(known.value) is type:
        return any(known.value is t and name == n for t, n in _CONSTRUCTED)
    found = immutable(known)
    return found is not None and name in METHODS.get(found.type, ())


def call_of(simple: Any, owner: Any, name: str, given: list[Any]) -> Any:
    """What such a method returns."""
    if owner == _MATCH and name == "group" and (not given or given == [Known(0)]):
        return TEXT
    _check([a.item if isinstance(a, Several) else a for a in given])
    if isinstance(owner, Known) and type(owner.value) is type:
        if name in _ASK_THE_CLOCK:
            simple.needs.add(ASKED)
        return _CONSTRUCTED[owner.value, name]
    own = METHODS_OF_KINDS.get(kind(owner))
    if own is not None:
        return own[name]
    found = immutable(owner)
    if found is None:
        raise NotSimpleError
    return METHODS[found.type][name]


def is_made(called: Any) -> bool:
    """Whether calling that makes an object that cannot change."""
    return id(called) in _MADE


def made(called: type, given: list[Any]) -> Of:
    _check(given)
    return Of(called)


def operand(known: Any) -> Any:
    return immutable(known) or kind(known)


def computed(name: str, a: Any, b: Any) -> Any:
    """What an operator gives; None where one of them is something else."""
    return _SUMS.get((operand(a), name, operand(b)))


def matched(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``re.match(pattern, text)`` and the like, where it is known that the pattern is a text."""
    pattern, *rest = arguments
    value = pattern.value if isinstance(pattern, Known) else None
    if type(value) is re.Pattern:
        value = value.pattern
    if type(value) is not str or not are(TEXT, rest[:1]):
        raise NotSimpleError
    _check(rest)
    return Maybe(_MATCH)
