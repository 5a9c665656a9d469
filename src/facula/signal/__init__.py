"""Signal processing: window functions under ``facula.signal.windows``."""

from facula.signal import windows

__all__ = ["windows"]
