"""Convolutions and their transposes in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import facula
from facula import Tensor
from facula.nn import functional, init
from facula.nn.modules.lazy import LazyModuleMixin
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _each_dimension(value: Any, dims: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


class _ConvNd(Module):
    """The geometry, the weight and the bias of a convolution or its transpose."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    weight: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError(f"groups must be a positive integer, got {groups}")
        if in_channels % groups != 0:
            raise ValueError(
                f"in_channels must be divisible by groups, got {in_channels} and {groups}"
            )
        if out_channels % groups != 0:
            raise ValueError(
                f"out_channels must be divisible by groups, got {out_channels} and {groups}"
            )
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
                )
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {_PADDING_MODES}, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides_to_pad()
        weight = facula.empty(self._weight_shape(), device=device, dtype=dtype)
        self.weight = Parameter(weight)
        self.register_parameter(
            "bias",
            Parameter(facula.empty(out_channels, device=device, dtype=dtype)) if bias else None,
        )
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        return (*channels, *self.kernel_size)

    def _sides_to_pad(self) -> list[int]:
        """What ``functional.pad`` takes: (before, after) of each dimension, the last one first."""
        if self.padding == "valid":
            sides = [(0, 0)] * len(self.kernel_size)
        elif self.padding == "same":
            reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            sides = [(r // 2, r - r // 2) for r in reach]
        else:
            sides = [(p, p) for p in self.padding]  # type: ignore[misc]
        return [side for pair in reversed(sides) for side in pair]

    def reset_parameters(self) -> None:
        """Draws new weights, uniform within 1 / sqrt(inputs of an output) of 0."""
        with facula.no_grad():
            # The same numbers for every layout of the weight.
            drawn = self.weight
            if not drawn.is_contiguous():
                drawn = facula.empty_like(drawn, memory_format=facula.contiguous_format)
            init.kaiming_uniform_(drawn, a=math.sqrt(5))
            if drawn is not self.weight:
                self.weight.copy_(drawn)
            if self.bias is not None:
                fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        dims = len(self.kernel_size)
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        parts.append(f"stride={self.stride}")
        if self.padding != (0,) * dims:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * dims:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * dims:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each_dimension(kernel_size, n),
            _each_dimension(stride, n),
            padding if isinstance(padding, str) else _each_dimension(padding, n),
            _each_dimension(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            sides = self._reversed_padding_repeated_twice
            input = functional.pad(input, sides, mode=self.padding_mode)
            padding = (0,) * self._dims
        convolve = _FORWARD[self._dims]
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


_FORWARD: Any = (None, functional.conv1d, functional.conv2d, functional.conv3d)
_TRANSPOSED: Any = (
    None,
    functional.conv_transpose1d,
    functional.conv_transpose2d,
    functional.conv_transpose3d,
)


class Conv1d(_Conv):
    """Cross-correlation of sequences with learned kernels.

    Args:
        in_channels, out_channels: channels of the input and of the result.
        kernel_size, stride, dilation: numbers, or a tuple of one.
        padding: what is added on both sides, or ``"same"`` or ``"valid"``.
        groups: parts of the channels that are convolved apart from each other.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Shape: (N, C, L) or (C, L) to (N, out_channels, L') or (out_channels, L').

    Example::

        >>> facula.nn.Conv1d(16, 33, 3, stride=2)(facula.ones(20, 16, 50)).shape
        facula.Size([20, 33, 24])
    """

    _dims = 1


class Conv2d(_Conv):
    """Cross-correlation of images with learned kernels.

    Args:
        in_channels, out_channels: channels of the input and of the result.
        kernel_size, stride, dilation: a number for both dimensions, or a pair.
        padding: what is added on both sides of each dimension, or ``"same"`` or ``"valid"``.
        groups: parts of the channels that are convolved apart from each other.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Shape: (N, C, H, W) or (C, H, W) to (N, out_channels, H', W') or (out_channels, H', W').

    Example::

        >>> layer = facula.nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))
        >>> layer(facula.ones(2, 16, 50, 10)).shape
        facula.Size([2, 33, 28, 10])
    """

    _dims = 2


class Conv3d(_Conv):
    """Cross-correlation of volumes with learned kernels; the arguments are those of ``Conv2d``.

    Shape: (N, C, D, H, W) or (C, D, H, W) to (N, out_channels, D', H', W') or without N.

    Example::

        >>> facula.nn.Conv3d(2, 4, 3, stride=2)(facula.ones(1, 2, 7, 9, 9)).shape
        facula.Size([1, 4, 3, 4, 4])
    """

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, got '
                f"{padding_mode!r}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> tuple[int, ...]:
        """What must be added to the smallest result to have ``output_size``."""
        if output_size is None:
            return tuple(self.output_padding)
        others = input.dim() - num_spatial_dims
        wanted = list(output_size)
        if len(wanted) == others + num_spatial_dims:
            wanted = wanted[others:]
        if len(wanted) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must "
                f"have {num_spatial_dims} or {others + num_spatial_dims} elements (got "
                f"{len(wanted)})"
            )
        spread = dilation or (1,) * num_spatial_dims
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[others:], stride, padding, spread, kernel_size, strict=True
            )
        ]
        most = [low + s - 1 for low, s in zip(least, stride, strict=True)]
        if any(not low <= n <= high for low, n, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to "
                f"{most} (for an input of {tuple(input.shape[others:])})"
            )
        return tuple(n - low for n, low in zip(wanted, least, strict=True))


