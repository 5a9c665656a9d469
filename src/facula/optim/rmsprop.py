"""RMSprop."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.optim._rules import (
    CENTERED,
    MOMENTUM,
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

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(RuleOptimizer):
    r"""RMSprop: steps divided by the root of the mean square of past gradients.

    .. math::
        v \leftarrow \alpha v + (1 - \alpha) g^2, \qquad
        \theta \leftarrow \theta - \gamma \frac{g}{\sqrt{v} + \epsilon}.

    With ``centered``, :math:`v` is replaced by the variance of the gradients; with ``momentum``
    :math:`\mu`, the fraction is collected in a buffer :math:`b \leftarrow \mu b + \ldots`.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        alpha: the decay rate :math:`\alpha` of the averages.
        eps: added to the denominator.
        weight_decay: the L2 penalty.
        momentum: the momentum :math:`\mu`.
        centered: whether to divide by the standard deviation.
        capturable: whether steps can be captured in a CUDA graph.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        differentiable: whether steps can be differentiated.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.RMSprop([p], lr=0.01)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    _rule = Rule.RMSPROP
    _later_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        state = {"step": scalar_state(0, group, p), "square_avg": like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = like(p)
        if group["centered"]:
            state["grad_avg"] = like(p)
        return state

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        momentum, centered = group["momentum"], group["centered"]
        flags = decay_flag(group)
        flags |= (MOMENTUM if momentum > 0 else 0) | (CENTERED if centered else 0)
        options = (
            group["lr"],
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            momentum,
            -1.0 if group["maximize"] else 1.0,
        )
        return (
            flags,
            options,
            (
                "square_avg",
                "momentum_buffer" if momentum > 0 else None,
                "grad_avg" if centered else None,
            ),
        )


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of :class:`RMSprop` over lists of tensors."""
    group = {
        "lr": lr,
        "alpha": alpha,
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "centered": centered,
        "maximize": maximize,
    }
    states = (square_avgs, momentum_buffer_list, grad_avgs)
    update_lists(RMSprop, group, params, grads, (state_steps,), states, differentiable)
