"""Muon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula.optim.optimizer import Optimizer, ParamsT, _get_value

__all__ = ["Muon"]

EPS = 1e-7
# The quintic of the Newton-Schulz iteration, chosen for a steep rise at zero.
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5


def _zeropower_via_newtonschulz(
    grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float
) -> Tensor:
    """About the nearest matrix with orthonormal rows or columns, in bfloat16."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if grad.dim() != 2:
        raise ValueError(f"Input tensor gradient must be a 2D matrix, got {grad.dim()} dimensions")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        polynomial = facula.addmm(gram, gram, gram, beta=b, alpha=c)
        x = facula.addmm(x, polynomial, x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: Any) -> float:
    rows, columns = param_shape[:2]
    if adjust_lr_fn is None or adjust_lr_fn == "original":
        return lr * math.sqrt(max(1, rows / columns))
    if adjust_lr_fn == "match_rms_adamw":
        return lr * (0.2 * math.sqrt(max(rows, columns)))
    return lr


class Muon(Optimizer):
    """Momentum whose updates of matrices are made orthogonal by a Newton-Schulz iteration.

    For the matrices of hidden layers; other parameters (biases, embeddings, the last layer) are
    better left to :class:`AdamW`.

    Args:
        params: parameters with two dimensions, or groups of them.
        lr: the learning rate.
        weight_decay: the decay of the parameter itself.
        momentum: the decay rate of the average of gradients.
        nesterov: whether to use Nesterov's momentum.
        ns_coefficients: the polynomial of the iteration.
        eps: the smallest norm that is divided by.
        ns_steps: how many iterations.
        adjust_lr_fn: "original" (also None) scales by ``sqrt(max(1, rows / columns))``,
            "match_rms_adamw" to the size of :class:`AdamW`'s steps.

    Example::

        >>> p = facula.nn.Parameter(facula.eye(2))
        >>> optimizer = facula.optim.Muon([p], lr=0.1, weight_decay=0)
        >>> (p * facula.eye(2)).sum().backward()
        >>> optimizer.step()
        >>> bool((p.detach() - 0.9 * facula.eye(2)).abs().max() < 0.05)
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    @facula.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters that have a gradient, once.

        Args:
            closure: computes the loss anew, with gradients, and returns it.
        """
        loss = None
        if closure is not None:
            with facula.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, momentum = _get_value(group["lr"]), group["momentum"]
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if p.is_complex():
                    raise RuntimeError("Muon does not support complex parameters")
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = facula.zeros_like(grad)
                average = state["momentum_buffer"]
                average.lerp_(grad, 1 - momentum)
                update = _zeropower_via_newtonschulz(
                    grad.lerp(average, momentum) if group["nesterov"] else average,
                    group["ns_coefficients"],
                    group["ns_steps"],
                    group["eps"],
                )
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(update, alpha=-_adjust_lr(lr, group["adjust_lr_fn"], p.shape))
        return loss
