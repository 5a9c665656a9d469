"""The methods of Tensor that deal with sparse layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from facula import _C
from facula._tensor import _method
from facula.sparse._construction import BSC, BSR, COO, CSC, CSR, number_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_ops = _C._operators
_info = _C._sparse_info


def layout_number(t: Any) -> int:
    """0 for a strided tensor, else the number of its sparse layout."""
    info = _info(t)
    return 0 if info is None else info[0]


def _expect(t: Any, layouts: tuple[int, ...], name: str, what: str) -> tuple[Any, ...]:
    info = _info(t)
    if info is None or info[0] not in layouts:
        raise RuntimeError(f"{name} expected {what} tensor layout but got {_layout_name(t.layout)}")
    return info


def _layout_name(layout: Any) -> str:
    """As PyTorch's messages have it: Strided, Sparse for COO, SparseCsr."""
    name = str(layout).rpartition(".")[2].removesuffix("_coo")
    return "".join(part.capitalize() for part in name.split("_"))


@_method
def to_dense(self, dtype=None, *, masked_grad=True):  # type: ignore[no-untyped-def]
    """A strided tensor with the elements of this one; a strided tensor itself.

    The gradient of a sparse tensor has the elements that the tensor has.

    Example::

        >>> facula.eye(2).to_sparse().to_dense()
        tensor([[1., 0.],
                [0., 1.]])
    """
    if masked_grad is False and self.requires_grad and _info(self) is not None:
        raise NotImplementedError(
            "to_dense(): gradients of sparse tensors have the elements that the tensor has "
            "(masked_grad=True); for others, make the tensor from values of your own"
        )
    dense = self if _info(self) is None else _ops["_sparse_to_dense"](self)
    return dense if dtype is None else dense.to(dtype)


@_method
def to_sparse(self, *args, layout=None, blocksize=None, dense_dim=None, sparse_dim=None):  # type: ignore[no-untyped-def]
    """This tensor in a sparse layout: COO, or the ``layout`` that is asked for.

    Args:
        sparse_dim: how many of the first dimensions are sparse; by default all.
        layout: ``facula.sparse_coo`` (default), ``sparse_csr``, ``sparse_csc``, ...
        blocksize: of the block layouts, two ints.
        dense_dim: in the compressed layouts, how many of the last dimensions are dense.

    Example::

        >>> facula.tensor([[0., 1.], [2., 0.]]).to_sparse()
        tensor(indices=tensor([[0, 1],
                               [1, 0]]),
               values=tensor([1., 2.]),
               size=(2, 2), nnz=2, layout=facula.sparse_coo)
    """
    if args:
        if len(args) > 1 or sparse_dim is not None:
            raise TypeError("to_sparse() takes one positional argument, sparse_dim")
        (sparse_dim,) = args
    number = COO if layout is None else number_of(layout, "to_sparse")
    if sparse_dim is not None and (layout is not None or dense_dim is not None):
        raise TypeError("to_sparse(): give sparse_dim, or layout and dense_dim")
    return _convert(self, number, sparse_dim, dense_dim, blocksize)


def _block(size: Any) -> Any:
    """Height and width of blocks; one number stands for both."""
    return (size, size) if isinstance(size, int) else size


def _convert(t: Any, number: int, sparse_dim: Any, dense_dim: Any, blocksize: Any) -> Any:
    if dense_dim is not None:
        if not 0 <= dense_dim <= t.dim():
            raise RuntimeError(
                f"to_sparse(): dense_dim must be in [0, {t.dim()}], but got {dense_dim}"
            )
        sparse_dim = t.dim() - dense_dim
    info = _info(t)
    if info is not None:
        if sparse_dim is not None and sparse_dim != info[1]:
            raise RuntimeError(
                f"to_sparse(): the tensor is sparse already, with {info[1]} sparse dimensions, "
                f"not {sparse_dim}"
            )
        sparse_dim = info[1]
    elif sparse_dim is None:
        sparse_dim = t.dim()
    if number in (BSR, BSC):
        if blocksize is None:
            raise RuntimeError("to_sparse(): blocksize is needed for a layout of blocks")
        blocksize = tuple(blocksize)
    elif blocksize is not None:
        raise RuntimeError("to_sparse(): blocksize is for the layouts sparse_bsr and sparse_bsc")
    return _ops["_sparse_convert"](t, number, sparse_dim, blocksize or ())


