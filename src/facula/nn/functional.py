"""The layers of ``facula.nn`` as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facula._namespaces import add_operators

if TYPE_CHECKING:
    from facula._op_nn_functional import *  # noqa: F403

__all__ = [*add_operators("nn.functional", globals())]
