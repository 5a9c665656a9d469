"""What numbers become when they are stored in few bits, with gradients as if they were not."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor


class _FakeQuantize(facula.autograd.Function):
    """Rounds to the grid; gradients pass where the number was within its range."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
    ) -> Tensor:
        steps = (x * (1 / scale)).round() + zero_point
        ctx.save_for_backward((steps >= quant_min) & (steps <= quant_max))
        return ((steps.clamp(quant_min, quant_max) - zero_point) * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None, None


def _check_range(name: str, quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError(
            f"{name}(): quant_min must not be above quant_max, got {quant_min} and {quant_max}"
        )


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """Rounds to multiples of ``scale`` that a quantized tensor could hold.

    The integers are ``round(input / scale) + zero_point``, limited to
    ``quant_min`` ... ``quant_max``. Gradients pass through where nothing was limited.

    Args:
        input: the numbers.
        scale: the distance of neighbours, a number or a tensor of one.
        zero_point: the integer that stands for 0, a number or a tensor of one.
        quant_min: the smallest integer.
        quant_max: the largest integer.

    Example::

        >>> x = facula.tensor([0.26, 3.])
        >>> facula.fake_quantize_per_tensor_affine(x, 0.5, 0, -4, 3)
        tensor([0.5000, 1.5000])
    """
    _check_range("fake_quantize_per_tensor_affine", quant_min, quant_max)
    return _FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)  # type: ignore[no-any-return]


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Like :func:`fake_quantize_per_tensor_affine`, with a grid for each index of a dimension.

    Args:
        input: the numbers.
        scale: the distances of neighbours, one for each index of ``axis``.
        zero_point: the integers that stand for 0, likewise.
        axis: the dimension.
        quant_min: the smallest integer.
        quant_max: the largest integer.

    Example::

        >>> x = facula.tensor([[0.3, 0.6], [0.3, 0.6]])
        >>> scale, zero = facula.tensor([0.5, 1.]), facula.tensor([0, 0])
        >>> facula.fake_quantize_per_channel_affine(x, scale, zero, 0, -4, 3)
        tensor([[0.5000, 0.5000],
                [0.0000, 1.0000]])
    """
    name = "fake_quantize_per_channel_affine"
    _check_range(name, quant_min, quant_max)
    axis = axis + input.dim() if axis < 0 else axis
    if not 0 <= axis < input.dim():
        raise RuntimeError(f"{name}(): there is no dimension {axis} in shape {tuple(input.shape)}")
    for what, given in (("scale", scale), ("zero_point", zero_point)):
        if given.dim() != 1 or given.shape[0] != input.shape[axis]:
            raise RuntimeError(
                f"{name}(): {what} must have one number for each of the {input.shape[axis]} "
                f"indices of dimension {axis}, got shape {tuple(given.shape)}"
            )
    around = [1] * input.dim()
    around[axis] = -1
    grid = scale.reshape(around), zero_point.reshape(around)
    return _FakeQuantize.apply(input, *grid, quant_min, quant_max)  # type: ignore[no-any-return]
