"""Modules that hold others: in a row, in a list, by name."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections import abc as container_abcs
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeVar, overload

from facula import Tensor
from facula.nn.modules.module import Module, _addindent
from facula.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

M = TypeVar("M", bound="Sequential")


def _position(index: Any, length: int) -> int:
    i = operator.index(index)
    if not -length <= i < length:
        raise IndexError(f"index {i} is out of range")
    return i % length


class Container(Module):
    """An older name for a module with named modules; use :class:`Module`."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """Modules applied one after the other.

    Example::

        >>> facula.nn.Sequential(facula.nn.Identity(), facula.nn.Identity())
        Sequential(
          (0): Identity()
          (1): Identity()
        )
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module]) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return next(islice(self._modules.values(), _position(index, len(self)), None))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[_position(index, len(self))], module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        for name in (
            names[index] if isinstance(index, slice) else [names[_position(index, len(names))]]
        ):
            delattr(self, name)
        # Numbers stay consecutive.
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self: M, other: Any) -> M:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        for module in list(other):
            self.append(module)
        return self

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(list(self) * _times(other)))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self: M, other: int) -> M:
        for module in list(self) * (_times(other) - 1):
            self.append(module)
        return self

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self: M, module: Module) -> M:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module  # type: ignore[no-any-return]

    def insert(self: M, index: int, module: Module) -> M:
        """Puts a module before a position."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index + n if index < 0 else index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}
        return self

    def extend(self: M, sequential: Iterable[Module]) -> M:
        """Adds all modules of an iterable at the end."""
        for module in sequential:
            self.append(module)
        return self


def _times(count: Any) -> int:
    if not isinstance(count, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(count)}")
    if count <= 0:
        raise ValueError(f"Non-positive multiplication factor {count} for {Sequential}")
    return count


class ModuleList(Module):
    """A list of modules.

    Example::

        >>> layers = facula.nn.ModuleList(facula.nn.Identity() for _ in range(3))
        >>> layers
        ModuleList(
          (0-2): 3 x Identity()
        )
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_position(index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        for name in (
            names[index] if isinstance(index, slice) else [names[_position(index, len(names))]]
        ):
            delattr(self, name)
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Runs of equal modules are shown once."""
        texts = [repr(m) for m in self]
        if not texts:
            return self._get_name() + "()"
        runs: list[list[int]] = [[0, 0]]
        for i in range(1, len(texts)):
            if texts[i] == texts[runs[-1][0]]:
                runs[-1][1] = i
            else:
                runs.append([i, i])
        lines = []
        for first, last in runs:
            text = f"({first}): {texts[first]}"
            if first != last:
                text = f"({first}-{last}): {last - first + 1} x {texts[first]}"
            lines.append(_addindent(text, 2))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before a position."""
        modules = list(self)
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module  # type: ignore[no-any-return]

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds all modules of an iterable at the end."""
        if not isinstance(modules, container_abcs.Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for module in list(modules):
            self.append(module)
        return self


class ModuleDict(Module):
    """Modules by name, in the order they were added.

    Example::

        >>> layers = facula.nn.ModuleDict({"first": facula.nn.Identity()})
        >>> list(layers)
        ['first']
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes a module out."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names with modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a mapping or from pairs, replacing those of equal name."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(given: Any, owner: str) -> Iterator[tuple[Any, Any]]:
    if not isinstance(given, container_abcs.Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got "
            + type(given).__name__
        )
    if isinstance(given, (OrderedDict, ModuleDict, ParameterDict, container_abcs.Mapping)):
        yield from given.items()
        return
    for i, pair in enumerate(given):
        if not isinstance(pair, container_abcs.Iterable):
            raise TypeError(
                f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}"
            )
        if len(pair) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required"  # type: ignore[arg-type]
            )
        yield pair[0], pair[1]  # type: ignore[index]


def _as_parameter(value: Any) -> Any:
    return (
        Parameter(value)
        if isinstance(value, Tensor) and not isinstance(value, Parameter)
        else value
    )


def _shown(value: Any, legacy: bool = False) -> str:
    if isinstance(value, Tensor):
        size = "x".join(str(s) for s in value.size())
        place = "" if not value.is_cuda else f" (GPU {value.get_device()})"
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        dtype = value.type() if legacy else value.dtype
        return f"{kind} containing: [{dtype} of size {size}{place}]"
    return f"Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values are kept.

    Example::

        >>> weights = facula.nn.ParameterList([facula.ones(1), facula.zeros(2)])
        >>> [len(w) for w in weights]
        [1, 2]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            out = type(self)()
            for i in range(*index.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, param: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds all values of an iterable at the end."""
        if not isinstance(values, container_abcs.Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_shown(p)}" for i, p in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name; tensors become parameters, other values are kept.

    Example::

        >>> weights = facula.nn.ParameterDict({"left": facula.ones(1)})
        >>> list(weights.keys())
        ['left']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}'). Open an issue if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another ParameterDict with the same values."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is added if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a value out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes out the value that was added last."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another ParameterDict with the same value for each key."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Keys with values."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds values from a mapping or from pairs; those of a plain dict sorted by their keys."""
        pairs = _pairs(parameters, "ParametersDict")
        if isinstance(parameters, container_abcs.Mapping) and not isinstance(
            parameters, OrderedDict
        ):
            pairs = iter(sorted(pairs))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({k}): {_shown(p, legacy=True)}" for k, p in self.items())

    def __call__(self, input: Any) -> Any:  # type: ignore[override]
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
