"""What operators give, of values of which something is known."""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.utils.data._utils.files import is_path
from facula.utils.data._utils.kept import check_contains
from facula.utils.data._utils.known import (
    ARRAY,
    BYTES,
    NESTED,
    NUMBER,
    NUMBERS,
    PATH,
    SLICE,
    TENSOR,
    TEXT,
    TEXTS,
    Kept,
    Known,
    List,
    Maybe,
    New,
    NotSimpleError,
    Several,
    Tuple,
    asked,
    either,
    is_data,
    is_key,
    is_plain,
    is_shown,
    kind,
)

_OPERATORS = frozenset(["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "@"])
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}


class Operators:
    """The instructions of a :class:`Reading` that compute."""

    extend: Callable[[Any, Any], None]
    given_away: Callable[[Any], Any]
    pop: Callable[[int], list[Any]]
    simple: Any
    stack: list[Any]
    truth: Callable[[Any], bool | None]

    def do_binary_subscr(self, i: dis.Instruction) -> None:
        self.stack.append(self.simple.item(*self.pop(2)))

    def do_build_slice(self, i: dis.Instruction) -> None:
        for part in self.pop(i.arg or 0):
            if kind(part) != NUMBER and part != Known(None):
                raise NotSimpleError
        self.stack.append(SLICE)

    def do_binary_slice(self, i: dis.Instruction) -> None:
        container, *bounds = self.pop(3)
        if not all(kind(v) == NUMBER or v == Known(None) for v in bounds):
            raise NotSimpleError
        self.stack.append(self.simple.item(container, SLICE))

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
        # In place, a tensor or an array is written to, which may be anybody's.
        if in_place and kind(a) not in (NUMBER, TEXT) and not isinstance(a, New):
            raise NotSimpleError
        if name not in _OPERATORS:
            raise NotSimpleError
        self.stack.append(self.computed(name, a, b))

    def computed(self, name: str, a: Any, b: Any) -> Any:
        """What an operator gives."""
        kinds = {kind(a), kind(b)}
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
        if found not in (NUMBER, TENSOR, ARRAY, NESTED):
            raise NotSimpleError
        self.stack.append(found if found in (NUMBER, NESTED) else New(found))

    do_unary_invert = do_unary_positive = do_unary_negative

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
        if NESTED in (kind(a), kind(b)):
            self.stack.append(self.computed("-", a, b))
            return
        plain = is_key(a) and is_key(b)
        if kind(a) == kind(b) == TEXT or (plain and name in _COMPARISONS):
            self.stack.append(NUMBER)
        else:
            self.stack.append(self.computed("-", a, b))

    def do_contains_op(self, i: dis.Instruction) -> None:
        value, container = self.pop(2)
        if not is_key(value):
            raise NotSimpleError
        if isinstance(container, Maybe):
            container = container.of
        if isinstance(container, Kept):
            check_contains(container, value)
            self.stack.append(NUMBER)
            return
        known = container.value if isinstance(container, Known) else None
        plain = type(known) in (list, tuple, dict, set, frozenset)
        if plain and not asked(_C._are_plain, known):
            raise NotSimpleError
        if not plain and kind(container) not in (NUMBERS, TEXT, TEXTS, BYTES, NESTED):
            raise NotSimpleError
        self.stack.append(NUMBER)

    def text(self, *parts: Any) -> None:
        if not all(map(is_shown, parts)):
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
