"""Layers and what models are made of."""

from facula.nn import attention as attention
from facula.nn import functional as functional
from facula.nn import init as init
from facula.nn import modules as modules
from facula.nn import parameter as parameter
from facula.nn.modules import *  # noqa: F403
from facula.nn.modules.linear_cross_entropy_options import (
    LinearCrossEntropyOptions as LinearCrossEntropyOptions,
)
from facula.nn.parameter import Buffer as Buffer
from facula.nn.parameter import Parameter as Parameter
from facula.nn.parameter import UninitializedBuffer as UninitializedBuffer
from facula.nn.parameter import UninitializedParameter as UninitializedParameter

from facula.nn.parameter import factory_kwargs as factory_kwargs  # isort: skip
from facula.nn import utils as utils  # isort: skip  (it needs the classes above)
from facula.nn import parallel as parallel  # isort: skip
from facula.nn import grad as grad  # isort: skip
from facula.nn import common_types as common_types  # isort: skip
from facula.nn.parallel import DataParallel as DataParallel  # isort: skip
