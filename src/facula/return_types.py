"""The types of results that have names: ``facula.return_types.max(values=..., indices=...)``."""

from __future__ import annotations

from typing import Any

from facula import _C


def __getattr__(name: str) -> Any:
    if name == "histogramdd":  # made in Python
        from facula._grids import HistogramDD as found
    else:
        found = _C._result_type(name)
    if found is None:
        raise AttributeError(f"module 'facula.return_types' has no attribute {name!r}")
    globals()[name] = found
    return found
