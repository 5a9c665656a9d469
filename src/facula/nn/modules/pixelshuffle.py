"""Layers that move channels to pixels and back."""

from __future__ import annotations

from facula import Tensor
from facula.nn import functional as F
from facula.nn.modules.module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Moves channels to pixels: (..., C * r * r, H, W) becomes (..., C, H * r, W * r).

    Example::

        >>> facula.nn.PixelShuffle(3)(facula.ones(1, 9, 4, 4)).shape
        facula.Size([1, 1, 12, 12])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Moves pixels to channels: (..., C, H * r, W * r) becomes (..., C * r * r, H, W).

    Example::

        >>> facula.nn.PixelUnshuffle(3)(facula.ones(1, 1, 12, 12)).shape
        facula.Size([1, 9, 4, 4])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
