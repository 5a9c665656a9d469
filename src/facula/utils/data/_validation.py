"""Checks of what goes into pipes and comes out of them, by their annotations."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from facula.utils.data.datapipe import IterDataPipe, MapDataPipe, _Registered

__all__ = ["argument_validation", "runtime_validation", "runtime_validation_disabled"]

_enabled = True


class runtime_validation_disabled:
    """From its making to the end of its block, :func:`runtime_validation` checks nothing.

    Example::

        >>> from facula.utils.data import runtime_validation_disabled
        >>> with runtime_validation_disabled():
        ...     pass
    """

    def __init__(self) -> None:
        global _enabled
        self.before, _enabled = _enabled, False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _enabled
        _enabled = self.before


def element_type(pipe: type) -> Any:
    """The type of a pipe's elements, ``int`` for ``class P(IterDataPipe[int])``; Any if unsaid."""
    for cls in pipe.__mro__:
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, _Registered):
                (found,) = get_args(base)
                return Any if isinstance(found, TypeVar) else found
    return Any


def _is_instance(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    origin = get_origin(kind)
    if origin is None:
        return not isinstance(kind, type) or isinstance(value, kind)
    if origin is Union or type(kind).__name__ == "UnionType":
        return any(_is_instance(value, k) for k in get_args(kind))
    if not isinstance(origin, type) or not isinstance(value, origin):
        return not isinstance(origin, type)
    parts = get_args(kind)
    if origin is tuple and not (len(parts) == 2 and parts[1] is Ellipsis):
        return len(value) == len(parts) and all(map(_is_instance, value, parts))
    if origin in (tuple, list, set):
        return all(_is_instance(v, parts[0]) for v in value)
    if origin is dict:
        return all(
            _is_instance(k, parts[0]) and _is_instance(v, parts[1]) for k, v in value.items()
        )
    return True


def _is_subtype(given: Any, wanted: Any) -> bool:
    if wanted is Any or given is wanted:
        return True
    if isinstance(given, type) and isinstance(wanted, type):
        return issubclass(given, wanted)
    if get_origin(wanted) is Union or type(wanted).__name__ == "UnionType":
        options = get_args(wanted)
        kinds = get_args(given) if get_origin(given) is get_origin(wanted) else (given,)
        return all(any(_is_subtype(k, o) for o in options) for k in kinds)
    return bool(given == wanted)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function: arguments that are annotated as pipes must be pipes of such elements.

    Args:
        f: the function.

    Example::

        >>> from facula.utils.data import IterDataPipe, argument_validation
        >>> class Words(IterDataPipe[str]):
        ...     def __iter__(self):
        ...         return iter(["a"])
        >>> @argument_validation
        ... def total(pipe: IterDataPipe[int]):
        ...     return sum(pipe)
        >>> total(Words())
        Traceback (most recent call last):
            ...
        TypeError: total(): argument 'pipe' must be a pipe of <class 'int'>, not of <class 'str'>
    """
    signature = inspect.signature(f)

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        hints = get_type_hints(f)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            kind = get_origin(hint) or hint
            if not isinstance(kind, type) or not issubclass(kind, _Registered):
                continue
            if not isinstance(value, kind):
                raise TypeError(
                    f"{f.__name__}(): argument '{name}' must be a {kind.__name__}, but found "
                    f"{type(value).__name__}"
                )
            wanted = get_args(hint)[0] if get_args(hint) else Any
            given = element_type(type(value))
            if not _is_subtype(given, wanted):
                raise TypeError(
                    f"{f.__name__}(): argument '{name}' must be a pipe of {wanted}, not of {given}"
                )
        return f(*args, **kwargs)

    return checked


def runtime_validation(f: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Decorates the ``__iter__`` of a pipe: what it gives must be of the type the class declares.

    Args:
        f: the method.

    Example::

        >>> from facula.utils.data import IterDataPipe, runtime_validation
        >>> class Numbers(IterDataPipe[int]):
        ...     @runtime_validation
        ...     def __iter__(self):
        ...         yield from [1, "two"]
        >>> list(Numbers())
        Traceback (most recent call last):
            ...
        RuntimeError: Numbers must give elements of <class 'int'>, but gave 'two' of <class 'str'>
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def checked(self: IterDataPipe[Any] | MapDataPipe[Any]) -> Iterator[Any]:
        if not _enabled:
            yield from f(self)
            return
        wanted = element_type(type(self))
        for value in f(self):
            if not _is_instance(value, wanted):
                raise RuntimeError(
                    f"{type(self).__name__} must give elements of {wanted}, but gave {value!r} of "
                    f"{type(value)}"
                )
            yield value

    return checked