@_method
def to_sparse_coo(self):  # type: ignore[no-untyped-def]
    """This tensor in COO layout.

    Example::

        >>> facula.eye(2).to_sparse_coo().layout
        facula.sparse_coo
    """
    return _convert(self, COO, None, None, None)


@_method
def to_sparse_csr(self, dense_dim=None):  # type: ignore[no-untyped-def]
    """This matrix in CSR layout.

    Example::

        >>> facula.eye(2).to_sparse_csr().crow_indices()
        tensor([0, 1, 2])
    """
    return _convert(self, CSR, None, dense_dim, None)


@_method
def to_sparse_csc(self, dense_dim=None):  # type: ignore[no-untyped-def]
    """This matrix in CSC layout.

    Example::

        >>> facula.eye(2).to_sparse_csc().ccol_indices()
        tensor([0, 1, 2])
    """
    return _convert(self, CSC, None, dense_dim, None)


@_method
def to_sparse_bsr(self, blocksize, dense_dim=None):  # type: ignore[no-untyped-def]
    """This matrix in BSR layout, in blocks of the given size.

    Example::

        >>> facula.eye(4).to_sparse_bsr((2, 2)).values().shape
        facula.Size([2, 2, 2])
    """
    return _convert(self, BSR, None, dense_dim, _block(blocksize))


@_method
def to_sparse_bsc(self, blocksize, dense_dim=None):  # type: ignore[no-untyped-def]
    """This matrix in BSC layout, in blocks of the given size.

    Example::

        >>> facula.eye(4).to_sparse_bsc((2, 2)).values().shape
        facula.Size([2, 2, 2])
    """
    return _convert(self, BSC, None, dense_dim, _block(blocksize))


@_method
def sparse_dim(self):  # type: ignore[no-untyped-def]
    """How many of the first dimensions are sparse; 0 of a strided tensor.

    Example::

        >>> facula.eye(2).to_sparse().sparse_dim()
        2
    """
    info = _info(self)
    return 0 if info is None else info[1]


@_method
def dense_dim(self):  # type: ignore[no-untyped-def]
    """How many of the last dimensions are dense.

    Example::

        >>> facula.ones(2, 3).to_sparse(1).dense_dim()
        1
    """
    info = _info(self)
    return self.dim() if info is None else info[2]


@_method
def _dimI(self):  # type: ignore[no-untyped-def]
    """``sparse_dim``, by its older name."""
    return sparse_dim(self)


@_method
def _dimV(self):  # type: ignore[no-untyped-def]
    """``dense_dim``, by its older name."""
    return dense_dim(self)


@_method
def _nnz(self):  # type: ignore[no-untyped-def]
    """How many elements a sparse tensor has."""
    return _expect(self, (COO, CSR, CSC, BSR, BSC), "_nnz", "sparse")[3]


@_method
def is_coalesced(self):  # type: ignore[no-untyped-def]
    """True when the positions of a COO tensor are sorted and distinct.

    Example::

        >>> facula.eye(2).to_sparse().is_coalesced()
        True
    """
    return _expect(self, (COO,), "is_coalesced", "sparse coordinate")[4]


@_method
def _coalesced_(self, coalesced):  # type: ignore[no-untyped-def]
    """Declares that the positions are sorted and distinct, or that they may not be."""
    _expect(self, (COO,), "_coalesced_", "sparse coordinate")
    _C._sparse_set_coalesced(self, coalesced)
    return self


@_method
def coalesce(self):  # type: ignore[no-untyped-def]
    """A COO tensor with the elements of equal positions added up, in order.

    Example::

        >>> facula.sparse_coo_tensor([[1, 1]], [2., 3.]).coalesce().values()
        tensor([5.])
    """
    info = _expect(self, (COO,), "coalesce", "sparse coordinate")
    return self if info[4] else _ops["_sparse_coalesce"](self)


@_method
def _indices(self):  # type: ignore[no-untyped-def]
    """The positions of a COO tensor, also when it is not coalesced."""
    _expect(self, (COO,), "_indices", "sparse coordinate")
    return _ops["_sparse_indices"](self, 0)


