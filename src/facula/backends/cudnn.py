"""Settings for cuDNN. They are kept for programs that set them.

Facula's own kernels add in a fixed order and choose by shape, so that ``deterministic`` and
``benchmark`` change nothing on the CPU.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import facula
from facula.backends._options import make_options

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]


def version() -> int | None:
    """The version of cuDNN, or None where it is not used."""
    return None


def is_available() -> bool:
    """True when convolutions run on cuDNN."""
    return False


def is_acceptable(tensor: facula.Tensor) -> bool:
    """True when cuDNN could work on a tensor."""
    return is_available() and _self.enabled and tensor.device.type == "cuda"


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Sets what is not None, and returns what was set before.

    Example::

        >>> before = facula.backends.cudnn.set_flags(_benchmark=True)
        >>> _ = facula.backends.cudnn.set_flags(*before)
    """
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = tuple(_self._options[name] for name in names)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    for name, value in zip(names, given, strict=True):
        if value is not None:
            _self._set(name, value)
    return before


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> AbstractContextManager[None]:
    """Sets all settings for a block.

    Example::

        >>> with facula.backends.cudnn.flags(deterministic=True):
        ...     facula.backends.cudnn.deterministic
        True
    """
    return _self._changed(
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )


_self = make_options(
    __name__,
    enabled=True,
    benchmark=False,
    benchmark_limit=None,
    deterministic=False,
    allow_tf32=True,
)
