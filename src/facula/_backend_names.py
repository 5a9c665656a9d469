"""Operators of PyTorch that name a library (cuDNN, MIOpen, oneDNN).

A program that calls one wants its result, not the library: each runs the kernels that Facula has
for the tensors' device, the flags that choose among a library's algorithms are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import facula
from facula import Tensor

Ints = Sequence[int]


def _convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, transposed: bool = False, output_padding: Ints = (),
) -> Tensor:  # fmt: skip
    n = weight.dim() - 2
    lists = [[*given] * (n if len(given) == 1 else 1) for given in (stride, padding, dilation)]
    more = [*output_padding] or [0] * n
    return facula.convolution(x, weight, bias, *lists, transposed, more, groups)


def cudnn_convolution(
    input: Tensor, weight: Tensor, padding: Ints, stride: Ints, dilation: Ints, groups: int,
    benchmark: bool, deterministic: bool, allow_tf32: bool,
) -> Tensor:  # fmt: skip
    """A convolution without bias; the flags are accepted.

    Example::

        >>> x, w = facula.ones(1, 1, 3), facula.ones(1, 1, 2)
        >>> facula.cudnn_convolution(x, w, [0], [1], [1], 1, False, False, False)
        tensor([[[2., 2.]]])
    """
    return _convolution(input, weight, None, stride, padding, dilation, groups)


def cudnn_convolution_transpose(
    input: Tensor, weight: Tensor, padding: Ints, output_padding: Ints, stride: Ints,
    dilation: Ints, groups: int, benchmark: bool, deterministic: bool, allow_tf32: bool,
) -> Tensor:  # fmt: skip
    """A transposed convolution without bias; the flags are accepted.

    Example::

        >>> x, w = facula.ones(1, 1, 2), facula.ones(1, 1, 2)
        >>> flags = False, False, False
        >>> facula.cudnn_convolution_transpose(x, w, [0], [0], [1], [1], 1, *flags)
        tensor([[[1., 2., 1.]]])
    """
    return _convolution(
        input, weight, None, stride, padding, dilation, groups, True, output_padding
    )


def cudnn_convolution_relu(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
    dilation: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """``relu`` of a convolution.

    Example::

        >>> x, w = facula.ones(1, 1, 3), -facula.ones(1, 1, 2)
        >>> facula.cudnn_convolution_relu(x, w, None, [1], [0], [1], 1)
        tensor([[[0., 0.]]])
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups).relu()


