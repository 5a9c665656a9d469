"""Window functions: the operators under ``facula.signal.windows``."""

from __future__ import annotations

from facula import _C

__all__ = []

for _name, _function in _C._operators.items():
    if _name.startswith("signal.windows."):
        globals()[_name.removeprefix("signal.windows.")] = _function
        __all__.append(_name.removeprefix("signal.windows."))
del _name, _function
