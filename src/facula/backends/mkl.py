"""Intel's MKL, which Facula does not use: matrix products and factorisations are OpenBLAS's."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False."""
    return False
