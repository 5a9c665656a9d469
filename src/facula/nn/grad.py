"""Gradients of convolutions by their input and by their weight, from the gradient of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula.nn import functional

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradient(wanted: Tensor, convolve: Callable[[Tensor], Tensor], grad_output: Tensor) -> Tensor:
    differentiable = facula.is_grad_enabled()
    with facula.enable_grad():
        wanted.requires_grad_()
        (gradient,) = facula.autograd.grad(
            convolve(wanted), wanted, grad_output, create_graph=differentiable
        )
    return gradient


def _by_input(convolution: Any, dimensions: int) -> Any:
    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x = grad_output.new_zeros(tuple(input_size))

        def convolve(x: Tensor) -> Tensor:
            return convolution(x, weight, None, stride, padding, dilation, groups)

        return _gradient(x, convolve, grad_output)

    gradient.__name__ = gradient.__qualname__ = f"conv{dimensions}d_input"
    sizes, kernel = "4" + ", 4" * (dimensions - 1), "2" + ", 2" * (dimensions - 1)
    gradient.__doc__ = f"""The gradient of :func:`~facula.nn.functional.conv{dimensions}d` by its
    input, of which the size is given.

    Example::

        >>> weight, grad = facula.ones(2, 1, {kernel}), facula.ones(1, 2, {sizes.replace("4", "3")})
        >>> facula.nn.grad.conv{dimensions}d_input((1, 1, {sizes}), weight, grad).shape
        facula.Size([1, 1, {sizes}])
    """
    return gradient


def _by_weight(convolution: Any, dimensions: int) -> Any:
    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = grad_output.new_zeros(tuple(weight_size))

        def convolve(weight: Tensor) -> Tensor:
            return convolution(input, weight, None, stride, padding, dilation, groups)

        return _gradient(weight, convolve, grad_output)

    gradient.__name__ = gradient.__qualname__ = f"conv{dimensions}d_weight"
    sizes, kernel = "4" + ", 4" * (dimensions - 1), "2" + ", 2" * (dimensions - 1)
    gradient.__doc__ = f"""The gradient of :func:`~facula.nn.functional.conv{dimensions}d` by its
    weight, of which the size is given.

    Example::

        >>> x, grad = facula.ones(1, 1, {sizes}), facula.ones(1, 2, {sizes.replace("4", "3")})
        >>> facula.nn.grad.conv{dimensions}d_weight(x, (2, 1, {kernel}), grad).shape
        facula.Size([2, 1, {kernel}])
    """
    return gradient


conv1d_input = _by_input(functional.conv1d, 1)
conv2d_input = _by_input(functional.conv2d, 2)
conv3d_input = _by_input(functional.conv3d, 3)
conv1d_weight = _by_weight(functional.conv1d, 1)
conv2d_weight = _by_weight(functional.conv2d, 2)
conv3d_weight = _by_weight(functional.conv3d, 3)
