"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.optim._rules import Rule, RuleOptimizer, check_lr, like, scalar_state, update_lists
from facula.optim.optimizer import ParamsT

__all__ = ["Rprop", "rprop"]


class Rprop(RuleOptimizer):
    r"""Resilient backpropagation: only the signs of gradients count.

    Each element has a step size. It grows by :math:`\eta_+` while the gradient keeps its sign and
    shrinks by :math:`\eta_-` when the sign changes, in which case the element rests for one step.

    Args:
        params: parameters or groups of them.
        lr: the first step size.
        etas: :math:`(\eta_-, \eta_+)`.
        step_sizes: the smallest and the largest step size.
        capturable: whether steps can be captured in a CUDA graph.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        differentiable: whether steps can be differentiated.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.Rprop([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    _rule = Rule.RPROP
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        lr = float(group["lr"])
        start = complex(lr, lr) if p.is_complex() else lr
        return {
            "step": scalar_state(0, group, p),
            "prev": like(p),
            "step_size": facula.full_like(p.grad, start),
        }

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        sign = -1.0 if group["maximize"] else 1.0
        return 0, (*group["etas"], *group["step_sizes"], sign), ("prev", "step_size")


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of :class:`Rprop` over lists of tensors."""
    group = {
        "etas": (etaminus, etaplus),
        "step_sizes": (step_size_min, step_size_max),
        "maximize": maximize,
    }
    states = (prevs, step_sizes)
    update_lists(Rprop, group, params, grads, (state_steps,), states, differentiable)
