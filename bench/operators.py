#!/usr/bin/env python3
"""Sorting, scans, indexing, linear algebra, transforms: large work against PyTorch.

bench/operators.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import WORK, Work, main


def add(name: str, make: Callable[[Any], tuple[Any, ...]], run: Callable[..., Any]) -> None:
    """Work on arguments that are made once: ``run(package, *make(package))``."""

    def prepared(T: Any) -> Work:
        T.manual_seed(0)
        arguments = make(T)
        return lambda: run(T, *arguments)

    WORK[name] = prepared


def numbers(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randn(*shape),)


def integers(high: int, *shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randint(0, high, shape),)


def with_index(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randn(*shape), T.randint(0, shape[0], shape))


def positive_definite(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    def make(T: Any) -> tuple[Any, ...]:
        a = T.randn(*shape)
        return (a @ a.mT + shape[-1] * T.eye(shape[-1]), T.randn(*shape))

    return make


# ---- order
add("sort_1m", numbers(1_000_000), lambda T, a: a.sort())
add("sort_1m_int64", integers(1 << 40, 1_000_000), lambda T, a: a.sort())
add("sort_rows_1000x1000", numbers(1000, 1000), lambda T, a: a.sort(-1))
add("topk_10_of_1m", numbers(1_000_000), lambda T, a: a.topk(10))
add("topk_10_of_rows", numbers(1000, 1000), lambda T, a: a.topk(10, -1))
add("unique_1m", integers(1000, 1_000_000), lambda T, a: a.unique())
add("unique_1m_wide", integers(1 << 40, 1_000_000), lambda T, a: a.unique())
add("kthvalue_of_rows", numbers(1000, 1000), lambda T, a: a.kthvalue(500, -1))
add(
    "searchsorted_1m",
    lambda T: (T.randn(1000).sort()[0], T.randn(1_000_000)),
    lambda T, a, b: T.searchsorted(a, b),
)

# ---- scans
add("cumsum_of_rows", numbers(1000, 1000), lambda T, a: a.cumsum(-1))
add("cumsum_of_columns", numbers(1000, 1000), lambda T, a: a.cumsum(0))
add("cumsum_1m", numbers(1_000_000), lambda T, a: a.cumsum(0))
add("cumprod_of_rows", numbers(1000, 1000), lambda T, a: a.cumprod(-1))

# ---- indexing
add("gather_rows", with_index(1000, 1000), lambda T, a, i: a.gather(1, i))
add("gather_columns", with_index(1000, 1000), lambda T, a, i: a.gather(0, i))
add(
    "index_select_rows",
    lambda T: (T.randn(10_000, 64), T.randint(0, 10_000, (10_000,))),
    lambda T, a, i: a.index_select(0, i),
)
add(
    "index_add_rows",
    lambda T: (T.zeros(10_000, 64), T.randint(0, 10_000, (10_000,)), T.randn(10_000, 64)),
    lambda T, a, i, s: a.index_add(0, i, s),
)
add(
    "index_add_1m",
    lambda T: (T.zeros(10_000), T.randint(0, 10_000, (1_000_000,)), T.randn(1_000_000)),
    lambda T, a, i, s: a.index_add(0, i, s),
)
add(
    "scatter_add_rows", with_index(1000, 1000), lambda T, a, i: T.zeros_like(a).scatter_add(1, i, a)
)
add("masked_select_1m", numbers(1_000_000), lambda T, a: a[a > 0])

# ---- linear algebra
for _name, _shape in (("256", (256, 256)), ("10000_of_3x3", (10_000, 3, 3))):
    add(f"inv_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.inv(a))
    add(f"solve_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.solve(a, b))
    add(f"det_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.det(a))
    add(f"cholesky_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.cholesky(a))
    add(f"qr_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.qr(b))
    add(f"svd_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.svd(b))
    add(f"eigh_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.eigh(a))

# ---- Fourier transforms
add("fft_2_to_20", lambda T: (T.randn(1 << 20, dtype=T.complex64),), lambda T, a: T.fft.fft(a))
add("rfft_2_to_20", numbers(1 << 20), lambda T, a: T.fft.rfft(a))
add(
    "fft2_1000x1000",
    lambda T: (T.randn(1000, 1000, dtype=T.complex64),),
    lambda T, a: T.fft.fft2(a),
)

# ---- function transforms


def _network(T: Any) -> tuple[Any, ...]:
    images, labels = T.randn(64, 1, 28, 28), T.randint(0, 10, (64,))
    parameters = (
        T.randn(16, 1, 3, 3) * 0.3,
        T.randn(32, 16, 3, 3) * 0.1,
        T.randn(10, 32 * 12 * 12) * 0.02,
    )

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        first, second, last = parameters
        x = T.relu(T.conv2d(image.unsqueeze(0), first))
        x = T.relu(T.conv2d(x, second))
        x = x.unflatten(2, (12, 2)).unflatten(4, (12, 2)).mean((3, 5))
        scores = T.log_softmax(x.flatten() @ last.t(), -1)
        return -scores.gather(0, label.unsqueeze(0)).sum()

    return parameters, images, labels, T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))


add("per_sample_gradients", _network, lambda T, p, x, y, gradients: gradients(p, x, y))


if __name__ == "__main__":
    main(__file__, __doc__)
