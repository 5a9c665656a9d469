"""The instructions of a function, and where its exceptions lead to."""

from __future__ import annotations

import dis
import functools
import types
from typing import NamedTuple

_IGNORED = frozenset(
    ("RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL")
)
_QUIET = frozenset(("CALL_INTRINSIC_1", "COPY", "DELETE_FAST", "LOAD_CONST", "POP_EXCEPT"))
_QUIET |= {"POP_TOP", "STORE_FAST", "SWAP"}
# Instructions that raise no exception, or none that the function goes on after.
_SAFE = frozenset(("LOAD_CONST", "LOAD_FAST", "STORE_FAST", "POP_TOP", "COPY", "SWAP"))
_SAFE |= {"JUMP_FORWARD", "JUMP_BACKWARD", "RETURN_VALUE", "KW_NAMES"}
_SAFE |= {"RETURN_CONST", "PUSH_NULL", "BUILD_TUPLE", "PUSH_EXC_INFO"}
_SAFE |= {"POP_EXCEPT", "LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"}


def _only_goes_on(instructions: list[dis.Instruction], first: int) -> bool:
    """Whether a handler of exceptions only puts things in order and lets them go on."""
    for i in instructions[first:]:
        if i.opname in ("RERAISE", "CLEANUP_THROW"):
            return True
        if i.opname not in _QUIET:
            return False
    return False


class Handler(NamedTuple):
    """Where an exception leads to: an instruction, and what stays on the stack."""

    first: int
    depth: int
    with_place: bool  # the place of the exception comes on the stack as well


class Instructions(NamedTuple):
    """What stands in a function."""

    all: list[dis.Instruction]  # that do something
    at: dict[int, int]  # which of them is the next at an offset
    handlers: dict[int, Handler]  # of each instruction that may raise
    loops: bool


@functools.lru_cache(maxsize=256)
def instructions_of(code: types.CodeType) -> Instructions:
    found: list[dis.Instruction] = []
    at = {}
    for i in dis.get_instructions(code):
        at[i.offset] = len(found)
        if i.opname not in _IGNORED:
            found.append(i)
    handlers: dict[int, Handler] = {}
    # To ask for them takes as long as the rest.
    entries = dis.Bytecode(code).exception_entries if code.co_exceptiontable else ()
    for entry in entries:
        if _only_goes_on(found, at[entry.target]):
            continue
        handler = Handler(at[entry.target], entry.depth, entry.lasti)
        for k, i in enumerate(found):
            if entry.start <= i.offset < entry.end and i.opname not in _SAFE:
                handlers[k] = handler
    return Instructions(found, at, handlers, any("BACKWARD" in i.opname for i in found))
