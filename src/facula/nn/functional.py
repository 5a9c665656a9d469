"""The layers of ``facula.nn`` as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facula._namespaces import add_operators
from facula.nn._functions import activations, losses
from facula.nn._functions.activations import *  # noqa: F403
from facula.nn._functions.losses import *  # noqa: F403

if TYPE_CHECKING:
    from facula._op_nn_functional import *  # noqa: F403

__all__ = [*add_operators("nn.functional", globals())]
__all__ += activations.__all__
__all__ += losses.__all__
