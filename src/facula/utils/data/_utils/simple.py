"""What attributes, items and calls give, of values of which something is known, where nothing is
done but to look things up and to compute. Whatever is not known to be harmless is not simple."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import operator
import pathlib
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import facula
from facula.utils.data._utils.arguments import check, is_host
from facula.utils.data._utils.array_results import arrays_drawn
from facula.utils.data._utils.attributes import MOST_DICTS, Attributes, is_module
from facula.utils.data._utils.files import made_path, method_of_file, method_of_path
from facula.utils.data._utils.harmless import (
    ARRAY_RANDOM_METHODS,
    NAMES,
    RANDOM_METHODS,
    TIME,
    sort_of,
)
from facula.utils.data._utils.immutables import call_of as call_of_object
from facula.utils.data._utils.immutables import is_made, is_method, made
from facula.utils.data._utils.items import Items, are_few
from facula.utils.data._utils.iterables import Iterables
from facula.utils.data._utils.joins import either, leads_to_kept, sites_in
from facula.utils.data._utils.kept import READING, call_of
from facula.utils.data._utils.kinds import is_key, kind
from facula.utils.data._utils.known import (
    BINARY_FILE,
    BYTES,
    FILE,
    NESTED,
    NOTHING,
    NUMBER,
    OPAQUE,
    PATH,
    TENSOR,
    TEXT,
    AlwaysRaisesError,
    Dict,
    ItemOf,
    Iterator,
    Kept,
    Known,
    List,
    Made,
    Method,
    New,
    NotSimpleError,
    Object,
    Several,
    Tuple,
    asked,
    facts_here,
    in_class,
    is_named_tuple,
)
from facula.utils.data._utils.loggers import logs, silent_call
from facula.utils.data._utils.members import has_members, member_with
from facula.utils.data._utils.nested import call_of_nested
from facula.utils.data._utils.objects import Objects, is_plain_class
from facula.utils.data._utils.results import (
    OF_HASHES,
    OWN_ARRAYS,
    OWN_GENERATOR,
    OWN_HASH,
    OWN_TWISTER,
    RESULTS,
)
from facula.utils.data._utils.text_results import OF_PATTERNS, is_pattern

_MOST_STEPS = 4000
_DEEPEST = 8
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
_FUNCTION_OF_PARTIAL = operator.attrgetter("func")
_ARGUMENTS_OF_PARTIAL = operator.attrgetter("args")
_NAMED_OF_PARTIAL = operator.attrgetter("keywords")


def _only_calls_forward(module: Any) -> bool:
    """Whether to call a module is to call the ``forward`` of its class."""
    from facula.nn.modules._hooks import global_hooks_active

    own = vars(module)
    if in_class(type(module), "__call__") is not in_class(facula.nn.Module, "__call__"):
        return False
    if "forward" in own or module._compiled_call_impl is not None:
        return False
    return not global_hooks_active() and not any(own.get(name) for name in _HOOKS)


class Simple(Attributes, Items, Iterables, Objects):
    """What a function does, and those that it calls.

    Args:
        read: what a function returns: of its code, global names, cells and arguments.
        only_looks_up: whether indexing an object with a number does no more than that.
    """

    def __init__(self, read: Callable[..., Any], only_looks_up: Callable[[Any], bool]) -> None:
        self._read, self.only_looks_up = read, only_looks_up
        self.facts = facts_here()
        self.needs: set[str] = set()
        self.steps_left = _MOST_STEPS
        self.depth = 0
        self.may_seed = False  # whether generators may be begun anew
        self.site: Any = None  # where the call stands that is made
        self.changes: Any = None  # what may be written to, if anything may
        self._values: dict[int, Known] = {}
        self._lists: dict[int, Known] = {}
        self._open: dict[Any, Any] = {}  # what functions return, of those that are being read
        self._recursive: set[Any] = set()  # those among them that call themselves

    def known(self, value: Any) -> Known:
        """Of which it is found out only once what is in it."""
        if self.changes is not None:
            self.changes.come_to(value)
        return self.value_known(value)

    def value_known(self, value: Any) -> Known:
        return self._values.setdefault(id(value), Known(value))

    def values(self) -> dict[int, Known]:
        """What has been come upon so far."""
        return self._values

    def read(
        self, code: types.CodeType, scope: dict[str, Any], cells: tuple[Any, ...], given: list[Any]
    ) -> Any:
        """What a function of that code returns."""
        call = id(code), id(scope), cells, tuple(given)
        if call in self._open:
            return self._of_itself(call, code)
        if self.depth == _DEEPEST:
            raise NotSimpleError
        self.depth += 1
        self._open[call] = NOTHING
        try:
            found = self._read(code, scope, cells, given, self)
            while call in self._recursive and found != self._open[call]:
                self._open[call] = found
                found = either({found, self._read(code, scope, cells, given, self)})
            return found
        finally:
            self._recursive.discard(call)
            del self._open[call]
            self.depth -= 1

    def _of_itself(self, call: Any, code: types.CodeType) -> Any:
        """What a function returns that is being read, as far as that is known yet: at first of ways
        on which it does not call itself, then of more, until it is read once more for nothing."""
        known = self._open[call]
        self.needs.add(TIME)
        # What it does to a list that it was given, or goes on with later, would not be seen.
        if any(map(sites_in, (known, *call[2], *call[3]))) or code.co_flags & inspect.CO_GENERATOR:
            raise NotSimpleError
        self._recursive.add(call)
        if known is NOTHING:
            raise AlwaysRaisesError
        return known

    def count_step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise NotSimpleError

    # ---- containers that stay

    def changes_in(self, owner: Any, name: str) -> bool:
        """Whether an attribute is written to."""
        there = self.changes is not None and isinstance(owner, Known)
        return there and (id(owner.value), name) in self.changes.slots

    def is_kept(self, known: Any) -> bool:
        """Whether it is a container that was there before, and may be written to."""
        if isinstance(known, Kept):
            return True
        there = self.changes is not None and isinstance(known, Known)
        return there and self.changes.is_container(known.value)

    def extend_kept(self, known: Any, values: Any) -> Any:
        call_of(self.changes, self, known, "extend", [values], ())
        return Kept(self.changes.kept(known))

    # ---- calls

    def call(self, function: Any, arguments: list[Any], names: tuple[str, ...] = ()) -> Any:
        """What a call returns; the last arguments have these names."""
        if isinstance(function, Known):
            return self.call_value(function, arguments, names)
        if isinstance(function, ItemOf) and asked(are_few, function.values.value):
            self.facts.items(function.values.value)
            each = [*map(self.known, function.values.value)]
            return either({self.call(f, arguments, names) for f in each})
        if isinstance(function, Method):
            return self.call_method(function, arguments, names)
        if isinstance(function, Object):
            return self.call_function(
                self.special(function, "__call__"), [function, *arguments], names
            )
        if isinstance(function, Made) and not names:
            return self.read(function.code, function.scope.value, function.cells, arguments)
        raise NotSimpleError

    def call_method(self, method: Method, arguments: list[Any], names: tuple[str, ...]) -> Any:
        function, owner = method.function, method.owner
        if isinstance(function, types.FunctionType) and not sort_of(function):
            return self.call_function(function, [owner, *arguments], names)
        if not isinstance(function, str):
            return self.call_known(function, [owner, *arguments], names)
        found = kind(owner)
        if found == NESTED and not isinstance(owner, Known) and NAMES.issuperset(names):
            return call_of_nested(function, arguments)
        if isinstance(owner, Known) and logs(owner.value, function):
            return silent_call(method)
        if is_pattern(owner) and not names:
            return OF_PATTERNS[function](self, None, [owner, *arguments], names)
        if found in (FILE, BINARY_FILE) and not names:
            return method_of_file(found, function, arguments)
        if found == PATH:
            self.needs.add(TIME)
            return method_of_path(self, function, arguments, names)
        if function == "from_iterable":
            each = self.iterator(arguments[0])
            return Iterator(self.iterator(each.item).item, each.sites)
        if is_method(owner, function):
            return call_of_object(self, owner, function, arguments)
        if found == OWN_HASH and function in OF_HASHES:
            check(arguments, (), TEXT, BYTES)
            return OF_HASHES[function]
        if found == OWN_GENERATOR and function == "manual_seed":
            check(arguments, ())
            return OWN_GENERATOR
        if found == OWN_TWISTER and function in RANDOM_METHODS and not names:
            return self.drawn_by_own(function, arguments)
        if found == OWN_ARRAYS and function in ARRAY_RANDOM_METHODS and NAMES.issuperset(names):
            return arrays_drawn(self, function, arguments, names)
        in_list = isinstance(owner, Known) and type(owner.value) in (list, tuple) and not names
        if in_list and function in ("index", "count") and len(arguments) == 1:
            if is_key(arguments[0]) and asked(facula._C._are_plain, owner.value):
                return NUMBER
            raise NotSimpleError
        is_dict = isinstance(owner, Known) and type(owner.value) is dict
        if is_dict and function in READING and not names:
            return self.call_of_dict(owner, function, arguments)
        if self.changes is None or any(sites_in(a) or leads_to_kept(a) for a in arguments):
            raise NotSimpleError
        return call_of(self.changes, self, owner, function, arguments, names)

    def drawn_by_own(self, name: str, arguments: list[Any]) -> Any:
        if name == "shuffle":
            if len(arguments) != 1 or not isinstance(arguments[0], List):
                raise NotSimpleError
            return Known(None)
        if name in ("choice", "choices", "sample"):
            item = self.iterator(arguments[0]).item
            check(arguments[1:], ())
            return item if name == "choice" else Several(item)
        check(arguments, ())
        return NUMBER

    def call_of_dict(self, owner: Known, name: str, arguments: list[Any]) -> Any:
        values = owner.value
        if name == "get" and 1 <= len(arguments) <= 2:
            index, *default = arguments
            if not is_key(index) or not asked(facula._C._are_plain, values):
                raise NotSimpleError
            return either({self.one_of_values(values), *(default or [Known(None)])})
        if arguments or asked(len, values) > MOST_DICTS:
            raise NotSimpleError
        if name == "keys":
            return self.iterator(owner)
        inside = self.iterator(self.known_list(values))
        if name == "values":
            return inside
        keys = self.iterator(owner).item
        return Iterator(Tuple((keys, inside.item)))

    def known_list(self, values: dict[Any, Any] | deque[Any]) -> Known:
        """What a dict or a deque holds; of one of them, the same object each time."""
        if id(values) not in self._lists:
            found = list(values.values() if isinstance(values, dict) else values)
            self.facts.answer(facula._C._holds_values, (values, found), True)
            self._lists[id(values)] = Known(found)
        return self._lists[id(values)]

    def call_value(self, function: Known, arguments: list[Any], names: tuple[str, ...]) -> Any:
        called = function.value
        if sort_of(called):
            return self.call_known(called, arguments, names)
        if type(called) is types.FunctionType:
            return self.call_function(called, arguments, names)
        if type(called) is types.MethodType and type(called.__func__) is types.FunctionType:
            given = [self.known(called.__self__), *arguments]
            return self.call_function(called.__func__, given, names)
        if type(called) is functools.partial:
            self.note_partial(called)
            bound, named = map(self.known, called.args), map(self.known, called.keywords.values())
            given = [*bound, *arguments, *named]
            if {*called.keywords} & {*names} or (called.keywords and names):
                raise NotSimpleError
            return self.call(self.known(called.func), given, names or tuple(called.keywords))
        if type(called) is operator.itemgetter and len(arguments) == 1 and not names:
            keys = called.__reduce__()[1]
            found = [self.item(arguments[0], Known(key)) for key in keys]
            return found[0] if len(found) == 1 else Tuple(tuple(found))
        if is_module(called):
            return self.call_module(function, arguments, names)
        if has_members(function) and len(arguments) == 1 and not names:
            return member_with(self, function, arguments[0])
        self.facts.type_of(called)
        own = in_class(type(called), "__call__")
        if type(own) is types.FunctionType:
            return self.call_function(own, [function, *arguments], names)
        if isinstance(called, type):
            self.facts.of_class(called)
        if is_named_tuple(called) and len(arguments) == len(called._fields):
            return named_tuple(called, arguments, names)
        if any(called is t for t in (pathlib.Path, pathlib.PurePath)) and not names:
            return made_path(arguments)
        if is_made(called):
            return made(called, arguments)
        if is_plain_class(called):
            return self.made_object(called, arguments, names)
        if called is zip and names == ("strict",):
            arguments, names = arguments[:-1], ()
        if called is itertools.product and names == ("repeat",):
            return Iterator(Several(either({self.iterator(a).item for a in arguments[:-1]})))
        if any(called is f for f in (min, max, sorted)):
            return self.in_order(called, arguments, names)
        if names:
            raise NotSimpleError
        is_error = isinstance(called, type) and issubclass(called, BaseException)
        if is_error and vars(builtins).get(called.__name__) is called:
            return OPAQUE
        return self.call_of_iterators(called, arguments)

    def note_partial(self, called: functools.partial[Any]) -> None:
        asked(_FUNCTION_OF_PARTIAL, called)
        asked(_ARGUMENTS_OF_PARTIAL, called)
        asked(_NAMED_OF_PARTIAL, called)
        asked(len, called.keywords)
        for name in called.keywords:
            self.facts.item(called.keywords, name)

    def call_module(self, function: Known, arguments: list[Any], names: tuple[str, ...]) -> Any:
        """What an ``nn.Module`` returns, of which nothing but ``forward`` is run."""
        module = function.value
        self.facts.type_of(module)
        forward = in_class(type(module), "forward")
        if type(forward) is not types.FunctionType or not asked(_only_calls_forward, module):
            raise NotSimpleError
        return self.call_function(forward, [function, *arguments], names)

    def call_function(
        self, function: types.FunctionType, arguments: list[Any], names: tuple[str, ...] = ()
    ) -> Any:
        """What a function of Python returns."""
        self.facts.function(function)
        code = function.__code__
        count = len(arguments) - len(names)
        given: dict[str, Any] = dict(zip(names, arguments[count:], strict=True))
        wanted = code.co_varnames[: code.co_argcount]
        rest: list[Any] = arguments[code.co_argcount : count]
        places = arguments[: min(count, code.co_argcount)]
        defaults = function.__defaults__ or ()
        usual = dict(zip(wanted[len(wanted) - len(defaults) :], defaults, strict=True))
        for name in wanted[len(places) :]:
            if name in given:
                places.append(given.pop(name))
            elif name in usual:
                places.append(self.known(usual[name]))
            else:
                raise NotSimpleError
        end = code.co_argcount + code.co_kwonlyargcount
        by_name = function.__kwdefaults__ or {}
        for name in code.co_varnames[code.co_argcount : end]:
            if name not in given and name not in by_name:
                raise NotSimpleError
            places.append(given.pop(name) if name in given else self.known(by_name[name]))
        takes_rest = bool(code.co_flags & inspect.CO_VARARGS)
        takes_names = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        others = Dict(tuple(given.items()), (self.depth, id(code), -1))
        if (
            (given and not takes_names)
            or (rest and not takes_rest)
            or (code.co_posonlyargcount and names)
        ):
            raise NotSimpleError
        if takes_rest:
            places.append(Tuple(tuple(rest)))
        if takes_names:
            places.append(others)
        try:
            for cell in function.__closure__ or ():
                self.facts.cell(cell)
            cells = tuple(self.known(cell.cell_contents) for cell in function.__closure__ or ())
        except ValueError:  # one of them is empty
            raise NotSimpleError from None
        return self.read(code, function.__globals__, cells, places)

    def call_known(self, called: Any, arguments: list[Any], names: tuple[str, ...]) -> Any:
        """What one of the known functions returns."""
        sort = sort_of(called)
        if sort == "drawn" and names == ("generator",) and arguments[-1] == OWN_GENERATOR:
            check(arguments[:-1], facula.dtype)
            return New(TENSOR)
        if "device" in names and is_host(arguments[names.index("device") - len(names)]):
            at = names.index("device") - len(names)
            arguments = [a for k, a in enumerate(arguments, -len(arguments)) if k != at]
            names = tuple(name for name in names if name != "device")
        if not sort or not NAMES.issuperset(names):
            raise NotSimpleError
        if len(arguments) == 0 and sort not in _WITHOUT_ARGUMENTS:
            raise NotSimpleError
        try:
            return RESULTS[sort](self, called, arguments, names)
        except ValueError:  # another number of arguments
            raise NotSimpleError from None


def named_tuple(called: Any, arguments: list[Any], names: tuple[str, ...]) -> Tuple:
    """What its class makes of values, the last of which have these names."""
    by_name = dict(zip(called._fields, arguments[: len(arguments) - len(names)], strict=False))
    for name, value in zip(names, arguments[len(arguments) - len(names) :], strict=True):
        if name in by_name or name not in called._fields:
            raise NotSimpleError
        by_name[name] = value
    return Tuple(tuple(by_name[name] for name in called._fields), called)


_WITHOUT_ARGUMENTS = frozenset(
    ("worker", "no gradient", "of twister", "arrays drawn", "generator", "twister")
    + (
        "array generator",
        "state of generator",
        "clock",
        "drawn",
        "dtype",
        "first seed",
        "hash object",
    )
)
