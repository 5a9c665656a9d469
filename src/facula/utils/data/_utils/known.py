"""What is known of values before a function runs: some are there already, of others the kind."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from collections.abc import Iterator as Iterates
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy

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

    def keys(self) -> set[Any]:
        """What the keys are."""
        found = {kind(Known(key)) for key, _ in self.items}
        return found | {self.others[0]} if self.others else found

    def with_items(self, items: dict[Any, Any], is_exact: bool) -> Dict:
        return replace(self, items=tuple(items.items()), is_exact=is_exact)

    def with_other(self, key: Any, value: Any) -> Dict:
        """After something is written under a key that is not known."""
        if self.others:
            key, value = either({self.others[0], key}), either({self.others[1], value})
        return replace(self, others=(key, value), is_exact=False)


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


class NotSimpleError(Exception):
    """The function may do something that others notice."""


class AlwaysRaisesError(Exception):
    """What is read here raises an exception whenever it runs, so nothing comes after it."""


_FIXED = frozenset(
    (int, float, bool, str, bytes, type(None), type, types.FunctionType, types.ModuleType)
    + (types.BuiltinFunctionType, types.MethodType)
)  # of which an object stays what it is


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
    return known == _NONE or kind(known) in (NUMBER, TENSOR, ARRAY, NESTED)


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
    return is_plain(known) or kind(known) in (NUMBER, TEXT, BYTES, NESTED)


def is_compared(known: Any) -> bool:
    """Whether to say which of two of them is less runs no code."""
    if isinstance(known, Tuple):
        return all(map(is_compared, known.items))
    return is_key(known) or kind(known) in (NUMBERS, TEXTS, PLAIN)


def is_plain(known: Any) -> bool:
    """Whether to compare it, or to make a text of it, runs no code."""
    return isinstance(known, Known) and type(known.value) in _PLAIN


def is_shown(known: Any) -> bool:
    """Whether a text of it is made without code of the program."""
    if isinstance(known, Of):
        return True
    return is_plain(known) or kind(known) in _SHOWN


_SHOWN = (NUMBER, NUMBERS, TEXT, TEXTS, PLAIN, BYTES, PATH, NESTED)


def is_dtype(known: Any) -> bool:
    if isinstance(known, Of):
        return known.type in (facula.dtype, numpy.dtype)
    value = known.value if isinstance(known, Known) else None
    if isinstance(value, type):
        return value in (int, float, bool) or issubclass(value, numpy.generic)
    return isinstance(value, (facula.dtype, numpy.dtype))


def either(found: set[Any]) -> Any:
    """What is known of a value that is one of these."""
    if len(found) > 1:
        found = {v for v in found if v is not NOTHING}
    if len(found) == 1:
        return next(iter(found))
    if _NONE in found:
        rest = either(found - {_NONE})
        if isinstance(rest, Maybe):
            return rest
        return OPAQUE if rest == OPAQUE or sites_in(rest) else Maybe(rest)
    if any(isinstance(v, Maybe) for v in found):
        return either({_NONE, *(v.of if isinstance(v, Maybe) else v for v in found)})
    if any(map(sites_in, found)):
        return _one_of(found)
    kinds = {kind(v) for v in found}
    if len(kinds) == 1 and NESTED not in kinds:
        return kinds.pop()
    if not all(map(is_data, found)):
        return OPAQUE
    if DATA not in kinds and not any(map(leads_to_kept, found)):
        return NESTED
    return DATA if kinds & {DATA, NESTED} else OPAQUE


def _one_of(found: set[Any]) -> Any:
    """Of lists and dicts that were made at the same place, what is known of both."""
    places: dict[Any, Any] = {}
    for v in found:
        for one in v.found if isinstance(v, OneOf) else (v,):
            made = isinstance(one, (List, Dict))
            place = (type(one), one.site, getattr(one, "type", dict)) if made else one
            places[place] = _joined(places[place], one) if place in places else one
    rest = {v for v in places.values() if not sites_in(v)}
    if any(isinstance(v, (Made, Method, Iterator)) for v in places.values()):
        return OPAQUE
    if rest:
        rest = {either(rest)}
    own = rest.union(v for v in places.values() if sites_in(v))
    if len(own) == 1:
        return own.pop()
    return OneOf(frozenset(own)) if all(map(is_data, own)) else OPAQUE


_NONE = Known(None)


def leads_to_kept(known: Any) -> bool:
    """Whether a value is a container that stays, or leads to one."""
    if isinstance(known, (Tuple, Dict)):
        inside = known.values() if isinstance(known, Dict) else known.items
        return any(map(leads_to_kept, inside))
    if isinstance(known, OneOf):
        return any(map(leads_to_kept, known.found))
    if isinstance(known, (List, Several)):
        return leads_to_kept(known.item)
    return isinstance(known, Kept) or (isinstance(known, Maybe) and leads_to_kept(known.of))


def sites_in(known: Any) -> frozenset[Any]:
    """Where the lists and dicts were made that a value is or leads to, as far as that is known."""
    if isinstance(known, (List, Dict)):
        inner = [known.item] if isinstance(known, List) else known.values()
        return frozenset((known.site,)).union(*map(sites_in, inner))
    if isinstance(known, (Tuple, OneOf)):
        inside = known.items if isinstance(known, Tuple) else known.found
        return frozenset().union(*map(sites_in, inside))
    if isinstance(known, (Several, Iterator)):
        own = known.sites if isinstance(known, Iterator) else frozenset()
        return own | sites_in(known.item)
    if isinstance(known, Made):
        return frozenset().union(*map(sites_in, known.cells))
    return sites_in(known.owner) if isinstance(known, Method) else frozenset()


def _joined(a: Any, b: Any) -> Any:
    """What is known of two lists or dicts, of which a value is one."""
    if isinstance(a, List):
        return replace(a, item=either({a.item, b.item}))
    if a.made != b.made:
        raise NotSimpleError
    first, second = dict(a.items), dict(b.items)
    keys = {**first, **second}
    items = {k: either({first.get(k, second.get(k)), keys[k]}) for k in keys}
    is_exact = a.is_exact and b.is_exact and first.keys() == second.keys()
    found: Dict = a.with_items(items, is_exact)
    return found.with_other(*b.others) if b.others else found


def with_new(known: Any, old: List | Dict, new: List | Dict) -> Any:
    """The same value after ``old``, which may be part of it, has become ``new``. Others that were
    made at its site may be the same one."""
    if new.site not in sites_in(known):
        return known
    if isinstance(known, (List, Dict)) and known.site == new.site:
        return new if known == old else _joined(known, new)
    if isinstance(known, List):
        return replace(known, item=with_new(known.item, old, new))
    if isinstance(known, Dict):
        items = tuple((k, with_new(v, old, new)) for k, v in known.items)
        others = known.others and (known.others[0], with_new(known.others[1], old, new))
        return replace(known, items=items, others=others)
    if isinstance(known, Tuple):
        return Tuple(tuple(with_new(v, old, new) for v in known.items))
    if isinstance(known, OneOf):
        return either({with_new(v, old, new) for v in known.found})
    if isinstance(known, Several):
        return Several(with_new(known.item, old, new))
    raise NotSimpleError  # what goes over it, or a function that has it


def as_new(known: Any, of: str) -> Any:
    """A tensor or an array that may lie in the memory of ``known``."""
    return New(of) if isinstance(known, New) else of
