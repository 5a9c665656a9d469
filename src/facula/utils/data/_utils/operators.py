"""What operators give, of values of which something is known."""

from __future__ import annotations

import dis
import operator
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from facula import _C
from facula.utils.data._utils.files import is_path
from facula.utils.data._utils.immutables import computed as computed_objects
from facula.utils.data._utils.immutables import immutable
from facula.utils.data._utils.joins import as_new, either
from facula.utils.data._utils.kept import check_contains
from facula.utils.data._utils.kinds import (
    is_bound,
    is_data,
    is_dtype,
    is_key,
    is_plain,
    is_shown,
    kind,
)
from facula.utils.data._utils.known import (
    ARRAY,
    BYTES,
    LISTS,
    NESTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PATH,
    PLAIN,
    SLICE,
    TENSOR,
    TEXT,
    TEXTS,
    Dict,
    ItemOf,
    Iterator,
    Kept,
    Known,
    List,
    Maybe,
    New,
    NotSimpleError,
    Several,
    Tuple,
    asked,
    in_class,
)
from facula.utils.data._utils.own_dicts import is_map
from facula.utils.data._utils.sets import OPERATORS, is_set

_OPERATORS = frozenset(["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "@"])
_COMPARED = (NUMBERS, TEXTS, BYTES, PLAIN)
_ARITHMETIC = {NUMBER, TENSOR, ARRAY}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}


class Operators:
    """The instructions of a :class:`Reading` that compute."""

    change: Callable[[Any, Any], None]
    extend: Callable[[Any, Any], None]
    item_of_map: Callable[[Any, Any], Any]
    merged: Callable[[dis.Instruction, Any, Any], Any]
    of_sets: Callable[[dis.Instruction, str, list[Any]], Any]
    site_at: Callable[[dis.Instruction], Any]
    slice_of: Callable[[dis.Instruction, Any], Any]
    update: Callable[[Any, Any], None]
    given_away: Callable[[Any], Any]
    pop: Callable[[int], list[Any]]
    simple: Any
    stack: list[Any]
    truth: Callable[[Any], bool | None]

    def do_binary_subscr(self, i: dis.Instruction) -> None:
        container, index = self.pop(2)
        if isinstance(container, Dict):
            found = self.item_of_map(container, index)  # which may make a new stack
        elif kind(index) == SLICE:
            found = self.slice_of(i, container)
        else:
            found = self.simple.item(container, index)
        self.stack.append(found)

    def do_build_slice(self, i: dis.Instruction) -> None:
        if not all(map(is_bound, self.pop(i.arg or 0))):
            raise NotSimpleError
        self.stack.append(SLICE)

    def do_binary_slice(self, i: dis.Instruction) -> None:
        container, *bounds = self.pop(3)
        if not all(map(is_bound, bounds)):
            raise NotSimpleError
        self.stack.append(self.slice_of(i, container))

    def do_binary_op(self, i: dis.Instruction) -> None:
        name = i.argrepr.removesuffix("=")
        a, b = self.pop(2)
        in_place = name != i.argrepr
        if isinstance(a, Maybe):  # nothing is computed with None
            a = a.of
        if isinstance(b, Maybe):
            b = b.of
        if in_place and name == "+" and self.simple.is_kept(a):
            item = self.given_away(self.simple.iterator(b).item)
            self.stack.append(self.simple.extend_kept(a, Several(item)))
            return
        if in_place and isinstance(a, List) and name == "+":
            self.extend(a, b)
            self.stack.append(List(either({a.item, self.simple.iterator(b).item}), a.site))
            return
        made = self.new_container(i, name, a, b, in_place)
        if made is not None:
            self.stack.append(made)
            return
        # In place, a tensor or an array is written to, which may be anybody's.
        if in_place and kind(a) not in (NUMBER, TEXT) and not isinstance(a, New):
            raise NotSimpleError
        if name not in _OPERATORS:
            raise NotSimpleError
        self.stack.append(self.computed(name, a, b))

    def new_container(self, i: dis.Instruction, name: str, a: Any, b: Any, in_place: bool) -> Any:
        """What an operator gives of lists, sets and dicts; None of anything else."""
        if name in ("+", "*"):
            return self.new_list(i, name, a, b) if not in_place else None
        if name not in OPERATORS:
            return None
        if is_set(a) and is_set(b):
            found = self.of_sets(i, "union", [a, b])
            if not in_place:
                return found
            if not isinstance(a, List):
                raise NotSimpleError
            self.change(a, replace(a, item=found.item))
            return replace(a, item=found.item)
        if name != "|" or not (is_map(a) and is_map(b)):
            return None
        if not in_place:
            return self.merged(i, a, b)
        if not isinstance(a, Dict):
            raise NotSimpleError
        self.stack.append(a)
        self.update(a, b)
        return self.pop(1)[0]

    def new_list(self, i: dis.Instruction, name: str, a: Any, b: Any) -> List | None:
        """``list + list`` or ``list * number``; None where it is something else."""
        lists = [v for v in (a, b) if isinstance(v, List) and v.type is list]
        if name == "*" and len(lists) == 1 and kind(b if lists[0] is a else a) == NUMBER:
            return List(lists[0].item, self.site_at(i))
        if name == "+" and lists and all(isinstance(v, List) or kind(v) in LISTS for v in (a, b)):
            items = {
                v.item if isinstance(v, List) else self.simple.iterator(v).item for v in (a, b)
            }
            return List(either(items), self.site_at(i))
        return None

    def computed(self, name: str, a: Any, b: Any) -> Any:
        """What an operator gives."""
        kinds = {kind(a), kind(b)}
        if OPAQUE in kinds:
            of_objects = computed_objects(name, a, b)
            if of_objects is not None:
                return of_objects
        if ARRAY in kinds and kinds & {NUMBERS, PLAIN} and kinds <= {ARRAY, NUMBERS, PLAIN}:
            return NESTED  # a number of NumPy's may make a list longer
        if NESTED in kinds and is_data(a) and is_data(b):
            return TEXT if kind(a) == TEXT and name == "%" else NESTED
        if name == "/" and is_path(a) and (kind(b) == TEXT or is_path(b)):
            return PATH
        if kind(a) == TEXT and name == "%":
            parts = b.items if isinstance(b, Tuple) else (b,)
            if not all(map(is_shown, parts)):
                raise NotSimpleError
            return TEXT
        if kinds == {TEXT} or kinds == {TEXT, NUMBER}:
            return TEXT
        if name in ("+", "*") and NUMBERS in kinds and kinds <= {NUMBER, NUMBERS}:
            return NUMBERS
        if isinstance(a, Several) and isinstance(b, Several) and name == "+":
            return Several(either({a.item, b.item}))
        if not kinds <= {NUMBER, TENSOR, ARRAY} or (len(kinds) == 2 and NUMBER not in kinds):
            raise NotSimpleError
        kinds.discard(NUMBER)
        return New(kinds.pop()) if kinds else NUMBER

    def do_unary_negative(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        found = kind(value)
        of_object = immutable(value) if found == OPAQUE else None
        if of_object is not None:
            self.stack.append(of_object)
            return
        if found not in (NUMBER, TENSOR, ARRAY, NESTED):
            raise NotSimpleError
        self.stack.append(found if found in (NUMBER, NESTED) else New(found))

    do_unary_invert = do_unary_negative

    def do_unary_positive(self, i: dis.Instruction) -> None:
        value = self.stack[-1]
        self.do_unary_negative(i)
        if isinstance(self.stack[-1], New):  # a tensor is the same one
            self.stack[-1] = as_new(value, kind(value))

    def do_unary_not(self, i: dis.Instruction) -> None:
        truth = self.truth(*self.pop(1))
        self.stack.append(NUMBER if truth is None else Known(not truth))

    def do_to_bool(self, i: dis.Instruction) -> None:
        truth = self.truth(*self.pop(1))
        self.stack.append(NUMBER if truth is None else Known(truth))

    def do_is_op(self, i: dis.Instruction) -> None:
        a, b = self.pop(2)
        if not (isinstance(a, Known) and isinstance(b, Known)):
            self.stack.append(NUMBER)
            return
        self.stack.append(Known((a.value is b.value) != bool(i.arg)))

    def do_compare_op(self, i: dis.Instruction) -> None:
        a, b = self.pop(2)
        name = str(i.argval).removeprefix("bool(").removesuffix(")")
        if name in _COMPARISONS and is_plain(a) and is_plain(b):
            self.stack.append(Known(_COMPARISONS[name](a.value, b.value)))
            return
        kinds = {kind(a), kind(b)}
        if kinds <= _ARITHMETIC:
            self.stack.append(self.computed("-", a, b))
        elif self.is_compared_alone(name, a, b, kinds):
            self.stack.append(NUMBER)
        else:
            self.stack.append(self.computed("-", a, b))

    def is_compared_alone(self, name: str, a: Any, b: Any, kinds: set[str]) -> bool:
        """Whether that says yes or no, and runs no code."""
        if name in _COMPARISONS and self.are_told_apart(a, b):
            return True
        if NESTED in kinds:
            return False
        if all(is_set(v) or kind(v) in _COMPARED for v in (a, b)) or kinds == {TEXT}:
            return True
        return immutable(a) is not None and immutable(b) is not None

    def are_told_apart(self, *values: Any) -> bool:
        """Whether to ask if they are equal runs no code: what has none is only equal to itself."""
        for v in values:
            if is_key(v) or kind(v) in _COMPARED or immutable(v) is not None or is_path(v):
                continue
            if is_dtype(v):
                continue
            if not isinstance(v, Known) or any(map(is_dtype, values)):
                return False  # one of NumPy's asks others for theirs
            self.simple.facts.type_of(v.value)
            own = in_class(type(v.value), "__eq__"), in_class(type(v.value), "__ne__")
            if own[0] is not object.__eq__ or own[1] is not object.__ne__:
                return False
        return True

    def do_contains_op(self, i: dis.Instruction) -> None:
        value, container = self.pop(2)
        if not is_key(value):  # which may be asked if it is equal to something
            raise NotSimpleError
        if isinstance(container, Maybe):
            container = container.of
        if isinstance(container, Kept):
            check_contains(container, value)
            self.stack.append(NUMBER)
            return
        if isinstance(container, (Dict, Tuple, List, Several)):
            inside = (container.item,) if isinstance(container, (List, Several)) else ()
            inside = container.items if isinstance(container, Tuple) else inside
            if not all(is_key(v) or v is NOTHING for v in inside):
                raise NotSimpleError
            self.stack.append(NUMBER)
            return
        if isinstance(container, Iterator) and is_key(container.item):
            self.stack.append(NUMBER)
            return
        if isinstance(container, ItemOf) and is_set(container):
            self.stack.append(NUMBER)
            return
        known = container.value if isinstance(container, Known) else None
        own = in_class(type(known), "__contains__") if known is not None else None
        if isinstance(own, types.FunctionType):
            self.simple.facts.type_of(known)
            self.truth(self.simple.call_function(own, [container, value]))
            self.stack.append(NUMBER)
            return
        plain = type(known) in (list, tuple, dict, set, frozenset)
        if plain and not asked(_C._are_plain, known):
            raise NotSimpleError
        if not plain and kind(container) not in (NUMBERS, TEXT, TEXTS, BYTES, NESTED):
            raise NotSimpleError
        self.stack.append(NUMBER)

    def text(self, *parts: Any) -> None:
        if not all(is_shown(v) or is_path(v) or immutable(v) is not None for v in parts):
            raise NotSimpleError
        self.stack.append(TEXT)

    def do_format_value(self, i: dis.Instruction) -> None:
        self.text(*self.pop(2 if (i.arg or 0) & 4 else 1))

    def do_convert_value(self, i: dis.Instruction) -> None:
        self.text(*self.pop(1))

    def do_format_simple(self, i: dis.Instruction) -> None:
        self.text(*self.pop(1))

    def do_format_with_spec(self, i: dis.Instruction) -> None:
        self.text(*self.pop(2))

    def do_build_string(self, i: dis.Instruction) -> None:
        self.text(*self.pop(i.arg or 0))
