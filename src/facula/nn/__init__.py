"""Layers and what models are made of."""

from facula.nn import functional, init, modules, parameter
from facula.nn.modules import *  # noqa: F403
from facula.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from facula.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *modules.__all__,
    "Buffer",
    "LinearCrossEntropyOptions",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
]
