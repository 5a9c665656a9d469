"""What libraries ask of PyTorch's symbolic tracer when no trace is taken. Nothing is traced here:
``wrap`` is a mark without effect, and no value is a :class:`Proxy`.

Example::

    >>> @facula.fx.wrap
    ... def size_of(x):
    ...     return len(x)
    >>> size_of([1, 2])
    2
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["Proxy", "wrap"]

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """Marks a function, or the name of one, that a trace would not look into; returns it.

    Example::

        >>> facula.fx.wrap(len) is len
        True
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError(
            f"fx.wrap(): the argument must be a function or its name, not {fn_or_name!r}"
        )
    return fn_or_name


class Proxy:
    """The type of values in a trace, for ``isinstance``; there are none.

    Example::

        >>> isinstance(facula.ones(1), facula.fx.Proxy)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("fx.Proxy: functions are not traced symbolically")
