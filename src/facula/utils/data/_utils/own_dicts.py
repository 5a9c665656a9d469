"""Dicts that a function makes, and writes to."""

from __future__ import annotations

import dis
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.immutables import immutable
from facula.utils.data._utils.items import are_few
from facula.utils.data._utils.joins import either, keys_of, sites_in, with_other
from facula.utils.data._utils.kinds import are, is_data, is_key, kind, kinds_of_rows
from facula.utils.data._utils.known import (
    ARRAY,
    BYTES,
    LISTS,
    NESTED,
    NOTHING,
    NUMBER,
    OPAQUE,
    TENSOR,
    TEXT,
    Dict,
    ItemOf,
    Iterator,
    Known,
    List,
    New,
    NotSimpleError,
    Object,
    PartOf,
    Several,
    Tuple,
    asked,
    types_in,
)

MAPS = (dict, OrderedDict, defaultdict, Counter)


def is_map(known: Any) -> bool:
    """Whether it is a dict that can be copied without code of the program's."""
    if isinstance(known, ItemOf):
        return bool(known.values.value) and bool(kinds_of_rows(known.values))
    if isinstance(known, Dict):
        return known.made is None  # counters are added up otherwise
    return isinstance(known, Known) and type(known.value) is dict


class OwnDicts:
    """What a :class:`Reading` knows of them; nobody else sees them change."""

    change: Callable[[Any, Any], None]
    code_number: tuple[int, int]
    loops: bool
    pop: Callable[[int], list[Any]]
    below: Callable[[int], Any]
    simple: Any
    site_at: Callable[[dis.Instruction], Any]
    stack: list[Any]

    def is_alone(self, made: Dict | Object) -> bool:
        """Whether there is no other one that was made there: not in a loop or by another call."""
        return bool(made.site[:2] == self.code_number) and not self.loops

    def set_in_dict(self, to: Dict, key: Any, value: Any) -> None:
        self.change(to, self.with_value(to, key, value, self.is_alone(to)))

    def with_value(self, to: Dict, key: Any, value: Any, alone: bool) -> Dict:
        if not isinstance(key, Known) or type(key.value) not in (int, str):
            if not is_key(key):
                raise NotSimpleError
            return with_other(to, key, value)
        items = dict(to.items)
        is_exact = to.is_exact and (alone or key.value in items)
        if key.value in items and not alone:
            value = either({items[key.value], value})
        return to.with_items({**items, key.value: value}, is_exact)

    def with_all(self, to: Dict, other: Any, alone: bool) -> Dict:
        """After ``to.update(other)``."""
        other = self.as_dict(other, to.site)
        for key, value in other.items:
            to = self.with_value(to, Known(key), value, alone and other.is_exact)
        return with_other(to, *other.others) if other.others else to

    def update(self, to: Dict, other: Any) -> None:
        self.change(to, self.with_all(to, other, self.is_alone(to)))

    def as_dict(self, known: Any, site: Any) -> Dict:
        """A new dict of what is in another one, or of pairs."""
        if isinstance(known, Dict):
            return Dict(known.items, site, known.others, known.is_exact)
        if isinstance(known, ItemOf) and is_map(known):
            of = known.values
            of.parts.update(kinds_of_rows(of))
            return Dict(tuple((key, PartOf(of, key)) for key in kinds_of_rows(of)), site)
        if isinstance(known, Known) and type(known.value) is dict:
            return self.copy_of(known, site)
        if kind(known) == NESTED:
            return Dict((), site, (NESTED, NESTED), False)
        found = self.simple.iterator(known)
        self.simple.needs.add(TIME)
        if found.exact == () or found.item is NOTHING:
            return Dict((), site)
        pair = found.item
        key, value = pair.items if isinstance(pair, Tuple) else (None, None)
        if not is_key(key):
            raise NotSimpleError
        return Dict((), site, (key, value), False)

    def copy_of(self, known: Known, site: Any) -> Dict:
        values = known.value
        if not asked(_C._are_plain, values):
            raise NotSimpleError
        if not asked(are_few, values) or not asked(types_in, values) <= {int, str}:
            others = self.simple.iterator(known).item, self.simple.one_of_values(values)
            return Dict((), site, others, False)
        asked(len, values)
        for key in values:
            self.simple.facts.item(values, key)
        items = {key: self.simple.known(value) for key, value in values.items()}
        return Dict(tuple(items.items()), site)

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
        for key, value in pairs:
            if isinstance(key, Known) and type(key.value) in (int, str):
                made = made.with_items({**dict(made.items), key.value: value}, made.is_exact)
            elif is_key(key):
                made = with_other(made, key, value)
            else:
                raise NotSimpleError
        return made

    def do_map_add(self, i: dis.Instruction) -> None:
        key, value = self.pop(2)
        to = self.below(i.arg or 0)
        if not isinstance(to, Dict):
            raise NotSimpleError
        self.set_in_dict(to, key, value)

    def do_dict_update(self, i: dis.Instruction) -> None:
        (other,) = self.pop(1)
        to = self.below(i.arg or 0)
        copied = isinstance(other, Dict) or is_map(other) or kind(other) == NESTED
        if not isinstance(to, Dict) or not copied:
            raise NotSimpleError
        # Nothing else has it yet.
        self.stack[-(i.arg or 0)] = self.with_all(to, other, True)

    do_dict_merge = do_dict_update  # of a call's names

    def copied(self, i: dis.Instruction, known: Any) -> Any:
        """``known.copy()`` of lists and dicts that others have; None of anything else."""
        if isinstance(known, Dict) or not (is_map(known) or kind(known) in LISTS):
            return None
        if is_map(known):
            return self.as_dict(known, self.site_at(i))
        return List(self.simple.iterator(known).item, self.site_at(i))

    def copied_data(self, i: dis.Instruction, known: Any, deep: bool) -> Any:
        """``copy.copy(known)`` or ``copy.deepcopy(known)`` of what has no code of the program's."""
        if isinstance(known, Dict):
            known = self.as_dict(known, self.site_at(i))
        found = self.copied(i, known) if not isinstance(known, (Dict, List)) else known
        if isinstance(found, Dict) and not (deep and sites_in(known)):
            items = {k: self.copied_value(v, deep) for k, v in found.items}
            return found.with_items(items, found.is_exact)
        if isinstance(found, List) and not sites_in(found.item):
            return List(self.copied_value(found.item, deep), self.site_at(i), found.type)
        if not is_data(known) and immutable(known) is None:
            raise NotSimpleError
        return self.copied_value(known, deep) if not sites_in(known) else NESTED

    def copied_value(self, known: Any, deep: bool) -> Any:
        """What is in such a copy; of a copy that is not deep, the same."""
        if not deep or immutable(known) is not None:
            return known
        if kind(known) in (TENSOR, ARRAY):
            return New(kind(known))
        if not is_data(known):
            raise NotSimpleError
        return known if kind(known) in (NUMBER, TEXT, BYTES) else NESTED

    def merged(self, i: dis.Instruction, a: Any, b: Any) -> Dict:
        """``a | b``"""
        return self.with_all(self.as_dict(a, self.site_at(i)), b, True)

    def made_map(self, i: dis.Instruction, called: Any, arguments: list[Any], names: Any) -> Dict:
        """What ``dict``, ``defaultdict`` and the like return."""
        values, site, made = list(arguments[: len(arguments) - len(names)]), self.site_at(i), None
        named = tuple(zip(names, arguments[len(values) :], strict=True))
        if called is defaultdict:
            made = self.made_by(values.pop(0), site) if values else None
        if len(values) > 1 or (called is Counter and named):
            raise NotSimpleError
        if called is Counter:
            counted = self.simple.iterator(values[0]).item if values else NUMBER
            if not is_key(counted) or any(isinstance(v, Dict) or is_map(v) for v in values):
                raise NotSimpleError
            self.simple.needs.add(TIME)
            count = NESTED if values and kind(values[0]) == NESTED else NUMBER  # those of a dict
            return Dict((), site, (counted, count) if values else None, not values, NUMBER)
        found = self.as_dict(values[0], site) if values else Dict((), site)
        found = found.with_items({**dict(found.items), **dict(named)}, found.is_exact)
        return Dict(found.items, site, found.others, found.is_exact, made)

    def made_by(self, factory: Any, site: Any) -> Any:
        """What a defaultdict puts where nothing is; of lists and dicts, that they are new."""
        if factory == Known(None):
            return None
        called = factory.value if isinstance(factory, Known) else None
        if any(called is t for t in (int, float, bool)):
            return NUMBER
        if called is list or called is set:
            return List(NOTHING, (*site, "made"), called)
        if called is dict:
            return Dict((), (*site, "made"))
        found = self.simple.call(factory, [])
        if sites_in(found):
            raise NotSimpleError
        return found

    def item_of_map(self, container: Dict, key: Any) -> Any:
        """``container[key]``, which a defaultdict is written to by."""
        if container.made is None:
            return self.simple.item_of_own_dict(container, key)
        if not is_key(key):
            raise NotSimpleError
        self.stack.append(container)
        self.change(container, with_other(container, key, container.made))
        (container,) = self.pop(1)
        return self.simple.item_of_own_dict(container, key)

    def call_of_map(
        self, i: dis.Instruction, name: str, owner: Dict, given: list[Any], names: Any
    ) -> Any:
        """A method of a dict that was made here."""
        if name == "update" and len(given) - len(names) <= 1 and owner.made != NUMBER:
            self.stack.append(owner)
            for other in given[: len(given) - len(names)]:
                self.update(self.stack[-1], other)
            for key, value in zip(names, given[len(given) - len(names) :], strict=True):
                self.set_in_dict(self.stack[-1], Known(key), value)
            self.pop(1)
            return Known(None)
        if names:
            raise NotSimpleError
        if name in ("keys", "values", "items") and not given:
            keys, values = either(keys_of(owner) or {OPAQUE}), either({*owner.values()} or {OPAQUE})
            item = {"keys": keys, "values": values}.get(name, Tuple((keys, values)))
            return Iterator(item, sites_in(owner), None if keys_of(owner) else ())
        if name == "most_common" and owner.made == NUMBER and are(NUMBER, owner.values()):
            return Several(Tuple((either(keys_of(owner) or {OPAQUE}), NUMBER)))
        if name in ("get", "pop") and len(given) in (1, 2):
            default = given[1:] or ([Known(None)] if name == "get" else [])
            found = self.simple.item_of_own_dict(owner, given[0])
            is_there = owner.items or owner.others
            if name == "pop":
                self.change(owner, owner.with_items(dict(owner.items), False))
            return either({*([found] if is_there or not default else []), *default})
        if name == "setdefault" and len(given) == 2:
            self.stack.append(owner)
            before = self.simple.item_of_own_dict(owner, given[0])
            is_there = owner.items or owner.others
            self.set_in_dict(owner, given[0], either({before, given[1]}) if is_there else given[1])
            (owner,) = self.pop(1)
            return self.simple.item_of_own_dict(owner, given[0])
        if name == "copy" and not given:
            return Dict(owner.items, self.site_at(i), owner.others, owner.is_exact, owner.made)
        if name == "clear" and not given:
            self.change(owner, owner.with_items(dict(owner.items), False))
            return Known(None)
        raise NotSimpleError
