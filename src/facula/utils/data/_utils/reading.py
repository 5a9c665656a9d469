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
import dis
import inspect
import re
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from facula.utils.data._utils.calls import Calls
from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.instructions import Handler, instructions_of
from facula.utils.data._utils.joins import either, leads_to_kept, sites_in
from facula.utils.data._utils.kinds import is_data, kind
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
    Iterator,
    Kept,
    Known,
    List,
    Made,
    Maybe,
    Method,
    NotSimpleError,
    Object,
    Of,
    Several,
    Tuple,
    asked,
    in_class,
)
from facula.utils.data._utils.objects import can_be_written_to, with_field
from facula.utils.data._utils.operators import Operators
from facula.utils.data._utils.own_containers import OwnContainers
from facula.utils.data._utils.own_dicts import OwnDicts
from facula.utils.data._utils.patterns import Patterns
from facula.utils.data._utils.results import CONTEXT
from facula.utils.data._utils.simple import Simple

# Instructions differ from one version of Python to the next; where they are not known, workers do
# it all.
IS_READ = sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))


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


class Reading(Calls, Operators, OwnContainers, OwnDicts, Patterns):
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
        # Its first argument, where this is the ``__init__`` that makes it.
        first = arguments[0] if arguments else None
        self.makes = isinstance(first, Object) and first.made_by is code
        given = arguments[1:] if self.makes else arguments
        self.not_made_here = frozenset().union(*map(sites_in, (*given, *cells)))
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
            return Iterator(either(items), self.not_made_here, None if self.yielded else ())
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
        if isinstance(value, Object):
            return self.truth_of_object(value)
        found = kind(value)
        if found in (WORKER, CONTEXT) or isinstance(value, (Made, Method)):
            return True
        depends = found in (NUMBER, NUMBERS, TENSOR, ARRAY, TEXT, PLAIN, TEXTS, BYTES, NESTED)
        if not depends and not isinstance(value, (List, Several, Dict)):
            raise NotSimpleError
        return None

    def truth_of_object(self, value: Object) -> bool | None:
        self.simple.facts.of_class(value.type)
        if in_class(value.type, "__bool__") is not NULL:
            raise NotSimpleError
        if in_class(value.type, "__len__") is NULL:
            return True
        size = self.simple.special(value, "__len__")
        return self.truth(self.simple.call_function(size, [value]))

    # ---- the end, and what comes before it

    def do_return_value(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        self.give_back(value)

    def do_return_const(self, i: dis.Instruction) -> None:
        self.give_back(Known(i.argval))

    def give_back(self, value: Any) -> None:
        """The function returns that, or, if it is an ``__init__``, what it has made."""
        if self.makes:
            if value != Known(None):
                raise NotSimpleError
            value = self.places.get(self.code.co_varnames[0])
            if not isinstance(value, Object) or value.made_by is not self.code:
                raise NotSimpleError
            value = replace(value, made_by=None)
        self.returned.add(value)
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
        if isinstance(owner, Object):
            if not can_be_written_to(owner):
                raise NotSimpleError
            self.set_in_object(owner, i.argval, value)
            return
        changes = self.simple.changes
        if changes is None or not isinstance(owner, Known):
            raise NotSimpleError
        if changes.is_there(owner.value, i.argval, value):
            return  # ``owner.name += ...``
        given = self.given_away(value)
        kept = value if isinstance(value, (List, Dict)) else given
        changes.store(owner.value, i.argval, kept)

    def set_in_object(self, to: Object, name: str, value: Any) -> None:
        own = dict(to.fields)
        if not (to.made_by is self.code or self.is_alone(to)):  # others were made there, too
            if name not in own:
                raise NotSimpleError
            value = either({own[name], value})
        self.change(to, with_field(to, name, value))

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
        if not over.exact or over.may_be_empty:
            self.may_go_to(i, after)
        if over.exact is None:
            self.stack.append(over.item)
        elif over.exact:
            first, *rest = over.exact
            self.stack[-1] = replace(over, exact=tuple(rest))
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


class _Steps(dict[str, Callable[[Reading, dis.Instruction], None]]):
    """What to do at an instruction, by its name."""

    def __missing__(self, name: str) -> Callable[[Reading, dis.Instruction], None]:
        step = Reading.do_jump if "JUMP" in name else getattr(Reading, "do_" + name.lower(), None)
        if step is None:
            raise NotSimpleError
        self[name] = step
        return step


_STEPS = _Steps()
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
