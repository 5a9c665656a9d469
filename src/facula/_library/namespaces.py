"""``facula.ops.NAMESPACE.NAME.OVERLOAD``: operators by name, a program's own and Facula's.

Facula's own stand under ``aten``. They are the functions of the package under PyTorch's names for
them, so every overload name leads to the one function, which chooses by its arguments.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Iterator
from typing import Any

import facula
from facula import _C
from facula._library.record import Record, tensors_among
from facula.overrides import handle_torch_function, has_torch_function

_records: dict[str, dict[str, Record]] = {}  # "ns::name" -> overload -> record


def find(name: str) -> dict[str, Record] | None:
    """The overloads of ``ns::name``."""
    return _records.get(name)


def add(record: Record) -> None:
    overloads = _records.setdefault(record.schema.name, {})
    if record.schema.overload_name in overloads:
        raise RuntimeError(
            f"Tried to register an operator ({record.schema}) with the same name and overload name "
            "multiple times."
        )
    overloads[record.schema.overload_name] = record


def remove(record: Record) -> None:
    overloads = _records.get(record.schema.name, {})
    overloads.pop(record.schema.overload_name, None)
    if not overloads:
        _records.pop(record.schema.name, None)
    namespace, _, name = record.schema.name.partition("::")
    spaces = vars(ops)
    if namespace in spaces:
        vars(spaces[namespace]).pop(name, None)


class OpOverload:
    """One overload of an operator."""

    def __init__(self, packet: OpOverloadPacket, overload: str, record: Record | None) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self._record = record
        self._qualified_op_name = packet._qualified_op_name
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = packet.__module__

    @property
    def namespace(self) -> str:
        return self._qualified_op_name.partition("::")[0]

    @property
    def _schema(self) -> Any:
        if self._record is None:
            raise AttributeError(f"{self}: operators of Facula itself have no schema object")
        return self._record.schema

    @property
    def tags(self) -> list[Any]:
        """What the operator was marked with."""
        return [] if self._record is None else list(self._record.tags)

    def name(self) -> str:
        """``ns::name``, with the overload unless it is the default one."""
        extra = "" if self._overloadname == "default" else f".{self._overloadname}"
        return self._qualified_op_name + extra

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        record = self._record
        if record is None:
            if waiting.calls and _is_waiting(self, args, kwargs):
                return _C._run_waiting_kernel(waiting.calls[-1][3])
            return self.overloadpacket(*args, **kwargs)
        values = record.schema.bind(args, kwargs)
        tensors = tuple(tensors_among(values))
        for t in tensors:
            if type(t) in record.dispatch:
                kinds = tuple({type(t): None for t in tensors if type(t) is not facula.Tensor})
                return record.dispatch[type(t)](type(t), self, kinds, args, kwargs)
        if has_torch_function(tensors):
            return handle_torch_function(self, tensors, *args, **kwargs)
        return record.call(values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpOverload):
            return NotImplemented
        same = self._qualified_op_name == other._qualified_op_name
        # All overloads of Facula's own operators are one function.
        return same and (self._record is other._record)

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._qualified_op_name}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        packet = self.overloadpacket
        return _lookup, (*packet._qualified_op_name.split("::"), self._overloadname)


def _lookup(namespace: str, name: str, overload: str) -> OpOverload:
    found = getattr(getattr(getattr(ops, namespace), name), overload)
    assert isinstance(found, OpOverload)
    return found


class OpOverloadPacket:
    """An operator with all of its overloads; a call takes the first that fits."""

    def __init__(self, namespace: str, name: str, function: Any = None) -> None:
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        self.__module__ = f"facula.ops.{namespace}"
        self._function = function

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        if self._function is not None:
            return ["default"]
        return [name or "default" for name in _records.get(self._qualified_op_name, {})]

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        record = None
        if self._function is None:
            key = "" if name == "default" else name
            record = _records.get(self._qualified_op_name, {}).get(key)
            if record is None:
                raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        found = OpOverload(self, name, record)
        setattr(self, name, found)
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._function is not None:
            return self._function(*args, **kwargs)
        names = self.overloads()
        refusals = []
        for name in names:
            overload = getattr(self, name)
            try:
                overload._record.schema.bind(args, kwargs)
            except RuntimeError as error:
                if len(names) == 1:
                    raise
                refusals.append(str(error))
                continue
            return overload(*args, **kwargs)
        raise RuntimeError(f"no overload of {self} takes these arguments:\n" + "\n".join(refusals))

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self


class _Waiting(threading.local):
    """The kernels that modes of ``utils._python_dispatch`` hold, the innermost last."""

    def __init__(self) -> None:
        self.calls: list[tuple[OpOverload, tuple[Any, ...], dict[str, Any], int]] = []


waiting = _Waiting()


def _is_waiting(operator: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call is the one that a mode was given, unchanged: then its kernel can run."""
    held, held_args, held_kwargs, _ = waiting.calls[-1]
    if held is not operator or len(args) != len(held_args) or kwargs.keys() != held_kwargs.keys():
        return False
    pairs = [*zip(args, held_args, strict=True), *((kwargs[k], held_kwargs[k]) for k in kwargs)]
    return all(_is_same(mine, other) for mine, other in pairs)


