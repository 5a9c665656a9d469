"""Sparse tensors from their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from facula import _C
from facula.sparse import _invariants

_ops = _C._operators
Tensor = _C.Tensor

COO, CSR, CSC, BSR, BSC = 1, 2, 3, 4, 5
_NUMBER = {
    _C.sparse_coo: COO,
    _C.sparse_csr: CSR,
    _C.sparse_csc: CSC,
    _C.sparse_bsr: BSR,
    _C.sparse_bsc: BSC,
}


def number_of(layout: Any, caller: str) -> int:
    """How the core counts a sparse layout."""
    if layout not in _NUMBER:
        accepted = ", ".join(map(str, _NUMBER))
        raise RuntimeError(f"{caller}(): layout must be one of {accepted}, but got {layout}")
    return _NUMBER[layout]


# Of the compressed and the plain indices, by whether rows are compressed.
_PART_NAMES = {True: ("crow_indices", "col_indices"), False: ("ccol_indices", "row_indices")}


def _as_values(values: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(values, Tensor):
        return _C.tensor(values, dtype=dtype, device=device)
    if dtype is None and device is None:
        return values
    return values.to(dtype=dtype or values.dtype, device=device or values.device)


def _as_indices(indices: Any) -> Tensor:
    t = indices if isinstance(indices, Tensor) else _C._as_tensor(indices, None, None)
    if t.numel() == 0 and not isinstance(indices, Tensor):
        t = t.to(_C.int64)
    return t


def _is_whole(dtype: Any) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex or dtype is _C.bool)


def _place(values: Tensor) -> Any:
    """The device of the positions of these values."""
    return "cpu" if values.is_meta else values.device


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    return t.detach().requires_grad_() if requires_grad else t


def _known(caller: str, size: Sequence[int] | None) -> tuple[int, ...]:
    """The size of a tensor on meta, which no positions tell; it has no elements."""
    if size is None:
        raise RuntimeError(f"{caller}(): a tensor on the meta device needs a size")
    return tuple(size)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A tensor in COO layout: elements ``values`` at the positions ``indices``, zero elsewhere.

    Args:
        indices: (sparse dimensions, elements), taken as int64. A position may occur several times;
            its elements are added up.
        values: (elements, *dense sizes). Gradients flow back to it.
        size: the shape; by default the smallest that holds all positions. Given alone, as the only
            argument, it makes a tensor without elements.
        dtype: of the values; by default theirs.
        requires_grad: whether the result is a leaf that gradients are wanted for.
        check_invariants: positions are always checked; ``True`` checks ``is_coalesced`` too.
        is_coalesced: promises that the positions are sorted and distinct.

    Example::

        >>> s = facula.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
        >>> s.to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if indices is None:
        if size is None or values is not None:
            raise TypeError("sparse_coo_tensor() takes indices and values, or a size alone")
        indices = size
    if values is None:
        shape = tuple(indices) if size is None else tuple(size)
        found = _ops["zeros"](0, dtype=dtype, device=device)
        at = _ops["zeros"](len(shape), 0, dtype=_C.int64, device=_place(found))
        t = _ops["_sparse_make"](at, None, found, shape, COO, True)
        return _finish(t, requires_grad)
    at = _as_indices(indices)
    if not _is_whole(at.dtype):
        at = at.to(_C.int64)
    found = _as_values(values, dtype, device)
    if at.dim() == 1 and at.numel() == 0:  # [] for no sparse dimensions
        at = at.reshape(0, 0 if found.dim() == 0 else found.shape[0])
    if at.dim() != 2:
        raise RuntimeError(
            "sparse_coo_tensor(): indices must be sparse_dim x nnz, but got a tensor of shape "
            f"{tuple(at.shape)}"
        )
    if found.dim() == 0:
        found = found.expand(at.shape[1])
    if found.is_meta or at.is_meta:
        shape = _known("sparse_coo_tensor", size)
        at = _ops["zeros"](at.shape[0], 0, dtype=_C.int64, device="cpu")
        return _finish(
            _ops["_sparse_make"](at, None, found.to("meta")[:0], shape, COO, True), requires_grad
        )
    at = at.to(found.device)
    if size is None:
        if at.shape[0] and at.shape[1] == 0:
            sizes = (0,) * at.shape[0]
        else:
            lowest, highest = (
                _ops["stack"]([at.amin(1), at.amax(1)]).tolist() if at.shape[0] else ((), ())
            )
            if min(lowest, default=0) < 0:
                raise RuntimeError(
                    f"sparse_coo_tensor(): found negative index {min(lowest)} in indices"
                )
            sizes = tuple(n + 1 for n in highest)
        shape = sizes + tuple(found.shape[1:])
    else:
        shape = tuple(size)
    _C._sparse_check(COO, at, None, found, shape)
    if is_coalesced and _invariants.asked_for(check_invariants):
        plain = _ops["_sparse_make"](at, None, found.detach(), shape, COO, False)
        in_order = _ops["_sparse_indices"](_ops["_sparse_coalesce"](plain), 0)
        if in_order.shape != at.shape or not bool((in_order == at).all()):
            raise RuntimeError(
                "sparse_coo_tensor(): is_coalesced=True, but positions are not sorted and distinct"
            )
    t = _ops["_sparse_make"](at, None, found, shape, COO, bool(is_coalesced))
    return _finish(t, requires_grad)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A matrix in a compressed layout (CSR, CSC, BSR, BSC), or a batch of them.

    The indices and values of a batch have its dimensions in front, so its matrices have as many
    elements each.

    Args:
        compressed_indices: where each row (column) begins, and the end.
        plain_indices: the columns (rows) of the elements.
        values: the elements, or blocks of them.
        size: the shape; by default the smallest that fits.
        layout: ``facula.sparse_csr``, ``sparse_csc``, ``sparse_bsr`` or ``sparse_bsc``.

    Example::

        >>> s = facula.sparse_compressed_tensor(
        ...     [0, 1, 2], [1, 0], [5., 6.], (2, 2), layout=facula.sparse_csr
        ... )
        >>> s.to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    caller = "sparse_compressed_tensor"
    number = number_of(layout, caller)
    if number == COO:
        raise RuntimeError(f"{caller}(): layout {layout} is not compressed; use sparse_coo_tensor")
    by_rows = number in (CSR, BSR)
    starts, plain = _as_indices(compressed_indices), _as_indices(plain_indices)
    start_name, plain_name = _PART_NAMES[by_rows]
    if not (_is_whole(starts.dtype) and _is_whole(plain.dtype)):
        raise RuntimeError(
            f"{start_name} and {plain_name} must have the same dtype, Int or Long, but got "
            f"{starts.dtype} and {plain.dtype}"
        )
    if starts.dtype is not plain.dtype:
        plain = plain.to(starts.dtype)
    found = _as_values(values, dtype, device)
    if found.is_meta or starts.is_meta or plain.is_meta:
        shape = _known(caller, size)
        if starts.dim() != 1:
            raise NotImplementedError(f"{caller}(): batches of matrices cannot be on meta")
        starts = _ops["zeros"](starts.shape[0], dtype=_C.int64, device="cpu")
        plain = _ops["zeros"](0, dtype=_C.int64, device="cpu")
        found = found.to("meta")[:0]
        return _finish(
            _ops["_sparse_make"](starts, plain, found, shape, number, True), requires_grad
        )
    starts, plain = starts.to(found.device), plain.to(found.device)
    if size is None:
        batch = max(starts.dim() - 1, 0)
        blocks = number in (BSR, BSC) and found.dim() >= batch + 3
        block = tuple(found.shape[batch + 1 : batch + 3]) if blocks else (1, 1)
        outer = max(starts.shape[-1] - 1, 0) if starts.dim() else 0
        inner = int(plain.max()) + 1 if plain.numel() else 0
        rows, columns = (outer, inner) if by_rows else (inner, outer)
        dense = tuple(found.shape[batch + (3 if number in (BSR, BSC) else 1) :])
        shape = (*starts.shape[:batch], rows * block[0], columns * block[1], *dense)
    else:
        shape = tuple(size)
    is_sorted = _C._sparse_check(number, starts, plain, found, shape)
    if not is_sorted and _invariants.asked_for(check_invariants):
        groups = "nrows" if by_rows else "ncols"
        raise RuntimeError(
            f"`{plain_name}[..., {start_name}[..., i - 1]:{start_name}[..., i]] for all "
            f"i = 1, ..., {groups} are sorted and distinct along the last dimension values` is not "
            "satisfied."
        )
    t = _ops["_sparse_make"](starts, plain, found, shape, number, is_sorted)
    return _finish(t, requires_grad)


def _named(name: str, layout: Any, first: str, second: str, example: str) -> Any:
    def make(*args: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        given = dict(zip((first, second, "values", "size"), args, strict=False))
        given.update({k: options.pop(k) for k in (first, second, "values") if k in options})
        if size is not None:
            given["size"] = size
        missing = [k for k in (first, second, "values") if k not in given]
        if missing or len(args) > 4:
            raise TypeError(f"{name}() takes {first}, {second}, values and size")
        return sparse_compressed_tensor(
            given[first],
            given[second],
            given["values"],
            given.get("size"),
            dtype=dtype,
            layout=layout,
            **options,
        )

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{name}({first}, {second}, values, size=None, *, dtype=None, device=None, \
pin_memory=False, requires_grad=False, check_invariants=None) -> Tensor

    A matrix in the layout ``{layout}``; see :func:`sparse_compressed_tensor`.

    Example::

        {example}
    """
    return make


sparse_csr_tensor = _named(
    "sparse_csr_tensor",
    _C.sparse_csr,
    "crow_indices",
    "col_indices",
    ">>> facula.sparse_csr_tensor([0, 1], [1], [5.]).to_dense()\n        tensor([[0., 5.]])",
)
sparse_csc_tensor = _named(
    "sparse_csc_tensor",
    _C.sparse_csc,
    "ccol_indices",
    "row_indices",
    ">>> facula.sparse_csc_tensor([0, 0, 1], [0], [5.]).to_dense()\n        tensor([[0., 5.]])",
)
sparse_bsr_tensor = _named(
    "sparse_bsr_tensor",
    _C.sparse_bsr,
    "crow_indices",
    "col_indices",
    ">>> facula.sparse_bsr_tensor([0, 1], [0], [[[5., 6.]]]).to_dense()\n"
    "        tensor([[5., 6.]])",
)
sparse_bsc_tensor = _named(
    "sparse_bsc_tensor",
    _C.sparse_bsc,
    "ccol_indices",
    "row_indices",
    ">>> facula.sparse_bsc_tensor([0, 1], [0], [[[5., 6.]]]).to_dense()\n"
    "        tensor([[5., 6.]])",
)
