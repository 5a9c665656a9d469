"""The order of contractions in ``einsum``.

Facula looks for a good order itself; the package opt_einsum is not needed.
"""

from __future__ import annotations

from facula.backends._options import make_options

__all__ = ["is_available"]


def is_available() -> bool:
    """False: the package is not used."""
    return False


_self = make_options(__name__, enabled=True, strategy="auto")
