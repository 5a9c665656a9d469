"""Objects of plain classes that a function makes: samples of dataclasses, say."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from facula.utils.data._utils.joins import leads_to_kept, sites_in
from facula.utils.data._utils.known import (
    NULL,
    Known,
    Method,
    NotSimpleError,
    Object,
    in_class,
)

_ANYWHERE = "anywhere", 0, 0  # where no function is read that would make it


def _is_of_python(base: type) -> bool:
    return base is object or (type(base) is type and base.__flags__ & _HEAP_TYPE != 0)


_HEAP_TYPE = 1 << 9
SET_ATTRIBUTE = vars(object)["__setattr__"]


def nothing() -> None:
    """What ``object.__init__`` does."""


def is_frozen(its_type: type) -> bool:
    """Whether it is a dataclass that lets nobody but its ``__init__`` write to its objects."""
    for base in its_type.__mro__:
        if "__setattr__" in base.__dict__:
            return bool(getattr(base.__dict__.get("__dataclass_params__"), "frozen", False))
    return False


def is_plain_class(value: Any) -> bool:
    """Whether nothing but its ``__init__`` makes an object of a class what it is."""
    if type(value) is not type or not all(map(_is_of_python, value.__mro__)):
        return False
    if any(in_class(value, n) is not vars(object)[n] for n in ("__getattribute__", "__new__")):
        return False
    if in_class(value, "__setattr__") is not SET_ATTRIBUTE and not is_frozen(value):
        return False
    if in_class(value, "__getattr__") is not NULL or in_class(value, "__del__") is not NULL:
        return False
    first = in_class(value, "__init__")
    return type(first) is types.FunctionType or first is vars(object)["__init__"]


class Objects:
    """What a :class:`Simple` finds out of them."""

    call_function: Callable[..., Any]
    facts: Any
    known: Callable[[Any], Known]
    site: Any

    def made_object(self, its_type: type, arguments: list[Any], names: tuple[str, ...]) -> Object:
        """What a plain class returns."""
        first = in_class(its_type, "__init__")
        new = Object((), self.site or _ANYWHERE, its_type)
        if type(first) is not types.FunctionType:
            if arguments:
                raise NotSimpleError
            return new
        if any(new.site in sites_in(a) for a in arguments):  # an earlier one that was made there
            raise NotSimpleError
        made = replace(new, made_by=first.__code__)
        found = self.call_function(first, [made, *arguments], names)
        if not isinstance(found, Object):
            raise NotSimpleError
        return found

    def attribute_of_object(self, owner: Object, name: str) -> Any:
        self.facts.of_class(owner.type)
        found, own = in_class(owner.type, name), dict(owner.fields)
        if name == "__class__" and found is vars(object)[name]:
            return Known(owner.type)
        if type(found) is property and isinstance(found.fget, types.FunctionType):
            return self.call_function(found.fget, [owner])
        if hasattr(type(found), "__set__") and type(found) is not types.MemberDescriptorType:
            raise NotSimpleError
        if name in own:
            return own[name]
        if type(found) is types.FunctionType:
            return Method(found, owner)
        if type(found) is staticmethod:
            return self.known(found.__func__)
        if type(found) is classmethod and isinstance(found.__func__, types.FunctionType):
            return Method(found.__func__, Known(owner.type))
        if found is NULL or hasattr(type(found), "__get__"):
            raise NotSimpleError
        return self.known(found)

    def special(self, owner: Object, name: str) -> types.FunctionType:
        """The function by which a class says what is done to its objects."""
        self.facts.of_class(owner.type)
        found = in_class(owner.type, name)
        if type(found) is not types.FunctionType:
            raise NotSimpleError
        return found


def can_be_written_to(owner: Object) -> bool:
    """Whether ``owner.name = value`` does no more than that."""
    return in_class(owner.type, "__setattr__") is SET_ATTRIBUTE


def with_field(owner: Object, name: str, value: Any) -> Object:
    """An object after ``owner.name = value``."""
    found = in_class(owner.type, name)
    if hasattr(type(found), "__set__") and type(found) is not types.MemberDescriptorType:
        raise NotSimpleError  # a property, say
    if owner.site in sites_in(value) or leads_to_kept(value):
        raise NotSimpleError
    return replace(owner, fields=tuple({**dict(owner.fields), name: value}.items()))
