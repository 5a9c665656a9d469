"""Modules without the cost of their initialisation."""

from __future__ import annotations

import inspect
from typing import Any

from facula.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Makes a module whose parameters are not initialised.

    Args:
        module_cls: the class of the module, which must accept ``device``.
        args: the arguments of the class.
        kwargs: its keyword arguments.

    Example::

        >>> class Scale(facula.nn.Module):
        ...     def __init__(self, n, device=None):
        ...         super().__init__()
        ...         self.factor = facula.nn.Parameter(facula.zeros(n, device=device))
        >>> facula.nn.utils.skip_init(Scale, 3).factor.shape
        facula.Size([3])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
