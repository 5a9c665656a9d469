"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.optim import _sparse
from facula.optim._rules import (
    MOMENTUM,
    NESTEROV,
    Rule,
    RuleOptimizer,
    check_fused,
    check_fused_options,
    check_lr,
    decay_flag,
    like,
    update_lists,
)
from facula.optim.optimizer import ParamsT

__all__ = ["SGD", "sgd"]


class SGD(RuleOptimizer):
    r"""Stochastic gradient descent, optionally with momentum.

    With the gradient :math:`g` (plus ``weight_decay`` times the parameter),

    .. math::
        b \leftarrow \mu b + (1 - \tau) g, \qquad \theta \leftarrow \theta - \gamma b,

    where :math:`b` starts as :math:`g`. With ``nesterov`` the step is
    :math:`\gamma (g + \mu b)`.

    Args:
        params: parameters or groups of them.
        lr: the learning rate :math:`\gamma`.
        momentum: the momentum :math:`\mu`.
        dampening: the dampening :math:`\tau` of the gradient in the momentum.
        weight_decay: the L2 penalty.
        nesterov: whether to use Nesterov's momentum.
        maximize: whether to ascend.
        foreach: accepted; a step is always one call for all tensors.
        differentiable: whether steps can be differentiated.
        fused: accepted; a step is always one call for all tensors.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.SGD([p], lr=0.1, momentum=0.9)
        >>> (2 * p).sum().backward()
        >>> optimizer.step()
        >>> p
        Parameter containing:
        tensor([0.8000], requires_grad=True)
    """

    _rule = Rule.SGD
    _scalars = ()
    _later_options = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused_options(fused, foreach, differentiable)

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        if group["fused"]:
            check_fused(p)
        return {"momentum_buffer": like(p)}

    def _update_sparse(self, group: dict[str, Any], p: Tensor, make: Any) -> None:
        _sparse.sgd_step(group, p, self.state, make)

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        momentum = group["momentum"]
        flags = decay_flag(group)
        if momentum != 0:
            flags |= MOMENTUM | (NESTEROV if group["nesterov"] else 0)
        sign = -1.0 if group["maximize"] else 1.0
        options = (group["lr"], momentum, group["dampening"], group["weight_decay"], sign)
        return flags, options, ("momentum_buffer",) if momentum != 0 else ()


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of :class:`SGD` over lists of tensors; missing buffers are made."""
    group = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
        "maximize": maximize,
    }
    if momentum == 0:
        return update_lists(SGD, group, params, d_p_list, (), ())
    # Parameters without a buffer start it with this gradient, undamped.
    new = [i for i, buffer in enumerate(momentum_buffer_list) if buffer is None]
    old = [i for i, buffer in enumerate(momentum_buffer_list) if buffer is not None]
    for i in new:
        momentum_buffer_list[i] = like(params[i])
    for chosen, first in ((new, True), (old, False)):
        update_lists(
            SGD,
            group,
            [params[i] for i in chosen],
            [d_p_list[i] for i in chosen],
            (),
            ([momentum_buffer_list[i] for i in chosen],),
            first=first,
        )
    return None
