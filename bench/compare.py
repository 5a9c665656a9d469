#!/usr/bin/env python3
"""What calls cost, large elementwise work, reductions and products, against PyTorch.

bench/compare.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from typing import Any

from harness import Work, main, work

# ---- what one call costs


@work
def add_4(T: Any) -> Work:
    a, b = T.randn(4), T.randn(4)
    return lambda: a + b


@work
def add_4_with_node(T: Any) -> Work:
    a, b = T.randn(4, requires_grad=True), T.randn(4)
    return lambda: a + b


@work
def views_4x6(T: Any) -> Work:
    a = T.randn(4, 6)
    return lambda: a[1:3].t().reshape(-1)


@work
def backward_chain_of_10(T: Any) -> Work:
    a, b = T.randn(4, requires_grad=True), T.randn(4)

    def run() -> None:
        x = a
        for _ in range(10):
            x = x * b
        x.sum().backward()

    return run


# ---- large tensors: 4 million floats


def _big(T: Any) -> Any:
    T.manual_seed(0)
    return T.randn(4096, 1024)


@work
def add_4m(T: Any) -> Work:
    a, b = _big(T), _big(T)
    return lambda: a + b


@work
def exp_4m(T: Any) -> Work:
    a = _big(T)
    return lambda: T.exp(a)


@work
def tanh_4m(T: Any) -> Work:
    a = _big(T)
    return lambda: T.tanh(a)


@work
def where_4m(T: Any) -> Work:
    a, b = _big(T), _big(T)
    mask = a > 0
    return lambda: T.where(mask, a, b)


@work
def transposed_add_4m(T: Any) -> Work:
    a, b = _big(T), _big(T).t().contiguous().t()
    return lambda: a + b


@work
def sum_of_columns(T: Any) -> Work:
    a = _big(T)
    return lambda: a.sum(0)


@work
def sum_of_rows(T: Any) -> Work:
    a = _big(T)
    return lambda: a.sum(1)


@work
def sum_of_all(T: Any) -> Work:
    a = _big(T)
    return lambda: a.sum()


@work
def max_of_all(T: Any) -> Work:
    a = _big(T)
    return lambda: a.max()


@work
def argmax_of_rows(T: Any) -> Work:
    a = _big(T)
    return lambda: a.argmax(1)


@work
def softmax_of_rows(T: Any) -> Work:
    a = _big(T)
    return lambda: T.softmax(a, -1)


# ---- matrix products


@work
def matmul_1024(T: Any) -> Work:
    a, b = T.randn(1024, 1024), T.randn(1024, 1024)
    return lambda: a @ b


@work
def matmul_1024_bfloat16(T: Any) -> Work:
    a = T.randn(1024, 1024).to(T.bfloat16)
    return lambda: a @ a


@work
def matmul_of_16_rows_with_weight(T: Any) -> Work:
    x, w = T.randn(16, 1024), T.randn(1024, 1024)
    return lambda: x @ w.t()


@work
def matmul_for_gradient_of_weight(T: Any) -> Work:
    g, x = T.randn(2048, 768), T.randn(2048, 512)
    return lambda: g.t() @ x


@work
def matmul_512_of_32(T: Any) -> Work:
    a = T.randn(512, 32, 32)
    return lambda: T.bmm(a, a)


if __name__ == "__main__":
    main(__file__, __doc__)
