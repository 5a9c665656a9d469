"""Loss scaling: small gradients stay representable in float16."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import facula
from facula import _C, Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer is between two calls of ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a factor so that float16 gradients do not vanish.

    ``step`` divides the gradients by the factor and leaves the optimizer's step out when one of
    them is infinite or NaN; ``update`` makes the factor smaller then, and larger after
    ``growth_interval`` steps without.

    Args:
        device: "cuda" or "cpu".
        init_scale: the first factor.
        growth_factor: what it is multiplied by when it grows.
        backoff_factor: what it is multiplied by after infinite gradients.
        growth_interval: how many good steps make it grow.
        enabled: False makes everything pass through.

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> optimizer = facula.optim.SGD([p], lr=0.1)
        >>> scaler = facula.amp.GradScaler("cpu", init_scale=1024.)
        >>> scaler.scale((2 * p).sum()).backward()
        >>> p.grad
        tensor([2048.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> p.detach()
        tensor([0.8000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and device == "cuda" and not facula.cuda.is_available():
            warnings.warn(
                "facula.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    # ---- scaling

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(
                    f"Attempted {funcname} but {name} is None.  This may indicate your script did "
                    "not use scaler.scale(loss or outputs) earlier in the iteration."
                )
        return self._scale, self._growth_tracker  # type: ignore[return-value]

    def _scale_on(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = facula.full((), self._init_scale, dtype=facula.float32, device=device)
            self._growth_tracker = facula.full(
                (), self._init_growth_tracker, dtype=facula.int32, device=device
            )
        return self._scale.to(device)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or an iterable of them, multiplied by the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    @facula.no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiplies gradients in place and finds out, for each device, whether all are finite."""
        found: dict[Any, Tensor] = {}
        grads: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if grad.dtype == facula.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads.setdefault(grad.device, []).append(grad)
        for device, of_device in grads.items():
            found[device] = found_inf.to(device, copy=True)
            _C._unscale_all(of_device, inv_scale.to(device), found[device])
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer by the factor, before they are clipped.

        Args:
            optimizer: the optimizer; at most once between two calls of ``update``.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        none_found = facula.zeros((), dtype=facula.float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, none_found, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls ``optimizer.step``, unless a gradient is infinite or NaN.

        Unscales the gradients first, unless ``unscale_`` has done so.

        Args:
            optimizer: the optimizer.
            args: the arguments of its ``step``.
            kwargs: its keyword arguments; closures are not supported.

        Returns:
            What ``optimizer.step`` returns, or None.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_unscales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The step, if all gradients are finite; subclasses decide otherwise."""
        if any(f.item() for f in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_that_unscales(self, optimizer: Any, state: Any, args: Any, kwargs: Any) -> Any:
        """For optimizers that say ``_step_supports_amp_scaling``: they find the factor in
        ``grad_scale`` (None if gradients are unscaled already), and in ``found_inf`` whether to
        skip; or take the scaler as ``grad_scaler``."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            found = [f.to(self._scale.device) for f in state["found_inf_per_device"].values()]
            unscaled = state["stage"] is OptState.UNSCALED
            optimizer.grad_scale = None if unscaled else self._scale
            optimizer.found_inf = sum(found)
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the factor, after all optimizers have stepped.

        Args:
            new_scale: sets the factor instead.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if (
                new_scale.device.type != self._device
                or new_scale.numel() != 1
                or new_scale.requires_grad
            ):
                raise AssertionError(
                    "new_scale should be a float or a 1-element tensor on the scaler's device "
                    "with requires_grad=False."
                )
            scale.copy_(new_scale)
        else:
            found = [
                f.to(scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for f in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(scale, tracker, sum(found[1:], found[0]) > 0)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    @facula.no_grad()
    def _adapt(self, scale: Tensor, tracker: Tensor, found_inf: Tensor) -> None:
        """Without reading a number back, so that nothing waits for the device."""
        good = facula.where(found_inf, 0, tracker + 1)
        grows = good == self._growth_interval
        grown = scale * self._growth_factor
        # The factor itself must not overflow.
        larger = facula.where(grows & grown.isfinite(), grown, scale)
        scale.copy_(facula.where(found_inf, scale * self._backoff_factor, larger))
        tracker.copy_(facula.where(grows, 0, good))

    # ---- settings

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the factor is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor is multiplied by after infinite gradients."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after infinite gradients."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps make the factor grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets how many good steps make the factor grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = facula.ones((), dtype=facula.float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, one, facula.zeros_like(one), True
        )
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """The factor and the settings; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what :meth:`state_dict` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
