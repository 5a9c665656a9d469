"""Methods of ``UntypedStorage`` that are made of its others, or of typed storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from facula import _C
from facula._C import UntypedStorage

if TYPE_CHECKING:
    from facula.storage import TypedStorage


def _tensor(storage: UntypedStorage) -> Any:
    from facula.storage import whole_tensor

    return whole_tensor(storage)


def untyped(self: UntypedStorage) -> UntypedStorage:
    """The storage itself."""
    return self


def new(self: UntypedStorage) -> UntypedStorage:
    """An empty storage on the same device."""
    return UntypedStorage(0, device=self.device)


def get_device(self: UntypedStorage) -> Any:
    """The index of the device, or None on the host."""
    return self.device.index


def is_pinned(self: UntypedStorage, device: Any = "cuda") -> bool:
    """Whether the memory is pinned for a CUDA device."""
    return _tensor(self).is_pinned()


def pin_memory(self: UntypedStorage, device: Any = "cuda") -> UntypedStorage:
    """A copy in pinned memory, or the storage itself."""
    return self if is_pinned(self) else _tensor(self).pin_memory().untyped_storage()


def to(self: UntypedStorage, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
    """A copy on another device, or the storage itself.

    Example::

        >>> storage = facula.UntypedStorage([1, 2])
        >>> storage.to(device="cpu") is storage
        True
    """
    wanted = _C.device(device)
    if wanted == self.device or (wanted.type == "cpu" and self.device.type == "cpu"):
        return self
    if wanted.type == "meta":
        return UntypedStorage(self.nbytes(), device="meta")
    return self.cpu() if wanted.type == "cpu" else self.cuda(wanted)


def byteswap(self: UntypedStorage, dtype: Any) -> None:
    """Turns the bytes of every number of a dtype round."""
    from facula.storage import swap_bytes

    swap_bytes(self, dtype)


def type(self: UntypedStorage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the type, or the bytes as numbers of another dtype."""
    if dtype is None:
        return f"facula.{'cuda.' if self.is_cuda else ''}storage.UntypedStorage"
    return _bytes(self).type(dtype)


def _bytes(storage: UntypedStorage) -> TypedStorage:
    from facula.storage import TypedStorage

    return TypedStorage(wrap_storage=storage, dtype=_C.uint8)


def _conversion(name: str, dtype: Any) -> Callable[[UntypedStorage], TypedStorage]:
    def convert(self: UntypedStorage) -> TypedStorage:
        return _bytes(self)._to(dtype)

    convert.__name__ = name
    convert.__doc__ = f"Each byte as a number of {dtype}."
    return convert


def from_buffer(*args: Any, **kwargs: Any) -> UntypedStorage:
    """A copy of a buffer's bytes; ``dtype`` and ``byte_order`` say which are turned round.

    Example::

        >>> facula.UntypedStorage.from_buffer(b"ab", dtype=facula.uint8).tolist()
        [97, 98]
    """
    from facula.storage import TypedStorage

    return TypedStorage.from_buffer(*args, **kwargs).untyped()


def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
    """A storage over a file's bytes; ``shared`` writes changes back."""
    from facula.storage import from_file

    return from_file(filename, shared, nbytes)


def _new_shared(size: int, *, device: Any = "cpu") -> UntypedStorage:
    return UntypedStorage(size, device=device).share_memory_()


_METHODS = (untyped, new, get_device, is_pinned, pin_memory, to, byteswap, type)
_DTYPES = {
    "float": _C.float32,
    "double": _C.float64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "long": _C.int64,
    "int": _C.int32,
    "short": _C.int16,
    "char": _C.int8,
    "byte": _C.uint8,
    "bool": _C.bool,
    "complex_float": _C.complex64,
    "complex_double": _C.complex128,
}
for _method in (*_METHODS, *(_conversion(name, dtype) for name, dtype in _DTYPES.items())):
    setattr(UntypedStorage, _method.__name__, _method)
for _function in (from_buffer, from_file, _new_shared):
    setattr(UntypedStorage, _function.__name__, staticmethod(_function))
for _name in ("is_sparse", "is_sparse_csr", "is_hpu"):
    setattr(UntypedStorage, _name, False)
