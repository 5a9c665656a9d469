"""The text of sparse tensors: their parts, and what is said after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_PARTS = {
    "sparse_coo": ("indices",),
    "sparse_csr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"),
    "sparse_bsr": ("crow_indices", "col_indices"),
    "sparse_bsc": ("ccol_indices", "row_indices"),
}


def layout_name(tensor: Any) -> str:
    """The name of a sparse layout, or "" for strided tensors."""
    name = str(tensor.layout).rpartition(".")[2]
    return name if name in _PARTS else ""


def contents(tensor: Any, indent: int, elements: Callable[[Any, int], str]) -> str:
    """The parts of a sparse tensor, ``indent`` columns in; ``elements`` writes each of them."""
    plain = tensor.detach()
    kind = layout_name(tensor)
    if kind == "sparse_coo":
        parts = [("indices", plain._indices())]
    else:
        parts = [(name, getattr(plain, name)()) for name in _PARTS[kind]]
    parts.append(("values", plain._values() if kind == "sparse_coo" else plain.values()))
    texts = []
    for name, part in parts:
        prefix = f"{name}=tensor("
        text = elements(part, indent + len(prefix))
        if part.numel() == 0:
            text += f", size={tuple(part.shape)}"
        texts.append(prefix + text + ")")
    return (",\n" + " " * indent).join(texts)


def suffixes(tensor: Any, implied: list[str]) -> Iterator[str]:
    """Size, number of elements, dtype and layout; ``implied`` dtypes go without saying."""
    yield f"size={tuple(tensor.shape)}"
    yield f"nnz={tensor._nnz()}"
    if str(tensor.dtype).rpartition(".")[2] not in implied:
        yield f"dtype={tensor.dtype}"
    yield f"layout={tensor.layout}"
