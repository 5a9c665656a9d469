"""The modules of ``facula.nn``, each in the file of its kind."""

from facula.nn.modules import container, identity
from facula.nn.modules.container import *  # noqa: F403
from facula.nn.modules.identity import *  # noqa: F403
from facula.nn.modules.module import Module

__all__ = [
    "Module",
    *container.__all__,
    *identity.__all__,
]
