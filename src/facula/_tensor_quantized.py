"""Methods of ``Tensor`` that quantized tensors have, where others are refused; and ``chalf``."""

from __future__ import annotations

from typing import Any

from facula._tensor import _method


def _functions() -> Any:
    from facula._stored import functions

    return functions


def dequantize(self):  # type: ignore[no-untyped-def]
    """The float32 numbers that a quantized tensor stands for; another tensor becomes float32.

    Example::

        >>> x = facula.tensor([1., 2.])
        >>> facula.quantize_per_tensor(x, 0.5, 3, facula.quint8).dequantize()
        tensor([1., 2.])
    """
    return _functions().dequantize(self)


def int_repr(self):  # type: ignore[no-untyped-def]
    """A copy of the integers of a quantized tensor.

    Example::

        >>> x = facula.tensor([1., 2.])
        >>> facula.quantize_per_tensor(x, 0.5, 3, facula.quint8).int_repr()
        tensor([5, 7], dtype=facula.uint8)
    """
    return _functions().int_repr(self)


def qscheme(self):  # type: ignore[no-untyped-def]
    """How scale and zero point of a quantized tensor belong to its elements.

    Example::

        >>> x = facula.tensor([1., 2.])
        >>> facula.quantize_per_tensor(x, 0.5, 3, facula.quint8).qscheme()
        facula.per_tensor_affine
    """
    from facula._stored.quantized import quantizer_of

    return quantizer_of(self, "qscheme").scheme


def q_scale(self):  # type: ignore[no-untyped-def]
    """The scale of a tensor that was quantized as a whole.

    Example::

        >>> x = facula.tensor([1., 2.])
        >>> facula.quantize_per_tensor(x, 0.5, 3, facula.quint8).q_scale()
        0.5
    """
    return _functions().q_scale(self)


def q_zero_point(self):  # type: ignore[no-untyped-def]
    """The zero point of a tensor that was quantized as a whole.

    Example::

        >>> x = facula.tensor([1., 2.])
        >>> facula.quantize_per_tensor(x, 0.5, 3, facula.quint8).q_zero_point()
        3
    """
    return _functions().q_zero_point(self)


def q_per_channel_scales(self):  # type: ignore[no-untyped-def]
    """The scales of a tensor that was quantized by channel.

    Example::

        >>> q = facula.quantize_per_channel(
        ...     facula.ones(2, 1), facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> q.q_per_channel_scales()
        tensor([0.5000, 2.0000], dtype=facula.float64)
    """
    return _functions().q_per_channel_scales(self)


def q_per_channel_zero_points(self):  # type: ignore[no-untyped-def]
    """The zero points of a tensor that was quantized by channel.

    Example::

        >>> q = facula.quantize_per_channel(
        ...     facula.ones(2, 1), facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> q.q_per_channel_zero_points()
        tensor([0, 1])
    """
    return _functions().q_per_channel_zero_points(self)


def q_per_channel_axis(self):  # type: ignore[no-untyped-def]
    """The dimension of the channels of a tensor that was quantized by channel.

    Example::

        >>> q = facula.quantize_per_channel(
        ...     facula.ones(2, 1), facula.tensor([0.5, 2.]), facula.tensor([0, 1]), 0, facula.qint8)
        >>> q.q_per_channel_axis()
        0
    """
    return _functions().q_per_channel_axis(self)


def chalf(self, memory_format=None):  # type: ignore[no-untyped-def]
    """This tensor in halved complex numbers, of two float16 each.

    Example::

        >>> facula.tensor([1 + 2j]).chalf()
        tensor([1.+2.j], dtype=facula.complex32)
    """
    from facula import complex32

    return self.to(complex32)


for _function in (
    chalf,
    dequantize,
    int_repr,
    qscheme,
    q_scale,
    q_zero_point,
    q_per_channel_scales,
    q_per_channel_zero_points,
    q_per_channel_axis,
):
    _method(_function)
