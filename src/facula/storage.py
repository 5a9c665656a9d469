"""Storages: the memory under tensors, as bytes or as elements of one dtype."""

from __future__ import annotations

from typing import Any

from facula import _C, _legacy_types
from facula._C import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

_ops = _C._operators


class TypedStorage:
    """The memory of a tensor seen as elements: what ``Tensor.storage()`` returns.

    ``TypedStorage(3, dtype=...)`` and ``TypedStorage([1, 2], dtype=...)`` make new memory,
    ``TypedStorage(wrap_storage=..., dtype=...)`` looks at that of another storage.

    Example::

        >>> storage = facula.tensor([1., 2.]).storage()
        >>> storage.size(), storage[1]
        (2, 2.0)
    """

    _default_dtype: Any = None  # what the classes with a dtype in their name are for

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None
    ) -> None:
        kind = type(self).__name__
        dtype = dtype or self._default_dtype or _C.get_default_dtype()
        if len(args) > 1:
            raise TypeError(f"{kind}() takes at most one size or sequence, but got {len(args)}")
        if wrap_storage is not None:
            if args:
                raise TypeError(f"{kind}(): wrap_storage= goes with no size or sequence")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{kind}(): wrap_storage must be UntypedStorage, not "
                    f"{type(wrap_storage).__name__}"
                )
            self._untyped_storage = wrap_storage
        elif not args or isinstance(args[0], int):
            size = args[0] if args else 0
            empty = _ops["empty"](size, dtype=dtype, device=device)
            self._untyped_storage = empty.untyped_storage()
        elif isinstance(args[0], (UntypedStorage, TypedStorage)):
            raise TypeError(f"{kind}(): pass an existing storage as wrap_storage=")
        else:
            data = _C.tensor(args[0], dtype=dtype, device=device).reshape(-1)
            self._untyped_storage = data.untyped_storage()
        self.dtype = dtype

    # ---- what it holds

    def _tensor(self) -> Any:
        """All elements as a tensor over this memory."""
        return _ops["empty"](0, dtype=self.dtype, device=self.device).set_(self)

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

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
        """False: storages are dense."""
        return False

    @property
    def filename(self) -> None:
        """None: the memory is that of no file."""
        return None

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def size(self) -> int:
        """How many elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def nbytes(self) -> int:
        """How many bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        """The number of the CUDA device."""
        return self.device.index if self.is_cuda else -1

    def is_pinned(self, device: Any = None) -> bool:
        """True for page-locked host memory."""
        return False

    def is_shared(self) -> bool:
        """True for memory that other processes see."""
        return self.is_cuda

    def resizable(self) -> bool:
        """False when others point into the memory."""
        return self._untyped_storage.resizable()

    # ---- elements

    def _position(self, index: Any) -> int:
        if isinstance(index, slice):
            raise RuntimeError(
                "slices are only supported in UntypedStorage.__getitem__; use storage.tolist() or a "
                "tensor"
            )
        if not isinstance(index, int):
            raise TypeError(f"can't index a {type(self).__name__} with {type(index).__name__}")
        n = self.size()
        if not -n <= index < n:
            raise IndexError(f"index {index} out of range for storage of size {n}")
        return index % n

    def __getitem__(self, index: int) -> Any:
        return self._tensor()[self._position(index)].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if not isinstance(index, slice):
            index = self._position(index)
        if isinstance(value, TypedStorage):
            value = value._tensor()
        self._tensor()[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        return self._tensor().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Copies the elements of another storage of the same size."""
        if isinstance(source, UntypedStorage):
            self._untyped_storage.copy_(source, non_blocking)
            return self
        if len(source) != len(self):
            raise RuntimeError(
                f"copy_(): size does not match, self was {len(self)} elements but source was "
                f"{len(source)} elements"
            )
        self._tensor().copy_(source._tensor())
        return self

    def resize_(self, size: int) -> None:
        """Changes the number of elements, keeping those that remain."""
        self._untyped_storage.resize_(size * self.element_size())

    # ---- copies

    def _over(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def clone(self) -> TypedStorage:
        """A copy with its own memory."""
        return self._over(self._untyped_storage.clone())

    def cpu(self) -> TypedStorage:
        """A copy in host memory, or the storage itself."""
        return self if self.device.type == "cpu" else self._over(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a CUDA device, or the storage itself."""
        where = () if device is None else (device,)
        moved = self._untyped_storage.cuda(*where)
        return self if moved is self._untyped_storage else self._over(moved)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """A copy on another device, or the storage itself."""
        moved = self._tensor().to(device).untyped_storage()
        return self if moved is self._untyped_storage else self._over(moved)

    def share_memory_(self) -> TypedStorage:
        """Returns the storage: host memory of this process."""
        return self

    def _to_dtype(self, dtype: Any) -> TypedStorage:
        if dtype == self.dtype:
            return self
        converted = self._tensor().to(dtype)
        return TypedStorage(wrap_storage=converted.untyped_storage(), dtype=dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the storage's type, or the elements converted to another dtype."""
        if dtype is None:
            return f"facula.{'cuda.' if self.is_cuda else ''}{self.pickle_storage_type()}"
        return self._to_dtype(_legacy_types.dtype_of(dtype))

    def pickle_storage_type(self) -> str:
        """The older name of the storage's type, such as FloatStorage."""
        return _legacy_types.storage_name(self.dtype)

    # ---- as an object

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        import copy

        return self._over(copy.deepcopy(self._untyped_storage, memo))

    def __reduce__(self) -> Any:
        return _rebuild, (self._untyped_storage, self.dtype)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        name = f"facula.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        if self.device.type == "meta":
            return f"...\n[{name} of size {self.size()}]"
        return "\n ".join(["", *map(str, self.tolist())]) + f"\n[{name} of size {self.size()}]"


def _rebuild(untyped: UntypedStorage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _convert(name: str, dtype: Any) -> Any:
    def converted(self: TypedStorage) -> TypedStorage:
        return self._to_dtype(dtype)

    converted.__name__ = name
    converted.__doc__ = f"The elements as {dtype}."
    return converted


for _name, _dtype in (
    *(("double", _C.float64), ("float", _C.float32), ("half", _C.float16)),
    *(("bfloat16", _C.bfloat16), ("long", _C.int64), ("int", _C.int32), ("short", _C.int16)),
    *(("char", _C.int8), ("byte", _C.uint8), ("bool", _C.bool)),
    *(("complex_double", _C.complex128), ("complex_float", _C.complex64)),
):
    setattr(TypedStorage, _name, _convert(_name, _dtype))


class _StorageOfDtype(type):
    """``isinstance(s, facula.FloatStorage)`` asks for the dtype."""

    _default_dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls._default_dtype

    def __call__(cls, *args: Any, wrap_storage: Any = None) -> TypedStorage:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._default_dtype)


def storage_class(name: str) -> Any:
    """The class with an older name such as FloatStorage."""
    dtype = _legacy_types.storage_dtype(name)
    return _StorageOfDtype(name, (), {"_default_dtype": dtype, "__module__": "facula"})