class _ConvTranspose(_ConvTransposeNd):
    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each_dimension(kernel_size, n),
            _each_dimension(stride, n),
            _each_dimension(padding, n),
            _each_dimension(dilation, n),
            True,
            _each_dimension(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        n = self._dims
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, n, self.dilation
        )
        return _TRANSPOSED[n](
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTranspose):
    """The transpose of ``Conv1d``: spreads every element of the input through the kernels.

    Args:
        in_channels, out_channels: channels of the input and of the result.
        kernel_size, stride, padding, dilation: those of the convolution that this one transposes.
        output_padding: what is added to the far end of the result's size.
        groups: parts of the channels that are treated apart from each other.

    ``forward(input, output_size)`` chooses ``output_padding`` so that the result has that size.

    Shape: (N, C, L) or (C, L) to (N, out_channels, L') or (out_channels, L').

    Example::

        >>> facula.nn.ConvTranspose1d(4, 2, 3, stride=2)(facula.ones(1, 4, 5)).shape
        facula.Size([1, 2, 11])
    """

    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of ``Conv2d``; the arguments are those of ``ConvTranspose1d``.

    Shape: (N, C, H, W) or (C, H, W) to (N, out_channels, H', W') or (out_channels, H', W').

    Example::

        >>> down = facula.nn.Conv2d(4, 4, 3, stride=2, padding=1)
        >>> up = facula.nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1)
        >>> x = facula.ones(1, 4, 12, 12)
        >>> up(down(x), output_size=x.size()).shape
        facula.Size([1, 4, 12, 12])
    """

    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of ``Conv3d``; the arguments are those of ``ConvTranspose1d``.

    Shape: (N, C, D, H, W) or (C, D, H, W) to (N, out_channels, D', H', W') or without N.

    Example::

        >>> facula.nn.ConvTranspose3d(2, 1, 2, stride=2)(facula.ones(1, 2, 2, 3, 3)).shape
        facula.Size([1, 1, 4, 6, 6])
    """

    _dims = 3


# ---- before the channels of the input are known


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes the channels of the first input for ``in_channels``."""

    def _await_input(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        module: Any = self
        module.weight = UninitializedParameter(device=device, dtype=dtype)
        module.out_channels = out_channels
        if bias:
            module.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        module: Any = self
        if not self.has_uninitialized_params() and module.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        module: Any = self
        if not self.has_uninitialized_params():
            if module.in_channels == 0:  # shapes came with a state dict
                rows, columns = module.weight.shape[:2]
                module.in_channels = rows if module.transposed else columns * module.groups
            return
        module.in_channels = self._get_in_channels(input)
        if module.in_channels % module.groups != 0:
            raise ValueError(
                "in_channels must be divisible by groups, got "
                f"{module.in_channels} and {module.groups}"
            )
        module.weight.materialize(module._weight_shape())
        if module.bias is not None:
            module.bias.materialize((module.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        dims = self._get_num_spatial_dims()
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[input.dim() - dims - 1]

    def _get_num_spatial_dims(self) -> int:
        module: Any = self
        return module._dims


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (kernel_size, stride, padding, dilation, groups, False, padding_mode)
        super().__init__(0, 0, *options, device, dtype)
        self._await_input(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (kernel_size, stride, padding, output_padding, groups, False, dilation)
        super().__init__(0, 0, *options, padding_mode, device, dtype)
        self._await_input(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A :class:`Conv1d` that takes ``in_channels`` from its first input.

    Example::

        >>> layer = facula.nn.LazyConv1d(4, 3)
        >>> layer(facula.ones(1, 2, 5)).shape
        facula.Size([1, 4, 3])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A :class:`Conv2d` that takes ``in_channels`` from its first input.

    Example::

        >>> layer = facula.nn.LazyConv2d(4, 3)
        >>> layer(facula.ones(1, 2, 5, 5)).shape
        facula.Size([1, 4, 3, 3])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A :class:`Conv3d` that takes ``in_channels`` from its first input.

    Example::

        >>> layer = facula.nn.LazyConv3d(4, 3)
        >>> layer(facula.ones(1, 2, 5, 5, 5)).shape
        facula.Size([1, 4, 3, 3, 3])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`ConvTranspose1d` that takes ``in_channels`` from its first input.

    Example::

        >>> layer = facula.nn.LazyConvTranspose1d(4, 3)
        >>> layer(facula.ones(1, 2, 5)).shape
        facula.Size([1, 4, 7])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`ConvTranspose2d` that takes ``in_channels`` from its first input.

    Example::

        >>> layer = facula.nn.LazyConvTranspose2d(4, 3)
        >>> layer(facula.ones(1, 2, 5, 5)).shape
        facula.Size([1, 4, 7, 7])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`ConvTranspose3d` that takes ``in_channels`` from its first input.

    Example::

        >>> layer = facula.nn.LazyConvTranspose3d(4, 3)
        >>> layer(facula.ones(1, 2, 5, 5, 5)).shape
        facula.Size([1, 4, 7, 7, 7])
    """

    cls_to_become = ConvTranspose3d
