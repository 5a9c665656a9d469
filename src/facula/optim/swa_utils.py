"""Averages of a model's weights over training: SWA and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Literal

import facula
from facula import Tensor
from facula.nn import Module
from facula.optim._scheduler_base import LRScheduler, _format_param
from facula.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _is_inexact(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that brings lists of tensors to their exponential moving average.

    Example::

        >>> average = [facula.zeros(1)]
        >>> facula.optim.swa_utils.get_ema_multi_avg_fn(0.5)(average, [facula.ones(1)], 1)
        >>> average
        [tensor([0.5000])]
    """
    _check_decay(decay)

    @facula.no_grad()
    def ema_update(averages: list[Tensor], current: list[Tensor], _: Any) -> None:
        for average, value in zip(averages, current, strict=True):
            if _is_inexact(average):
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that brings lists of tensors to their equal average."""

    @facula.no_grad()
    def swa_update(averages: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        share = float(1 / (num_averaged + 1))
        for average, value in zip(averages, current, strict=True):
            if _is_inexact(average):
                average.lerp_(value, share)
            else:
                average.copy_(average + (value - average) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function that gives the exponential moving average of a tensor."""
    _check_decay(decay)

    @facula.no_grad()
    def ema_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function that gives the equal average of a tensor."""

    @facula.no_grad()
    def swa_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return average + (current - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    Args:
        model: the model.
        device: where the copy is.
        avg_fn: a function ``(average, current, num_averaged) -> average`` of tensors; the equal
            average by default.
        multi_avg_fn: a function ``(averages, current, num_averaged)`` that changes a list of
            averages in place.
        use_buffers: whether buffers are averaged too; otherwise they are copied.

    Example::

        >>> model = facula.nn.Module()
        >>> model.weight = facula.nn.Parameter(facula.zeros(1))
        >>> average = facula.optim.swa_utils.AveragedModel(model)
        >>> for value in (1., 3.):
        ...     _ = model.weight.data.fill_(value)
        ...     average.update_parameters(model)
        >>> average.module.weight.detach()
        tensor([2.])
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        counter = facula.tensor(0, dtype=facula.long, device=device)
        self.register_buffer("n_averaged", counter)
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        tensors: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            tensors = chain(tensors, model.buffers())
        return [t.detach() for t in tensors]

    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the average."""
        averages = self._averaged(self.module)
        current = [
            value.to(average.device)
            for average, value in zip(averages, self._averaged(model), strict=True)
        ]
        if self.n_averaged == 0:
            for average, value in zip(averages, current, strict=True):
                average.copy_(value)
        elif self.avg_fn is None:
            by_kind: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, value in zip(averages, current, strict=True):
                lists = by_kind.setdefault((average.device, average.dtype), ([], []))
                lists[0].append(average)
                lists[1].append(value)
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), (old, new) in by_kind.items():
                update(old, new, self.n_averaged.to(device))
        else:
            for average, value in zip(averages, current, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1


@facula.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of a model's batch norms anew, over the data of a loader.

    Args:
        loader: gives batches; of a list or tuple the first item is the model's input.
        model: the model.
        device: where inputs are put.
    """
    momenta = {
        module: module.momentum
        for module in model.modules()
        if hasattr(module, "reset_running_stats") and hasattr(module, "momentum")
    }
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # an equal average over the batches
    try:
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    finally:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Brings the rate to ``swa_lr`` over some epochs and keeps it there.

    Args:
        optimizer: the optimizer.
        swa_lr: the rate, or a list with one for each group.
        anneal_epochs: how many epochs it takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: how many steps were made before, less one.

    Example::

        >>> p = facula.nn.Parameter(facula.ones(1))
        >>> optimizer = facula.optim.SGD([p], lr=1.0)
        >>> scheduler = facula.optim.swa_utils.SWALR(
        ...     optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> rates = []
        >>> for _ in range(3):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.75, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        lrs = _format_param("swa_lr", optimizer, swa_lr)
        for lr, group in zip(lrs, optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    # Pickles of schedulers name these two, as their anneal_func.

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    def _set_anneal_func(self, anneal_strategy: Literal["cos", "linear"]) -> None:
        self._anneal_strategy = anneal_strategy
        is_cosine = anneal_strategy == "cos"
        self.anneal_func = self._cosine_anneal if is_cosine else self._linear_anneal

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the function, which follows from the strategy."""
        state = super().state_dict()
        state.pop("anneal_func", None)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what :meth:`state_dict` gave."""
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)

    def _share(self, step: int) -> float:
        """How much of the way to ``swa_lr`` is done."""
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list[Any]:
        """Computes the rates of the next step."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        lrs = []
        for group in self.optimizer.param_groups:
            lr, goal = group["lr"], group["swa_lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            lrs.append(goal * now + start * (1 - now))
        return lrs
