#!/usr/bin/env python3
"""Fourier transforms in PyTorch and in Facula, as ratios of their times.

    bench/fft.py [--only NAME ...] [--rounds 3] [--seconds 0.3]

The names say the transform, the shape and the precision; a ratio above 1 means that Facula is
faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import WORK, Work, main

REAL = {"f32": "float32", "f64": "float64"}
COMPLEX = {"f32": "complex64", "f64": "complex128"}


def _add(name: str, make: Callable[[Any], Work]) -> None:
    WORK[name] = make


def _transforms(shape: tuple[int, ...], precision: str, several: str = "") -> None:
    """fft, rfft and irfft of one shape; `several` is "2" to transform two dimensions."""
    label = "x".join(map(str, shape))
    sizes = shape[-2:] if several else shape[-1]

    def forward(T: Any) -> Work:
        x = T.randn(*shape, dtype=getattr(T, COMPLEX[precision]))
        function = getattr(T.fft, "fft" + several)
        return lambda: function(x)

    def real(T: Any) -> Work:
        x = T.randn(*shape, dtype=getattr(T, REAL[precision]))
        function = getattr(T.fft, "rfft" + several)
        return lambda: function(x)

    def back(T: Any) -> Work:
        x = T.randn(*shape, dtype=getattr(T, REAL[precision]))
        half = getattr(T.fft, "rfft" + several)(x)
        function = getattr(T.fft, "irfft" + several)
        return lambda: function(half, sizes)

    _add(f"fft{several} {label} {precision}", forward)
    _add(f"rfft{several} {label} {precision}", real)
    _add(f"irfft{several} {label} {precision}", back)


def _columns(T: Any) -> Work:
    x = T.randn(1000, 1000, dtype=T.complex64)
    return lambda: T.fft.fft(x, dim=0)


def _gradient(T: Any) -> Work:
    x = T.randn(256, 1024, requires_grad=True)
    return lambda: T.autograd.grad(T.fft.rfft(x).abs().sum(), x)


def _stft(T: Any) -> Work:
    x, window = T.randn(8, 160_000), T.hann_window(400)
    return lambda: T.stft(x, 400, 160, window=window, return_complex=True)


def _istft(T: Any) -> Work:
    window = T.hann_window(512)
    x = T.stft(T.randn(8, 160_000), 512, 128, window=window, return_complex=True)
    return lambda: T.istft(x, 512, 128, window=window)


for _precision in ("f32", "f64"):
    _transforms((2**20,), _precision)
    _transforms((1000, 1000), _precision, "2")
    for _n in (256, 400, 1024):
        _transforms((1000, _n), _precision)
for _shape in ((16,), (1000,), (4096,), (65536,), (1009,), (64, 37), (64, 1009), (100_003,)):
    _transforms(_shape, "f32")
_transforms((64, 127, 127), "f32", "2")
_add("columns 1000x1000 f32", _columns)
_add("gradient of rfft", _gradient)
_add("stft 8x160000", _stft)
_add("istft 8x160000", _istft)

if __name__ == "__main__":
    main(__file__, __doc__)
