"""Discrete Fourier transforms: the operators under ``facula.fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facula._namespaces import add_operators

if TYPE_CHECKING:
    from facula._op_fft import *  # noqa: F403

__all__ = [*add_operators("fft", globals())]
