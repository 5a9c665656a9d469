"""What the optimizers with an update rule in C++ share: one call steps all tensors of a group.

A subclass names its rule, the state that it keeps, and turns a group's options into the numbers
that the rule reads (``csrc/cpu/optim_rules.h``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Any, ClassVar

import facula
from facula import _C, Tensor
from facula.optim.optimizer import Optimizer, _get_scalar_dtype


class Rule(IntEnum):
    """The rules, in the order of the C++ enumeration."""

    SGD = 0
    ADAM = 1
    ADAMAX = 2
    NADAM = 3
    RADAM = 4
    ADAGRAD = 5
    ADADELTA = 6
    RMSPROP = 7
    RPROP = 8
    ASGD = 9


class Flag(IntFlag):
    """Which terms an update has; names that no rule has both of share a bit."""

    DECAY = 1
    DECOUPLED_DECAY = 2
    MOMENTUM = 4
    AMSGRAD = 4
    NESTEROV = 8
    CENTERED = 8


DECAY, DECOUPLED_DECAY = int(Flag.DECAY), int(Flag.DECOUPLED_DECAY)
MOMENTUM, AMSGRAD = int(Flag.MOMENTUM), int(Flag.AMSGRAD)
NESTEROV, CENTERED = int(Flag.NESTEROV), int(Flag.CENTERED)


def decay_flag(group: dict[str, Any]) -> int:
    """How a group's weight decay enters its update."""
    if isinstance(group["weight_decay"], (int, float)) and group["weight_decay"] == 0:
        return 0
    return DECOUPLED_DECAY if group.get("decoupled_weight_decay") else DECAY


# ---- checks of options, with PyTorch's messages


def check_lr(lr: Any, strict: bool = False) -> None:
    """A learning rate must be a number, or a tensor with one element, and not negative."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not (lr > 0.0 if strict else lr >= 0.0):
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(**options: Any) -> None:
    """The options must not be negative."""
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Any) -> None:
    """Decay rates of averages must lie in [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


_CAPTURABLE_DEVICES = ["cuda"]


def check_capturable(group: dict[str, Any]) -> None:
    """``capturable=True`` is about CUDA graphs, so the parameters must be there."""
    for p in group["params"]:
        if p.grad is not None and p.device.type not in _CAPTURABLE_DEVICES:
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: "
                f"{_CAPTURABLE_DEVICES}."
            )


def check_fused(p: Tensor) -> None:
    """``fused=True`` asks for floating-point parameters."""
    if not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices: ['cpu', 'cuda'] but {p.dtype} and {p.device.type}"
        )


def check_fused_options(fused: Any, foreach: Any, differentiable: bool) -> None:
    """``fused`` goes with neither ``differentiable`` nor ``foreach``."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def scalar_state(value: Any, group: dict[str, Any], p: Tensor) -> Tensor:
    """A number of a parameter's state: on the host, unless the step may be captured."""
    fused = group.get("fused")
    on_device = group.get("capturable") or fused
    return facula.tensor(
        float(value),
        dtype=_get_scalar_dtype(is_fused=fused),
        device=p.device if on_device else "cpu",
    )


def like(p: Tensor, value: Any = 0) -> Tensor:
    """A tensor of state: as its parameter, filled with a number."""
    if value == 0:
        return facula.zeros_like(p, memory_format=facula.preserve_format)
    if p.is_complex():
        value = complex(value, value)
    return facula.full_like(p, value, memory_format=facula.preserve_format)


class RuleOptimizer(Optimizer):
    """An optimizer whose rule is one of :class:`Rule`."""

    _rule: ClassVar[int]
    _writer: ClassVar[str]  # how errors name a step
    _scalars: ClassVar[tuple[str, ...]] = ("step",)
    # Options that older checkpoints lack, and their values.
    _later_options: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._writer = f"{cls.__name__}.step"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
            for p in group["params"]:
                kept = self.state.get(p)
                if not kept:
                    continue
                for name in self._scalars:
                    if name in kept and not isinstance(kept[name], Tensor):
                        kept[name] = scalar_state(kept[name], group, p)

    @staticmethod
    def _numbers(group: dict[str, Any]) -> tuple[int, tuple[Any, ...], tuple[str | None, ...]]:
        """Of a group: the flags of its update, the options of the rule, the names of its state."""
        raise NotImplementedError

    def _new_state(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any]) -> None:
        if group.get("capturable") and not group.get("fused"):
            check_capturable(group)

        def make(p: Tensor) -> dict[str, Any]:
            state = self.state[p]
            state.update(self._new_state(group, p))
            return state

        flags, options, states = self._numbers(group)
        sparse = _C._optimizer_step(
            self._rule,
            flags,
            self._writer,
            group["differentiable"],
            options,
            self._scalars,
            states,
            group["params"],
            self.state,
            make,
        )
        for p in sparse or ():
            self._update_sparse(group, p, make)

    def _update_sparse(
        self, group: dict[str, Any], p: Tensor, make: Callable[[Tensor], dict[str, Any]]
    ) -> None:
        """The step of a parameter whose gradient is sparse."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters that have a gradient, once.

        Args:
            closure: computes the loss anew, with gradients, and returns it.
        """
        loss = None
        if closure is not None:
            with facula.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group)
        return loss


def update_lists(
    kind: type[RuleOptimizer],
    group: dict[str, Any],
    params: list[Tensor],
    grads: list[Tensor],
    scalars: tuple[list[Tensor], ...],
    states: tuple[list[Any], ...],
    differentiable: bool = False,
    first: bool = False,
) -> None:
    """One step over lists of tensors: the functions that stand beside the classes.

    ``states`` are in the order of the rule; those that the group's options do not use are ignored.
    """
    flags, options, names = kind._numbers(group)
    used = tuple(s if name else None for name, s in zip(names, states, strict=False))
    _C._optimizer_update(
        kind._rule,
        flags,
        kind._writer,
        differentiable,
        options,
        params,
        grads,
        scalars,
        used,
        first,
    )
