"""Linear layers with weights of half precision or eight bits, under PyTorch's older names.

PyTorch packs such weights into the layout of a library, FBGEMM; here the packed form of a matrix is
the matrix itself.
"""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula._stored.functions import _parameters_for


def fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor:
    """A weight for :func:`fbgemm_linear_fp16_weight`: in half precision, limited to its range.

    Args:
        input: a float32 matrix, (features out, features in).

    Example::

        >>> facula.fbgemm_pack_gemm_matrix_fp16(facula.tensor([[1., 1e6]]))
        tensor([[1.0000e+00, 6.5504e+04]], dtype=facula.float16)
    """
    _check_matrix("fbgemm_pack_gemm_matrix_fp16", input)
    limit = facula.finfo(facula.float16).max
    return input.detach().clamp(-limit, limit).to(facula.float16)


def fbgemm_linear_fp16_weight(input: Tensor, packed_weight: Tensor, bias: Tensor) -> Tensor:
    """``input @ weight.T + bias`` in float32 with a weight of half precision.

    Args:
        input: a float32 tensor, (..., features in).
        packed_weight: what :func:`fbgemm_pack_gemm_matrix_fp16` gave.
        bias: (features out).

    Example::

        >>> weight = facula.fbgemm_pack_gemm_matrix_fp16(facula.tensor([[1., 2.]]))
        >>> facula.fbgemm_linear_fp16_weight(facula.ones(1, 2), weight, facula.zeros(1))
        tensor([[3.]])
    """
    return fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias)


def fbgemm_linear_fp16_weight_fp32_activation(
    input: Tensor, packed_weight: Tensor, bias: Tensor | None
) -> Tensor:
    """Like :func:`fbgemm_linear_fp16_weight`; ``bias`` may be None.

    Example::

        >>> weight = facula.fbgemm_pack_gemm_matrix_fp16(facula.tensor([[1., 2.]]))
        >>> facula.fbgemm_linear_fp16_weight_fp32_activation(facula.ones(1, 2), weight, None)
        tensor([[3.]])
    """
    if packed_weight.dtype is not facula.float16:
        raise RuntimeError(
            "fbgemm_linear_fp16_weight(): the weight must come from fbgemm_pack_gemm_matrix_fp16, "
            f"got {packed_weight.dtype}"
        )
    return facula.nn.functional.linear(input, packed_weight.to(facula.float32), bias)


def fbgemm_linear_quantize_weight(input: Tensor) -> tuple[Tensor, Tensor, float, int]:
    """Integers of eight bits for a weight, sums of its rows less the zero point, scale, zero point.

    Args:
        input: a float32 matrix, (features out, features in).

    Example::

        >>> facula.fbgemm_linear_quantize_weight(facula.tensor([[0., 2.55]]))[0]
        tensor([[-128,  127]], dtype=facula.int8)
    """
    _check_matrix("fbgemm_linear_quantize_weight", input)
    low, high = (v.item() for v in input.detach().aminmax())
    scale, origin = _parameters_for(low, high, -128, 127)
    steps = (input.detach() * facula.tensor(1 / scale) + origin).round()
    integers = steps.clamp(-128, 127).to(facula.int8)
    offsets = (integers.to(facula.int32).sum(1) - input.shape[1] * origin).to(facula.int32)
    return integers, offsets, scale, origin


def fbgemm_pack_quantized_matrix(
    input: Tensor, K: int | None = None, N: int | None = None
) -> Tensor:
    """A weight of eight bits in the form that :func:`fbgemm_linear_int8_weight` reads.

    Args:
        input: integers, (features out, features in).
        K: features in, for checking.
        N: features out, for checking.

    Example::

        >>> weight = facula.tensor([[1, 2]], dtype=facula.int8)
        >>> facula.fbgemm_pack_quantized_matrix(weight)
        tensor([[1, 2]], dtype=facula.int8)
    """
    if input.dim() != 2 or input.dtype is not facula.int8:
        raise RuntimeError(
            "fbgemm_pack_quantized_matrix(): expected an int8 matrix, got "
            f"{input.dtype} of shape {tuple(input.shape)}"
        )
    for wanted, size in ((K, input.shape[1]), (N, input.shape[0])):
        if wanted is not None and wanted != size:
            raise RuntimeError(f"fbgemm_pack_quantized_matrix(): the size is {size}, not {wanted}")
    return input.contiguous()


