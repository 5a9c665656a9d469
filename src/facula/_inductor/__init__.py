"""Where scripts set how PyTorch's compiler generates code; nothing is generated."""

from facula._inductor import config as config

__all__ = ["config"]
