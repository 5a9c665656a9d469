"""Modules that apply a function to every element, or along a dimension."""

from __future__ import annotations

import warnings
from typing import Any

import facula
from facula import Tensor
from facula.nn import functional
from facula.nn.modules.attention import MultiheadAttention as MultiheadAttention
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


def _if_inplace(module: Any, first: str = "") -> str:
    """``first``, followed by ``inplace=True`` where the module says so."""
    return ", ".join(part for part in (first, "inplace=True" if module.inplace else "") if part)


class Threshold(Module):
    """Keeps elements above ``threshold`` and puts ``value`` in place of the others.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Threshold(0, 20)(facula.tensor([-1., 2.]))
        tensor([20.,  2.])
    """

    __constants__ = ["threshold", "value", "inplace"]
    threshold: float
    value: float
    inplace: bool

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self, f"threshold={self.threshold}, value={self.value}")


class ReLU(Module):
    """The larger of 0 and each element.

    Shape: any, to the same.

    Example::

        >>> facula.nn.ReLU()(facula.tensor([-1., 2.]))
        tensor([0., 2.])
    """

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self)


class RReLU(Module):
    """Multiplies negative elements with a slope: a random one from [``lower``, ``upper``] for each
    while training, the middle in evaluation.

    Shape: any, to the same.

    Example::

        >>> facula.nn.RReLU(0.1, 0.3).eval()(facula.tensor([-1., 2.]))
        tensor([-0.2000,  2.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]
    lower: float
    upper: float
    inplace: bool

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self, f"lower={self.lower}, upper={self.upper}")


class Hardtanh(Module):
    """Limits each element to [``min_val``, ``max_val``].

    ``min_value`` and ``max_value`` are older names of the two.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Hardtanh(-2, 2)(facula.tensor([-3., 1.]))
        tensor([-2.,  1.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]
    min_val: float
    max_val: float
    inplace: bool

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn(
                "keyword argument `min_value` is deprecated and rename to `min_val`",
                FutureWarning,
                stacklevel=2,
            )
            min_val = min_value
        if max_value is not None:
            warnings.warn(
                "keyword argument `max_value` is deprecated and rename to `max_val`",
                FutureWarning,
                stacklevel=2,
            )
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if not max_val > min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self, f"min_val={self.min_val}, max_val={self.max_val}")


class ReLU6(Hardtanh):
    """Limits each element to [0, 6].

    Shape: any, to the same.

    Example::

        >>> facula.nn.ReLU6()(facula.tensor([-1., 9.]))
        tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Sigmoid()(facula.tensor([0., 1.]))
        tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return facula.sigmoid(input)


class Hardsigmoid(Module):
    """``(x + 3) / 6``, limited to [0, 1].

    Shape: any, to the same.

    Example::

        >>> facula.nn.Hardsigmoid()(facula.tensor([0., 9.]))
        tensor([0.5000, 1.0000])
    """

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Tanh()(facula.tensor([0., 1.]))
        tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return facula.tanh(input)


class SiLU(Module):
    """``x * sigmoid(x)``, also called swish.

    Shape: any, to the same.

    Example::

        >>> facula.nn.SiLU()(facula.tensor([-1., 2.]))
        tensor([-0.2689,  1.7616])
    """

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self)


class Mish(Module):
    """``x * tanh(log(1 + exp(x)))``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Mish()(facula.tensor([-1., 2.]))
        tensor([-0.3034,  1.9440])
    """

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.mish(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self)


class Hardswish(Module):
    """``x * hardsigmoid(x)``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Hardswish()(facula.tensor([-4., 3.]))
        tensor([-0., 3.])
    """

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardswish(input, self.inplace)


class ELU(Module):
    """Positive elements, and ``alpha * (exp(x) - 1)`` for the others.

    Shape: any, to the same.

    Example::

        >>> facula.nn.ELU()(facula.tensor([-1., 2.]))
        tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]
    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self, f"alpha={self.alpha}")