def fbgemm_linear_int8_weight_fp32_activation(
    input: Tensor,
    weight: Tensor,
    packed: Tensor,
    col_offsets: Tensor,
    weight_scale: float,
    weight_zero_point: int,
    bias: Tensor | None,
) -> Tensor:
    """``input @ weight.T + bias`` with integers of eight bits for the weight and the input.

    The input is quantized by the range of its numbers; sums are exact.

    Args:
        input: a float32 tensor, (..., features in).
        weight: integers from :func:`fbgemm_linear_quantize_weight`.
        packed: what :func:`fbgemm_pack_quantized_matrix` gave.
        col_offsets: sums of rows from :func:`fbgemm_linear_quantize_weight`.
        weight_scale: the scale of the weight.
        weight_zero_point: the zero point of the weight.
        bias: (features out), or None.

    Example::

        >>> q, offsets, scale, origin = facula.fbgemm_linear_quantize_weight(
        ...     facula.tensor([[0., 2.55]]))
        >>> packed = facula.fbgemm_pack_quantized_matrix(q)
        >>> y = facula.fbgemm_linear_int8_weight_fp32_activation(
        ...     facula.tensor([[0., 1.]]), q, packed, offsets, scale, origin, None)
        >>> facula.testing.assert_close(y, facula.tensor([[2.55]]))
    """
    if input.dtype is not facula.float32:
        raise RuntimeError(
            f"fbgemm_linear_int8_weight(): the input must be float32, got {input.dtype}"
        )
    low, high = (v.item() for v in input.detach().aminmax()) if input.numel() else (0.0, 0.0)
    scale, origin = _parameters_for(low, high, 0, 255)
    steps = (input.detach() * facula.tensor(1 / scale) + origin).round().clamp(0, 255)
    # Sums of products of eight bits are exact in double precision.
    left = steps.double() - origin
    right = packed.double() - weight_zero_point
    product = left @ right.T
    result = product.to(facula.float32) * (scale * weight_scale)
    return result if bias is None else result + bias


def fbgemm_linear_int8_weight(
    input: Tensor,
    weight: Tensor,
    packed: Tensor,
    col_offsets: Tensor,
    weight_scale: float,
    weight_zero_point: int,
    bias: Tensor,
) -> Tensor:
    """:func:`fbgemm_linear_int8_weight_fp32_activation` under its older name.

    Example::

        >>> q, offsets, scale, origin = facula.fbgemm_linear_quantize_weight(facula.ones(1, 2))
        >>> packed = facula.fbgemm_pack_quantized_matrix(q)
        >>> facula.fbgemm_linear_int8_weight(
        ...     facula.ones(1, 2), q, packed, offsets, scale, origin, facula.ones(1))
        tensor([[3.]])
    """
    return fbgemm_linear_int8_weight_fp32_activation(
        input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
    )


def _check_matrix(name: str, input: Any) -> None:
    if input.dim() != 2 or input.dtype is not facula.float32:
        raise RuntimeError(
            f"{name}(): expected a float32 matrix, got {input.dtype} of shape {tuple(input.shape)}"
        )
    if input.numel() == 0:
        raise RuntimeError(f"{name}(): the matrix is empty")


# ---- recurrent cells


def _gates(input: Any, hx: Any, weights: tuple[Any, ...]) -> tuple[Any, Any]:
    """What input and state contribute, each by a layer of eight bits."""
    (w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, offsets_ih, offsets_hh, *rest) = weights
    scale_ih, scale_hh, origin_ih, origin_hh = rest
    linear = fbgemm_linear_int8_weight
    return (
        linear(input, w_ih, packed_ih, offsets_ih, scale_ih, origin_ih, b_ih),
        linear(hx, w_hh, packed_hh, offsets_hh, scale_hh, origin_hh, b_hh),
    )


