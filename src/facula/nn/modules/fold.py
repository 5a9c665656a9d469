"""Layers between images and the patches that they are made of."""

from __future__ import annotations

from facula import Tensor
from facula.nn import functional as F
from facula.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]

Sizes = int | tuple[int, ...]


class Fold(Module):
    """Adds columns, (N, C * kH * kW, patches), up to images (N, C, *output_size).

    The transpose of :class:`Unfold`: patches that overlap are summed. A batch is not needed.

    Example::

        >>> facula.nn.Fold((4, 5), kernel_size=2)(facula.ones(1, 12, 12)).shape
        facula.Size([1, 3, 4, 5])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Every patch of (N, C, H, W) as a column: (N, C * kH * kW, patches). A batch is not needed.

    Example::

        >>> facula.nn.Unfold(kernel_size=(2, 3))(facula.ones(2, 5, 3, 4)).shape
        facula.Size([2, 30, 4])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
