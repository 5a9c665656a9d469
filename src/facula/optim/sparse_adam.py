"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula.optim._rules import check_betas, check_lr
from facula.optim.optimizer import Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that changes only the rows for which a sparse gradient has entries.

    Gradients are dense in Facula, also those of embeddings with ``sparse=True``, so a step raises
    for every parameter that has one. :class:`Adam` is the optimizer for dense gradients.

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: the decay rates of the averages.
        eps: added to the denominator.
        maximize: whether to ascend.

    Example::

        >>> p = facula.nn.Parameter(facula.ones(2))
        >>> optimizer = facula.optim.SparseAdam([p], lr=0.1)
        >>> optimizer.param_groups[0]["lr"]
        0.1
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, strict=True)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        complex_params = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
            if p.is_complex()
        ]
        if complex_params:
            raise ValueError(
                f"Complex params at indices {complex_params}: SparseAdam does not support complex "
                "parameters"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Raises when a parameter has a gradient: gradients are dense.

        Args:
            closure: computes the loss anew, with gradients, and returns it.
        """
        loss = None
        if closure is not None:
            with facula.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    raise RuntimeError(
                        "SparseAdam does not support dense gradients, please consider Adam instead"
                    )
        return loss
