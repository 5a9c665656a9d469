"""Lists, sets and deques that a function makes, and writes to."""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.joins import either, with_new
from facula.utils.data._utils.kept import EXTEND, LEAVE, PUT, TAKE, delete_item, set_item
from facula.utils.data._utils.kinds import is_bound, is_index, is_key, kind
from facula.utils.data._utils.known import (
    ARRAY,
    NESTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    PLAIN,
    SLICE,
    TEXTS,
    Dict,
    ItemOf,
    Known,
    List,
    New,
    NotSimpleError,
    Object,
    Several,
)
from facula.utils.data._utils.sets import METHODS as SETS_METHODS
from facula.utils.data._utils.sets import item_of_set


class OwnContainers:
    """What a :class:`Reading` knows of them; nobody else sees them change."""

    code_number: tuple[int, int]
    given_away: Callable[[Any], Any]
    loops: bool
    not_made_here: frozenset[Any]
    places: dict[str, Any]
    set_in_dict: Callable[[Any, Any, Any], None]
    simple: Any
    stack: list[Any]

    def pop(self, count: int) -> list[Any]:
        if count > len(self.stack):
            raise NotSimpleError
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def site_at(self, i: dis.Instruction) -> Any:
        return *self.code_number, i.offset

    def change(self, old: List | Dict | Object, new: List | Dict | Object) -> None:
        """Something was written to a list, dict or object that was made here."""
        if new == old:
            return
        if new.site in self.not_made_here:
            raise NotSimpleError
        self.stack = [with_new(v, old, new) for v in self.stack]
        self.places = {name: with_new(v, old, new) for name, v in self.places.items()}

    def slice_of(self, i: dis.Instruction, container: Any) -> Any:
        """``container[a:b]``; of a list, another list."""
        if isinstance(container, List) and container.type is list:
            return List(container.item, self.site_at(i))
        if isinstance(container, Known) and type(container.value) is list:
            return List(ItemOf(container), self.site_at(i))
        return self.simple.item(container, SLICE)

    def add_to_list(self, to: List, value: Any) -> None:
        if to.type is set and not is_key(value):
            raise NotSimpleError
        self.change(to, replace(to, item=either({to.item, value})))

    def do_store_subscr(self, i: dis.Instruction) -> None:
        value, container, key = self.pop(3)
        if isinstance(container, Dict):
            self.set_in_dict(container, key, value)
        elif isinstance(container, List) and kind(key) in (NUMBER, ARRAY, NESTED):
            self.add_to_list(container, value)
        elif isinstance(container, List) and kind(key) == SLICE:
            self.extend(container, value)
        elif self.simple.changes is not None and not isinstance(container, New):
            set_item(self.simple.changes, container, key, self.given_away(value))
        elif (
            not isinstance(container, New)
            or not is_index(key)
            or kind(value) not in (NUMBER, NUMBERS, PLAIN, NESTED, container.of)
        ):
            raise NotSimpleError

    def do_delete_subscr(self, i: dis.Instruction) -> None:
        container, key = self.pop(2)
        if isinstance(container, Dict) and is_key(key):
            self.change(container, container.with_items(dict(container.items), False))
            return
        if isinstance(container, List) and kind(key) in (NUMBER, SLICE):
            return
        if self.simple.changes is None:
            raise NotSimpleError
        delete_item(self.simple.changes, container, key)

    def do_store_slice(self, i: dis.Instruction) -> None:
        value, container, *bounds = self.pop(4)
        if isinstance(container, List) and all(map(is_bound, bounds)):
            self.extend(container, value)
            return
        if not isinstance(container, New) or not all(is_index(b) for b in bounds):
            raise NotSimpleError
        if kind(value) not in (NUMBER, NUMBERS, PLAIN, NESTED, container.of):
            raise NotSimpleError

    def do_build_list(self, i: dis.Instruction) -> None:
        items = {*self.pop(i.arg or 0)} or {NOTHING}
        self.stack.append(List(either(items), self.site_at(i)))

    def do_build_set(self, i: dis.Instruction) -> None:
        items = {*self.pop(i.arg or 0)} or {NOTHING}
        if not all(is_key(item) or item is NOTHING for item in items):
            raise NotSimpleError
        self.stack.append(List(either(items), self.site_at(i), set))

    def below(self, depth: int) -> Any:
        if depth > len(self.stack):
            raise NotSimpleError
        return self.stack[-depth]

    def do_list_append(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        self.append(self.below(i.arg or 0), value)

    def append(self, to: Any, value: Any) -> None:
        if not isinstance(to, List):
            raise NotSimpleError
        self.add_to_list(to, value)

    def extend(self, to: Any, values: Any) -> None:
        self.append(to, self.simple.iterator(values).item)

    do_set_add = do_list_append

    def do_list_extend(self, i: dis.Instruction) -> None:
        (values,) = self.pop(1)
        self.extend(self.below(i.arg or 0), values)

    do_set_update = do_list_extend

    def do_call_intrinsic_1(self, i: dis.Instruction) -> None:
        if i.arg != 6:  # a tuple of a list
            raise NotSimpleError
        self.do_list_to_tuple(i)

    def do_list_to_tuple(self, i: dis.Instruction) -> None:
        (values,) = self.pop(1)
        if not isinstance(values, List):
            raise NotSimpleError
        self.stack.append(Several(values.item))

    def made_list(self, i: dis.Instruction, called: Any, arguments: list[Any], names: Any) -> List:
        """What ``set``, ``frozenset`` or ``deque`` returns, of what can be gone over."""
        its_type = set if called is frozenset else called
        if its_type is deque:  # the last one may be its greatest length
            count = len(arguments) - len(names)
            arguments, most = arguments[: min(count, 1)], arguments[min(count, 1) :]
            if names not in ((), ("maxlen",)) or not all(kind(m) == NUMBER for m in most):
                raise NotSimpleError
        elif names:
            raise NotSimpleError
        if not arguments:
            return List(NOTHING, self.site_at(i), its_type)
        self.simple.needs.add(TIME)
        found = self.simple.iterator(arguments[0])
        item = NOTHING if found.exact == () else found.item
        if called in (set, frozenset) and item is not NOTHING and not is_key(item):
            raise NotSimpleError
        return List(item, self.site_at(i), its_type)

    def call_of_own(self, i: dis.Instruction, name: str, owner: List, given: list[Any]) -> Any:
        """A method of a list, a set or a deque that was made here."""
        if owner.type is set and name in SETS_METHODS:
            return self.of_sets(i, name, [owner, *given])
        if name == "index" and len(given) == 1:
            if not is_key(given[0]) or not is_key(owner.item):
                raise NotSimpleError
            return NUMBER
        if name == "count":
            return self.call_of_own(i, "index", owner, given)
        if name == "copy" and not given:
            return List(owner.item, self.site_at(i), owner.type)
        if name == "sort" and not given and kind(owner) in (NUMBERS, TEXTS):
            return Known(None)
        if PUT.get(owner.type, {}).get(name) == len(given):
            if name == "insert" and kind(given[0]) != NUMBER:
                raise NotSimpleError
            self.append(owner, given[-1])
        elif name in EXTEND.get(owner.type, ()) and len(given) == 1:
            self.extend(owner, given[0])
        elif name in TAKE.get(owner.type, ()) and all(kind(a) == NUMBER for a in given):
            return owner.item
        elif LEAVE.get(owner.type, {}).get(name) != len(given) or not all(map(is_key, given)):
            raise NotSimpleError
        return Known(None)

    # ---- sets

    def of_sets(self, i: dis.Instruction, name: str, sets: list[Any]) -> Any:
        """What a method of sets returns that leaves them as they are."""
        items = [item_of_set(self.simple, v) for v in sets]
        if name in SETS_METHODS and SETS_METHODS[name] is not None:
            return SETS_METHODS[name]
        return List(either({*items}), self.site_at(i), set)
