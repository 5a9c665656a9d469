"""The instructions of a function that call others."""

from __future__ import annotations

import copy
import dis
import sys
import types
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from facula import _C
from facula.utils.data._utils.joins import either, sites_in
from facula.utils.data._utils.kept import READING
from facula.utils.data._utils.kinds import kind
from facula.utils.data._utils.known import (
    CLOSES,
    NOTHING,
    NULL,
    OPAQUE,
    Columns,
    Dict,
    ItemOf,
    Iterator,
    Known,
    List,
    Made,
    Method,
    NotSimpleError,
    Object,
    PartOf,
    Several,
    Super,
    Tuple,
    asked,
)
from facula.utils.data._utils.objects import SET_ATTRIBUTE
from facula.utils.data._utils.own_dicts import MAPS
from facula.utils.data._utils.results import CONTEXT
from facula.utils.data._utils.sets import METHODS as SETS_METHODS
from facula.utils.data._utils.sets import is_set

_SET_ATTRIBUTE = Known(SET_ATTRIBUTE)


def common_length(values: Any) -> int | None:
    """How long all of them are, if they are lists or tuples of one length."""
    if not values or type(values[0]) not in (list, tuple):
        return None
    return len(values[0]) if _C._are_of_length(values, len(values[0])) else None


class Calls:
    """What a :class:`Reading` finds out of them."""

    as_dict: Callable[[Any, Any], Dict]
    call_of_map: Callable[..., Any]
    call_of_own: Callable[..., Any]
    cells: dict[str, Any]
    change: Callable[[Any, Any], None]
    code: types.CodeType
    copied: Callable[[dis.Instruction, Any], Any]
    copied_data: Callable[[dis.Instruction, Any, bool], Any]
    given_away: Callable[[Any], Any]
    instructions: list[dis.Instruction]
    next_one: int
    made_list: Callable[..., Any]
    made_map: Callable[..., Any]
    names: tuple[str, ...]
    of_sets: Callable[[dis.Instruction, str, list[Any]], Any]
    places: dict[str, Any]
    pop: Callable[[int], list[Any]]
    push_function: Callable[[Any, int], None]
    scope: dict[str, Any]
    set_in_object: Callable[[Object, str, Any], None]
    simple: Any
    site_at: Callable[[dis.Instruction], Any]
    stack: list[Any]

    def super_of(self, of: Any, owner: Any) -> Super:
        if not isinstance(of, Known) or not isinstance(owner, (Known, Object)):
            raise NotSimpleError
        its_type = owner.type if isinstance(owner, Object) else type(owner.value)
        if isinstance(owner, Known):
            self.simple.facts.type_of(owner.value)
        if not isinstance(of.value, type) or of.value not in its_type.__mro__:
            raise NotSimpleError
        return Super(of.value, owner)

    def do_load_super_attr(self, i: dis.Instruction) -> None:
        called, of, owner = self.pop(3)
        if called != Known(super):
            raise NotSimpleError
        found = self.simple.attribute(self.super_of(of, owner), i.argval)
        self.push_function(found, (i.arg or 0) & 1)

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
        makes = _MAKING.get(id(function.value)) if isinstance(function, Known) else None
        if makes is not None:
            return makes(self, i, function.value, arguments, names)
        if function == _SET_ATTRIBUTE and not names:
            owner, name, value = arguments
            if not isinstance(owner, Object) or not isinstance(name, Known):
                raise NotSimpleError
            self.set_in_object(owner, name.value, value)
            return Known(None)
        if isinstance(function, Method):
            owner = function.owner
            if isinstance(owner, Object) and owner.made_by is self.code:
                try:
                    return self.goes_on_making(owner, function.function, arguments, names)
                except NotSimpleError:  # it may not write to the object, but return something
                    pass
            if self.simple.is_kept(function.owner):
                arguments = self.given_to_kept(function, arguments)
            else:
                made = self.called_of_container(i, function, arguments, names)
                if made is not None:
                    return made
        self.simple.site = self.site_at(i)
        return self.simple.call(function, arguments, names)

    def goes_on_making(
        self, owner: Object, function: Any, arguments: list[Any], names: Any
    ) -> Known:
        """A method of an object that is being made writes to it, too, as ``super().__init__()``."""
        if type(function) is not types.FunctionType:
            raise NotSimpleError
        begun = replace(owner, made_by=function.__code__)
        found = self.simple.call_function(function, [begun, *arguments], names)
        if not isinstance(found, Object):
            raise NotSimpleError
        self.change(owner, replace(found, made_by=self.code))
        return Known(None)

    def given_to_kept(self, method: Method, arguments: list[Any]) -> list[Any]:
        """The container may keep what it is given."""
        if str(method.function).startswith("extend"):
            items = [self.simple.iterator(a).item for a in arguments]
            return [Several(self.given_away(item)) for item in items]
        return arguments if method.function in READING else [*map(self.given_away, arguments)]

    def called_of_container(
        self, i: dis.Instruction, method: Method, arguments: list[Any], names: Any
    ) -> Any:
        """What a method of a list, a set or a dict returns that others have or that was made here;
        None where it is another one."""
        owner, name = method.owner, method.function
        if isinstance(owner, List) and name == "sort":
            self.simple.in_order(sorted, [owner, *arguments], names)
            return Known(None)
        if isinstance(owner, Dict):
            return self.call_of_map(i, name, owner, arguments, names)
        if isinstance(owner, List):
            if names:
                raise NotSimpleError
            return self.call_of_own(i, name, owner, arguments)
        if name == "fromkeys" and owner == Known(dict) and len(arguments) in (1, 2):
            key, *value = self.simple.iterator(arguments[0]).item, *arguments[1:]
            pairs = Several(Tuple((key, value[0] if value else Known(None))))
            return self.as_dict(pairs, self.site_at(i))
        if name == "copy" and not arguments:
            return self.copied(i, owner)
        if type(name) is str and name in SETS_METHODS and is_set(owner) and not names:
            return self.of_sets(i, name, [owner, *arguments])
        return None

    def do_call_function_ex(self, i: dis.Instruction) -> None:
        """``f(*values)``: of zip, any number of values."""
        with_names = (i.arg or 0) & 1
        named = self.pop(1)[0] if with_names else None
        (values,) = self.pop(1)
        function, *first = [v for v in self.pop(2) if v is not NULL]
        if function == Known(zip) and isinstance(values, (List, Several)):
            if named is not None and dict(named.items or ()).keys() != {"strict"}:
                raise NotSimpleError
            self.stack.append(self.columns_of(values.item))
            return
        given, names = [*first, *self.each_of(values)], ()
        if named is not None:
            if not isinstance(named, Dict) or not named.is_exact:
                raise NotSimpleError
            given += named.values()
            names = tuple(k for k, _ in named.items)
        result = self.called(i, function, given, names)
        self.stack.append(result)

    def columns_of(self, row: Any) -> Any:
        """What ``zip`` returns of rows."""
        if row == NOTHING:  # of no rows, or of a list that is yet to be filled
            return Iterator(Several(NOTHING), sites_in(row))
        if not isinstance(row, Tuple):
            return Iterator(Several(self.simple.iterator(row).item), sites_in(row))
        columns = tuple(map(Several, row.items))
        # By a name it would be taken from more than once.
        if self.instructions[self.next_one].opname in ("GET_ITER", "UNPACK_SEQUENCE"):
            return Columns(columns)
        return Iterator(either({*columns}) if columns else OPAQUE, sites_in(row))

    def each_of(self, values: Any) -> list[Any]:
        """What is in a list or a tuple of which the length is known."""
        count = asked(common_length, values.values.value) if isinstance(values, ItemOf) else None
        if count is not None:
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


def _copied(reading: Any, i: dis.Instruction, called: Any, arguments: list[Any], names: Any) -> Any:
    if len(arguments) != 1 or names:
        raise NotSimpleError
    return reading.copied_data(i, arguments[0], called is copy.deepcopy)


# What makes a container, which knows where it was made; by number, since others may have code that
# is run to compare them.
_MAKING: dict[int, Callable[..., Any]] = {
    **{id(m): lambda r, *given: r.made_map(*given) for m in MAPS},
    **{id(t): lambda r, *given: r.made_list(*given) for t in (set, frozenset, deque)},
    **{id(f): _copied for f in (copy.copy, copy.deepcopy)},
}
