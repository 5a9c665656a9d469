"""What attributes, items and calls give, of values of which something is known, where nothing is
done but to look things up and to compute. Whatever is not known to be harmless is not simple."""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import random
import types
from collections.abc import Callable
from typing import Any

import numpy

import facula
from facula.utils.data._utils.known import (
    ARRAY,
    NULL,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PLAIN,
    RANGE,
    SLICE,
    TENSOR,
    TEXT,
    WORKER,
    ItemOf,
    Iterator,
    Known,
    Made,
    Method,
    NotSimpleError,
    Tuple,
    are,
    either,
    in_class,
    is_index,
    kind,
)

_OF_NUMBERS = (
    *(int, float, bool, abs, round, min, max, pow, divmod),
    *(math.sqrt, math.sin, math.cos, math.exp, math.log, math.floor, math.ceil, math.pow),
)
_TENSOR_METHODS = (
    *("abs", "add", "bool", "byte", "clamp", "clone", "contiguous", "cos", "div", "double", "exp"),
    *("flatten", "flip", "float", "half", "int", "item", "long", "mean", "mul", "neg", "permute"),
    *("pow", "reshape", "sigmoid", "sin", "size", "sqrt", "squeeze", "sub", "sum", "t", "tanh"),
    *("to", "tolist", "transpose", "unsqueeze", "view"),
)
_ARRAY_METHODS = ("astype", "copy", "flatten", "mean", "reshape", "sum", "transpose")
# What functions may need: the default generators of Facula and of Python, time without limit.
GENERATOR, TWISTER, TIME = "generator", "twister", "time"
_MOST_STEPS = 4000
_MOST_DICTS = 1 << 15
_MOST_CALLED = 16  # objects of a list
_DEEPEST = 8


# Arguments that functions may be given by name: none that is written to or has code of its own.
_NAMES = frozenset(
    ("axis", "copy", "dim", "dtype", "fill_value", "high", "keepdim", "low", "max", "min", "size")
    + ("start", "strict")
)


def _twisters() -> list[Any]:
    """Functions of the module ``random``, as far as they are its own."""
    names = ("random", "uniform", "randint", "randrange", "getrandbits")
    shared = getattr(random, "_inst", random)
    found = [getattr(random, name) for name in names]
    return [f for f in found if getattr(f, "__self__", None) is shared]


@functools.cache
def _known() -> dict[int, tuple[str, Any]]:
    """Functions that are known to do no more than to return something: by their identity, what
    sort they are of, and they themselves."""
    makers = ("zeros", "ones", "full", "arange")
    sorts = {
        "numbers": _OF_NUMBERS,
        "tensor of": (facula.tensor, facula.as_tensor, facula.from_numpy),
        "tensor": [getattr(facula, name) for name in makers],
        "array of": (numpy.array, numpy.asarray),
        "array": [getattr(numpy, name) for name in makers],
        "drawn": (facula.rand, facula.randn, facula.randint, facula.randperm),
        "of twister": _twisters(),
        "tensor method": [getattr(facula.Tensor, name) for name in _TENSOR_METHODS],
        "array method": [getattr(numpy.ndarray, name) for name in _ARRAY_METHODS],
        "worker": (facula.utils.data.get_worker_info,),
        "length": (len,),
        "text": (str,),
    }
    return {id(f): (sort, f) for sort, functions in sorts.items() for f in functions}


def _is_dtype(known: Any) -> bool:
    """Whether numpy knows it as one."""
    if not isinstance(known, Known):
        return False
    value = known.value
    if isinstance(value, type):
        return value in (int, float, bool) or issubclass(value, numpy.generic)
    return isinstance(value, (str, numpy.dtype))


