"""Adam."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.optim._rules import (
    AMSGRAD,
    Rule,
    RuleOptimizer,
    check_betas,
    check_fused,
    check_fused_options,
    check_lr,
    decay_flag,
    like,
    scalar_state,
    update_lists,
)
from facula.optim.optimizer import ParamsT, _to_scalar

__all__ = ["Adam", "adam"]


def _check_tensor_betas(betas: Any, foreach: Any, capturable: bool) -> None:
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor) or not all(
        isinstance(beta, (float, Tensor)) for beta in betas
    ):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if not isinstance(beta, Tensor):
            continue
        if foreach and not capturable:
            raise ValueError(
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


class Adam(RuleOptimizer):
    r"""Adam: steps scaled by running averages of the gradient and its square.

    With the gradient :math:`g` at step :math:`t`,

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \qquad
        \theta \leftarrow \theta - \gamma \frac{m / (1 - \beta_1^t)}
        {\sqrt{v / (1 - \beta_2^t)} + \epsilon}.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        betas: the decay rates :math:`(\beta_1, \beta_2)` of the averages.
        eps: added to the denominator.
        weight_decay: the L2 penalty.
        amsgrad: whether the denominator uses the largest :math:`v` so far.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        capturable: whether steps can be captured in a CUDA graph.
        differentiable: whether steps can be differentiated.
        fused: accepted; a step is always one call for all tensors.
        decoupled_weight_decay: whether the decay scales the parameter, as in
            :class:`AdamW`, instead of entering the averages.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.Adam([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    _rule = Rule.ADAM
    _later_options = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_lr(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        _check_tensor_betas(betas, foreach, capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(map(_to_scalar, betas)),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )
        check_fused_options(fused, foreach, differentiable)

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        if group["fused"]:
            check_fused(p)
        state = {
            "step": scalar_state(0, group, p),
            "exp_avg": like(p),
            "exp_avg_sq": like(p),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = like(p)
        return state

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        flags = decay_flag(group)
        states: tuple[str | None, ...] = ("exp_avg", "exp_avg_sq")
        if group["amsgrad"]:
            flags |= AMSGRAD
            states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
        beta1, beta2 = group["betas"]
        sign = -1.0 if group["maximize"] else 1.0
        return flags, (group["lr"], beta1, beta2, group["eps"], group["weight_decay"], sign), states


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of :class:`Adam` over lists of tensors."""
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "amsgrad": amsgrad,
        "maximize": maximize,
        "decoupled_weight_decay": decoupled_weight_decay,
    }
    states = (exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
    update_lists(Adam, group, params, grads, (state_steps,), states, differentiable)
