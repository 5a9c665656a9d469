"""Dictionaries that do not keep their keys alive and tell keys apart by identity, not by value."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, MutableMapping
from copy import deepcopy
from typing import Any

from facula import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
    "WeakTensorRefKey",
]


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that is equal to another when both refer to one object.

    Tensors compare element by element, so ordinary references to them are no keys.
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], None] | None = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is not None and isinstance(other, weakref.ref):
            theirs = other()
            if theirs is not None:
                return mine is theirs
        return self is other


WeakTensorRefKey = WeakIdRef


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A mapping from objects, by identity, that forgets an entry when its key dies.

    Args:
        dict: a mapping to start from.
        ref_type: the class of the references.

    Example::

        >>> from facula.utils.weak import WeakIdKeyDictionary
        >>> a, b = facula.ones(2), facula.ones(2)
        >>> names = WeakIdKeyDictionary({a: "a"})
        >>> a in names, b in names
        (True, False)
        >>> del a
        >>> len(names)
        0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        self_ref = weakref.ref(self)

        def forget(key: Any) -> None:
            owner = self_ref()
            if owner is not None:
                owner.data.pop(key, None)

        self._remove = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # takes no weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        # Over a copy: keys may die meanwhile.
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary:
        """Another mapping with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> WeakIdKeyDictionary:
        # Keys are what they are by identity, so only the values are copied.
        result = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            result[key] = deepcopy(value, memo)
        return result

    def keyrefs(self) -> list[Any]:
        """The references to the keys."""
        return list(self.data)

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdKeyDictionary):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Example::

        >>> from facula.utils.weak import TensorWeakRef
        >>> x = facula.ones(1)
        >>> TensorWeakRef(x)() is x
        True
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected a Tensor, got {type(tensor).__name__}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
