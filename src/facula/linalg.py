"""Linear algebra: the operators under ``facula.linalg`` and the error that factorisations raise."""

from __future__ import annotations

from facula import _C
from facula._errors import LinAlgError

__all__ = ["LinAlgError"]

for _name, _function in _C._operators.items():
    if _name.startswith("linalg."):
        globals()[_name.removeprefix("linalg.")] = _function
        __all__.append(_name.removeprefix("linalg."))
del _name, _function
