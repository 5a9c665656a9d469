"""The layout in memory of convolution weights."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M")


def _convert(module: Any, names: tuple[str, ...], memory_format: Any) -> Any:
    from facula import nn

    kinds = tuple(getattr(nn, name) for name in names)
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Brings the weights of all 2-d convolutions in a module to a memory format, in place.

    Args:
        module: the module.
        memory_format: such as ``facula.channels_last``.

    Returns:
        The module.
    """
    return _convert(module, ("Conv2d", "ConvTranspose2d"), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Brings the weights of all 3-d convolutions in a module to a memory format, in place.

    Args:
        module: the module.
        memory_format: such as ``facula.channels_last_3d``.

    Returns:
        The module.
    """
    return _convert(module, ("Conv3d", "ConvTranspose3d"), memory_format)
