"""The module that changes nothing."""

from __future__ import annotations

from typing import Any

from facula.nn.modules.module import Module

__all__ = ["Identity"]


class Identity(Module):
    """Returns its input; arguments are accepted and ignored.

    Example::

        >>> facula.nn.Identity(54, unused=True)(facula.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input
