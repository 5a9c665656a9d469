"""What linear layers, embeddings and attention compute, in NumPy.

By the row's id; they take the row's arguments in their order.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Array = np.ndarray


def _linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    out = np.einsum("...i,oi->...o" if weight.ndim == 2 else "...i,i->...", x, weight)
    return out if bias is None else out + bias


def _bilinear(x1: Array, x2: Array, weight: Array, bias: Array | None = None) -> Array:
    out = np.einsum("...i,kij,...j->...k", x1, weight, x2)
    return out if bias is None else out + bias


def _embedding_bag(
    indices: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    if indices.ndim == 2:
        bags = [
            range(i * indices.shape[1], (i + 1) * indices.shape[1]) for i in range(len(indices))
        ]
        indices = indices.ravel()
    else:
        ends = [*offsets] if include_last_offset else [*offsets, len(indices)]
        bags = [range(a, b) for a, b in itertools.pairwise(ends)]
    out = np.zeros((len(bags), weight.shape[1]), weight.dtype)
    for i, bag in enumerate(bags):
        kept = [j for j in bag if indices[j] != padding_idx]
        if not kept:
            continue
        rows = weight[indices[kept]]
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[kept][:, None]
        out[i] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, axis=0)
    return out


def attention(
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    if enable_gqa:
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], axis=-3) for t in (k, v))
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if attn_mask is not None:
        added = attn_mask
        if attn_mask.dtype == bool:
            added = np.where(attn_mask, 0.0, -np.inf)
        scores = scores + added
    if scores.shape[-1] == 0:
        return scores @ v
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)) @ v


def _embedding(weight: Array, indices: Array, *options: Any) -> Array:
    return weight[indices]


BY_ROW = {
    "linear": _linear,
    "bilinear": _bilinear,
    "embedding": _embedding,
    "embedding.input": lambda indices, weight, *_, **__: weight[indices],
    "embedding_bag.input": _embedding_bag,
    "scaled_dot_product_attention": attention,
}
