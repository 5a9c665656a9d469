"""One module in several processes, which this build cannot connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from facula import distributed
from facula.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are the means over processes. Libraries ask whether a model is one;
    making one raises, as in PyTorch, a ValueError: there is no process group.

    Example::

        >>> net = facula.nn.Linear(2, 1)
        >>> isinstance(net, facula.nn.parallel.DistributedDataParallel)
        False
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        distributed.get_world_size()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients are added up without being shared; without other processes nothing changes."""
        yield
