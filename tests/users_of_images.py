"""How users reach the rows of pooling and of images that have no public name of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _interpolated(package, x, output_size, mode, align_corners, scales):
    kind, _, antialias = mode.partition(" ")
    name = "bicubic" if kind == "cubic" else ("linear", "bilinear", "trilinear")[x.dim() - 3]
    how = {"mode": name, "align_corners": align_corners, "antialias": bool(antialias)}
    return package.nn.functional.interpolate(x, **_sizes(output_size, scales), **how)


def _nearest(package, x, output_size, exact, scales):
    mode = "nearest-exact" if exact else "nearest"
    return package.nn.functional.interpolate(x, mode=mode, **_sizes(output_size, scales))


def _sizes(output_size, scales):
    if scales:
        return {"scale_factor": tuple(scales)}
    return {"size": tuple(output_size)}


def _unpooled(package, x, indices, output_size):
    unpool = getattr(package.nn.functional, f"max_unpool{len(output_size)}d")
    return unpool(x, indices, 2, output_size=tuple(output_size))


def _adaptive(name: str, **options: Any) -> Callable[..., Any]:
    return lambda package, x, output_size: getattr(package.nn.functional, name)(
        x, output_size, **options
    )


USERS_OF_IMAGES: dict[str, Callable[..., Any]] = {
    "_interpolate": _interpolated,
    "_nearest": _nearest,
    "_max_unpool": _unpooled,
    **{f"adaptive_avg_pool{n}d": _adaptive(f"adaptive_avg_pool{n}d") for n in (2, 3)},
    **{
        f"adaptive_max_pool{n}d": _adaptive(f"adaptive_max_pool{n}d", return_indices=True)
        for n in (2, 3)
    },
}
