"""RAdam."""

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

__all__ = ["RAdam", "radam"]


class RAdam(RuleOptimizer):
    r"""Adam whose steps are rectified while the average of squares is short.

    With the length :math:`\rho_t` of that average, a step is :math:`\gamma m / (1 - \beta_1^t)`
    until :math:`\rho_t > 5`, then that of :class:`Adam` times

    .. math::
        r_t = \sqrt{\frac{(\rho_t - 4)(\rho_t - 2) \rho_\infty}
        {(\rho_\infty - 4)(\rho_\infty - 2) \rho_t}}.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        betas: the decay rates of the averages.
        eps: added to the denominator.
        weight_decay: the L2 penalty.
        decoupled_weight_decay: whether the decay scales the parameter, as in
            :class:`AdamW`, instead of entering the averages.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        capturable: whether steps can be captured in a CUDA graph.
        differentiable: whether steps can be differentiated.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.RAdam([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.8000], requires_grad=True)
    """

    _rule = Rule.RADAM
    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        return {"step": scalar_state(0, group, p), "exp_avg": like(p), "exp_avg_sq": like(p)}

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        beta1, beta2 = group["betas"]
        sign = -1.0 if group["maximize"] else 1.0
        options = (group["lr"], beta1, beta2, group["eps"], group["weight_decay"], sign)
        return decay_flag(group), options, ("exp_avg", "exp_avg_sq")


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of :class:`RAdam` over lists of tensors."""
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
    }
    states = (exp_avgs, exp_avg_sqs)
    update_lists(RAdam, group, params, grads, (state_steps,), states, differentiable)