def _is_same(mine: Any, other: Any) -> bool:
    if isinstance(mine, (list, tuple)) and isinstance(other, (list, tuple)):
        same = len(mine) == len(other)
        return same and all(_is_same(a, b) for a, b in zip(mine, other, strict=True))
    if isinstance(mine, facula.Tensor) or isinstance(other, facula.Tensor):
        return mine is other
    return type(mine) is type(other) and (mine == other or mine != mine)


# Overloads that PyTorch's operators have under other names than ``default``, by Facula's names.
_OVERLOADS = {
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "slice", "floor_divide", "remainder", "fmod"), "Tensor"
    ),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "index", "split"), "Tensor"),
    **dict.fromkeys(("select", "transpose", "softmax", "log_softmax"), "int"),
    "where": "self",
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "pow")


def aten_overload(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload:
    """The object under which PyTorch would know a call of one of Facula's operators."""
    operator = own_operator(name)
    plain = name.rstrip("_")
    if "out" in kwargs:
        overload = "out"
    elif plain in _COMPARISONS:
        kinds = "".join("T" if isinstance(a, facula.Tensor) else "S" for a in args[:2])
        full = {"TT": "Tensor_Tensor", "TS": "Tensor_Scalar", "ST": "Scalar"}[kinds]
        overload = full if plain == "pow" else full.split("_")[-1]
    else:
        overload = _OVERLOADS.get(plain, "default")
    return getattr(operator.overloadpacket, overload)


# Names of PyTorch's for what several of Facula's operators do.
_NAMES_ALONE = ("convolution_backward",)


@functools.cache
def own_operator(name: str) -> OpOverload:
    """The object for one of Facula's operators, also for those that are no part of the API."""
    if _own_function(name) is not None:
        return getattr(ops.aten, name).default

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"aten::{name} is internal to Facula and cannot be called by name")

    return OpOverloadPacket("aten", name, refuse).default


# Operators that PyTorch has under ``aten`` with the arguments that they have here.
_OF_LAYERS = (
    *("gelu", "glu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "linear", "mish"),
    *("one_hot", "pad", "relu6", "scaled_dot_product_attention", "silu", "softplus", "softshrink"),
)


def _own_function(name: str) -> Any:
    """The function or method behind a name of ``aten``; None when there is none."""
    found = _C._operators.get(name) or _C._operator_methods.get(name)
    if found is None and name in _OF_LAYERS:
        found = _C._operators.get(f"nn.functional.{name}")
    if found is None:
        for prefix in ("linalg_", "fft_", "special_"):
            if name.startswith(prefix):
                found = _C._operators.get(name.replace("_", ".", 1))
    return found


class _OpNamespace(types.ModuleType):
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        super().__init__(f"facula.ops.{name}")
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        function = _own_function(name) if self.name == "aten" else None
        if self.name == "aten" and name in _NAMES_ALONE:
            packet = own_operator(name).overloadpacket
            setattr(self, name, packet)
            return packet
        if function is None and f"{self.name}::{name}" not in _records:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self.name, name, function)
        setattr(self, name, packet)
        return packet

    def __dir__(self) -> list[str]:
        prefix = f"{self.name}::"
        return [name.removeprefix(prefix) for name in _records if name.startswith(prefix)]


class _Ops(types.ModuleType):
    """The namespaces of operators; each exists as soon as it is asked for."""

    __file__ = "_ops.py"
    __path__: list[str] = []
    loaded_libraries: frozenset[str] = frozenset()

    def load_library(self, path: Any) -> None:
        """Raises an OSError: libraries of operators that were compiled for PyTorch need PyTorch."""
        raise OSError(
            f"ops.load_library(): {path!s} was not loaded: operators compiled for PyTorch cannot "
            "be loaded; define them in Python with facula.library.custom_op"
        )

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        return namespace


ops = _Ops("facula.ops", "Operators by name: facula.ops.NAMESPACE.NAME(...).")
