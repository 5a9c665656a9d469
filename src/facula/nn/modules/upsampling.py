"""Layers that resize images and volumes."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.nn import functional as F
from facula.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W) to a size or by a factor.

    Args:
        size: the spatial sizes of the result, or
        scale_factor: what they are multiplied by.
        mode: 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'.
        align_corners: whether centres of outermost elements coincide, not their outer edges.
        recompute_scale_factor: derive the factor again from the rounded size.

    Example::

        >>> facula.nn.Upsample(scale_factor=2)(facula.tensor([[[1., 3.]]]))
        tensor([[[1., 1., 3., 3.]]])
    """

    __constants__ = [
        "size",
        "scale_factor",
        "mode",
        "align_corners",
        "name",
        "recompute_scale_factor",
    ]

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)  # older checkpoints computed it this way
        super().__setstate__(state)

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of images (N, C, H, W) with the nearest element.

    Example::

        >>> facula.nn.UpsamplingNearest2d(scale_factor=2)(facula.ones(1, 1, 2, 3)).shape
        facula.Size([1, 1, 4, 6])
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of images (N, C, H, W), bilinear with ``align_corners=True``.

    Example::

        >>> facula.nn.UpsamplingBilinear2d(size=(1, 3))(facula.tensor([[[[1., 3.]]]]))
        tensor([[[[1., 2., 3.]]]])
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
