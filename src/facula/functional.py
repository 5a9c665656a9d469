"""Functions on tensors that are made of operators in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from facula import _C
from facula._contractions import block_diag, chain_matmul, einsum, tensordot
from facula._grids import cartesian_prod, histogramdd, meshgrid, unravel_index
from facula._overridable import overridable
from facula.overrides import is_tensor_like

__all__ = [
    "allclose",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "chain_matmul",
    "einsum",
    "equal",
    "histogramdd",
    "lu",
    "meshgrid",
    "norm",
    "resize_as_",
    "split",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "where",
]

_ops = _C._operators


def _overridden(
    function: Any, relevant: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a __torch_function__, or None when nothing overrides."""
    if _C._has_torch_function(relevant):
        return _C._handle_torch_function(function, relevant, args, kwargs)
    return None


def split(
    tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Any, ...]:
    """Pieces along a dimension: of one size, or of the sizes in a list.

    Example::

        >>> facula.split(facula.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if type(tensor) is not _C.Tensor and _C._has_torch_function((tensor,)):
        return _C._handle_torch_function(
            split, (tensor,), (tensor, split_size_or_sections), {"dim": dim}
        )
    if isinstance(split_size_or_sections, (list, tuple)):
        return _ops["split_with_sizes"](tensor, split_size_or_sections, dim)
    return _ops["_split"](tensor, int(split_size_or_sections), dim)


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of ``input`` where ``condition`` is true, of ``other`` elsewhere.

    With the condition alone: the positions where it is true, one tensor per dimension.

    Example::

        >>> facula.where(facula.tensor([True, False]), facula.tensor([1., 2.]), 0.)
        tensor([1., 0.])
    """
    if _C._has_torch_function((condition, input, other, out)):
        given = {"out": out} if out is not None else {}
        args = (condition,) if input is None and other is None else (condition, input, other)
        return _C._handle_torch_function(where, (condition, input, other, out), args, given)
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return _ops["where"](condition, input, other, out=out)


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Where the elements that are not zero are.

    Example::

        >>> facula.nonzero(facula.tensor([0, 5, 6]))
        tensor([[1],
                [2]])
    """
    if as_tuple:
        return input.nonzero(as_tuple=True)
    return _ops["nonzero"](input, out=out)


def equal(input: Any, other: Any) -> bool:
    """True when shape and all elements are equal.

    Example::

        >>> facula.equal(facula.tensor([1, 2]), facula.tensor([1, 2]))
        True
    """
    if _C._has_torch_function((input, other)):
        return _C._handle_torch_function(equal, (input, other), (input, other), {})
    if not isinstance(other, _C.Tensor):
        raise TypeError(f"equal(): argument 'other' must be Tensor, not {type(other).__name__}")
    if input.is_meta or other.is_meta:
        raise NotImplementedError("equal(): tensors on the meta device have no elements to compare")
    if input.shape != other.shape:
        return False
    if input is other and not (input.is_floating_point() or input.is_complex()):
        return True  # NaN alone differs from itself
    return bool(_ops["eq"](input, other).all())


@overridable
def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """True when all elements are close: ``|input - other| <= atol + rtol * |other|``.

    Example::

        >>> facula.allclose(facula.tensor([1.]), facula.tensor([1. + 1e-7]))
        True
    """
    return bool(_ops["isclose"](input, other, rtol, atol, equal_nan).all())


def lu(
    A: Any,
    pivot: bool = True,
    get_infos: bool = False,
    out: tuple[Any, ...] | list[Any] | None = None,
) -> Any:
    """The LU factors and pivots, with ``get_infos=True`` also where a factor ``U`` has a zero.

    New code uses :func:`facula.linalg.lu_factor` and :func:`facula.linalg.lu_factor_ex`.

    Example::

        >>> facula.lu(facula.tensor([[1., 2.], [2., 8.]]))[1]
        tensor([2, 2], dtype=facula.int32)
    """
    if _C._has_torch_function((A, out)):
        given = {"pivot": pivot, "get_infos": get_infos, "out": out}
        return _C._handle_torch_function(lu, (A, out), (A,), given)
    if get_infos:
        return _ops["linalg.lu_factor_ex"](A, pivot=pivot, out=out)
    return tuple(_ops["linalg.lu_factor"](A, pivot=pivot, out=out))


def norm(
    input: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """The p-norm of the elements, or along dimensions.

    ``p`` is a number, ``'fro'`` (the root of the sum of squares) or ``'nuc'`` (the sum of the
    singular values of matrices). See also ``linalg.vector_norm`` and ``linalg.matrix_norm``.

    Example::

        >>> facula.norm(facula.tensor([3., 4.]))
        tensor(5.)
    """
    if _C._has_torch_function((input, out)):
        given = {"p": p, "dim": dim, "keepdim": keepdim, "out": out, "dtype": dtype}
        return _C._handle_torch_function(norm, (input, out), (input,), given)
    dims = [dim] if isinstance(dim, int) else dim
    if not isinstance(p, str):
        order = 2.0 if p is None else p
        return _ops["linalg.vector_norm"](input, order, dims, keepdim, dtype=dtype, out=out)
    if p == "fro" and (dims is None or len(dims) <= 2):
        return _ops["linalg.vector_norm"](input, 2.0, dims, keepdim, dtype=dtype, out=out)
    if dims is None:
        dims = list(range(input.dim()))
    return _ops["linalg.matrix_norm"](input, p, dims, keepdim, dtype=dtype, out=out)


def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Changes the shape of ``input`` to that of another tensor; see ``Tensor.resize_as_``."""
    return input.resize_as_(the_template, memory_format=memory_format)


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that the given shapes broadcast to.

    Example::

        >>> facula.broadcast_shapes((2, 1), (3,))
        facula.Size([2, 3])
    """
    sizes = []
    for shape in shapes:
        if isinstance(shape, (float, complex, str)):
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{shape}"
            )
        sizes.append((shape,) if isinstance(shape, int) else tuple(shape))
    result = [1] * max((len(size) for size in sizes), default=0)
    for index, size in enumerate(sizes):
        for at in range(-1, -1 - len(size), -1):
            if size[at] < 0:
                raise ValueError(
                    f"Attempting to broadcast a dimension with negative length! Got {size}"
                )
            if size[at] in (1, result[at]):
                continue
            if result[at] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size[at]} at {at}! "
                    f"Mismatching argument at index {index} had {size}; but expected shape should "
                    f"be broadcastable to {result}"
                )
            result[at] = size[at]
    return _C.Size(result)


@overridable
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors in their common broadcast shape: views, or themselves where they have it.

    Example::

        >>> a, b = facula.broadcast_tensors(facula.ones(2, 1), facula.ones(3))
        >>> a.shape == b.shape
        True
    """
    items = _tensors_of(tensors)
    shape = broadcast_shapes(*(t.shape for t in items))
    return tuple(t if t.shape == shape else t.expand(shape) for t in items)


