"""Dtypes: how they promote, what kinds there are, what they hold."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import facula
from facula import Tensor

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_SIGNED = (facula.int8, facula.int16, facula.int32, facula.int64)
_UNSIGNED = (facula.uint8, facula.uint16, facula.uint32, facula.uint64)
_REAL = (facula.float16, facula.bfloat16, facula.float32, facula.float64)
_COMPLEX = (facula.complex64, facula.complex128)
KINDS: dict[str, tuple[facula.dtype, ...]] = {
    "bool": (facula.bool,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


def promoted(a: facula.dtype, b: facula.dtype) -> facula.dtype:
    """The dtype that holds the values of both."""
    if a is b:
        return a
    if a in _UNSIGNED and b in _UNSIGNED:
        return a if a.itemsize > b.itemsize else b
    if a in _UNSIGNED and b in _SIGNED:
        a, b = b, a
    if a in _SIGNED and b in _UNSIGNED:
        if a.itemsize > b.itemsize:
            return a
        if b.itemsize == 8:
            raise TypeError(f"no integer dtype holds the values of both {a} and {b}")
        return _SIGNED[_UNSIGNED.index(b) + 1]
    return facula.promote_types(a, b)


def scalar_dtype(value: Any, dtype: facula.dtype) -> facula.dtype:
    """The dtype that a Python number has beside an array: the array's own."""
    if isinstance(value, builtins.bool):
        return dtype
    if isinstance(value, int) and dtype is not facula.bool:
        return dtype
    if isinstance(value, float) and (dtype in _REAL or dtype in _COMPLEX):
        return dtype
    if isinstance(value, complex) and dtype in _COMPLEX:
        return dtype
    if isinstance(value, complex) and dtype in _REAL:
        return facula.complex128 if dtype is facula.float64 else facula.complex64
    raise TypeError(f"a Python {type(value).__name__} cannot stand beside an array of {dtype}")


def result_type(*arrays_and_dtypes: Tensor | facula.dtype | complex) -> facula.dtype:
    """The dtype of what arrays, dtypes and numbers give together.

    Example::

        >>> import facula.array_api as xp
        >>> xp.result_type(xp.uint8, xp.int8, 1)
        facula.int16
    """
    numbers, found = [], None
    for x in arrays_and_dtypes:
        if isinstance(x, (Tensor, facula.dtype)):
            dtype = x.dtype if isinstance(x, Tensor) else x
            found = dtype if found is None else promoted(found, dtype)
        else:
            numbers.append(x)
    if found is None:
        raise ValueError("at least one array or dtype is required")
    for number in numbers:
        found = scalar_dtype(number, found)
    return found


def can_cast(from_: Tensor | facula.dtype, to: facula.dtype, /) -> builtins.bool:
    """Whether promotion may turn one dtype into another.

    Example::

        >>> import facula.array_api as xp
        >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.int16, xp.int8)
        (True, False)
    """
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promoted(dtype, to) is to
    except TypeError:
        return False


def isdtype(
    dtype: facula.dtype, kind: facula.dtype | str | tuple[facula.dtype | str, ...]
) -> builtins.bool:
    """Whether a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric", a dtype, or one of several.

    Example::

        >>> import facula.array_api as xp
        >>> xp.isdtype(xp.uint8, ("bool", "unsigned integer"))
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; the kinds are {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    if not isinstance(kind, facula.dtype):
        raise TypeError(f"kind should be a dtype, a text or a tuple of them, got {kind!r}")
    return dtype is kind


def astype(
    x: Tensor, dtype: facula.dtype, /, *, copy: builtins.bool = True, device: Any = None
) -> Tensor:
    """An array with another dtype; with ``copy=False`` the array itself where nothing changes.

    Example::

        >>> import facula.array_api as xp
        >>> xp.astype(xp.asarray([1.7, -1.7]), xp.int32)
        tensor([ 1, -1], dtype=facula.int32)
    """
    if x.dtype in _COMPLEX and dtype not in _COMPLEX and dtype is not facula.bool:
        raise TypeError(f"complex numbers cannot become {dtype}; take their real part first")
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


class finfo_object(NamedTuple):
    """What :func:`finfo` returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: facula.dtype


class iinfo_object(NamedTuple):
    """What :func:`iinfo` returns."""

    bits: int
    max: int
    min: int
    dtype: facula.dtype


def finfo(type: facula.dtype | Tensor, /) -> finfo_object:
    """The limits of a floating-point dtype.

    Example::

        >>> import facula.array_api as xp
        >>> xp.finfo(xp.float32).bits
        32
    """
    dtype = type.dtype if isinstance(type, Tensor) else type
    info = facula.finfo(dtype)
    real = facula.empty((), dtype=dtype).real.dtype if dtype in _COMPLEX else dtype
    return finfo_object(info.bits, info.eps, info.max, info.min, info.smallest_normal, real)


def iinfo(type: facula.dtype | Tensor, /) -> iinfo_object:
    """The limits of an integer dtype.

    Example::

        >>> import facula.array_api as xp
        >>> xp.iinfo(xp.uint64).max
        18446744073709551615
    """
    dtype = type.dtype if isinstance(type, Tensor) else type
    info = facula.iinfo(dtype)
    return iinfo_object(info.bits, info.max, info.min, dtype)
