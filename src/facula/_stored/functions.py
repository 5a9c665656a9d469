"""The public functions of quantized tensors."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula._stored.quantized import (
    LIMITS,
    QuantizedTensor,
    Quantizer,
    numbers_of,
    quantized_dtype,
    quantizer_of,
)


def _check_float32(name: str, input: Any) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): expected a tensor, got {type(input).__name__}")
    if input.dtype is not facula.float32:
        raise RuntimeError(f"{name}(): only float32 can be quantized, got {input.dtype}")


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """Numbers as integers ``round(input / scale + zero_point)`` of a quantized dtype.

    Args:
        input: a float32 tensor, or a list of them.
        scale: the distance of neighbours: a number, a tensor of one, or of one for each tensor.
        zero_point: the integer that stands for 0, likewise.
        dtype: ``facula.quint8``, ``facula.qint8``, ``facula.qint32`` or a packed one.

    Example::

        >>> facula.quantize_per_tensor(facula.tensor([-1., 0., 1.]), 0.1, 10, facula.quint8)
        tensor([-1.,  0.,  1.], size=(3,), dtype=facula.quint8,
               quantization_scheme=facula.per_tensor_affine, scale=0.1, zero_point=10)
    """
    name = "quantize_per_tensor"
    if isinstance(input, (tuple, list)):
        pairs = zip(input, scale, zero_point, strict=True)
        return tuple(quantize_per_tensor(t, s, z, dtype) for t, s, z in pairs)
    _check_float32(name, input)
    dtype = quantized_dtype(name, dtype)
    step = float(scale)
    if not step > 0:
        raise RuntimeError(f"{name}(): the scale must be positive, got {step}")
    low, high = LIMITS[dtype.name]
    origin = int(zero_point)
    if not low <= origin <= high:
        raise RuntimeError(f"{name}(): the zero point of {dtype} must be {low} to {high}")
    quantizer = Quantizer(dtype, step, origin)
    return QuantizedTensor.make(quantizer.quantize(input.detach()), quantizer)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any
) -> Tensor:
    """Like :func:`quantize_per_tensor`, with scale and zero point for each index of a dimension.

    Args:
        input: a float32 tensor.
        scales: a scale for each index.
        zero_points: a zero point for each index; floating-point ones are kept as they are.
        axis: the dimension.
        dtype: ``facula.quint8``, ``facula.qint8``, ``facula.qint32`` or a packed one.

    Example::

        >>> x = facula.tensor([[1., 2.], [3., 4.]])
        >>> q = facula.quantize_per_channel(
        ...     x, facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> q.int_repr()
        tensor([[2, 4],
                [3, 3]], dtype=facula.int8)
    """
    name = "quantize_per_channel"
    _check_float32(name, input)
    dtype = quantized_dtype(name, dtype)
    rank = input.dim()
    if not -rank <= axis < rank:
        raise IndexError(f"{name}(): axis {axis} is not one of {rank} dimensions")
    axis %= rank
    for what, values in (("scales", scales), ("zero_points", zero_points)):
        if values.dim() != 1 or values.shape[0] != input.shape[axis]:
            raise RuntimeError(
                f"{name}(): {what} must be one for each of {input.shape[axis]} indices of "
                f"dimension {axis}, got shape {tuple(values.shape)}"
            )
    if zero_points.is_floating_point():
        scales, zero_points = scales.to(facula.float32), zero_points.to(facula.float32)
    else:
        scales, zero_points = scales.to(facula.float64), zero_points.to(facula.int64)
    quantizer = Quantizer(dtype, scales.clone(), zero_points.clone(), axis)
    return QuantizedTensor.make(quantizer.quantize(input.detach()), quantizer)  # type: ignore[no-any-return]


SMALLEST_SCALE = 6.0999998822808266e-05  # in float32; below, products of scales are no numbers


def _parameters_for(
    low: float, high: float, smallest: int, largest: int, symmetric: bool = False
) -> tuple[float, int]:
    """Scale and zero point for numbers from ``low`` to ``high``; 0 is on the grid exactly.

    ``symmetric`` puts 0 in the middle of the integers where there are numbers on both sides of it.
    """
    symmetric = symmetric and low < 0 < high
    if symmetric:
        half = (largest - smallest) // 2
        step = max(-low / (half + 1), high / half)
        low, high = -step * (half + 1), step * half
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (largest - smallest)
    # Too close to 0 to divide by in float32.
    if float(facula.tensor(scale, dtype=facula.float32)) == 0 or scale < 1e-38:
        scale = 0.1
    if scale < SMALLEST_SCALE:
        before, scale = scale, SMALLEST_SCALE
        if low == 0:
            high = scale * (largest - smallest)
        elif high == 0:
            low = -scale * (largest - smallest)
        else:
            low, high = low * scale / before, high * scale / before
    if symmetric:
        return scale, int((smallest + largest) / 2)
    from_low, from_high = smallest - low / scale, largest - high / scale
    low_error = abs(smallest) + abs(low / scale)
    high_error = abs(largest) + abs(high / scale)
    origin = from_low if low_error < high_error else from_high
    return scale, round(min(max(origin, smallest), largest))


def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: bool) -> Tensor:
    """Like :func:`quantize_per_tensor`, with the grid that fits the smallest and largest number.

    Args:
        input: a float32 tensor.
        dtype: ``facula.quint8`` or ``facula.qint8``.
        reduce_range: use half of the integers only.

    Example::

        >>> q = facula.quantize_per_tensor_dynamic(facula.tensor([0., 2.55]), facula.quint8, False)
        >>> q.q_zero_point(), q.int_repr()
        (0, tensor([  0, 255], dtype=facula.uint8))
    """
    name = "quantize_per_tensor_dynamic"
    _check_float32(name, input)
    dtype = quantized_dtype(name, dtype)
    if dtype.name not in ("quint8", "qint8"):
        raise RuntimeError(f"{name}(): the dtype must be facula.quint8 or facula.qint8")
    smallest, largest = LIMITS[dtype.name]
    if reduce_range:
        smallest, largest = smallest // 2, largest // 2
    low, high = (0.0, 0.0) if input.numel() == 0 else (v.item() for v in input.detach().aminmax())
    scale, origin = _parameters_for(low, high, smallest, largest)
    return quantize_per_tensor(input, scale, origin, dtype)  # type: ignore[no-any-return]


def dequantize(input: Any) -> Any:
    """The float32 numbers that quantized tensors stand for; other tensors become float32.

    Args:
        input: a tensor, or a list of them.

    Example::

        >>> q = facula.quantize_per_tensor(facula.tensor([1., 2.]), 0.5, 3, facula.quint8)
        >>> facula.dequantize(q)
        tensor([1., 2.])
    """
    if isinstance(input, (tuple, list)):
        return tuple(dequantize(t) for t in input)
    return numbers_of(input) if isinstance(input, QuantizedTensor) else input.to(facula.float32)


def int_repr(input: Tensor) -> Tensor:
    """A copy of the integers of a quantized tensor; packed ones as bytes, the first one lowest.

    Args:
        input: a quantized tensor.

    Example::

        >>> q = facula.quantize_per_tensor(facula.tensor([1., 2.]), 0.5, 3, facula.quint8)
        >>> facula.int_repr(q)
        tensor([5, 7], dtype=facula.uint8)
    """
    dtype = quantizer_of(input, "int_repr").dtype
    integers = input.__dict__["_raw"].clone()
    if dtype.per_byte == 1:
        return integers  # type: ignore[no-any-return]
    width = 8 // dtype.per_byte
    flat = integers.flatten()
    missing = -flat.numel() % dtype.per_byte
    groups = facula.nn.functional.pad(flat, (0, missing)).reshape(-1, dtype.per_byte)
    shifts = facula.arange(dtype.per_byte, dtype=facula.uint8) * width
    return (groups << shifts).sum(1).to(facula.uint8)  # type: ignore[no-any-return]


def _one_grid(input: Any, name: str) -> Quantizer:
    quantizer = quantizer_of(input, name)
    if quantizer.axis is not None:
        raise RuntimeError(f"{name}(): the tensor is quantized by channel")
    return quantizer


def _channel_grid(input: Any, name: str) -> Quantizer:
    quantizer = quantizer_of(input, name)
    if quantizer.axis is None:
        raise RuntimeError(f"{name}(): the tensor is quantized as a whole")
    return quantizer


def q_scale(input: Tensor) -> float:
    """The scale of a tensor that was quantized as a whole.

    Example::

        >>> q = facula.quantize_per_tensor(facula.tensor([1., 2.]), 0.5, 3, facula.quint8)
        >>> facula.q_scale(q)
        0.5
    """
    return float(_one_grid(input, "q_scale").scale)


def q_zero_point(input: Tensor) -> int:
    """The zero point of a tensor that was quantized as a whole.

    Example::

        >>> q = facula.quantize_per_tensor(facula.tensor([1., 2.]), 0.5, 3, facula.quint8)
        >>> facula.q_zero_point(q)
        3
    """
    return int(_one_grid(input, "q_zero_point").zero_point)


def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scales of a tensor that was quantized by channel.

    Example::

        >>> q = facula.quantize_per_channel(
        ...     facula.ones(2, 1), facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> facula.q_per_channel_scales(q)
        tensor([0.5000, 2.0000], dtype=facula.float64)
    """
    return _channel_grid(input, "q_per_channel_scales").scale  # type: ignore[no-any-return]


def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero points of a tensor that was quantized by channel.

    Example::

        >>> q = facula.quantize_per_channel(
        ...     facula.ones(2, 1), facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> facula.q_per_channel_zero_points(q)
        tensor([0, 1])
    """
    return _channel_grid(input, "q_per_channel_zero_points").zero_point  # type: ignore[no-any-return]


def q_per_channel_axis(input: Tensor) -> int:
    """The dimension of the channels of a tensor that was quantized by channel.

    Example::

        >>> q = facula.quantize_per_channel(
        ...     facula.ones(2, 1), facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> facula.q_per_channel_axis(q)
        0
    """
    return int(_channel_grid(input, "q_per_channel_axis").axis)  # type: ignore[arg-type]


def empty_quantized(
    size: Any,
    qtensor: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Tensor:
    """A quantized tensor with the grid of another one; its numbers may be anything.

    Args:
        size: the shape.
        qtensor: a quantized tensor.
        dtype: another quantized dtype.
        layout: strided, if given.
        device: where it is; by default where ``qtensor`` is.
        pin_memory: in memory that devices can read.
        memory_format: the order of the dimensions in memory.

    Example::

        >>> q = facula.quantize_per_tensor(facula.tensor([1., 2.]), 0.5, 3, facula.quint8)
        >>> facula.empty_quantized([3], q).q_scale()
        0.5
    """
    quantizer = quantizer_of(qtensor, "empty_quantized")
    kind = quantizer.dtype if dtype is None else quantized_dtype("empty_quantized", dtype)
    memory = facula.empty(
        size,
        dtype=kind.raw,
        layout=layout or facula.strided,
        device=qtensor.device if device is None else device,
        pin_memory=bool(pin_memory),
        memory_format=memory_format or facula.contiguous_format,
    )
    grid = Quantizer(kind, quantizer.scale, quantizer.zero_point, quantizer.axis)
    return QuantizedTensor.make(memory, grid)  # type: ignore[no-any-return]


# ---- layers


def _max_pool(dims: int, self: Any, arguments: tuple[Any, ...]) -> Any:
    quantizer = _one_grid(self, f"quantized_max_pool{dims}d")
    kernel_size, stride, padding, dilation, ceil_mode = arguments
    pool = getattr(facula.nn.functional, f"max_pool{dims}d")
    numbers = pool(numbers_of(self), kernel_size, stride or None, padding, dilation, ceil_mode)
    return QuantizedTensor.make(quantizer.quantize(numbers), quantizer)


def quantized_max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """``nn.functional.max_pool1d`` of a quantized tensor, which keeps its integers.

    Example::

        >>> q = facula.quantize_per_tensor(facula.tensor([[1., 3., 2.]]), 0.5, 0, facula.quint8)
        >>> facula.quantized_max_pool1d(q, [2], [1]).dequantize()
        tensor([[3., 3.]])
    """
    return _max_pool(1, input, (kernel_size, stride, padding, dilation, ceil_mode))  # type: ignore[no-any-return]


def quantized_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """``nn.functional.max_pool2d`` of a quantized tensor, which keeps its integers.

    Example::

        >>> x = facula.tensor([[[1., 3.], [2., 4.]]])
        >>> q = facula.quantize_per_tensor(x, 0.5, 0, facula.quint8)
        >>> facula.quantized_max_pool2d(q, [2, 2]).dequantize()
        tensor([[[4.]]])
    """
    return _max_pool(2, input, (kernel_size, stride, padding, dilation, ceil_mode))  # type: ignore[no-any-return]


def quantized_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """``nn.functional.max_pool3d`` of a quantized tensor, which keeps its integers.

    Example::

        >>> x = facula.arange(8.).reshape(1, 1, 2, 2, 2)
        >>> q = facula.quantize_per_tensor(x, 0.5, 0, facula.quint8)
        >>> facula.quantized_max_pool3d(q, [2, 2, 2]).dequantize()
        tensor([[[[[7.]]]]])
    """
    return _max_pool(3, input, (kernel_size, stride, padding, dilation, ceil_mode))  # type: ignore[no-any-return]


def quantized_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    """``nn.functional.batch_norm`` of a quantized tensor, on a grid of its own.

    Args:
        input: a quantized tensor with channels in dimension 1.
        weight: a factor for each channel, or None.
        bias: what is added to each channel, or None.
        mean: the mean of each channel.
        var: the variance of each channel.
        eps: is added to the variance.
        output_scale: the scale of the result.
        output_zero_point: the zero point of the result.

    Example::

        >>> q = facula.quantize_per_tensor(facula.ones(1, 1, 1, 2), 0.5, 0, facula.quint8)
        >>> one, zero = facula.ones(1), facula.zeros(1)
        >>> facula.quantized_batch_norm(q, one, one, zero, one, 0., 0.25, 0).dequantize()
        tensor([[[[2., 2.]]]])
    """
    dtype = _one_grid(input, "quantized_batch_norm").dtype
    numbers = facula.nn.functional.batch_norm(
        numbers_of(input), mean, var, weight, bias, training=False, eps=eps
    )
    return quantize_per_tensor(numbers, output_scale, output_zero_point, dtype)  # type: ignore[no-any-return]


# ---- choosing parameters


def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Keeps a moving range of the numbers it sees, and rounds them to the grid of that range.

    Args:
        input: numbers.
        observer_on: 1 moves the range and sets the grid.
        fake_quant_on: 1 rounds; else the result is ``input``.
        running_min: the lower end of the range, which is written to; infinite before the first.
        running_max: the upper end.
        scale: the scale of the grid, which is written to.
        zero_point: its zero point, which is written to.
        averaging_const: how much new numbers count.
        quant_min: the smallest integer.
        quant_max: the largest integer.
        ch_axis: the dimension of the channels, which is 0.
        per_row_fake_quant: a range for each channel.
        symmetric_quant: the same distance to both sides of 0.

    Example::

        >>> low, high = facula.tensor(float("inf")), facula.tensor(float("-inf"))
        >>> scale, origin = facula.tensor([1.]), facula.tensor([0], dtype=facula.int32)
        >>> on = facula.tensor([1])
        >>> facula.fused_moving_avg_obs_fake_quant(
        ...     facula.tensor([0., 2.55]), on, on, low, high, scale, origin, 0.1, 0, 255, 0)
        tensor([0.0000, 2.5500])
        >>> scale
        tensor([0.0100])
    """
    if per_row_fake_quant and ch_axis != 0:
        raise RuntimeError(
            f"fused_moving_avg_obs_fake_quant(): channels must be dimension 0, got {ch_axis}"
        )
    if int(observer_on) == 1:
        with facula.no_grad():
            _observe(input, running_min, running_max, averaging_const, per_row_fake_quant)
            _set_grid(running_min, running_max, scale, zero_point, quant_min, quant_max,
                      symmetric_quant)  # fmt: skip
    if int(fake_quant_on) != 1:
        return input.clone()
    if per_row_fake_quant:
        return facula.fake_quantize_per_channel_affine(
            input, scale, zero_point, ch_axis, quant_min, quant_max
        )
    return facula.fake_quantize_per_tensor_affine(
        input, float(scale), int(zero_point), quant_min, quant_max
    )


def _observe(input: Any, low: Any, high: Any, share: float, by_row: bool) -> None:
    if by_row:
        rows = input.reshape(input.shape[0], -1)
        new_low, new_high = rows.amin(1), rows.amax(1)
        for ends in (low, high):
            if ends.numel() == 0:  # the first call: the number of channels is known now
                ends.resize_(new_low.shape).fill_(float("inf") if ends is low else -float("inf"))
    else:
        new_low, new_high = input.aminmax()
    for ends, new in ((low, new_low), (high, new_high)):
        new = new.to(ends.dtype).reshape(ends.shape)
        ends.copy_(facula.where(ends.isinf(), new, ends + share * (new - ends)))


def _set_grid(
    low: Any, high: Any, scale: Any, origin: Any, smallest: int, largest: int, symmetric: bool
) -> None:
    ends = zip(low.flatten().tolist(), high.flatten().tolist(), strict=True)
    steps, origins = [], []
    for a, b in ends:
        step, zero = _parameters_for(a, b, smallest, largest, symmetric)
        steps.append(step)
        origins.append(zero)
    for destination, values in ((scale, steps), (origin, origins)):
        new = facula.tensor(values).to(destination.dtype)
        if destination.numel() == 1 == new.numel():
            destination.copy_(new.reshape(destination.shape))
        else:
            destination.resize_(new.shape).copy_(new)
