"""The layers of ``facula.nn`` as functions."""

from __future__ import annotations

from facula import _C
from facula.nn._functions import interpolation, pooling
from facula.nn._functions.interpolation import *  # noqa: F403
from facula.nn._functions.pooling import *  # noqa: F403

__all__: list[str] = [
    *interpolation.__all__,
    *pooling.__all__,
]

for _name, _function in _C._operators.items():
    if _name.startswith("nn.functional."):
        globals()[_name.removeprefix("nn.functional.")] = _function
        __all__.append(_name.removeprefix("nn.functional."))
del _name, _function
