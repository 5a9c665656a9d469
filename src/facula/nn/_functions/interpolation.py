"""Images and volumes of another size: which operator a mode is, and what sizes and factors mean."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from facula import _C
from facula._overridable import overridable
from facula.nn._functions.pooling import adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_ops = _C._operators
Tensor = _C.Tensor

# mode -> the number of spatial dimensions that it takes
_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
_MODES = ("nearest", "nearest-exact", "area", *_LINEAR)


def _for_each_dim(value: Any, dims: int, name: str, input: Tensor) -> list[Any]:
    if not isinstance(value, (list, tuple, _C.Size)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {name} of {tuple(value)}. "
            f"Please provide input tensor in (N, C, d1, d2, ...,dK) format and {name} in "
            "(d1, d2, ...,dK) format."
        )
    return list(value)


@overridable
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes the spatial dimensions of (N, C, L), (N, C, H, W) or (N, C, D, H, W).

    Either ``size`` or ``scale_factor`` is given. ``mode`` is 'nearest', 'nearest-exact', 'area', or
    by the number of spatial dimensions 'linear', 'bilinear', 'bicubic', 'lanczos' or 'trilinear'.

    Args:
        align_corners: whether centres of outermost elements coincide, not their outer edges.
        recompute_scale_factor: derive the factor again from the rounded size.
        antialias: average over wider windows when the result is smaller ('bilinear', 'bicubic');
            'lanczos' always does and requires it.

    Example::

        >>> x = facula.tensor([[[1., 3.]]])
        >>> facula.nn.functional.interpolate(x, scale_factor=2)
        tensor([[[1., 1., 3., 3.]]])
        >>> facula.nn.functional.interpolate(x, size=3, mode='linear', align_corners=True)
        tensor([[[1., 2., 3.]]])
    """
    if mode not in _LINEAR:
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear | lanczos"
            )
    elif align_corners is None:
        align_corners = False
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    scales: list[float] = []
    if size is not None:
        sizes = _for_each_dim(size, dims, "output size", input)
        if any(isinstance(n, float) for n in sizes):
            raise TypeError(f"expected size to be one of int or a tuple of ints, but got {size}")
    elif scale_factor is not None:
        scales = [float(s) for s in _for_each_dim(scale_factor, dims, "scale_factor", input)]
        sizes = [math.floor(float(n) * s) for n, s in zip(input.shape[2:], scales, strict=True)]
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        scales = []
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic and lanczos modes and requires a "
            "4-D tensor as input"
        )
    if mode not in _MODES:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
            f"trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    if dims not in (1, 2, 3):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for "
            f"the mode {mode}"
        )
    sizes = [int(n) for n in sizes]
    if mode in ("nearest", "nearest-exact"):
        exact = mode == "nearest-exact"
        result = _ops["_nearest"](input, sizes, exact, scales)
        _C._name_result(result, f"UpsampleNearest{'Exact' if exact else ''}{dims}DBackward0")
        return result
    if mode == "area":
        if dims == 1:
            return _ops["adaptive_avg_pool1d"](input, sizes)
        return (adaptive_avg_pool2d if dims == 2 else adaptive_avg_pool3d)(input, sizes)
    if _LINEAR[mode] != dims:
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {_LINEAR[mode] + 2}D input"
        )
    kind = {"bicubic": "cubic", "lanczos": "lanczos"}.get(mode, "linear")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if antialias:
        kind += " antialias"
    result = _ops["_interpolate"](input, sizes, kind, bool(align_corners), scales)
    name = f"Upsample{mode.capitalize()}{dims}D{'Aa' if antialias else ''}Backward0"
    _C._name_result(result, name)
    return result


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """An older name for :func:`interpolate`.

    Example::

        >>> import warnings; warnings.simplefilter("ignore")
        >>> facula.nn.functional.upsample(facula.tensor([[[1., 3.]]]), 4)
        tensor([[[1., 1., 3., 3.]]])
    """
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """An older name for :func:`interpolate` with ``mode='nearest'``.

    Example::

        >>> import warnings; warnings.simplefilter("ignore")
        >>> facula.nn.functional.upsample_nearest(facula.tensor([[[1., 3.]]]), 4)
        tensor([[[1., 1., 3., 3.]]])
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """An older name for :func:`interpolate` with ``mode='bilinear', align_corners=True``.

    Example::

        >>> import warnings; warnings.simplefilter("ignore")
        >>> facula.nn.functional.upsample_bilinear(facula.tensor([[[[1., 3.]]]]), (1, 3))
        tensor([[[[1., 2., 3.]]]])
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
