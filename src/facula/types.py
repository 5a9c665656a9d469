"""Types for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO

from facula import Size, SymBool, SymFloat, SymInt, Tensor
from facula import device as _device
from facula import dtype as _dtype
from facula import layout as _layout
from facula.storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage", "_device", "_dtype", "_layout"]

_bool = builtins.bool
_int = builtins.int
_float = builtins.float
_complex = builtins.complex
_str = builtins.str
_bytes = builtins.bytes
_size = Size | list[int] | tuple[int, ...]
_symsize = Size | Sequence[int | SymInt]
_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]

BoolLikeType = bool | SymBool
IntLikeType = int | SymInt
FloatLikeType = float | SymFloat
PySymType = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)

Number = int | float | bool
_Number = (int, float, bool)
FileLike = str | os.PathLike[str] | IO[bytes]
Device = _device | str | int | None
Storage = UntypedStorage | TypedStorage
