"""Puts the operators of the table into the modules that their dotted names speak of."""

from __future__ import annotations

from typing import Any

from facula import _C


def add_operators(namespace: str, module: dict[str, Any]) -> list[str]:
    """Adds ``namespace.name`` as ``name`` to a module's globals; returns the names."""
    names = []
    for dotted, function in _C._operators.items():
        space, _, name = dotted.rpartition(".")
        if space == namespace:
            module[name] = function
            names.append(name)
    return names
