"""Reads functions, instruction by instruction: whether they only look things up and compute.

Such a function takes attributes, indexes, counts, builds containers, and calls others of its kind,
or functions that are known to do nothing else than to return something. It writes nothing that
outlives it, and asks for nothing but what the process that it was copied from knows as well, which
worker it runs in, and random numbers. Whatever is not known to be harmless is not simple.

What a function does depends on values that are not there yet (an index, a row). Of those only
kinds are known, and where a choice depends on one, both ways are read; a loop is read until it
brings nothing new.
"""

from __future__ import annotations

import builtins
import copy
import dis
import inspect
import re
import sys
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.instructions import Handler, instructions_of
from facula.utils.data._utils.kept import READING
from facula.utils.data._utils.known import (
    ARRAY,
    BINARY_FILE,
    BYTES,
    CAUGHT,
    CLOSES,
    DATA,
    ERROR,
    FILE,
    MATCH,
    NESTED,
    NULL,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PLAIN,
    TENSOR,
    TEXT,
    TEXTS,
    WORKER,
    AlwaysRaisesError,
    Dict,
    ItemOf,
    Iterator,
    Kept,
    Known,
    List,
    Made,
    Maybe,
    Method,
    NotSimpleError,
    Of,
    PartOf,
    Several,
    Super,
    Tuple,
    as_new,
    asked,
    either,
    in_class,
    is_data,
    kind,
    leads_to_kept,
    sites_in,
)
from facula.utils.data._utils.operators import Operators
from facula.utils.data._utils.own_containers import OwnContainers
from facula.utils.data._utils.own_dicts import MAPS, OwnDicts
from facula.utils.data._utils.results import CONTEXT
from facula.utils.data._utils.sets import METHODS as SETS_METHODS
from facula.utils.data._utils.sets import is_set
from facula.utils.data._utils.simple import Simple

# Instructions differ from one version of Python to the next; where they are not known, workers do
# it all.
IS_READ = sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))


def have_one_length(values: Any) -> bool:
    """Whether all of them are lists or tuples, as long as the first one."""
    if not values or type(values[0]) not in (list, tuple):
        return False
    return bool(_C._are_of_length(values, len(values[0])))


def _given_away(known: Any) -> Any:
    """What is known of a value that a generator yields: it may write to its lists later."""
    if isinstance(known, Tuple):
        return Tuple(tuple(map(_given_away, known.items)))
    return OPAQUE if sites_in(known) else known


_MAY_BE_NONE = (OPAQUE, DATA, NESTED)  # kinds of values that None is one of
_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_DEPENDING = (
    *("JUMP_IF_TRUE", "JUMP_IF_FALSE", "JUMP_IF_NONE", "JUMP_IF_NOT_NONE"),
    *("WARD_IF_TRUE", "WARD_IF_FALSE", "WARD_IF_NONE", "WARD_IF_NOT_NONE"),
    *("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"),
)


