"""How PyTorch may split ``linear_cross_entropy``; accepted, so that programs run unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import facula

__all__ = ["LinearCrossEntropyOptions"]

_METHODS = ("auto", "aspect_ratio")
_POLICIES = ("accurate", "balanced", "compact", "auto")


@dataclass
class LinearCrossEntropyOptions:
    """Options of ``linear_cross_entropy``. They say how the batch may be split to save memory; the
    results do not depend on them, and here the logits are computed at once.

    Example::

        >>> facula.nn.LinearCrossEntropyOptions(batch_chunk_size=8).batch_chunk_size
        8
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if method is not None and method.partition(":")[0] not in _METHODS:
            raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        accepted = (None, facula.float16, facula.bfloat16, facula.float32, facula.float64)
        if self.acc_dtype not in accepted:
            raise ValueError(
                f"acc_dtype must be one of {accepted}, got {self.acc_dtype}. Pass acc_dtype=None "
                "to let the op pick automatically."
            )
