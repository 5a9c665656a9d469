"""Adafactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula.optim._rules import scalar_state
from facula.optim.optimizer import Optimizer, ParamsT, _get_scalar_dtype, _get_value

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    r"""Adafactor: the mean square of a matrix' gradient is kept as a row and a column.

    The learning rate is relative: a step has the size
    :math:`\max(\epsilon_2, \text{RMS}(\theta)) \min(\gamma, 1/\sqrt t)`, and updates larger than
    ``d`` are scaled down.

    Args:
        params: parameters or groups of them.
        lr: the largest relative step :math:`\gamma`.
        beta2_decay: the power of the step that gives the decay rate :math:`1 - t^{\beta}`.
        eps: :math:`(\epsilon_1, \epsilon_2)`: the smallest mean square (None: that of the dtype)
            and the smallest size of a parameter.
        d: the threshold above which updates are scaled down.
        weight_decay: the decay of the parameter itself.
        foreach: accepted.
        maximize: whether to ascend.

    Example::

        >>> p = facula.nn.Parameter(facula.ones(2, 2))
        >>> optimizer = facula.optim.Adafactor([p], lr=0.1)
        >>> p.sum().backward()
        >>> optimizer.step()
        >>> p.detach()
        tensor([[0.9000, 0.9000],
                [0.9000, 0.9000]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for p in group["params"]:
                kept = self.state.get(p)
                if kept and not isinstance(kept["step"], Tensor):
                    kept["step"] = scalar_state(kept["step"], group, p)

    @staticmethod
    def _new_state(grad: Tensor) -> dict[str, Any]:
        step = facula.tensor(0.0, dtype=_get_scalar_dtype())
        if grad.dim() < 2:
            return {"step": step, "variance": facula.zeros_like(grad)}
        *outer, rows, columns = grad.shape
        return {
            "step": step,
            "row_var": grad.new_zeros([*outer, rows, 1]),
            "col_var": grad.new_zeros([*outer, 1, columns]),
        }

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
            params = [p for p in group["params"] if p.grad is not None]
            if any(p.is_complex() for p in params):
                raise RuntimeError("Adafactor does not support complex parameters")
            for p in params:
                if not self.state[p]:
                    self.state[p].update(self._new_state(p.grad))
            states = [self.state[p] for p in params]
            adafactor(
                params,
                [p.grad for p in params],
                [state.get("row_var") for state in states],
                [state.get("col_var") for state in states],
                [state.get("variance") for state in states],
                [state["step"] for state in states],
                d=group["d"],
                lr=group["lr"],
                beta2_decay=group["beta2_decay"],
                weight_decay=group["weight_decay"],
                eps1=group["eps"][0],
                eps2=group["eps"][1],
                maximize=group["maximize"],
            )
        return loss


def _rms(x: Tensor) -> float:
    return x.norm(2).item() / x.numel() ** 0.5


def _mean_square(
    grad: Tensor,
    row: Tensor | None,
    column: Tensor | None,
    whole: Tensor | None,
    weight: float,
    eps: float,
) -> Tensor:
    """Brings the averages up to date and gives the mean square of every element."""
    if grad.dim() < 2:
        if whole is None:
            raise AssertionError("variance should be defined when grad is a vector")
        return whole.lerp_(grad * grad, weight).clone()
    if row is None or column is None:
        raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
    for average, dim in ((row, -1), (column, -2)):
        mean = facula.linalg.vector_norm(grad, dim=dim, keepdim=True).square_()
        average.lerp_(mean.div_(grad.size(dim)), weight)
    return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps))


@facula.no_grad()
def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of :class:`Adafactor` over lists of tensors."""
    lr = _get_value(lr)
    for p, grad, row, column, whole, step in zip(
        params, grads, row_vars, col_vars, variances, state_steps, strict=True
    ):
        if maximize:
            grad = -grad
        smallest = facula.finfo(p.dtype).eps if eps1 is None else eps1
        step += 1
        t = step.item()
        size = max(eps2, _rms(p)) * min(lr, 1 / t**0.5)
        if weight_decay != 0:
            p.mul_(1 - lr * weight_decay)
        update = _mean_square(grad, row, column, whole, t**beta2_decay, smallest)
        update.clamp_(min=smallest * smallest).rsqrt_().mul_(grad)
        p.add_(update, alpha=-size / max(1.0, _rms(update) / d))
