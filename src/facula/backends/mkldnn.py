"""Intel's oneDNN, which Facula does not use: convolutions are its own."""

from __future__ import annotations

from facula.backends._options import make_options

__all__ = ["is_available"]


def is_available() -> bool:
    """False."""
    return False


make_options(__name__, enabled=True, deterministic=False, allow_tf32=True)
