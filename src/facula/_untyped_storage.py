"""Methods of UntypedStorage that are made of others, and of tensors over its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula import _C
from facula._C import UntypedStorage

_CONVERSIONS = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "complex_float": "complex64",
    "complex_double": "complex128",
}


def _bytes_of(storage: UntypedStorage) -> Any:
    from facula.storage import whole_tensor

    return whole_tensor(storage)


def _conversion(name: str) -> Callable[[UntypedStorage], Any]:
    def convert(self: UntypedStorage) -> Any:
        from facula.storage import TypedStorage

        dtype = getattr(_C, _CONVERSIONS[name])
        copy = _bytes_of(self).to(dtype, copy=True)
        return TypedStorage(wrap_storage=copy.untyped_storage(), dtype=dtype)

    convert.__name__ = name
    convert.__qualname__ = f"UntypedStorage.{name}"
    convert.__doc__ = f"A typed storage in which every byte is a number of {_CONVERSIONS[name]}."
    return convert


def is_pinned(self: UntypedStorage, device: Any = "cuda") -> bool:
    """True for page-locked host memory."""
    return bool(_bytes_of(self).is_pinned())


def pin_memory(self: UntypedStorage, device: Any = "cuda") -> UntypedStorage:
    """A copy in page-locked host memory, or the storage itself."""
    if self.device.type != "cpu":
        raise TypeError(f"cannot pin {self.type()}, only CPU memory can be pinned")
    return self if self.is_pinned() else _bytes_of(self).pin_memory().untyped_storage()


def get_device(self: UntypedStorage) -> int | None:
    """The index of the device; None on the host."""
    return self.device.index


def untyped(self: UntypedStorage) -> UntypedStorage:
    """The storage itself."""
    return self


def new(self: UntypedStorage) -> UntypedStorage:
    """A storage of no bytes on the same device."""
    return UntypedStorage(0, device=self.device)


def to(self: UntypedStorage, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
    """A copy on another device, or the storage itself."""
    moved = _bytes_of(self).to(device, non_blocking=non_blocking).untyped_storage()
    return self if moved.data_ptr() == self.data_ptr() else moved


def type(self: UntypedStorage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the type, or the bytes as numbers of a dtype."""
    if dtype is None:
        return "facula.storage.UntypedStorage"
    from facula.storage import TypedStorage

    return TypedStorage(wrap_storage=_bytes_of(self).untyped_storage(), dtype=_C.uint8).type(dtype)


def byteswap(self: UntypedStorage, dtype: Any) -> None:
    """Turns the bytes of every number of a dtype round, in place."""
    from facula.storage import swap_bytes

    swap_bytes(self, dtype)


def from_buffer(*args: Any, **kwargs: Any) -> UntypedStorage:
    """A copy of the bytes of a buffer; see ``TypedStorage.from_buffer``."""
    from facula.storage import TypedStorage

    return TypedStorage.from_buffer(*args, **kwargs).untyped()


def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
    """A storage over a file's bytes; ``shared`` writes changes back and lets the file grow."""
    from facula.storage import from_file as map_file

    return map_file(filename, shared, nbytes)


for _name in _CONVERSIONS:
    setattr(UntypedStorage, _name, _conversion(_name))
for _method in (is_pinned, pin_memory, get_device, untyped, new, to, type, byteswap):
    _method.__qualname__ = f"UntypedStorage.{_method.__name__}"
    setattr(UntypedStorage, _method.__name__, _method)
for _maker in (from_buffer, from_file):
    setattr(UntypedStorage, _maker.__name__, staticmethod(_maker))
UntypedStorage.is_sparse = UntypedStorage.is_sparse_csr = False
