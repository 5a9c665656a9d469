"""Losses that take functions or options, and the switch of their warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import _C, Tensor

__all__ = [
    "linear_cross_entropy",
    "set_broadcast_warning",
    "triplet_margin_with_distance_loss",
]


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` with a distance of one's own; without one, the euclidean distance.

    Example::

        >>> x = facula.zeros(1, 2)
        >>> facula.nn.functional.triplet_margin_with_distance_loss(
        ...     x, x + 1, x, distance_function=lambda a, b: (a - b).abs().sum(-1)
        ... )
        tensor(3.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    distance = distance_function or facula.nn.functional.pairwise_distance
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = facula.minimum(far, distance(positive, negative))
    loss = facula.clamp_min(margin + near - far, 0)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy`` of the results of a linear layer.

    ``linear_weight`` is (C, in_features) or (C, d1, ..., in_features), the bias has its shape
    without the last dimension. ``options`` is accepted; the logits are computed at once.

    Example::

        >>> x, w = facula.zeros(1, 3), facula.ones(4, 3)
        >>> facula.nn.functional.linear_cross_entropy(x, w, facula.tensor([2]))
        tensor(1.3863)
    """
    shape, features = linear_weight.shape[:-1], linear_weight.shape[-1:]
    if not shape:
        raise RuntimeError(
            "linear_cross_entropy(): expected linear_weight with dimensionality at least 2, got "
            f"{linear_weight.dim()}"
        )
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"linear_cross_entropy(): expected input with dimensionality 1 or 2, got {input.dim()}"
        )
    if input.shape[-1:] != features:
        raise RuntimeError(
            "linear_cross_entropy(): expected equal input and linear_weight last dimensions "
            f"(in_features), got {input.shape[-1]} and {features[0]}, respectively"
        )
    if len(shape) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, (N, {features[0]}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
    logits = input @ linear_weight.reshape(-1, linear_weight.shape[-1]).t()
    if len(shape) > 1:
        logits = logits.reshape(*logits.shape[:-1], *shape)
    if linear_bias is not None:
        logits = logits + linear_bias
    return facula.nn.functional.cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )


def set_broadcast_warning(enabled: bool) -> None:
    """Whether losses warn of an input and a target with different shapes, as they do at first.

    Shapes such as (N, 1) and (N,) broadcast to N * N differences, which is rarely meant.

    Example::

        >>> facula.nn.functional.set_broadcast_warning(True)
    """
    _C._set_loss_broadcast_warning(enabled)
