"""What checkpoints call to make tensors; the names that PyTorch writes are in ``names``.

Checkpoints come from anywhere, so every number is checked against the memory that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from facula import _C
from facula._checkpoint.stream import shown
from facula._stored.dtypes import StoredDType
from facula._stored.tensor import StoredTensor
from facula.storage import TypedStorage, UntypedStorage

_ops = _C._operators


def _bytes_needed(
    offset: Any, size: Sequence[Any], stride: Sequence[Any], item_size: int
) -> int | None:
    """Bytes up to the end of the last element, 0 without elements, None for nonsense."""
    numbers = (offset, *size, *stride)
    if len(size) != len(stride) or not all(type(n) is int and n >= 0 for n in numbers):
        return None
    if 0 in size:
        return 0
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    return (last + 1) * item_size


def _on_storage(
    storage: UntypedStorage, dtype: Any, offset: Any, size: Any, stride: Any
) -> _C.Tensor:
    if not isinstance(size, (tuple, list)) or not isinstance(stride, (tuple, list)):
        raise RuntimeError(
            f"corrupt checkpoint: a tensor's size and stride must be tuples, got {shown(size)} "
            f"and {shown(stride)}"
        )
    needed = _bytes_needed(offset, size, stride, dtype.itemsize)
    if needed is None or needed > storage.nbytes():
        raise RuntimeError(
            f"corrupt checkpoint: a {dtype} tensor of size {shown(tuple(size))}, stride "
            f"{shown(tuple(stride))} and offset {shown(offset)} does not fit into its storage of "
            f"{storage.nbytes()} bytes"
        )
    if needed == 0:
        offset = 0 if offset * dtype.itemsize > storage.nbytes() else offset
    held = getattr(dtype, "raw", dtype)
    empty = _ops["empty"](0, dtype=held, device=storage.device)
    t = empty.set_(storage, offset, tuple(size), tuple(stride))
    return t if held is dtype else StoredTensor.make(t, dtype)


def _finish(t: _C.Tensor, requires_grad: Any, metadata: Any) -> _C.Tensor:
    for bit in metadata or ():
        if bit not in ("conj", "neg"):
            raise NotImplementedError(f"checkpoint: the tensor has the unknown property {bit!r}")
    if metadata and metadata.get("conj"):
        t = t.conj()
    if metadata and metadata.get("neg"):
        t = -t
    return t.requires_grad_() if requires_grad else t


def tensor(storage: TypedStorage, storage_offset: int, size: Any, stride: Any) -> _C.Tensor:
    """PyTorch's oldest form."""
    return tensor_v2(storage, storage_offset, size, stride, False)


def tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> _C.Tensor:
    """A view of a storage whose type tells the dtype. Hooks are not restored."""
    _expect(storage, TypedStorage)
    t = _on_storage(storage.untyped(), storage.dtype, storage_offset, size, stride)
    return _finish(t, requires_grad, metadata)


def tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> _C.Tensor:
    """A view of a storage in a dtype of its own."""
    _expect(storage, (TypedStorage, UntypedStorage))
    _expect(dtype, _C.dtype)
    untyped = storage.untyped() if isinstance(storage, TypedStorage) else storage
    return _finish(
        _on_storage(untyped, dtype, storage_offset, size, stride), requires_grad, metadata
    )


