"""The classes that older programs make COO tensors with: ``facula.sparse.FloatTensor``."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.sparse._construction import sparse_coo_tensor

_DTYPES = {
    "BFloat16Tensor": _C.bfloat16,
    "ByteTensor": _C.uint8,
    "CharTensor": _C.int8,
    "DoubleTensor": _C.float64,
    "FloatTensor": _C.float32,
    "HalfTensor": _C.float16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "ShortTensor": _C.int16,
}


class _SparseType(type):
    """The class of these classes: calling one makes a tensor, and tensors are instances."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, _C.Tensor) and instance.is_sparse and instance.dtype is cls.dtype
        )

    def __call__(cls, *args: Any) -> Any:
        if not args or isinstance(args[0], int):
            return sparse_coo_tensor(args or (0,), dtype=cls.dtype)
        if len(args) == 1:
            return sparse_coo_tensor(tuple(args[0]), dtype=cls.dtype)
        return sparse_coo_tensor(*args, dtype=cls.dtype)


def classes() -> dict[str, Any]:
    """All of them by name."""
    members = {"is_sparse": True, "layout": _C.sparse_coo, "__module__": "facula.sparse"}
    return {
        name: _SparseType(name, (), {**members, "dtype": dtype}) for name, dtype in _DTYPES.items()
    }
