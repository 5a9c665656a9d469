"""Mixed precision for the CPU, under its old name; see ``facula.amp``."""

from facula.cpu.amp.autocast_mode import autocast
from facula.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
