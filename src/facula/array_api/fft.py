"""The extension ``fft`` of the array API standard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import facula
from facula import Tensor

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm = Literal["backward", "ortho", "forward"]


def _along_one(name: str, doc: str) -> Callable[..., Tensor]:
    function = getattr(facula.fft, name)

    def call(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Tensor:
        return function(x, n, axis, norm)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _along_many(name: str, doc: str) -> Callable[..., Tensor]:
    function = getattr(facula.fft, name)

    def call(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor:
        return function(x, s, axes, norm)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


fft = _along_one("fft", "The Fourier transform along an axis.")
ifft = _along_one("ifft", "What :func:`fft` transforms into an array.")
rfft = _along_one(
    "rfft", "The Fourier transform of real numbers, without what follows by symmetry."
)
irfft = _along_one("irfft", "What :func:`rfft` transforms into an array.")
hfft = _along_one("hfft", "The Fourier transform of numbers with the symmetry of a real spectrum.")
ihfft = _along_one("ihfft", "What :func:`hfft` transforms into an array.")
fftn = _along_many("fftn", "The Fourier transform along several axes.")
ifftn = _along_many("ifftn", "What :func:`fftn` transforms into an array.")
rfftn = _along_many("rfftn", "The Fourier transform of real numbers along several axes.")
irfftn = _along_many("irfftn", "What :func:`rfftn` transforms into an array.")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: facula.dtype | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the elements that :func:`fft` gives."""
    return facula.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: facula.dtype | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the elements that :func:`rfft` gives."""
    return facula.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency zero in the middle."""
    return facula.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency zero in front again."""
    return facula.fft.ifftshift(x, axes)
