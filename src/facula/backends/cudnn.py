"""Settings for cuDNN, which convolutions on CUDA devices run on.

``benchmark`` times all of its algorithms when a shape is first met, ``deterministic`` leaves out
those whose sums depend on timing, ``allow_tf32`` lets float32 be rounded to TF32. On the CPU they
change nothing: Facula's own kernels add in a fixed order and choose by shape.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import facula
from facula import _C
from facula.backends._options import make_options

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]


def version() -> int | None:
    """The version of cuDNN, or None without it or without a CUDA device."""
    return _C._cudnn_version() or None


def is_available() -> bool:
    """True when convolutions on CUDA devices can run on cuDNN."""
    return version() is not None


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


def _apply(options: dict[str, Any]) -> None:
    names = ("enabled", "benchmark", "deterministic", "allow_tf32")
    _C._set_cudnn(*(options[name] for name in names))


_self = make_options(
    __name__,
    _apply,
    enabled=True,
    benchmark=False,
    benchmark_limit=None,
    deterministic=False,
    allow_tf32=True,
)
