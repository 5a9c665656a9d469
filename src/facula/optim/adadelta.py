"""Adadelta."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.optim._rules import (
    Rule,
    RuleOptimizer,
    check_lr,
    check_not_negative,
    decay_flag,
    like,
    scalar_state,
    update_lists,
)
from facula.optim.optimizer import ParamsT

__all__ = ["Adadelta", "adadelta"]


class Adadelta(RuleOptimizer):
    r"""Adadelta: steps scaled by the ratio of the sizes of past steps and past gradients.

    .. math::
        v \leftarrow \rho v + (1 - \rho) g^2, \qquad
        d = \frac{\sqrt{u + \epsilon}}{\sqrt{v + \epsilon}} g, \qquad
        u \leftarrow \rho u + (1 - \rho) d^2, \qquad
        \theta \leftarrow \theta - \gamma d.

    Args:
        params: parameters or groups of them.
        lr: the factor :math:`\gamma` of each step.
        rho: the decay rate :math:`\rho` of the averages.
        eps: added inside the roots.
        weight_decay: the L2 penalty.
        foreach: accepted; a step is always one call for all tensors.
        capturable: whether steps can be captured in a CUDA graph.
        maximize: whether to ascend.
        differentiable: whether steps can be differentiated.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.Adadelta([p])
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9968], requires_grad=True)
    """

    _rule = Rule.ADADELTA
    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        return {"step": scalar_state(0, group, p), "square_avg": like(p), "acc_delta": like(p)}

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        sign = -1.0 if group["maximize"] else 1.0
        options = (group["lr"], group["rho"], group["eps"], group["weight_decay"], sign)
        return decay_flag(group), options, ("square_avg", "acc_delta")


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of :class:`Adadelta` over lists of tensors."""
    group = {
        "lr": lr,
        "rho": rho,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    states = (square_avgs, acc_deltas)
    update_lists(Adadelta, group, params, grads, (state_steps,), states, differentiable)
