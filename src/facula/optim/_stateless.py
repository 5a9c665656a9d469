"""Steps of an optimizer on other parameters and state than its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from facula import Tensor
from facula.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter "
            f"ids to per-param state dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids."
        )
    if any(isinstance(k, int) and not isinstance(v, dict) for k, v in state.items()):
        raise RuntimeError(
            f"{_NAME} requires per-parameter optimizer state entries to be dictionaries."
        )
    return state


def _checked_groups(optimizer: Optimizer, groups: Any) -> list[dict[str, Any]]:
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group "
            f"dicts, got {type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    for i, (live, given) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        if not isinstance(given, dict):
            raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
        numbers = given.get("params")
        if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries "
                "keyed by packed parameter ids."
            )
        if len(numbers) != len(live["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params than the "
                "live optimizer param group."
            )
        if given.keys() != live.keys():
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match "
                f"the live optimizer group keys for group {i}. Keys only in swap-in: "
                f"{[k for k in given if k not in live]}. Keys only in live: "
                f"{[k for k in live if k not in given]}."
            )
    return groups


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Inside ``with``, an optimizer has other parameters, options and state.

    Args:
        optimizer: an optimizer that has stepped.
        swapin_parameters: the parameters by name, in the order of the optimizer's groups.
        swapin_optim_state: options and state in the form of ``optimizer.state_dict()``.

    Example::

        >>> p, q = (facula.nn.Parameter(facula.ones(1)) for _ in range(2))
        >>> optimizer = facula.optim.SGD([p], lr=0.5, momentum=0.9)
        >>> p.grad = q.grad = facula.ones(1)
        >>> optimizer.step()
        >>> state = optimizer.state_dict()
        >>> with facula.optim.swap_in_optimizer_params_and_state(optimizer, {"q": q}, state):
        ...     optimizer.step()
        >>> p.item(), round(q.item(), 4)
        (0.5, 0.05)
    """
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(swapin_optim_state, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state = _checked_state(swapin_optim_state.get("state"))
    groups = _checked_groups(optimizer, swapin_optim_state.get("param_groups"))
    numbers = [n for group in groups for n in group["params"]]
    extra = [key for key in state if key not in numbers]
    if extra:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter "
            f"ids from param_groups[*]['params']; got extra keys {extra!r}."
        )
    params = list(swapin_parameters.values())
    if len(params) < len(numbers):
        raise RuntimeError(
            f"{_NAME} requires the explicit parameter state to match optimizer.param_groups "
            "ordering."
        )
    own_state = optimizer.state
    own_groups = [dict(group) for group in optimizer.param_groups]
    try:
        swapped: defaultdict[Tensor, Any] = defaultdict(dict)
        for param, number in zip(params, numbers, strict=False):
            swapped[param] = dict(state.get(number, {}))
        begin = 0
        for live, given in zip(optimizer.param_groups, groups, strict=True):
            end = begin + len(given["params"])
            live.update(given)
            live["params"] = params[begin:end]
            begin = end
        optimizer.state = swapped
        yield
    finally:
        for live, own in zip(optimizer.param_groups, own_groups, strict=True):
            live.clear()
            live.update(own)
        optimizer.state = own_state
