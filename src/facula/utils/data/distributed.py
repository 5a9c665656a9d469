"""Which samples each process of a distributed program loads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import facula
from facula.utils.data.dataset import Dataset
from facula.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


def _process_group(rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    if rank is None or num_replicas is None:
        from importlib.util import find_spec

        distributed: Any = None
        if find_spec("facula.distributed"):
            from importlib import import_module

            distributed = import_module("facula.distributed")
        if distributed is None or not distributed.is_available():
            raise RuntimeError("Requires distributed package to be available")
        if num_replicas is None:
            num_replicas = distributed.get_world_size()
        if rank is None:
            rank = distributed.get_rank()
    return rank, num_replicas


class DistributedSampler(Sampler[_T_co]):
    """Every ``num_replicas``-th index, from ``rank`` on, in an order that all processes agree on.

    Args:
        dataset: what is sampled; all processes have the same.
        num_replicas: how many processes there are; that of the process group by default.
        rank: which one this is; that of the process group by default.
        shuffle: whether the order is random, from ``seed`` and the epoch.
        seed: the same in all processes.
        drop_last: whether samples at the end are left out so that all processes have as many;
            otherwise some come twice.

    Call :meth:`set_epoch` before each epoch, or every one has the same order.

    Example::

        >>> sampler = facula.utils.data.DistributedSampler(
        ...     range(5), num_replicas=2, rank=1, shuffle=False)
        >>> list(sampler)
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        rank, num_replicas = _process_group(rank, num_replicas)
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)  # type: ignore[arg-type]
        if drop_last:
            self.num_samples = size // num_replicas
        else:
            self.num_samples = math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[_T_co]:
        size = len(self.dataset)  # type: ignore[arg-type]
        if self.shuffle:
            generator = facula.Generator().manual_seed(self.seed + self.epoch)
            order = facula.randperm(size, generator=generator).tolist()
        else:
            order = list(range(size))
        if len(order) < self.total_size and order:  # from the front again
            order *= math.ceil(self.total_size / len(order))
        mine = order[self.rank : self.total_size : self.num_replicas]
        if len(mine) != self.num_samples:
            raise AssertionError(
                f"the dataset had another length when the sampler was made: {len(mine)} samples "
                f"for this process instead of {self.num_samples}"
            )
        return iter(mine)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self.epoch = epoch
