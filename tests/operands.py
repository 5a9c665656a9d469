"""Tensors as the derived tests describe them: values, dtype and memory layout, without a package.

An `Operand` becomes a tensor of the package under test, a tensor of PyTorch, a tensor on the meta
device or a NumPy array, so that one sample serves every comparison.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

DTYPES = {
    "b": ("bool",),
    "i": ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    "f": ("float16", "bfloat16", "float32", "float64"),
    "c": ("complex64", "complex128"),
}
LETTER = {dtype: letter for letter, group in DTYPES.items() for dtype in group}
# What NumPy stores the values of a dtype in; it has no bfloat16.
STORED_AS = {dtype: dtype for dtype in LETTER} | {"bfloat16": "float32"}
REAL_OF = {"complex64": "float32", "complex128": "float64"}
COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}

LAYOUTS = ("contiguous", "transposed", "stepped", "expanded", "offset", "channels_last")


def dtypes_of(letters: str) -> list[str]:
    return [dtype for letter in "bifc" if letter in letters for dtype in DTYPES[letter]]


@dataclass(frozen=True, eq=False)
class Operand:
    values: np.ndarray  # representable in dtype exactly
    dtype: str
    strides: tuple[int, ...]  # in elements
    offset: int = 0
    role: str = "data"  # "index" and "mask" take no part in type promotion
    constant: bool = False  # the operator refuses to differentiate by it

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def overlaps(self) -> bool:
        return any(n > 1 and s == 0 for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def is_differentiable(self) -> bool:
        return self.role == "data" and LETTER[self.dtype] in "fc" and not self.constant

    def _storage(self) -> np.ndarray:
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        length = self.offset + (last + 1 if self.values.size else 0)
        # The gaps hold a value that no sample draws, so that reading them is noticed.
        storage = np.full(length, 77, dtype=STORED_AS[self.dtype])
        if self.values.size:
            item = storage.itemsize
            view = np.lib.stride_tricks.as_strided(
                storage[self.offset :], self.shape, [s * item for s in self.strides]
            )
            view[...] = self.values
        return storage

    def tensor(self, package: Any, device: str | None = None) -> Any:
        """A new tensor with these values and this layout; with device="meta", the layout only."""
        dtype = getattr(package, self.dtype)
        if device is not None:
            return package.empty_strided(self.shape, self.strides, dtype=dtype, device=device)
        flat = package.from_numpy(self._storage()).to(dtype)
        if self.offset == 0 and self.strides == contiguous_strides(self.shape):
            return flat.reshape(self.shape)
        return flat.as_strided(self.shape, self.strides, self.offset)

    def array(self) -> np.ndarray:
        """The values for a reference: floats in float64, complex in complex128, integers as is."""
        wide = {"f": "float64", "c": "complex128"}.get(LETTER[self.dtype], self.dtype)
        return self.values.astype(wide)

    def contiguous(self) -> Operand:
        return replace(self, strides=contiguous_strides(self.shape), offset=0)

    def __repr__(self) -> str:
        layout = "" if self.strides == contiguous_strides(self.shape) else f", {self.strides}"
        values = f" = {self.values.tolist()}" if self.values.size <= 12 else ""
        return f"{self.dtype}{list(self.shape)}{layout}{values}"


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return strides_in_order(shape, range(len(shape)))


def strides_in_order(shape: tuple[int, ...], order: Any) -> tuple[int, ...]:
    """Dense strides when `order` lists the dimensions from the slowest to the fastest."""
    strides, step = [0] * len(shape), 1
    for dim in reversed(list(order)):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def layout_strides(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], int]:
    """(strides, offset) of a named layout; a shape that is too small for it gets a simpler one."""
    ndim = len(shape)
    if layout == "transposed" and ndim >= 2:
        return strides_in_order(shape, [*range(ndim - 2), ndim - 1, ndim - 2]), 0
    if layout == "channels_last" and ndim == 4:
        return strides_in_order(shape, (0, 2, 3, 1)), 0
    if layout == "stepped" or (layout == "transposed" and ndim == 1):
        return tuple(2 * s for s in contiguous_strides(shape)), 1
    if layout == "expanded" and ndim >= 1:
        return (0, *contiguous_strides(shape[1:])), 0
    if layout == "offset":
        return contiguous_strides(shape), 3
    if layout == "alone":  # dimensions of size 1 were larger, and kept their strides
        strides = zip(contiguous_strides(shape), shape, strict=True)
        return tuple(100 + stride if n == 1 else stride for stride, n in strides), 0
    return contiguous_strides(shape), 0


def representable(values: np.ndarray, dtype: str) -> np.ndarray:
    """`values` rounded to `dtype`, in the dtype that NumPy stores it as."""
    stored = np.asarray(values).astype(STORED_AS[dtype])
    if dtype != "bfloat16":
        return stored
    bits = stored.view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(stored), rounded.astype(np.uint32).view(np.float32), stored)


@dataclass
class Sample:
    """One call: arguments with Operands where tensors go."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True  # finite differences make sense here

    def operands(self) -> list[Operand]:
        found: list[Operand] = []
        for value in (*self.args, *self.kwargs.values()):
            found += [v for v in (value if _is_list(value) else [value]) if isinstance(v, Operand)]
        return found

    def map(self, convert: Any) -> tuple[list[Any], dict[str, Any]]:
        """(args, kwargs) with every Operand converted, also those within lists."""

        def one(value: Any) -> Any:
            if isinstance(value, Operand):
                return convert(value)
            return type(value)(map(one, value)) if _is_list(value) else value

        return [one(v) for v in self.args], {k: one(v) for k, v in self.kwargs.items()}

    def tensors(self, package: Any, device: str | None = None) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for `package`; dtypes are given by name in samples."""
        args, kwargs = self.map(lambda operand: operand.tensor(package, device))
        return with_dtypes(package, args, kwargs)

    def __repr__(self) -> str:
        parts = [repr(a) for a in self.args] + [f"{k}={v!r}" for k, v in self.kwargs.items()]
        return f"{self.name}: ({', '.join(parts)})"


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def with_dtypes(package: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """(args, kwargs) with the dtypes of a package in place of their names."""
    return [_named(package, a) for a in args], {k: _named(package, v) for k, v in kwargs.items()}


def _named(package: Any, value: Any) -> Any:
    return getattr(package, value) if isinstance(value, str) and value in LETTER else value


def registry() -> tuple[dict[str, tuple[Any, ...]], Any]:
    """(entries, decorator): the decorator files a generator of samples under a name.

    It takes the dtype letters, or single dtypes, for rows that do not say which they accept.
    """
    entries: dict[str, tuple[Any, ...]] = {}

    def named(name: str, types: str = "bifc", dtypes: tuple[str, ...] = ()) -> Any:
        def file(make: Any) -> Any:
            assert name not in entries, f"two generators are called {name!r}"
            entries[name] = (make, types, dtypes)
            return make

        return file

    return entries, named


# What floats are drawn from, by domain; a complex number gets both of its parts from it.
DOMAINS = {
    "real": (-3.0, 3.0),
    "positive": (0.2, 4.0),
    "unit": (-0.9, 0.9),
    "above_one": (1.1, 5.0),
    "probability": (0.05, 0.95),
}
INTEGER_DOMAINS = {
    "real": (-9, 9),
    "positive": (1, 9),
    "unit": (-1, 1),
    "above_one": (1, 9),
    "probability": (0, 1),
}


class Source:
    """Draws the operands of one row and dtype, always the same ones."""

    def __init__(self, row_id: str, dtype: str, domain: str = "real") -> None:
        self.dtype = dtype
        self.domain = domain
        self.random = np.random.default_rng(zlib.crc32(f"{row_id}:{dtype}".encode()))

    @property
    def letter(self) -> str:
        return LETTER[self.dtype]

    def __call__(
        self,
        *shape: int,
        layout: str = "contiguous",
        dtype: str | None = None,
        domain: str | None = None,
        nonzero: bool = False,
        distinct: bool = False,
        low: float | None = None,
        high: float | None = None,
    ) -> Operand:
        """An operand of the given shape; `low` and `high` (included) replace the domain's range."""
        dtype, domain = dtype or self.dtype, domain or self.domain
        letter = LETTER[dtype]
        strides, offset = layout_strides(shape, layout)
        drawn = tuple(1 if s == 0 else n for n, s in zip(shape, strides, strict=True))
        if letter == "b":
            values = self.random.integers(0, 2, drawn)
        elif letter == "i":
            least, most = INTEGER_DOMAINS[domain]
            least, most = (least if low is None else low), (most if high is None else high)
            if dtype.startswith("u"):
                least = max(least, 0)
            values = self.random.integers(int(least), int(most) + 1, drawn)
        else:
            least, most = DOMAINS[domain]
            least, most = (least if low is None else low), (most if high is None else high)
            values = self.random.uniform(least, most, drawn)
            if letter == "c":
                values = values + 1j * self.random.uniform(
                    *((-2.0, 2.0) if domain == "real" else (-0.9, 0.9)), drawn
                )
        if distinct and letter in "if":
            count = math.prod(drawn)
            values = self.random.permutation(count).reshape(drawn) - (
                0 if letter == "i" else count / 2 - 0.25
            )
        if nonzero and letter in "if":
            # Away from zero, so that quotients are smooth.
            values = np.where(np.abs(values) < 0.5, 2, values)
        values = representable(values, dtype)
        return Operand(np.broadcast_to(values, shape), dtype, strides, offset)

    def of(self, values: Any, layout: str = "contiguous", dtype: str | None = None) -> Operand:
        """An operand with given values."""
        dtype = dtype or self.dtype
        array = representable(np.asarray(values), dtype)
        return Operand(array, dtype, *layout_strides(array.shape, layout))

    def index(self, *shape: int, below: int, layout: str = "contiguous", low: int = 0) -> Operand:
        """Positions from `low` to `below`, not included."""
        drawn = self(*shape, dtype="int64", layout=layout, low=low, high=below - 1)
        return replace(drawn, role="index")

    def positions(self, values: Any) -> Operand:
        return replace(self.of(values, dtype="int64"), role="index")

    def mask(self, *shape: int, layout: str = "contiguous") -> Operand:
        return replace(self(*shape, dtype="bool", layout=layout), role="mask")

    def number(self) -> Any:
        """A Python number of the same kind as the dtype."""
        return {"b": True, "i": 2, "f": 1.5, "c": 1.5 - 0.5j}[self.letter]
