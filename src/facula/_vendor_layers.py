"""Layers under the names of the libraries that compute them: cuDNN and oneDNN.

Programs call them to name the library. Here they are the general operators; those of cuDNN accept
tensors on CUDA devices only, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor


def _check_cuda(name: str, *tensors: Any) -> None:
    for t in tensors:
        if t is not None and t.device.type != "cuda":
            raise RuntimeError(f"{name}(): needs CUDA tensors, got one on {t.device}")


def cudnn_is_acceptable(self: Tensor) -> bool:
    """Whether cuDNN can work with a tensor: on a CUDA device, of a floating dtype, not empty.

    Args:
        self: the tensor.

    Example::

        >>> facula.cudnn_is_acceptable(facula.ones(2))
        False
    """
    floating = self.dtype in (facula.float16, facula.float32, facula.float64)
    enabled = facula.backends.cudnn.enabled and facula.backends.cudnn.is_available()
    return bool(self.is_cuda and floating and self.numel() > 0 and enabled)


def cudnn_convolution(
    self: Tensor,
    weight: Tensor,
    padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
    benchmark: bool,
    deterministic: bool,
    allow_tf32: bool,
) -> Tensor:
    """A convolution without bias on a CUDA device.

    The last three arguments are settings of cuDNN for this call.

    Example::

        >>> facula.cudnn_convolution(
        ...     facula.ones(1, 1, 3), facula.ones(1, 1, 2), [0], [1], [1], 1, False, True, True)
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_convolution(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_convolution", self, weight)
    with facula.backends.cudnn.flags(
        True, benchmark, deterministic=deterministic, allow_tf32=allow_tf32
    ):
        return facula.convolution(
            self, weight, None, stride, padding, dilation, False, [0] * (self.dim() - 2), groups
        )


def cudnn_convolution_transpose(
    self: Tensor,
    weight: Tensor,
    padding: Any,
    output_padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
    benchmark: bool,
    deterministic: bool,
    allow_tf32: bool,
) -> Tensor:
    """A transposed convolution without bias on a CUDA device; see :func:`cudnn_convolution`.

    Example::

        >>> facula.cudnn_convolution_transpose(
        ...     facula.ones(1, 1, 3), facula.ones(1, 1, 2), [0], [0], [1], [1], 1, False, True,
        ...     True)
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_convolution_transpose(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_convolution_transpose", self, weight)
    with facula.backends.cudnn.flags(
        True, benchmark, deterministic=deterministic, allow_tf32=allow_tf32
    ):
        return facula.convolution(
            self, weight, None, stride, padding, dilation, True, output_padding, groups
        )


def cudnn_convolution_relu(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """``relu(convolution(self, weight, bias, ...))`` on a CUDA device.

    Example::

        >>> facula.cudnn_convolution_relu(
        ...     facula.ones(1, 1, 3), facula.ones(1, 1, 2), None, [1], [0], [1], 1)
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_convolution_relu(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_convolution_relu", self, weight, bias)
    none = [0] * (self.dim() - 2)
    return facula.convolution(
        self, weight, bias, stride, padding, dilation, False, none, groups
    ).relu()


def cudnn_convolution_add_relu(
    self: Tensor,
    weight: Tensor,
    z: Tensor,
    alpha: float | None,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """``relu(convolution(self, weight, bias, ...) + alpha * z)`` on a CUDA device.

    Example::

        >>> facula.cudnn_convolution_add_relu(
        ...     facula.ones(1, 1, 3), facula.ones(1, 1, 2), facula.ones(1, 1, 2), 1., None, [1],
        ...     [0], [1], 1)
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_convolution_add_relu(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_convolution_add_relu", self, weight, z, bias)
    none = [0] * (self.dim() - 2)
    plain = facula.convolution(self, weight, bias, stride, padding, dilation, False, none, groups)
    return plain.add(z, alpha=1.0 if alpha is None else alpha).relu()


def cudnn_batch_norm(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    exponential_average_factor: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch normalisation on a CUDA device: the result, mean, 1 / deviation, and no workspace.

    Example::

        >>> one = facula.ones(1)
        >>> facula.cudnn_batch_norm(facula.ones(1, 1, 2), one, one, one, one, True, 0.1, 1e-5)
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_batch_norm(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_batch_norm", input, weight, bias, running_mean, running_var)
    result, mean, deviation = facula.native_batch_norm(
        input,
        weight,
        bias,
        running_mean,
        running_var,
        training,
        exponential_average_factor,
        epsilon,
    )
    return result, mean, deviation, input.new_empty(0, dtype=facula.uint8)


def cudnn_grid_sampler(self: Tensor, grid: Tensor) -> Tensor:
    """Samples images at points of a grid on a CUDA device: bilinear, zeros outside.

    Example::

        >>> facula.cudnn_grid_sampler(facula.ones(1, 1, 2, 2), facula.zeros(1, 1, 1, 2))
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_grid_sampler(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_grid_sampler", self, grid)
    return facula.grid_sampler(self, grid, 0, 0, True)


def cudnn_affine_grid_generator(theta: Tensor, N: int, C: int, H: int, W: int) -> Tensor:
    """The grid of an affine transform on a CUDA device.

    Example::

        >>> facula.cudnn_affine_grid_generator(facula.ones(1, 2, 3), 1, 1, 2, 2)
        Traceback (most recent call last):
            ...
        RuntimeError: cudnn_affine_grid_generator(): needs CUDA tensors, got one on cpu
    """
    _check_cuda("cudnn_affine_grid_generator", theta)
    return facula.affine_grid_generator(theta, [N, C, H, W], True)


def mkldnn_convolution(
    self: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """A convolution on the CPU.

    Args:
        self: (batch, channels, ...).
        weight: (channels out, channels / groups, ...).
        bias: (channels out), or None.
        padding: zeros around each dimension.
        stride: the distance of neighbouring windows.
        dilation: the distance of neighbouring weights.
        groups: parts of the channels that do not meet.

    Example::

        >>> facula.mkldnn_convolution(
        ...     facula.ones(1, 1, 3), facula.ones(1, 1, 2), None, [0], [1], [1], 1)
        tensor([[[2., 2.]]])
    """
    if self.device.type != "cpu":
        raise RuntimeError(f"mkldnn_convolution(): expected tensors on the CPU, got {self.device}")
    none = [0] * (self.dim() - 2)
    return facula.convolution(self, weight, bias, stride, padding, dilation, False, none, groups)
