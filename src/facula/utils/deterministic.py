"""``fill_uninitialized_memory``: what ``use_deterministic_algorithms`` does to unwritten memory."""

from __future__ import annotations

import sys
import types

from facula import _C


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether ``empty`` fills its memory while deterministic algorithms are asked for."""
        return _C._fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory must be a bool, not {type(mode).__name__}")
        _C._set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
