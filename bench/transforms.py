#!/usr/bin/env python3
"""Function transforms on small functions and a small network, against PyTorch.

bench/transforms.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from typing import Any

from harness import Work, main, work


def network(T: Any, batch: int, width: int) -> tuple[Any, dict[str, Any], Any, Any]:
    """(loss of one example, parameters, inputs, classes)"""
    T.manual_seed(0)
    params = {
        "w1": T.randn(20, width) / 5,
        "b1": T.zeros(width),
        "w2": T.randn(width, 10) / 5,
        "b2": T.zeros(10),
    }

    def loss(params: dict[str, Any], x: Any, target: Any) -> Any:
        logits = (x @ params["w1"] + params["b1"]).tanh() @ params["w2"] + params["b2"]
        return logits.logsumexp(-1) - logits.gather(0, target.reshape(1)).sum()

    return loss, params, T.randn(batch, 20), T.randint(0, 10, (batch,))


@work
def per_sample_gradients(T: Any) -> Work:
    loss, *arguments = network(T, 64, 32)
    gradients = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(*arguments)


@work
def per_sample_gradients_wide(T: Any) -> Work:
    loss, *arguments = network(T, 256, 512)
    gradients = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(*arguments)


@work
def gradient_of_a_batch(T: Any) -> Work:
    loss, params, x, target = network(T, 64, 32)
    losses = T.func.vmap(loss, in_dims=(None, 0, 0))
    gradient = T.func.grad(lambda params: losses(params, x, target).mean())
    return lambda: gradient(params)


@work
def hessian_16(T: Any) -> Work:
    x, matrix = T.randn(16), T.randn(16, 16)
    hessian = T.func.hessian(lambda x: (matrix @ x).tanh().sum())
    return lambda: hessian(x)


@work
def jacrev_64(T: Any) -> Work:
    x, matrix = T.randn(64), T.randn(64, 64)
    jacobian = T.func.jacrev(lambda x: (matrix @ x).tanh())
    return lambda: jacobian(x)


@work
def jacfwd_64(T: Any) -> Work:
    x, matrix = T.randn(64), T.randn(64, 64)
    jacobian = T.func.jacfwd(lambda x: (matrix @ x).tanh())
    return lambda: jacobian(x)


@work
def vmap_of_a_product(T: Any) -> Work:
    x = T.randn(8, 4)
    product = T.func.vmap(lambda a, b: a * b)
    return lambda: product(x, x)


@work
def grad_of_a_sum(T: Any) -> Work:
    x = T.randn(16)
    gradient = T.func.grad(lambda x: (x * x).sum())
    return lambda: gradient(x)


@work
def jvp_of_a_sum(T: Any) -> Work:
    x = T.randn(16)
    return lambda: T.func.jvp(lambda x: (x * x).sum(), (x,), (x,))


if __name__ == "__main__":
    main(__file__, __doc__)
