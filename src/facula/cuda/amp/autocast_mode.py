"""Autocast for CUDA devices under its old name."""

from __future__ import annotations

import warnings
from typing import Any

import facula
from facula.amp import autocast_mode

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(autocast_mode.autocast):
    """The old form of ``facula.amp.autocast("cuda", ...)``."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: Any = None,
        cache_enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`facula.cuda.amp.autocast(args...)` is deprecated. Please use "
            "`facula.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        dtype = facula.float16 if dtype is None else dtype
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def _old_name(name: str) -> None:
    warnings.warn(
        f"`facula.cuda.amp.{name}(args...)` is deprecated. Please use "
        f"`facula.amp.{name}(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=3,
    )


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """The old form of ``facula.amp.custom_fwd(..., device_type="cuda")``."""
    _old_name("custom_fwd")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """The old form of ``facula.amp.custom_bwd(..., device_type="cuda")``."""
    _old_name("custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
