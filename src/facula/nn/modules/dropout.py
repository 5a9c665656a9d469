"""Modules that set random elements or channels to 0 while training."""

from __future__ import annotations

from facula import Tensor
from facula.nn import functional
from facula.nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """While training, sets elements to 0 with probability ``p`` and divides the others by
    ``1 - p``.

    Shape: any, to the same.

    Example::

        >>> _ = facula.manual_seed(0)
        >>> facula.nn.Dropout(0.5)(facula.ones(4))
        tensor([0., 0., 2., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """While training, drops whole channels of sequences with probability ``p``.

    Shape: (N, C, L) or (C, L), to the same.

    Example::

        >>> facula.nn.Dropout1d(1.0)(facula.ones(1, 2, 3)).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """While training, drops whole channels of images with probability ``p``.

    Shape: (N, C, H, W) or (N, C, L), to the same.

    Example::

        >>> facula.nn.Dropout2d(1.0)(facula.ones(1, 2, 3, 3)).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """While training, drops whole channels of volumes with probability ``p``.

    Shape: (N, C, D, H, W) or (C, D, H, W), to the same.

    Example::

        >>> facula.nn.Dropout3d(1.0)(facula.ones(1, 2, 3, 3, 3)).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for networks with :class:`SELU`: dropped elements get the value that it has far below
    0, and mean and variance stay.

    Shape: any, to the same.

    Example::

        >>> facula.nn.AlphaDropout().eval()(facula.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """:class:`AlphaDropout` of whole channels (dimension 1).

    Shape: (N, C, *), to the same.

    Example::

        >>> facula.nn.FeatureAlphaDropout().eval()(facula.ones(1, 2))
        tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.feature_alpha_dropout(input, self.p, self.training, self.inplace)
