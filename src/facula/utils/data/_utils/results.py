"""What functions return that are known to do nothing else."""

from __future__ import annotations

import abc
import random
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy

import facula
from facula.utils.data._utils.arguments import check, is_host
from facula.utils.data._utils.array_results import ARRAY_RESULTS
from facula.utils.data._utils.collate import DEFAULT_TABLES
from facula.utils.data._utils.files import (
    array_of_bytes,
    array_of_file,
    array_of_place,
    joined,
    of_place,
    opened,
    rows_of_text,
    stream,
)
from facula.utils.data._utils.harmless import (
    ASKED,
    GENERATOR,
    LEGACY_TYPES,
    SEEDED,
    TIME,
    TWISTER,
    finds_twister,
)
from facula.utils.data._utils.immutables import immutable
from facula.utils.data._utils.joins import as_new, either
from facula.utils.data._utils.kinds import is_data, is_key, kind
from facula.utils.data._utils.known import (
    ARRAY,
    ARRAYS,
    BYTES,
    DATA,
    NESTED,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PLAIN,
    RANGE,
    TENSOR,
    TENSORS,
    TEXT,
    TEXTS,
    WORKER,
    Dict,
    ItemOf,
    Kept,
    Known,
    List,
    New,
    NotSimpleError,
    Object,
    Of,
    Several,
    Tuple,
    asked,
    in_class,
)
from facula.utils.data._utils.text_results import TEXT_RESULTS

# Generators that a function has made itself.
OWN_GENERATOR, OWN_TWISTER, OWN_ARRAYS = "own generator", "own twister", "own arrays"
OWN_HASH = "own hash"
OF_HASHES = {"update": Known(None), "hexdigest": TEXT, "digest": BYTES, "copy": OWN_HASH}
CONTEXT = "context"  # of which nobody outside of it notices

_TENSORS = (TENSOR, TENSORS)
_DTYPES = (facula.dtype, type(None))