def quantized_lstm_cell(
    input: Tensor,
    hx: list[Tensor] | tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> tuple[Tensor, Tensor]:
    """``lstm_cell`` with weights of eight bits; see :func:`fbgemm_linear_int8_weight`.

    Example::

        >>> q, offsets, scale, origin = facula.fbgemm_linear_quantize_weight(facula.ones(4, 1))
        >>> bias, x = facula.zeros(4), facula.zeros(1, 1)
        >>> facula.quantized_lstm_cell(x, (x, x), q, q, bias, bias, q, q, offsets, offsets,
        ...                            scale, scale, origin, origin)
        (tensor([[0.]]), tensor([[0.]]))
    """
    # fmt: off
    weights = (w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh,
               scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    # fmt: on
    state, cell = hx
    of_input, of_state = _gates(input, state, weights)
    enter, forget, new, leave = (of_input + of_state).chunk(4, 1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


def quantized_gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> Tensor:
    """``gru_cell`` with weights of eight bits; see :func:`fbgemm_linear_int8_weight`.

    Example::

        >>> q, offsets, scale, origin = facula.fbgemm_linear_quantize_weight(facula.ones(3, 1))
        >>> bias, x = facula.zeros(3), facula.zeros(1, 1)
        >>> facula.quantized_gru_cell(x, x, q, q, bias, bias, q, q, offsets, offsets,
        ...                           scale, scale, origin, origin)
        tensor([[0.]])
    """
    # fmt: off
    weights = (w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh,
               scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    # fmt: on
    of_input, of_state = _gates(input, hx, weights)
    (reset_i, update_i, new_i), (reset_h, update_h, new_h) = (
        g.chunk(3, 1) for g in (of_input, of_state)
    )
    new = (new_i + (reset_i + reset_h).sigmoid() * new_h).tanh()
    return new + (update_i + update_h).sigmoid() * (hx - new)


def quantized_rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> Tensor:
    """``rnn_relu_cell`` with weights of eight bits; see :func:`fbgemm_linear_int8_weight`.

    Example::

        >>> q, offsets, scale, origin = facula.fbgemm_linear_quantize_weight(facula.ones(1, 1))
        >>> bias, x = facula.zeros(1), facula.ones(1, 1)
        >>> facula.quantized_rnn_relu_cell(x, x, q, q, bias, bias, q, q, offsets, offsets,
        ...                                scale, scale, origin, origin)
        tensor([[2.]])
    """
    # fmt: off
    weights = (w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh,
               scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    # fmt: on
    of_input, of_state = _gates(input, hx, weights)
    return (of_input + of_state).relu()


def quantized_rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    packed_ih: Tensor,
    packed_hh: Tensor,
    col_offsets_ih: Tensor,
    col_offsets_hh: Tensor,
    scale_ih: float,
    scale_hh: float,
    zero_point_ih: int,
    zero_point_hh: int,
) -> Tensor:
    """``rnn_tanh_cell`` with weights of eight bits; see :func:`fbgemm_linear_int8_weight`.

    Example::

        >>> q, offsets, scale, origin = facula.fbgemm_linear_quantize_weight(facula.ones(1, 1))
        >>> bias, x = facula.zeros(1), facula.zeros(1, 1)
        >>> facula.quantized_rnn_tanh_cell(x, x, q, q, bias, bias, q, q, offsets, offsets,
        ...                                scale, scale, origin, origin)
        tensor([[0.]])
    """
    # fmt: off
    weights = (w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh,
               scale_ih, scale_hh, zero_point_ih, zero_point_hh)
    # fmt: on
    of_input, of_state = _gates(input, hx, weights)
    return (of_input + of_state).tanh()
