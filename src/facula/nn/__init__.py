"""Layers and what models are made of."""

from facula.nn import functional, init, modules, parameter
from facula.nn.modules import *  # noqa: F403
from facula.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

from facula.nn import utils  # isort: skip  (it needs the classes above)

__all__ = [
    *modules.__all__,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
