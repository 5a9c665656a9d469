"""Picklers for checkpoints: tensors go out under PyTorch's names, their memory apart from them."""

from __future__ import annotations

import copyreg
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

from facula import _C
from facula._checkpoint import names
from facula._checkpoint.names import TorchGlobal
from facula._stored.dtypes import StoredDType
from facula._stored.schemes import qscheme
from facula._stored.tensor import StoredTensor, stored_bytes
from facula.sparse._methods import parts_of
from facula.storage import NAME_OF_DTYPE, TypedStorage, UntypedStorage
from facula.utils.hooks import warn_if_has_hooks

_TENSOR_V2 = TorchGlobal("torch._utils", "_rebuild_tensor_v2")
_TENSOR_V3 = TorchGlobal("torch._utils", "_rebuild_tensor_v3")
_QUANTIZED = TorchGlobal("torch._utils", "_rebuild_qtensor")
_SPARSE = TorchGlobal("torch._utils", "_rebuild_sparse_tensor")
_META = TorchGlobal("torch._utils", "_rebuild_meta_tensor_no_storage")
_PARAMETER = TorchGlobal("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = TorchGlobal("torch._utils", "_rebuild_parameter_with_state")
_FROM_TYPE = TorchGlobal("torch._tensor", "_rebuild_from_type_v2")
_LAYOUT = TorchGlobal("torch.serialization", "_get_layout")
_UNTYPED = TorchGlobal("torch.storage", "UntypedStorage")
_JAGGED = TorchGlobal("torch.nested._internal.nested_tensor", "_rebuild_njt")
_JAGGED_TYPE = TorchGlobal("torch.nested._internal.nested_tensor", "NestedTensor")
_OPERATORS = TorchGlobal("torch._C", "_VariableFunctionsClass")
_TENSOR_BASE = TorchGlobal("torch._C", "TensorBase")


class StorageTable:
    """The storages that one checkpoint refers to, and the keys that stand for them.

    Args:
        stream: whether the description is for the format before zip archives.
    """

    def __init__(self, stream: bool = False) -> None:
        self.stream = stream
        self.storages: dict[str, UntypedStorage] = {}
        self._keys: dict[int, str] = {}
        self._dtypes: dict[str, Any] = {}

    def key(self, storage: UntypedStorage) -> str:
        found = self._keys.get(storage._cdata)
        if found is None:
            found = self._keys[storage._cdata] = str(len(self._keys))
            self.storages[found] = storage
        return found

    def typed_as(self, storage: UntypedStorage, dtype: Any) -> bool:
        """Whether the file may call the storage one of ``dtype``: it has one type in a file."""
        return self._dtypes.setdefault(self.key(storage), dtype) is dtype

    def item_size(self, key: str) -> int:
        """Bytes of what the file counts as the storage's elements."""
        dtype = self._dtypes.get(key)
        return dtype.itemsize if dtype in NAME_OF_DTYPE else 1

    def describe(self, storage: UntypedStorage, dtype: Any, location: str) -> tuple[Any, ...]:
        name = NAME_OF_DTYPE.get(dtype)
        size = storage.nbytes() // dtype.itemsize if name else storage.nbytes()
        if name or self.stream:  # the older format has no untyped storages
            kind = TorchGlobal("torch", name or "ByteStorage")
        else:
            kind = _UNTYPED
        found = ("storage", kind, self.key(storage), location, size)
        return (*found, None) if self.stream else found


class _Memory:
    """A storage as part of a tensor: becomes a reference to a key."""

    def __init__(self, storage: UntypedStorage, dtype: Any) -> None:
        self.storage, self.dtype = storage, dtype


class _Reducer:
    """How the objects of Facula are described. Mixed into a pickler."""

    table: StorageTable
    location_of: Callable[[UntypedStorage], str]

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Memory:
            return self._storage_id(obj.storage, obj.dtype)
        if kind is UntypedStorage:
            self.table.typed_as(obj, None)
            return self._storage_id(obj, None)
        if kind is TypedStorage:
            storage, dtype = obj.untyped(), obj.dtype
            if dtype in NAME_OF_DTYPE and not self.table.typed_as(storage, dtype):
                raise RuntimeError(
                    "Cannot save multiple typed storages that view the same data as different "
                    f"types; save storage.untyped() instead of the one of {dtype}"
                )
            return self._storage_id(storage, dtype)
        return None

    def _storage_id(self, storage: UntypedStorage, dtype: Any) -> Any:
        return self.table.describe(storage, dtype, type(self).location_of(storage))

    def reducer_override(self, obj: Any) -> Any:
        describe = _DESCRIPTIONS.get(type(obj))
        if describe is not None:
            return describe(self, obj)
        if isinstance(obj, _C.Tensor):
            return self._tensor_subclass(obj)
        return NotImplemented

    # ---- tensors

    def _plain_tensor(self, t: _C.Tensor) -> Any:
        warn_if_has_hooks(t)
        if t.is_meta:
            return _META, (t.dtype, tuple(t.shape), t.stride(), t.requires_grad)
        if t.layout is not _C.strided:
            parts, _, coalesced = parts_of(t)
            data = (*parts, t.shape)
            return _SPARSE, (t.layout, (*data, coalesced) if len(parts) == 2 else data)
        storage = t.untyped_storage()
        typed = t.dtype in NAME_OF_DTYPE and self.table.typed_as(storage, t.dtype)
        args: tuple[Any, ...] = (
            _Memory(storage, t.dtype if typed else None),
            t.storage_offset(),
            tuple(t.shape),
            t.stride(),
            t.requires_grad,
            OrderedDict(),  # hooks: code stays behind
        )
        if not typed:
            args += (t.dtype,)
        bits = {name: True for name, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on}
        return (_TENSOR_V2 if typed else _TENSOR_V3), args + ((bits,) if bits else ())

    def _tensor(self, t: _C.Tensor) -> Any:
        function, args = self._plain_tensor(t)
        if not t.__dict__:
            return function, args
        return _FROM_TYPE, (function, _C.Tensor, args, dict(t.__dict__))

    def _tensor_subclass(self, t: Any) -> Any:
        cls = type(t)
        own = _own_attributes(cls)
        with _C.DisableTorchFunctionSubclass():
            if _is_parameter(cls):
                args = (t.detach(), t.requires_grad, OrderedDict())
                state = dict(t.__dict__)
                return (_PARAMETER_WITH_STATE, (*args, state)) if state else (_PARAMETER, args)
            if isinstance(t, StoredTensor):
                return self._stored_tensor(t)
            if _is_jagged(cls):
                return _FROM_TYPE, (_JAGGED, _JAGGED_TYPE, (_jagged_parts(t),), _others(t))
            if own & {"__reduce_ex__", "__reduce__"}:
                return NotImplemented
            function, args = self._plain_tensor(t)
            state = t.__getstate__() if "__getstate__" in own else _attributes(t)
        return _FROM_TYPE, (function, cls, args, state or None)

    def _stored_tensor(self, t: Any) -> Any:
        """A tensor of a dtype without arithmetic; quantized ones say how numbers are to be read."""
        raw, dtype = stored_bytes(t)
        quantizer = t.__dict__.get("_quantizer")
        storage = raw.untyped_storage()
        if raw.is_meta or (quantizer and not self.table.typed_as(storage, dtype)):
            raise RuntimeError(f"cannot save a tensor of {dtype} that is on meta or shares memory")
        shape = t.__dict__["_raw"].shape if quantizer else raw.shape
        stride = t.__dict__["_raw"].stride() if quantizer else raw.stride()
        place = (raw.storage_offset(), tuple(shape), stride)
        if quantizer is None:
            return _TENSOR_V3, (_Memory(storage, None), *place, False, OrderedDict(), dtype)
        by_channel = () if quantizer.axis is None else (quantizer.axis,)
        params = (quantizer.scheme, quantizer.scale, quantizer.zero_point, *by_channel)
        return _QUANTIZED, (_Memory(storage, dtype), *place, params, False, OrderedDict())

    # ---- the rest

    def _constant(self, obj: Any) -> str:
        return repr(obj).rpartition(".")[2]

    def _layout(self, obj: Any) -> Any:
        return _LAYOUT, ("torch." + repr(obj).rpartition(".")[2],)

    def _generator(self, g: _C.Generator) -> Any:
        return _C.Generator, (g.device,), (g.initial_seed(), None, g.get_state())

    def _operator(self, f: Any) -> Any:
        from facula import _op_docs

        method = isinstance(f, _C.OperatorMethod)
        if f.__name__ not in (_op_docs.METHODS if method else _op_docs.FUNCTIONS):
            # One of a namespace has its name there; a hidden one is for Facula only.
            return NotImplemented if method or names.name_of(f) is None else f.__name__
        return getattr, (_TENSOR_BASE if method else _OPERATORS, f.__name__)

    def _name(self, obj: TorchGlobal) -> str:
        return obj.name


_DESCRIPTIONS: dict[type, Callable[[Any, Any], Any]] = {
    _C.Tensor: _Reducer._tensor,
    _C.dtype: _Reducer._constant,
    StoredDType: _Reducer._constant,
    qscheme: _Reducer._constant,
    _C.memory_format: _Reducer._constant,
    _C.layout: _Reducer._layout,
    _C.Generator: _Reducer._generator,
    _C.OperatorFunction: _Reducer._operator,
    _C.OperatorMethod: _Reducer._operator,
    TorchGlobal: _Reducer._name,
}


def _own_attributes(cls: type) -> set[str]:
    """What the classes between ``cls`` and Tensor define."""
    return {name for c in cls.__mro__[: cls.__mro__.index(_C.Tensor)] for name in c.__dict__}


def _attributes(t: Any) -> Any:
    slots = {n: getattr(t, n) for n in copyreg._slotnames(type(t)) if hasattr(t, n)}  # type: ignore[attr-defined]
    return (dict(t.__dict__), slots) if slots else dict(t.__dict__)


def _is_jagged(cls: type) -> bool:
    return cls.__module__ == "facula.nested" and cls.__name__ == "NestedTensor"


def _jagged_parts(t: Any) -> dict[str, Any]:
    """A nested tensor as the keywords that PyTorch's constructor takes."""
    own = t.__dict__
    if own["_values"].grad_fn is not None:
        raise RuntimeError("Only leaf tensors can be pickled; use .detach() first")
    return {
        "values": own["_values"].detach(),
        "offsets": own["_offsets"],
        "lengths": own["_lengths"],
        "_ragged_idx": own["_ragged_idx"],
        "_metadata_cache": {},
        "requires_grad": own["_values"].requires_grad,
    }


def _others(t: Any) -> dict[str, Any] | None:
    """The attributes that a program gave a nested tensor."""
    return {k: v for k, v in t.__dict__.items() if not k.startswith("_")} or None


def _is_parameter(cls: type) -> bool:
    return cls.__module__ == "facula.nn.parameter" and cls.__name__ == "Parameter"


def _refuse_local(obj: Any, name: str | None) -> None:
    """What is defined in a function cannot be found by name; the error is that of pickle.dump."""
    shown = name or getattr(obj, "__qualname__", "")
    if "<locals>" in str(shown).split("."):
        kind = pickle.PicklingError if sys.version_info >= (3, 14) else AttributeError
        raise kind(f"Can't pickle local object {shown!r}")


def make_pickler(
    pickle_module: Any,
    file: Any,
    protocol: int,
    table: StorageTable,
    location_of: Callable[[UntypedStorage], str],
) -> Any:
    """A pickler of the module's kind that writes PyTorch's names."""
    # Only the picklers that are written in Python let us choose the names.
    base = pickle._Pickler if pickle_module is pickle else pickle_module.Pickler  # type: ignore[attr-defined]

    class CheckpointPickler(_Reducer, base):  # type: ignore[misc]
        def save_global(self, obj: Any, name: str | None = None) -> None:
            found = names.name_of(obj, name)
            if found is None:
                if base is pickle._Pickler:  # type: ignore[attr-defined]
                    _refuse_local(obj, name)
                super().save_global(obj, name)
                return
            module, name = found
            if self.proto >= 4:
                self.save(module)
                self.save(name)
                self.write(pickle.STACK_GLOBAL)
            elif "." in name:  # a class in a class
                outer, _, inner = name.rpartition(".")
                self.save_reduce(getattr, (TorchGlobal(module, outer), inner), obj=obj)
                return
            else:
                self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
            self.memoize(obj)

        dispatch = {**getattr(base, "dispatch", {}), FunctionType: save_global}

    CheckpointPickler.location_of = staticmethod(location_of)  # type: ignore[assignment]
    pickler = CheckpointPickler(file, protocol)
    pickler.table = table
    return pickler


def make_unpickler(
    pickle_module: Any, file: Any, persistent_load: Callable[[Any], Any], options: dict[str, Any]
) -> Any:
    """An unpickler of the module's kind that understands PyTorch's names."""

    class CheckpointUnpickler(pickle_module.Unpickler):  # type: ignore[misc,name-defined]
        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] == "torch":
                return names.find(module, name)
            return super().find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            return persistent_load(pid)

    return CheckpointUnpickler(file, **options)
