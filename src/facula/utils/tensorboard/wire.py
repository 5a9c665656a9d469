"""The wire format of protocol buffers, as far as TensorBoard's messages need it.

A message is the bytes of its fields, one after the other; each function makes those of one field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(n: int) -> bytes:
    """Seven bits at a time, the lowest first; negative numbers as 64 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # beyond what float32 holds
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def float32(field: int, value: float) -> bytes:
    return varint(field << 3 | _FIXED32) + _float32(value)


def data(field: int, value: bytes | str) -> bytes:
    """Bytes, a text, or a message."""
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def doubles(field: int, values: Iterable[float]) -> bytes:
    values = list(values)
    return data(field, struct.pack(f"<{len(values)}d", *values))


def floats(field: int, values: Iterable[float]) -> bytes:
    return data(field, b"".join(map(_float32, values)))
