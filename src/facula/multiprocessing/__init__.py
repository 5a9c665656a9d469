"""Python's ``multiprocessing`` for tensors: queues and pipes hand their memory over, uncopied.

A tensor that is sent has its memory moved to a file without a name, which both processes map;
writes on either side are seen on the other. Only descriptors refer to the file, so it is gone as
soon as the last process is.

Example::

    >>> import facula.multiprocessing as mp
    >>> def double(t):
    ...     t *= 2
    >>> t = facula.ones(3).share_memory_()
    >>> process = mp.get_context("fork").Process(target=double, args=(t,))
    >>> process.start(); process.join()
    >>> t
    tensor([2., 2., 2.])
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

from facula.multiprocessing.reductions import init_reductions
from facula.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

init_reductions()

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that :func:`set_sharing_strategy` takes.

    Example::

        >>> sorted(facula.multiprocessing.get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What :func:`set_sharing_strategy` set."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted for the sake of programs that call it: either way, memory goes by descriptors, whose
    limit is raised as far as the system allows, and nothing is written to a file system.

    Example::

        >>> facula.multiprocessing.set_sharing_strategy("file_system")
        >>> facula.multiprocessing.get_sharing_strategy()
        'file_system'
        >>> facula.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"expected one of {sorted(_STRATEGIES)} as the sharing strategy, got {new_strategy!r}"
        )
    _strategy = new_strategy
