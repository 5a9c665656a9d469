"""Dtypes of bits, of integers below eight bits, of halved complex and of quantized numbers.

PyTorch has them so that memory can be labelled: tensors of such a dtype are made, cut, joined and
read as bytes, and programs of their own do the arithmetic. The core knows none of them. Some can be
converted to others and back (``_stored/numbers.py``). A
:class:`StoredDType` says which dtype of the core holds its bytes, and takes calls that name it.
"""

from __future__ import annotations

from typing import Any

from facula import _C


def names_in(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


class StoredDType(_C.dtype):  # type: ignore[misc]
    """A dtype without arithmetic. Tensors of it can be made, viewed, joined and read as bytes.

    Example::

        >>> facula.uint4.itemsize, facula.int4.is_signed
        (1, True)
        >>> facula.tensor([1, 2], dtype=facula.uint8).view(facula.uint4).dtype
        facula.uint4
    """

    name: str
    raw: Any  # the dtype of the core that holds the bytes
    per_byte: int  # elements in a byte, for quantized ones that are packed
    title: str  # PyTorch's name in messages

    def __init__(
        self,
        name: str,
        title: str,
        raw: Any,
        signed: bool | None = None,
        *,
        floating: bool = False,
        quantized: bool = False,
        is_complex: bool = False,
        per_byte: int = 1,
    ) -> None:
        self.__module__ = "facula"  # where pickles find it by its name
        self.name, self.title, self.raw, self.per_byte = name, title, raw, per_byte
        self._complex = is_complex
        self._floating, self._signed, self.is_quantized = floating, signed, quantized

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        size: int = self.raw.itemsize
        return size

    @property
    def is_floating_point(self) -> bool:
        """True for floating-point dtypes."""
        return self._floating

    @property
    def is_complex(self) -> bool:
        """True for complex dtypes."""
        return self._complex

    @property
    def is_signed(self) -> bool:
        """True when negative numbers can be held; bits and quantized numbers cannot say."""
        if self._signed is None:
            raise RuntimeError(f"{self!r} is neither signed nor unsigned")
        return self._signed

    def to_real(self) -> Any:
        """The dtype of the parts of a complex one."""
        if self._complex:
            return _C.float16
        raise RuntimeError(f"{self!r} has no complex counterpart")

    def to_complex(self) -> Any:
        """This one, where it is complex."""
        return self if self._complex else self.to_real()

    def __repr__(self) -> str:
        return f"facula.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    @classmethod
    def __torch_function__(  # type: ignore[no-untyped-def]
        cls, func, types, args=(), kwargs=None
    ):
        from facula._stored.tensor import dispatch

        return dispatch(func, args, kwargs or {})


def _bits() -> list[StoredDType]:
    kinds = [StoredDType(f"bits{k}", f"Bits{k}", _C.uint8) for k in ("8", "1x8", "2x4", "4x2")]
    return [*kinds, StoredDType("bits16", "Bits16", _C.uint16)]


def _small_integers() -> list[StoredDType]:
    return [
        StoredDType(f"{prefix.lower()}{width}", f"{prefix}{width}", _C.uint8, prefix == "Int")
        for prefix in ("Int", "UInt")
        for width in range(1, 8)
    ]


def _quantized() -> list[StoredDType]:
    kinds = [
        ("qint8", "QInt8", _C.int8, 1),
        ("quint8", "QUInt8", _C.uint8, 1),
        ("qint32", "QInt32", _C.int32, 1),
        ("quint4x2", "QUInt4x2", _C.uint8, 2),
        ("quint2x4", "QUInt2x4", _C.uint8, 4),
    ]
    return [
        StoredDType(name, title, raw, quantized=True, per_byte=per_byte)
        for name, title, raw, per_byte in kinds
    ]


STORED = {
    d.name: d
    for d in (
        *_bits(),
        *_small_integers(),
        *_quantized(),
        StoredDType("complex32", "ComplexHalf", _C.int32, True, is_complex=True),
        *(
            StoredDType(name, name.capitalize(), _C.uint8, signed, floating=True)
            for name, signed in (
                ("float4_e2m1fn_x2", True),
                ("float8_e4m3fnuz", True),
                ("float8_e5m2fnuz", True),
                ("float8_e8m0fnu", False),
            )
        ),
    )
}
globals().update(STORED)
bit = STORED["uint1"]
chalf = STORED["complex32"]
