#!/usr/bin/env python3
"""A function with a derivative of its own: training a network whose weights are small integers.

Rounding has the derivative 0 almost everywhere, so nothing could be learnt through it. The
straight-through estimator (Bengio et al., 2013) pretends in the backward pass that the rounding was
not there. `Quantize` says so to autograd: `forward` computes, `backward` has the derivative that we
want. A second function, `LogCosh`, shows the ordinary case: a derivative that is faster or more
accurate than what autograd would do, and `gradcheck` to prove it.

    python custom_function.py            # learns a curve with 4-bit weights, writes a chart
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from show import Progress, line_chart, smooth

import facula
from facula import Tensor

HIDDEN, BITS, BATCH, RATE = 64, 4, 256, 0.01


class Quantize(facula.autograd.Function):
    """Rounds to multiples of `step`, at most `limit` of them, and passes the gradient through."""

    @staticmethod
    def forward(ctx, x: Tensor, step: float, limit: int) -> Tensor:
        levels = (x / step).round()
        inside = levels.abs() <= limit
        ctx.save_for_backward(inside)
        return levels.clamp(-limit, limit) * step

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None  # no gradient for numbers that were cut off


class LogCosh(facula.autograd.Function):
    """log(cosh(x)): a loss like x^2 / 2 near 0 and |x| far away. Its derivative is tanh(x)."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        size = x.abs()
        return size + facula.log1p(facula.exp(-2 * size)) - math.log(2)  # cosh itself overflows

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * facula.tanh(x)


def quantized(weight: Tensor) -> Tensor:
    limit = 2 ** (BITS - 1) - 1
    step = weight.detach().abs().max().item() / limit  # the largest weight gets the last level
    return Quantize.apply(weight, step, limit)


def rounded(weight: Tensor) -> Tensor:
    """The same numbers, with the derivative that rounding really has."""
    limit = 2 ** (BITS - 1) - 1
    step = weight.detach().abs().max() / limit
    return (weight / step).round().clamp(-limit, limit) * step


def curve(x: Tensor) -> Tensor:
    return facula.sin(3 * x) + 0.5 * facula.cos(7 * x)


def train(weights_of, steps: int, seed: int, name: str) -> list[float]:
    """Adam on a network of one hidden layer, whose weights go through `weights_of`."""
    facula.manual_seed(seed)
    parameters = [
        facula.randn(1, HIDDEN) * 3,
        facula.randn(HIDDEN),
        facula.randn(HIDDEN, 1) / math.sqrt(HIDDEN),
        facula.zeros(1),
    ]
    for parameter in parameters:
        parameter.requires_grad_()
    means = [facula.zeros_like(p) for p in parameters]
    squares = [facula.zeros_like(p) for p in parameters]
    progress, losses = Progress(steps), []
    for step in range(1, steps + 1):
        weight1, bias1, weight2, bias2 = parameters
        x = facula.rand(BATCH, 1) * 2 - 1
        hidden = facula.tanh(x @ weights_of(weight1) + bias1)  # (BATCH, HIDDEN)
        error = hidden @ weights_of(weight2) + bias2 - curve(x)
        loss = LogCosh.apply(error).mean()
        gradients = facula.autograd.grad(loss, parameters)
        with facula.no_grad():
            for p, g, m, s in zip(parameters, gradients, means, squares, strict=True):
                m.mul_(0.9).add_(0.1 * g)
                s.mul_(0.999).add_(0.001 * g * g)
                p -= RATE * (m / (1 - 0.9**step)) / ((s / (1 - 0.999**step)).sqrt() + 1e-8)
        losses.append(loss.item())
        progress.show(step, f"{name}  loss {losses[-1]:.4f}")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a network with 4-bit weights.")
    parser.add_argument("--out", type=Path, default=Path("custom_function_out"), help="folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="fewer steps, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    steps = 400 if options.quick else 4000

    x = facula.randn(10, dtype=facula.float64, requires_grad=True)
    facula.autograd.gradcheck(LogCosh.apply, (x,))
    print("gradcheck: the derivative of LogCosh is right")

    runs = {
        "whole precision": train(lambda w: w, steps, options.seed, "whole precision "),
        "4 bits, straight through": train(quantized, steps, options.seed, "straight through"),
        "4 bits, true derivative": train(rounded, steps, options.seed, "true derivative "),
    }
    for name, losses in runs.items():
        print(f"{name + ':':26s} loss {sum(losses[-50:]) / 50:.5f}")
    chart = options.out / "losses.svg"
    window = max(1, steps // 80)
    logs = {n: [math.log10(v) for v in smooth(r, window)] for n, r in runs.items()}
    line_chart(chart, "log10 of the loss", logs, f"step / {window}")
    print(f"wrote {chart}")


if __name__ == "__main__":
    main()