def cudnn_convolution_add_relu(
    input: Tensor, weight: Tensor, z: Tensor, alpha: Any, bias: Tensor | None, stride: Ints,
    padding: Ints, dilation: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """``relu(convolution + alpha * z)``; an ``alpha`` of None is 1.

    Example::

        >>> x, w, z = facula.ones(1, 1, 3), facula.ones(1, 1, 2), facula.ones(1, 1, 2)
        >>> facula.cudnn_convolution_add_relu(x, w, z, -3, None, [1], [0], [1], 1)
        tensor([[[0., 0.]]])
    """
    y = _convolution(input, weight, bias, stride, padding, dilation, groups)
    return facula.add(y, z, alpha=1 if alpha is None else alpha).relu()


def cudnn_batch_norm(
    input: Tensor, weight: Tensor, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, exponential_average_factor: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """A batch norm, the means and inverse deviations of the batch, and an empty workspace.

    Example::

        >>> x = facula.tensor([[1.], [3.]])
        >>> one = facula.ones(1)
        >>> facula.cudnn_batch_norm(x, one, None, None, None, True, 0.1, 0.)[0]
        tensor([[-1.],
                [ 1.]])
    """
    found = miopen_batch_norm(
        input, weight, bias, running_mean, running_var, training, exponential_average_factor,
        epsilon,
    )  # fmt: skip
    return (*found, input.new_empty(0, dtype=facula.uint8))


def miopen_batch_norm(
    input: Tensor, weight: Tensor, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, exponential_average_factor: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A batch norm, with the means and inverse deviations of the batch.

    Example::

        >>> x = facula.tensor([[1.], [3.]])
        >>> facula.miopen_batch_norm(x, facula.ones(1), None, None, None, True, 0.1, 0.)[1]
        tensor([2.])
    """
    return tuple(
        facula.native_batch_norm(
            input, weight, bias, running_mean, running_var, training,
            exponential_average_factor, epsilon,
        )
    )  # fmt: skip


def cudnn_grid_sampler(input: Tensor, grid: Tensor) -> Tensor:
    """``grid_sample``, bilinear, zeros outside, corners aligned.

    Example::

        >>> x = facula.tensor([[[[1., 2.]]]])
        >>> facula.cudnn_grid_sampler(x, facula.zeros(1, 1, 1, 2))
        tensor([[[[1.5000]]]])
    """
    return facula.nn.functional.grid_sample(input, grid, align_corners=True)


def cudnn_affine_grid_generator(theta: Tensor, N: int, C: int, H: int, W: int) -> Tensor:
    """``affine_grid`` for pictures of a size, corners aligned.

    Example::

        >>> theta = facula.tensor([[[1., 0., 0.], [0., 1., 0.]]])
        >>> facula.cudnn_affine_grid_generator(theta, 1, 1, 1, 2).shape
        facula.Size([1, 1, 2, 2])
    """
    return facula.nn.functional.affine_grid(theta, [N, C, H, W], align_corners=True)


def cudnn_is_acceptable(input: Tensor) -> bool:
    """False: cuDNN is not used.

    Example::

        >>> facula.cudnn_is_acceptable(facula.ones(1))
        False
    """
    return False


def miopen_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, padding: Ints, stride: Ints,
    dilation: Ints, groups: int, benchmark: bool, deterministic: bool,
) -> Tensor:  # fmt: skip
    """A convolution; the flags are accepted.

    Example::

        >>> x, w = facula.ones(1, 1, 3), facula.ones(1, 1, 2)
        >>> facula.miopen_convolution(x, w, None, [0], [1], [1], 1, False, False)
        tensor([[[2., 2.]]])
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups)


def miopen_depthwise_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, padding: Ints, stride: Ints,
    dilation: Ints, groups: int, benchmark: bool, deterministic: bool,
) -> Tensor:  # fmt: skip
    """A convolution of each channel by itself; the flags are accepted.

    Example::

        >>> x, w = facula.ones(1, 2, 3), facula.ones(2, 1, 2)
        >>> facula.miopen_depthwise_convolution(x, w, None, [0], [1], [1], 2, False, False).shape
        facula.Size([1, 2, 2])
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups)


def miopen_convolution_transpose(
    input: Tensor, weight: Tensor, bias: Tensor | None, padding: Ints, output_padding: Ints,
    stride: Ints, dilation: Ints, groups: int, benchmark: bool, deterministic: bool,
) -> Tensor:  # fmt: skip
    """A transposed convolution; the flags are accepted.

    Example::

        >>> x, w = facula.ones(1, 1, 2), facula.ones(1, 1, 2)
        >>> facula.miopen_convolution_transpose(x, w, None, [0], [0], [1], [1], 1, False, False)
        tensor([[[1., 2., 1.]]])
    """
    return _convolution(
        input, weight, bias, stride, padding, dilation, groups, True, output_padding
    )


def miopen_convolution_relu(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
    dilation: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """``relu`` of a convolution.

    Example::

        >>> x, w = facula.ones(1, 1, 3), -facula.ones(1, 1, 2)
        >>> facula.miopen_convolution_relu(x, w, None, [1], [0], [1], 1)
        tensor([[[0., 0.]]])
    """
    return cudnn_convolution_relu(input, weight, bias, stride, padding, dilation, groups)


def miopen_convolution_add_relu(
    input: Tensor, weight: Tensor, z: Tensor, alpha: Any, bias: Tensor | None, stride: Ints,
    padding: Ints, dilation: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """``relu(convolution + alpha * z)``; an ``alpha`` of None is 1.

    Example::

        >>> x, w, z = facula.ones(1, 1, 3), facula.ones(1, 1, 2), facula.ones(1, 1, 2)
        >>> facula.miopen_convolution_add_relu(x, w, z, None, None, [1], [0], [1], 1)
        tensor([[[3., 3.]]])
    """
    return cudnn_convolution_add_relu(
        input, weight, z, alpha, bias, stride, padding, dilation, groups
    )


def mkldnn_convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, padding: Ints, stride: Ints,
    dilation: Ints, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution.

    Example::

        >>> x, w = facula.ones(1, 1, 3), facula.ones(1, 1, 2)
        >>> facula.mkldnn_convolution(x, w, None, [0], [1], [1], 1)
        tensor([[[2., 2.]]])
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups)


def mkldnn_max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """``max_pool2d``.

    Example::

        >>> facula.mkldnn_max_pool2d(facula.arange(4.).view(1, 1, 2, 2), 2)
        tensor([[[[3.]]]])
    """
    return facula.max_pool2d(input, kernel_size, stride or None, padding, dilation, ceil_mode)


def mkldnn_max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """``max_pool3d``.

    Example::

        >>> facula.mkldnn_max_pool3d(facula.arange(8.).view(1, 1, 2, 2, 2), 2)
        tensor([[[[[7.]]]]])
    """
    return facula.max_pool3d(input, kernel_size, stride or None, padding, dilation, ceil_mode)


def mkldnn_adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """``adaptive_avg_pool2d``.

    Example::

        >>> facula.mkldnn_adaptive_avg_pool2d(facula.arange(4.).view(1, 1, 2, 2), 1)
        tensor([[[[1.5000]]]])
    """
    return facula.nn.functional.adaptive_avg_pool2d(input, output_size)
