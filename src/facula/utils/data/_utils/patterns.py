"""The instructions of a function that take values apart."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.utils.data._utils.joins import as_new, sites_in
from facula.utils.data._utils.kinds import is_data, kind
from facula.utils.data._utils.known import (
    ARRAY,
    NESTED,
    NUMBER,
    NUMBERS,
    TENSOR,
    Columns,
    Dict,
    ItemOf,
    Iterator,
    Known,
    List,
    Maybe,
    NotSimpleError,
    Of,
    PartOf,
    Several,
    Tuple,
    asked,
)

_LENGTH = Known(len)


class Patterns:
    """What a :class:`Reading` finds in them."""

    pop: Callable[[int], list[Any]]
    simple: Any
    site_at: Callable[[dis.Instruction], Any]
    stack: list[Any]

    def do_match_sequence(self, i: dis.Instruction) -> None:
        self.matches(i, (list, tuple), (Tuple, Several))

    def do_match_mapping(self, i: dis.Instruction) -> None:
        self.matches(i, (dict,), (Dict,))

    def matches(self, i: dis.Instruction, types_: tuple[type, ...], made: Any) -> None:
        value = self.stack[-1]
        if isinstance(value, List):
            self.stack.append(Known(value.type is not set and list in types_))
        elif isinstance(value, (Tuple, Several, Dict)):
            self.stack.append(Known(isinstance(value, made)))
        elif is_data(value) or isinstance(value, (Of, Maybe)):
            self.stack.append(NUMBER)
        else:
            raise NotSimpleError

    def do_get_len(self, i: dis.Instruction) -> None:
        self.simple.site = self.site_at(i)
        value = self.stack[-1]
        exact = isinstance(value, Tuple)
        self.stack.append(Known(len(value.items)) if exact else self.simple.call(_LENGTH, [value]))

    def do_match_keys(self, i: dis.Instruction) -> None:
        """Puts what is there under the keys on the stack, or None."""
        keys, value = self.stack[-1], self.stack[-2]
        if not isinstance(keys, Known) or type(keys.value) is not tuple:
            raise NotSimpleError
        found = tuple(self.simple.item(value, Known(key)) for key in keys.value)
        if isinstance(value, Dict) or any(map(sites_in, found)):
            raise NotSimpleError
        self.stack.append(Maybe(Tuple(found)))

    def do_build_tuple(self, i: dis.Instruction) -> None:
        self.stack.append(Tuple(tuple(self.pop(i.arg or 0))))

    def do_unpack_sequence(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        if isinstance(value, Maybe):  # nothing comes out of None
            value = value.of
        count = i.arg or 0
        if isinstance(value, (Columns, Tuple)) and len(value.items) == count:
            self.stack += reversed(value.items)
        elif isinstance(value, (Iterator, List, Several)):
            self.stack += [value.item] * count
        elif isinstance(value, ItemOf) and asked(_C._are_of_length, value.values.value, count):
            self.stack += [PartOf(value.values, k) for k in reversed(range(count))]
        elif kind(value) in (TENSOR, ARRAY, NESTED):
            self.stack += [as_new(value, kind(value))] * count
        elif kind(value) == NUMBERS:
            self.stack += [NUMBER] * count
        else:
            raise NotSimpleError

    def do_unpack_ex(self, i: dis.Instruction) -> None:
        """``a, *b, c = values``"""
        (value,) = self.pop(1)
        before, after = (i.arg or 0) & 0xFF, (i.arg or 0) >> 8
        found = self.simple.iterator(value)
        if sites_in(found.item):
            raise NotSimpleError
        self.stack += [found.item] * after
        self.stack += [List(found.item, self.site_at(i)), *[found.item] * before]
