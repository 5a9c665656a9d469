"""What attributes are, of values of which something is known."""

from __future__ import annotations

import enum
import functools
import itertools
import operator
import re
import sys
import types
from _collections import _tuplegetter
from collections.abc import Callable
from typing import Any

import numpy

import facula
from facula.utils.data._utils.files import PATH_METHODS, PATH_PARTS, is_path
from facula.utils.data._utils.harmless import (
    ARRAY_METHODS_OF_ALL,
    ARRAY_RANDOM_METHODS,
    LEGACY_TYPES,
    RANDOM_METHODS,
    TENSOR_METHODS,
    TEXT_METHODS,
)
from facula.utils.data._utils.immutables import attribute_of, is_method, of_attribute
from facula.utils.data._utils.joins import as_new
from facula.utils.data._utils.kept import READING
from facula.utils.data._utils.kinds import kind, kind_of_types
from facula.utils.data._utils.known import (
    ARRAY,
    BINARY_FILE,
    FILE,
    LISTS,
    NESTED,
    NULL,
    NUMBER,
    NUMBERS,
    OPAQUE,
    PATH,
    TENSOR,
    TEXT,
    WORKER,
    Dict,
    ItemOf,
    Kept,
    Known,
    List,
    Maybe,
    Method,
    NotSimpleError,
    Object,
    Of,
    Several,
    Super,
    Tuple,
    asked,
    in_class,
)
from facula.utils.data._utils.loggers import logs
from facula.utils.data._utils.nested import METHODS as NESTED_METHODS
from facula.utils.data._utils.objects import SET_ATTRIBUTE, nothing
from facula.utils.data._utils.results import OWN_ARRAYS, OWN_GENERATOR, OWN_HASH, OWN_TWISTER
from facula.utils.data._utils.sets import METHODS as SETS_METHODS

MOST_DICTS = 1 << 15
_OF_ENUMS = {"name": "_name_", "value": "_value_"}  # where members keep them
_OF_PATTERNS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")
_METHODS = {TENSOR: (facula.Tensor, TENSOR_METHODS), ARRAY: (numpy.ndarray, ARRAY_METHODS_OF_ALL)}
_METHODS[TEXT] = (str, TEXT_METHODS)
_METHODS_OF_CONTAINERS: dict[type, Any] = {
    dict: (*READING, "copy"),
    list: ("index", "count", "copy"),
    tuple: ("index", "count"),
    set: SETS_METHODS,
    frozenset: SETS_METHODS,
}
_OWN_METHODS = {OWN_TWISTER: RANDOM_METHODS, OWN_ARRAYS: ARRAY_RANDOM_METHODS}
_NUMBERS_OF = ("nbytes", "ndim", "size")
_OWN = (*_OWN_METHODS, OWN_GENERATOR, OWN_HASH)
_OF_PAIRS = ("indices", "max", "min", "values")  # what sort(), aminmax() and the like return
_HELD = ("_parameters", "_buffers", "_modules")


def _has_own(name: str) -> Callable[[Any], bool]:
    return lambda value: name in getattr(value, "__dict__", ())


def is_module(value: Any) -> bool:
    """Whether it is an ``nn.Module``, of which there is none before that is imported."""
    defined = sys.modules.get("facula.nn.modules.module")
    return defined is not None and isinstance(value, defined.Module)


