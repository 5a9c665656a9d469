"""Discrete Fourier transforms: the operators under ``facula.fft``."""

from __future__ import annotations

from facula import _C

__all__ = []

for _name, _function in _C._operators.items():
    if _name.startswith("fft."):
        globals()[_name.removeprefix("fft.")] = _function
        __all__.append(_name.removeprefix("fft."))
del _name, _function
