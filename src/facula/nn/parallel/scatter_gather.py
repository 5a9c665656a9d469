"""Cuts batches into shares for devices, and puts results together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import facula

__all__ = ["gather", "scatter", "scatter_kwargs"]


def as_device(target: Any) -> facula.device:
    """A number is that of a CUDA device."""
    return facula.device("cuda", target) if isinstance(target, int) else facula.device(target)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """One copy of ``inputs`` for each device: tensors are cut along ``dim``, the rest is shared.

    Example::

        >>> facula.nn.parallel.scatter((facula.arange(4), "a"), ["cpu", "cpu"])
        [(tensor([0, 1]), 'a'), (tensor([2, 3]), 'a')]
    """
    devices = [as_device(target) for target in target_gpus]

    def cut(value: Any) -> list[Any]:
        if isinstance(value, facula.Tensor):
            shares = value.chunk(len(devices), dim)
            return [share.to(device) for share, device in zip(shares, devices, strict=False)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*parts) for parts in zip(*map(cut, value), strict=False)]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(parts) for parts in zip(*map(cut, value), strict=False)]
        if isinstance(value, dict) and value:
            columns = zip(*map(cut, value.values()), strict=False)
            return [type(value)(zip(value, parts, strict=True)) for parts in columns]
        return [value for _ in devices]

    return cut(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Positional and keyword arguments for each device.

    Example::

        >>> scatter_kwargs = facula.nn.parallel.scatter_kwargs
        >>> scatter_kwargs((facula.arange(2),), {"k": 1}, ["cpu", "cpu"])
        (((tensor([0]),), (tensor([1]),)), ({'k': 1}, {'k': 1}))
    """
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    positional.extend(() for _ in range(count - len(positional)))
    named.extend({} for _ in range(count - len(named)))
    return tuple(positional), tuple(named)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """What the devices gave, on one of them and along ``dim``.

    Example::

        >>> facula.nn.parallel.gather([facula.zeros(1), facula.ones(1)], "cpu")
        tensor([0., 1.])
    """
    device = as_device(target_device)
    first = outputs[0]
    if isinstance(first, facula.Tensor):
        # Losses of each device become a vector of them.
        parts = [o.to(device) if o.dim() else o.to(device).unsqueeze(0) for o in outputs]
        return facula.cat(parts, dim if first.dim() else 0)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([o[key] for o in outputs], device, dim)) for key in first)
    parts = [gather(part, device, dim) for part in zip(*outputs, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
