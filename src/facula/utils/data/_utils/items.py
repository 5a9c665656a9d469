"""What items are, and what one comes upon when going over values, of which something is known."""

from __future__ import annotations

import re
import time
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import facula
from facula.utils.data._utils.immutables import immutable
from facula.utils.data._utils.joins import as_new, either, keys_of, sites_in
from facula.utils.data._utils.kept import item_of, iterator_over
from facula.utils.data._utils.kinds import is_index, is_key, kind, kinds_of_rows
from facula.utils.data._utils.known import (
    ARRAY,
    ARRAYS,
    BINARY_FILE,
    BYTES,
    FILE,
    NESTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PLAIN,
    RANGE,
    SLICE,
    TENSOR,
    TENSORS,
    TEXT,
    TEXTS,
    AlwaysRaisesError,
    Columns,
    Dict,
    ItemOf,
    Iterator,
    Kept,
    Known,
    List,
    Maybe,
    NotSimpleError,
    Object,
    Of,
    OneOf,
    PartOf,
    Several,
    Tuple,
    asked,
    in_class,
)
from facula.utils.data._utils.members import has_members, member_with, one_of_members
from facula.utils.data._utils.sets import is_set, item_of_set, kind_of_keys
from facula.utils.data.dataset import ChainDataset, IterableDataset

_MOST_CALLED = 16  # objects of a list
_ONE_OF = {NUMBERS: NUMBER, RANGE: NUMBER, TENSORS: TENSOR, ARRAYS: ARRAY, TEXTS: TEXT}


def are_few(values: Any) -> bool:
    return len(values) <= _MOST_CALLED


