"""The modules of ``facula.nn``, each in the file of its kind."""

from facula.nn.modules.container import (
    Container,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from facula.nn.modules.identity import Identity
from facula.nn.modules.module import Module

__all__ = [
    "Container",
    "Identity",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]
