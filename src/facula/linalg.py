"""Linear algebra: the operators under ``facula.linalg`` and the error that factorisations raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facula._errors import LinAlgError
from facula._namespaces import add_operators

if TYPE_CHECKING:
    from facula._op_linalg import *  # noqa: F403

__all__ = ["LinAlgError", *add_operators("linalg", globals())]
