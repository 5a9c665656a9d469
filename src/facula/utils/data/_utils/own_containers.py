"""Lists and dicts that a function makes, and writes to."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

from facula.utils.data._utils.kept import delete_item, set_item
from facula.utils.data._utils.known import (
    NESTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    PLAIN,
    TEXTS,
    Dict,
    Iterator,
    Known,
    List,
    New,
    NotSimpleError,
    Several,
    Tuple,
    either,
    is_index,
    is_key,
    kind,
    sites_in,
    with_new,
)


class OwnContainers:
    """What a :class:`Reading` knows of them; nobody else sees them change."""

    code_number: tuple[int, int]
    given_away: Callable[[Any], Any]
    loops: bool
    not_made_here: frozenset[Any]
    places: dict[str, Any]
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

    def change(self, old: List | Dict, new: List | Dict) -> None:
        """Something was written to a list or dict that was made here."""
        if new == old:
            return
        if new.site in self.not_made_here:
            raise NotSimpleError
        self.stack = [with_new(v, old, new) for v in self.stack]
        self.places = {name: with_new(v, old, new) for name, v in self.places.items()}

    def add_to_list(self, to: List, value: Any) -> None:
        self.change(to, List(either({to.item, value}), to.site))

    def set_in_dict(self, to: Dict, key: Any, value: Any) -> None:
        if not isinstance(key, Known) or type(key.value) not in (int, str):
            if not is_key(key):
                raise NotSimpleError
            self.change(to, Dict(None, to.site))
            return
        if to.items is None:
            return
        items = dict(to.items)
        # There is no other one that was made there, unless in a loop or by another call.
        alone = to.site[:2] == self.code_number and not self.loops
        if key.value in items and not alone:
            value = either({items[key.value], value})
        self.change(to, Dict(tuple({**items, key.value: value}.items()), to.site))

    def do_store_subscr(self, i: dis.Instruction) -> None:
        value, container, key = self.pop(3)
        if isinstance(container, Dict):
            self.set_in_dict(container, key, value)
        elif isinstance(container, List) and kind(key) == NUMBER:
            self.add_to_list(container, value)
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
        if self.simple.changes is None:
            raise NotSimpleError
        delete_item(self.simple.changes, container, key)

    def do_store_slice(self, i: dis.Instruction) -> None:
        value, container, *bounds = self.pop(4)
        if not isinstance(container, New) or not all(is_index(b) for b in bounds):
            raise NotSimpleError
        if kind(value) not in (NUMBER, NUMBERS, PLAIN, NESTED, container.of):
            raise NotSimpleError

    def do_build_list(self, i: dis.Instruction) -> None:
        items = {*self.pop(i.arg or 0)} or {NOTHING}
        self.stack.append(List(either(items), self.site_at(i)))

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

    def do_list_extend(self, i: dis.Instruction) -> None:
        (values,) = self.pop(1)
        self.extend(self.below(i.arg or 0), values)

    def do_call_intrinsic_1(self, i: dis.Instruction) -> None:
        if i.arg != 6:  # a tuple of a list
            raise NotSimpleError
        self.do_list_to_tuple(i)

    def do_list_to_tuple(self, i: dis.Instruction) -> None:
        (values,) = self.pop(1)
        if not isinstance(values, List):
            raise NotSimpleError
        self.stack.append(Several(values.item))

    def do_build_map(self, i: dis.Instruction) -> None:
        flat = self.pop(2 * (i.arg or 0))
        made = Dict((), self.site_at(i))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        self.stack.append(self.filled(made, pairs))

    def do_build_const_key_map(self, i: dis.Instruction) -> None:
        *values, keys = self.pop((i.arg or 0) + 1)
        pairs = zip(map(Known, keys.value), values, strict=True)
        self.stack.append(self.filled(Dict((), self.site_at(i)), pairs))

    def filled(self, made: Dict, pairs: Any) -> Dict:
        items: dict[Any, Any] | None = {}
        for key, value in pairs:
            if isinstance(key, Known) and type(key.value) in (int, str):
                if items is not None:
                    items[key.value] = value
            elif is_key(key):
                items = None
            else:
                raise NotSimpleError
        return Dict(None if items is None else tuple(items.items()), made.site)

    def do_map_add(self, i: dis.Instruction) -> None:
        key, value = self.pop(2)
        to = self.below(i.arg or 0)
        if not isinstance(to, Dict):
            raise NotSimpleError
        self.set_in_dict(to, key, value)

    def do_dict_update(self, i: dis.Instruction) -> None:
        (other,) = self.pop(1)
        to = self.below(i.arg or 0)
        if not isinstance(to, Dict) or not isinstance(other, Dict) or other.items is None:
            raise NotSimpleError
        for key, value in other.items:
            self.set_in_dict(to, Known(key), value)
            to = self.below(i.arg or 0)

    def call_of_own(self, name: str, owner: List | Dict, arguments: list[Any]) -> Any:
        """A method of a list or dict that was made here."""
        if isinstance(owner, Dict):
            if name in ("keys", "values", "items") and not arguments and owner.items:
                values = either({v for _, v in owner.items})
                keys = either({Known(k) for k, _ in owner.items})
                sites = sites_in(owner)
                item = {"keys": kind(keys), "values": values}.get(name, Tuple((kind(keys), values)))
                return Iterator(item, sites)
            if name == "get" and len(arguments) in (1, 2):
                found = self.simple.item_of_own_dict(owner, arguments[0])
                return either({found, *(arguments[1:] or [Known(None)])})
            if name == "update" and len(arguments) == 1 and isinstance(arguments[0], Dict):
                self.stack.append(owner)
                for key, value in arguments[0].items or ((None, None),):
                    if key is None:
                        raise NotSimpleError
                    self.set_in_dict(self.stack[-1], Known(key), value)
                self.pop(1)
                return Known(None)
            raise NotSimpleError
        if name == "append" and len(arguments) == 1:
            self.append(owner, arguments[0])
        elif name == "extend" and len(arguments) == 1:
            self.extend(owner, arguments[0])
        elif name == "insert" and len(arguments) == 2 and kind(arguments[0]) == NUMBER:
            self.append(owner, arguments[1])
        elif name == "pop" and all(kind(a) == NUMBER for a in arguments):
            return owner.item
        elif name == "copy" and not arguments:
            return Several(owner.item)
        elif name == "sort" and not arguments and kind(owner) in (NUMBERS, TEXTS):
            pass
        elif name not in ("reverse", "clear") or arguments:
            raise NotSimpleError
        return Known(None)
