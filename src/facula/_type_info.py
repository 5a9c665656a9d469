"""finfo and iinfo: the limits of dtypes."""

from __future__ import annotations

from typing import Any

from facula import _C

__all__ = ["finfo", "iinfo"]

# name: (bits, eps, max, tiny, smallest subnormal)
_FLOATS = {
    "float16": (16, 2.0**-10, 65504.0, 2.0**-14, 2.0**-24),
    "bfloat16": (16, 2.0**-7, 3.3895313892515355e38, 2.0**-126, 2.0**-133),
    "float32": (32, 2.0**-23, 3.4028234663852886e38, 2.0**-126, 2.0**-149),
    "float64": (64, 2.0**-52, 1.7976931348623157e308, 2.0**-1022, 2.0**-1074),
    "float8_e4m3fn": (8, 0.125, 448.0, 2.0**-6, 2.0**-9),
    "float8_e5m2": (8, 0.25, 57344.0, 2.0**-14, 2.0**-16),
    "float8_e4m3fnuz": (8, 0.125, 240.0, 2.0**-7, 2.0**-10),
    "float8_e5m2fnuz": (8, 0.125, 57344.0, 2.0**-15, 2.0**-17),
    "float8_e8m0fnu": (8, 1.0, 2.0**127, 2.0**-127, 2.0**-127),
}


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


class finfo:
    """The limits of a floating-point dtype.

    Example::

        >>> facula.finfo(facula.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, dtype: Any = None) -> None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if not isinstance(dtype, _C.dtype):
            raise TypeError(
                f"finfo(): argument 'type' must be facula.dtype, not {type(dtype).__name__}"
            )
        real = dtype.to_real() if dtype.is_complex else dtype
        if _name(real) not in _FLOATS:
            raise TypeError(
                "facula.finfo() requires a floating point input type. "
                "Use facula.iinfo to handle integers"
            )
        self.dtype = _name(real)
        self.bits, self.eps, self.max, self.tiny, self._subnormal = _FLOATS[self.dtype]
        self.min = -self.max if dtype.is_signed else self.tiny
        self.smallest_normal = self.tiny
        self.resolution = {
            "float16": 1e-3,
            "bfloat16": 1e-2,
            "float32": 1e-6,
            "float64": 1e-15,
        }.get(self.dtype, 1.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.

    Example::

        >>> facula.iinfo(facula.int8).max
        127
    """

    def __init__(self, dtype: Any) -> None:
        if not isinstance(dtype, _C.dtype):
            raise TypeError(
                f"iinfo(): argument 'type' must be facula.dtype, not {type(dtype).__name__}"
            )
        if dtype.is_floating_point or dtype.is_complex:
            raise TypeError(
                "facula.iinfo() requires an integer input type. Use facula.finfo to handle floats"
            )
        if dtype is _C.bool or type(dtype) is not _C.dtype:
            raise TypeError(f"{dtype} is not supported by iinfo")
        self.dtype = _name(dtype)
        self.bits = dtype.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max = 2 ** (self.bits - dtype.is_signed) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
