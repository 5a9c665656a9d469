"""Storages: the memory under tensors, as bytes or as numbers of one dtype."""

from __future__ import annotations

import mmap as _mmap
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from facula import _C
from facula._C import UntypedStorage
from facula._stored.dtypes import STORED

__all__ = ["TypedStorage", "UntypedStorage"]

# PyTorch's names of typed storages, which also stand in checkpoints.
DTYPE_OF_NAME = {
    "FloatStorage": _C.float32,
    "DoubleStorage": _C.float64,
    "HalfStorage": _C.float16,
    "BFloat16Storage": _C.bfloat16,
    "ByteStorage": _C.uint8,
    "CharStorage": _C.int8,
    "ShortStorage": _C.int16,
    "IntStorage": _C.int32,
    "LongStorage": _C.int64,
    "BoolStorage": _C.bool,
    "ComplexFloatStorage": _C.complex64,
    "ComplexDoubleStorage": _C.complex128,
    **{f"{d.title}Storage": d for d in STORED.values() if d.is_quantized},
}
NAME_OF_DTYPE = {d: n for n, d in DTYPE_OF_NAME.items()}


def whole_tensor(storage: UntypedStorage, dtype: Any = _C.uint8) -> Any:
    """The storage as a tensor of one dimension; bytes beyond the last element are left out."""
    held = getattr(dtype, "raw", dtype)  # quantized numbers are read as integers
    empty = _C._operators["empty"](0, dtype=held, device=storage.device)
    return empty.set_(storage, 0, (storage.nbytes() // dtype.itemsize,), (1,))


def from_file(
    path: str | os.PathLike[str], shared: bool = False, nbytes: int = 0
) -> UntypedStorage:
    """A storage over a file's bytes. ``shared`` writes changes back and grows the file if needed.

    Args:
        path: the file.
        shared: False keeps changes in memory; True writes them to the file.
        nbytes: how many bytes; 0 takes the whole file.
    """
    if nbytes < 0:
        raise ValueError(f"from_file(): the size must not be negative, got {nbytes} bytes")
    if shared:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    else:
        descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if nbytes > size:
            if not shared:
                raise RuntimeError(
                    f"from_file(): the file {os.fspath(path)!r} has {size} bytes, but {nbytes} "
                    "were asked for; shared=True lets it grow"
                )
            os.ftruncate(descriptor, nbytes)
        nbytes = nbytes or size
        if nbytes == 0:
            return UntypedStorage(0)
        access = _mmap.ACCESS_WRITE if shared else _mmap.ACCESS_COPY
        mapped = _mmap.mmap(descriptor, nbytes, access=access)
    finally:
        os.close(descriptor)
    return _C._frombuffer(mapped, _C.uint8).untyped_storage()


class TypedStorage:
    """Numbers of one dtype over an :class:`UntypedStorage`; programs should prefer the latter.

    Args:
        *args: nothing, a number of elements, or a sequence of numbers.
        wrap_storage: an untyped storage to look at instead of new memory.
        dtype: the dtype of the numbers; by default the default dtype.
        device: where new memory is made.

    Example::

        >>> facula.storage.TypedStorage([1, 2], dtype=facula.int16).nbytes()
        4
    """

    dtype: Any
    _untyped_storage: UntypedStorage

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        self.dtype = dtype or _C.get_default_dtype()
        if wrap_storage is not None:
            if args or device is not None:
                raise RuntimeError("wrap_storage= takes no other arguments than dtype=")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"wrap_storage must be UntypedStorage, not {type(wrap_storage).__name__}"
                )
            self._untyped_storage = wrap_storage
        elif len(args) > 1:
            raise TypeError(f"expected a size or a sequence of numbers, got {len(args)} arguments")
        elif not args or isinstance(args[0], int):
            size = args[0] if args else 0
            self._untyped_storage = UntypedStorage(size * self.dtype.itemsize, device=device)
        else:
            held = getattr(self.dtype, "raw", self.dtype)
            data = _C.tensor(list(args[0]), dtype=held, device=device)
            self._untyped_storage = data.untyped_storage()

    def _tensor(self) -> Any:
        return whole_tensor(self._untyped_storage, self.dtype)

    def _like(self, storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self.dtype)

    # ---- what it is

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """True on a CUDA device."""
        return self._untyped_storage.is_cuda

    @property
    def is_sparse(self) -> bool:
        """Always False."""
        return False

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def is_shared(self) -> bool:
        """Whether other processes can have the memory, too; CUDA memory they always can."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Moves the memory to where other processes can have it."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether the memory is pinned for a CUDA device."""
        return self._untyped_storage.is_pinned()

    def resizable(self) -> bool:
        """Whether ``resize_`` can change the size."""
        return self._untyped_storage.resizable()

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """How many bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one number."""
        return self.dtype.itemsize

    def size(self) -> int:
        """How many numbers."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def data_ptr(self) -> int:
        """The address of the first number, or 0."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        """The index of the CUDA device, or -1."""
        index = self.device.index
        return -1 if index is None else index

    def pickle_storage_type(self) -> str:
        """The name of the storage's type in checkpoints."""
        try:
            return NAME_OF_DTYPE[self.dtype]
        except KeyError:
            raise KeyError(f"there is no typed storage of the dtype {self.dtype}") from None

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the type, or a copy converted to another dtype."""
        if dtype is None:
            where = "cuda." if self.is_cuda else ""
            return f"facula.{where}{NAME_OF_DTYPE.get(self.dtype, 'TypedStorage')}"
        if isinstance(dtype, str):
            dtype = DTYPE_OF_NAME[dtype.rpartition(".")[2]]
        dtype = getattr(dtype, "dtype", dtype)
        return self if dtype is self.dtype else self._to(dtype)

    # ---- numbers

    def __getitem__(self, index: Any) -> Any:
        found = self._tensor()[self._checked(index)]
        return found.item() if isinstance(index, int) else found.tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor()[self._checked(index)] = value

    def _checked(self, index: Any) -> Any:
        if isinstance(index, slice):
            return index
        if not isinstance(index, int):
            raise TypeError(f"can't index a storage with {type(index).__name__}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The numbers as a list."""
        return self._tensor().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every number."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Takes over the numbers of another storage of the same size, converted."""
        other = source._tensor() if isinstance(source, TypedStorage) else whole_tensor(source)
        if other.numel() != len(self):
            raise RuntimeError(
                f"size does not match, self has {len(self)} elements but source {other.numel()}"
            )
        self._tensor().copy_(other)
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Changes how many numbers there are, keeping those that remain."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    # ---- copies

    def clone(self) -> TypedStorage:
        """A copy with its own memory."""
        return self._like(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        import copy

        return self._like(copy.deepcopy(self._untyped_storage, memo))

    def __reduce__(self) -> Any:
        return _rebuild, (self._untyped_storage, self.dtype)

    def cpu(self) -> TypedStorage:
        """A copy in host memory, or the storage itself."""
        return self if self.device.type == "cpu" else self._like(self._untyped_storage.cpu())

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """A copy on another device, or the storage itself."""
        moved = self._untyped_storage.to(device=device)
        return self if moved is self._untyped_storage else self._like(moved)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a CUDA device, or the storage itself."""
        moved = self._untyped_storage.cuda(device)
        return self if moved is self._untyped_storage else self._like(moved)

    def pin_memory(self, device: Any = "cuda") -> TypedStorage:
        """A copy in page-locked host memory, or the storage itself."""
        pinned = self._untyped_storage.pin_memory(device)
        return self if pinned is self._untyped_storage else self._like(pinned)

    def _to(self, dtype: Any) -> TypedStorage:
        converted = self._tensor().to(dtype, copy=True)
        return TypedStorage(wrap_storage=converted.untyped_storage(), dtype=dtype)

    def float(self) -> TypedStorage:
        """As float32."""
        return self._to(_C.float32)

    def double(self) -> TypedStorage:
        """As float64."""
        return self._to(_C.float64)

    def half(self) -> TypedStorage:
        """As float16."""
        return self._to(_C.float16)

    def bfloat16(self) -> TypedStorage:
        """As bfloat16."""
        return self._to(_C.bfloat16)

    def long(self) -> TypedStorage:
        """As int64."""
        return self._to(_C.int64)

    def int(self) -> TypedStorage:
        """As int32."""
        return self._to(_C.int32)

    def short(self) -> TypedStorage:
        """As int16."""
        return self._to(_C.int16)

    def char(self) -> TypedStorage:
        """As int8."""
        return self._to(_C.int8)

    def byte(self) -> TypedStorage:
        """As uint8."""
        return self._to(_C.uint8)

    def bool(self) -> TypedStorage:
        """As bool."""
        return self._to(_C.bool)

    def complex_float(self) -> TypedStorage:
        """As complex64."""
        return self._to(_C.complex64)

    def complex_double(self) -> TypedStorage:
        """As complex128."""
        return self._to(_C.complex128)

    # ---- other memory

    @staticmethod
    def from_buffer(
        buffer: Any,
        byte_order: str = "native",
        *,
        dtype: Any = None,
        count: Any = -1,
        offset: Any = 0,
    ) -> TypedStorage:
        """A copy of numbers in a buffer; ``byte_order`` is "native", "little" or "big"."""
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"byte_order must be 'native', 'little' or 'big', got {byte_order!r}")
        dtype = dtype or _C.get_default_dtype()
        copy = bytearray(memoryview(buffer))
        storage = _C._frombuffer(copy, dtype, count, offset).clone().untyped_storage()
        if byte_order not in ("native", sys.byteorder):
            swap_bytes(storage, dtype)
        return TypedStorage(wrap_storage=storage, dtype=dtype)

    @staticmethod
    def from_file(
        filename: str, shared: Any = False, size: Any = 0, *, dtype: Any = None
    ) -> TypedStorage:
        """Numbers over a file's bytes; see :func:`facula.from_file`."""
        dtype = dtype or _C.get_default_dtype()
        storage = from_file(filename, shared, size * dtype.itemsize)
        return TypedStorage(wrap_storage=storage, dtype=dtype)

    def __eq__(self, other: object) -> Any:
        return (
            isinstance(other, TypedStorage)
            and self.dtype is other.dtype
            and self.data_ptr() == other.data_ptr()
            and len(self) == len(other)
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = "..." if self.device.type == "meta" else "\n ".join(map(str, self._shown()))
        return (
            f" {shown}\n[facula.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {len(self)}]"
        )

    def _shown(self) -> Iterable[Any]:
        numbers = self._tensor()[:1000].tolist()
        return numbers if len(self) <= 1000 else [*numbers, "..."]


class _NamedStorage(type):
    """``isinstance(x, facula.FloatStorage)`` asks for the dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        return TypedStorage.from_buffer(*args, dtype=cls.dtype, **kwargs)

    def from_file(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        return TypedStorage.from_file(*args, dtype=cls.dtype, **kwargs)

    def _new_shared(cls, size: int) -> TypedStorage:
        storage: TypedStorage = cls(size)
        return storage.share_memory_()


NAMED = {
    name: _NamedStorage(
        name,
        (),
        {
            "dtype": dtype,
            "__module__": "facula",
            "__doc__": f"Typed storages of {dtype}; programs should prefer UntypedStorage.",
        },
    )
    for name, dtype in DTYPE_OF_NAME.items()
}
Storage = NAMED["FloatStorage"]  # PyTorch's, whatever the default dtype is


def _rebuild(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def swap_bytes(storage: UntypedStorage, dtype: Any) -> None:
    """Turns the bytes of every number round; both parts of a complex number stay in place."""
    item = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if item > 1:
        count = storage.nbytes() // item
        rows = whole_tensor(storage)[: count * item].view(count, item)
        rows.copy_(rows.flip(1))
