"""Mixed precision for CUDA devices, under its old name; see ``facula.amp``."""

from facula.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from facula.cuda.amp.common import amp_definitely_not_available
from facula.cuda.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "custom_bwd",
    "custom_fwd",
]
