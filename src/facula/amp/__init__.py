"""Mixed precision: operators in the dtype that suits them, and scaled gradients."""

from facula.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from facula.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
