"""Classes such as ``facula.FloatTensor`` that older programs use for dtypes and devices."""

from __future__ import annotations

from typing import Any

from facula import _C

_DTYPES = {
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "ByteTensor": _C.uint8,
    "CharTensor": _C.int8,
    "ShortTensor": _C.int16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "BoolTensor": _C.bool,
    "ComplexFloatTensor": _C.complex64,
    "ComplexDoubleTensor": _C.complex128,
}
_NAMES = {d: n for n, d in _DTYPES.items()}
_NAMES |= {getattr(_C, f"uint{n}"): f"UInt{n}Tensor" for n in (16, 32, 64)}  # names alone


class tensortype(type):
    """The class of such classes: ``isinstance(x, facula.FloatTensor)`` asks for the dtype."""

    dtype: Any
    is_cuda: bool
    layout: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, _C.Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is _C.strided
            and instance.device.type == cls._device_type
        )

    @property
    def _device_type(cls) -> str:
        return "cuda" if cls.is_cuda else "cpu"

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        where = _C.device(cls._device_type if device is None else device)
        if where.type != cls._device_type:
            raise RuntimeError(
                f"legacy constructor expects device type: {cls._device_type} but device type: "
                f"{where.type} was passed"
            )
        return construct(cls.dtype, where, args)


tensortype.__module__ = "facula"
_classes: dict[tuple[str, bool], Any] = {}


def find(name: str, cuda: bool = False) -> Any:
    """The class with this name in ``facula`` or ``facula.cuda``, or None."""
    if name not in _DTYPES:
        return None
    if (name, cuda) not in _classes:
        members = {
            "dtype": _DTYPES[name],
            "is_cuda": cuda,
            "is_sparse": False,
            "layout": _C.strided,
            "__module__": "facula.cuda" if cuda else "facula",
        }
        _classes[name, cuda] = tensortype(name, (), members)
    return _classes[name, cuda]


def construct(dtype: Any, device: Any, args: tuple[Any, ...]) -> Any:
    """What ``FloatTensor(*args)`` makes: of sizes, a sequence, an array, a tensor or a storage."""
    empty = _C._operators["empty"]
    first = args[0] if args else ()
    is_size = isinstance(first, int) and not isinstance(first, bool)
    if len(args) > 1 or is_size or not args:
        if not all(isinstance(a, int) and not isinstance(a, bool) for a in args):
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(
                f"new(): expected sizes, a sequence, a tensor or a storage, got ({kinds})"
            )
        return empty(args or (0,), dtype=dtype, device=device)
    if isinstance(first, _C.Size):
        return empty(tuple(first), dtype=dtype, device=device)
    if isinstance(first, _C.Tensor):
        if first.dtype is not dtype or first.device.type != device.type:
            raise TypeError(
                f"new(): expected a {dtype} tensor on {device.type}, got a {first.dtype} tensor on "
                f"{first.device}; use .to() to convert it"
            )
        return _C.Tensor(first)
    storage = getattr(first, "_untyped_storage", first)
    if isinstance(storage, _C.UntypedStorage):
        return from_storage(storage, getattr(first, "dtype", dtype), dtype)
    if not hasattr(first, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return _C.tensor(first, dtype=dtype, device=device)


def from_storage(storage: Any, holds: Any, dtype: Any) -> Any:
    """A tensor over all of a storage."""
    from facula.storage import whole_tensor

    if holds is not dtype:
        raise TypeError(f"new(): expected a storage of {dtype}, got one of {holds}")
    return whole_tensor(storage, dtype)


def name_of(tensor: Any) -> str:
    """What ``tensor.type()`` says."""
    where = "cuda." if tensor.is_cuda else ""
    where += "sparse." if tensor.is_sparse else ""
    return f"facula.{where}{_NAMES.get(tensor.dtype, str(tensor.dtype).rpartition('.')[2])}"


def convert(tensor: Any, kind: Any) -> Any:
    """What ``tensor.type(kind)`` makes: a dtype, one of the classes, or the name of one."""
    if isinstance(kind, _C.dtype):
        return tensor.to(kind)
    if kind is _C.Tensor or kind in ("facula.Tensor", "torch.Tensor"):
        return tensor.to("cpu", _C.get_default_dtype())
    found = _parse(kind) if isinstance(kind, str) else kind
    if not isinstance(found, tensortype):
        raise ValueError(f"invalid type: {kind!r}; expected a dtype or a name such as FloatTensor")
    same = tensor.is_cuda == found.is_cuda
    return tensor.to(found.dtype) if same else tensor.to(found._device_type, found.dtype)


def _parse(name: str) -> Any:
    package, _, rest = name.partition(".")
    if package not in ("facula", "torch"):
        return None
    where, _, last = rest.rpartition(".")
    return find(last, cuda=where == "cuda") if where in ("", "cuda") else None


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype and device by one of the classes, or the name of one.

    Example::

        >>> facula.set_default_tensor_type(facula.DoubleTensor)
        >>> facula.ones(1).dtype
        facula.float64
        >>> facula.set_default_tensor_type("facula.FloatTensor")
    """
    found = _parse(t) if isinstance(t, str) else t
    if not isinstance(found, tensortype):
        raise TypeError("invalid type object; expected a class such as facula.FloatTensor")
    if not found.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C._set_default_dtype(found.dtype)
    _C._set_default_device(found._device_type)