class Attributes:
    """What a :class:`Simple` finds out of them."""

    attribute_of_object: Callable[[Object, str], Any]
    call_function: Callable[..., Any]
    changes: Any
    changes_in: Callable[[Any, str], bool]
    facts: Any
    known: Callable[[Any], Known]
    value_known: Callable[[Any], Known]

    def attribute(self, owner: Any, name: str) -> Any:
        """What ``owner.name`` is."""
        if isinstance(owner, Maybe):  # None has nothing that is asked for
            owner = owner.of
        found = kind(owner)
        if isinstance(owner, Kept):
            return Method(name, owner)
        if isinstance(owner, Tuple) and owner.type is not None:
            self.facts.of_class(owner.type)
            if type(in_class(owner.type, name)) is not _tuplegetter:
                raise NotSimpleError
            return owner.items[owner.type._fields.index(name)]
        if isinstance(owner, Object):
            return self.attribute_of_object(owner, name)
        if isinstance(owner, Super):
            return self.attribute_of_super(owner, name)
        if isinstance(owner, Several) and name in _OF_PAIRS and kind(owner.item) == TENSOR:
            return owner.item  # lists of tensors have none of these
        if found in _METHODS and name in _METHODS[found][1]:
            return Method(getattr(_METHODS[found][0], name), owner)
        if found in (TENSOR, ARRAY) and name in (*_NUMBERS_OF, "shape", "T", "dtype"):
            dtype = Of(facula.dtype if found == TENSOR else numpy.dtype)
            return {"shape": NUMBERS, "T": as_new(owner, found), "dtype": dtype}.get(name, NUMBER)
        if found == TENSOR and name == "device":
            return Known(facula.device("cpu"))
        if found in (FILE, BINARY_FILE) or is_method(owner, name):
            return Method(name, owner)
        if found in (TENSOR, ARRAY, TEXT):
            raise NotSimpleError
        if name in PATH_METHODS and is_path(owner):
            return Method(name, PATH)
        if name in PATH_PARTS and is_path(owner):
            return PATH_PARTS[name]
        of_object = attribute_of(owner, name) if found == OPAQUE else None
        if of_object is not None:
            return of_object
        if isinstance(owner, Known):
            return self.attribute_of_value(owner, name)
        if found == WORKER and name in ("id", "num_workers", "seed"):
            return NUMBER
        is_own = isinstance(owner, (List, Dict)) or found in _OWN
        if is_own:
            return Method(name, owner)
        if found == NESTED and name in NESTED_METHODS:
            return Method(name, owner)
        if found in LISTS and name == "copy":
            return Method(name, owner)
        if isinstance(owner, ItemOf):
            return self.attribute_of_items(owner, name)
        raise NotSimpleError

    def attribute_of_items(self, owner: ItemOf, name: str) -> Any:
        """What one of several objects of one class has under that name."""
        values = owner.values.value
        if self.changes is not None:  # what is written to may be one of them, and is copied
            if len(values) > MOST_DICTS:
                raise NotSimpleError
            self.facts.items(values)
            for value in values:
                self.changes.come_to(value)
        if values and issubclass(type(values[0]), enum.Enum):
            name = _OF_ENUMS[name] if self.is_of_enum(type(values[0]), name) else name
        types_found = asked(facula._C._attribute_types, values, name)
        if types_found is not None and kind_of_types(types_found) != OPAQUE:
            return kind_of_types(types_found)
        if types_found is not None and of_attribute(owner, name) is not None:
            return of_attribute(owner, name)
        self.facts.give_up()  # it rests on what is in each of them
        found = facula._C._item_types(values)
        (its_type,) = found if len(found) == 1 else (None,)
        if its_type is None or len(values) > MOST_DICTS:
            raise NotSimpleError
        getter = in_class(its_type, name)
        looked_up: Any = its_type.__getattribute__
        if looked_up is not object.__getattribute__ and looked_up is not tuple.__getattribute__:
            raise NotSimpleError
        if type(getter) is types.FunctionType and not any(map(_has_own(name), values)):
            return Method(getter, owner)
        # Fields of named tuples, and what stands in the dicts of objects.
        in_dicts = not hasattr(its_type, "__getattr__") and not hasattr(type(getter), "__get__")
        if type(getter) is not _tuplegetter and not in_dicts:
            raise NotSimpleError
        return kind(ItemOf(Known(list(map(operator.attrgetter(name), values)))))

    def is_of_enum(self, its_type: type, name: str) -> bool:
        """Whether it is the name or the value of a member, and not the program's own."""
        return name in _OF_ENUMS and in_class(its_type, name) is vars(enum.Enum)[name]

    def attribute_of_super(self, owner: Super, name: str) -> Any:
        if isinstance(owner.owner, Object):
            bases = owner.owner.type.__mro__
        else:
            self.facts.type_of(owner.owner.value)
            bases = type(owner.owner.value).__mro__
        for base in bases[bases.index(owner.of) + 1 :]:
            if name in base.__dict__:
                found = base.__dict__[name]
                if found is vars(object)["__init__"]:
                    return Known(nothing)
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
        if issubclass(its_type, enum.Enum) and self.is_of_enum(its_type, name):
            self.facts.type_of(value)
            return self.known(self.facts.attribute(value, _OF_ENUMS[name]))
        if its_type is enum.EnumMeta:
            return self.member_of(value, name)
        if name in _METHODS_OF_CONTAINERS.get(its_type, ()):
            return Method(name, owner)
        if its_type is re.Pattern and name in _OF_PATTERNS:
            return Method(name, owner)
        if logs(value, name):
            self.facts.type_of(value)
            return Method(name, owner)
        if self.changes is not None and self.changes.is_container(value):
            return Method(name, owner)
        self.facts.type_of(value)
        looked_up: Any = its_type.__getattribute__
        if looked_up is not object.__getattribute__ and its_type is not types.SimpleNamespace:
            raise NotSimpleError
        if name == "__class__" and in_class(its_type, name) is vars(object)[name]:
            return Known(its_type)
        found = in_class(its_type, name)
        if type(found) is property and isinstance(found.fget, types.FunctionType):
            return self.call_function(found.fget, [owner])
        # What the object has itself comes before these.
        is_method = type(found) in (types.FunctionType, staticmethod, classmethod)
        is_slot = type(found) is types.MemberDescriptorType
        if type(found) is functools.cached_property:  # it has been computed already
            own = self.facts.attribute(value, name, NULL)
            if own is NULL or (self.changes is not None and self.changes_in(owner, name)):
                raise NotSimpleError
            return self.value_known(own)
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
            return self.value_known(own)
        if found is NULL:
            return self.held_by_module(value, name)
        if type(found) is staticmethod:
            return self.known(found.__func__)
        if type(found) is classmethod:
            if not isinstance(found.__func__, types.FunctionType):
                raise NotSimpleError
            return Method(found.__func__, Known(its_type))
        return Method(found, owner) if is_method else self.known(found)

    def member_of(self, owner: Any, name: str) -> Any:
        """What a class of members that are counted has under that name; members stay."""
        self.facts.of_class(owner)
        members = owner.__dict__.get("_member_map_")
        if type(members) is dict and name in members:
            self.facts.item(members, name)
            return self.known(members[name])
        return self.in_class_itself(owner, name)

    def held_by_module(self, value: Any, name: str) -> Any:
        """A parameter, buffer or part of an ``nn.Module``."""
        own = in_class(type(value), "__getattr__")
        if not is_module(value) or own is not vars(facula.nn.Module)["__getattr__"]:
            raise NotSimpleError
        for held in _HELD:
            inside = self.facts.attribute(value, held)
            if type(inside) is not dict:
                raise NotSimpleError
            self.facts.item(inside, name)
            if name in inside:
                return self.known(inside[name])
        raise NotSimpleError

    def attribute_of_class(self, owner: type, name: str) -> Any:
        self.facts.of_class(owner)
        if owner is object and name == "__setattr__":
            return Known(SET_ATTRIBUTE)
        if (owner is itertools.chain and name == "from_iterable") or (
            owner is dict and name == "fromkeys"
        ):
            return Method(name, Known(owner))
        return self.in_class_itself(owner, name)

    def in_class_itself(self, owner: type, name: str) -> Any:
        found = in_class(owner, name)
        if found is NULL or in_class(type(owner), name) is not NULL:
            raise NotSimpleError
        if type(found) is staticmethod:
            return self.known(found.__func__)
        if type(found) is classmethod and isinstance(found.__func__, types.FunctionType):
            return Method(found.__func__, Known(owner))
        if hasattr(type(found), "__get__") and type(found) is not types.FunctionType:
            raise NotSimpleError
        return self.known(found)
