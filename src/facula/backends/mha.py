"""Whether attention layers may take a shorter way in inference."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """True when they may."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allows or forbids it.

    Example::

        >>> facula.backends.mha.set_fastpath_enabled(False)
        >>> facula.backends.mha.get_fastpath_enabled()
        False
        >>> facula.backends.mha.set_fastpath_enabled(True)
    """
    global _enabled
    _enabled = value
