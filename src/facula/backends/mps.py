"""Apple's Metal, which Facula does not use."""

__all__ = ["is_available", "is_built", "is_macos13_or_newer"]


def is_available() -> bool:
    """False: there are no devices of this kind."""
    return False


def is_built() -> bool:
    """False: Facula has no kernels for Metal."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """False: the question is about devices that are not used."""
    return False
