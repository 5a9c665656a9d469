"""Attention by plain operators that also tells of its scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import facula
from facula import Tensor


def attend_to_scores(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None,
    allowed: Tensor | None,
    change: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, the logarithms of the sums of exponentials of scores, and the largest scores.

    Scores are computed in float32 or float64, scaled, changed and masked, in this order. The heads
    of key and value may be fewer than those of query.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide = facula.float64 if query.dtype == facula.float64 else facula.float32
    repeats = query.shape[-3] // key.shape[-3]
    if repeats != 1:
        key, value = (t.repeat_interleave(repeats, -3) for t in (key, value))
    scores = (query @ key.transpose(-2, -1)).to(wide) * scale  # (..., H, T, S)
    if change is not None:
        scores = change(scores).to(wide)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    blind = scores.isneginf().all(-1, keepdim=True)
    # Rows without a score become rows of zeros first, so that their gradients are zeros, not NaN.
    seen = scores.masked_fill(blind, 0.0)
    weights = seen.softmax(-1).masked_fill(blind, 0.0)
    lse = seen.logsumexp(-1).masked_fill(blind.squeeze(-1), -math.inf)
    largest = (
        scores.detach().amax(-1) if scores.shape[-1] else scores.new_full(lse.shape, -math.inf)
    )
    return weights.to(query.dtype) @ value.to(query.dtype), lse, largest
