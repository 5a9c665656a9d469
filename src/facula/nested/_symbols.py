"""Sizes that differ from one component of a nested tensor to the next."""

from __future__ import annotations

from itertools import count
from typing import Any

from facula import _C
from facula._symbolic import SymInt

_numbers = count(1)


class NestedInt(SymInt):
    """The size of a ragged dimension, ``j1``. It equals itself and no other."""

    def __new__(cls) -> Any:
        self = object.__new__(cls)
        self._number = next(_numbers)
        return self

    _number: int

    def __repr__(self) -> str:
        return f"j{self._number}"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __int__(self) -> int:
        raise RuntimeError(
            f"the size {self} of a nested tensor differs between its components; see offsets()"
        )

    __index__ = __int__


class RaggedSize(tuple[Any, ...]):
    """The shape of a nested tensor: numbers, and one :class:`NestedInt`."""

    def __repr__(self) -> str:
        return f"{_C.Size.__module__.partition('.')[0]}.Size([{', '.join(map(repr, self))}])"


def symbol_of(offsets: Any) -> NestedInt:
    """The size that belongs to offsets; one tensor of offsets has one."""
    found = offsets.__dict__.get("_ragged_size")
    if found is None:
        found = offsets._ragged_size = NestedInt()
    return found