class Reading(Operators, OwnContainers, OwnDicts):
    """Goes through the instructions of a function.

    Args:
        code: the function's.
        scope: its global names.
        cells: what stands in its cells.
        arguments: what is known of each.
        simple: what others return.
    """

    def __init__(
        self,
        code: types.CodeType,
        scope: dict[str, Any],
        cells: tuple[Any, ...],
        arguments: list[Any],
        simple: Simple,
    ) -> None:
        others = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS)
        count += bool(code.co_flags & inspect.CO_VARKEYWORDS)
        if code.co_flags & others or len(arguments) != count:
            raise NotSimpleError
        self.code, self.scope, self.simple = code, scope, simple
        self.instructions, self.at, self.handlers, self.loops = instructions_of(code)
        self.code_number = simple.depth, id(code)  # of what is made here
        self.not_made_here = frozenset().union(*map(sites_in, (*arguments, *cells)))
        self.cells = dict(zip(code.co_freevars, cells, strict=True))
        self.places: dict[str, Any] = dict(zip(code.co_varnames, arguments, strict=False))
        self.stack: list[Any] = []
        self.names: tuple[str, ...] = ()  # of the last arguments of the next call
        self.next_one = 0
        self.ended = False
        self.seen: set[Any] = set()
        self.open: list[tuple[int, list[Any], dict[str, Any]]] = []  # ways to be read
        self.returned: set[Any] = set()
        self.yielded: set[Any] = set()

    def run(self) -> Any:
        """What the function returns; raises where an instruction is not simple."""
        self.open.append((0, [], self.places))
        instructions = self.instructions
        while self.open:
            self.next_one, self.stack, self.places = self.open.pop()
            self.ended = False
            while not self.ended:
                instruction = instructions[self.next_one]
                if self.next_one in self.handlers:
                    self.may_raise(self.handlers[self.next_one])
                self.next_one += 1
                self.simple.count_step()
                try:
                    _STEPS[instruction.opname](self, instruction)
                except AlwaysRaisesError:  # whoever makes the batch leaves it to the worker then
                    self.ended = True
        if self.code.co_flags & inspect.CO_GENERATOR:
            items = {*map(_given_away, self.yielded)} or {OPAQUE}
            return Iterator(either(items), self.not_made_here)
        if not self.returned:
            raise AlwaysRaisesError
        return either(self.returned)

    def may_raise(self, handler: Handler) -> None:
        stack = self.stack[: handler.depth] + [OPAQUE] * handler.with_place + [ERROR]
        self.may_go_to_place(handler.first, stack)

    def is_new(self, i: dis.Instruction, stack: list[Any]) -> bool:
        """Whether something is known where the instruction leads that was not known before."""
        if i.argval <= i.offset:
            self.simple.needs.add(TIME)
        return self.is_new_at(self.at[i.argval], stack)

    def is_new_at(self, place: int, stack: list[Any]) -> bool:
        state = place, *stack, *self.places.items()
        known = state in self.seen
        self.seen.add(state)
        return not known

    def may_go_to_place(self, place: int, stack: list[Any]) -> None:
        if self.is_new_at(place, stack):
            self.open.append((place, stack, dict(self.places)))

    def go_to(self, i: dis.Instruction) -> None:
        self.next_one = self.at[i.argval]
        self.ended = not self.is_new(i, self.stack)

    def may_go_to(self, i: dis.Instruction, stack: list[Any]) -> None:
        """One of two ways leads there, with that on the stack."""
        if self.is_new(i, stack):
            self.open.append((self.at[i.argval], stack, dict(self.places)))

    def do_jump(self, i: dis.Instruction) -> None:
        name = i.opname
        if name in _ALWAYS:
            self.go_to(i)
            return
        if not name.endswith(_DEPENDING):
            raise NotSimpleError
        before = list(self.stack)
        (value,) = self.pop(1)
        if value is MATCH:
            if not name.endswith("IF_FALSE"):
                raise NotSimpleError
            self.may_go_to(i, list(self.stack))
            self.stack[-1] = CAUGHT
            return
        if isinstance(value, Maybe) and name.endswith("NONE"):
            is_left = name.endswith("NOT_NONE")  # the other way is for None
            places = self.places
            self.places = self.with_instead(value, value.of if is_left else Known(None))
            self.may_go_to(i, list(self.stack))
            self.places = places
            self.places = self.with_instead(value, Known(None) if is_left else value.of)
            return
        decided = self.is_none(value) if name.endswith("NONE") else self.truth(value)
        if decided is not None and name.endswith(("IF_FALSE", "NOT_NONE", "IF_FALSE_OR_POP")):
            decided = not decided
        kept = before if name.endswith("OR_POP") else list(self.stack)
        if decided is None:
            self.may_go_to(i, kept)
        elif decided:
            self.stack = kept
            self.go_to(i)

    def with_instead(self, value: Maybe, known: Any) -> dict[str, Any]:
        """The places, of which it is known now what one of them is."""
        return {name: known if v is value else v for name, v in self.places.items()}

    def is_none(self, value: Any) -> bool | None:
        if isinstance(value, Known):
            return value.value is None
        return None if kind(value) in _MAY_BE_NONE else False

    def truth(self, value: Any) -> bool | None:
        """Whether a value is true; None where that depends."""
        if isinstance(value, Known):
            its_type = type(value.value)
            if its_type in (list, dict):
                return bool(asked(bool, value.value))
            if its_type in (int, float, bool, str, bytes, tuple, range, type(None)):
                return bool(value.value)
            self.simple.facts.type_of(value.value)
            if in_class(its_type, "__bool__") is NULL and in_class(its_type, "__len__") is NULL:
                return True
            if in_class(its_type, "__bool__") is NULL:
                size = in_class(its_type, "__len__")
                if type(size) is types.FunctionType:
                    return self.truth(self.simple.call_function(size, [value]))
        if isinstance(value, Tuple):
            return bool(value.items)
        if isinstance(value, Of):
            return True if value.type is re.Match else None
        if isinstance(value, Maybe):
            self.truth(value.of)  # which must run no code
            return None
        if isinstance(value, Kept):
            return None
        found = kind(value)
        if found in (WORKER, CONTEXT) or isinstance(value, (Made, Method)):
            return True
        depends = found in (NUMBER, NUMBERS, TENSOR, ARRAY, TEXT, PLAIN, TEXTS, BYTES, NESTED)
        if not depends and not isinstance(value, (List, Several, Dict)):
            raise NotSimpleError
        return None

    # ---- the end, and what comes before it

    def do_return_value(self, i: dis.Instruction) -> None:
        self.returned.update(self.pop(1))
        self.ended = True

    def do_return_const(self, i: dis.Instruction) -> None:
        self.returned.add(Known(i.argval))
        self.ended = True

    def do_reraise(self, i: dis.Instruction) -> None:
        self.ended = True

    do_cleanup_throw = do_reraise

    def do_raise_varargs(self, i: dis.Instruction) -> None:
        self.ended = True  # whoever makes the batch leaves it to the worker then

    def do_return_generator(self, i: dis.Instruction) -> None:
        self.stack.append(OPAQUE)

    def do_yield_value(self, i: dis.Instruction) -> None:
        if any(kind(v) == CONTEXT for v in self.stack):  # others would be in it, too
            raise NotSimpleError
        self.yielded.update(self.pop(1))
        self.stack.append(Known(None))

    # ---- exceptions and contexts

    def do_push_exc_info(self, i: dis.Instruction) -> None:
        (error,) = self.pop(1)
        self.stack += [OPAQUE, error]

    def do_check_exc_match(self, i: dis.Instruction) -> None:
        """An interrupt is the program's, so handlers must say which exceptions they are for."""
        (asked,) = self.pop(1)
        for one in asked.items if isinstance(asked, Tuple) else (asked,):
            for t in one.value if self.is_tuple(one) else (getattr(one, "value", None),):
                if not isinstance(t, type) or not issubclass(t, Exception):
                    raise NotSimpleError
                self.simple.facts.of_class(t)
        self.stack.append(MATCH)

    def is_tuple(self, known: Any) -> bool:
        return isinstance(known, Known) and type(known.value) is tuple

    def do_pop_except(self, i: dis.Instruction) -> None:
        self.pop(1)

    def do_before_with(self, i: dis.Instruction) -> None:
        (context,) = self.pop(1)
        if kind(context) in (FILE, BINARY_FILE):
            self.stack += [CLOSES, context]
            return
        if kind(context) != CONTEXT:
            raise NotSimpleError
        self.stack += [CONTEXT, Known(None)]

    def do_with_except_start(self, i: dis.Instruction) -> None:
        self.stack.append(Known(None))

    # ---- loads and stores

    def local(self, name: str) -> None:
        if name not in self.places:
            raise NotSimpleError
        self.stack.append(self.places[name])

    def do_load_fast(self, i: dis.Instruction) -> None:
        for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
            self.local(name)

    do_load_fast_check = do_load_fast_load_fast = do_load_fast

    def do_load_fast_and_clear(self, i: dis.Instruction) -> None:
        self.stack.append(self.places.pop(i.argval, NULL))

    def store(self, name: str) -> None:
        (value,) = self.pop(1)
        if isinstance(value, Maybe):  # an object of its own, since it may turn out to be none
            same, value = value, Maybe(value.of)
            if self.stack and self.instructions[self.next_one - 2].opname == "COPY":
                self.stack[-1] = value if self.stack[-1] is same else self.stack[-1]
        if value is NULL:
            self.places.pop(name, None)
        else:
            self.places[name] = value

    def do_delete_fast(self, i: dis.Instruction) -> None:
        self.places.pop(i.argval, None)

    def do_store_deref(self, i: dis.Instruction) -> None:
        """Functions that were defined meanwhile would see another value."""
        if i.argval in self.cells or self.stack[-1] != self.places.get(i.argval, self.stack[-1]):
            raise NotSimpleError
        self.store(i.argval)

    def do_store_fast(self, i: dis.Instruction) -> None:
        for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
            self.store(name)

    do_store_fast_store_fast = do_store_fast

    def do_store_fast_load_fast(self, i: dis.Instruction) -> None:
        self.store(i.argval[0])
        self.local(i.argval[1])

    def do_load_const(self, i: dis.Instruction) -> None:
        self.stack.append(Known(i.argval))

    def do_load_assertion_error(self, i: dis.Instruction) -> None:
        self.stack.append(Known(AssertionError))

    def push_function(self, value: Any, with_null: int) -> None:
        """What may be called comes with a place for the object that it is a method of."""
        if not with_null:
            self.stack.append(value)
        elif sys.version_info >= (3, 13):
            self.stack += [value, NULL]
        else:
            self.stack += [NULL, value]

    def do_load_global(self, i: dis.Instruction) -> None:
        for scope in (self.scope, vars(builtins)):
            self.simple.facts.item(scope, i.argval)
            if i.argval in scope:
                value = self.simple.known(scope[i.argval])
                self.push_function(value, (i.arg or 0) & 1)
                return
        raise NotSimpleError

    def do_load_deref(self, i: dis.Instruction) -> None:
        if i.argval in self.cells:
            self.stack.append(self.cells[i.argval])
        else:
            self.local(i.argval)

    do_load_closure = do_load_deref

    def do_load_attr(self, i: dis.Instruction) -> None:
        (owner,) = self.pop(1)
        with_null = sys.version_info >= (3, 12) and (i.arg or 0) & 1
        self.push_function(self.simple.attribute(owner, i.argval), with_null)

    def do_load_method(self, i: dis.Instruction) -> None:
        (owner,) = self.pop(1)
        self.push_function(self.simple.attribute(owner, i.argval), 1)

    def given_away(self, value: Any) -> Any:
        """What is known of a value that is kept for later: from now on it can be written to by
        other names than those that are known here."""
        if leads_to_kept(value):  # copies of two places would no longer be the same
            raise NotSimpleError
        sites = sites_in(value)
        if not sites:
            return value
        if sites & self.not_made_here:
            raise NotSimpleError

        def without(known: Any) -> Any:
            if not sites_in(known) & sites:
                return known
            return DATA if is_data(known) else OPAQUE

        result = without(value)
        self.stack = [*map(without, self.stack)]
        self.places = {name: without(v) for name, v in self.places.items()}
        return result

    def do_store_attr(self, i: dis.Instruction) -> None:
        value, owner = self.pop(2)
        changes = self.simple.changes
        if changes is None or not isinstance(owner, Known):
            raise NotSimpleError
        if changes.is_there(owner.value, i.argval, value):
            return  # ``owner.name += ...``
        given = self.given_away(value)
        kept = value if isinstance(value, (List, Dict)) else given
        changes.store(owner.value, i.argval, kept)

    def super_of(self, of: Any, owner: Any) -> Super:
        if not isinstance(of, Known) or not isinstance(owner, Known):
            raise NotSimpleError
        self.simple.facts.type_of(owner.value)
        if not isinstance(of.value, type) or of.value not in type(owner.value).__mro__:
            raise NotSimpleError
        return Super(of.value, owner)

    def do_load_super_attr(self, i: dis.Instruction) -> None:
        called, of, owner = self.pop(3)
        if called != Known(super):
            raise NotSimpleError
        found = self.simple.attribute(self.super_of(of, owner), i.argval)
        self.push_function(found, (i.arg or 0) & 1)

    def do_import_name(self, i: dis.Instruction) -> None:
        """What is there already is not imported again."""
        level, names = self.pop(2)
        for name in (i.argval, i.argval.partition(".")[0]):
            self.simple.facts.item(sys.modules, name)
        self.simple.facts.item(vars(builtins), "__import__")
        whole = sys.modules.get(i.argval)
        first = sys.modules.get(i.argval.partition(".")[0])
        if level != Known(0) or whole is None or first is None:
            raise NotSimpleError
        if vars(builtins)["__import__"] is not _IMPORT:
            raise NotSimpleError
        self.stack.append(Known(whole if names.value else first))

    def do_import_from(self, i: dis.Instruction) -> None:
        self.stack.append(self.simple.attribute(self.stack[-1], i.argval))

    def do_push_null(self, i: dis.Instruction) -> None:
        self.stack.append(NULL)

    def do_pop_top(self, i: dis.Instruction) -> None:
        if self.pop(1) == [ERROR]:  # whatever it is, an interrupt as well
            raise NotSimpleError

    def do_swap(self, i: dis.Instruction) -> None:
        stack, depth = self.stack, i.arg or 0
        if depth > len(stack):
            raise NotSimpleError
        stack[-1], stack[-depth] = stack[-depth], stack[-1]

    def do_copy(self, i: dis.Instruction) -> None:
        if (i.arg or 0) > len(self.stack):
            raise NotSimpleError
        self.stack.append(self.stack[-(i.arg or 0)])

    # ---- patterns

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

    # ---- loops

    def do_get_iter(self, i: dis.Instruction) -> None:
        (over,) = self.pop(1)
        found = self.simple.iterator(over)
        if isinstance(over, Iterator) and over.exact:  # something may have been taken already
            found = Iterator(over.item, over.sites)
        self.stack.append(found)

    def do_for_iter(self, i: dis.Instruction) -> None:
        over = self.stack[-1]
        if not isinstance(over, Iterator):
            raise NotSimpleError
        # From 3.12 on END_FOR takes away what is left.
        after = self.stack[:-1] if sys.version_info < (3, 12) else [*self.stack, NULL]
        if over.exact is None or not over.exact:
            self.may_go_to(i, after)
        if over.exact is None:
            self.stack.append(over.item)
        elif over.exact:
            first, *rest = over.exact
            self.stack[-1] = Iterator(over.item, over.sites, tuple(rest))
            self.stack.append(first)
        else:
            self.ended = True

    def do_end_for(self, i: dis.Instruction) -> None:
        self.pop(2 if sys.version_info < (3, 13) else 1)

    def do_get_yield_from_iter(self, i: dis.Instruction) -> None:
        self.do_get_iter(i)

    def do_send(self, i: dis.Instruction) -> None:
        self.pop(1)
        over = self.stack[-1]
        if not isinstance(over, Iterator):
            raise NotSimpleError
        # From 3.12 on END_SEND takes the iterator away.
        before = self.stack[:-1] if sys.version_info < (3, 12) else list(self.stack)
        self.may_go_to(i, [*before, OPAQUE])
        self.stack.append(over.item)

    def do_end_send(self, i: dis.Instruction) -> None:
        del self.stack[-2]

    # ---- what makes new values

    def do_build_tuple(self, i: dis.Instruction) -> None:
        self.stack.append(Tuple(tuple(self.pop(i.arg or 0))))

    def do_unpack_sequence(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        if isinstance(value, Maybe):  # nothing comes out of None
            value = value.of
        count = i.arg or 0
        if isinstance(value, Tuple) and len(value.items) == count:
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

    # ---- calls

    def do_make_function(self, i: dis.Instruction) -> None:
        """A comprehension, in most cases."""
        (code,) = self.pop(1)
        self.stack.append(Made(code.value, Known(self.scope), ()))
        if sys.version_info < (3, 13) and i.arg:
            self.do_set_function_attribute(i)

    def do_set_function_attribute(self, i: dis.Instruction) -> None:
        cells, made = self.pop(2)
        if i.arg != 8 or not isinstance(cells, Tuple):
            raise NotSimpleError
        self.stack.append(Made(made.code, made.scope, cells.items))

    def do_kw_names(self, i: dis.Instruction) -> None:
        self.names = self.code.co_consts[i.arg or 0]

    def do_call(self, i: dis.Instruction) -> None:
        arguments = self.pop(i.arg or 0)
        # A function, and a place for its first argument, which is empty in most cases.
        functions = [v for v in self.pop(2) if v is not NULL]
        if not functions:
            raise NotSimpleError
        function, *first = functions
        names, self.names = self.names, ()
        result = self.called(i, function, first + arguments, names)
        self.stack.append(result)

    def called(self, i: dis.Instruction, function: Any, arguments: list[Any], names: Any) -> Any:
        """What a call returns."""
        if kind(function) in (CONTEXT, CLOSES) and len(arguments) == 3:  # its end
            return Known(None)
        if function == Known(super) and not arguments:
            cell, name = self.cells.get("__class__"), self.code.co_varnames[0]
            return self.super_of(cell, self.places.get(name))
        if isinstance(function, Method) and isinstance(function.owner, (List, Dict)):
            if function.function == "sort" and isinstance(function.owner, List):
                self.simple.in_order(sorted, [function.owner, *arguments], names)
                return Known(None)
            if isinstance(function.owner, Dict):
                return self.call_of_map(i, function.function, function.owner, arguments, names)
            if names:
                raise NotSimpleError
            return self.call_of_own(i, function.function, function.owner, arguments)
        if isinstance(function, Method) and self.simple.is_kept(function.owner):
            # The container may keep what it is given.
            if str(function.function).startswith("extend"):
                items = [self.simple.iterator(a).item for a in arguments]
                arguments = [Several(self.given_away(item)) for item in items]
            elif function.function not in READING:
                arguments = [*map(self.given_away, arguments)]
        of_sets = isinstance(function, Method) and function.function in SETS_METHODS
        if of_sets and is_set(function.owner) and not names:
            return self.of_sets(i, function.function, [function.owner, *arguments])
        if isinstance(function, Method) and function.function == "copy" and not arguments:
            made = self.copied(i, function.owner)
            if made is not None:
                return made
        if function == Method("fromkeys", Known(dict)) and len(arguments) in (1, 2):
            key = self.simple.iterator(arguments[0]).item
            made = self.as_dict(
                Several(Tuple((key, (arguments[1:] or [Known(None)])[0]))), self.site_at(i)
            )
            return made
        if isinstance(function, Known):
            if any(function.value is f for f in (copy.copy, copy.deepcopy)) and len(arguments) == 1:
                return self.copied_data(i, arguments[0], function.value is copy.deepcopy)
            if any(function.value is m for m in MAPS):
                return self.made_map(i, function.value, arguments, names)
            if any(function.value is t for t in (set, frozenset, deque)):
                return self.made_list(i, function.value, arguments, names)
        self.simple.site = self.site_at(i)
        return self.simple.call(function, arguments, names)

    def do_call_function_ex(self, i: dis.Instruction) -> None:
        """``f(*values)``: of zip, any number of values."""
        with_names = (i.arg or 0) & 1
        named = self.pop(1)[0] if with_names else None
        (values,) = self.pop(1)
        function, *first = [v for v in self.pop(2) if v is not NULL]
        if function == Known(zip) and isinstance(values, (List, Several)):
            if named is not None and dict(named.items or ()).keys() != {"strict"}:
                raise NotSimpleError
            item = values.item
            if kind(item) == NESTED:
                self.stack.append(Several(Several(NESTED)))
                return
            if not isinstance(item, Tuple):
                raise NotSimpleError
            self.stack.append(Tuple(tuple(map(Several, item.items))))
            return
        given, names = [*first, *self.each_of(values)], ()
        if (
            isinstance(named, Dict)
            and named.is_exact
            and all(type(k) is str for k, _ in named.items)
        ):
            given += [v for _, v in named.items]
            names = tuple(k for k, _ in named.items)
        elif named is not None:
            raise NotSimpleError
        result = self.called(i, function, given, names)
        self.stack.append(result)

    def each_of(self, values: Any) -> list[Any]:
        """What is in a list or a tuple of which the length is known."""
        if isinstance(values, ItemOf) and asked(have_one_length, values.values.value):
            count = len(values.values.value[0])
            return [PartOf(values.values, k) for k in range(count)]
        if not isinstance(values, (Tuple, Known)):
            raise NotSimpleError
        found = self.simple.iterator(values)
        if found.exact is None:
            raise NotSimpleError
        return list(found.exact)

    def do_call_kw(self, i: dis.Instruction) -> None:
        (names,) = self.pop(1)
        self.names = names.value
        self.do_call(i)


class _Steps(dict[str, Callable[[Reading, dis.Instruction], None]]):
    """What to do at an instruction, by its name."""

    def __missing__(self, name: str) -> Callable[[Reading, dis.Instruction], None]:
        step = Reading.do_jump if "JUMP" in name else getattr(Reading, "do_" + name.lower(), None)
        if step is None:
            raise NotSimpleError
        self[name] = step
        return step


_STEPS = _Steps()
_LENGTH = Known(len)
_IMPORT = builtins.__import__


def _read(*given: Any) -> Any:
    return Reading(*given).run()


def read_with(
    begin: Callable[[Simple], Any], only_looks_up: Callable[[Any], bool], needs: set[str]
) -> Any:
    """What ``begin`` finds out of functions; a NotSimpleError where one may do something else.

    Args:
        begin: is given what finds out.
        only_looks_up: whether indexing an object with a number does no more than that.
        needs: is told what the functions may need.
    """
    if not IS_READ:
        raise NotSimpleError
    simple = Simple(_read, only_looks_up)
    try:
        result = begin(simple)
    except (AlwaysRaisesError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Else instructions in an order that was not thought of. Workers can always do it.
        raise NotSimpleError from None
    needs |= simple.needs
    return result


def result_of(
    function: types.FunctionType,
    arguments: list[Any],
    only_looks_up: Callable[[Any], bool],
    needs: set[str],
) -> Any:
    """What is known of what a function returns."""
    return read_with(lambda s: s.call_function(function, arguments), only_looks_up, needs)
