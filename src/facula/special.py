"""Special functions: the operators under ``facula.special``."""

from __future__ import annotations

from facula import _C

__all__: list[str] = []

for _name, _function in _C._operators.items():
    if _name.startswith("special."):
        globals()[_name.removeprefix("special.")] = _function
        __all__.append(_name.removeprefix("special."))
del _name, _function
