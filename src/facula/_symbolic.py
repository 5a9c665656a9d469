"""Numbers that stand for sizes not known yet. Facula's sizes are plain numbers, but for one kind.

Programs ask ``isinstance(n, facula.SymInt)`` and call ``sym_max`` and the like on what may be a
symbol; both work. The only symbols are the ragged sizes of nested tensors (``nested/_symbols.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class _Symbol:
    def __new__(cls, *args: Any) -> Any:
        raise TypeError(f"facula.{cls.__name__} has no objects: sizes are plain numbers")


class SymInt(_Symbol):
    """The class of integers that are not known yet: the ragged sizes of nested tensors."""


class SymFloat(_Symbol):
    """The class of floats that are not known yet; nothing is an instance of it."""


class SymBool(_Symbol):
    """The class of truth values that are not known yet; nothing is an instance of it."""


for _class in (SymInt, SymFloat, SymBool):
    _class.__module__ = "facula"


def sym_not(a: Any) -> bool:
    """``not a``.

    Example::

        >>> facula.sym_not(True)
        False
    """
    return not a


def sym_float(a: Any) -> float:
    """``a`` as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """``a`` as an int, rounded towards zero.

    Example::

        >>> facula.sym_int(-2.5)
        -2
    """
    return math.trunc(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float when one of them is a float.

    Example::

        >>> facula.sym_max(3, 2.0)
        3.0
    """
    return _common(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float when one of them is a float."""
    return _common(min(a, b), a, b)


def _common(value: Any, a: Any, b: Any) -> Any:
    return float(value) if isinstance(a, float) or isinstance(b, float) else value


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t`` when ``b`` is true, else ``f``.

    Example::

        >>> facula.sym_ite(2 > 1, 10, 20)
        10
    """
    if type(t) is not type(f):
        raise TypeError(
            f"sym_ite(): both values must be of one type, got {type(t).__name__} and "
            f"{type(f).__name__}"
        )
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """The square root.

    Example::

        >>> facula.sym_sqrt(9)
        3.0
    """
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of several numbers.

    Example::

        >>> facula.sym_sum([1, 2, 3])
        6
    """
    return sum(args)


def sym_fresh_size(expr: Any) -> Any:
    """``expr`` as a number: sizes are always known here.

    Example::

        >>> facula.sym_fresh_size(3)
        3
    """
    if not isinstance(expr, (int, float)):
        raise TypeError(f"sym_fresh_size(): expected a number, got {type(expr).__name__}")
    return expr
