"""Classes of members that are counted (:mod:`enum`): what their members are found by."""

from __future__ import annotations

import enum
from typing import Any

from facula.utils.data._utils.kinds import is_data, is_key
from facula.utils.data._utils.known import ItemOf, Known, NotSimpleError, in_class


def has_members(known: Any) -> bool:
    """Whether it is such a class, and finds its members without code of the program. Flags make
    members when they are asked for."""
    value = known.value if isinstance(known, Known) else None
    if type(value) is not enum.EnumMeta or issubclass(value, enum.Flag):
        return False
    found = getattr(in_class(value, "__new__"), "__func__", in_class(value, "__new__"))
    missing = in_class(value, "_missing_") is vars(enum.Enum)["_missing_"]
    return missing and found is enum.Enum.__new__


def one_of_members(simple: Any, known: Known) -> ItemOf:
    """One of a class's members, whichever."""
    simple.facts.of_class(known.value)
    return ItemOf(simple.known_list(known.value._member_map_))


def member_with(simple: Any, known: Known, key: Any) -> ItemOf:
    """The member that has that name or that value."""
    found = one_of_members(simple, known)
    values = [member._value_ for member in found.values.value]  # which the class's version tells of
    if not is_key(key) or not is_data(Known(values)):
        raise NotSimpleError
    return found
