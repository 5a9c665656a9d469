"""Datasets that only look things up in memory: nobody can tell which process does that.

Such a dataset is a list, tensors, one of those of this package over such datasets, or of a class
whose ``__getitem__`` is read here, instruction by instruction, as far as it is simple: attributes
of the dataset, indexing, numbers, containers of these, and functions that are known to do nothing
else than to return something. Whatever is not known to be harmless is not simple.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import facula
from facula import _C
from facula.utils.data._utils.collate import KNOWN_TABLES, default_collate
from facula.utils.data._utils.fetch import getitem_of, rows_fetcher, rows_of_memory
from facula.utils.data.dataset import ConcatDataset, StackDataset, Subset, TensorDataset


class _Known(NamedTuple):
    """A value that is there already."""

    value: Any


# What is known of others. An opaque one is passed on, nothing else.
_NUMBER, _NUMBERS, _TENSOR, _ARRAY = "number", "numbers", "tensor", "array"
_OPAQUE, _NULL = "opaque", "null"

_OF_NUMBERS = (int, float, bool, abs, round, min, max, math.sqrt, math.sin, math.cos)
_TENSOR_METHODS = (
    *("bool", "byte", "clone", "contiguous", "double", "flatten", "float", "half", "int", "item"),
    *("long", "reshape", "squeeze", "t", "transpose", "unsqueeze", "view"),
)
_OPERATORS = frozenset(["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"])
_IGNORED = ("RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "COPY_FREE_VARS", "NOT_TAKEN")
_JUMPS: dict[str, Callable[[Any], bool]] = {
    "IF_FALSE": operator.not_,
    "IF_TRUE": bool,
    "IF_NONE": lambda v: v is None,
    "IF_NOT_NONE": lambda v: v is not None,
}


class _NotSimpleError(Exception):
    pass


@functools.cache
def _makers() -> tuple[Any, ...]:
    names = ("tensor", "as_tensor", "from_numpy", "zeros", "ones", "full", "arange")
    return tuple(getattr(facula, name) for name in names)


@functools.cache
def _methods() -> tuple[Any, ...]:
    return tuple(getattr(facula.Tensor, name) for name in _TENSOR_METHODS)


def _is_one_of(value: Any, others: tuple[Any, ...]) -> bool:
    return any(value is other for other in others)


def _is_plain_tensor(t: Any) -> bool:
    return type(t) is facula.Tensor and not t.requires_grad and t.device.type == "cpu"


def _kind(known: _Known | str) -> str:
    """What is known of something: of a value, or already that."""
    if not isinstance(known, _Known):
        return known
    value = known.value
    if type(value) in (int, float, bool):
        return _NUMBER
    if _is_plain_tensor(value):
        return _TENSOR
    if type(value) is numpy.ndarray and value.dtype.kind in "biufc":
        return _ARRAY
    if type(value) in (list, tuple) and all(type(v) in (int, float, bool) for v in value[:32]):
        return _NUMBERS if len(value) <= 32 else _OPAQUE
    return _OPAQUE


def _attribute(owner: Any, name: str) -> Any:
    """What ``owner.name`` is, where that runs no code."""
    if not isinstance(owner, _Known):
        if owner == _TENSOR and name in _TENSOR_METHODS:
            return _Known(getattr(facula.Tensor, name))
        raise _NotSimpleError
    value = owner.value
    if isinstance(value, types.ModuleType):
        if name not in vars(value):
            raise _NotSimpleError
        return _Known(vars(value)[name])
    kind = type(value)
    if _is_plain_tensor(value):
        return _attribute(_TENSOR, name)
    looked_up: Any = kind.__getattribute__
    if looked_up is not object.__getattribute__ or hasattr(kind, "__getattr__"):
        raise _NotSimpleError
    found = inspect.getattr_static(kind, name, _NULL)
    if found is not _NULL and hasattr(type(found), "__get__"):
        raise _NotSimpleError
    own = getattr(value, "__dict__", None)
    if type(own) is dict and name in own:
        return _Known(own[name])
    if found is _NULL:
        raise _NotSimpleError
    return _Known(found)


def _item(container: Any, index: Any) -> Any:
    """What ``container[index]`` is."""
    if isinstance(container, _Known):
        value = container.value
        if type(value) is range and _kind(index) == _NUMBER:
            return _NUMBER
        if type(value) in (list, tuple, str, bytes) and _kind(index) == _NUMBER:
            return _OPAQUE
        if type(value) is dict and (_kind(index) == _NUMBER or type(index) is _Known):
            if type(index) is _Known and type(index.value) not in (int, str):
                raise _NotSimpleError
            keys = {*map(type, value)}
            if keys <= {int, str}:
                return _Known(value[index.value]) if type(index) is _Known else _OPAQUE
            raise _NotSimpleError
        if _kind(container) not in (_TENSOR, _ARRAY):
            if _kind(index) == _NUMBER and _only_looks_up(value):
                return _OPAQUE
            raise _NotSimpleError
    if _kind(container) in (_TENSOR, _ARRAY) and _kind(index) in (_NUMBER, _NUMBERS):
        return _kind(container)
    raise _NotSimpleError


def _result(function: Any, arguments: list[Any]) -> Any:
    """What a call returns."""
    if not isinstance(function, _Known):
        raise _NotSimpleError
    called = function.value
    kinds = [_kind(a) for a in arguments]
    if _is_one_of(called, _OF_NUMBERS) and all(k == _NUMBER for k in kinds):
        return _NUMBER
    if _is_one_of(called, _makers()):
        for a, kind in zip(arguments, kinds, strict=True):
            known = isinstance(a, _Known) and isinstance(a.value, (facula.dtype, type(None)))
            if kind == _OPAQUE and not known:
                raise _NotSimpleError
        return _TENSOR
    if _is_one_of(called, _methods()) and all(k in (_NUMBER, _NUMBERS) for k in kinds):
        return _NUMBER if called is facula.Tensor.item else _TENSOR
    raise _NotSimpleError


@functools.lru_cache(maxsize=64)
def _instructions(code: types.CodeType) -> tuple[list[dis.Instruction], dict[int, int]]:
    """The instructions of a function, and which of them is at an offset."""
    found = list(dis.get_instructions(code))
    return found, {i.offset: k for k, i in enumerate(found)}


class _Reading:
    """Goes through the instructions of a function of a dataset and an index."""

    def __init__(self, function: types.FunctionType, dataset: Any) -> None:
        code = function.__code__
        plain = code.co_argcount == 2 and not code.co_kwonlyargcount
        if not plain or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            raise _NotSimpleError
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) or code.co_cellvars:
            raise _NotSimpleError
        self.function = function
        self.places: dict[str, Any] = {
            code.co_varnames[0]: _Known(dataset),
            code.co_varnames[1]: _NUMBER,
        }
        self.stack: list[Any] = []

    def run(self) -> None:
        """Returns when the function would; raises where an instruction is not simple."""
        instructions, at = _instructions(self.function.__code__)
        next_one = 0
        for _ in range(len(instructions)):  # no loops
            instruction = instructions[next_one]
            next_one += 1
            name = instruction.opname
            if name in _IGNORED:
                continue
            if name in ("RETURN_VALUE", "RETURN_CONST"):
                return
            if "JUMP" in name:
                if self.jumps(name):
                    next_one = at[instruction.argval]
                continue
            step = getattr(self, "do_" + name.lower(), None)
            if step is None:
                raise _NotSimpleError
            step(instruction)
        raise _NotSimpleError

    def jumps(self, name: str) -> bool:
        if name in ("JUMP_FORWARD", "JUMP_ABSOLUTE"):
            return True
        test = _JUMPS.get(name.removeprefix("POP_JUMP_").removeprefix("FORWARD_"))
        value = self.stack.pop()
        if test is None or not isinstance(value, _Known):
            raise _NotSimpleError
        if "NONE" not in name and type(value.value) not in (bool, int, float, str, type(None)):
            raise _NotSimpleError
        return test(value.value)

    def pop(self, count: int) -> list[Any]:
        if count > len(self.stack):
            raise _NotSimpleError
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    # ---- loads and stores

    def local(self, name: str) -> None:
        if name not in self.places:
            raise _NotSimpleError
        self.stack.append(self.places[name])

    def do_load_fast(self, i: dis.Instruction) -> None:
        for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
            self.local(name)

    do_load_fast_borrow = do_load_fast_check = do_load_fast
    do_load_fast_load_fast = do_load_fast_borrow_load_fast_borrow = do_load_fast

    def do_store_fast(self, i: dis.Instruction) -> None:
        for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
            (self.places[name],) = self.pop(1)

    do_store_fast_store_fast = do_store_fast

    def do_load_const(self, i: dis.Instruction) -> None:
        self.stack.append(_Known(i.argval))

    do_load_small_int = do_load_const

    def push_function(self, value: Any, with_null: int) -> None:
        """What may be called comes with a place for the object that it is a method of."""
        if not with_null:
            self.stack.append(value)
        elif sys.version_info >= (3, 13):
            self.stack += [value, _NULL]
        else:
            self.stack += [_NULL, value]

    def do_load_global(self, i: dis.Instruction) -> None:
        for scope in (self.function.__globals__, vars(builtins)):
            if i.argval in scope:
                value = _Known(scope[i.argval])
                self.push_function(value, sys.version_info >= (3, 11) and (i.arg or 0) & 1)
                return
        raise _NotSimpleError

    def do_load_deref(self, i: dis.Instruction) -> None:
        names = self.function.__code__.co_freevars
        cells = self.function.__closure__ or ()
        try:
            self.stack.append(_Known(cells[names.index(i.argval)].cell_contents))
        except (ValueError, IndexError):
            raise _NotSimpleError from None

    def do_load_attr(self, i: dis.Instruction) -> None:
        (owner,) = self.pop(1)
        with_null = sys.version_info >= (3, 12) and (i.arg or 0) & 1
        self.push_function(_attribute(owner, i.argval), with_null)

    def do_load_method(self, i: dis.Instruction) -> None:
        (owner,) = self.pop(1)
        self.push_function(_attribute(owner, i.argval), 1)

    def do_push_null(self, i: dis.Instruction) -> None:
        self.stack.append(_NULL)

    def do_pop_top(self, i: dis.Instruction) -> None:
        self.pop(1)

    # ---- what makes new values

    def do_binary_subscr(self, i: dis.Instruction) -> None:
        self.stack.append(_item(*self.pop(2)))

    def do_binary_op(self, i: dis.Instruction) -> None:
        if i.argrepr == "[]":
            self.do_binary_subscr(i)
            return
        kinds = {_kind(v) for v in self.pop(2)}
        if i.argrepr not in _OPERATORS or not kinds <= {_NUMBER, _TENSOR, _ARRAY}:
            raise _NotSimpleError
        if len(kinds) == 2 and _NUMBER not in kinds:
            raise _NotSimpleError
        self.stack.append((kinds - {_NUMBER} or {_NUMBER}).pop())

    def do_unary_negative(self, i: dis.Instruction) -> None:
        (value,) = self.pop(1)
        if _kind(value) not in (_NUMBER, _TENSOR, _ARRAY):
            raise _NotSimpleError
        self.stack.append(_kind(value))

    def do_build_tuple(self, i: dis.Instruction) -> None:
        items = self.pop(i.arg or 0)
        numbers = all(_kind(v) == _NUMBER for v in items)
        self.stack.append(_NUMBERS if numbers else _OPAQUE)

    do_build_list = do_build_tuple

    def do_build_map(self, i: dis.Instruction) -> None:
        items = self.pop(2 * (i.arg or 0))
        if not all(isinstance(k, _Known) and type(k.value) in (int, str) for k in items[::2]):
            raise _NotSimpleError
        self.stack.append(_OPAQUE)

    def do_build_const_key_map(self, i: dis.Instruction) -> None:
        *_, keys = self.pop((i.arg or 0) + 1)
        if not all(type(k) in (int, str) for k in keys.value):
            raise _NotSimpleError
        self.stack.append(_OPAQUE)

    def do_kw_names(self, i: dis.Instruction) -> None:
        """The names belong to the last arguments, all of which are looked at alike."""

    def do_call(self, i: dis.Instruction) -> None:
        arguments = self.pop(i.arg or 0)
        functions = [v for v in self.pop(2) if v is not _NULL]
        if len(functions) != 1:
            raise _NotSimpleError
        self.stack.append(_result(functions[0], arguments))

    def do_call_kw(self, i: dis.Instruction) -> None:
        self.pop(1)
        self.do_call(i)


def _only_looks_up(dataset: Any) -> bool:
    kind = type(dataset)
    if kind in (list, tuple, range):
        return True
    if kind is TensorDataset:
        return all(map(_is_plain_tensor, dataset.tensors))
    if kind is Subset:
        return type(dataset.indices) in (list, tuple, range) and _only_looks_up(dataset.dataset)
    if kind is ConcatDataset:
        return all(map(_only_looks_up, dataset.datasets))
    if kind is StackDataset:
        parts = dataset.datasets
        return all(map(_only_looks_up, parts.values() if isinstance(parts, dict) else parts))
    if isinstance(dataset, (list, tuple, dict)) or hasattr(kind, "__getitems__"):
        return False
    function = inspect.getattr_static(kind, "__getitem__", None)
    if not isinstance(function, types.FunctionType) or "__getitems__" in vars(dataset):
        return False
    try:
        _Reading(function, dataset).run()
    except _NotSimpleError:
        return False
    return True


def lookups_of(dataset: Any) -> Callable[[Any], Any] | None:
    """Makes a batch of samples that are looked up in memory, from their indices, with
    :func:`default_collate`; None where there may be more to it. It raises what a worker would, and
    where samples turn out to be of types that may have code of their own."""
    if not _only_looks_up(dataset):
        return None
    fetch = _C._Fetch(getitem_of(dataset), None, default_collate, KNOWN_TABLES, False)
    rows = rows_of_memory(dataset, default_collate)
    return fetch if rows is None else rows_fetcher(rows, fetch)
