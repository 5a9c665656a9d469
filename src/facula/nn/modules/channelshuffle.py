"""The layer that deals channels out again."""

from __future__ import annotations

from facula import Tensor
from facula.nn import functional as F
from facula.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Deals the channels of (N, C, ...) out again, one from each of ``groups`` groups at a time.

    Example::

        >>> facula.nn.ChannelShuffle(2)(facula.arange(4).reshape(1, 4, 1, 1)).flatten()
        tensor([0, 2, 1, 3])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