class Simple:
    """What a function does, and those that it calls.

    Args:
        read: what a function returns: of its code, global names, cells and arguments.
        only_looks_up: whether indexing an object with a number does no more than that.
    """

    def __init__(self, read: Callable[..., Any], only_looks_up: Callable[[Any], bool]) -> None:
        self._read, self.only_looks_up = read, only_looks_up
        self.needs: set[str] = set()
        self.steps_left = _MOST_STEPS
        self.depth = 0

    def read(
        self, code: types.CodeType, scope: dict[str, Any], cells: tuple[Any, ...], given: list[Any]
    ) -> Any:
        """What a function of that code returns."""
        if self.depth == _DEEPEST:
            raise NotSimpleError
        self.depth += 1
        result = self._read(code, scope, cells, given, self)
        self.depth -= 1
        return result

    def count_step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise NotSimpleError

    # ---- attributes

    def attribute(self, owner: Any, name: str) -> Any:
        """What ``owner.name`` is."""
        found = kind(owner)
        if isinstance(owner, Known) and found not in (TENSOR, ARRAY):
            return self.attribute_of_value(owner, name)
        if found == TENSOR and name in _TENSOR_METHODS:
            return Known(getattr(facula.Tensor, name))
        if found == ARRAY and name in _ARRAY_METHODS:
            return Known(getattr(numpy.ndarray, name))
        if found in (TENSOR, ARRAY) and name in ("shape", "ndim", "T"):
            return {"shape": NUMBERS, "ndim": NUMBER, "T": found}[name]
        if found == WORKER and name in ("id", "num_workers", "seed"):
            return NUMBER
        raise NotSimpleError

    def attribute_of_value(self, owner: Known, name: str) -> Any:
        value = owner.value
        if isinstance(value, types.ModuleType):
            if name not in vars(value):
                raise NotSimpleError
            return Known(vars(value)[name])
        its_type = type(value)
        looked_up: Any = its_type.__getattribute__
        if looked_up is not object.__getattribute__ or hasattr(its_type, "__getattr__"):
            raise NotSimpleError
        found = in_class(its_type, name)
        if type(found) is property and isinstance(found.fget, types.FunctionType):
            return self.call_function(found.fget, [owner])
        own = getattr(value, "__dict__", None)
        is_method = type(found) is types.FunctionType
        if found is not NULL and hasattr(type(found), "__get__") and not is_method:
            raise NotSimpleError
        if type(own) is dict and name in own:
            return Known(own[name])
        if found is NULL:
            raise NotSimpleError
        return Method(found, owner) if is_method else Known(found)

    # ---- items

    def item(self, container: Any, index: Any) -> Any:
        """What ``container[index]`` is."""
        found = kind(index)
        if isinstance(container, Known):
            value = container.value
            if type(value) in (list, tuple) and found in (NUMBER, PLAIN, TENSOR, ARRAY):
                return ItemOf(container)
            if type(value) in (str, bytes) and found in (NUMBER, SLICE):
                return OPAQUE
            if type(value) is dict and (found == NUMBER or isinstance(index, Known)):
                return self.item_of_dict(value, index)
        of = kind(container)
        if of in (TENSOR, ARRAY) and is_index(index):
            return of
        if of in (RANGE, NUMBERS) and found in (NUMBER, SLICE):
            return NUMBER if found == NUMBER else of
        if of == PLAIN and found in (NUMBER, SLICE):
            return PLAIN
        if isinstance(container, ItemOf) and isinstance(index, Known):
            return self.item_of_any_dict(container.values.value, index.value)
        if isinstance(container, Known):
            if type(container.value) in (list, tuple) and found == SLICE:
                return OPAQUE
            if found == NUMBER and self.only_looks_up(container.value):
                return OPAQUE
        raise NotSimpleError

    def item_of_any_dict(self, values: list[Any], index: Any) -> Any:
        """An item of one of several dicts."""
        keys = itertools.chain.from_iterable
        if type(index) is not str or {*map(type, values)} != {dict}:
            raise NotSimpleError
        if len(values) > _MOST_DICTS or not {*map(type, keys(values))} <= {int, str}:
            raise NotSimpleError
        return OPAQUE

    def item_of_dict(self, values: dict[Any, Any], index: Any) -> Any:
        if isinstance(index, Known) and type(index.value) not in (int, str):
            raise NotSimpleError
        if not {*map(type, values)} <= {int, str}:
            raise NotSimpleError
        if not isinstance(index, Known):
            return OPAQUE
        if index.value not in values:
            raise NotSimpleError
        return Known(values[index.value])

    def iterator(self, over: Any) -> Iterator:
        """What ``iter(over)`` is."""
        if isinstance(over, Iterator):
            return over
        if isinstance(over, Tuple):
            return Iterator(either({*over.items}) if over.items else OPAQUE)
        if isinstance(over, Known):
            value = over.value
            if type(value) in (list, tuple):
                return Iterator(ItemOf(over))
            if type(value) in (str, bytes, dict):
                return Iterator(OPAQUE)
        found = kind(over)
        if found in (RANGE, NUMBERS):
            return Iterator(NUMBER)
        if found in (TENSOR, ARRAY, PLAIN):
            return Iterator(found)
        raise NotSimpleError

    # ---- calls

    def call(self, function: Any, arguments: list[Any], names: tuple[str, ...] = ()) -> Any:
        """What a call returns; the last arguments have these names."""
        if isinstance(function, Known):
            return self.call_value(function, arguments, names)
        if isinstance(function, ItemOf) and len(function.values.value) <= _MOST_CALLED:
            each = [Known(v) for v in function.values.value]
            return either({self.call(f, arguments, names) for f in each})
        if isinstance(function, Method) and not names:
            return self.call_function(function.function, [function.owner, *arguments])
        if isinstance(function, Made) and not names:
            return self.read(function.code, function.scope.value, function.cells, arguments)
        raise NotSimpleError

    def call_value(self, function: Known, arguments: list[Any], names: tuple[str, ...]) -> Any:
        called = function.value
        if id(called) in _known():
            if not _NAMES.issuperset(names):
                raise NotSimpleError
            return self.call_known(called, arguments)
        if called is zip and names == ("strict",):
            arguments, names = arguments[:-1], ()
        if names:
            raise NotSimpleError
        if type(called) is types.FunctionType:
            return self.call_function(called, arguments)
        own = in_class(type(called), "__call__")
        if type(own) is types.FunctionType:
            return self.call_function(own, [function, *arguments])
        is_error = isinstance(called, type) and issubclass(called, BaseException)
        if is_error and vars(builtins).get(called.__name__) is called:
            return OPAQUE
        return self.call_of_iterators(called, arguments)

    def call_function(self, function: types.FunctionType, arguments: list[Any]) -> Any:
        code = function.__code__
        missing = code.co_argcount - len(arguments)
        defaults = function.__defaults__ or ()
        if missing < 0 or missing > len(defaults):
            raise NotSimpleError
        arguments = arguments + [Known(v) for v in defaults[len(defaults) - missing :]]
        try:
            cells = tuple(Known(cell.cell_contents) for cell in function.__closure__ or ())
        except ValueError:  # one of them is empty
            raise NotSimpleError from None
        return self.read(code, function.__globals__, cells, arguments)

    def call_known(self, called: Any, arguments: list[Any]) -> Any:
        """What one of the known functions returns."""
        sort, _ = _known()[id(called)]
        dtypes = (facula.dtype, type(None))
        others = [a for a in arguments if not _is_dtype(a)]
        if sort == "numbers":
            converts = called in (int, float, bool) and len(arguments) == 1
            self.check_arguments(arguments, (), *((TENSOR, ARRAY) if converts else ()))
            return NUMBERS if called is divmod else NUMBER
        if sort == "tensor of":
            self.check_arguments(arguments, dtypes, TENSOR, ARRAY, PLAIN)
        elif sort == "tensor":
            self.check_arguments(arguments, dtypes)
        elif sort == "drawn":
            self.check_arguments(arguments, dtypes)
            self.needs.add(GENERATOR)
        elif sort == "tensor method":
            self.check_arguments(arguments, facula.dtype)
            name = called.__name__
            return {"item": NUMBER, "size": NUMBERS, "tolist": PLAIN}.get(name, TENSOR)
        elif sort == "of twister":
            self.check_arguments(arguments, ())
            self.needs.add(TWISTER)
            return NUMBER
        elif sort == "worker":
            return WORKER
        elif sort == "text":
            self.check_arguments(arguments, ())
            return TEXT
        elif sort == "length":
            return self.length(*arguments) if len(arguments) == 1 else NUMBER
        else:  # arrays
            self.check_arguments(others, (), *((ARRAY, PLAIN) if sort == "array of" else ()))
            return ARRAY
        return TENSOR

    def check_arguments(self, arguments: list[Any], values: Any, *kinds: str) -> None:
        """They must be numbers, of these kinds, or values of these types."""
        for a in arguments:
            known = isinstance(a, Known) and isinstance(a.value, values)
            if not known and kind(a) not in (NUMBER, NUMBERS, *kinds):
                raise NotSimpleError

    def call_of_iterators(self, called: Any, arguments: list[Any]) -> Any:
        if called is range and are(NUMBER, arguments):
            return RANGE
        if called is map and len(arguments) > 1:
            items = [self.iterator(a).item for a in arguments[1:]]
            return Iterator(self.call(arguments[0], items))
        if called is zip:
            return Iterator(Tuple(tuple(self.iterator(a).item for a in arguments)))
        if called is itertools.chain:
            return Iterator(either({self.iterator(a).item for a in arguments} or {OPAQUE}))
        if called is itertools.count and are(NUMBER, arguments):
            return Iterator(NUMBER)
        if not arguments:
            raise NotSimpleError
        first, *rest = arguments
        if called is iter and not rest:
            return self.iterator(first)
        bounds = [a for a in rest if a != Known(None)]
        if called is itertools.islice and are(NUMBER, bounds):
            return self.iterator(first)
        if called is enumerate and are(NUMBER, rest):
            return Iterator(Tuple((NUMBER, self.iterator(first).item)))
        if called is reversed and not rest and kind(first) in (RANGE, NUMBERS):
            return Iterator(NUMBER)
        if rest or not any(called is f for f in (list, tuple, sorted, sum)):
            raise NotSimpleError
        if kind(self.iterator(first).item) != NUMBER:
            raise NotSimpleError
        self.needs.add(TIME)
        return NUMBER if called is sum else NUMBERS

    def length(self, of: Any) -> Any:
        if isinstance(of, Known) and type(of.value) in (list, tuple, dict, str, bytes):
            return NUMBER
        if isinstance(of, Tuple) or kind(of) in (TENSOR, ARRAY, NUMBERS, RANGE):
            return NUMBER
        if not isinstance(of, Known):
            raise NotSimpleError
        function = in_class(type(of.value), "__len__")
        if type(function) is not types.FunctionType:
            raise NotSimpleError
        return self.call_function(function, [of])
