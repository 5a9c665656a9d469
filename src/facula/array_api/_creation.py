"""New arrays."""

from __future__ import annotations

import builtins
from typing import Any, Literal

import facula
from facula import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def asarray(
    obj: Any,
    /,
    *,
    dtype: facula.dtype | None = None,
    device: Any = None,
    copy: builtins.bool | None = None,
) -> Tensor:
    """``obj`` as an array. Integers that int64 does not hold become uint64.

    Example::

        >>> import facula.array_api as xp
        >>> xp.asarray([[1.5], [2]])
        tensor([[1.5000],
                [2.0000]])
    """
    if copy is False and not hasattr(obj, "__dlpack__") and not _has_buffer(obj):
        raise ValueError(f"asarray: a {type(obj).__name__} cannot become an array without a copy")
    if dtype is None and isinstance(obj, int) and obj > facula.iinfo(facula.int64).max:
        dtype = facula.uint64
    if isinstance(obj, (list, tuple)) and any(isinstance(leaf, Tensor) for leaf in _leaves(obj)):
        from facula.array_api._manipulation import stack

        arrays = [asarray(o, device=device) for o in obj]
        joined = stack(arrays)
        return joined if dtype is None else joined.to(dtype)
    return facula.asarray(obj, dtype=dtype, device=device, copy=copy)


def _leaves(obj: Any) -> Any:
    for item in obj:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _has_buffer(obj: Any) -> builtins.bool:
    try:
        memoryview(obj).release()
    except (TypeError, BufferError):
        return False
    return True


def from_dlpack(x: Any, /, *, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """An array over the memory of an object of another library."""
    return facula.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: facula.dtype | None = None,
    device: Any = None,
) -> Tensor:
    """Numbers from ``start`` up to and without ``stop``; an empty array where there are none.

    Example::

        >>> import facula.array_api as xp
        >>> xp.arange(5, 0, -2)
        tensor([5, 3, 1])
    """
    begin, end = (0, start) if stop is None else (start, stop)
    if (end - begin) * step <= 0:
        whole = all(isinstance(v, int) for v in (begin, end, step))
        kind = dtype or (facula.int64 if whole else facula.get_default_dtype())
        return facula.empty(0, dtype=kind, device=device)
    return facula.arange(begin, end, step, dtype=dtype, device=device)


def empty(
    shape: int | tuple[int, ...], *, dtype: facula.dtype | None = None, device: Any = None
) -> Tensor:
    """An array whose elements are not set."""
    return facula.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: facula.dtype | None = None, device: Any = None) -> Tensor:
    """An array of the shape of another, whose elements are not set."""
    return facula.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: facula.dtype | None = None,
    device: Any = None,
) -> Tensor:
    """Ones on the ``k``-th diagonal of a matrix of zeros.

    Example::

        >>> import facula.array_api as xp
        >>> xp.eye(2, 3, k=1, dtype=xp.int8)
        tensor([[0, 1, 0],
                [0, 0, 1]], dtype=facula.int8)
    """
    n_cols = n_rows if n_cols is None else n_cols
    result = facula.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        result.diagonal(k).fill_(1)
    return result


def full(
    shape: int | tuple[int, ...],
    fill_value: complex,
    *,
    dtype: facula.dtype | None = None,
    device: Any = None,
) -> Tensor:
    """An array of one number."""
    shape = (shape,) if isinstance(shape, int) else shape
    if dtype is None and isinstance(fill_value, int) and fill_value >= 1 << 63:
        dtype = facula.uint64
    return facula.full(shape, fill_value, dtype=dtype, device=device)


def full_like(
    x: Tensor,
    /,
    fill_value: complex,
    *,
    dtype: facula.dtype | None = None,
    device: Any = None,
) -> Tensor:
    """An array of one number, of the shape of another."""
    return facula.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: facula.dtype | None = None,
    device: Any = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """``num`` numbers at equal distances.

    Example::

        >>> import facula.array_api as xp
        >>> xp.linspace(0, 1, 4, endpoint=False)
        tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if endpoint or num == 0:
        return facula.linspace(start, stop, num, dtype=dtype, device=device)
    return facula.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Arrays of coordinates from one axis each."""
    return tuple(facula.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(
    shape: int | tuple[int, ...], *, dtype: facula.dtype | None = None, device: Any = None
) -> Tensor:
    """An array of ones."""
    return facula.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: facula.dtype | None = None, device: Any = None) -> Tensor:
    """An array of ones, of the shape of another."""
    return facula.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices without what is above the ``k``-th diagonal."""
    return facula.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices without what is below the ``k``-th diagonal."""
    return facula.triu(x, k)


def zeros(
    shape: int | tuple[int, ...], *, dtype: facula.dtype | None = None, device: Any = None
) -> Tensor:
    """An array of zeros."""
    return facula.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: facula.dtype | None = None, device: Any = None) -> Tensor:
    """An array of zeros, of the shape of another."""
    return facula.zeros_like(x, dtype=dtype, device=device)
