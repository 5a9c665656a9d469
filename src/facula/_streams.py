"""Streams and events of whatever device there is: here CUDA."""

from __future__ import annotations

from typing import Any

from facula.cuda import streams

__all__ = ["Event", "Stream"]

Stream = streams.Stream


class Event(streams.Event):
    """An event of a device, the current one by default; see ``facula.cuda.Event``.

    Example::

        >>> facula.Event(enable_timing=True).query()
        True
    """

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        super().__init__(enable_timing, blocking, interprocess)