@_method
def _values(self):  # type: ignore[no-untyped-def]
    """The elements of a COO tensor, also when it is not coalesced, without history."""
    _expect(self, (COO, CSR, CSC, BSR, BSC), "_values", "sparse")
    return _ops["_sparse_values"](self.detach())


def _expect_coalesced(t: Any, name: str) -> None:
    if not _expect(t, (COO,), name, "sparse coordinate")[4]:
        raise RuntimeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
        )


@_method
def indices(self):  # type: ignore[no-untyped-def]
    """The positions of a coalesced COO tensor, (sparse dimensions, elements).

    Example::

        >>> facula.eye(2).to_sparse().indices()
        tensor([[0, 1],
                [0, 1]])
    """
    _expect_coalesced(self, "indices")
    return _ops["_sparse_indices"](self, 0)


@_method
def values(self):  # type: ignore[no-untyped-def]
    """The elements of a sparse tensor; gradients flow back through it.

    Example::

        >>> facula.eye(2).to_sparse().values()
        tensor([1., 1.])
    """
    info = _expect(self, (COO, CSR, CSC, BSR, BSC), "values", "sparse")
    if info[0] == COO:
        _expect_coalesced(self, "values")
    return _ops["_sparse_values"](self)


def _part(name: str, layouts: tuple[int, ...], part: int, doc: str) -> None:
    def read(self: Any) -> Any:
        which = "row" if CSR in layouts else "column"
        _expect(self, layouts, name, f"sparse {which} compressed")
        return _ops["_sparse_indices"](self, part)

    read.__doc__ = doc
    _method(read, name)


_part("crow_indices", (CSR, BSR), 0, "Where each row of a CSR or BSR tensor begins, and the end.")
_part("col_indices", (CSR, BSR), 1, "The columns of the elements of a CSR or BSR tensor.")
_part("ccol_indices", (CSC, BSC), 0, "Where each column of a CSC or BSC tensor begins.")
_part("row_indices", (CSC, BSC), 1, "The rows of the elements of a CSC or BSC tensor.")


@_method
def sparse_mask(self, mask):  # type: ignore[no-untyped-def]
    """The elements of this tensor at the positions of the sparse tensor ``mask``.

    Example::

        >>> facula.ones(2, 2).sparse_mask(facula.eye(2).to_sparse()).values()
        tensor([1., 1.])
    """
    return _ops["_sparse_mask"](self, mask)


@_method
def sparse_resize_(self, size, sparse_dim, dense_dim):  # type: ignore[no-untyped-def]
    """Changes the sizes of a COO tensor in place; elements stay where they are.

    Example::

        >>> facula.eye(2).to_sparse().sparse_resize_((3, 3), 2, 0).shape
        facula.Size([3, 3])
    """
    _C._sparse_resize(self, tuple(size), sparse_dim, dense_dim, False)
    return self


@_method
def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):  # type: ignore[no-untyped-def]
    """Changes the sizes of a COO tensor in place and drops its elements.

    Example::

        >>> facula.eye(2).to_sparse().sparse_resize_and_clear_((3,), 1, 0)._nnz()
        0
    """
    _C._sparse_resize(self, tuple(size), sparse_dim, dense_dim, True)
    return self


@_method
def resize_as_sparse_(self, the_template):  # type: ignore[no-untyped-def]
    """Gives a COO tensor the sizes of another one, in place; see ``facula.resize_as_sparse_``."""
    from facula.sparse import _functions

    return _functions.resize_as_sparse_(self, the_template)


@_method
def smm(self, mat):  # type: ignore[no-untyped-def]
    """The product with another matrix, as a sparse matrix; see ``facula.smm``."""
    from facula.sparse import _functions

    return _functions.smm(self, mat)


@_method
def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):  # type: ignore[no-untyped-def]
    """``beta * self + alpha * (mat1 @ mat2)``, sparse; see ``facula.sspaddmm``."""
    from facula.sparse import _functions

    return _functions.sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


def parts_of(t: Any) -> tuple[Sequence[Any], int, bool]:
    """Index tensors and values off the tape, the layout's number, whether it is coalesced."""
    number, _, _, _, coalesced = _info(t)
    whole = t.detach()
    indices = [_ops["_sparse_indices"](whole, 0)]
    if number != COO:
        indices.append(_ops["_sparse_indices"](whole, 1))
    return (*indices, _ops["_sparse_values"](whole)), number, coalesced
