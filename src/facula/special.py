"""Special functions: the operators under ``facula.special``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facula._namespaces import add_operators

if TYPE_CHECKING:
    from facula._op_special import *  # noqa: F403

__all__ = [*add_operators("special", globals())]
