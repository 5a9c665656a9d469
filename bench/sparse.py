#!/usr/bin/env python3
"""Sparse matrices of 20,000 rows and 400,000 elements, and jagged batches, against PyTorch.

bench/sparse.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from typing import Any

from harness import Work, main, work

ROWS, ELEMENTS, WIDTH = 20_000, 400_000, 64


def matrix(T: Any, elements: int = ELEMENTS) -> Any:
    T.manual_seed(0)
    at = T.randint(0, ROWS, (2, elements))
    return T.sparse_coo_tensor(at, T.randn(elements), (ROWS, ROWS))


@work
def coalesce(T: Any) -> Work:
    s = matrix(T)
    return lambda: s.coalesce()


@work
def coo_times_dense(T: Any) -> Work:
    s, x = matrix(T).coalesce(), T.randn(ROWS, WIDTH)
    return lambda: T.sparse.mm(s, x)


@work
def csr_times_dense(T: Any) -> Work:
    s, x = matrix(T).coalesce().to_sparse_csr(), T.randn(ROWS, WIDTH)
    return lambda: s @ x


@work
def csr_times_vector(T: Any) -> Work:
    s, x = matrix(T).coalesce().to_sparse_csr(), T.randn(ROWS)
    return lambda: s @ x


@work
def product_forward_and_backward(T: Any) -> Work:
    s, x = matrix(T).coalesce(), T.randn(ROWS, WIDTH)

    def run() -> None:
        weight, features = s.detach().requires_grad_(), x.detach().requires_grad_()
        T.sparse.mm(weight, features).sum().backward()

    return run


@work
def sparse_times_sparse(T: Any) -> Work:
    a, b = matrix(T, ELEMENTS // 20).coalesce(), matrix(T).coalesce()
    return lambda: T.sparse.mm(a, b)


@work
def sum_of_two(T: Any) -> Work:
    a, b = matrix(T, ELEMENTS // 20).coalesce(), matrix(T).coalesce()
    return lambda: a + b


@work
def columns_picked(T: Any) -> Work:
    s, index = matrix(T).coalesce(), T.randint(0, ROWS, (5000,))
    return lambda: s.index_select(1, index)


@work
def joined(T: Any) -> Work:
    s = matrix(T).coalesce()
    return lambda: T.cat([s, s], 1)


@work
def softmax_of_rows(T: Any) -> Work:
    s = matrix(T).coalesce()
    return lambda: T.sparse.softmax(s, 1)


@work
def sparse_adam(T: Any) -> Work:
    table = T.nn.Embedding(100_000, 64, sparse=True)
    optimizer = T.optim.SparseAdam(list(table.parameters()))
    words = T.randint(0, 100_000, (512,))

    def run() -> None:
        optimizer.zero_grad()
        table(words).sum().backward()
        optimizer.step()

    return run


@work
def jagged_layer(T: Any) -> Work:
    batch = T.nested.nested_tensor(
        [T.randn(10 + i % 50, WIDTH) for i in range(64)], layout=T.jagged
    )
    layer = T.nn.Sequential(T.nn.Linear(WIDTH, WIDTH), T.nn.GELU(), T.nn.LayerNorm(WIDTH))
    return lambda: layer(batch)


if __name__ == "__main__":
    main(__file__, __doc__)