def _tensors_of(tensors: tuple[Any, ...]) -> Any:
    """The arguments of a function that takes tensors one by one or as one sequence."""
    items = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    for i, item in enumerate(items):
        if not is_tensor_like(item):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(item).__name__}"
            )
    return items


def _at_least(rank: int, tensors: tuple[Any, ...]) -> Any:
    items = _tensors_of(tensors)

    def raise_rank(t: Any) -> Any:
        if rank == 3 and t.dim() == 2:
            return t.unsqueeze(-1)
        if rank == 3 and t.dim() < 2:
            return t.reshape(1, -1, 1)
        while t.dim() < rank:
            t = t.unsqueeze(0)
        return t

    result = tuple(raise_rank(t) for t in items)
    return result[0] if len(tensors) == 1 and isinstance(tensors[0], _C.Tensor) else result


@overridable
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least one dimension.

    Example::

        >>> facula.atleast_1d(facula.tensor(1.))
        tensor([1.])
    """
    return _at_least(1, tensors)


@overridable
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions.

    Example::

        >>> facula.atleast_2d(facula.tensor([1.]))
        tensor([[1.]])
    """
    return _at_least(2, tensors)


@overridable
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions.

    Example::

        >>> facula.atleast_3d(facula.tensor([1.])).shape
        facula.Size([1, 1, 1])
    """
    return _at_least(3, tensors)


def _asked_for(triple: tuple[Any, Any, Any], return_inverse: bool, return_counts: bool) -> Any:
    """The values alone, or a tuple with the inverse and the counts that the caller wants."""
    values, inverse, counts = triple
    if not return_inverse and not return_counts:
        return values
    return (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or slices along ``dim``), with inverse and counts if asked for.

    Example::

        >>> facula.unique(facula.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    if _C._has_torch_function((input,)):
        given = {
            "sorted": sorted,
            "return_inverse": return_inverse,
            "return_counts": return_counts,
            "dim": dim,
        }
        return _C._handle_torch_function(unique, (input,), (input,), given)
    if dim is None:
        found = _ops["_unique"](input, sorted, return_inverse, return_counts)
    else:
        found = _ops["_unique_dim"](input, dim, sorted, return_inverse, return_counts)
    return _asked_for(found, return_inverse, return_counts)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along ``dim``) without immediate repetitions.

    Example::

        >>> facula.unique_consecutive(facula.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    if _C._has_torch_function((input,)):
        given = {"return_inverse": return_inverse, "return_counts": return_counts, "dim": dim}
        return _C._handle_torch_function(unique_consecutive, (input,), (input,), given)
    found = _ops["_unique_consecutive"](input, return_inverse, return_counts, dim)
    return _asked_for(found, return_inverse, return_counts)
