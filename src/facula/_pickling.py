"""How tensors and operators are pickled."""

from __future__ import annotations

from typing import Any

from facula import _C


def find_function(name: str) -> Any:
    """The operator function with this name."""
    return _C._operators[name]


def find_method(name: str) -> Any:
    """The operator method with this name."""
    return _C._operator_methods[name]


def _over(
    storage: Any, dtype: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> Any:
    """A tensor in a storage, which need not be on the default device."""
    empty = _C._operators["empty"](0, dtype=dtype, device=storage.device)
    return empty.set_(storage, offset, size, stride)


def rebuild_storage(data: bytes) -> Any:
    """A storage that holds a copy of the bytes."""
    storage = _C.UntypedStorage(len(data))
    if data:
        whole = _over(storage, _C.uint8, 0, (len(data),), (1,))
        whole.copy_(_C._frombuffer(bytearray(data), dtype=_C.uint8))
    return storage


def storage_bytes(storage: Any) -> bytes:
    """The content of a storage."""
    n = storage.nbytes()
    flat = _over(storage, _C.uint8, 0, (n,), (1,))
    return bytes(memoryview(flat.numpy()))


def rebuild_tensor(
    cls: type,
    storage: Any,
    dtype: Any,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    state: dict[str, Any] | None,
) -> Any:
    """The tensor that ``Tensor.__reduce_ex__`` described."""
    t = _over(storage, dtype, offset, size, stride)
    if cls is not _C.Tensor:
        t = t.as_subclass(cls) if not requires_grad else _C.Tensor._make_subclass(cls, t, False)
    if requires_grad:
        t.requires_grad_()
    if state:
        t.__dict__.update(state)
    return t


def rebuild_meta(
    cls: type, dtype: Any, size: tuple[int, ...], stride: tuple[int, ...], requires_grad: bool
) -> Any:
    """A tensor without memory."""
    t = _C._operators["empty_strided"](
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )
    return t if cls is _C.Tensor else t.as_subclass(cls)


def rebuild_sparse(
    cls: type,
    parts: tuple[Any, ...],
    size: tuple[int, ...],
    layout: int,
    coalesced: bool,
    requires_grad: bool,
    state: dict[str, Any] | None,
) -> Any:
    """A sparse tensor from its indices and values, checked."""
    first, second, values = parts if len(parts) == 3 else (parts[0], None, parts[1])
    is_sorted = _C._sparse_check(layout, first, second, values, size)
    is_sorted = is_sorted if second is not None else coalesced
    t = _C._operators["_sparse_make"](first, second, values, size, layout, is_sorted)
    if cls is not _C.Tensor:
        t = _C.Tensor._make_subclass(cls, t, False)
    if requires_grad:
        t.requires_grad_()
    if state:
        t.__dict__.update(state)
    return t
