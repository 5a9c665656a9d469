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
import functools
import inspect
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from facula.utils.data._utils.known import (
    ARRAY,
    NULL,
    NUMBER,
    NUMBERS,
    OPAQUE,
    SLICE,
    TENSOR,
    TEXT,
    WORKER,
    ItemOf,
    Iterator,
    Known,
    Made,
    NotSimpleError,
    Tuple,
    either,
    in_class,
    is_plain,
    kind,
)
from facula.utils.data._utils.simple import TIME, Simple

_OPERATORS = frozenset(["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"])
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
_IGNORED = frozenset(
    ("RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL")
)
# Instructions differ from one version of Python to the next; where they are not known, workers do
# it all.
IS_READ = sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))


def _only_goes_on(instructions: list[dis.Instruction], first: int) -> bool:
    """Whether a handler of exceptions only puts things in order and lets them go on."""
    for i in instructions[first:]:
        if i.opname == "RERAISE":
            return True
        to_error = i.opname == "CALL_INTRINSIC_1" and i.arg == 3  # of StopIteration in a generator
        if not to_error and i.opname not in ("SWAP", "POP_TOP", "STORE_FAST"):
            return False
    return False


@functools.lru_cache(maxsize=256)
def _instructions(code: types.CodeType) -> tuple[list[dis.Instruction], dict[int, int]] | None:
    """The instructions of a function, and which of them is at an offset. None where it catches
    exceptions: what it does then does not stand among the rest."""
    found = list(dis.get_instructions(code))
    at = {i.offset: k for k, i in enumerate(found)}
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        if not _only_goes_on(found, at[entry.target]):
            return None
    return found, at


_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_DEPENDING = (
    *("JUMP_IF_TRUE", "JUMP_IF_FALSE", "JUMP_IF_NONE", "JUMP_IF_NOT_NONE"),
    *("WARD_IF_TRUE", "WARD_IF_FALSE", "WARD_IF_NONE", "WARD_IF_NOT_NONE"),
    *("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"),
)


