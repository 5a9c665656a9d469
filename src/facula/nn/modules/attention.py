"""Attention of several heads as a module."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.nn import functional, init
from facula.nn.modules.linear import NonDynamicallyQuantizableLinear
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attends to keys and values with several heads, each in a projection of its own.

    Args:
        embed_dim: features of queries and of the result; ``num_heads`` must divide it.
        num_heads: heads, of ``embed_dim // num_heads`` features each.
        dropout: the probability that a weight is dropped in training.
        bias: biases of the projections.
        add_bias_kv: one more key and value, learned.
        add_zero_attn: one more key and value of zeros.
        kdim, vdim: features of keys and values, ``embed_dim`` by default.
        batch_first: inputs are (batch, steps, features) instead of (steps, batch, features).

    ``forward(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights,
    is_causal)`` returns the result and, with ``need_weights``, the weights (batch, steps, keys), or
    of every head without ``average_attn_weights``. In masks true means that a key is left out,
    floating-point masks are added to the scores. ``is_causal`` says that ``attn_mask`` is the
    causal mask. Without weights the matrix of scores is never made, which is faster.

    Example::

        >>> attention = facula.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = facula.ones(3, 5, 8)
        >>> y, weights = attention(x, x, x)
        >>> y.shape, weights.shape
        (facula.Size([3, 5, 8]), facula.Size([3, 5, 5]))
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}"
            )

        def fresh(*shape: int) -> Parameter:
            return Parameter(facula.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = fresh(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = fresh(embed_dim, embed_dim)
            self.k_proj_weight = fresh(embed_dim, self.kdim)
            self.v_proj_weight = fresh(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", fresh(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.bias_k = fresh(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = fresh(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None and self.bias_v is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # older checkpoints
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and query.dim() == 3
        dense = turned and key is query and value is query and self._takes_fast_path(query)
        if turned:
            # What was one tensor stays one: its projections are then one product.
            same_key, same_value = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        separate = {}
        if not self._qkv_same_embed_dim:
            separate = {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        output, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,  # type: ignore[arg-type]
        )
        if turned:
            output = output.transpose(0, 1)
        return (output.contiguous() if dense else output), weights

    def _takes_fast_path(self, x: Tensor) -> bool:
        """Whether PyTorch attends to ``x`` in one kernel, whose results are contiguous."""
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if self.training or weight is None or bias is None or self.num_heads % 2:
            return False
        if self.bias_k is not None or self.bias_v is not None or self.add_zero_attn:
            return False
        if facula.is_autocast_enabled() or not facula.backends.mha.get_fastpath_enabled():
            return False
        if facula.is_grad_enabled():
            held = (x, weight, bias, self.out_proj.weight, self.out_proj.bias)
            if any(t is not None and t.requires_grad for t in held):
                return False
        return x.dtype == weight.dtype == bias.dtype

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its kind: 0 for a mask of scores, 1 for padding, 2 for both."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        if key_padding_mask is None:
            return attn_mask, 0
        batch, keys = key_padding_mask.shape
        steps = attn_mask.shape[-2]
        if attn_mask.dim() == 3:
            merged = attn_mask.reshape(batch, -1, steps, keys)
        else:
            merged = attn_mask.reshape(1, 1, steps, keys).expand(batch, self.num_heads, -1, -1)
        return merged + key_padding_mask.reshape(batch, 1, 1, keys), 2
