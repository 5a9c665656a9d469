"""The modules of ``facula.nn``, each in the file of its kind."""

import facula.nn.modules.utils  # noqa: F401  (by its full name: facula.nn has another utils)
from facula.nn.modules.activation import *  # noqa: F403
from facula.nn.modules.adaptive import *  # noqa: F403
from facula.nn.modules.attention import *  # noqa: F403
from facula.nn.modules.batchnorm import *  # noqa: F403
from facula.nn.modules.channelshuffle import *  # noqa: F403
from facula.nn.modules.container import *  # noqa: F403
from facula.nn.modules.conv import *  # noqa: F403
from facula.nn.modules.distance import *  # noqa: F403
from facula.nn.modules.dropout import *  # noqa: F403
from facula.nn.modules.flatten import *  # noqa: F403
from facula.nn.modules.fold import *  # noqa: F403
from facula.nn.modules.identity import *  # noqa: F403
from facula.nn.modules.instancenorm import *  # noqa: F403
from facula.nn.modules.linear import *  # noqa: F403
from facula.nn.modules.loss import *  # noqa: F403
from facula.nn.modules.module import Module as Module
from facula.nn.modules.normalization import *  # noqa: F403
from facula.nn.modules.padding import *  # noqa: F403
from facula.nn.modules.pixelshuffle import *  # noqa: F403
from facula.nn.modules.pooling import *  # noqa: F403
from facula.nn.modules.rnn import *  # noqa: F403
from facula.nn.modules.sparse import *  # noqa: F403
from facula.nn.modules.transformer import *  # noqa: F403
from facula.nn.modules.upsampling import *  # noqa: F403

# Computed, and so out of sight of type checkers, which would take the list to be empty.
globals()["__all__"] = [
    name for name, it in [*globals().items()] if isinstance(it, type) and issubclass(it, Module)
]