def _expect(value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise RuntimeError(f"corrupt checkpoint: expected {names}, found {type(value).__name__}")


def parameter(data: _C.Tensor, requires_grad: bool, backward_hooks: Any = None) -> _C.Tensor:
    """A parameter of a module."""
    from facula.nn.parameter import Parameter

    _expect(data, _C.Tensor)
    return Parameter(data, bool(requires_grad))


def parameter_with_state(
    data: _C.Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> _C.Tensor:
    """A parameter with attributes of its own."""
    return set_state(parameter(data, requires_grad), state)


def from_type_v2(func: Callable[..., Any], new_type: type, args: Any, state: Any) -> _C.Tensor:
    """A tensor of a subclass, or one with attributes."""
    t = func(*args)
    _expect(t, _C.Tensor)
    if func is jagged_tensor:  # its parts are in the arguments, and checked
        _expect(state, (dict, type(None)))
        return set_state(t, {k: v for k, v in (state or {}).items() if not k.startswith("_")})
    if type(t) is not new_type:
        t = t.as_subclass(new_type)
    if hasattr(new_type, "__setstate__"):
        t.__setstate__(state)
        return t
    return set_state(t, state)


def from_type(func: Callable[..., Any], new_type: type, args: Any, attributes: Any) -> _C.Tensor:
    """What PyTorch wrote before ``from_type_v2``."""
    return from_type_v2(func, new_type, args, attributes)


def set_state(instance: Any, state: Any) -> Any:
    """Gives an object the attributes that were saved: a dict, or a dict and the slots."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"corrupt checkpoint: a state of {len(state)} parts")
        state, slots = state
    if state:
        _expect(state, dict)
        instance.__dict__.update({str(k): v for k, v in state.items()})
    for name, value in (slots or {}).items():
        setattr(instance, name, value)
    return instance


def meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> _C.Tensor:
    """A tensor without memory."""
    _expect(dtype, _C.dtype)
    if _bytes_needed(0, tuple(size), tuple(stride), 1) is None:
        raise RuntimeError(f"corrupt checkpoint: size {shown(size)} with stride {shown(stride)}")
    return _ops["empty_strided"](
        tuple(size), tuple(stride), dtype=dtype, device="meta", requires_grad=bool(requires_grad)
    )


def device_tensor_from_cpu_tensor(
    data: _C.Tensor, dtype: Any, device: Any, requires_grad: bool
) -> _C.Tensor:
    """A tensor of a device whose memory was saved as a tensor of the host."""
    _expect(data, _C.Tensor)
    return _finish(data.to(dtype=dtype, device=device), requires_grad, None)


def device_tensor_from_numpy(data: Any, dtype: Any, device: Any, requires_grad: bool) -> _C.Tensor:
    """A tensor of a device whose memory was saved as an array."""
    return device_tensor_from_cpu_tensor(_C._from_numpy(data), dtype, device, requires_grad)


def layout(name: str) -> Any:
    """The layout with PyTorch's name."""
    found = getattr(_C, str(name).rpartition(".")[2], None)
    _expect(found, _C.layout)
    return found


def sparse_tensor(layout: Any, data: Any) -> _C.Tensor:
    """A sparse tensor from its layout and its parts: index tensors, values, size, flags."""
    from facula.sparse._construction import COO, number_of

    _expect(layout, _C.layout)
    _expect(data, tuple)
    number = number_of(layout, "load")
    count = 2 if number == COO else 3
    if len(data) not in (count + 1, count + 2):
        raise RuntimeError(f"corrupt checkpoint: a sparse tensor of {len(data)} parts")
    for part in data[:count]:
        _expect(part, _C.Tensor)
        if part.dim() == 0 or part.layout is not _C.strided:
            raise RuntimeError("corrupt checkpoint: a part of a sparse tensor is no strided tensor")
    first, second, values = data[:count] if count == 3 else (data[0], None, data[1])
    size = tuple(data[count])
    if first.dtype not in (_C.int32, _C.int64) or (number == COO and first.dim() != 2):
        raise RuntimeError(
            f"corrupt checkpoint: a sparse tensor of size {shown(size)} with indices of "
            f"{first.dtype} and shape {tuple(first.shape)}"
        )
    if not all(type(n) is int for n in size):
        raise RuntimeError(f"corrupt checkpoint: a sparse tensor of size {shown(size)}")
    if values.is_meta:
        return _meta_sparse_tensor(layout, first, second, values, size)
    is_sorted = _C._sparse_check(number, first, second, values, size)
    if number == COO:
        # A file may say anything, so elements are put in order rather than believed to be.
        t = _ops["_sparse_make"](first, None, values, size, number, False)
        return t.coalesce() if data[-1] is True else t
    return _ops["_sparse_make"](first, second, values, size, number, is_sorted)


def _meta_sparse_tensor(layout: Any, first: Any, second: Any, values: Any, size: Any) -> _C.Tensor:
    """A sparse tensor whose parts were put on the meta device: what can be checked is its shape."""
    from facula.sparse._construction import sparse_compressed_tensor, sparse_coo_tensor

    if second is None:
        dims = first.shape[0]
        fits = (*size[:dims], *values.shape[1:]) == size and len(size) >= dims
    else:
        blocks = layout in (_C.sparse_bsr, _C.sparse_bsc)
        outer = 0 if layout in (_C.sparse_csr, _C.sparse_bsr) else 1
        step = values.shape[1 + outer] if blocks and values.dim() > 2 else 1
        fits = len(size) > 1 and (first.dim() > 1 or size[outer] == (first.shape[0] - 1) * step)
    if not fits:
        raise RuntimeError(
            f"corrupt checkpoint: a sparse tensor of size {shown(size)} with values of shape "
            f"{tuple(values.shape)}"
        )
    if second is None:
        return sparse_coo_tensor(first, values, size)
    return sparse_compressed_tensor(first, second, values, size, layout=layout)


class DimRange:
    """What PyTorch's compiler notes about a dimension of a nested tensor's offsets."""

    def __setstate__(self, state: Any) -> None:
        _expect(state, list)
        if len(state) != 3 or not all(n is None or type(n) is int for n in state):
            raise RuntimeError(f"corrupt checkpoint: a range of sizes {shown(state)}")
        self.dim, self.min, self.max = state

    def __getstate__(self) -> list[int | None]:
        return [self.dim, self.min, self.max]


def jagged_tensor(parts: Any) -> _C.Tensor:
    """A nested tensor from PyTorch's keywords."""
    from facula.nested._construction import check_jagged
    from facula.nested._tensor import NestedTensor

    _expect(parts, dict)
    values, offsets, lengths = (parts.get(name) for name in ("values", "offsets", "lengths"))
    ragged = parts.get("_ragged_idx", 1)
    for part in (values, offsets, *(() if lengths is None else (lengths,))):
        _expect(part, _C.Tensor)
    _expect(ragged, int)
    check_jagged(values, offsets, lengths, ragged, "corrupt checkpoint")
    if parts.get("requires_grad"):
        values.requires_grad_()
    return NestedTensor.make(values, offsets, lengths, ragged)


def quantized_tensor(
    storage: TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    quantizer_params: Any,
    requires_grad: bool = False,
    backward_hooks: Any = None,
) -> _C.Tensor:
    """Integers with scale and zero point, for all of them or for each channel."""
    from facula._stored.quantized import rebuilt

    _expect(storage, TypedStorage)
    dtype = storage.dtype
    _expect(dtype, StoredDType)
    _expect(quantizer_params, tuple)
    if dtype.per_byte > 1:  # the file has several integers in a byte
        count = storage.untyped().nbytes()
        packed = _on_storage(storage.untyped(), _C.uint8, 0, (count,), (1,))
        return rebuilt(packed, dtype, quantizer_params, size)
    whole = _on_storage(storage.untyped(), dtype.raw, storage_offset, size, stride)
    return rebuilt(whole, dtype, quantizer_params)


class WrappedHook:
    """A function that a module of PyTorch's calls when state is loaded, with the module or not."""

    hook: Callable[..., Any]
    with_module: bool
    module: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        first = (self.module,) if self.with_module else ()
        return self.hook(*first, *args, **kwargs)


def _unsupported(kind: str) -> Callable[..., Any]:
    def rebuild(*args: Any) -> Any:
        raise NotImplementedError(f"the checkpoint holds {kind}, which Facula does not have")

    return rebuild


nested_tensor = _unsupported("a nested tensor")
wrapper_subclass = _unsupported("a wrapper tensor without memory of its own")
