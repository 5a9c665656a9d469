"""What the norms compute, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def _normalized(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    mean = x.mean(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _by_channel(parameter: Array, ndim: int) -> Array:
    return parameter.reshape([-1 if d == 1 else 1 for d in range(ndim)])


def _scaled(x: Array, weight: Array | None, bias: Array | None) -> Array:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Array:
    return _scaled(x, *(p if p is None else _by_channel(p, x.ndim) for p in (weight, bias)))


def native_layer_norm(x, shape, weight=None, bias=None, eps=1e-5) -> tuple[Array, ...]:
    axes = tuple(range(-len(shape), 0))
    out, mean, rstd = _normalized(x, axes, eps)
    return _scaled(out, weight, bias), mean, rstd


def rms_norm(x, shape, weight=None, eps=None) -> Array:
    axes = tuple(range(-len(shape), 0))
    eps = np.finfo(np.float32).eps if eps is None else eps
    return _scaled(x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + eps), weight, None)


def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
) -> Array:
    if training:
        out = _normalized(x, (0, *range(2, x.ndim)), eps)[0]
    else:
        mean, var = (_by_channel(t, x.ndim) for t in (running_mean, running_var))
        out = (x - mean) / np.sqrt(var + eps)
    return _affine(out, weight, bias)


def native_batch_norm(x, weight, bias, mean, var, training, momentum, eps) -> tuple[Array, ...]:
    out, mean, rstd = _normalized(x, (0, *range(2, x.ndim)), eps)
    return _affine(out, weight, bias), mean.reshape(-1), rstd.reshape(-1)


def _groups(x: Array, groups: int, eps: float) -> tuple[Array, Array, Array]:
    return _normalized(x.reshape(x.shape[0], groups, -1), (2,), eps)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5) -> Array:
    return _affine(_groups(x, groups, eps)[0].reshape(x.shape), weight, bias)


def native_group_norm(x, weight, bias, n, c, inner, groups, eps) -> tuple[Array, ...]:
    out, mean, rstd = _groups(x, groups, eps)
    return _affine(out.reshape(x.shape), weight, bias), mean[..., 0], rstd[..., 0]


def instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
) -> Array:
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    return group_norm(x, x.shape[1], weight, bias, eps)


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0) -> Array:
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        first = c - size // 2
        window = x[:, max(first, 0) : max(first + size, 0)]
        total[:, c] = (window * window).sum(axis=1)
    return x / (k + alpha * total / size) ** beta


BY_ROW: dict[str, Any] = {
    "native_layer_norm": native_layer_norm,
    "layer_norm": lambda *args, **kwargs: native_layer_norm(*args, **kwargs)[0],
    "rms_norm": rms_norm,
    "batch_norm.functional": batch_norm,
    "native_batch_norm": native_batch_norm,
    "group_norm": group_norm,
    "group_norm.functional": group_norm,
    "native_group_norm": native_group_norm,
    "instance_norm.functional": instance_norm,
    "local_response_norm": local_response_norm,
}
