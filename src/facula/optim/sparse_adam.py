"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula.optim import _sparse
from facula.optim._rules import check_betas, check_lr, like
from facula.optim.optimizer import Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that changes only the rows for which a sparse gradient has entries.

    Averages of other rows stay as they are, so a step costs no more than the gradient has rows.
    Embeddings with ``sparse=True`` have such gradients; :class:`Adam` is for dense ones.

    Args:
        params: parameters or groups of them.
        lr: the learning rate.
        betas: the decay rates of the averages.
        eps: added to the denominator.
        maximize: whether to ascend.

    Example::

        >>> table = facula.nn.Embedding.from_pretrained(
        ...     facula.ones(2, 1), freeze=False, sparse=True
        ... )
        >>> optimizer = facula.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(facula.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.detach()
        tensor([[1.0000],
                [0.9000]])
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
        places = [
            ([i, j], p)
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
        ]
        if sparse_params := [place for place, p in places if p.is_sparse]:
            raise ValueError(
                f"Sparse params at indices {sparse_params}: SparseAdam requires dense parameter "
                "tensors"
            )
        if complex_params := [place for place, p in places if p.is_complex()]:
            raise ValueError(
                f"Complex params at indices {complex_params}: SparseAdam does not support complex "
                "parameters"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the rows for which gradients have entries, once.

        Args:
            closure: computes the loss anew, with gradients, and returns it.
        """
        loss = None
        if closure is not None:
            with facula.enable_grad():
                loss = closure()
        given = [(group, p) for group in self.param_groups for p in group["params"]]
        given = [(group, p) for group, p in given if p.grad is not None]
        if not all(p.grad.is_sparse for _, p in given):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        for group, p in given:
            state = self.state[p]
            if not state:
                state["step"] = 0
                state["exp_avg"] = like(p)
                state["exp_avg_sq"] = like(p)
            _sparse.adam_step(group, p, state)
        return loss
