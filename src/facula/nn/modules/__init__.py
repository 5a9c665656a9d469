"""The modules of ``facula.nn``, each in the file of its kind."""

from facula.nn.modules import (
    channelshuffle,
    container,
    distance,
    flatten,
    fold,
    identity,
    padding,
    pixelshuffle,
    pooling,
    upsampling,
)
from facula.nn.modules.channelshuffle import *  # noqa: F403
from facula.nn.modules.container import *  # noqa: F403
from facula.nn.modules.distance import *  # noqa: F403
from facula.nn.modules.flatten import *  # noqa: F403
from facula.nn.modules.fold import *  # noqa: F403
from facula.nn.modules.identity import *  # noqa: F403
from facula.nn.modules.module import Module
from facula.nn.modules.padding import *  # noqa: F403
from facula.nn.modules.pixelshuffle import *  # noqa: F403
from facula.nn.modules.pooling import *  # noqa: F403
from facula.nn.modules.upsampling import *  # noqa: F403

__all__ = [
    "Module",
    *channelshuffle.__all__,
    *container.__all__,
    *distance.__all__,
    *flatten.__all__,
    *fold.__all__,
    *identity.__all__,
    *padding.__all__,
    *pixelshuffle.__all__,
    *pooling.__all__,
    *upsampling.__all__,
]
