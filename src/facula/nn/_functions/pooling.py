"""Pooling whose arguments choose between operators: with and without indices, sizes left open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from facula import _C
from facula._overridable import overridable

__all__ = [
    *(f"adaptive_avg_pool{n}d" for n in (2, 3)),
    *(f"adaptive_max_pool{n}d" for n in (1, 2, 3)),
    *(f"adaptive_max_pool{n}d_with_indices" for n in (1, 2, 3)),
    *(f"fractional_max_pool{n}d" for n in (2, 3)),
    *(f"fractional_max_pool{n}d_with_indices" for n in (2, 3)),
    *(f"max_pool{n}d" for n in (1, 2, 3)),
    *(f"max_unpool{n}d" for n in (1, 2, 3)),
]

_ops = _C._operators
Tensor = _C.Tensor
Sizes = int | Sequence[int]
OpenSizes = int | Sequence[int | None]

# ---- max pooling

_max_pool1d, _max_pool1d_with_indices = _ops["max_pool1d"], _ops["max_pool1d_with_indices"]
_max_pool2d = _ops["max_pool2d"]
_max_pool2d_with_indices = _ops["nn.functional.max_pool2d_with_indices"]
_max_pool3d = _ops["max_pool3d"]
_max_pool3d_with_indices = _ops["nn.functional.max_pool3d_with_indices"]


def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of (N, C, L) or (C, L).

    With ``return_indices=True``, also where it is, for :func:`max_unpool1d`.

    Example::

        >>> facula.nn.functional.max_pool1d(facula.tensor([[1., 3., 2., 5.]]), 2)
        tensor([[3., 5.]])
    """
    pool = _max_pool1d_with_indices if return_indices else _max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of (N, C, H, W) or (C, H, W).

    With ``return_indices=True``, also where it is, for :func:`max_unpool2d`.

    Example::

        >>> facula.nn.functional.max_pool2d(facula.arange(4.).reshape(1, 2, 2), 2)
        tensor([[[3.]]])
    """
    pool = _max_pool2d_with_indices if return_indices else _max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of (N, C, D, H, W) or (C, D, H, W).

    With ``return_indices=True``, also where it is, for :func:`max_unpool3d`.

    Example::

        >>> facula.nn.functional.max_pool3d(facula.arange(8.).reshape(1, 2, 2, 2), 2)
        tensor([[[[7.]]]])
    """
    pool = _max_pool3d_with_indices if return_indices else _max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- windows that divide the input


def _filled(input: Tensor, output_size: OpenSizes, dims: int) -> Sizes:
    """``output_size`` with the input's own size in place of None."""
    if isinstance(output_size, int):
        return output_size
    if output_size is None:
        output_size = (None,) * dims
    if len(output_size) != dims:
        raise RuntimeError(f"output_size must be an int or {dims} of them, but got {output_size}")
    if input.dim() <= dims:
        raise ValueError(
            f"Input dimension should be at least {dims + 1}, but got shape {tuple(input.shape)}"
        )
    sizes = input.shape[input.dim() - dims :]
    return [int(n) if s is None else s for s, n in zip(output_size, sizes, strict=True)]


