"""Files that a function opens, reads and closes: nobody can tell which process did."""

from __future__ import annotations

import csv
import io
import pathlib
from typing import Any

import numpy

from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.kinds import is_dtype, kind
from facula.utils.data._utils.known import (
    ARRAY,
    BINARY_FILE,
    BYTES,
    FILE,
    NESTED,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PATH,
    TEXT,
    TEXTS,
    ItemOf,
    Iterator,
    Known,
    New,
    NotSimpleError,
    Several,
    asked,
    types_in,
)

# What methods of a path return, of texts and paths; those that read a file are opened below.
_OF_PATHS = dict.fromkeys(("absolute", "joinpath", "relative_to", "with_name"), PATH)
_OF_PATHS |= dict.fromkeys(("with_stem", "with_suffix"), PATH)
_OF_PATHS |= dict.fromkeys(("as_posix", "as_uri"), TEXT)
_OF_PATHS |= dict.fromkeys(("exists", "is_absolute", "is_dir", "is_file", "is_relative_to"), NUMBER)
PATH_METHODS = ("open", "read_bytes", "read_text", *_OF_PATHS)
PATH_PARTS: dict[str, Any] = {"name": TEXT, "stem": TEXT, "suffix": TEXT, "parent": PATH}
PATH_PARTS |= {"parts": Several(TEXT), "suffixes": Several(TEXT)}
_PATHS = (pathlib.PosixPath, pathlib.WindowsPath)
_OF_SYSTEM = ("/dev", "/proc", "/sys")
_READING = {"r": FILE, "rt": FILE, "rb": BINARY_FILE, "br": BINARY_FILE}
_OF_FILES = {"close": Known(None), "seek": NUMBER, "tell": NUMBER}
_METHODS = {"read": lambda one: one, "readline": lambda one: one, "readlines": Several}


def is_path(known: Any) -> bool:
    """Whether it is an object that says where a file is, and has no code of the program's."""
    if isinstance(known, Known):
        return type(known.value) in _PATHS
    if isinstance(known, ItemOf):
        return kind(known) == OPAQUE and bool(asked(types_in, known.values.value) <= {*_PATHS})
    return bool(kind(known) == PATH)


def _check_place(known: Any) -> None:
    if kind(known) != TEXT and not is_path(known):
        raise NotSimpleError  # a number may be a file that is open already
    if isinstance(known, Known) and str(known.value).startswith(_OF_SYSTEM):
        raise NotSimpleError  # that may depend on the process


def opened(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``open(place, mode)``"""
    given = dict(zip(("file", "mode"), arguments[: len(arguments) - len(names)], strict=False))
    given.update(zip(names, arguments[len(arguments) - len(names) :], strict=True))
    mode = given.pop("mode", Known("r"))
    _check_place(given.pop("file"))
    for name in ("encoding", "errors", "newline"):
        given.pop(name, None)
    if given or not isinstance(mode, Known) or mode.value not in _READING:
        raise NotSimpleError
    simple.needs.add(TIME)
    return _READING[mode.value]


def joined(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``os.path.join(a, b)``"""
    for a in arguments:
        _check_place(a)
    return TEXT


def array_of_file(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``numpy.load(place)``"""
    (place,) = arguments
    if kind(place) != BINARY_FILE:
        _check_place(place)
    simple.needs.add(TIME)
    return New(ARRAY)


def is_dtype_of_numbers(known: Any) -> bool:
    if kind(known) == TEXT and isinstance(known, Known):
        return numpy.dtype(known.value).kind in "biufc"
    return is_dtype(known) and known != Known(numpy.object_)


def array_of_place(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``numpy.memmap(place, mode="r")``, which may not be written to."""
    count = len(arguments) - len(names)
    given = dict(zip(("filename", "dtype", "mode"), arguments[:count], strict=False))
    given.update(zip(names, arguments[count:], strict=True))
    _check_place(given.pop("filename"))
    mode, dtype = given.pop("mode", None), given.pop("dtype", Known(int))
    if not isinstance(mode, Known) or mode.value != "r" or not is_dtype_of_numbers(dtype):
        raise NotSimpleError
    if count > 3 or not all(kind(a) in (NUMBER, NUMBERS, TEXT) for a in given.values()):
        raise NotSimpleError
    simple.needs.add(TIME)
    return ARRAY


def of_place(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``os.path.exists(place)`` and the like"""
    (place,) = arguments
    _check_place(place)
    simple.needs.add(TIME)
    return NUMBER


def stream(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """A file in memory, which is only read."""
    (inside,) = arguments
    if names or kind(inside) != (BYTES if called is io.BytesIO else TEXT):
        raise NotSimpleError
    return BINARY_FILE if called is io.BytesIO else FILE


def rows_of_text(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``csv.reader(lines)`` or ``csv.DictReader(lines)``"""
    lines, *others = arguments
    if simple.iterator(lines).item != TEXT or len(others) != len(names):
        raise NotSimpleError
    if not all(kind(a) in (TEXT, TEXTS) for a in others):
        raise NotSimpleError
    simple.needs.add(TIME)
    return Iterator(Several(TEXT) if called is csv.reader else NESTED)


def array_of_bytes(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``numpy.frombuffer(bytes)``, which may not be written to."""
    if kind(arguments[0]) != BYTES or not all(isinstance(a, Known) for a in arguments[1:]):
        raise NotSimpleError
    return ARRAY


def method_of_file(owner: str, name: str, arguments: list[Any]) -> Any:
    """What a method of an open file returns."""
    one = TEXT if owner == FILE else BYTES
    if not all(kind(a) == NUMBER for a in arguments):
        raise NotSimpleError
    if name in _OF_FILES:
        return _OF_FILES[name]
    if name not in _METHODS:
        raise NotSimpleError
    return _METHODS[name](one)


def method_of_path(simple: Any, name: str, arguments: list[Any], names: Any) -> Any:
    """What a method of a path returns."""
    if name == "read_bytes" and not arguments:
        return BYTES
    if name == "read_text" and names in ((), ("encoding",)):
        return TEXT
    if name == "open":
        return opened(simple, open, [PATH, *arguments], names)
    if name not in _OF_PATHS or names or not all(kind(a) == TEXT or is_path(a) for a in arguments):
        raise NotSimpleError
    return _OF_PATHS[name]


def made_path(arguments: list[Any]) -> str:
    if not all(kind(a) == TEXT or is_path(a) for a in arguments):
        raise NotSimpleError
    return PATH
