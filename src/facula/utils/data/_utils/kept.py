"""What can be done with containers that stay from call to call, and are written to."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

from facula.utils.data._utils.changes import MAPS, Changes, Slot
from facula.utils.data._utils.joins import either
from facula.utils.data._utils.kinds import is_key, kind
from facula.utils.data._utils.known import (
    NOTHING,
    NUMBER,
    OPAQUE,
    SLICE,
    Iterator,
    Kept,
    Known,
    List,
    NotSimpleError,
    Tuple,
)

_NONE = Known(None)
_ROWS = (list, deque)


def _item(slot: Slot) -> Any:
    found = slot.item()
    return OPAQUE if found == NOTHING else found


def item_of(container: Kept, index: Any) -> Any:
    """What ``container[index]`` is."""
    slot = container.slot
    if slot.type in MAPS and is_key(index):
        return _item(slot)
    if slot.type in _ROWS and kind(index) == NUMBER:
        return _item(slot)
    if slot.type is list and kind(index) == SLICE:
        return List(slot.item(), ("slice", id(slot), 0))
    raise NotSimpleError


def set_item(changes: Changes, container: Any, index: Any, value: Any) -> None:
    """``container[index] = value``"""
    slot = changes.kept(container)
    if slot.type in MAPS and is_key(index):
        changes.add(slot, value, index)
    elif slot.type in _ROWS and kind(index) == NUMBER:
        changes.add(slot, value)
    else:
        raise NotSimpleError


def delete_item(changes: Changes, container: Any, index: Any) -> None:
    """``del container[index]``"""
    slot = changes.kept(container)
    if not (slot.type in MAPS and is_key(index)) and kind(index) not in (NUMBER, SLICE):
        raise NotSimpleError


def check_contains(container: Kept, value: Any) -> None:
    """``value in container``, which must run no code."""
    slot = container.slot
    compared = NUMBER if slot.type in MAPS or slot.type is set else slot.item()
    if not is_key(value) or not (is_key(compared) or compared == NOTHING):
        raise NotSimpleError


def iterator_over(container: Kept) -> Iterator:
    slot = container.slot
    found = slot.key() if slot.type in MAPS else slot.item()
    return Iterator(OPAQUE if found == NOTHING else found)


# By type: methods that put what they are given into the container, those that take something out
# of it, and those that do neither, with the number of their arguments.
PUT: dict[Any, dict[str, int]] = {
    list: {"append": 1, "insert": 2},
    deque: {"append": 1, "appendleft": 1},
    set: {"add": 1},
}
EXTEND: dict[Any, tuple[str, ...]] = {list: ("extend",), deque: ("extend", "extendleft")}
TAKE: dict[Any, tuple[str, ...]] = {list: ("pop",), deque: ("pop", "popleft"), set: ("pop",)}
LEAVE: dict[Any, dict[str, int]] = {
    list: {"clear": 0, "reverse": 0},
    deque: {"clear": 0, "reverse": 0, "rotate": 1},
    set: {"clear": 0, "discard": 1, "remove": 1},
}
READING = ("get", "items", "keys", "values")  # methods of dicts that write nothing


def call_of(
    changes: Changes, simple: Any, container: Any, name: str, given: list[Any], names: Any
) -> Any:
    """What a method of a container returns."""
    slot = changes.kept(container)
    its_type: Any = slot.type
    if its_type in MAPS:
        return _call_of_map(changes, slot, name, given, names)
    if names:
        raise NotSimpleError
    if PUT.get(its_type, {}).get(name) == len(given):
        if its_type is set and not is_key(given[0]):
            raise NotSimpleError
        if name == "insert" and kind(given[0]) != NUMBER:
            raise NotSimpleError
        changes.add(slot, given[-1])
        return _NONE
    if name in EXTEND.get(its_type, ()) and len(given) == 1:
        changes.add(slot, simple.iterator(given[0]).item)
        return _NONE
    if name in TAKE.get(its_type, ()) and all(kind(a) == NUMBER for a in given):
        return _item(slot)
    if LEAVE.get(its_type, {}).get(name) == len(given) and all(map(is_key, given)):
        return _NONE
    raise NotSimpleError


def _call_of_map(changes: Changes, slot: Slot, name: str, given: list[Any], names: Any) -> Any:
    if slot.type is OrderedDict and name in ("popitem", "move_to_end"):
        if not all(map(is_key, given)) or not {*names} <= {"last"}:
            raise NotSimpleError
        return Tuple((_key(slot), _item(slot))) if name == "popitem" else _NONE
    if names:
        raise NotSimpleError
    if name in ("get", "pop") and 1 <= len(given) <= 2 and is_key(given[0]):
        default = given[1:] or ([_NONE] if name == "get" else [])
        return either({_item(slot), *map(changes.settled, default)})
    if name == "setdefault" and len(given) == 2 and is_key(given[0]):
        changes.add(slot, given[1], given[0])
        return _item(slot)
    if given:
        raise NotSimpleError
    if name == "clear":
        return _NONE
    if name == "popitem":
        return Tuple((_key(slot), _item(slot)))
    if name not in READING:
        raise NotSimpleError
    found = {"keys": _key(slot), "values": _item(slot)}
    return Iterator(found.get(name, Tuple((_key(slot), _item(slot)))))


def _key(slot: Slot) -> Any:
    found = slot.key()
    return OPAQUE if found == NOTHING else found
