"""What the Fourier transforms compute, in NumPy: see references.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _axes(a, s, dim):
    if dim is not None:
        return tuple(dim)
    return tuple(range(a.ndim)) if s is None else tuple(range(a.ndim - len(s), a.ndim))


def _sizes(a, s, axes, halved: bool = False):
    """The points of each axis; the last one of half a spectrum has twice as many less two."""
    sizes = [a.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(axes)]
    if halved and (s is None or s[-1] == -1):
        sizes[-1] = 2 * (a.shape[axes[-1]] - 1)
    return sizes


def _several(function: Callable[..., Any], halved: bool = False) -> Callable[..., Any]:
    def reference(a, s=None, dim=None, norm=None):
        axes = _axes(a, s, dim)
        if not axes:
            return a.astype(np.complex128)
        return function(a, _sizes(a, s, axes, halved), axes, norm)

    return reference


def _two(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, s=None, dim=(-2, -1), norm=None: reference(a, s, dim, norm)


def _hfftn(a, s, axes, norm):
    for n, axis in zip(s[:-1], axes[:-1], strict=True):
        a = np.fft.fft(a, n, axis, norm)
    return np.fft.hfft(a, s[-1], axes[-1], norm)


def _ihfftn(a, s, axes, norm):
    a = np.fft.ihfft(a, s[-1], axes[-1], norm)
    for n, axis in zip(s[:-1], axes[:-1], strict=True):
        a = np.fft.ifft(a, n, axis, norm)
    return a


def _one(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, n=None, dim=-1, norm=None: function(a, n, dim, norm)


def _centered(window, size):
    before = (size - len(window)) // 2
    return np.pad(window, (before, size - len(window) - before))


def _stft(
    a,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    hop, win_length = hop_length or n_fft // 4, win_length or n_fft
    modes = {"replicate": "edge", "circular": "wrap"}
    if center:
        sides = [(0, 0)] * (a.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        a = np.pad(a, sides, mode=modes.get(pad_mode, pad_mode))
    elif align_to_window:
        missing = n_fft - win_length
        a = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(missing // 2, missing - missing // 2)])
    starts = range(0, a.shape[-1] - n_fft + 1, hop)
    frames = np.stack([a[..., i : i + n_fft] for i in starts], -1)
    frames = frames * _centered(window, n_fft)[:, None]
    half = onesided if onesided is not None else not np.iscomplexobj(a)
    transform = np.fft.rfft if half else np.fft.fft
    result = transform(frames, axis=-2, norm="ortho" if normalized else None)
    if return_complex is False:
        return np.stack([result.real, result.imag], -1)
    return result


def _istft(
    a,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    hop = hop_length or n_fft // 4
    norm = "ortho" if normalized else None
    if return_complex:
        frames = np.fft.ifft(a, n_fft, axis=-2, norm=norm)
    else:
        frames = np.fft.irfft(a, n_fft, axis=-2, norm=norm)  # reads half of the frequencies
    window = _centered(window, n_fft)
    total = (a.shape[-1] - 1) * hop + n_fft
    signal = np.zeros((*a.shape[:-2], total), dtype=frames.dtype)
    envelope = np.zeros(total)
    for i in range(a.shape[-1]):
        signal[..., i * hop : i * hop + n_fft] += frames[..., i] * window
        envelope[i * hop : i * hop + n_fft] += window**2
    start = n_fft // 2 if center else 0
    end = start + length if length else total - start
    result = signal[..., start:end] / envelope[start:end]
    missing = end - start - result.shape[-1]
    return np.concatenate([result, np.zeros((*result.shape[:-1], missing))], -1)


BY_ROW: dict[str, Callable[..., Any]] = {
    **{f"fft_{n}": _one(getattr(np.fft, n)) for n in ("fft", "ifft", "rfft", "irfft")},
    "fft_hfft": _one(np.fft.hfft),
    "fft_ihfft": _one(np.fft.ihfft),
    "fft_fftshift": lambda a, dim=None: np.fft.fftshift(a, dim),
    "fft_ifftshift": lambda a, dim=None: np.fft.ifftshift(a, dim),
    "stft": _stft,
    "istft": _istft,
}
for _name, _function in {
    "fft": np.fft.fftn,
    "ifft": np.fft.ifftn,
    "rfft": np.fft.rfftn,
    "irfft": np.fft.irfftn,
    "hfft": _hfftn,
    "ihfft": _ihfftn,
}.items():
    _reference = _several(_function, halved=_name in ("irfft", "hfft"))
    BY_ROW[f"fft_{_name}n"] = _reference
    BY_ROW[f"fft_{_name}2"] = _two(_reference)
