"""Sparse tensors: COO, and the compressed layouts CSR, CSC, BSR and BSC.

A sparse tensor has the sizes, the dtype and the methods of any tensor. Operators that keep zeros
work on the elements that are there; others raise and say so. Gradients of sparse tensors are sparse
and have the elements that the tensor has.

Example::

    >>> a = facula.tensor([[0., 2.], [3., 0.]]).to_sparse_csr()
    >>> a @ facula.ones(2, 1)
    tensor([[2.],
            [3.]])
"""

from __future__ import annotations

from facula.sparse import _methods as _methods
from facula.sparse._construction import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from facula.sparse._functions import (
    addmm,
    as_sparse_gradcheck,
    log_softmax,
    mm,
    sampled_addmm,
    softmax,
    spdiags,
    sum,
)
from facula.sparse._functions import hspmm as hspmm
from facula.sparse._functions import resize_as_sparse_ as resize_as_sparse_
from facula.sparse._functions import smm as smm
from facula.sparse._functions import spmm as spmm
from facula.sparse._functions import sspaddmm as sspaddmm
from facula.sparse._invariants import check_sparse_tensor_invariants
from facula.sparse._legacy_types import classes as _classes

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "sum",
]

globals().update(_classes())
