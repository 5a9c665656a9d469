"""Settings for products and attention on CUDA devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import facula

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]


def is_built() -> bool:
    """True: the one wheel serves machines with and without CUDA. See ``cuda.is_available()``.

    Example::

        >>> facula.backends.cuda.is_built()
        True
    """
    return True


class _Matmul:
    """Precision of matrix products: ``allow_tf32`` stands for a ``float32_matmul_precision``
    below "highest".

    Example::

        >>> facula.backends.cuda.matmul.allow_tf32 = True
        >>> facula.get_float32_matmul_precision()
        'high'
        >>> facula.backends.cuda.matmul.allow_tf32 = False
    """

    __slots__ = (
        "_allow_bf16_reduced_precision_reduction",
        "_allow_fp16_accumulation",
        "_allow_fp16_reduced_precision_reduction",
    )
    _flags = (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
    )

    def __init__(self) -> None:
        self._allow_fp16_reduced_precision_reduction = True
        self._allow_bf16_reduced_precision_reduction = True
        self._allow_fp16_accumulation = False

    def __getattr__(self, name: str) -> Any:
        if name == "allow_tf32":
            return facula.get_float32_matmul_precision() != "highest"
        if name in self._flags:
            return object.__getattribute__(self, "_" + name)
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif name != "allow_tf32" and name not in self._flags:
            raise AttributeError(f"Unknown attribute {name}")
        elif not isinstance(value, bool):
            raise RuntimeError(f"matmul.{name} must be a bool, got {type(value).__name__}")
        elif name == "allow_tf32":
            facula.set_float32_matmul_precision("high" if value else "highest")
        else:
            object.__setattr__(self, "_" + name, value)


matmul = _Matmul()

_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    """Whether attention may run block by block, in one kernel."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allows or forbids attention block by block."""
    _attention["flash"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """Whether attention may avoid the whole matrix of scores."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allows or forbids attention without the whole matrix of scores."""
    _attention["mem_efficient"] = enabled


def math_sdp_enabled() -> bool:
    """Whether attention may be computed step by step."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allows or forbids attention step by step."""
    _attention["math"] = enabled


def cudnn_sdp_enabled() -> bool:
    """Whether attention may run on cuDNN."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allows or forbids attention on cuDNN."""
    _attention["cudnn"] = enabled


def is_flash_attention_available() -> bool:
    """True when there is a CUDA device to run it on."""
    return facula.cuda.is_available()


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Allows kinds of attention for a block.

    Example::

        >>> with facula.backends.cuda.sdp_kernel(enable_flash=False):
        ...     facula.backends.cuda.flash_sdp_enabled()
        False
    """
    before = dict(_attention)
    try:
        _attention.update(
            flash=enable_flash,
            math=enable_math,
            mem_efficient=enable_mem_efficient,
            cudnn=enable_cudnn,
        )
        yield
    finally:
        _attention.update(before)
