"""Adagrad."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.optim import _sparse
from facula.optim._rules import (
    Rule,
    RuleOptimizer,
    check_fused,
    check_fused_options,
    check_lr,
    check_not_negative,
    decay_flag,
    like,
    scalar_state,
    update_lists,
)
from facula.optim.optimizer import ParamsT

__all__ = ["Adagrad", "adagrad"]


class Adagrad(RuleOptimizer):
    r"""Adagrad: steps divided by the root of the sum of all squared gradients.

    .. math::
        s \leftarrow s + g^2, \qquad
        \theta \leftarrow \theta - \frac{\gamma}{1 + (t - 1) \eta} \frac{g}{\sqrt{s} + \epsilon}.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        lr_decay: the decay :math:`\eta` of the learning rate.
        weight_decay: the L2 penalty.
        initial_accumulator_value: what the sum starts with.
        eps: added to the denominator.
        foreach: accepted; a step is always one call for all tensors.
        maximize: whether to ascend.
        differentiable: whether steps can be differentiated.
        fused: accepted; a step is always one call for all tensors.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.Adagrad([p], lr=0.1)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    _rule = Rule.ADAGRAD
    _later_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused_options(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._new_state(group, p))

    def share_memory(self) -> None:
        """Moves the sums to where processes forked from now on see them."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        if group["fused"]:
            check_fused(p)
        return {
            "step": scalar_state(0, group, p),
            "sum": like(p, self.defaults["initial_accumulator_value"]),
        }

    def _update_sparse(self, group: dict[str, Any], p: Tensor, make: Any) -> None:
        _sparse.adagrad_step(group, p, self.state[p] or make(p))

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        options = (
            group["lr"],
            group["lr_decay"],
            group["weight_decay"],
            group["eps"],
            -1.0 if group["maximize"] else 1.0,
        )
        return decay_flag(group), options, ("sum",)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of :class:`Adagrad` over lists of tensors."""
    group = {
        "lr": lr,
        "lr_decay": lr_decay,
        "weight_decay": weight_decay,
        "eps": eps,
        "maximize": maximize,
    }
    update_lists(Adagrad, group, params, grads, (state_steps,), (state_sums,), differentiable)
