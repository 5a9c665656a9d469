"""Schedulers that go up and down, and change the momentum as well."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from facula.optim._scheduler_base import (
    LRScheduler,
    _check_optimizer,
    _format_param,
    _update_param_group_val,
)
from facula.optim.optimizer import Optimizer


class _CyclicScheduler(LRScheduler):
    """What CyclicLR and OneCycleLR share: the momentum moves against the rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _init_momentum(
        self, base_momentum: Any, max_momentum: Any, last_epoch: int
    ) -> tuple[list[Any], list[Any]]:
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        base = _format_param("base_momentum", optimizer, base_momentum)
        largest = _format_param("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for low, high, group in zip(base, largest, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return base, largest

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_CyclicScheduler):
    """The rate goes up and down between two bounds.

    Args:
        optimizer: the optimizer.
        base_lr: the lower bound, or a list with one for each group.
        max_lr: the upper bound, or a list with one for each group.
        step_size_up: how many steps the rise has.
        step_size_down: how many steps the fall has; as many by default.
        mode: "triangular", "triangular2" (the height halves in each cycle) or "exp_range" (it is
            multiplied by ``gamma`` in each step).
        gamma: the factor of "exp_range".
        scale_fn: a function of the cycle or step that gives the height, in the place of ``mode``.
        scale_mode: whether ``scale_fn`` gets the "cycle" or the "iterations".
        cycle_momentum: whether the momentum goes down and up as the rate goes up and down.
        base_momentum: the lower bound of the momentum.
        max_momentum: the upper bound of the momentum.
        last_epoch: how many steps were made before, less one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _update_param_group_val(group, "lr", lr)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom: Any = scale_fn
        self.scale_mode: str = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._init_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    # Pickles of schedulers name these three, as their _scale_fn_ref.

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"
        self._scale_fn_ref: Callable[[float], float]
        if self.mode == "exp_range":
            self._scale_fn_ref = partial(self._exp_range_scale_fn, self.gamma)
        elif self.mode == "triangular2":
            self._scale_fn_ref = self._triangular2_scale_fn
        else:
            self._scale_fn_ref = self._triangular_scale_fn

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or at a step."""
        custom = self._scale_fn_custom
        return self._scale_fn_ref(x) if custom is None else custom(x)

    def get_lr(self) -> list[Any]:
        """Computes the rates of the next step, and sets the momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        rising = x <= self.step_ratio
        share = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - (high - low) * share * scale)
        return [
            low + (high - low) * share * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of a callable object in ``scale_fn`` its attributes."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else function.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what :meth:`state_dict` gave."""
        kept = state_dict["_scale_fn_custom"]
        rest = {key: value for key, value in state_dict.items() if key != "_scale_fn_custom"}
        super().load_state_dict(rest)
        if kept is not None:
            self._scale_fn_custom.__dict__.update(kept)
        self._init_scale_fn()


class OneCycleLR(_CyclicScheduler):
    """The rate rises to ``max_lr`` and falls far below where it started, once.

    Args:
        optimizer: the optimizer.
        max_lr: the largest rate, or a list with one for each group.
        total_steps: how many steps the cycle has; or give the next two.
        epochs: how many epochs there are.
        steps_per_epoch: how many steps each has.
        pct_start: the share of the cycle that the rise takes.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether the momentum goes down and up as the rate goes up and down.
        base_momentum: the lower bound of the momentum.
        max_momentum: the upper bound of the momentum.
        div_factor: how many times smaller than ``max_lr`` the first rate is.
        final_div_factor: how many times smaller than the first rate the last one is.
        three_phase: whether the rate falls to the first rate before it falls to the last one.
        last_epoch: how many steps were made before, less one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            max_lrs = _format_param("max_lr", optimizer, max_lr)
            for largest, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = largest / div_factor
                group["max_lr"] = largest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._init_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count_steps(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
        if total is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = (
            {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
            if total is None
            else {"total_steps": total}
        )
        for name, value in given.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())

    def _phases(self, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
        """Where each phase ends, and between which options of a group it moves."""
        total, first = self.total_steps, float(pct_start * self.total_steps) - 1
        second = float(2 * pct_start * total) - 2
        up = (first, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        back = (second, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        low = (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
        down = (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        phases = [up, back, low] if three_phase else [up, down]
        return [dict(zip(names, phase, strict=True)) for phase in phases]

    # Checkpoints of old schedulers name these two, as their anneal_func.

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        return (end - start) * pct + start

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        anneal = self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear
        return anneal(start, end, share)

    def get_lr(self) -> list[Any]:
        """Computes the rates of the next step, and sets the momentum."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        begin = 0.0
        phase = self._schedule_phases[-1]
        for candidate in self._schedule_phases:
            if step <= candidate["end_step"] or candidate is phase:
                phase = candidate
                break
            begin = candidate["end_step"]
        share = (step - begin) / (phase["end_step"] - begin)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(start, end, share))
        return lrs
