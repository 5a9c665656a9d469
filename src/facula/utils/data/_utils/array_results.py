"""What functions of NumPy return that are known to do nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from facula.utils.data._utils.arguments import any_nested, check, check_arrays
from facula.utils.data._utils.files import (
    is_dtype_of_numbers,
)
from facula.utils.data._utils.harmless import (
    ARRAYS_DRAWN,
)
from facula.utils.data._utils.joins import as_new
from facula.utils.data._utils.kinds import is_dtype, kind
from facula.utils.data._utils.known import (
    ARRAY,
    ARRAYS,
    BYTES,
    NESTED,
    NUMBER,
    NUMBERS,
    OPAQUE,
    TENSOR,
    TEXT,
    TEXTS,
    Known,
    List,
    New,
    NotSimpleError,
    OneOf,
    Several,
    Tuple,
)

# How many numbers these take for one that is drawn.
_ONE_NUMBER = dict.fromkeys(("rand", "randn", "random", "random_sample"), 0)
_ONE_NUMBER |= dict.fromkeys(("chisquare", "exponential", "geometric", "poisson"), 1)
_ONE_NUMBER |= dict.fromkeys(("beta", "binomial", "gamma", "gumbel", "laplace", "logistic"), 2)
_ONE_NUMBER |= dict.fromkeys(("lognormal", "normal", "randint", "uniform"), 2)


def _is_of_arrays(known: Any) -> bool:
    """Whether it is numbers and arrays, in lists in lists that the function has made."""
    if isinstance(known, (List, Several)) and getattr(known, "type", list) is list:
        return _is_of_arrays(known.item)
    if isinstance(known, (OneOf, Tuple)):
        inside = known.items if isinstance(known, Tuple) else known.found
        return all(map(_is_of_arrays, inside))
    return kind(known) in (ARRAY, NUMBER, NUMBERS)


def _array_view(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if called is numpy.array and len(arguments) == 2 and kind(arguments[0]) in (TEXT, TEXTS):
        if not is_dtype_of_numbers(arguments[1]):  # else it is an array of texts
            raise NotSimpleError
        return New(ARRAY)
    if called is numpy.array and len(arguments) == 1 and _is_of_arrays(arguments[0]):
        return New(ARRAY)
    check_arrays(arguments, ARRAYS)
    first = arguments[0]
    if any_nested(arguments):
        return NESTED
    copies = called in (numpy.array, numpy.ndarray.astype) and "copy" not in names
    if (copies and len(arguments) <= 2) or kind(first) != ARRAY:
        return New(ARRAY)
    each = arguments[1:] if called.__name__.startswith("atleast") else []
    return as_new(first, ARRAY, *each)


def _ufunc(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if names or len(arguments) > called.nin:
        raise NotSimpleError
    check_arrays(arguments)
    one = NESTED if any_nested(arguments) else New(ARRAY)
    return one if called.nout == 1 else Several(one)


def _array_parts(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check_arrays(arguments)
    return NESTED if any_nested(arguments) else Several(as_new(arguments[0], ARRAY))


def _several_arrays(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check_arrays(arguments, most=3)
    return NESTED if names else Several(New(ARRAY))


def _array_without_nan(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if len(arguments) > 1:  # it may be told to write to the array
        raise NotSimpleError
    return _array(simple, called, arguments, names)


def _array_of_text(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if "sep" not in names:
        raise NotSimpleError
    check([a for a in arguments if not is_dtype(a)], (), TEXT)
    return New(ARRAY)


def _writes_array(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if not isinstance(arguments[0], New) or names:
        raise NotSimpleError
    check(arguments[1:], ())
    return Known(None)


def _bytes_of_array(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), ARRAY)
    return BYTES


def _array(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check_arrays(arguments, ARRAYS, most=2)
    return NESTED if any_nested(arguments) else New(ARRAY)


def _three_arrays(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check_arrays(arguments, most=3)
    return NESTED if any_nested(arguments) else New(ARRAY)


def _scalar(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), ARRAY, TENSOR)
    return NESTED if any_nested(arguments) else New(ARRAY)


def _of_array(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    check(arguments, (), ARRAY)
    return NUMBERS if called is numpy.shape else NUMBER


def _arrays_shuffled(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    (values,) = arguments
    if not isinstance(values, List) and values != New(ARRAY):
        raise NotSimpleError
    if simple is not None:
        simple.needs.add(ARRAYS_DRAWN)
    return Known(None)


def arrays_drawn(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    if called == "shuffle":
        return _arrays_shuffled(None, called, arguments, names)
    check_arrays(arguments)
    if any_nested(arguments):
        raise NotSimpleError
    numbers = all(kind(a) == NUMBER for a in arguments) and "size" not in names
    name = called if isinstance(called, str) else called.__name__
    if numbers and len(arguments) <= _ONE_NUMBER.get(name, -1):
        return NUMBER
    return OPAQUE if name == "bytes" else New(ARRAY)


def _arrays_drawn(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    simple.needs.add(ARRAYS_DRAWN)
    return arrays_drawn(simple, called, arguments, names)


ARRAY_RESULTS: dict[str, Callable[..., Any]] = {
    "array view": _array_view,
    "ufunc": _ufunc,
    "three arrays": _three_arrays,
    "array": _array,
    "scalar": _scalar,
    "of array": _of_array,
    "arrays drawn": _arrays_drawn,
    "array parts": _array_parts,
    "several arrays": _several_arrays,
    "array without nan": _array_without_nan,
    "array of text": _array_of_text,
    "writes array": _writes_array,
    "bytes of array": _bytes_of_array,
    "arrays shuffled": _arrays_shuffled,
}
