"""What activations compute, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _normal_cdf(x: Array) -> Array:
    return np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[np.float64])(x)


def _gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * _normal_cdf(x) if x.size else x


def _elu(x: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _celu(x: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0) / alpha), x)


def _selu(x: Array, inplace: bool = False) -> Array:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _clip(x: Array, low: float, high: float) -> Array:
    return np.where(np.isnan(x), x, np.clip(x, low, high))


def _threshold(x: Array, threshold: float, value: float, inplace: bool = False) -> Array:
    return np.where(x <= threshold, value, x)


def _leaky_relu(x: Array, negative_slope: float = 0.01, inplace: bool = False) -> Array:
    return np.where(x > 0, x, x * negative_slope)


def _rrelu(x: Array, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Array:
    return _leaky_relu(x, (lower + upper) / 2)


def _prelu(x: Array, weight: Array) -> Array:
    if weight.size == 1:
        weight = weight.reshape(())
    else:
        weight = weight.reshape([-1 if d == 1 else 1 for d in range(x.ndim)])
    return np.where(x > 0, x, x * weight)


def _softshrink(x: Array, lambd: float = 0.5) -> Array:
    return np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0))


def _softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


def _mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(0, x))


def _glu(x: Array, dim: int = -1) -> Array:
    first, second = np.split(x, 2, axis=dim)
    return first * _sigmoid(second)


def _softmax(x: Array, dim: int, sign: int = 1) -> Array:
    x = np.atleast_1d(sign * x)
    e = np.exp(x - x.max(axis=dim, keepdims=True)) if x.size else x
    return e / e.sum(axis=dim, keepdims=True)


def _shaped(f: Callable[..., Array]) -> Callable[..., Array]:
    return lambda x, *args, **kwargs: f(x, *args, **kwargs).reshape(x.shape)


BY_ROW: dict[str, Callable[..., Any]] = {
    "relu.functional": lambda x: _threshold(x, 0, 0),
    "relu6": lambda x: _clip(x, 0, 6),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: _clip(x, min_val, max_val),
    "threshold": _threshold,
    "threshold.functional": _threshold,
    "leaky_relu": _leaky_relu,
    "prelu": _prelu,
    "rrelu": _rrelu,
    "rrelu.functional": _rrelu,
    "hardshrink": lambda x, lambd=0.5: np.where((x >= -lambd) & (x <= lambd), 0, x),
    "softshrink": _softshrink,
    "hardsigmoid": lambda x: _clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * _clip(x + 3, 0, 6) / 6,
    "elu": _elu,
    "selu": _selu,
    "selu.functional": _selu,
    "celu": _celu,
    "celu.functional": _celu,
    "gelu": _gelu,
    "silu": lambda x: x * _sigmoid(x),
    "mish": _mish,
    "softplus": _softplus,
    "logsigmoid": lambda x: -np.logaddexp(0, -x),
    "tanhshrink": lambda x: x - np.tanh(x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "glu": _glu,
    "softmax.functional": _shaped(lambda x, dim: _softmax(x, dim)),
    "log_softmax.functional": _shaped(lambda x, dim: np.log(_softmax(x, dim))),
    "softmin.functional": _shaped(lambda x, dim: _softmax(x, dim, -1)),
}
