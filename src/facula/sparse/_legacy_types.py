"""The classes that older programs make COO tensors with: ``facula.sparse.FloatTensor``.

Those of ``facula.cuda.sparse`` make them on the current CUDA device.
"""

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
    is_cuda: bool

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, _C.Tensor)
            and instance.is_sparse
            and instance.dtype is cls.dtype
            and instance.is_cuda == cls.is_cuda
        )

    def __call__(cls, *args: Any) -> Any:
        options = {"dtype": cls.dtype, "device": "cuda" if cls.is_cuda else "cpu"}
        if not args or isinstance(args[0], int):
            return sparse_coo_tensor(args or (0,), **options)
        if len(args) == 1:
            return sparse_coo_tensor(tuple(args[0]), **options)
        return sparse_coo_tensor(*args, **options)


def classes(cuda: bool = False) -> dict[str, Any]:
    """All of them by name."""
    members = {
        "is_sparse": True,
        "is_cuda": cuda,
        "layout": _C.sparse_coo,
        "__module__": "facula.cuda.sparse" if cuda else "facula.sparse",
    }
    return {
        name: _SparseType(name, (), {**members, "dtype": dtype}) for name, dtype in _DTYPES.items()
    }
