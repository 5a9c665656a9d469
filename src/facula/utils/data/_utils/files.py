"""Files that a function opens, reads and closes: nobody can tell which process did."""

from __future__ import annotations

import pathlib
from typing import Any

from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.known import (
    ARRAY,
    BINARY_FILE,
    BYTES,
    FILE,
    NUMBER,
    OPAQUE,
    PATH,
    TEXT,
    ItemOf,
    Known,
    New,
    NotSimpleError,
    Several,
    asked,
    kind,
    types_in,
)

PATH_METHODS = ("read_bytes", "read_text")
PATH_PARTS = {"name": TEXT, "stem": TEXT, "suffix": TEXT, "parent": PATH}
_PATHS = (pathlib.PosixPath, pathlib.WindowsPath)
_OF_SYSTEM = ("/dev", "/proc", "/sys")
_READING = {"r": FILE, "rt": FILE, "rb": BINARY_FILE, "br": BINARY_FILE}
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
    given.pop("encoding", None)
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
    _check_place(place)
    simple.needs.add(TIME)
    return New(ARRAY)


def array_of_bytes(simple: Any, called: Any, arguments: list[Any], names: Any) -> Any:
    """``numpy.frombuffer(bytes)``, which may not be written to."""
    if kind(arguments[0]) != BYTES or not all(isinstance(a, Known) for a in arguments[1:]):
        raise NotSimpleError
    return ARRAY


def method_of_file(owner: str, name: str, arguments: list[Any]) -> Any:
    """What a method of an open file returns."""
    one = TEXT if owner == FILE else BYTES
    if name == "close" and not arguments:
        return Known(None)
    if name not in _METHODS or not all(kind(a) == NUMBER for a in arguments):
        raise NotSimpleError
    return _METHODS[name](one)


def method_of_path(name: str, arguments: list[Any], names: Any) -> Any:
    """What a method of a path returns."""
    if name == "read_bytes" and not arguments:
        return BYTES
    if name == "read_text" and names in ((), ("encoding",)):
        return TEXT
    raise NotSimpleError
