"""The names by which checkpoints call things: PyTorch's, so that both can read each other's files.

PyTorch is never imported: ``torch.x.y`` in a file is looked up as ``facula.x.y``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from facula import _C, storage
from facula._checkpoint import rebuild
from facula._stored.schemes import qscheme

__all__ = ["TorchGlobal", "find", "name_of"]


class TorchGlobal:
    """A name that a checkpoint contains and that stands for one of PyTorch's functions."""

    _known: dict[tuple[str, str], TorchGlobal] = {}  # one object for a name: pickles share it
    module: str
    name: str

    def __new__(cls, module: str, name: str) -> TorchGlobal:
        self = cls._known.get((module, name))
        if self is None:
            self = cls._known[module, name] = super().__new__(cls)
            self.module, self.name = module, name
        return self

    def __call__(self, *args: Any) -> Any:  # picklers ask whether it is callable
        raise TypeError(f"{self.module}.{self.name} is only a name")


class _Operators:
    """Stands for PyTorch's class of functions, from which pickles take operators by name."""

    def __getattr__(self, name: str) -> Any:
        try:
            return _C._operators[name]
        except KeyError:
            raise AttributeError(f"Facula has no operator {name!r}") from None


def _load_from_bytes(data: bytes) -> Any:
    """A storage that was pickled outside of ``save``."""
    import io

    from facula.serialization import load

    return load(io.BytesIO(data), weights_only=False)


# Objects that have no public name in Facula.
SPECIAL: dict[str, Any] = {
    "torch._utils._rebuild_tensor": rebuild.tensor,
    "torch._utils._rebuild_tensor_v2": rebuild.tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild.tensor_v3,
    "torch._utils._rebuild_parameter": rebuild.parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild.parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild.meta_tensor,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild.device_tensor_from_cpu_tensor,
    "torch._utils._rebuild_device_tensor_from_numpy": rebuild.device_tensor_from_numpy,
    "torch._utils._rebuild_xla_tensor": rebuild.device_tensor_from_numpy,
    "torch._utils._rebuild_sparse_tensor": rebuild.sparse_tensor,
    "torch._utils._rebuild_sparse_csr_tensor": rebuild.sparse_tensor,
    "torch._utils._rebuild_qtensor": rebuild.quantized_tensor,
    "torch._utils._rebuild_nested_tensor": rebuild.nested_tensor,
    "torch._utils._rebuild_wrapper_subclass": rebuild.wrapper_subclass,
    "torch.nested._internal.nested_tensor._rebuild_njt": rebuild.jagged_tensor,
    "torch._dynamo.decorators._DimRange": rebuild.DimRange,
    "torch._tensor._rebuild_from_type": rebuild.from_type,
    "torch._tensor._rebuild_from_type_v2": rebuild.from_type_v2,
    "torch._tensor.Tensor": _C.Tensor,
    "torch.tensor._rebuild_from_type": rebuild.from_type,
    "torch.serialization._get_layout": rebuild.layout,
    "torch.nn.modules.module._WrappedHook": rebuild.WrappedHook,
    "torch.storage._load_from_bytes": _load_from_bytes,
    "torch.storage._TypedStorage": storage.TypedStorage,
    "torch.storage._UntypedStorage": storage.UntypedStorage,
    "torch._C.Generator": _C.Generator,
    "torch._C.TensorBase": _C.Tensor,
    "torch._C._TensorBase": _C.Tensor,
    "torch._C._VariableFunctionsClass": _Operators(),
    "torch._C._VariableFunctions": _Operators(),
    **{f"torch.{n}": kind for n, kind in storage.NAMED.items()},
    **{f"torch.cuda.{n}": kind for n, kind in storage.NAMED.items()},
}

# Classes that have another home in Facula.
MOVED = {"torch.nested._internal.nested_tensor.NestedTensor": ("facula.nested", "NestedTensor")}

_CLASSES = {
    _C.Tensor: ("torch", "Tensor"),
    _C.Size: ("torch", "Size"),
    _C.device: ("torch", "device"),
    _C.dtype: ("torch", "dtype"),
    _C.Generator: ("torch._C", "Generator"),
    rebuild.DimRange: ("torch._dynamo.decorators", "_DimRange"),
    storage.UntypedStorage: ("torch.storage", "UntypedStorage"),
    storage.TypedStorage: ("torch.storage", "TypedStorage"),
}

# Files of Facula that hold what PyTorch has in another one.
_ELSEWHERE = {
    "facula.nn.modules.attention": "torch.nn.modules.activation",
    "facula.nn.modules.identity": "torch.nn.modules.linear",
    "facula.distributions._transform_base": "torch.distributions.transforms",
    "facula.distributions._transforms_of_numbers": "torch.distributions.transforms",
    "facula.distributions._transforms_of_vectors": "torch.distributions.transforms",
}


def name_of(obj: Any, name: str | None = None) -> tuple[str, str] | None:
    """PyTorch's module and name for a class, function or constant, or None for others' objects."""
    if isinstance(obj, TorchGlobal):
        return obj.module, obj.name
    if isinstance(obj, (_C.dtype, _C.memory_format, qscheme)):
        return "torch", repr(obj).rpartition(".")[2]
    if isinstance(obj, type) and obj in _CLASSES:
        return _CLASSES[obj]
    if isinstance(obj, _C.OperatorFunction):
        namespace = obj.__reduce__()[1][0].rpartition(".")[0]  # "nn.functional" of relu6
        return (f"torch.{namespace}", obj.__name__) if namespace else None
    module = getattr(obj, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] != "facula":
        return None
    if module in _ELSEWHERE:
        return _ELSEWHERE[module], name or obj.__qualname__
    if module.startswith("facula.nn._functions"):
        return "torch.nn.functional", name or obj.__qualname__
    if any(part.startswith("_") for part in module.split(".")):
        return None  # nothing of PyTorch's: only Facula reads it
    return "torch" + module[len("facula") :], name or obj.__qualname__


def find(module: str, name: str) -> Any:
    """What Facula has for a name of PyTorch's, or the object of another module."""
    special = SPECIAL.get(f"{module}.{name}")
    if special is not None:
        return special
    if f"{module}.{name}" in MOVED:
        module, name = MOVED[f"{module}.{name}"]
    ours = module
    if module == "torch._C._nn":  # functions of layers that are not written in Python
        ours = "facula.nn.functional"
    elif module == "torch" or module.startswith("torch."):
        ours = "facula" + module[len("torch") :]
    try:
        found: Any = sys.modules.get(ours) or import_module(ours)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        if ours is module:
            raise
        raise AttributeError(
            f"the checkpoint contains {module}.{name}, for which Facula has no {ours}.{name}"
        ) from error
    return found
