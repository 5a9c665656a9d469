"""Modules that multiply with a matrix."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Tensor
from facula.nn import functional, init
from facula.nn.modules.identity import Identity as Identity
from facula.nn.modules.lazy import LazyModuleMixin
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "LazyLinear", "Linear"]


class Linear(Module):
    """``y = x @ weight.T + bias``.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the result.
        bias: ``False`` for a layer without a bias.

    Shape: (*, in_features) to (*, out_features). ``weight`` is (out_features, in_features) and
    ``bias`` (out_features,); both start uniform within ``1 / sqrt(in_features)`` of 0.

    Example::

        >>> facula.nn.Linear(20, 30)(facula.ones(128, 20)).shape
        facula.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(
            facula.empty((out_features, in_features), device=device, dtype=dtype)
        )
        self.register_parameter(
            "bias",
            Parameter(facula.empty(out_features, device=device, dtype=dtype)) if bias else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1]
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A :class:`Linear` that tools which replace linear layers leave alone."""


class Bilinear(Module):
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Shape: (*, in1_features) and (*, in2_features) to (*, out_features). ``weight`` is
    (out_features, in1_features, in2_features), ``bias`` (out_features,); both start uniform within
    ``1 / sqrt(in1_features)`` of 0.

    Example::

        >>> m = facula.nn.Bilinear(20, 30, 40)
        >>> m(facula.ones(128, 20), facula.ones(128, 30)).shape
        facula.Size([128, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]
    in1_features: int
    in2_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(facula.empty(shape, device=device, dtype=dtype))
        self.register_parameter(
            "bias",
            Parameter(facula.empty(out_features, device=device, dtype=dtype)) if bias else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` whose ``in_features`` is the last size of its first input.

    Example::

        >>> layer = facula.nn.LazyLinear(4)
        >>> layer(facula.ones(2, 3)).shape
        facula.Size([2, 4])
        >>> layer.in_features
        3
    """

    cls_to_become = Linear
    weight: UninitializedParameter

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        if self.has_uninitialized_params():
            with facula.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # shapes came with a state dict
            self.in_features = self.weight.shape[-1]
