"""A layer and the batch norm after it as one layer, for inference."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import facula
from facula import Tensor
from facula.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

M = TypeVar("M")


def _check_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """A convolution that does what a convolution and a batch norm after it do.

    Args:
        conv: a convolution in eval mode.
        bn: a batch norm in eval mode.
        transpose: whether the convolution is transposed.
    """
    _check_eval(conv, bn)
    fused: Any = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a convolution with a batch norm folded in.

    Args:
        conv_w: the convolution's weight.
        conv_b: its bias, or None.
        bn_rm: the batch norm's running mean.
        bn_rv: its running variance.
        bn_eps: what it adds to the variance.
        bn_w: its weight, or None.
        bn_b: its bias, or None.
        transpose: whether the convolution is transposed.

    Example::

        >>> weight, bias = facula.nn.utils.fuse_conv_bn_weights(
        ...     facula.ones(1, 1, 1), None, facula.tensor([1.]), facula.tensor([4.]), 0.,
        ...     facula.tensor([2.]), facula.tensor([3.]))
        >>> weight.item(), bias.item()
        (1.0, 2.0)
    """
    weight_dtype = conv_w.dtype
    bias_dtype = weight_dtype if conv_b is None else conv_b.dtype
    conv_b = facula.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = facula.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = facula.zeros_like(bn_rm) if bn_b is None else bn_b
    inverse = facula.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = conv_w * (bn_w * inverse).reshape(shape)
    bias = (conv_b - bn_rm) * inverse * bn_w + bn_b
    return (
        Parameter(weight.to(weight_dtype), conv_w.requires_grad),
        Parameter(bias.to(bias_dtype), conv_b.requires_grad),
    )


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """A linear layer that does what a linear layer and a batch norm after it do.

    Args:
        linear: a linear layer in eval mode.
        bn: a batch norm in eval mode, over the layer's features or a single one.
    """
    _check_eval(linear, bn)
    fused: Any = copy.deepcopy(linear)
    if bn.num_features not in (1, fused.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of a linear layer with a batch norm folded in.

    Args:
        linear_w: the layer's weight.
        linear_b: its bias, or None.
        bn_rm: the batch norm's running mean.
        bn_rv: its running variance.
        bn_eps: what it adds to the variance.
        bn_w: its weight.
        bn_b: its bias.
    """
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = facula.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * facula.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(linear_w.dtype)
    bias = (linear_b - bn_rm) * scale + bn_b
    return (
        Parameter(weight, linear_w.requires_grad),
        Parameter(bias.to(bias_dtype), linear_b.requires_grad),
    )