def adaptive_avg_pool2d(input: Tensor, output_size: OpenSizes) -> Tensor:
    """The averages of (H, W) windows that divide (N, C, H, W) or (C, H, W) as evenly as possible.

    A None in ``output_size`` keeps the input's size.

    Example::

        >>> facula.nn.functional.adaptive_avg_pool2d(facula.arange(4.).reshape(1, 2, 2), (None, 1))
        tensor([[[0.5000],
                 [2.5000]]])
    """
    return _ops["_adaptive_avg_pool2d"](input, _filled(input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: OpenSizes) -> Tensor:
    """The averages of (D, H, W) windows that divide (N, C, D, H, W) or (C, D, H, W).

    A None in ``output_size`` keeps the input's size.

    Example::

        >>> facula.nn.functional.adaptive_avg_pool3d(facula.arange(8.).reshape(1, 2, 2, 2), 1)
        tensor([[[[3.5000]]]])
    """
    return _ops["_adaptive_avg_pool3d"](input, _filled(input, output_size, 3))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool1d`, and where the largest elements are.

    Example::

        >>> x = facula.tensor([[1., 3., 7., 5.]])
        >>> facula.nn.functional.adaptive_max_pool1d_with_indices(x, 2)[1]
        tensor([[1, 2]])
    """
    return _ops["adaptive_max_pool1d"](input, output_size)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OpenSizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool2d`, and where the largest elements are, in flattened planes.

    Example::

        >>> x = facula.arange(4.).reshape(1, 2, 2)
        >>> facula.nn.functional.adaptive_max_pool2d_with_indices(x, 1)[1]
        tensor([[[3]]])
    """
    return _ops["_adaptive_max_pool2d"](input, _filled(input, output_size, 2))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OpenSizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool3d`, and where the largest elements are, in flattened volumes.

    Example::

        >>> x = facula.arange(8.).reshape(1, 2, 2, 2)
        >>> facula.nn.functional.adaptive_max_pool3d_with_indices(x, 1)[1]
        tensor([[[[7]]]])
    """
    return _ops["_adaptive_max_pool3d"](input, _filled(input, output_size, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest elements of windows that divide (N, C, L) or (C, L) as evenly as possible.

    Example::

        >>> facula.nn.functional.adaptive_max_pool1d(facula.tensor([[1., 3., 7., 5.]]), 2)
        tensor([[3., 7.]])
    """
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size: OpenSizes, return_indices: bool = False) -> Any:
    """The largest elements of (H, W) windows that divide (N, C, H, W) or (C, H, W).

    A None in ``output_size`` keeps the input's size.

    Example::

        >>> facula.nn.functional.adaptive_max_pool2d(facula.arange(4.).reshape(1, 2, 2), 1)
        tensor([[[3.]]])
    """
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size: OpenSizes, return_indices: bool = False) -> Any:
    """The largest elements of (D, H, W) windows that divide (N, C, D, H, W) or (C, D, H, W).

    A None in ``output_size`` keeps the input's size.

    Example::

        >>> facula.nn.functional.adaptive_max_pool3d(facula.arange(8.).reshape(1, 2, 2, 2), 1)
        tensor([[[[7.]]]])
    """
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


# ---- windows at random places


def _fractional(
    name: str, dims: int, input: Tensor, kernel_size: Sizes, output_size: Any, output_ratio: Any,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is not None and output_ratio is not None:
        raise ValueError(f"{name}: output_size and output_ratio cannot both be given")
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}: expected {dims + 1}D or {dims + 2}D input, got shape {tuple(input.shape)}"
        )
    if output_size is None:
        ratios = [output_ratio] * dims if isinstance(output_ratio, float) else list(output_ratio)
        if len(ratios) != dims:
            raise ValueError(
                f"{name} requires output_ratio to either be a single float or {dims} of them"
            )
        sizes = input.shape[input.dim() - dims :]
        output_size = [int(n * r) for n, r in zip(sizes, ratios, strict=True)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.shape[0]
        channels = input.shape[input.dim() - dims - 1]
        samples = _ops["rand"](batch, channels, dims, dtype=input.dtype, device=input.device)
    return _ops[f"_fractional_max_pool{dims}d"](input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool2d`, and where the largest elements are, in flattened planes.

    Example::

        >>> x = facula.arange(16.).reshape(1, 4, 4)
        >>> facula.nn.functional.fractional_max_pool2d_with_indices(x, 2, output_size=1)[1]
        tensor([[[15]]])
    """
    return _fractional(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool3d`, and where the largest elements are, in flattened volumes.

    Example::

        >>> x = facula.arange(27.).reshape(1, 3, 3, 3)
        >>> facula.nn.functional.fractional_max_pool3d_with_indices(x, 2, output_size=1)[1]
        tensor([[[[26]]]])
    """
    return _fractional(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples
    )


@overridable
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest elements of windows at random distances (Graham, 2014).

    ``output_size``, or ``output_ratio`` times the input's size, says how many windows there are.

    Example::

        >>> x = facula.arange(16.).reshape(1, 4, 4)
        >>> facula.nn.functional.fractional_max_pool2d(x, 2, output_ratio=0.5).shape
        facula.Size([1, 2, 2])
    """
    found = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return found if return_indices else found[0]


@overridable
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest elements of windows at random distances, in volumes.

    Example::

        >>> x = facula.arange(64.).reshape(1, 4, 4, 4)
        >>> facula.nn.functional.fractional_max_pool3d(x, 2, output_size=(2, 3, 2)).shape
        facula.Size([1, 2, 3, 2])
    """
    found = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return found if return_indices else found[0]


# ---- the way back


def _each(value: Sizes, dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value)


def _unpooled(
    dims: int, input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None,
    padding: Sizes, output_size: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    kernel = _each(kernel_size, dims)
    steps = kernel if stride is None or stride == [] else _each(stride, dims)
    pads = _each(padding, dims)
    sizes = input.shape[input.dim() - dims :]
    usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(sizes, steps, kernel, pads, strict=True)]
    if output_size is None:
        return _ops["_max_unpool"](input, indices, usual)
    wanted = list(output_size)
    if len(wanted) == dims + 2:
        wanted = wanted[2:]
    if len(wanted) != dims:
        raise ValueError(
            "output_size should be a sequence containing "
            f"{dims} or {dims + 2} elements, but it has a length of '{len(wanted)}'"
        )
    for d in range(dims):
        low, high = usual[d] - steps[d], usual[d] + steps[d]
        if not low < wanted[d] < high:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {d} must be between {low} and {high})'
            )
    return _ops["_max_unpool"](input, indices, wanted)


@overridable
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts elements back to where :func:`max_pool1d` found them, with zeros in between.

    Example::

        >>> x, indices = facula.tensor([[3., 5.]]), facula.tensor([[1, 3]])
        >>> facula.nn.functional.max_unpool1d(x, indices, 2)
        tensor([[0., 3., 0., 5.]])
    """
    return _unpooled(1, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts elements back to where :func:`max_pool2d` found them, with zeros in between.

    Example::

        >>> x, indices = facula.tensor([[[3.]]]), facula.tensor([[[2]]])
        >>> facula.nn.functional.max_unpool2d(x, indices, 2)
        tensor([[[0., 0.],
                 [3., 0.]]])
    """
    return _unpooled(2, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts elements back to where :func:`max_pool3d` found them, with zeros in between.

    Example::

        >>> x, indices = facula.tensor([[[[3.]]]]), facula.tensor([[[[1]]]])
        >>> facula.nn.functional.max_unpool3d(x, indices, (1, 1, 2))
        tensor([[[[0., 3.]]]])
    """
    return _unpooled(3, input, indices, kernel_size, stride, padding, output_size)
