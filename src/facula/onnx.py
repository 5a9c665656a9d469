"""Whether a model is being exported to ONNX, which layers ask; it never is.

Example::

    >>> facula.onnx.is_in_onnx_export()
    False
"""

from __future__ import annotations

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """False: there is no export.

    Example::

        >>> facula.onnx.is_in_onnx_export()
        False
    """
    return False
