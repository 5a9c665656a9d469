"""Adamax."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.optim._rules import (
    Rule,
    RuleOptimizer,
    check_betas,
    check_lr,
    check_not_negative,
    decay_flag,
    like,
    scalar_state,
    update_lists,
)
from facula.optim.optimizer import ParamsT

__all__ = ["Adamax", "adamax"]


class Adamax(RuleOptimizer):
    r"""Adam with the infinity norm in the place of the root of the mean square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
        u \leftarrow \max(\beta_2 u, |g| + \epsilon), \qquad
        \theta \leftarrow \theta - \frac{\gamma m}{(1 - \beta_1^t) u}.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        betas: the decay rates :math:`(\beta_1, \beta_2)`.
        eps: added to the size of the gradient.
        weight_decay: the L2 penalty.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        differentiable: whether steps can be differentiated.
        capturable: whether steps can be captured in a CUDA graph.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.Adamax([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    _rule = Rule.ADAMAX
    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        return {"step": scalar_state(0, group, p), "exp_avg": like(p), "exp_inf": like(p)}

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        beta1, beta2 = group["betas"]
        sign = -1.0 if group["maximize"] else 1.0
        options = (group["lr"], beta1, beta2, group["eps"], group["weight_decay"], sign)
        return decay_flag(group), options, ("exp_avg", "exp_inf")


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of :class:`Adamax` over lists of tensors."""
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    states = (exp_avgs, exp_infs)
    update_lists(Adamax, group, params, grads, (state_steps,), states, differentiable)
