"""Layers that pool windows of their input into one element each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from facula import Tensor
from facula.nn import functional as F
from facula.nn.modules.module import Module

__all__ = [
    *("MaxPool1d", "MaxPool2d", "MaxPool3d"),
    *("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"),
    *("AvgPool1d", "AvgPool2d", "AvgPool3d"),
    *("FractionalMaxPool2d", "FractionalMaxPool3d"),
    *("LPPool1d", "LPPool2d", "LPPool3d"),
    *("AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"),
    *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"),
]

Sizes = int | tuple[int, ...]
OpenSizes = int | None | tuple[int | None, ...]


def _tuple(value: Any, n: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * n


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of every window of a sequence.

    Shape: (N, C, L) or (C, L); L becomes ``floor((L + 2 * padding - dilation * (kernel_size - 1)
    - 1) / stride) + 1`` (rounded up with ``ceil_mode``).

    Example::

        >>> facula.nn.MaxPool1d(2)(facula.tensor([[1., 3., 2., 5.]]))
        tensor([[3., 5.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool2d(_MaxPoolNd):
    """The largest element of every window of an image.

    Shape: (N, C, H, W) or (C, H, W); H and W become ``floor((H + 2 * padding - dilation *
    (kernel_size - 1) - 1) / stride) + 1`` (rounded up with ``ceil_mode``).

    Example::

        >>> facula.nn.MaxPool2d(3, stride=2, padding=1)(facula.ones(1, 64, 112, 112)).shape
        facula.Size([1, 64, 56, 56])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool3d(_MaxPoolNd):
    """The largest element of every window of a volume.

    Shape: (N, C, D, H, W) or (C, D, H, W), sizes as for :class:`MaxPool2d`.

    Example::

        >>> facula.nn.MaxPool3d(2)(facula.arange(8.).reshape(1, 2, 2, 2))
        tensor([[[[7.]]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class _MaxUnpoolNd(Module):
    _dims: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, self._dims)
        self.stride = _tuple(stride if stride is not None else kernel_size, self._dims)
        self.padding = _tuple(padding, self._dims)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts elements back to where :class:`MaxPool1d` found them, with zeros in between.

    Called with the pooled tensor, its indices and, where several sizes fit, ``output_size``.

    Example::

        >>> pool = facula.nn.MaxPool1d(2, return_indices=True)
        >>> facula.nn.MaxUnpool1d(2)(*pool(facula.tensor([[1., 3., 2., 5.]])))
        tensor([[0., 3., 0., 5.]])
    """

    _dims = 1

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts elements back to where :class:`MaxPool2d` found them, with zeros in between.

    Example::

        >>> pool = facula.nn.MaxPool2d(2, return_indices=True)
        >>> facula.nn.MaxUnpool2d(2)(*pool(facula.arange(4.).reshape(1, 2, 2)))
        tensor([[[0., 0.],
                 [0., 3.]]])
    """

    _dims = 2

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts elements back to where :class:`MaxPool3d` found them, with zeros in between.

    Example::

        >>> pool = facula.nn.MaxPool3d(2, return_indices=True)
        >>> facula.nn.MaxUnpool3d(2)(*pool(facula.arange(8.).reshape(1, 2, 2, 2))).sum()
        tensor(7.)
    """

    _dims = 3

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The average of every window of a sequence, (N, C, L) or (C, L).

    Args:
        ceil_mode: keep a last window that the input does not fill.
        count_include_pad: whether the padding counts where it is divided by the number of elements.

    Example::

        >>> facula.nn.AvgPool1d(2)(facula.tensor([[1., 3., 5., 7.]]))
        tensor([[2., 6.]])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, 1)
        self.stride = _tuple(stride if stride is not None else kernel_size, 1)
        self.padding = _tuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPoolNd):
    """The average of every window of an image, (N, C, H, W) or (C, H, W).

    Args:
        ceil_mode: keep a last window that the input does not fill.
        count_include_pad: whether the padding counts where it is divided by the number of elements.
        divisor_override: divide by this number.

    Example::

        >>> facula.nn.AvgPool2d(2)(facula.arange(4.).reshape(1, 2, 2))
        tensor([[[1.5000]]])
    """

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolNd):
    """The average of every window of a volume, (N, C, D, H, W) or (C, D, H, W).

    Arguments as for :class:`AvgPool2d`.

    Example::

        >>> facula.nn.AvgPool3d(2)(facula.arange(8.).reshape(1, 2, 2, 2))
        tensor([[[[3.5000]]]])
    """

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding", 0)
        self.__dict__.setdefault("ceil_mode", False)
        self.__dict__.setdefault("count_include_pad", True)


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, n = type(self).__name__, self._dims
        if any(k <= 0 for k in _tuple(kernel_size, n)):
            raise ValueError(f"kernel_size must be greater than zero, but got {kernel_size}")
        self.kernel_size = _tuple(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = _tuple(output_size, n) if output_size is not None else None
        self.output_ratio = _tuple(output_ratio, n) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The largest elements of windows at random distances (Graham, 2014).

    Shape: (N, C, H, W) or (C, H, W).

    Args:
        output_size: how many windows there are, or
        output_ratio: their number as a part of the input's size, between 0 and 1.

    Example::

        >>> facula.nn.FractionalMaxPool2d(3, output_ratio=0.5)(facula.ones(1, 16, 50, 32)).shape
        facula.Size([1, 16, 25, 16])
    """

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The largest elements of windows at random distances, of (N, C, D, H, W) or (C, D, H, W).

    Arguments as for :class:`FractionalMaxPool2d`.

    Example::

        >>> facula.nn.FractionalMaxPool3d(2, output_size=(3, 2, 4))(facula.ones(1, 6, 6, 6)).shape
        facula.Size([1, 3, 2, 4])
    """

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of every window of (N, C, L) or (C, L).

    Example::

        >>> facula.nn.LPPool1d(2, 2)(facula.tensor([[3., 4.]]))
        tensor([[5.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool2d(_LPPoolNd):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of every window of (N, C, H, W) or (C, H, W).

    Example::

        >>> facula.nn.LPPool2d(1, 2)(facula.ones(1, 2, 2))
        tensor([[[4.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool3d(_LPPoolNd):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of every window of a volume.

    Shape: (N, C, D, H, W) or (C, D, H, W).

    Example::

        >>> facula.nn.LPPool3d(1, 2)(facula.ones(1, 2, 2, 2))
        tensor([[[[8.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: OpenSizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` windows that divide (N, C, L) or (C, L).

    Example::

        >>> facula.nn.AdaptiveMaxPool1d(2)(facula.tensor([[1., 3., 7., 5.]]))
        tensor([[3., 7.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` windows that divide (N, C, H, W) or (C, H, W).

    A None in ``output_size`` keeps the input's size.

    Example::

        >>> facula.nn.AdaptiveMaxPool2d((5, None))(facula.ones(1, 64, 10, 9)).shape
        facula.Size([1, 64, 5, 9])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` windows that divide (N, C, D, H, W) or (C, D, H, W).

    Example::

        >>> facula.nn.AdaptiveMaxPool3d(1)(facula.arange(8.).reshape(1, 2, 2, 2))
        tensor([[[[7.]]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size: OpenSizes) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The averages of ``output_size`` windows that divide (N, C, L) or (C, L).

    Example::

        >>> facula.nn.AdaptiveAvgPool1d(2)(facula.tensor([[1., 3., 5., 7.]]))
        tensor([[2., 6.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The averages of ``output_size`` windows that divide (N, C, H, W) or (C, H, W).

    A None in ``output_size`` keeps the input's size.

    Example::

        >>> facula.nn.AdaptiveAvgPool2d(1)(facula.arange(4.).reshape(1, 2, 2))
        tensor([[[1.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The averages of ``output_size`` windows that divide (N, C, D, H, W) or (C, D, H, W).

    Example::

        >>> facula.nn.AdaptiveAvgPool3d(1)(facula.arange(8.).reshape(1, 2, 2, 2))
        tensor([[[[3.5000]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
