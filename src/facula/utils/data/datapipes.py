"""Datasets that are built from one another by methods, such as ``numbers.doubled().chunks(2)``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from facula.utils.data.dataset import Dataset, IterableDataset

__all__ = [
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
]

T = TypeVar("T")


class _Registered:
    """Methods that are added by name, to the class and those derived from it."""

    functions: dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Adds a method: ``function`` gets the pipe as its first argument."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Adds a class as a method, which makes an object with the pipe as its source."""
        if function_name in cls.functions:
            raise Exception(  # of the type that PyTorch raises
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )

        @functools.wraps(cls_to_register, updated=())
        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = make


class IterDataPipe(_Registered, IterableDataset):  # type: ignore[type-arg]
    """A dataset that is iterated over and has the methods of :func:`functional_datapipe`.

    Example::

        >>> from facula.utils.data import IterDataPipe
        >>> class Numbers(IterDataPipe):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(Numbers())
        [0, 1, 2]
    """

    functions: dict[str, Callable[..., Any]] = {}

    def reset(self) -> None:
        """Called by programs before another pass; a subclass may have something to do."""


class MapDataPipe(_Registered, Dataset):  # type: ignore[type-arg]
    """A dataset with items by key that has the methods of :func:`functional_datapipe`.

    Example::

        >>> from facula.utils.data import MapDataPipe
        >>> class Squares(MapDataPipe):
        ...     def __getitem__(self, index):
        ...         return index ** 2
        >>> Squares()[3]
        9
    """

    functions: dict[str, Callable[..., Any]] = {}


class functional_datapipe:
    """Makes a class a method of all pipes of its kind.

    Args:
        name: the method's.
        enable_df_api_tracing: accepted.

    Example::

        >>> from facula.utils.data import IterDataPipe, functional_datapipe
        >>> class Numbers(IterDataPipe):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> @functional_datapipe("reference_doubled")
        ... class Doubled(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * x for x in self.source)
        >>> list(Numbers().reference_doubled())
        [0, 2, 4]
        >>> del IterDataPipe.functions["reference_doubled"]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        kinds = [IterDataPipe, MapDataPipe]
        made = cls.cls if isinstance(cls, non_deterministic) else cls
        kind = next((k for k in kinds if isinstance(made, type) and issubclass(made, k)), None)
        if kind is None:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe and MapDataPipe")
        kind.register_datapipe_as_function(self.name, cls)
        return cls


class DataChunk(list[T]):
    """A list of samples that go through a pipe together.

    Example::

        >>> from facula.utils.data import DataChunk
        >>> DataChunk([1, 2]).as_str()
        '[1, 2]'
    """

    def __init__(self, items: Iterable[T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The chunk as text."""
        return indent + "[" + ", ".join(str(item) for item in iter(self)) + "]"

    def __iter__(self) -> Iterator[T]:
        return super().__iter__()

    def raw_iterator(self) -> Iterator[T]:
        """The samples as they were given."""
        yield from self.items


_determinism = False


class guaranteed_datapipes_determinism:
    """While active, pipes that are marked as :class:`non_deterministic` refuse to be made.

    Example::

        >>> from facula.utils.data import guaranteed_datapipes_determinism
        >>> with guaranteed_datapipes_determinism():
        ...     pass
    """

    def __init__(self) -> None:
        global _determinism
        self.before = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _determinism
        _determinism = self.before


class non_deterministic:
    """Marks a pipe whose order may differ from run to run.

    Args:
        arg: the class, or a function of its arguments that says whether the order may differ.

    Example::

        >>> from facula.utils.data import (
        ...     IterDataPipe, guaranteed_datapipes_determinism, non_deterministic
        ... )
        >>> @non_deterministic
        ... class Files(IterDataPipe):
        ...     pass
        >>> with guaranteed_datapipes_determinism():
        ...     Files()
        Traceback (most recent call last):
        TypeError: Files may give its samples in any order, but determinism has been asked for
    """

    cls: Any = None

    def __init__(self, arg: Any) -> None:
        self.may_differ: Callable[..., bool] = lambda *args, **kwargs: True
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, "
                    f"but {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.may_differ = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is None:  # the second step of a decorator with an argument
            if not (args and isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
                raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`")
            self.cls = args[0]
            return self
        if _determinism and self.may_differ(*args, **kwargs):
            raise TypeError(
                f"{self.cls.__name__} may give its samples in any order, but determinism has been "
                "asked for"
            )
        return self.cls(*args, **kwargs)
