"""What the losses compute, in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Array = np.ndarray


def _reduced(loss: Array, reduction: str = "mean") -> Array:
    return {"none": lambda x: x, "mean": np.mean, "sum": np.sum}[reduction](loss)


def _weighted(loss: Array, weight: Array | None, reduction: str) -> Array:
    if weight is None:
        return _reduced(loss, reduction)
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return _reduced(loss * weight, reduction)


def mse_loss(x, t, size_average=None, reduce=None, reduction="mean", weight=None) -> Array:
    return _weighted((x - t) ** 2, weight, reduction)


def l1_loss(x, t, size_average=None, reduce=None, reduction="mean", weight=None) -> Array:
    return _weighted(np.abs(x - t), weight, reduction)


def smooth_l1_loss(x, t, size_average=None, reduce=None, reduction="mean", beta=1.0) -> Array:
    d = np.abs(x - t)
    square = 0.5 * d * d / beta if beta else d
    return _reduced(np.where(d < beta, square, d - 0.5 * beta), reduction)


def huber_loss(x, t, reduction="mean", delta=1.0, weight=1.0) -> Array:
    d = np.abs(x - t)
    return _reduced(
        np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)) * weight, reduction
    )


def binary_cross_entropy(
    p, t, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Array:
    loss = -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100))
    return _reduced(loss if weight is None else loss * weight, reduction)


def with_logits(
    x, t, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=1.0
) -> Array:
    loss = pos_weight * t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x)
    return _reduced(loss if weight is None else loss * weight, reduction)


def kl_div(x, t, size_average=None, reduce=None, reduction="mean", log_target=False) -> Array:
    loss = np.exp(t) * (t - x) if log_target else t * (np.log(t) - x)
    return loss.sum() / x.shape[0] if reduction == "batchmean" else _reduced(loss, reduction)


def poisson_nll_loss(
    x, t, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
) -> Array:
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        stirling = t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t)
        loss = loss + np.where(t > 1, stirling, 0)
    return _reduced(loss, reduction)


def gaussian_nll_loss(x, t, var, full=False, eps=1e-6, reduction="mean") -> Array:
    var = np.asarray(var)
    if var.ndim == x.ndim - 1 and var.ndim:
        var = var[..., None]
    var = np.maximum(var, eps)
    loss = 0.5 * (np.log(var) + (x - t) ** 2 / var) + (0.5 * np.log(2 * np.pi) if full else 0)
    return _reduced(loss, reduction)


# ---- classes


def _class_terms(log_p: Array, target: Array, weight: Array | None, ignored: int):
    """(-w[t] log_p[t], w[t]) of every sample, 0 where it is ignored; the classes come last."""
    counts = target != ignored
    label = np.where(counts, target, 0)
    weight = np.ones(log_p.shape[-1]) if weight is None else weight
    own = np.where(counts, weight[label], 0.0)
    return -own * np.take_along_axis(log_p, label[..., None], -1)[..., 0], own


def _finish(loss: Array, total: Array, reduction: str) -> Array:
    return loss.sum() / total.sum() if reduction == "mean" else _reduced(loss, reduction)


def nll_loss(
    x, t, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
) -> Array:
    classes_last = np.moveaxis(x, 1, -1) if x.ndim > 1 else x
    return _finish(*_class_terms(classes_last, t, weight, ignore_index), reduction)


def cross_entropy(
    x,
    t,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
) -> Array:
    classes_last = np.moveaxis(x, 1, -1) if x.ndim > 1 else x
    if x.size == 0:
        return _reduced(np.zeros(t.shape), reduction)
    top = classes_last.max(-1, keepdims=True)
    log_p = classes_last - top - np.log(np.exp(classes_last - top).sum(-1, keepdims=True))
    classes = log_p.shape[-1]
    weights = np.ones(classes) if weight is None else weight
    if t.dtype.kind == "f":
        t = np.moveaxis(t, 1, -1) if t.ndim > 1 else t
        t = t * (1 - label_smoothing) + label_smoothing / classes
        loss = -(log_p * t * weights).sum(-1)
        return _reduced(loss, reduction)
    loss, own = _class_terms(log_p, t, weight, ignore_index)
    uniform = np.where(t != ignore_index, -(log_p * weights).sum(-1), 0)
    return _finish(
        (1 - label_smoothing) * loss + label_smoothing / classes * uniform, own, reduction
    )


def multi_margin_loss(
    x, t, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Array:
    rows, labels = np.atleast_2d(x), np.atleast_1d(t)
    z = np.maximum(0, margin - rows[np.arange(len(rows)), labels][:, None] + rows) ** p
    z *= 1 if weight is None else weight[labels][:, None]
    z[np.arange(len(rows)), labels] = 0
    loss = z.sum(1) / rows.shape[1]
    return _reduced(loss.reshape(t.shape), reduction)


def multilabel_margin_loss(x, t, size_average=None, reduce=None, reduction="mean") -> Array:
    losses = []
    for row, given in zip(np.atleast_2d(x), np.atleast_2d(t), strict=True):
        labels = list(itertools.takewhile(lambda label: label >= 0, given))
        others = [c for c in range(len(row)) if c not in labels]
        terms = [max(0, 1 - row[y] + row[c]) for y in labels for c in others]
        losses.append(sum(terms) / len(row))
    return _reduced(np.array(losses).reshape(x.shape[:-1]), reduction)


def multilabel_soft_margin_loss(
    x, t, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Array:
    return _reduced(with_logits(x, t, weight, reduction="none").mean(-1), reduction)


# ---- pairs and triplets


def hinge_embedding_loss(
    x, t, margin=1.0, size_average=None, reduce=None, reduction="mean"
) -> Array:
    return _reduced(np.where(t == 1, x, np.maximum(0, margin - x)), reduction)


def cosine_embedding_loss(
    a, b, t, margin=0.0, size_average=None, reduce=None, reduction="mean"
) -> Array:
    cos = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return _reduced(np.where(t == 1, 1 - cos, np.maximum(0, cos - margin)), reduction)


def margin_ranking_loss(
    a, b, t, margin=0.0, size_average=None, reduce=None, reduction="mean"
) -> Array:
    return _reduced(np.maximum(0, -t * (a - b) + margin), reduction)


def soft_margin_loss(x, t, size_average=None, reduce=None, reduction="mean") -> Array:
    return _reduced(np.logaddexp(0, -t * x), reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2.0,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
) -> Array:
    def distance(a, b):
        return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)

    far = distance(anchor, negative)
    if swap:
        far = np.minimum(far, distance(positive, negative))
    return _reduced(np.maximum(0, distance(anchor, positive) - far + margin), reduction)


# ---- sequences


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
) -> Array:
    """The sum over every path that collapses to the labels: only for short sequences."""
    one = log_probs.ndim == 2
    if one:
        log_probs = log_probs[:, None]
        targets = targets[None]
    lengths = np.atleast_1d(target_lengths)
    starts = np.cumsum([0, *lengths])
    losses = []
    for n, (steps, length) in enumerate(zip(np.atleast_1d(input_lengths), lengths, strict=True)):
        row = targets[starts[n] : starts[n + 1]] if targets.ndim == 1 else targets[n, :length]
        total = 0.0
        for path in itertools.product(range(log_probs.shape[2]), repeat=int(steps)):
            collapsed = [label for label, _ in itertools.groupby(path) if label != blank]
            if collapsed == list(row):
                total += np.exp(sum(log_probs[t, n, label] for t, label in enumerate(path)))
        losses.append(-np.log(total) if total else np.inf)
    loss = np.array(losses)
    if zero_infinity:
        loss = np.where(np.isinf(loss), 0, loss)
    if reduction == "mean":
        return (loss / np.maximum(lengths, 1)).mean()
    return loss[0] if one and reduction == "none" else _reduced(loss, reduction)


BY_ROW: dict[str, Any] = {
    "mse_loss": mse_loss,
    "l1_loss": l1_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits.functional": with_logits,
    "kl_div.functional": kl_div,
    "poisson_nll_loss.functional": poisson_nll_loss,
    "gaussian_nll_loss": gaussian_nll_loss,
    "nll_loss": nll_loss,
    "cross_entropy": cross_entropy,
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": multilabel_margin_loss,
    "multilabel_soft_margin_loss": multilabel_soft_margin_loss,
    "hinge_embedding_loss.functional": hinge_embedding_loss,
    "cosine_embedding_loss.functional": cosine_embedding_loss,
    "margin_ranking_loss.functional": margin_ranking_loss,
    "soft_margin_loss": soft_margin_loss,
    "triplet_margin_loss.functional": triplet_margin_loss,
    "ctc_loss.functional": ctc_loss,
}
