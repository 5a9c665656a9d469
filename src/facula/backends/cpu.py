"""What the processor can do."""

from __future__ import annotations

from facula import _C

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The vector instructions that are used: "AVX512", "AVX2" or "DEFAULT".

    Example::

        >>> facula.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
        True
    """
    return ("DEFAULT", "AVX2", "AVX512")[_C._isa()]
