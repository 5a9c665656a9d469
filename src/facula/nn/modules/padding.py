"""Layers that add elements at the ends of the spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from facula import Tensor
from facula.nn import functional as F
from facula.nn.modules.module import Module

__all__ = [
    *("CircularPad1d", "CircularPad2d", "CircularPad3d"),
    *("ConstantPad1d", "ConstantPad2d", "ConstantPad3d"),
    *("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"),
    *("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"),
    *("ZeroPad1d", "ZeroPad2d", "ZeroPad3d"),
]

Padding = int | Sequence[int]


class _PadNd(Module):
    """``padding`` is one number, or two for each dimension, the last dimension first."""

    __constants__ = ["padding"]
    _dims: int
    _mode: str

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        given = tuple(padding) if isinstance(padding, (list, tuple)) else None
        self.padding: tuple[Any, ...] = (padding,) * (2 * self._dims) if given is None else given

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    _mode = "constant"

    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds elements of one ``value`` around a sequence.

    Shape: (N, C, L) or (C, L). ``padding`` is one number or (left, right).

    Example::

        >>> facula.nn.ConstantPad1d(1, 7.)(facula.ones(1, 1)).shape
        facula.Size([1, 3])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds elements of one ``value`` around an image.

    Shape: (N, C, H, W) or (C, H, W). ``padding`` is one number or (left, right, top, bottom).

    Example::

        >>> facula.nn.ConstantPad2d(1, 7.)(facula.ones(1, 1, 1)).shape
        facula.Size([1, 3, 3])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds elements of one ``value`` around a volume.

    Shape: (N, C, D, H, W) or (C, D, H, W). ``padding`` is one number or (left, right, top, bottom,
    front, back).

    Example::

        >>> facula.nn.ConstantPad3d(1, 7.)(facula.ones(1, 1, 1, 1)).shape
        facula.Size([1, 3, 3, 3])
    """

    _dims = 3


class ZeroPad1d(_ConstantPadNd):
    """Adds zeros around a sequence.

    Shape: (N, C, L) or (C, L). ``padding`` is one number or (left, right).

    Example::

        >>> facula.nn.ZeroPad1d(1)(facula.ones(1, 1)).sum()
        tensor(1.)
    """

    _dims = 1

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(_ConstantPadNd):
    """Adds zeros around an image.

    Shape: (N, C, H, W) or (C, H, W). ``padding`` is one number or (left, right, top, bottom).

    Example::

        >>> facula.nn.ZeroPad2d(1)(facula.ones(1, 1, 1)).sum()
        tensor(1.)
    """

    _dims = 2

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(_ConstantPadNd):
    """Adds zeros around a volume.

    Shape: (N, C, D, H, W) or (C, D, H, W). ``padding`` is one number or (left, right, top, bottom,
    front, back).

    Example::

        >>> facula.nn.ZeroPad3d(1)(facula.ones(1, 1, 1, 1)).sum()
        tensor(1.)
    """

    _dims = 3

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors a sequence at its outermost elements.

    Shape: (N, C, L) or (C, L). ``padding`` is one number or (left, right).

    Example::

        >>> facula.nn.ReflectionPad1d(1)(facula.tensor([[1., 2.]]))
        tensor([[2., 1., 2., 1.]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors an image at its outermost elements.

    Shape: (N, C, H, W) or (C, H, W). ``padding`` is one number or (left, right, top, bottom).

    Example::

        >>> facula.nn.ReflectionPad2d((1, 1, 0, 0))(facula.tensor([[[1., 2.]]]))
        tensor([[[2., 1., 2., 1.]]])
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors a volume at its outermost elements.

    Shape: (N, C, D, H, W) or (C, D, H, W). ``padding`` is one number or (left, right, top, bottom,
    front, back).

    Example::

        >>> facula.nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(facula.tensor([[[[1., 2.]]]]))
        tensor([[[[2., 1., 2., 1.]]]])
    """

    _dims = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the outermost elements of a sequence.

    Shape: (N, C, L) or (C, L). ``padding`` is one number or (left, right).

    Example::

        >>> facula.nn.ReplicationPad1d(1)(facula.tensor([[1., 2.]]))
        tensor([[1., 1., 2., 2.]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the outermost elements of an image.

    Shape: (N, C, H, W) or (C, H, W). ``padding`` is one number or (left, right, top, bottom).

    Example::

        >>> facula.nn.ReplicationPad2d((1, 1, 0, 0))(facula.tensor([[[1., 2.]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the outermost elements of a volume.

    Shape: (N, C, D, H, W) or (C, D, H, W). ``padding`` is one number or (left, right, top, bottom,
    front, back).

    Example::

        >>> facula.nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(facula.tensor([[[[1., 2.]]]]))
        tensor([[[[1., 1., 2., 2.]]]])
    """

    _dims = 3


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(
                f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continues a sequence with its other end.

    Shape: (N, C, L) or (C, L). ``padding`` is one number or (left, right).

    Example::

        >>> facula.nn.CircularPad1d(1)(facula.tensor([[1., 2.]]))
        tensor([[2., 1., 2., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Continues an image with its other end.

    Shape: (N, C, H, W) or (C, H, W). ``padding`` is one number or (left, right, top, bottom).

    Example::

        >>> facula.nn.CircularPad2d((1, 1, 0, 0))(facula.tensor([[[1., 2.]]]))
        tensor([[[2., 1., 2., 1.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Continues a volume with its other end.

    Shape: (N, C, D, H, W) or (C, D, H, W). ``padding`` is one number or (left, right, top, bottom,
    front, back).

    Example::

        >>> facula.nn.CircularPad3d((1, 1, 0, 0, 0, 0))(facula.tensor([[[[1., 2.]]]]))
        tensor([[[[2., 1., 2., 1.]]]])
    """

    _dims = 3
