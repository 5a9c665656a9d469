"""Layers and what models are made of."""

from facula.nn import attention, functional, init, modules, parameter, utils
from facula.nn.modules import *  # noqa: F403
from facula.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *modules.__all__,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