class Items:
    """What a :class:`Simple` finds out of them."""

    call_function: Callable[..., Any]
    facts: Any
    known: Callable[[Any], Known]
    known_list: Callable[[dict[Any, Any] | deque[Any]], Known]
    only_looks_up: Callable[[Any], bool]
    special: Callable[[Object, str], types.FunctionType]

    def item(self, container: Any, index: Any) -> Any:
        """What ``container[index]`` is."""
        if isinstance(container, Maybe):
            container = container.of
        if isinstance(container, Kept):
            return item_of(container, index)
        if isinstance(container, OneOf):
            return either({self.item(v, index) for v in container.found})
        found = kind(index)
        in_list = isinstance(container, Known) and type(container.value) in (list, tuple)
        if in_list and found in (NUMBER, PLAIN, TENSOR, ARRAY, NESTED):
            return ItemOf(container)  # before it is found out what all of them are
        if isinstance(container, ItemOf) and isinstance(index, Known):
            of_each = self.item_of_any(container, index.value)
            if of_each is not None:
                return of_each
        of = kind(container)
        if of in (TENSOR, ARRAY) and is_index(index):
            return as_new(container, of)
        if isinstance(container, Tuple) and isinstance(index, Known) and type(index.value) is int:
            if index.value >= len(container.items) or -index.value > len(container.items):
                raise NotSimpleError
            return container.items[index.value]
        if isinstance(container, (List, Several)) and found in (NUMBER, SLICE, NESTED):
            if container.item is NOTHING and found != SLICE:
                raise AlwaysRaisesError
            return container.item if found != SLICE else Several(container.item)
        if isinstance(container, Dict):
            return self.item_of_own_dict(container, index)
        if isinstance(container, Object):
            return self.call_function(self.special(container, "__getitem__"), [container, index])
        if isinstance(container, Known):
            value = container.value
            if type(value) is dict and (is_key(index) or found == ARRAY):  # a number of NumPy's
                return self.item_of_dict(value, index)
            if type(value) is deque and found == NUMBER:
                return ItemOf(self.known_list(value))
        if of == TEXT and found in (NUMBER, SLICE):
            return TEXT
        if of == BYTES and found in (NUMBER, SLICE):
            return BYTES if found == SLICE else NUMBER
        if of in _ONE_OF and found in (NUMBER, SLICE):
            return _ONE_OF[of] if found == NUMBER else of
        of_object = immutable(container)
        if of_object == Of(re.Match) and found in (NUMBER, TEXT):
            return NESTED
        if of_object == Of(time.struct_time) and found == NUMBER:
            return NUMBER
        if of == PLAIN and found in (NUMBER, SLICE):
            return PLAIN
        if of == NESTED and (found == SLICE or is_key(index) or is_index(index)):
            return NESTED
        if isinstance(container, Known):
            if type(container.value) in (list, tuple) and found == SLICE:
                return OPAQUE
            return self.item_of_object(container, index)
        raise NotSimpleError

    def item_of_object(self, container: Known, index: Any) -> Any:
        if has_members(container):
            return member_with(self, container, index)
        self.facts.type_of(container.value)
        function = in_class(type(container.value), "__getitem__")
        if type(function) is types.FunctionType:
            try:
                return self.call_function(function, [container, index])
            except NotSimpleError:
                pass
        if kind(index) == NUMBER and self.only_looks_up(container.value):
            return OPAQUE
        raise NotSimpleError

    def item_of_own_dict(self, container: Dict, index: Any) -> Any:
        found = container.values()
        if isinstance(index, Known) and type(index.value) in (int, str):
            found = [v for k, v in container.items if k == index.value]
            found += container.others[1:] if container.others else ()
        elif not is_key(index):
            raise NotSimpleError
        return either({*found}) if found else OPAQUE

    def item_of_any(self, container: ItemOf, index: Any) -> Any:
        """An item of one of several lists or dicts; None where not all of them have it."""
        if type(index) not in (int, str):
            return None
        of = container.values
        rows = kinds_of_rows(of) if type(index) is str and of.value else {}
        if index in rows:
            of.parts[index] = rows[index]
        elif rows or asked(facula._C._item_types, of.value, index) is None:
            return None
        return PartOf(of, index)

    def item_of_dict(self, values: dict[Any, Any], index: Any) -> Any:
        if not asked(facula._C._are_plain, values):
            raise NotSimpleError
        if not isinstance(index, Known):
            return self.one_of_values(values)
        self.facts.item(values, index.value)
        if index.value not in values:
            raise NotSimpleError
        return self.known(values[index.value])

    def one_of_values(self, values: dict[Any, Any]) -> Any:
        one = ItemOf(self.known_list(values))
        return one if kind(one) == OPAQUE else kind(one)

    def iterator(self, over: Any) -> Iterator:
        """What ``iter(over)`` is."""
        if isinstance(over, Iterator):
            return over
        if isinstance(over, Maybe):
            over = over.of
        if isinstance(over, Kept):
            return iterator_over(over)
        sites = sites_in(over)
        if isinstance(over, Columns):
            found = either({*over.items}) if over.items else OPAQUE
            return Iterator(found, frozenset().union(*map(sites_in, over.items)), over.items, True)
        if isinstance(over, OneOf):
            each = [self.iterator(v) for v in over.found]
            items = {v.item for v in each if v.exact != ()}
            return Iterator(either(items or {OPAQUE}), sites, None if items else ())
        if isinstance(over, (List, Several)):
            nothing = over.item is NOTHING
            return Iterator(OPAQUE if nothing else over.item, sites, () if nothing else None)
        if isinstance(over, Tuple):
            one = either({*over.items}) if over.items else OPAQUE
            return Iterator(one, sites, over.items if not sites else None)
        if isinstance(over, Dict):
            keys = keys_of(over)
            return Iterator(either(keys) if keys else OPAQUE, sites, None if keys else ())
        if isinstance(over, Known):
            value = over.value
            if type(value) in (list, tuple):
                few = asked(are_few, value)
                if few:
                    self.facts.items(value)
                return Iterator(ItemOf(over), exact=tuple(map(self.known, value)) if few else None)
            if type(value) is deque:
                return Iterator(ItemOf(self.known_list(value)))
            if type(value) in (dict, set, frozenset):
                plain = asked(facula._C._are_plain, value)
                return Iterator(kind_of_keys(value) if plain else OPAQUE)
        if isinstance(over, ItemOf) and is_set(over):
            return Iterator(item_of_set(self, over))
        found = kind(over)
        if found in _ONE_OF:
            return Iterator(_ONE_OF[found])
        if found in (TENSOR, ARRAY, PLAIN, TEXT, NESTED):
            return Iterator(as_new(over, found))
        if found == BYTES:
            return Iterator(NUMBER)
        if found in (FILE, BINARY_FILE):
            return Iterator(TEXT if found == FILE else BYTES)
        function = None
        if has_members(over):
            return Iterator(one_of_members(self, over))
        if isinstance(over, Known) and type(over.value) is ChainDataset:
            return self.iterator_over_each(over.value)
        if isinstance(over, Object):
            function = self.special(over, "__iter__")
        if isinstance(over, Known):
            self.facts.type_of(over.value)
            function = in_class(type(over.value), "__iter__")
        if type(function) is types.FunctionType:
            result = self.call_function(function, [over])
            if isinstance(result, Iterator):
                return result
        raise NotSimpleError

    def iterator_over_each(self, chain: ChainDataset) -> Iterator:
        """What iterates over one dataset after the other."""
        self.facts.type_of(chain)
        datasets = self.facts.attribute(chain, "datasets")
        if type(datasets) not in (list, tuple) or not asked(are_few, datasets):
            raise NotSimpleError
        self.facts.items(datasets)
        if not datasets or not all(isinstance(d, IterableDataset) for d in datasets):
            raise NotSimpleError
        each = [self.iterator(self.known(d)) for d in datasets]
        sites: frozenset[Any] = frozenset()
        return Iterator(either({i.item for i in each}), sites.union(*(i.sites for i in each)))
