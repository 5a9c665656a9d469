"""The functions of ``facula.sparse``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from facula import _C
from facula.sparse._construction import COO, CSR, sparse_coo_tensor
from facula.sparse._methods import layout_number, parts_of

_ops = _C._operators
Tensor = _C.Tensor

_REDUCTIONS = ("sum", "mean", "amax", "amin")


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse matrix with a sparse or dense one.

    Args:
        reduce: how the products of a row are put together: "sum" (a matrix product), or, for a CSR
            matrix with a dense one, "mean", "amax" or "amin" over the elements of the row.

    Example::

        >>> facula.sparse.mm(facula.eye(2).to_sparse(), facula.ones(2, 1))
        tensor([[1.],
                [1.]])
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"sparse.mm(): reduce must be one of {_REDUCTIONS}, but got {reduce!r}")
    if reduce == "sum":
        return _ops["mm"](mat1, mat2)
    if layout_number(mat1) != CSR or layout_number(mat2):
        raise NotImplementedError(
            f"sparse.mm() with reduce={reduce!r} takes a CSR matrix and a strided one, but got "
            f"{mat1.layout} and {mat2.layout}"
        )
    starts, columns = mat1.crow_indices().to(_C.int64), mat1.col_indices().to(_C.int64)
    counts = starts.diff()
    rows = _ops["arange"](counts.numel(), device=counts.device).repeat_interleave(
        counts, output_size=columns.numel()
    )
    products = mat1.values().unsqueeze(1) * mat2.index_select(0, columns)
    out = products.new_zeros((counts.numel(), mat2.shape[1]))
    at = rows.unsqueeze(1).expand_as(products)
    return out.scatter_reduce(0, at, products, reduce, include_self=False)


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``.

    Example::

        >>> facula.sparse.addmm(facula.ones(1, 1), facula.eye(1).to_sparse(), facula.ones(1, 1))
        tensor([[2.]])
    """
    return _ops["addmm"](mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
    out: Tensor | None = None,
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the positions of the CSR matrix ``input``.

    Example::

        >>> at = facula.eye(2).to_sparse_csr()
        >>> facula.sparse.sampled_addmm(at, facula.ones(2, 3), facula.ones(3, 2)).values()
        tensor([4., 4.])
    """
    if layout_number(input) != CSR:
        raise RuntimeError(
            f"sampled_addmm(): expected input to have sparse csr layout, but got {input.layout}"
        )
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.layout is not _C.strided or matrix.dim() != 2:
            raise RuntimeError(f"sampled_addmm(): {name} must be a strided matrix")
    if mat1.shape[1] != mat2.shape[0] or (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise RuntimeError(
            f"sampled_addmm(): input of shape {tuple(input.shape)} cannot be added to the product "
            f"of shapes {tuple(mat1.shape)} and {tuple(mat2.shape)}"
        )
    pattern = _ops["_sparse_like"](input.detach(), input.detach().values())  # checks its positions
    starts, columns = pattern.crow_indices(), pattern.col_indices()
    products = _ops["_csr_sampled"](starts, columns, mat1, mat2.t().contiguous())
    values = products * alpha if beta == 0 else input.values() * beta + products * alpha
    result = _ops["_sparse_like"](pattern, values)
    return result if out is None else out.copy_(result)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a sparse tensor's elements, over all or over some dimensions.

    The result is dense when no sparse dimension is left, else sparse.

    Example::

        >>> facula.sparse.sum(facula.eye(2).to_sparse(), 0).to_dense()
        tensor([1., 1.])
    """
    if dtype is not None:
        input = input.to(dtype)
    if dim is None:
        return _ops["sum"](input, dtype=input.dtype)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return _ops["_sparse_sum"](input, dims) if dims else input


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Softmax along a dimension over the elements that are there; others count as -inf.

    Example::

        >>> facula.sparse.softmax(facula.eye(2).to_sparse(), 1).values()
        tensor([1., 1.])
    """
    return _ops["_sparse_softmax"](input if dtype is None else input.to(dtype), dim, False)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of :func:`softmax`.

    Example::

        >>> facula.sparse.log_softmax(facula.eye(2).to_sparse(), 1).values()
        tensor([0., 0.])
    """
    return _ops["_sparse_softmax"](input if dtype is None else input.to(dtype), dim, True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of ``diagonals`` along its diagonals.

    Column j of the matrix has, on the diagonal ``offsets[i]``, the element ``diagonals[i, j]``.

    Args:
        offsets: distinct ints; 0 is the main diagonal, positive ones are above it.
        shape: of the result.
        layout: ``facula.sparse_coo`` (default), ``sparse_csr`` or ``sparse_csc``.

    Example::

        >>> d = facula.tensor([[1., 2.], [3., 4.]])
        >>> facula.sparse.spdiags(d, facula.tensor([0, 1]), (2, 2)).to_dense()
        tensor([[1., 4.],
                [0., 2.]])
    """
    values = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    places = offsets.reshape(-1) if offsets.dim() == 0 else offsets
    if values.dim() != 2 or places.dim() != 1:
        raise RuntimeError("spdiags(): diagonals must be a vector or matrix, offsets a vector")
    if len(shape) != 2:
        raise RuntimeError(f"spdiags(): Output shape must be 2d, but got {tuple(shape)}")
    if values.shape[0] != places.numel():
        raise RuntimeError(
            f"spdiags(): Number of diagonals ({values.shape[0]}) does not match the number of "
            f"offsets ({places.numel()})"
        )
    if places.unique().numel() != places.numel():
        raise RuntimeError("spdiags(): Offset tensor contains duplicate values")
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(
            f"spdiags(): Only output layouts (sparse_coo, sparse_csr, sparse_csc) are supported, "
            f"got {layout}"
        )
    rows, columns = shape
    width = min(values.shape[1], columns)
    column = _ops["arange"](width, device=values.device).expand(places.numel(), width)
    row = column - places.to(_C.int64).unsqueeze(1)
    inside = (row >= 0) & (row < rows)
    at = _ops["stack"]([row[inside], column[inside]])
    result = sparse_coo_tensor(at, values[:, :width][inside], tuple(shape))
    return result if layout in (None, _C.sparse_coo) else result.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a gradcheck function accept sparse tensors among the inputs and results.

    Sparse inputs are replaced by their values, from which the function makes them again, and sparse
    results by dense ones.

    Example::

        >>> check = facula.sparse.as_sparse_gradcheck(facula.autograd.gradcheck)
        >>> x = facula.eye(2, dtype=facula.float64).to_sparse().requires_grad_()
        >>> check(lambda s: (s * s).to_dense(), x)
        True
    """

    def checked(
        function: Callable[..., Any], inputs: Any, masked: bool = True, **options: Any
    ) -> Any:
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        flat, rebuild = [], []
        for value in given:
            number = layout_number(value) if isinstance(value, Tensor) else 0
            if not number or not value.requires_grad:
                flat.append(value)
                rebuild.append(None)
                continue
            whole = value.detach()
            if number == COO:
                whole = whole.coalesce()
            flat.append(parts_of(whole)[0][-1].clone().requires_grad_())
            rebuild.append(whole)

        def on_values(*args: Any) -> Any:
            made = [
                a if pattern is None else _ops["_sparse_like"](pattern, a)
                for a, pattern in zip(args, rebuild, strict=True)
            ]
            results = function(*made)
            if isinstance(results, (tuple, list)):
                return tuple(_dense(r) for r in results)
            return _dense(results)

        return gradcheck(on_values, tuple(flat), **options)

    return checked


def _dense(value: Any) -> Any:
    return value.to_dense() if isinstance(value, Tensor) and layout_number(value) else value


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse matrix with a matrix, as a sparse matrix.

    Example::

        >>> facula.smm(facula.eye(2).to_sparse(), facula.ones(2, 1)).to_dense()
        tensor([[1.],
                [1.]])
    """
    product = _ops["mm"](input, mat)
    return product if layout_number(product) else product.to_sparse()


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix with a dense one, with the rows that have elements.

    Example::

        >>> facula.hspmm(facula.eye(2).to_sparse(), facula.ones(2, 3)).dense_dim()
        1
    """
    whole = mat1.coalesce()
    rows = whole.indices()[0].unique()
    return sparse_coo_tensor(
        rows.unsqueeze(0),
        _ops["mm"](whole, mat2).index_select(0, rows),
        (mat1.shape[0], mat2.shape[1]),
    )


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, ``facula.mm`` by an older name.

    Example::

        >>> facula.spmm(facula.eye(2).to_sparse(), facula.ones(2, 1))
        tensor([[1.],
                [1.]])
    """
    return _ops["mm"](input, mat2)


def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Gives a COO tensor the sizes of another one, in place.

    Example::

        >>> a, b = facula.eye(2).to_sparse(), facula.eye(3).to_sparse()
        >>> facula.resize_as_sparse_(a, b).shape
        facula.Size([3, 3])
    """
    return input.sparse_resize_(
        the_template.shape, the_template.sparse_dim(), the_template.dense_dim()
    )


def sspaddmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` as a sparse matrix.

    Example::

        >>> one = facula.eye(2).to_sparse()
        >>> facula.sspaddmm(one, one, facula.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    return input * beta + smm(mat1, mat2) * alpha
