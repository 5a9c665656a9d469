"""Datasets that are chained by methods: ``source.doubled().shuffled()``.

A class that :func:`functional_datapipe` registers becomes a method of all pipes of its kind; the
method makes one, with the pipe it is called on as the first argument.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from facula.utils.data.dataset import Dataset, IterableDataset

__all__ = [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _Registered:
    """Methods by registration, for each kind of pipe its own."""

    functions: dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        found = type(self).functions.get(name)
        if found is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(found, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function of a pipe a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any) -> None:
        """Makes a class of pipes a method; a name can be given once."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register


class IterDataPipe(_Registered, IterableDataset[_T_co]):
    """A pipe that is iterated over: a subclass has ``__iter__``.

    Example::

        >>> from facula.utils.data import IterDataPipe, functional_datapipe
        >>> @functional_datapipe("doubled")
        ... class Doubled(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         for x in self.source:
        ...             yield 2 * x
        >>> class Count(IterDataPipe):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(Count().doubled().doubled())
        [0, 4, 8]
    """

    functions: dict[str, Callable[..., Any]] = {}

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError("Subclasses of IterDataPipe should implement __iter__.")

    def reset(self) -> None:
        """Called by pipes that begin anew; a subclass may override it."""

    def __repr__(self) -> str:
        return type(self).__qualname__


class DFIterDataPipe(IterDataPipe[_T_co]):
    """A pipe whose elements are pieces of data frames.

    Example::

        >>> from facula.utils.data import DFIterDataPipe
        >>> class Frames(DFIterDataPipe):
        ...     def __iter__(self):
        ...         return iter([{"a": 1}])
        >>> list(Frames()), Frames()._is_dfpipe()
        ([{'a': 1}], True)
    """

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Registered, Dataset[_T_co]):
    """A pipe that is indexed: a subclass has ``__getitem__``, and ``__len__`` for most uses."""

    functions: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return type(self).__qualname__


class functional_datapipe:
    """Decorates a class of pipes, which becomes a method of all pipes of its kind.

    Args:
        name: of the method.
        enable_df_api_tracing: accepted for PyTorch's sake.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        pipe = getattr(cls, "cls", cls)  # of a class that is marked as non_deterministic
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(pipe, type) and issubclass(pipe, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError(
            f"functional_datapipe can only decorate an IterDataPipe or a MapDataPipe, got {cls!r}"
        )


class DataChunk(list[_T]):
    """A list of samples that a pipe gives as one."""

    def as_str(self, indent: str = "") -> str:
        """The samples in brackets."""
        return f"{indent}[{', '.join(map(str, self))}]"

    @property
    def items(self) -> list[_T]:
        return list(self)

    def raw_iterator(self) -> Iterator[_T]:
        """Goes over the samples as they are."""
        return super().__iter__()


_guaranteed = False


class guaranteed_datapipes_determinism:
    """From its making to the end of its block, pipes that are marked as
    :class:`non_deterministic` are refused."""

    def __init__(self) -> None:
        global _guaranteed
        self.before, _guaranteed = _guaranteed, True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _guaranteed
        _guaranteed = self.before


class non_deterministic:
    """Marks a class of pipes whose samples, or order, are random.

    Args:
        arg: the class; or a function of its arguments that says whether such a pipe is random, and
            then the result decorates the class.

    Example::

        >>> import random
        >>> from facula.utils.data import (
        ...     IterDataPipe, guaranteed_datapipes_determinism, non_deterministic
        ... )
        >>> @non_deterministic
        ... class Dice(IterDataPipe):
        ...     def __iter__(self):
        ...         yield random.randint(1, 6)
        >>> len(list(Dice()))
        1
        >>> with guaranteed_datapipes_determinism():
        ...     Dice()
        Traceback (most recent call last):
        TypeError: Dice is non-deterministic, but 'guaranteed_datapipes_determinism' is set
    """

    def __init__(self, arg: type[IterDataPipe[Any]] | Callable[..., bool]) -> None:
        self.cls: type[IterDataPipe[Any]] | None = None
        self.is_random: Callable[..., bool] | None = None
        if isinstance(arg, type):
            self._decorate(arg)
        elif callable(arg):
            self.is_random = arg
        else:
            raise TypeError(f"non_deterministic cannot decorate {arg!r}")

    def _decorate(self, cls: Any) -> None:
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            raise TypeError(f"only an IterDataPipe can be decorated, got {cls!r}")
        self.cls = cls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is None:
            self._decorate(args[0])
            return self
        random = True
        if self.is_random is not None:
            random = self.is_random(*args, **kwargs)
            if not isinstance(random, bool):
                raise TypeError(
                    f"the function of non_deterministic should return a bool, got {random!r}"
                )
        if random and _guaranteed:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic, but "
                "'guaranteed_datapipes_determinism' is set"
            )
        return self.cls(*args, **kwargs)
