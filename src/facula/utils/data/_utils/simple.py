"""What attributes, items and calls give, of values of which something is known, where nothing is
done but to look things up and to compute. Whatever is not known to be harmless is not simple."""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import itertools
import logging
import operator
import re
import sys
import types
from _collections import _tuplegetter
from collections.abc import Callable
from typing import Any

import numpy

import facula
from facula.utils.data._utils.files import (
    PATH_METHODS,
    PATH_PARTS,
    is_path,
    method_of_file,
    method_of_path,
)
from facula.utils.data._utils.harmless import (
    ARRAY_METHODS,
    ARRAY_RANDOM_METHODS,
    LEGACY_TYPES,
    NAMES,
    RANDOM_METHODS,
    TENSOR_METHODS,
    TEXT_METHODS,
    TIME,
    sort_of,
)
from facula.utils.data._utils.kept import READING, call_of, item_of, iterator_over
from facula.utils.data._utils.known import (
    ARRAY,
    ARRAYS,
    BINARY_FILE,
    BYTES,
    FILE,
    NESTED,
    NOTHING,
    NULL,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PATH,
    PLAIN,
    RANGE,
    SLICE,
    TENSOR,
    TENSORS,
    TEXT,
    TEXTS,
    WORKER,
    AlwaysRaisesError,
    Dict,
    ItemOf,
    Iterator,
    Kept,
    Known,
    List,
    Made,
    Maybe,
    Method,
    New,
    NotSimpleError,
    PartOf,
    Several,
    Super,
    Tuple,
    are,
    as_new,
    asked,
    either,
    facts_here,
    in_class,
    is_index,
    is_key,
    is_named_tuple,
    kind,
    kind_of_types,
    kinds_of_rows,
    leads_to_kept,
    sites_in,
    types_in,
)
from facula.utils.data._utils.nested import METHODS as NESTED_METHODS
from facula.utils.data._utils.nested import call_of_nested
from facula.utils.data._utils.results import (
    OWN_ARRAYS,
    OWN_GENERATOR,
    OWN_TWISTER,
    RESULTS,
    arrays_drawn,
    check,
    is_pattern,
    text_of_pattern,
    texts_of_pattern,
)
from facula.utils.data.dataset import ChainDataset, IterableDataset

_MOST_STEPS = 4000
_MOST_DICTS = 1 << 15
_MOST_CALLED = 16  # objects of a list
_MOST_ROUNDS = 4  # until a sum of any kind is what it stays
_OF_ENUMS = {"name": "_name_", "value": "_value_"}  # where members keep them
_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}
_OWN_METHODS_OF_LOGGERS = [(name, vars(logging.Logger)[name]) for name in _LEVELS]
_OF_PATTERNS = ("findall", "split", "sub")
_DEEPEST = 8
_METHODS = {TENSOR: (facula.Tensor, TENSOR_METHODS), ARRAY: (numpy.ndarray, ARRAY_METHODS)}
_METHODS[TEXT] = (str, TEXT_METHODS)
_ONE_OF = {NUMBERS: NUMBER, RANGE: NUMBER, TENSORS: TENSOR, ARRAYS: ARRAY, TEXTS: TEXT}
_OWN_METHODS = {OWN_TWISTER: RANDOM_METHODS, OWN_ARRAYS: ARRAY_RANDOM_METHODS}
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
_HELD = ("_parameters", "_buffers", "_modules")


_FUNCTION_OF_PARTIAL = operator.attrgetter("func")
_ARGUMENTS_OF_PARTIAL = operator.attrgetter("args")
_NAMED_OF_PARTIAL = operator.attrgetter("keywords")


def _are_few(values: Any) -> bool:
    return len(values) <= _MOST_CALLED


def _is_module(value: Any) -> bool:
    """Whether it is an ``nn.Module``, of which there is none before that is imported."""
    defined = sys.modules.get("facula.nn.modules.module")
    return defined is not None and isinstance(value, defined.Module)


