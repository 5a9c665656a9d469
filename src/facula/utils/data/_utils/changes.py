"""What functions write to that outlives them, and copies of it.

A worker process has a copy of everything, so what a dataset writes to itself (a counter, a cache)
the program does not see, nor another worker. Where the loader makes a worker's batches itself, it
copies as much as that takes: the objects that are written to, and those that lead there.

Such an object is found from the dataset by attributes alone. The place of a value that changes is
a :class:`Slot`, of which is known what may stand there at any time: what stands there now, and all
that is written to it by what is read. As that grows while functions are read, they are read until
it does not (:func:`lookups.changing_lookups_of`).
"""

from __future__ import annotations

import copy
import functools
import random
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy

import facula
from facula import _C
from facula.utils.data._utils.harmless import finds_twister
from facula.utils.data._utils.joins import either, sites_in
from facula.utils.data._utils.kinds import is_data, is_plain, kind
from facula.utils.data._utils.known import (
    DATA,
    LISTS,
    NOTHING,
    NULL,
    NUMBER,
    OPAQUE,
    Dict,
    ItemOf,
    Kept,
    Known,
    List,
    Maybe,
    New,
    NotSimpleError,
    PartOf,
    Several,
    Tuple,
    facts_here,
    in_class,
    noting_in,
)
from facula.utils.data._utils.results import OWN_ARRAYS, OWN_GENERATOR, OWN_TWISTER

MAPS = (dict, OrderedDict, defaultdict, Counter)
_CONTAINERS = frozenset((list, deque, set, *MAPS))
_DRAWN_FROM = (OWN_ARRAYS, OWN_GENERATOR, OWN_TWISTER)
_QUICK = frozenset((list, set, dict))  # of which an empty one always fits
_PLAIN_KEYS = {int, float, bool, str}
_KIND_OF_TYPE = {int: NUMBER, float: NUMBER, bool: NUMBER, random.Random: OWN_TWISTER}
_MOST_ITEMS = 1 << 16  # of a container that is copied
_NONE = Known(None)


def _drawn_from(value: Any) -> str | None:
    """What functions may do with an object, if random numbers are drawn from it."""
    if type(value) is facula.Generator:
        return OWN_GENERATOR
    if type(value) is random.Random:
        return OWN_TWISTER
    if "numpy.random" in sys.modules:
        of_numpy = (numpy.random.Generator, numpy.random.RandomState)
        return OWN_ARRAYS if type(value) in of_numpy else None
    return None


def _found(owner: Any, name: str) -> Any:
    """What an object or its class has under that name, NULL if nothing."""
    own = owner.__dict__
    return own[name] if name in own else in_class(type(owner), name)


def _described(known: Any) -> Any:
    """What is known of a value without looking at it again."""
    found = kind(known)
    return DATA if found == OPAQUE and is_data(known) else found


def _contents(container: Any) -> tuple[Any, Any]:
    """What the items and the keys of a container are, if to look for one runs no code."""
    if len(container) > _MOST_ITEMS:
        raise NotSimpleError
    is_map = type(container) in MAPS
    values = container if type(container) is list else [*container]
    if (is_map or type(container) is set) and not _C._item_types(values) <= _PLAIN_KEYS:
        raise NotSimpleError
    factory = container.default_factory if type(container) is defaultdict else int
    if not any(factory is f for f in (int, float, list)):
        raise NotSimpleError
    items = _described(ItemOf(Known(values))) if values else NOTHING
    if not is_map:
        return items, None
    values = [*container.values()]
    inside = _described(ItemOf(Known(values))) if values else NOTHING
    if factory is list:  # it is a list with nothing in it
        if inside not in LISTS:
            raise NotSimpleError
        return inside, items
    made = {NUMBER} if type(container) in (defaultdict, Counter) else {NOTHING}
    return either({inside, *made}), items


