"""Names such as ``facula.FloatTensor`` that older programs use for dtypes."""

from __future__ import annotations

from typing import Any

from facula import _C

_NAMES = {
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
_BY_DTYPE = {d: n for n, d in _NAMES.items()}


class LegacyType(type):
    """``isinstance(x, facula.FloatTensor)`` asks for the dtype."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _C.Tensor) and instance.dtype is cls.dtype and instance.is_cpu

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not args:
            return _C._operators["empty"](0, dtype=cls.dtype)
        if all(isinstance(a, int) for a in args):
            return _C._operators["empty"](*args, dtype=cls.dtype)
        return _C.tensor(args[0], dtype=cls.dtype)


def make(name: str) -> Any:
    """The class with this name."""
    return LegacyType(name, (), {"dtype": _NAMES[name], "__module__": "facula"})


def names() -> list[str]:
    return list(_NAMES)


def name_of(tensor: Any) -> str:
    """What ``tensor.type()`` says."""
    where = "cuda." if tensor.is_cuda else ""
    return f"facula.{where}{_BY_DTYPE.get(tensor.dtype, str(tensor.dtype).rpartition('.')[2])}"


def dtype_of(kind: Any) -> Any:
    """The dtype of a dtype, a name, or one of the classes here."""
    if isinstance(kind, _C.dtype):
        return kind
    if isinstance(kind, LegacyType):
        return kind.dtype
    if isinstance(kind, str):
        name = kind.rpartition(".")[2]
        if name in _NAMES:
            return _NAMES[name]
    raise ValueError(f"invalid type: {kind!r}")