class CELU(Module):
    """Positive elements, and ``alpha * (exp(x / alpha) - 1)`` for the others.

    Shape: any, to the same.

    Example::

        >>> facula.nn.CELU()(facula.tensor([-1., 2.]))
        tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]
    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self, f"alpha={self.alpha}")


class SELU(Module):
    """``elu`` with the scales that keep mean 0 and variance 1 through a deep network.

    Shape: any, to the same.

    Example::

        >>> facula.nn.SELU()(facula.tensor([-1., 2.]))
        tensor([-1.1113,  2.1014])
    """

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.selu(input, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self)


class GLU(Module):
    """The first half along ``dim``, times ``sigmoid`` of the second half.

    Shape: (*, 2 * n, *) to (*, n, *).

    Example::

        >>> facula.nn.GLU()(facula.tensor([-1., 0.]))
        tensor([-0.5000])
    """

    __constants__ = ["dim"]
    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """``x`` times the normal distribution function at ``x``; with ``approximate="tanh"``, by a
    formula with tanh.

    Shape: any, to the same.

    Example::

        >>> facula.nn.GELU()(facula.tensor([-1., 2.]))
        tensor([-0.1587,  1.9545])
    """

    __constants__ = ["approximate"]
    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """0 for elements within [-``lambd``, ``lambd``], the others as they are.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Hardshrink()(facula.tensor([-1., 0.4]))
        tensor([-1.,  0.])
    """

    __constants__ = ["lambd"]
    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """Each element, times ``negative_slope`` where it is negative.

    Shape: any, to the same.

    Example::

        >>> facula.nn.LeakyReLU(0.1)(facula.tensor([-1., 2.]))
        tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]
    inplace: bool
    negative_slope: float

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _if_inplace(self, f"negative_slope={self.negative_slope}")


class LogSigmoid(Module):
    """The logarithm of ``sigmoid``, computed without loss.

    Shape: any, to the same.

    Example::

        >>> facula.nn.LogSigmoid()(facula.tensor([-1., 2.]))
        tensor([-1.3133, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.logsigmoid(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` is above
    ``threshold``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Softplus()(facula.tensor([-1., 2.]))
        tensor([0.3133, 2.1269])
    """

    __constants__ = ["beta", "threshold"]
    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Moves each element towards 0 by ``lambd``, at most to 0.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Softshrink()(facula.tensor([-1., 2.]))
        tensor([-0.5000,  1.5000])
    """

    __constants__ = ["lambd"]
    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """Each element, times a learned slope where it is negative: one for all, or with
    ``num_parameters`` one for each channel (dimension 1). Slopes start at ``init``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.PReLU()(facula.tensor([-1., 2.])).tolist()
        [-0.25, 2.0]
    """

    __constants__ = ["num_parameters"]
    num_parameters: int

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(facula.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the slopes to ``init``."""
        facula.nn.init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """``x / (1 + abs(x))``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Softsign()(facula.tensor([-1., 3.]))
        tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Tanhshrink()(facula.tensor([-1., 2.]))
        tensor([-0.2384,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanhshrink(input)


class _AlongDim(Module):
    """A function along ``dim``, which older programs leave out."""

    __constants__ = ["dim"]
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """``softmax(-x)`` along ``dim``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Softmin(dim=0)(facula.tensor([1., 1.]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Exponentials that sum to 1 along ``dim``.

    Shape: any, to the same.

    Example::

        >>> facula.nn.Softmax(dim=0)(facula.tensor([1., 1.]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """``softmax`` over the channels of images.

    Shape: (N, C, H, W) or (C, H, W), to the same.

    Example::

        >>> facula.nn.Softmax2d()(facula.ones(2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return functional.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of ``softmax`` along ``dim``, computed without loss.

    Shape: any, to the same.

    Example::

        >>> facula.nn.LogSoftmax(dim=0)(facula.tensor([1., 1.]))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim, _stacklevel=5)