def _number(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if called is abs and immutable(arguments[0]) is not None:
        found = immutable(arguments[0])
        return NUMBER if found == Of(complex) else found
    converts = called in (int, float, bool, abs, ord) and len(arguments) == 1
    in_base = called is int and len(arguments) == 2  # ``int("ff", 16)``
    check(arguments, (), *((TENSOR, ARRAY, TEXT, BYTES) if converts or in_base else ()))
    if called not in (int, float, bool, ord) and any(kind(a) == NESTED for a in arguments):
        return NESTED
    if called is abs and kind(arguments[0]) != NUMBER:
        return New(kind(arguments[0])) if kind(arguments[0]) != TEXT else OPAQUE
    return NUMBERS if called is divmod else NUMBER


_SIZED = (list, tuple, dict, str, bytes, set, frozenset, deque)


def _length(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    (of,) = arguments
    if isinstance(of, Known) and type(of.value) in _SIZED:
        return NUMBER
    if isinstance(of, Tuple) or kind(of) in (TENSOR, ARRAY, RANGE, TEXT, BYTES, NESTED):
        return NUMBER
    if isinstance(of, (List, Dict, Several, Kept)) or kind(of) in (NUMBERS, TENSORS, ARRAYS, TEXTS):
        return NUMBER
    if isinstance(of, Object):
        return simple.call_function(simple.special(of, "__len__"), [of])
    if not isinstance(of, Known):
        raise NotSimpleError
    simple.facts.type_of(of.value)
    function = in_class(type(of.value), "__len__")
    if type(function) is not types.FunctionType:
        raise NotSimpleError
    return simple.call_function(function, [of])


def _type(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    (of,) = arguments
    if isinstance(of, Known):
        simple.facts.type_of(of.value)
        return Known(type(of.value))
    if isinstance(of, Object):
        return Known(of.type)
    return Of(type) if is_data(of) else OPAQUE  # one without code of the program's


_TYPES_OF_KINDS: dict[str, tuple[type, ...]] = {
    NUMBER: (int, float, bool),
    TENSOR: (facula.Tensor,),
    ARRAY: (numpy.ndarray, numpy.float64, numpy.int64, numpy.bool_),  # or numbers of NumPy
    TEXT: (str,),
    NUMBERS: (list, tuple, facula.Size),
    RANGE: (range,),
}
_NUMBERS_OF_NUMPY: tuple[type, ...] = (
    numpy.generic,
    numpy.number,
    numpy.integer,
    numpy.floating,
    numpy.bool_,
)
_NUMBERS_OF_NUMPY += (numpy.int64, numpy.int32, numpy.float64, numpy.float32)
_OF_DTYPES = [getattr(facula, name) for name in LEGACY_TYPES]
_PLAIN_TYPES = (int, float, bool, str, bytes, list, tuple, dict, set, slice, range)


def _instance(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    of, asked = arguments
    wanted = asked.items if isinstance(asked, Tuple) else (asked,)
    if isinstance(asked, Known) and type(asked.value) is tuple:
        wanted = tuple(map(Known, asked.value))
    known = (*_PLAIN_TYPES, facula.Tensor, numpy.ndarray, *_NUMBERS_OF_NUMPY)
    if all(isinstance(t, Known) and any(t.value is k for k in _OF_DTYPES) for t in wanted):
        if not is_data(of):  # else it depends on the dtype, if it is a tensor
            raise NotSimpleError
        return NUMBER
    for t in wanted:
        if not isinstance(t, Known):
            raise NotSimpleError
        if any(t.value is k for k in known):
            continue
        # A class's own class may have a say in it, unless it is that of most.
        if isinstance(of, Known) and type(t.value) is abc.ABCMeta:
            simple.facts.type_of(of.value)
            if t.value in type(of.value).__mro__ and len(wanted) == 1:
                return Known(True)
        if not isinstance(of, (Known, Object, Of)) or type(t.value) is not type:
            raise NotSimpleError
    asked_for = tuple(t.value for t in wanted)
    if isinstance(of, Object):
        simple.facts.of_class(of.type)
        if in_class(of.type, "__class__") is not vars(object)["__class__"]:
            raise NotSimpleError
    if isinstance(of, (Object, Of)):
        return Known(issubclass(of.type, asked_for))
    if isinstance(of, Known):
        simple.facts.type_of(of.value)
        if in_class(type(of.value), "__class__") is not vars(object)["__class__"]:
            raise NotSimpleError
        return Known(issubclass(type(of.value), asked_for))
    found = _TYPES_OF_KINDS.get(kind(of))
    if isinstance(of, List):
        found = (set, frozenset) if of.type is set else (of.type,)
    for made, its_type in ((Tuple, tuple), (Dict, dict)):
        if isinstance(of, made):
            found = (its_type,)
    if found is None:
        return NUMBER
    if kind(of) == ARRAY and any(t in _NUMBERS_OF_NUMPY for t in asked_for):
        return NUMBER
    fitting = [issubclass(t, asked_for) for t in found]
    return Known(fitting[0]) if len({*fitting}) == 1 else NUMBER


def _is_tensor(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    return _instance(simple, isinstance, [*arguments, Known(facula.Tensor)], ())


def _attribute(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    owner, name, *default = arguments
    if not isinstance(name, Known) or type(name.value) is not str:
        raise NotSimpleError
    if default and simple.changes_in(owner, name.value):
        return either({simple.attribute(owner, name.value), default[0]})
    if default and isinstance(owner, Known) and simple.has_none(owner.value, name.value):
        return default[0]
    return simple.attribute(owner, name.value)


def _has_attribute(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    owner, name = arguments
    if not isinstance(owner, Known) or not isinstance(name, Known) or type(name.value) is not str:
        raise NotSimpleError
    if simple.changes_in(owner, name.value):
        return NUMBER
    found = in_class(type(owner.value), name.value)
    if hasattr(type(found), "__get__") and type(found) is not types.FunctionType:
        raise NotSimpleError  # which may run code
    return Known(not simple.has_none(owner.value, name.value))


def _worker(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    simple.needs.add(ASKED)
    return WORKER


def _context(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if arguments:
        raise NotSimpleError
    return CONTEXT


def _tensor_over(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, _DTYPES, TENSOR, ARRAY, PLAIN, TENSORS)
    first = arguments[0]
    others = kind(first) in (TENSOR, ARRAY, NESTED) and not isinstance(first, New)
    return TENSOR if others else New(TENSOR)


def _tensor_of(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, _DTYPES, TENSOR, ARRAY, ARRAYS, PLAIN, TENSORS, DATA)
    return New(TENSOR)


def _view(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    arguments = [arguments[0], *(a for a in arguments[1:] if not is_host(a))]
    check(arguments, facula.dtype, TENSOR)
    each = arguments[1:] if called.__name__.startswith("atleast") else []
    return as_new(arguments[0], TENSOR, *each)


def _tensor(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, _DTYPES, *_TENSORS)
    return New(TENSOR)


def _tensor_from_nn(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    for a in arguments:  # a number may also be True, which has some write in place
        if kind(a) == NUMBER and (not isinstance(a, Known) or a.value is True):
            raise NotSimpleError
    if any(kind(a) == NESTED for a in arguments[1:]):
        raise NotSimpleError
    check(arguments, (*_DTYPES, str), *_TENSORS)
    return New(TENSOR)


def _dtype(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, ())
    return Of(facula.dtype)


def _grid(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, str, *_TENSORS)
    return Several(TENSOR)


def _contraction(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if kind(arguments[0]) != TEXT:
        raise NotSimpleError
    check(arguments[1:], (), TENSOR)
    return TENSOR


def _packed(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """A packed sequence, of which only the batch knows more."""
    check(arguments, (), *_TENSORS)
    return OPAQUE


def _pair(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR)
    if len(arguments) == 1 and called.__name__ in ("max", "median", "min"):
        return New(TENSOR)
    return Several(New(TENSOR))


def _parts(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR)
    return Several(as_new(arguments[0], TENSOR))


def _of_tensor(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR)
    return NUMBER


def _shape(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR)
    return NUMBERS if len(arguments) == 1 else NUMBER


def _list_of_tensor(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR, ARRAY)
    return PLAIN


def _array_of_tensor(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR)
    return as_new(arguments[0], ARRAY)


def _drawn(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, _DTYPES, TENSOR)
    simple.needs.add(GENERATOR)
    return New(TENSOR)


def _writes(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if not isinstance(arguments[0], New):
        raise NotSimpleError
    check(arguments, (), TENSOR)
    return arguments[0]


def _writes_drawn(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    simple.needs.add(GENERATOR)
    return _writes(simple, called, arguments, names)


def _of_twister(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, ())
    simple.needs.add(TWISTER)
    return NUMBER


def _one_of(simple: Any, values: Any) -> Any:
    """What one of a sequence is."""
    if isinstance(values, Known) and type(values.value) in (list, tuple):
        return ItemOf(values)
    if isinstance(values, Known) and type(values.value) is deque:
        return ItemOf(simple.known_list(values.value))
    if isinstance(values, (List, Several)):
        return values.item
    if isinstance(values, Tuple) and values.items:
        return either({*values.items})
    of_kinds = {RANGE: NUMBER, NUMBERS: NUMBER, TEXT: TEXT, TEXTS: TEXT, NESTED: NESTED}
    found = of_kinds.get(kind(values))
    if found is None:
        raise NotSimpleError
    return found


def _choice(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if len(arguments) != 1:
        raise NotSimpleError
    simple.needs.add(TWISTER)
    return _one_of(simple, arguments[0])


def _choices(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments[1:], ())
    simple.needs.add(TWISTER)
    return Several(_one_of(simple, arguments[0]))


def _numbers_in_order(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``heapq.nlargest(count, values)``"""
    count, values = arguments
    item = simple.iterator(values).item
    if names or kind(count) != NUMBER or not is_key(item):
        raise NotSimpleError
    simple.needs.add(TIME)
    return Several(item)


def _number_of_numbers(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    (values,) = arguments
    if kind(simple.iterator(values).item) != NUMBER:
        raise NotSimpleError
    simple.needs.add(TIME)
    return NUMBER


def _shuffle(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if len(arguments) != 1 or not isinstance(arguments[0], List):
        raise NotSimpleError
    simple.needs.add(TWISTER)
    return Known(None)


def _seeds(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """Outside of what prepares a worker, only of generators of which a worker's takes the place."""
    is_twister = called is random.seed
    if not simple.may_seed and not (is_twister and finds_twister() and arguments):
        raise NotSimpleError
    check(arguments, ())
    simple.needs.add(SEEDED if simple.may_seed else TWISTER)
    return Known(None)


def _seeds_generator(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TENSOR)
    simple.needs.add(SEEDED if simple.may_seed else GENERATOR)
    return OPAQUE


def _state_of_generator(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, ())
    simple.needs.add(GENERATOR)
    return New(TENSOR)


def _sets_generator(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    (state,) = arguments
    if simple.may_seed or kind(state) != TENSOR:
        raise NotSimpleError
    simple.needs.add(GENERATOR)
    return Known(None)


def _first_seed(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    _seeds(simple, called, arguments, names)
    simple.needs.add(ASKED)
    return NUMBER


def _clock(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, ())
    simple.needs.add(ASKED)
    return NUMBER


def _own(found: str) -> Callable[..., Any]:
    def made(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
        check(arguments, ())
        return found

    return made


def _ordered(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), PLAIN)
    return NUMBER


def _nested_of_keys(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``Counter(values)``, which is only read."""
    (values,) = arguments
    if names or not is_key(simple.iterator(values).item):
        raise NotSimpleError
    simple.needs.add(TIME)
    return NESTED


def _hash(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if not all(map(is_key, arguments)):
        raise NotSimpleError
    return NUMBER


def _pickled(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if names or not all(map(is_data, arguments)):
        raise NotSimpleError
    return BYTES


def _batch(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """Of what has no code of the program's, nor is the program told how batches are made of it."""
    if names or not all(map(is_data, arguments)) or not asked(has_own_table):
        raise NotSimpleError
    return NESTED


def has_own_table() -> bool:
    """Whether ``default_collate`` runs no code of the program."""
    return DEFAULT_TABLES[0] == DEFAULT_TABLES[1]


def _hash_object(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), TEXT, BYTES)
    return OWN_HASH


RESULTS: dict[str, Callable[..., Any]] = {
    **ARRAY_RESULTS,
    **TEXT_RESULTS,
    "number": _number,
    "clock": _clock,
    "length": _length,
    "type": _type,
    "instance": _instance,
    "is tensor": _is_tensor,
    "attribute": _attribute,
    "has attribute": _has_attribute,
    "worker": _worker,
    "no gradient": _context,
    "tensor over": _tensor_over,
    "tensor of": _tensor_of,
    "view": _view,
    "tensor": _tensor,
    "tensor from nn": _tensor_from_nn,
    "pair": _pair,
    "parts": _parts,
    "of tensor": _of_tensor,
    "shape": _shape,
    "list of tensor": _list_of_tensor,
    "array of tensor": _array_of_tensor,
    "drawn": _drawn,
    "writes": _writes,
    "writes drawn": _writes_drawn,
    "list of array": _list_of_tensor,
    "of twister": _of_twister,
    "choice": _choice,
    "choices": _choices,
    "shuffle": _shuffle,
    "seeds": _seeds,
    "seeds generator": _seeds_generator,
    "sets generator": _sets_generator,
    "state of generator": _state_of_generator,
    "first seed": _first_seed,
    "generator": _own(OWN_GENERATOR),
    "twister": _own(OWN_TWISTER),
    "array generator": _own(OWN_ARRAYS),
    "ordered": _ordered,
    "nested of keys": _nested_of_keys,
    "hash": _hash,
    "pickled": _pickled,
    "batch": _batch,
    "file": opened,
    "array of place": array_of_place,
    "contraction": _contraction,
    "dtype": _dtype,
    "grid": _grid,
    "number of numbers": _number_of_numbers,
    "numbers in order": _numbers_in_order,
    "of place": of_place,
    "packed": _packed,
    "rows of text": rows_of_text,
    "stream": stream,
    "text of place": joined,
    "hash object": _hash_object,
    "path text": joined,
    "array of file": array_of_file,
    "array of bytes": array_of_bytes,
}
