"""The version of the package, in the form of PyTorch's ``torch.version``."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__: str = "0.1.0"
debug: bool = False
# CUDA is opened at run time and not built against; see facula.cuda.is_available().
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str | None = None
