"""The layers of ``facula.nn`` as functions."""

from __future__ import annotations

from facula import _C

__all__: list[str] = []

for _name, _function in _C._operators.items():
    if _name.startswith("nn.functional."):
        globals()[_name.removeprefix("nn.functional.")] = _function
        __all__.append(_name.removeprefix("nn.functional."))
del _name, _function

from facula.nn._functions import attention as _attention  # noqa: E402
from facula.nn._functions.attention import *  # noqa: E402, F403

__all__ += _attention.__all__
