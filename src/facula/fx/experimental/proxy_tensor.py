"""Whether operators are being recorded into a graph, which they never are."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """None: no graph is being recorded.

    Example::

        >>> from facula.fx.experimental.proxy_tensor import get_proxy_mode
        >>> get_proxy_mode() is None
        True
    """
    return None
