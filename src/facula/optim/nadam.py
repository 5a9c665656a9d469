"""NAdam."""

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

__all__ = ["NAdam", "nadam"]


class NAdam(RuleOptimizer):
    r"""Adam with Nesterov's momentum.

    The averages are those of :class:`Adam`; the step mixes the gradient and the average of the
    next step with :math:`\mu_t = \beta_1 (1 - \tfrac{1}{2} 0.96^{t \psi})`:

    .. math::
        \theta \leftarrow \theta - \frac{\gamma}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}
        \left( \frac{\mu_{t+1} m}{1 - \prod_{i \le t+1} \mu_i} +
        \frac{(1 - \mu_t) g}{1 - \prod_{i \le t} \mu_i} \right).

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        betas: the decay rates of the averages.
        eps: added to the denominator.
        weight_decay: the L2 penalty.
        momentum_decay: the decay :math:`\psi` of the momentum.
        decoupled_weight_decay: whether the decay scales the parameter, as in
            :class:`AdamW`, instead of entering the averages.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        capturable: whether steps can be captured in a CUDA graph.
        differentiable: whether steps can be differentiated.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.NAdam([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.8944], requires_grad=True)
    """

    _rule = Rule.NADAM
    _scalars = ("step", "mu_product")
    _later_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        return {
            "step": scalar_state(0, group, p),
            "mu_product": scalar_state(1, group, p),
            "exp_avg": like(p),
            "exp_avg_sq": like(p),
        }

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        options = (
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["momentum_decay"],
            -1.0 if group["maximize"] else 1.0,
        )
        return decay_flag(group), options, ("exp_avg", "exp_avg_sq")


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of :class:`NAdam` over lists of tensors."""
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
    }
    scalars, states = (state_steps, mu_products), (exp_avgs, exp_avg_sqs)
    update_lists(NAdam, group, params, grads, scalars, states, differentiable)