class Reading:
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
        others = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
        others |= inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        read = _instructions(code)
        if code.co_flags & others or code.co_kwonlyargcount or read is None:
            raise NotSimpleError
        if len(arguments) != code.co_argcount:
            raise NotSimpleError
        self.code, self.scope, self.simple = code, scope, simple
        self.instructions, self.at = read
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
        while self.open:
            self.next_one, self.stack, self.places = self.open.pop()
            self.ended = False
            while not self.ended:
                self.step()
        if self.code.co_flags & inspect.CO_GENERATOR:
            return Iterator(either(self.yielded) if self.yielded else OPAQUE)
        if not self.returned:  # it always raises
            raise NotSimpleError
        return either(self.returned)

    def step(self) -> None:
        instruction = self.instructions[self.next_one]
        self.next_one += 1
        self.simple.count_step()
        if instruction.opname not in _IGNORED:
            _STEPS[instruction.opname](self, instruction)

    def is_new(self, i: dis.Instruction, stack: list[Any]) -> bool:
        """Whether something is known where the instruction leads that was not known before."""
        if i.argval <= i.offset:
            self.simple.needs.add(TIME)
        state = i.argval, *stack, *self.places.items()
        known = state in self.seen
        self.seen.add(state)
        return not known

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
        decided = self.is_none(value) if name.endswith("NONE") else self.truth(value)
        if decided is not None and name.endswith(("IF_FALSE", "NOT_NONE", "IF_FALSE_OR_POP")):
            decided = not decided
        kept = before if name.endswith("OR_POP") else list(self.stack)
        if decided is None:
            self.may_go_to(i, kept)
        elif decided:
            self.stack = kept
            self.go_to(i)

    def is_none(self, value: Any) -> bool | None:
        if isinstance(value, Known):
            return value.value is None
        return None if kind(value) == OPAQUE else False

    def truth(self, value: Any) -> bool | None:
        """Whether a value is true; None where that depends."""
        if isinstance(value, Known):
            its_type = type(value.value)
            if its_type in (int, float, bool, str, bytes, list, tuple, dict, range, type(None)):
                return bool(value.value)
            if in_class(its_type, "__bool__") is NULL and in_class(its_type, "__len__") is NULL:
                return True
        found = kind(value)
        if found == WORKER:
            return True
        if found not in (NUMBER, NUMBERS):
            raise NotSimpleError
        return None

    def pop(self, count: int) -> list[Any]:
        if count > len(self.stack):
            raise NotSimpleError
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    # ---- the end, and what comes before it

    def do_return_value(self, i: dis.Instruction) -> None:
        self.returned.update(self.pop(1))
        self.ended = True

    def do_return_const(self, i: dis.Instruction) -> None:
        self.returned.add(Known(i.argval))
        self.ended = True

    def do_raise_varargs(self, i: dis.Instruction) -> None:
        self.ended = True  # whoever makes the batch leaves it to the worker then

    def do_return_generator(self, i: dis.Instruction) -> None:
        self.stack.append(OPAQUE)

    def do_yield_value(self, i: dis.Instruction) -> None:
        self.yielded.update(self.pop(1))
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
        if value is NULL:
            self.places.pop(name, None)
        else:
            self.places[name] = value

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
            if i.argval in scope:
                value = Known(scope[i.argval])
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

    def do_push_null(self, i: dis.Instruction) -> None:
        self.stack.append(NULL)

    def do_pop_top(self, i: dis.Instruction) -> None:
        self.pop(1)

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
        self.stack.append(self.simple.iterator(over))

    def do_for_iter(self, i: dis.Instruction) -> None:
        over = self.stack[-1]
        if not isinstance(over, Iterator):
            raise NotSimpleError
        # From 3.12 on END_FOR takes away what is left.
        after = self.stack[:-1] if sys.version_info < (3, 12) else [*self.stack, NULL]
        self.may_go_to(i, after)
        self.stack.append(over.item)

    def do_end_for(self, i: dis.Instruction) -> None:
        self.pop(2 if sys.version_info < (3, 13) else 1)

    # ---- what makes new values

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
        operands = self.pop(2)
        kinds = {kind(v) for v in operands}
        if name not in _OPERATORS or not kinds <= {NUMBER, TENSOR, ARRAY}:
            raise NotSimpleError
        if len(kinds) == 2 and NUMBER not in kinds:
            raise NotSimpleError
        # In place, a tensor or an array is written to, which may be anybody's.
        if name != i.argrepr and kind(operands[0]) != NUMBER:
            raise NotSimpleError
        self.stack.append((kinds - {NUMBER} or {NUMBER}).pop())

    def do_unary_negative(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        if kind(value) not in (NUMBER, TENSOR, ARRAY):
            raise NotSimpleError
        self.stack.append(kind(value))

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
        elif kind(a) == kind(b) == NUMBER:
            self.stack.append(NUMBER)
        else:
            raise NotSimpleError

    def do_build_tuple(self, i: dis.Instruction) -> None:
        self.stack.append(Tuple(tuple(self.pop(i.arg or 0))))

    def do_build_list(self, i: dis.Instruction) -> None:
        numbers = all(kind(v) == NUMBER for v in self.pop(i.arg or 0))
        self.stack.append(NUMBERS if numbers else OPAQUE)

    def do_list_append(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        if (i.arg or 0) > len(self.stack):
            raise NotSimpleError
        if kind(value) != NUMBER:
            self.stack[-(i.arg or 0)] = OPAQUE

    def do_list_extend(self, i: dis.Instruction) -> None:
        (values,) = self.pop(1)
        if not isinstance(values, Known) or type(values.value) is not tuple or i.arg != 1:
            raise NotSimpleError
        if kind(values) != NUMBERS:
            self.stack[-1] = OPAQUE

    def do_build_map(self, i: dis.Instruction) -> None:
        items = self.pop(2 * (i.arg or 0))
        if not all(isinstance(k, Known) and type(k.value) in (int, str) for k in items[::2]):
            raise NotSimpleError
        self.stack.append(OPAQUE)

    def do_build_const_key_map(self, i: dis.Instruction) -> None:
        *_, keys = self.pop((i.arg or 0) + 1)
        if not all(type(k) in (int, str) for k in keys.value):
            raise NotSimpleError
        self.stack.append(OPAQUE)

    def do_unpack_sequence(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        count = i.arg or 0
        if isinstance(value, Tuple) and len(value.items) == count:
            self.stack += reversed(value.items)
        elif kind(value) in (TENSOR, ARRAY):
            self.stack += [kind(value)] * count
        elif kind(value) == NUMBERS:
            self.stack += [NUMBER] * count
        elif isinstance(value, ItemOf) and {*map(type, value.values.value)} <= {list, tuple}:
            self.stack += [OPAQUE] * count
        else:
            raise NotSimpleError

    def text(self, *parts: Any) -> None:
        if not all(is_plain(v) or kind(v) in (NUMBER, TEXT) for v in parts):
            raise NotSimpleError
        self.stack.append(TEXT)

    def do_format_value(self, i: dis.Instruction) -> None:
        self.text(*self.pop(2 if (i.arg or 0) & 4 else 1))

    def do_format_simple(self, i: dis.Instruction) -> None:
        self.text(*self.pop(1))

    def do_format_with_spec(self, i: dis.Instruction) -> None:
        self.text(*self.pop(2))

    def do_build_string(self, i: dis.Instruction) -> None:
        self.text(*self.pop(i.arg or 0))

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
        self.stack.append(self.simple.call(function, first + arguments, names))

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


def _read(*given: Any) -> Any:
    return Reading(*given).run()


def result_of(
    function: types.FunctionType,
    arguments: list[Any],
    only_looks_up: Callable[[Any], bool],
    needs: set[str],
) -> Any:
    """What is known of what a function returns; a NotSimpleError where it may do something else.

    Args:
        function: the function.
        arguments: what is known of them.
        only_looks_up: whether indexing an object with a number does no more than that.
        needs: is told what it may need.
    """
    if not IS_READ:
        raise NotSimpleError
    simple = Simple(_read, only_looks_up)
    result = simple.call_function(function, arguments)
    needs |= simple.needs
    return result
