"""Nested tensors: batches of tensors that differ in one dimension, without padding.

The layout is ``facula.jagged``: all components lie one after the other in one tensor, with offsets
that say where each begins. The dimension that differs has a symbol for a size.

Example::

    >>> batch = facula.nested.nested_tensor([facula.ones(2, 3), facula.ones(4, 3)])
    >>> batch.sum(dim=1)
    tensor([[2., 2., 2.],
            [4., 4., 4.]])
"""

from __future__ import annotations

from facula.nested import _layers as _layers
from facula.nested import _reductions as _reductions
from facula.nested._construction import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)
from facula.nested._tensor import NestedTensor as _NestedTensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

NestedTensor = _NestedTensor