class Slot:
    """A place whose value changes: an attribute of an object.

    Args:
        owner: the object.
        name: of the attribute.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.type: type | None = None  # of the container that stands there
        self.may_be_none = False  # there may be none yet
        self.values: set[Any] = set()  # what may stand there, or is in the container
        self.keys: set[Any] = {NOTHING}
        self.take(_found(owner, name))

    def take(self, value: Any) -> None:
        """Something that stands there before functions are read."""
        with noting_in(None):
            if type(value) in _CONTAINERS:
                if self.name not in self.owner.__dict__:  # that of a class belongs to others, too
                    raise NotSimpleError
                self.type = type(value)
                items, keys = _contents(value)
                self.values.add(items)
                self.keys.add(keys or NOTHING)
            elif value is None:
                self.may_be_none = True
            elif value is not NULL:
                self.values.add(_drawn_from(value) or _described(Known(value)))

    def item(self) -> Any:
        """What is known of everything that is in the container, or stands there."""
        return either({*self.values, NOTHING})

    def key(self) -> Any:
        return either({*self.keys})

    def summary(self) -> tuple[Any, bool, Any, Any]:
        return self.type, self.may_be_none, self.item(), self.key()

    def loaded(self) -> Any:
        """What is known of the attribute."""
        value = Kept(self) if self.type is not None else self.item()
        if value == NOTHING:
            value = OPAQUE
        return either({value, _NONE}) if self.may_be_none else value


def _fits(owner: Any, name: str, summary: tuple[Any, bool, Any, Any]) -> bool:
    """Whether what stands there is within what it was taken for, and nobody else has it."""
    value = owner.__dict__.get(name, NULL)
    its_type, may_be_none, items, _ = summary
    if value is NULL:
        value = in_class(type(owner), name)
    if its_type is None and _KIND_OF_TYPE.get(type(value)) == items:
        return True
    if type(value) in _CONTAINERS and sys.getrefcount(value) > _REFERENCES:
        return False
    del value
    try:
        now = Slot(owner, name)
    except NotSimpleError:
        return False
    if now.type is not its_type and not (now.type is None and now.may_be_none):
        return False
    if now.may_be_none and not may_be_none:
        return False
    now.values.add(items)
    now.keys.add(summary[3])
    return now.item() == items and now.key() == summary[3]


def _references() -> int:
    """How many references to a value in a dict ``_fits`` finds."""
    own: dict[str, Any] = {"value": []}
    value = own.get("value", NULL)
    return sys.getrefcount(value)


_REFERENCES = _references()


def _copied(value: Any) -> Any:
    """What a worker has in a slot at first."""
    if type(value) in _CONTAINERS:
        return value.copy()
    found = _drawn_from(value)
    if found == OWN_GENERATOR:
        return value.clone_state()
    if found == OWN_TWISTER:
        return _C._copied_twister(value) if finds_twister() else copy.copy(value)
    return value if found is None else copy.deepcopy(value)


def _is_instance(value: Any) -> bool:
    """Whether nothing but a dict makes an object of a class of the program what it is."""
    its_type: Any = type(value)
    if its_type.__getattribute__ is not object.__getattribute__:
        return False
    if type(getattr(value, "__dict__", None)) is not dict or isinstance(value, type):
        return False
    if its_type.__setattr__ is not object.__setattr__:
        return False
    if hasattr(its_type, "__del__") or hasattr(its_type, "__getattr__"):
        return False
    slots = (v for base in its_type.__mro__ for v in base.__dict__.values())
    if any(type(v) is types.MemberDescriptorType for v in slots):
        return False
    try:
        object.__new__(its_type)
    except TypeError:  # it has more than Python knows of
        return False
    return True


def _computed_names(its_type: type) -> frozenset[str]:
    """Attributes that a class sets by code of its own."""
    found = ((n, v) for base in its_type.__mro__ for n, v in base.__dict__.items())
    return frozenset(name for name, value in found if hasattr(type(value), "__set__"))


class Changes:
    """What is written to, and what leads there.

    Args:
        roots: objects that a worker has a copy of, if it needs one.
    """

    def __init__(self, *roots: Any) -> None:
        self.roots = roots
        self.slots: dict[tuple[int, str], Slot] = {}
        self.numbers = [*map(id, roots)]
        # Of each object that is copied: names that lead to others, or, with None, change, and
        # names that are not simply there.
        self.plans: dict[int, tuple[dict[str, int | None], frozenset[str]]] = {}
        # copies(roots), or others of them: as a worker has them at first.
        self.copies = functools.partial(_C._copied_objects, self.numbers, self.plans, _copied)
        self.begin()

    def begin(self) -> None:
        """Before functions are read, once more or for the first time."""
        self.grew = False
        self.routes: dict[int, dict[tuple[int, str], Any]] = {}  # attributes that lead to a value
        self.otherwise: set[int] = set()  # values to which something else leads

    # ---- while functions are read

    def is_container(self, value: Any) -> bool:
        """Whether it is something that may be written to, and copied."""
        return type(value) in _CONTAINERS

    def come_to(self, value: Any) -> None:
        """Something leads there that will not be copied."""
        self.otherwise.add(id(value))

    def load(self, owner: Any, name: str) -> Any:
        """What is known of an object's attribute, where it changes; None for others."""
        slot = self.slots.get((id(owner), name))
        if slot is not None:
            return slot.loaded()
        value = owner.__dict__.get(name)
        # What is empty is not there to be looked up, nor is what keeps an order or counts.
        is_kept = type(value) in _CONTAINERS and (not value or type(value) not in (list, dict))
        if is_kept or _drawn_from(value):
            return self.slot(owner, name).loaded()
        self.routes.setdefault(id(value), {})[id(owner), name] = owner
        return None

    def slot(self, owner: Any, name: str) -> Slot:
        """The attribute changes."""
        found = self.slots.get((id(owner), name))
        if found is None:
            of_class = in_class(type(owner), name)
            if not _is_instance(owner) or hasattr(type(of_class), "__get__"):
                raise NotSimpleError
            found = self.slots[id(owner), name] = Slot(owner, name)
            self.grew = True
        return found

    def kept(self, known: Any) -> Slot:
        """The slot of a container that is written to."""
        if isinstance(known, Kept):
            return known.slot  # type: ignore[no-any-return]
        if not isinstance(known, Known) or type(known.value) not in _CONTAINERS:
            raise NotSimpleError
        routes = self.routes.get(id(known.value), {})
        if len(routes) != 1:
            raise NotSimpleError
        ((_, name), owner) = next(iter(routes.items()))
        return self.slot(owner, name)

    def is_there(self, owner: Any, name: str, value: Any) -> bool:
        """Whether a value is the container that stands in that place."""
        slot = self.slots.get((id(owner), name))
        return slot is not None and value == Kept(slot)

    def store(self, owner: Any, name: str, value: Any) -> None:
        """``owner.name = value``"""
        slot = self.slot(owner, name)
        before = slot.summary()
        if value == _NONE:
            slot.may_be_none = True
        elif isinstance(value, (List, Dict)):
            its_type = value.type if isinstance(value, List) else dict
            if slot.type is not its_type and (slot.type is not None or slot.values):
                raise NotSimpleError
            slot.type = its_type
            if isinstance(value, Dict):
                if value.others or value.made is not None:
                    raise NotSimpleError
                for key, item in value.items:
                    self.add(slot, item, Known(key))
            else:
                self.add(slot, value.item)
        elif slot.type is not None:
            raise NotSimpleError
        elif kind(value) in _DRAWN_FROM:
            if not {*slot.values} <= {kind(value)}:
                raise NotSimpleError
            slot.values.add(kind(value))
        elif {*slot.values} & {*_DRAWN_FROM}:
            raise NotSimpleError
        else:
            slot.values.add(self.settled(value))
        self.grew = self.grew or slot.summary() != before

    def add(self, slot: Slot, value: Any, key: Any = None) -> None:
        """Something is put into a container."""
        before = slot.summary()
        slot.values.add(self.settled(value))
        if key is not None:
            slot.keys.add(_described(key))
        self.grew = self.grew or slot.summary() != before

    def settled(self, value: Any) -> Any:
        """What will be known of a value when it is found again."""
        if isinstance(value, New):
            return value.of
        if isinstance(value, Maybe):
            return Maybe(self.settled(value.of))
        if isinstance(value, Tuple):
            return Tuple(tuple(map(self.settled, value.items)))
        if sites_in(value):  # which the reading has given away
            return DATA if is_data(value) else OPAQUE
        if isinstance(value, Several):
            return Several(self.settled(value.item))
        if isinstance(value, Known):
            self.come_to(value.value)
            return value if is_plain(value) else _described(value)
        if isinstance(value, (ItemOf, PartOf)):
            return _described(value)
        if value not in (NOTHING, OPAQUE) and not is_data(value):
            raise NotSimpleError
        return value

    # ---- when they have been read

    def settle(self) -> None:
        """Notes what the conclusions rest on; raises where not all of it can be copied."""
        needed = {id(slot.owner) for slot in self.slots.values()}
        while True:
            more = {o for v in needed for o, _ in self.routes.get(v, {})} - needed
            if not more:
                break
            needed |= more
        roots = {*self.numbers}
        owners = {id(slot.owner): slot.owner for slot in self.slots.values()}
        for routes in self.routes.values():
            owners.update((key[0], owner) for key, owner in routes.items())
        steps: dict[int, dict[str, int | None]] = {number: {} for number in needed}
        for number in needed:
            routes = self.routes.get(number, {})
            is_found = number in roots or bool(routes)
            if number in self.otherwise or not is_found or not _is_instance(owners[number]):
                raise NotSimpleError
            self.plans[number] = steps[number], _computed_names(type(owners[number]))
            for owner, name in routes:
                if (owner, name) in self.slots:
                    raise NotSimpleError
                steps[owner][name] = number
        for (owner, name), slot in self.slots.items():
            steps[owner][name] = None
            facts_here().type_of(slot.owner)
            number = id(_found(slot.owner, name)) if slot.type is not None else None
            if number in self.otherwise or number in self.routes:
                raise NotSimpleError
            about = slot.owner, name, slot.summary()
            if not _fits(*about):
                raise NotSimpleError
            of_items = {t for t, known in _KIND_OF_TYPE.items() if known == about[2][2]}
            quick = {slot.type} & _QUICK if slot.type is not None else of_items
            facts_here().kept(_fits, about, slot.type is not None, tuple(quick))
