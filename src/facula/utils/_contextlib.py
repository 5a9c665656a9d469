"""Base classes of context managers that are decorators, too, for subclasses in libraries."""

from __future__ import annotations

from typing import Any

from facula.autograd.grad_mode import _Mode as _DecoratorContextManager

__all__: list[str] = []


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without parameters: its class decorates without being called."""

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)
