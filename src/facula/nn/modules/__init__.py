"""The modules of ``facula.nn``, each in the file of its kind."""

from facula.nn.modules import (
    activation,
    batchnorm,
    container,
    dropout,
    identity,
    instancenorm,
    loss,
    module,
    normalization,
)
from facula.nn.modules.activation import *  # noqa: F403
from facula.nn.modules.batchnorm import *  # noqa: F403
from facula.nn.modules.container import *  # noqa: F403
from facula.nn.modules.dropout import *  # noqa: F403
from facula.nn.modules.identity import *  # noqa: F403
from facula.nn.modules.instancenorm import *  # noqa: F403
from facula.nn.modules.loss import *  # noqa: F403
from facula.nn.modules.module import Module
from facula.nn.modules.normalization import *  # noqa: F403

__all__ = [
    "Module",
    *activation.__all__,
    *batchnorm.__all__,
    *container.__all__,
    *dropout.__all__,
    *identity.__all__,
    *instancenorm.__all__,
    *loss.__all__,
    *normalization.__all__,
]
