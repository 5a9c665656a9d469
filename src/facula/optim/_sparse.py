"""Steps of parameters whose gradients are sparse: only rows that the gradient has are changed."""

from __future__ import annotations

import math
from typing import Any

from facula import _C, Tensor, no_grad


def _gradient(group: dict[str, Any], p: Any) -> Tensor:
    """The gradient with every position once, for descent."""
    grad = p.grad.detach().coalesce()
    return -grad if group.get("maximize") else grad  # older checkpoints lack it


def _at(t: Tensor, pattern: Tensor) -> Tensor:
    """The values of a dense tensor at the positions of a sparse one."""
    return _C._operators["_sparse_gather"](t, pattern)


def _like(pattern: Tensor, values: Tensor) -> Tensor:
    """Other values at the positions of a gradient; nothing is checked again."""
    return _C._operators["_sparse_like"](pattern, values)


@no_grad()
def sgd_step(group: dict[str, Any], p: Any, state: dict[Any, Any], make: Any) -> None:
    """One step of SGD. The momentum of rows without gradient decays, so it is a dense tensor."""
    grad: Any = _gradient(group, p)
    lr, momentum = float(group["lr"]), group["momentum"]
    if group["weight_decay"] != 0:
        grad = p * group["weight_decay"] + grad
    if momentum != 0:
        buffer = state[p].get("momentum_buffer")
        if buffer is None:
            buffer = make(p)["momentum_buffer"].zero_().add_(grad)
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        grad = buffer * momentum + grad if group["nesterov"] else buffer
    p.add_(grad, alpha=-lr)


@no_grad()
def adagrad_step(group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
    """One step of Adagrad."""
    if group["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    grad = _gradient(group, p)
    state["step"] += 1
    lr = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
    values = grad._values()
    state["sum"].add_(_like(grad, values * values))
    root = _at(state["sum"], grad).sqrt_().add_(group["eps"])
    p.add_(_like(grad, values / root), alpha=-lr)


@no_grad()
def adam_step(group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
    """One step of Adam on the rows of the gradient."""
    grad = _gradient(group, p)
    beta1, beta2 = group["betas"]
    state["step"] += 1
    step = float(state["step"])
    if grad._nnz() == 0:
        return
    values = grad._values()
    averages = []
    for name, beta, target in (
        ("exp_avg", beta1, values),
        ("exp_avg_sq", beta2, values * values),
    ):
        before = _at(state[name], grad)
        change = (target - before) * (1 - beta)
        state[name].add_(_like(grad, change))
        averages.append(before + change)
    mean, square = averages
    size = float(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    p.add_(_like(grad, mean / square.sqrt_().add_(group["eps"])), alpha=-size)
