"""Averaged stochastic gradient descent."""

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

__all__ = ["ASGD", "asgd"]


class ASGD(RuleOptimizer):
    r"""Averaged stochastic gradient descent.

    .. math::
        \theta \leftarrow (1 - \lambda \eta_t) \theta - \eta_t g, \qquad
        \eta_t = \frac{\gamma}{(1 + \lambda \gamma t)^\alpha},

    and ``state[p]["ax"]`` holds the average of :math:`\theta` from step ``t0`` on.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        lambd: the decay :math:`\lambda`.
        alpha: the power :math:`\alpha` of the learning rate's decay.
        t0: the step at which averaging starts.
        weight_decay: the L2 penalty.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        differentiable: whether steps can be differentiated.
        capturable: whether steps can be captured in a CUDA graph.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.ASGD([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.8000], requires_grad=True)
    """

    _rule = Rule.ASGD
    _scalars = ("step", "eta", "mu")
    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        return {
            "step": scalar_state(0, group, p),
            "eta": scalar_state(group["lr"], group, p),
            "mu": scalar_state(1, group, p),
            "ax": like(p),
        }

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        options = (
            group["lr"],
            group["lambd"],
            group["alpha"],
            group["t0"],
            group["weight_decay"],
            -1.0 if group["maximize"] else 1.0,
        )
        return decay_flag(group), options, ("ax",)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of :class:`ASGD` over lists of tensors."""
    group = {
        "lr": lr,
        "lambd": lambd,
        "alpha": alpha,
        "t0": t0,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    scalars = (state_steps, etas, mus)
    update_lists(ASGD, group, params, grads, scalars, (axs,), differentiable)
