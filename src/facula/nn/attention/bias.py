"""Causal masks that are known by their shape, so that attention need not read them."""

from __future__ import annotations

import enum
from typing import Any

import facula
from facula import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the triangle of a causal mask lies when there are more keys than queries, or fewer."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask, for ``attn_mask`` of ``scaled_dot_product_attention``; it holds no elements.

    Args:
        variant: where the triangle lies.
        seq_len_q: how many queries.
        seq_len_kv: how many keys.

    Example::

        >>> from facula.nn.attention.bias import causal_lower_right
        >>> q, k = facula.randn(1, 1, 2, 8), facula.randn(1, 1, 3, 8)
        >>> mask = causal_lower_right(2, 3)
        >>> facula.nn.functional.scaled_dot_product_attention(q, k, k, mask).shape
        facula.Size([1, 1, 2, 8])
        >>> mask
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        shape = facula.empty((seq_len_q, seq_len_kv), dtype=facula.bool, device="meta")
        return shape.as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"variant should be a CausalVariant, got {variant!r}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask itself: True where a query may look."""
        lower = self.variant == CausalVariant.LOWER_RIGHT
        offset = self.seq_len_kv - self.seq_len_q if lower else 0
        ones = facula.ones(self.seq_len_q, self.seq_len_kv, dtype=facula.bool, device=device)
        return ones.tril(offset)

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        return repr(self._materialize())

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        attention = facula.nn.functional.scaled_dot_product_attention
        if func is attention:
            return cls._attend(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    @staticmethod
    def _attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        shape = (query.shape[-2], key.shape[-2])
        if shape != (attn_mask.seq_len_q, attn_mask.seq_len_kv):
            raise ValueError(
                f"CausalBias for {attn_mask.seq_len_q} queries and {attn_mask.seq_len_kv} keys was "
                f"given {shape[0]} queries and {shape[1]} keys"
            )
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        simple = square or attn_mask.variant == CausalVariant.UPPER_LEFT
        return facula.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            None if simple else attn_mask._materialize(query.device),
            dropout_p,
            simple,
            scale=scale,
            enable_gqa=enable_gqa,
        )


def _size(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors, got {len(size)} sizes")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """A mask of which the first query sees the first key alone.

    Example::

        >>> facula.nn.attention.bias.causal_upper_left(2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_size("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """A mask of which the last query sees all keys.

    Example::

        >>> facula.nn.attention.bias.causal_lower_right(2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_size("causal_lower_right", size))
