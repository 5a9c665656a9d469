"""OpenMP, which Facula does not use: it has a pool of threads of its own."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False."""
    return False
