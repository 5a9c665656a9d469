"""Optimizers, learning-rate schedulers and averages of weights."""

from facula import _C as _C
from facula.optim import lr_scheduler, swa_utils
from facula.optim._adafactor import Adafactor
from facula.optim._muon import Muon
from facula.optim._stateless import swap_in_optimizer_params_and_state
from facula.optim.adadelta import Adadelta
from facula.optim.adagrad import Adagrad
from facula.optim.adam import Adam
from facula.optim.adamax import Adamax
from facula.optim.adamw import AdamW
from facula.optim.asgd import ASGD
from facula.optim.lbfgs import LBFGS
from facula.optim.nadam import NAdam
from facula.optim.optimizer import Optimizer
from facula.optim.radam import RAdam
from facula.optim.rmsprop import RMSprop
from facula.optim.rprop import Rprop
from facula.optim.sgd import SGD
from facula.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "set_gradient_reuse_warning",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

# Checkpoints and reprs call these by their public home.
Adafactor.__module__ = "facula.optim"
Muon.__module__ = "facula.optim"


def set_gradient_reuse_warning(enabled: bool) -> bool:
    """Whether a step warns when it applies gradients that an earlier step has applied already.

    That happens in a training loop without ``zero_grad()``: each backward pass adds to what is
    there. The warning is given once; switching it on allows it once more.

    Returns:
        Whether it was on.

    Example::

        >>> before = facula.optim.set_gradient_reuse_warning(False)
        >>> facula.optim.set_gradient_reuse_warning(before)
        False
    """
    return _C._set_gradient_reuse_warning(enabled)
