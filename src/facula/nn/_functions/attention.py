"""Attention of several heads with its projections: what ``MultiheadAttention`` runs."""

from __future__ import annotations

import math
import warnings
from typing import Any

import facula
from facula import Tensor
from facula._errors import in_layer
from facula._overridable import overridable

__all__ = ["multi_head_attention_forward"]


def _none_or_dtype(input: Tensor | None) -> Any:
    return None if input is None else input.dtype


# PyTorch's name and arguments: layers that are copied from its source use it.
def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask that is added to scores: a boolean one becomes -inf where it is true."""
    if mask is None:
        return None
    if mask.dtype != facula.bool and not mask.is_floating_point():
        raise in_layer(
            AssertionError,
            f"only bool and floating types of {mask_name} are supported, got {mask.dtype}",
        )
    if check_other and other_type is not None and other_type != mask.dtype:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name or 'the other mask'} is "
            f"deprecated: they are {mask.dtype} and {other_type}. Use same type for both instead.",
            stacklevel=4,
        )
    if mask.is_floating_point():
        return mask
    return facula.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def canonical_mask(
    mask: Tensor | None, name: str, other: Tensor | None, dtype: Any
) -> Tensor | None:
    """The same beside another mask."""
    return _canonical_mask(mask, name, _none_or_dtype(other), "", dtype)


def _check_ranks(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None
) -> bool:
    """Whether the inputs are batches."""
    rank = query.dim()
    if rank not in (2, 3):
        raise in_layer(
            AssertionError,
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor",
        )
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise in_layer(
            AssertionError,
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively",
        )
    if padding is not None and padding.dim() != rank - 1:
        raise in_layer(
            AssertionError,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but "
            f"found {padding.dim()}-D tensor instead",
        )
    if mask is not None and mask.dim() not in (2, 3):
        raise in_layer(
            AssertionError,
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{mask.dim()}-D tensor instead",
        )
    return rank == 3


def _project(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """The three projections from one weight, in as few products as the inputs allow."""
    linear = facula.nn.functional.linear
    size = weight.shape[0] // 3
    if key is value and query is key:
        return linear(query, weight, bias).chunk(3, -1)
    parts = weight.split([size, 2 * size])
    biases = (None, None) if bias is None else bias.split([size, 2 * size])
    if key is value:
        return linear(query, parts[0], biases[0]), *linear(key, parts[1], biases[1]).chunk(2, -1)
    weights = weight.chunk(3)
    each = (None,) * 3 if bias is None else bias.chunk(3)
    inputs = (query, key, value)
    return tuple(linear(x, w, b) for x, w, b in zip(inputs, weights, each, strict=True))


def _into_heads(rows: Tensor, heads: int) -> Tensor:
    """(steps, batch, heads * size) as (batch, heads, steps, size)."""
    return rows.reshape(*rows.shape[:2], heads, rows.shape[2] // heads).permute(1, 2, 0, 3)


def _static(given: Tensor, name: str, batch: int, heads: int, size: int) -> Tensor:
    if given.shape[0] != batch * heads:
        raise in_layer(
            AssertionError, f"expecting {name}.size(0) of {batch * heads}, but got {given.shape[0]}"
        )
    if given.shape[2] != size:
        raise in_layer(
            AssertionError, f"expecting {name}.size(2) of {size}, but got {given.shape[2]}"
        )
    return given.reshape(batch, heads, given.shape[1], size)


def _with_columns(mask: Tensor | None, extra: int) -> Tensor | None:
    """Keys that were added at the end are seen by all."""
    if mask is None or extra == 0:
        return mask
    return facula.cat([mask, mask.new_zeros((*mask.shape[:-1], extra))], -1)


@overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Projects (steps, batch, features), attends with several heads and projects the result.

    The arguments are those of :class:`facula.nn.MultiheadAttention` and its parameters. In
    ``attn_mask`` and ``key_padding_mask`` true means that a key is left out; floating-point masks
    are added. ``is_causal`` says that ``attn_mask`` is the causal one, so that it need not be read.

    Example::

        >>> x, w = facula.ones(2, 1, 4), facula.ones(12, 4)
        >>> y, weights = facula.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, facula.eye(4), None)
        >>> weights
        tensor([[[0.5000, 0.5000],
                 [0.5000, 0.5000]]])
    """
    functional = facula.nn.functional
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    steps, batch, features = query.shape
    keys = key.shape[0]
    if features != embed_dim_to_check:
        raise in_layer(
            AssertionError,
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}",
        )
    if features % num_heads != 0:
        raise in_layer(
            AssertionError, f"embed_dim {features} not divisible by num_heads {num_heads}"
        )
    if is_causal and attn_mask is None:
        raise in_layer(
            RuntimeError,
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask.",
        )
    size = features // num_heads
    padding = canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, query.dtype)
    # The hint replaces the mask only where nothing else needs it.
    use_hint = is_causal and padding is None and not need_weights
    extra_keys = (bias_k is not None) + bool(add_zero_attn)
    use_hint = use_hint and not extra_keys
    mask = None if use_hint else canonical_mask(attn_mask, "attn_mask", None, query.dtype)

    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise in_layer(
                AssertionError,
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}",
            )
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q = functional.linear(query, q_proj_weight, biases[0])
        k = functional.linear(key, k_proj_weight, biases[1])
        v = functional.linear(value, v_proj_weight, biases[2])
    else:
        if key.shape != value.shape:
            raise in_layer(
                AssertionError, f"key shape {key.shape} does not match value shape {value.shape}"
            )
        if in_proj_weight is None:
            raise in_layer(
                AssertionError, "use_separate_proj_weight is False but in_proj_weight is None"
            )
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)

    mask = _shaped_mask(mask, batch, num_heads, steps, keys)
    if padding is not None:
        if padding.shape[0] != batch or padding.shape[1] != keys:
            raise in_layer(
                AssertionError,
                f"Expected key_padded_mask.shape to be {(batch, keys)}, but got "
                f"{tuple(padding.shape)}",
            )
        padding = padding.reshape(batch, 1, 1, keys)
        mask = padding if mask is None else mask + padding

    if (bias_k is None) != (bias_v is None):
        raise in_layer(AssertionError, "bias_k and bias_v must both be given or both be None")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise in_layer(AssertionError, "bias cannot be added to static key or value.")
        k = facula.cat([k, bias_k.repeat(1, batch, 1)])
        v = facula.cat([v, bias_v.repeat(1, batch, 1)])
    q = _into_heads(q, num_heads)
    k = (
        _into_heads(k, num_heads)
        if static_k is None
        else _static(static_k, "static_k", batch, num_heads, size)
    )
    v = (
        _into_heads(v, num_heads)
        if static_v is None
        else _static(static_v, "static_v", batch, num_heads, size)
    )
    if add_zero_attn:
        k = facula.cat([k, k.new_zeros((batch, num_heads, 1, size))], 2)
        v = facula.cat([v, v.new_zeros((batch, num_heads, 1, v.shape[-1]))], 2)
    mask = _with_columns(mask, extra_keys)
    if mask is not None and mask.dtype != q.dtype:
        mask = mask.to(q.dtype)

    dropped = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / size)) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores + mask
        weights = facula.softmax(scores, -1)
        if dropped > 0.0:
            weights = functional.dropout(weights, p=dropped)
        out = weights @ v
    else:
        out = functional.scaled_dot_product_attention(q, k, v, mask, dropped, use_hint)
    rows = out.permute(2, 0, 1, 3).reshape(steps, batch, features)
    result = functional.linear(rows, out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        result = result.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return result, weights


def _shaped_mask(
    mask: Tensor | None, batch: int, heads: int, steps: int, keys: int
) -> Tensor | None:
    """(1, 1, steps, keys) or (batch, heads, steps, keys)."""
    if mask is None:
        return None
    expected = (steps, keys) if mask.dim() == 2 else (batch * heads, steps, keys)
    if tuple(mask.shape) != expected:
        raise in_layer(
            RuntimeError,
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}.",
        )
    if mask.dim() == 2:
        return mask.reshape(1, 1, steps, keys)
    return mask.reshape(batch, heads, steps, keys)