def _is_plain_logger(value: Any) -> bool:
    if type(value) not in (logging.Logger, logging.RootLogger) or _LEVELS.keys() & vars(value):
        return False
    return all(in_class(logging.Logger, name) is own for name, own in _OWN_METHODS_OF_LOGGERS)


def _logs_at(logger: logging.Logger, level: int) -> bool:
    return logger.isEnabledFor(level)


class Simple:
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

    def known(self, value: Any) -> Known:
        """Of which it is found out only once what is in it."""
        if self.changes is not None:
            self.changes.come_to(value)
        return self._value(value)

    def _value(self, value: Any) -> Known:
        return self._values.setdefault(id(value), Known(value))

    def values(self) -> dict[int, Known]:
        """What has been come upon so far."""
        return self._values

    def read(
        self, code: types.CodeType, scope: dict[str, Any], cells: tuple[Any, ...], given: list[Any]
    ) -> Any:
        """What a function of that code returns."""
        if self.depth == _DEEPEST:
            raise NotSimpleError
        self.depth += 1
        try:
            return self._read(code, scope, cells, given, self)
        finally:
            self.depth -= 1

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

    # ---- attributes

    def attribute(self, owner: Any, name: str) -> Any:
        """What ``owner.name`` is."""
        if isinstance(owner, Maybe):  # None has nothing that is asked for
            owner = owner.of
        found = kind(owner)
        if isinstance(owner, Kept):
            return Method(name, owner)
        if isinstance(owner, Super):
            return self.attribute_of_super(owner, name)
        if found in _METHODS and name in _METHODS[found][1]:
            return Method(getattr(_METHODS[found][0], name), owner)
        if found in (TENSOR, ARRAY) and name in ("shape", "ndim", "T", "dtype", "size"):
            return {"shape": NUMBERS, "T": as_new(owner, found), "dtype": OPAQUE}.get(name, NUMBER)
        if found in (TENSOR, ARRAY, TEXT):
            raise NotSimpleError
        if found in (FILE, BINARY_FILE) or (found == BYTES and name == "decode"):
            return Method(name, owner)
        if name in PATH_METHODS and is_path(owner):
            return Method(name, PATH)
        if name in PATH_PARTS and is_path(owner):
            return PATH_PARTS[name]
        if isinstance(owner, Known):
            return self.attribute_of_value(owner, name)
        if found == WORKER and name in ("id", "num_workers", "seed"):
            return NUMBER
        is_own = isinstance(owner, (List, Dict)) or found in (*_OWN_METHODS, OWN_GENERATOR)
        if is_own:
            return Method(name, owner)
        if found == NESTED and name in NESTED_METHODS:
            return Method(name, NESTED)
        if isinstance(owner, ItemOf):
            return self.attribute_of_items(owner, name)
        raise NotSimpleError

    def attribute_of_items(self, owner: ItemOf, name: str) -> Any:
        """What one of several objects of one class has under that name."""
        values = owner.values.value
        of_enum = bool(values) and isinstance(values[0], enum.Enum) and name in _OF_ENUMS
        if of_enum and in_class(type(values[0]), name) is vars(enum.Enum)[name]:
            name = _OF_ENUMS[name]
        types_found = asked(facula._C._attribute_types, values, name)
        if types_found is not None and kind_of_types(types_found) != OPAQUE:
            return kind_of_types(types_found)
        self.facts.give_up()  # it rests on what is in each of them
        found = facula._C._item_types(values)
        (its_type,) = found if len(found) == 1 else (None,)
        if its_type is None or len(values) > _MOST_DICTS:
            raise NotSimpleError
        getter = in_class(its_type, name)
        looked_up: Any = its_type.__getattribute__
        if looked_up is not object.__getattribute__ and looked_up is not tuple.__getattribute__:
            raise NotSimpleError
        # Fields of named tuples, and what stands in the dicts of objects.
        in_dicts = not hasattr(its_type, "__getattr__") and not hasattr(type(getter), "__get__")
        if type(getter) is not _tuplegetter and not in_dicts:
            raise NotSimpleError
        return kind(ItemOf(Known(list(map(operator.attrgetter(name), values)))))

    def attribute_of_super(self, owner: Super, name: str) -> Any:
        self.facts.type_of(owner.owner.value)
        bases = type(owner.owner.value).__mro__
        for base in bases[bases.index(owner.of) + 1 :]:
            if name in base.__dict__:
                found = base.__dict__[name]
                if type(found) is not types.FunctionType:
                    break
                return Method(found, owner.owner)
        raise NotSimpleError

    def has_none(self, value: Any, name: str) -> bool:
        """Whether an object has no such attribute."""
        self.facts.type_of(value)
        its_type = type(value)
        own = self.facts.attribute(value, name, NULL)
        plain = its_type.__getattribute__ is object.__getattribute__
        if not plain or hasattr(its_type, "__getattr__"):
            raise NotSimpleError
        return in_class(its_type, name) is NULL and own is NULL

    def attribute_of_value(self, owner: Known, name: str) -> Any:
        value = owner.value
        if isinstance(value, types.ModuleType):
            self.facts.item(vars(value), name)
            if value is facula and name in LEGACY_TYPES:
                return self.known(getattr(facula, name))
            if name not in vars(value) and (value is facula or value is numpy):
                getattr(value, name, None)  # parts of them come when somebody asks
                self.facts.item(vars(value), name)
            if name not in vars(value):
                raise NotSimpleError
            return self.known(vars(value)[name])
        if type(value) is type:
            return self.attribute_of_class(value, name)
        its_type = type(value)
        if its_type is dict and name in READING:
            return Method(name, owner)
        if its_type in (list, tuple) and name in ("index", "count"):
            return Method(name, owner)
        if its_type is re.Pattern and name in _OF_PATTERNS:
            return Method(name, owner)
        if name in _LEVELS and _is_plain_logger(value):
            self.facts.type_of(value)
            return Method(name, owner)
        if self.changes is not None and self.changes.is_container(value):
            return Method(name, owner)
        self.facts.type_of(value)
        looked_up: Any = its_type.__getattribute__
        if looked_up is not object.__getattribute__:
            raise NotSimpleError
        if name == "__class__" and in_class(its_type, name) is vars(object)[name]:
            return Known(its_type)
        found = in_class(its_type, name)
        if type(found) is property and isinstance(found.fget, types.FunctionType):
            return self.call_function(found.fget, [owner])
        if type(found) is staticmethod:
            return self.known(found.__func__)
        if type(found) is classmethod and isinstance(found.__func__, types.FunctionType):
            return Method(found.__func__, Known(its_type))
        is_method = type(found) is types.FunctionType
        is_slot = type(found) is types.MemberDescriptorType
        if found is not NULL and hasattr(type(found), "__get__") and not is_method and not is_slot:
            raise NotSimpleError
        if is_slot:
            return self.known(asked(found.__get__, value))
        if self.changes is not None and type(getattr(value, "__dict__", None)) is dict:
            changing = self.changes.load(value, name)
            if changing is not None:
                return changing
        own = self.facts.attribute(value, name, NULL)
        if own is not NULL:
            return self._value(own)
        if found is NULL:
            return self.held_by_module(value, name)
        return Method(found, owner) if is_method else self.known(found)

    def held_by_module(self, value: Any, name: str) -> Any:
        """A parameter, buffer or part of an ``nn.Module``."""
        self.facts.give_up()
        own = in_class(type(value), "__getattr__")
        if not _is_module(value) or own is not vars(facula.nn.Module)["__getattr__"]:
            raise NotSimpleError
        for held in _HELD:
            inside = value.__dict__.get(held)
            if type(inside) is dict and name in inside:
                return self.known(inside[name])
        raise NotSimpleError

    def attribute_of_class(self, owner: type, name: str) -> Any:
        self.facts.of_class(owner)
        found = in_class(owner, name)
        if found is NULL or in_class(type, name) is not NULL:
            raise NotSimpleError
        if type(found) is staticmethod:
            return self.known(found.__func__)
        if type(found) is classmethod and isinstance(found.__func__, types.FunctionType):
            return Method(found.__func__, Known(owner))
        if hasattr(type(found), "__get__") and type(found) is not types.FunctionType:
            raise NotSimpleError
        return self.known(found)

    # ---- items

    def item(self, container: Any, index: Any) -> Any:
        """What ``container[index]`` is."""
        if isinstance(container, Maybe):
            container = container.of
        if isinstance(container, Kept):
            return item_of(container, index)
        found = kind(index)
        in_list = isinstance(container, Known) and type(container.value) in (list, tuple)
        if in_list and found in (NUMBER, PLAIN, TENSOR, ARRAY, NESTED):
            return ItemOf(container)  # before it is found out what all of them are
        if isinstance(container, ItemOf) and isinstance(index, Known):
            of_each = self.item_of_any(container, index.value)
            if of_each is not None:
                return of_each
        of = kind(container)
        if of in (TENSOR, ARRAY) and is_index(index):
            return as_new(container, of)
        if isinstance(container, Tuple) and isinstance(index, Known) and type(index.value) is int:
            if index.value >= len(container.items) or -index.value > len(container.items):
                raise NotSimpleError
            return container.items[index.value]
        if isinstance(container, (List, Several)) and found in (NUMBER, SLICE, NESTED):
            if container.item is NOTHING and found != SLICE:
                raise AlwaysRaisesError
            return container.item if found != SLICE else Several(container.item)
        if isinstance(container, Dict):
            return self.item_of_own_dict(container, index)
        if isinstance(container, Known):
            value = container.value
            if type(value) is dict and is_key(index):
                return self.item_of_dict(value, index)
        if of == TEXT and found in (NUMBER, SLICE):
            return TEXT
        if of == BYTES and found in (NUMBER, SLICE):
            return BYTES if found == SLICE else NUMBER
        if of in _ONE_OF and found in (NUMBER, SLICE):
            return _ONE_OF[of] if found == NUMBER else of
        if of == PLAIN and found in (NUMBER, SLICE):
            return PLAIN
        if of == NESTED and (found == SLICE or is_key(index) or is_index(index)):
            return NESTED
        if isinstance(container, Known):
            if type(container.value) in (list, tuple) and found == SLICE:
                return OPAQUE
            return self.item_of_object(container, index)
        raise NotSimpleError

    def item_of_object(self, container: Known, index: Any) -> Any:
        self.facts.type_of(container.value)
        function = in_class(type(container.value), "__getitem__")
        if type(function) is types.FunctionType:
            try:
                return self.call_function(function, [container, index])
            except NotSimpleError:
                pass
        if kind(index) == NUMBER and self.only_looks_up(container.value):
            return OPAQUE
        raise NotSimpleError

    def item_of_own_dict(self, container: Dict, index: Any) -> Any:
        items = dict(container.items or ())
        if isinstance(index, Known) and type(index.value) in (int, str):
            return items.get(index.value, OPAQUE)
        if not is_key(index):
            raise NotSimpleError
        return either({*items.values()}) if items else OPAQUE

    def item_of_any(self, container: ItemOf, index: Any) -> Any:
        """An item of one of several lists or dicts; None where not all of them have it."""
        if type(index) not in (int, str):
            return None
        of = container.values
        rows = kinds_of_rows(of) if type(index) is str and of.value else {}
        if index in rows:
            of.parts[index] = rows[index]
        elif rows or asked(facula._C._item_types, of.value, index) is None:
            return None
        return PartOf(of, index)

    def item_of_dict(self, values: dict[Any, Any], index: Any) -> Any:
        if not asked(facula._C._are_plain, values):
            raise NotSimpleError
        if not isinstance(index, Known):
            return self.one_of_values(values)
        self.facts.item(values, index.value)
        if index.value not in values:
            raise NotSimpleError
        return self.known(values[index.value])

    def one_of_values(self, values: dict[Any, Any]) -> Any:
        return kind(ItemOf(self.known_list(values)))

    def iterator(self, over: Any) -> Iterator:
        """What ``iter(over)`` is."""
        if isinstance(over, Iterator):
            return over
        if isinstance(over, Maybe):
            over = over.of
        if isinstance(over, Kept):
            return iterator_over(over)
        sites = sites_in(over)
        if isinstance(over, (List, Several)):
            nothing = over.item is NOTHING
            return Iterator(OPAQUE if nothing else over.item, sites, () if nothing else None)
        if isinstance(over, Tuple):
            one = either({*over.items}) if over.items else OPAQUE
            return Iterator(one, sites, over.items if not sites else None)
        if isinstance(over, Dict):
            keys = {kind(Known(key)) for key, _ in over.items or ()}
            return Iterator(either(keys) if keys else OPAQUE, sites)
        if isinstance(over, Known):
            value = over.value
            if type(value) in (list, tuple):
                few = asked(_are_few, value)
                if few:
                    self.facts.items(value)
                return Iterator(ItemOf(over), exact=tuple(map(self.known, value)) if few else None)
            if type(value) in (bytes, dict):
                texts = type(value) is dict and asked(types_in, value) == {str}
                return Iterator(TEXT if texts else OPAQUE)
        found = kind(over)
        if found in _ONE_OF:
            return Iterator(_ONE_OF[found])
        if found in (TENSOR, ARRAY, PLAIN, TEXT, NESTED):
            return Iterator(as_new(over, found))
        if found == BYTES:
            return Iterator(NUMBER)
        if found in (FILE, BINARY_FILE):
            return Iterator(TEXT if found == FILE else BYTES)
        function = None
        if isinstance(over, Known) and type(over.value) is ChainDataset:
            return self.iterator_over_each(over.value)
        if isinstance(over, Known):
            self.facts.type_of(over.value)
            function = in_class(type(over.value), "__iter__")
        if type(function) is types.FunctionType:
            result = self.call_function(function, [over])
            if isinstance(result, Iterator):
                return result
        raise NotSimpleError

    def iterator_over_each(self, chain: ChainDataset) -> Iterator:
        """What iterates over one dataset after the other."""
        self.facts.type_of(chain)
        datasets = self.facts.attribute(chain, "datasets")
        if type(datasets) not in (list, tuple) or not asked(_are_few, datasets):
            raise NotSimpleError
        self.facts.items(datasets)
        if not datasets or not all(isinstance(d, IterableDataset) for d in datasets):
            raise NotSimpleError
        each = [self.iterator(self.known(d)) for d in datasets]
        sites: frozenset[Any] = frozenset()
        return Iterator(either({i.item for i in each}), sites.union(*(i.sites for i in each)))

    # ---- calls

    def call(self, function: Any, arguments: list[Any], names: tuple[str, ...] = ()) -> Any:
        """What a call returns; the last arguments have these names."""
        if isinstance(function, Known):
            return self.call_value(function, arguments, names)
        if isinstance(function, ItemOf) and asked(_are_few, function.values.value):
            self.facts.items(function.values.value)
            each = [*map(self.known, function.values.value)]
            return either({self.call(f, arguments, names) for f in each})
        if isinstance(function, Method):
            return self.call_method(function, arguments, names)
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
        if owner == NESTED and NAMES.issuperset(names):
            return call_of_nested(function, arguments)
        if function in _LEVELS and isinstance(owner, Known) and _is_plain_logger(owner.value):
            if asked(_logs_at, owner.value, _LEVELS[function]):
                raise NotSimpleError
            return Known(None)  # it looks at nothing that it is given
        if is_pattern(owner) and not names:
            called = texts_of_pattern if function != "sub" else text_of_pattern
            return called(self, None, [owner, *arguments], names)
        if found in (FILE, BINARY_FILE) and not names:
            return method_of_file(found, function, arguments)
        if found == PATH:
            self.needs.add(TIME)
            return method_of_path(function, arguments, names)
        if found == BYTES and are(TEXT, arguments):
            return TEXT
        if found == OWN_GENERATOR and function == "manual_seed":
            check(arguments, ())
            return OWN_GENERATOR
        if found == OWN_TWISTER and function in RANDOM_METHODS and not names:
            return self.drawn_by_own(function, arguments)
        if found == OWN_ARRAYS and function in ARRAY_RANDOM_METHODS and NAMES.issuperset(names):
            return arrays_drawn(self, function, arguments, names)
        in_list = isinstance(owner, Known) and type(owner.value) in (list, tuple) and not names
        if in_list and len(arguments) == 1 and is_key(arguments[0]):
            if asked(facula._C._are_plain, owner.value):
                return NUMBER  # where it is, or how often
            raise NotSimpleError
        is_dict = isinstance(owner, Known) and type(owner.value) is dict
        if is_dict and function in READING and not names:
            return self.call_of_dict(owner, function, arguments)
        if self.changes is None or any(sites_in(a) or leads_to_kept(a) for a in arguments):
            raise NotSimpleError
        return call_of(self.changes, self, owner, function, arguments, names)

    def drawn_by_own(self, name: str, arguments: list[Any]) -> Any:
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
        if arguments or asked(len, values) > _MOST_DICTS:
            raise NotSimpleError
        if name == "keys":
            return self.iterator(owner)
        inside = self.iterator(self.known_list(values))
        if name == "values":
            return inside
        keys = self.iterator(owner).item
        return Iterator(Tuple((keys, inside.item)))

    def known_list(self, values: dict[Any, Any]) -> Known:
        """What a dict holds; of one dict, the same object each time."""
        if id(values) not in self._lists:
            found = list(values.values())
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
        if _is_module(called):
            return self.call_module(function, arguments, names)
        self.facts.type_of(called)
        own = in_class(type(called), "__call__")
        if type(own) is types.FunctionType:
            return self.call_function(own, [function, *arguments], names)
        if isinstance(called, type):
            self.facts.of_class(called)
        if is_named_tuple(called) and len(arguments) == len(called._fields):
            return named_tuple(called, arguments, names)
        if called is dict:
            return self.made_dict(arguments, names)
        if called is zip and names == ("strict",):
            arguments, names = arguments[:-1], ()
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
        self.facts.give_up()
        from facula.nn.modules._hooks import global_hooks_active

        module = function.value
        own = vars(module)
        hooks = any(own.get(name) for name in _HOOKS) or global_hooks_active()
        called = in_class(type(module), "__call__")
        if called is not in_class(facula.nn.Module, "__call__") or "forward" in own or hooks:
            raise NotSimpleError
        if module._compiled_call_impl is not None:
            raise NotSimpleError
        forward = in_class(type(module), "forward")
        if type(forward) is not types.FunctionType:
            raise NotSimpleError
        return self.call_function(forward, [function, *arguments], names)

    def made_dict(self, arguments: list[Any], names: tuple[str, ...]) -> Any:
        if len(arguments) != len(names):
            raise NotSimpleError
        return Dict(tuple(zip(names, arguments, strict=True)), self.site)

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
        if not sort or not NAMES.issuperset(names):
            raise NotSimpleError
        if len(arguments) == 0 and sort not in _WITHOUT_ARGUMENTS:
            raise NotSimpleError
        try:
            return RESULTS[sort](self, called, arguments, names)
        except ValueError:  # another number of arguments
            raise NotSimpleError from None

    def call_of_iterators(self, called: Any, arguments: list[Any]) -> Any:
        sites = frozenset().union(*map(sites_in, arguments))
        if called is range and are(NUMBER, arguments):
            return RANGE
        if called is map and len(arguments) > 1:
            items = [self.iterator(a).item for a in arguments[1:]]
            return Iterator(self.call(arguments[0], items), sites)
        if called is zip:
            return Iterator(Tuple(tuple(self.iterator(a).item for a in arguments)), sites)
        if called is itertools.chain:
            return Iterator(either({self.iterator(a).item for a in arguments} or {OPAQUE}), sites)
        if called is itertools.count and are(NUMBER, arguments):
            return Iterator(NUMBER)
        if called in (list, tuple) and not arguments:
            return List(NOTHING, self.site) if called is list else Tuple(())
        if not arguments:
            raise NotSimpleError
        first, *rest = arguments
        if called is iter and not rest:
            return self.iterator(first)
        if called is next and isinstance(first, Iterator) and len(rest) <= 1:
            return either({first.item, *rest})
        bounds = [a for a in rest if a != Known(None)]
        if called is itertools.islice and are(NUMBER, bounds):
            return self.iterator(first)
        if called is enumerate and are(NUMBER, rest):
            return Iterator(Tuple((NUMBER, self.iterator(first).item)), sites)
        if called is reversed and not rest and kind(first) in (RANGE, NUMBERS):
            return Iterator(NUMBER)
        if called is operator.itemgetter and all(isinstance(a, Known) for a in arguments):
            return Known(operator.itemgetter(*(a.value for a in arguments)))
        if called is functools.reduce and 1 <= len(rest) <= 2:
            return self.reduced(first, *rest)
        if rest or not any(called is f for f in (list, tuple, sum, any, all)):
            raise NotSimpleError
        self.needs.add(TIME)
        item = self.iterator(first).item
        if called is list:
            return List(item, self.site) if not sites else Several(item)
        if called is tuple:
            return Several(item)
        if kind(item) == NUMBER:
            return NUMBER
        if called is sum and kind(item) in (TENSOR, ARRAY, NESTED):
            return kind(item)
        if kind(item) == NESTED:
            return NUMBER
        raise NotSimpleError

    def in_order(self, called: Any, arguments: list[Any], names: tuple[str, ...]) -> Any:
        """What ``min``, ``max`` or ``sorted`` returns."""
        given = dict(zip(names, arguments[len(arguments) - len(names) :], strict=True))
        values = arguments[: len(arguments) - len(names)]
        alone = len(values) == 1
        key, default = given.pop("key", Known(None)), given.pop("default", None)
        if called is sorted:
            check([given.pop("reverse", NUMBER)], bool)
        if given or not values or (called is sorted and not alone):
            raise NotSimpleError
        if alone:
            self.needs.add(TIME)
        over = self.iterator(values[0]) if alone else Iterator(either({*values}))
        item = over.item
        if over.exact == ():
            if called is not sorted and default is None:
                raise AlwaysRaisesError
            return List(NOTHING, self.site) if called is sorted else default
        compared = item if key == Known(None) else self.call(key, [item])
        if not is_key(compared):
            raise NotSimpleError
        if called is sorted:
            return List(item, self.site) if not sites_in(item) else Several(item)
        return item if default is None else either({item, default})

    def reduced(self, function: Any, values: Any, *first: Any) -> Any:
        """What ``functools.reduce`` returns."""
        self.needs.add(TIME)
        item = self.iterator(values).item
        found = first[0] if first else item
        for _ in range(_MOST_ROUNDS):
            more = either({found, self.call(function, [found, item])})
            if more == found:
                return found
            found = more
        raise NotSimpleError


def named_tuple(called: Any, arguments: list[Any], names: tuple[str, ...]) -> Tuple:
    """What its class makes of values, the last of which have these names."""
    by_name = dict(zip(called._fields, arguments[: len(arguments) - len(names)], strict=False))
    for name, value in zip(names, arguments[len(arguments) - len(names) :], strict=True):
        if name in by_name or name not in called._fields:
            raise NotSimpleError
        by_name[name] = value
    return Tuple(tuple(by_name[name] for name in called._fields))


_WITHOUT_ARGUMENTS = frozenset(
    ("worker", "no gradient", "of twister", "arrays drawn", "generator", "twister")
    + ("array generator", "clock", "drawn", "first seed")
)
