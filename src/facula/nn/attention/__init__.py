"""Which implementation of ``scaled_dot_product_attention`` may run.

Facula has one that works in blocks and one of plain operators, and chooses by what the call needs;
the choice here is kept and reported, and changes no results.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from facula.nn.attention import bias as bias
from facula.nn.attention import flex_attention as flex_attention
from facula.nn.attention import varlen as varlen
from facula.nn.attention._registry import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """The implementations of attention that programs name.

    Example::

        >>> facula.nn.attention.SDPBackend.MATH
        <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


_ALL = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
]
_allowed = list(_ALL)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    return list(_allowed)


@contextlib.contextmanager
def sdpa_kernel(
    backends: SDPBackend | list[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Names the implementations that attention may use inside the context.

    Example::

        >>> with facula.nn.attention.sdpa_kernel(facula.nn.attention.SDPBackend.MATH):
        ...     x = facula.ones(1, 1, 2, 4)
        ...     y = facula.nn.functional.scaled_dot_product_attention(x, x, x)
    """
    global _allowed
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(b, SDPBackend) for b in chosen):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a non-empty list of them, got "
            f"{backends!r}"
        )
    before, _allowed = _allowed, chosen
    try:
        yield
    finally:
        _allowed = before
