"""First values of parameters, drawn as PyTorch draws them: the same seed gives the same weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula._overridable import overridable

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = ("linear", "sigmoid", "conv1d", "conv2d", "conv3d") + tuple(
    f"conv_transpose{n}d" for n in (1, 2, 3)
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity asks the standard deviation of weights to be scaled.

    Example::

        >>> facula.nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@overridable
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with numbers uniform between ``a`` and ``b``.

    Example::

        >>> _ = facula.manual_seed(0)
        >>> facula.nn.init.uniform_(facula.empty(2))
        tensor([0.4963, 0.7682])
    """
    with facula.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@overridable
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with normal numbers.

    Example::

        >>> _ = facula.manual_seed(0)
        >>> facula.nn.init.normal_(facula.empty(2))
        tensor([ 1.5410, -0.2934])
    """
    with facula.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fills with normal numbers cut off outside ``[a, b]``.

    Example::

        >>> bool(facula.nn.init.trunc_normal_(facula.empty(100)).abs().max() <= 2)
        True
    """

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    inside = below((b - mean) / std) - below((a - mean) / std)
    with facula.no_grad():
        if tensor.is_meta:
            return tensor
        if inside > 0.3:
            return _redraw_normal(tensor, mean, std, a, b, generator)
        return _accept_uniform(tensor, mean, std, a, b, generator)


def _redraw_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Most numbers are inside: those that are not are drawn again, all in one go."""
    low, high = (tensor.new_tensor(x, device="cpu").item() for x in (a, b))
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < low) | (tensor > high)
        if not outside.any():
            return tensor
        fresh = facula.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(facula.where(outside, fresh, tensor))


def _accept_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Few would be inside: uniform numbers are kept with the probability of their density."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def refused(drawn: Tensor) -> Tensor:
        density = drawn.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        return facula.empty_like(drawn).uniform_(generator=generator).log_().gt(density)

    tensor.uniform_(a, b, generator=generator)
    pending = refused(tensor)
    while pending.any():
        drawn = facula.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(facula.where(pending, drawn, tensor))
        pending = pending & refused(drawn)
    return tensor


@overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value.

    Example::

        >>> facula.nn.init.constant_(facula.empty(2), 0.3)
        tensor([0.3000, 0.3000])
    """
    with facula.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones.

    Example::

        >>> facula.nn.init.ones_(facula.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros.

    Example::

        >>> facula.nn.init.zeros_(facula.empty(2))
        tensor([0., 0.])
    """
    with facula.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity.

    Example::

        >>> facula.nn.init.eye_(facula.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with facula.no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes the weight of a convolution pass its input channels through.

    Example::

        >>> facula.nn.init.dirac_(facula.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    centre = tuple(s // 2 for s in tensor.shape[2:])
    with facula.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, tensor.size(1))):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's uniform initialisation.

    Example::

        >>> w = facula.nn.init.xavier_uniform_(facula.empty(3, 5))
        >>> bool(w.abs().max() <= (6 / 8) ** 0.5)
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's normal initialisation.

    Example::

        >>> facula.nn.init.xavier_normal_(facula.empty(3, 5)).shape
        facula.Size([3, 5])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """He's uniform initialisation.

    Example::

        >>> w = facula.nn.init.kaiming_uniform_(facula.empty(3, 6), nonlinearity="relu")
        >>> bool(w.abs().max() <= 1)
        True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = (
        math.sqrt(3.0)
        * calculate_gain(nonlinearity, a)
        / math.sqrt(_calculate_correct_fan(tensor, mode))
    )
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """He's normal initialisation.

    Example::

        >>> facula.nn.init.kaiming_normal_(facula.empty(3, 5), mode="fan_out").shape
        facula.Size([3, 5])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Makes the rows or columns, seen as a matrix, orthonormal.

    Example::

        >>> w = facula.nn.init.orthogonal_(facula.empty(2, 5))
        >>> facula.allclose(w @ w.T, facula.eye(2), atol=1e-5)
        True
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    if rows < columns:
        flat.t_()
    q, r = facula.linalg.qr(flat)
    q *= r.diagonal().sign()  # makes the decomposition unique, so q is uniform
    if rows < columns:
        q.t_()
    with facula.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers with a share ``sparsity`` of zeros in each column.

    Example::

        >>> w = facula.nn.init.sparse_(facula.empty(10, 3), sparsity=0.5)
        >>> (w == 0).sum(0)
        tensor([5, 5, 5])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with facula.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[facula.randperm(rows)[:zeros], column] = 0
    return tensor


def _older(name: str) -> Callable[..., Tensor]:
    """Names without the underscore are still found in old programs."""
    function: Callable[..., Tensor] = globals()[name + "_"]

    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    renamed.__name__ = name
    renamed.__doc__ = f"An older name of :func:`{name}_`."
    return renamed


uniform = _older("uniform")
normal = _older("normal")
constant = _older("constant")
eye = _older("eye")
dirac = _older("dirac")
xavier_uniform = _older("xavier_uniform")
xavier_normal = _older("xavier_normal")
kaiming_uniform = _older("kaiming_uniform")
kaiming_normal = _older("kaiming_normal")
orthogonal = _older("orthogonal")
sparse = _older("sparse")


# What the functions do without a tape; libraries have copies that call these.
def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return zeros_(tensor)
