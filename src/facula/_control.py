"""Small names of PyTorch for programs that have to run with and without a compiler."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import facula
from facula import _C, Tensor

# What a build of PyTorch may lack.
has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True


class AggregationType(enum.Enum):
    """How the results of several processes become one."""

    SUM = 0
    AVG = 1


AVG, SUM = AggregationType.AVG, AggregationType.SUM


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """``true_fn(*operands)`` or ``false_fn(*operands)``.

    Args:
        pred: a truth value, or a tensor with one element.
        true_fn: what is called when it is true.
        false_fn: what is called when it is not.
        operands: the arguments of both.

    Example::

        >>> x = facula.tensor([2.])
        >>> facula.cond(x.sum() > 1, lambda t: t * 2, lambda t: -t, (x,))
        tensor([4.])
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("cond(): true_fn and false_fn must be functions")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"cond(): operands must be a tuple or list, got {type(operands).__name__}"
        )
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"cond(): pred must have one element, got shape {tuple(pred.shape)}")
    return true_fn(*operands) if pred else false_fn(*operands)


def _constrain(name: str, size: Any, low: int | None, high: int | None) -> None:
    if not isinstance(size, (int, facula.SymInt)):
        raise ValueError(f"{name}(): the size must be an int, got {type(size).__name__}")
    if low is not None and high is not None and low > high:
        raise RuntimeError(f"{name}(): min must not be above max, got {low} and {high}")
    if (low is not None and size < low) or (high is not None and size > high):
        raise RuntimeError(f"{name}(): {size} is not between {low} and {high}")


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raises unless a number is within bounds, which both belong to.

    Example::

        >>> facula.sym_constrain_range(3, min=0, max=5)
    """
    _constrain("sym_constrain_range", size, min, max)


def sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    """Raises unless a number is within bounds and can be a size.

    Example::

        >>> facula.sym_constrain_range_for_size(3, max=5)
    """
    _constrain("sym_constrain_range_for_size", size, 0 if min is None else min, max)


def init_num_threads() -> None:
    """Decides how many threads share parallel work, if nothing has done so yet.

    Example::

        >>> facula.init_num_threads()
    """
    _C.get_num_threads()


def is_vulkan_available() -> bool:
    """False: Vulkan is not used.

    Example::

        >>> facula.is_vulkan_available()
        False
    """
    return False


def is_distributed(input: Tensor) -> bool:
    """False: no tensor is spread over processes.

    Example::

        >>> facula.is_distributed(facula.ones(1))
        False
    """
    return input.is_distributed()


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turns the search for errors of backward on or off; see ``autograd.set_detect_anomaly``.

    Example::

        >>> facula.set_anomaly_enabled(False)
        >>> facula.is_anomaly_enabled()
        False
    """
    _C._set_anomaly(mode, check_nan)


def conj_physical_(input: Tensor) -> Tensor:
    """Conjugates a tensor in place.

    Example::

        >>> facula.conj_physical_(facula.tensor([1 + 2j]))
        tensor([1.-2.j])
    """
    return input.conj_physical_()


def _sparse_copy(part: str, what: str, example: str) -> Callable[[Tensor], Tensor]:
    def copy(input: Tensor) -> Tensor:
        return getattr(input, part)().clone()  # type: ignore[no-any-return]

    copy.__name__ = copy.__qualname__ = f"{part}_copy"
    copy.__doc__ = (
        f"A copy of {what} of a sparse tensor, in memory of its own.\n\n"
        f"Example::\n\n    >>> facula.{part}_copy(facula.eye(2).{example}\n"
    )
    return copy


crow_indices_copy = _sparse_copy(
    "crow_indices", "where the rows begin", "to_sparse_csr())\n    tensor([0, 1, 2])"
)
col_indices_copy = _sparse_copy(
    "col_indices", "the columns", "to_sparse_csr())\n    tensor([0, 1])"
)
ccol_indices_copy = _sparse_copy(
    "ccol_indices", "where the columns begin", "to_sparse_csc())\n    tensor([0, 1, 2])"
)
row_indices_copy = _sparse_copy("row_indices", "the rows", "to_sparse_csc())\n    tensor([0, 1])")
values_copy = _sparse_copy("values", "the values", "to_sparse_csr())\n    tensor([1., 1.])")
indices_copy = _sparse_copy(
    "indices",
    "the indices",
    "to_sparse().coalesce())\n    tensor([[0, 1],\n            [0, 1]])",
)


def native_norm(
    input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of the values of a sparse tensor.

    Args:
        input: a sparse COO tensor.
        p: the exponent; None means 2.
        dim: the dimensions; all of them are taken together.
        keepdim: keeps them with size 1.
        dtype: what is computed in.

    Example::

        >>> facula.native_norm(facula.tensor([0., 3., 4.]).to_sparse())
        tensor(5.)
    """
    if input.layout is not facula.sparse_coo:
        raise NotImplementedError(
            f"native_norm() is of sparse COO tensors, got the layout {input.layout}; use norm()"
        )
    every = list(range(input.dim()))
    if dim is not None and sorted(d % max(input.dim(), 1) for d in dim) not in ([], every):
        raise RuntimeError("native_norm(): a sparse tensor has a norm over all dimensions only")
    values = input.coalesce().values()
    result = facula.linalg.vector_norm(values, 2 if p is None else p, dtype=dtype)
    return result.reshape([1] * input.dim()) if keepdim else result


def slice_inverse(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """The tensor that a slice is a view of: with the sizes of ``src`` over the memory of ``input``.

    Args:
        input: a slice of a tensor that looks like ``src``.
        src: a tensor with the sizes and strides of the result.
        dim: the dimension that was cut.
        start: where the slice begins.
        end: where it ends.
        step: the distance of neighbours.

    Example::

        >>> x = facula.arange(4)
        >>> facula.slice_inverse(x[1:3], x, 0, 1, 3)
        tensor([0, 1, 2, 3])
    """
    return input.as_strided(src.size(), src.stride(), src.storage_offset())


def thread_safe_generator() -> Any:
    """The generator of this thread, when it is a worker of a DataLoader; otherwise None.

    Example::

        >>> facula.thread_safe_generator() is None
        True
    """
    from facula import random

    return random.thread_safe_generator()
