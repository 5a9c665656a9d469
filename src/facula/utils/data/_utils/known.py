"""What is known of values before a function runs: some are there already, of others the kind."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from collections.abc import Iterator as Iterates
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import facula
from facula import _C


class _Noting(threading.local):
    """What this thread notes the facts in that its conclusions rest on."""

    facts: Any = None


_noting = _Noting()


def facts_here() -> Any:
    """Where facts are noted; what nobody wants to know of goes to one that is forgotten."""
    return _noting.facts if _noting.facts is not None else _C._Facts()


@contextmanager
def noting_in(facts: Any) -> Iterates[None]:
    """While it lasts, every question about something that may change is noted in ``facts``, with
    the answer."""
    before, _noting.facts = _noting.facts, facts
    try:
        yield
    finally:
        _noting.facts = before


def asked(question: Callable[..., Any], *about: Any) -> Any:
    """The answer to a question, which is noted."""
    answer = question(*about)
    facts = _noting.facts
    if facts is None:
        return answer
    # Of numbers and texts, and tuples of them, it is quicker to see that they are the same ones.
    if question not in _OF_ITEMS or not facts.settle(about[0]):
        facts.answer(question, about, answer)
    return answer


_OF_ITEMS = (_C._item_types, _C._are_of_length, _C._are_plain, _C._is_data)


def types_in(values: Any) -> set[type]:
    """The types of what one comes upon when going over a list, a set or a dict."""
    return {*map(type, values)}


class Known:
    """It is there already."""

    __slots__ = ("items", "kind", "parts", "rows", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.kind = self.items = ""  # what kind() has found out of it, and of its items
        self.parts: dict[int | str, str] = {}  # and of theirs
        self.rows: dict[str, str] | None = None  # kinds by key of a list of dicts

    def __eq__(self, other: object) -> bool:
        return type(other) is Known and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True)
class ItemOf:
    """One of a list, whichever."""

    values: Known


@dataclass(frozen=True)
class PartOf:
    """What all items of a list have under that index or key: of one of them, whichever."""

    values: Known
    key: int | str


@dataclass(frozen=True)
class New:
    """A tensor or an array that the function has made: nobody else sees what is written to it."""

    of: str


@dataclass(frozen=True)
class Tuple:
    items: tuple[Any, ...]
    type: Any = None  # the class of a named tuple


@dataclass(frozen=True)
class Several:
    """A list or tuple of things of which that is known."""

    item: Any


@dataclass(frozen=True)
class List:
    """A list, a set or a deque that the function has made, at that place, and may write to."""

    item: Any  # NOTHING while there is none
    site: Any
    type: type = list


@dataclass(frozen=True)
class Dict:
    """A dict that the function has made, at that place, and may write to."""

    items: tuple[tuple[Any, Any], ...]  # by numbers and texts that are known, where they are
    site: Any
    others: tuple[Any, Any] | None = None  # what the other keys are, and what is there
    is_exact: bool = True  # nothing but ``items`` is there, and all of them
    made: Any = None  # what a defaultdict puts where nothing is

    def values(self) -> list[Any]:
        """What may be there under any key."""
        return [v for _, v in self.items] + ([self.others[1]] if self.others else [])

    def with_items(self, items: dict[Any, Any], is_exact: bool) -> Dict:
        return replace(self, items=tuple(items.items()), is_exact=is_exact)


@dataclass(frozen=True)
class Object:
    """An object of a plain class (:mod:`objects`) that the function has made, at that place."""

    fields: tuple[tuple[str, Any], ...]
    site: Any
    type: type
    made_by: Any = None  # while its class makes it: the code that does so


@dataclass(frozen=True)
class OneOf:
    """One of these, among which are lists or dicts that the function has made."""

    found: frozenset[Any]


@dataclass(frozen=True)
class Maybe:
    """None, or something of which that is known."""

    of: Any


@dataclass(frozen=True)
class Of:
    """An object of that type of Python's, which cannot change (:mod:`immutables`)."""

    type: type


@dataclass(frozen=True)
class Kept:
    """A list, dict or the like that stays from call to call, and is written to."""

    slot: Any  # where it is found (:mod:`changes`)


@dataclass(frozen=True)
class Iterator:
    """A new one, over things of which that is known; the lists among them that may change."""

    item: Any
    sites: frozenset[Any] = frozenset()
    exact: tuple[Any, ...] | None = None  # which ones, where that is known
    may_be_empty: bool = False  # there may also be none of these


@dataclass(frozen=True)
class Columns:
    """What ``zip(*rows)`` returns, which is gone over or unpacked at once: nothing without rows."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class Method:
    """A function that is given its first argument."""

    function: Any
    owner: Any


@dataclass(frozen=True)
class Super:
    """What ``super()`` is in a method of a class."""

    of: type
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
TENSORS, ARRAYS, TEXTS = "tensors", "arrays", "texts"  # lists or tuples of them
PLAIN = "plain"  # a number, or lists of them in lists
ERROR, CAUGHT, MATCH = "error", "caught", "match"  # an exception, one that was asked for, whether
BYTES, PATH = "bytes", "path"
FILE, BINARY_FILE, CLOSES = "file", "binary file", "closes"  # opened to be read, and their end
OPAQUE, NULL, NOTHING = "opaque", "null", "nothing"
DATA = "data"  # what default_collate knows, in lists, tuples and dicts: opaque otherwise
# The same where nobody here can write to the lists and dicts, so that it stays so. Nothing that is
# done with it runs code of the program, but it may be part of what the program has.
NESTED = "nested"
LISTS = (NUMBERS, TENSORS, ARRAYS, TEXTS, PLAIN)


class NotSimpleError(Exception):
    """The function may do something that others notice."""


class AlwaysRaisesError(Exception):
    """What is read here raises an exception whenever it runs, so nothing comes after it."""


def in_class(owner: type, name: str) -> Any:
    """What a class or its bases have under that name, NULL if nothing. Runs no code."""
    for base in owner.__mro__:
        found = base.__dict__.get(name, NULL)
        if found is not NULL:
            return found
    return NULL


def is_named_tuple(kind: Any) -> bool:
    """Whether it is a class that ``namedtuple`` has made, which runs no code of the program."""
    if type(kind) is not type or kind.__bases__ != (tuple,) or not hasattr(kind, "_fields"):
        return False
    new = getattr(kind.__dict__.get("__new__"), "__func__", None)
    made_by = getattr(new, "__globals__", {})
    return made_by.get("__name__") == f"namedtuple_{kind.__name__}"


def is_plain_tensor(t: Any) -> bool:
    """Whether nothing but its elements depends on it."""
    return type(t) is facula.Tensor and not t.requires_grad and t.device.type == "cpu"
