"""Copies of a module on other devices that pass their gradients back to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import facula
from facula.nn.parallel.scatter_gather import as_device

__all__ = ["replicate"]

_Module = TypeVar("_Module", bound="facula.nn.Module")


def replicate(network: _Module, devices: Sequence[Any], detach: bool = False) -> list[_Module]:
    """One copy of a module for each device. Their parameters are results of the network's own, so
    that a backward pass through a copy adds to the gradients of the network.

    Args:
        network: the module.
        devices: where the copies are.
        detach: whether gradients stop at the copies.

    Example::

        >>> network = facula.nn.Linear(2, 1)
        >>> one, two = facula.nn.parallel.replicate(network, ["cpu", "cpu"])
        >>> (one(facula.ones(1, 2)) + two(facula.ones(1, 2))).sum().backward()
        >>> network.weight.grad
        tensor([[2., 2.]])
    """
    return [_copy(network, as_device(device), detach, {}) for device in devices]


def _copy(module: Any, device: facula.device, detach: bool, made: dict[int, Any]) -> Any:
    """``made`` has the copies by what they are of: what stands in several places stays one."""
    if id(module) in made:
        return made[id(module)]
    replica = made[id(module)] = module._replicate_for_data_parallel()
    for name, child in module._modules.items():
        replica._modules[name] = None if child is None else _copy(child, device, detach, made)
    replica._former_parameters = {}
    for name, parameter in module._parameters.items():
        if parameter is None:
            replica._parameters[name] = None
            continue
        if id(parameter) not in made:
            moved = (parameter.detach() if detach else parameter).to(device)
            made[id(parameter)] = moved.view_as(moved) if moved is parameter else moved
        # No parameter any more, but a tensor with a history.
        replica._former_parameters[name] = made[id(parameter)]
        setattr(replica, name, made[id(parameter)])
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.device != device:
            replica._buffers[name] = buffer.detach().to(device)
    return replica
