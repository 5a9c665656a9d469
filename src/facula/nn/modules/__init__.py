"""The modules of ``facula.nn``, each in the file of its kind."""

from facula.nn.modules import (
    adaptive,
    attention,
    container,
    conv,
    identity,
    linear,
    rnn,
    sparse,
    transformer,
)
from facula.nn.modules.adaptive import *  # noqa: F403
from facula.nn.modules.attention import *  # noqa: F403
from facula.nn.modules.container import *  # noqa: F403
from facula.nn.modules.conv import *  # noqa: F403
from facula.nn.modules.identity import *  # noqa: F403
from facula.nn.modules.linear import *  # noqa: F403
from facula.nn.modules.module import Module
from facula.nn.modules.rnn import *  # noqa: F403
from facula.nn.modules.sparse import *  # noqa: F403
from facula.nn.modules.transformer import *  # noqa: F403

__all__ = [
    "Module",
    *adaptive.__all__,
    *attention.__all__,
    *container.__all__,
    *conv.__all__,
    *identity.__all__,
    *linear.__all__,
    *rnn.__all__,
    *sparse.__all__,
    *transformer.__all__,
]
