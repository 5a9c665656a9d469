"""Layer, group, RMS and local response normalisation."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import facula
from facula import Tensor
from facula.nn import functional, init
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides by ``(k + alpha * m)**beta``, where m is the mean square over ``size`` neighbouring
    channels.

    Shape: (N, C, *), to the same.

    Example::

        >>> facula.nn.LocalResponseNorm(1, alpha=1., beta=1.)(facula.ones(1, 1, 1))
        tensor([[[0.5000]]])
    """

    __constants__ = ["size", "alpha", "beta", "k"]
    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """:class:`LocalResponseNorm` of images as PyTorch's module of this name has it: the window is
    centred also for an even ``size``, and one channel narrower then, while the sum is still divided
    by ``size``; and the first channel stays in the windows of all channels behind it.

    Shape: (N, C, H, W), to the same.

    Example::

        >>> facula.nn.CrossMapLRN2d(1, alpha=1., beta=1.)(facula.ones(1, 1, 1, 1)).item()
        0.5
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = int((self.size - 1) / 2 + 1)
        squares = input * input
        edge = squares.new_zeros(input.size(0), reach - 1, *input.shape[2:])
        padded = facula.cat([edge, squares, edge], 1)
        total = padded.unfold(1, 2 * reach - 1, 1).sum(-1)
        beyond = total[:, reach:] + squares[:, :1]
        total = facula.cat([total[:, :reach], beyond], 1)
        return input * (self.k + self.alpha / self.size * total) ** -self.beta

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _as_shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        return (int(normalized_shape),)
    return tuple(normalized_shape)  # type: ignore[arg-type]


class LayerNorm(Module):
    """Brings the last dimensions to mean 0 and variance 1, then scales and shifts each element by
    learned numbers.

    Args:
        normalized_shape: the sizes of these dimensions, or the size of the last one.
        eps: is added to the variance.
        elementwise_affine: whether there is a scale ``weight`` of that shape,
        bias: and with it a shift.

    Shape: (*, normalized_shape), to the same.

    Example::

        >>> facula.nn.LayerNorm(2, eps=0.)(facula.tensor([1., 3.])).tolist()
        [-1.0, 1.0]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine

        def parameter() -> Parameter:
            return Parameter(facula.empty(self.normalized_shape, device=device, dtype=dtype))

        self.register_parameter("weight", parameter() if elementwise_affine else None)
        self.register_parameter("bias", parameter() if elementwise_affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scales of 1 and shifts of 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Brings each of ``num_groups`` groups of channels to mean 0 and variance 1, then scales and
    shifts each channel by learned numbers.

    Shape: (N, C, *) with C = ``num_channels``, to the same.

    Example::

        >>> facula.nn.GroupNorm(1, 2, eps=0.)(facula.tensor([[1., 3.]])).tolist()
        [[-1.0, 1.0]]
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]
    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine

        def parameter() -> Parameter:
            return Parameter(facula.empty(num_channels, device=device, dtype=dtype))

        self.register_parameter("weight", parameter() if affine else None)
        self.register_parameter("bias", parameter() if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scales of 1 and shifts of 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions, and multiplies with learned
    numbers.

    Args:
        normalized_shape: the sizes of these dimensions, or the size of the last one.
        eps: is added to the mean square; the dtype's own by default.
        elementwise_affine: whether there is a ``weight`` of that shape.

    Shape: (*, normalized_shape), to the same.

    Example::

        >>> facula.nn.RMSNorm(2)(facula.tensor([3., 3.])).tolist()
        [1.0, 1.0]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]
    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(facula.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights of 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
