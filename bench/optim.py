#!/usr/bin/env python3
"""Steps of optimizers and what goes with them, against PyTorch.

bench/optim.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from typing import Any

from harness import Work, main, work

SMALL = [(16, 8), (16,), (16, 16), (16,), (4, 16), (4,)]  # an MLP
MILLION = [(16_667,)] * 60
LARGE = [(4_000_000,)] * 4


def parameters(T: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    params = [T.nn.Parameter(T.randn(*shape)) for shape in shapes]
    for p in params:
        p.grad = T.randn(*p.shape)
    return params


def step(T: Any, name: str, shapes: list[tuple[int, ...]], **options: Any) -> Work:
    return getattr(T.optim, name)(parameters(T, shapes), lr=1e-3, **options).step


@work
def sgd_small(T: Any) -> Work:
    return step(T, "SGD", SMALL)


@work
def sgd_momentum_small(T: Any) -> Work:
    return step(T, "SGD", SMALL, momentum=0.9)


@work
def adam_small(T: Any) -> Work:
    return step(T, "Adam", SMALL)


@work
def adam_fused_small(T: Any) -> Work:
    return step(T, "Adam", SMALL, fused=True)


@work
def sgd_momentum_million(T: Any) -> Work:
    return step(T, "SGD", MILLION, momentum=0.9)


@work
def adam_million(T: Any) -> Work:
    return step(T, "Adam", MILLION)


@work
def adam_fused_million(T: Any) -> Work:
    return step(T, "Adam", MILLION, fused=True)


@work
def sgd_fused_large(T: Any) -> Work:
    return step(T, "SGD", LARGE, fused=True)


@work
def sgd_momentum_fused_large(T: Any) -> Work:
    return step(T, "SGD", LARGE, momentum=0.9, fused=True)


@work
def adamw_fused_large(T: Any) -> Work:
    return step(T, "AdamW", LARGE, fused=True)


@work
def adagrad_fused_large(T: Any) -> Work:
    return step(T, "Adagrad", LARGE, fused=True)


@work
def clip_grad_norm_small(T: Any) -> Work:
    params = parameters(T, SMALL)
    return lambda: T.nn.utils.clip_grad_norm_(params, 1.0)


@work
def clip_grad_norm_million(T: Any) -> Work:
    params = parameters(T, MILLION)
    return lambda: T.nn.utils.clip_grad_norm_(params, 1.0)


if __name__ == "__main__":
    main(__file__, __doc__)
