"""Autocast for the CPU under its old name."""

from __future__ import annotations

import warnings
from typing import Any

import facula
from facula.amp import autocast_mode

__all__ = ["autocast"]


class autocast(autocast_mode.autocast):
    """The old form of ``facula.amp.autocast("cpu", ...)``."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: Any = None,
        cache_enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`facula.cpu.amp.autocast(args...)` is deprecated. Please use "
            "`facula.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        dtype = facula.bfloat16 if dtype is None else dtype
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
