"""Whether processes can work together: this build has no communication, and says so.

Programs that ask ``is_available()`` first, as they must with PyTorch built without it, run on one
process.

Example::

    >>> import facula.distributed as dist
    >>> rank = dist.get_rank() if dist.is_available() else 0
"""

from __future__ import annotations

import os

__all__ = [
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
]


def is_available() -> bool:
    """False: there are no process groups.

    Example::

        >>> facula.distributed.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """False: no process group has been set up.

    Example::

        >>> facula.distributed.is_initialized()
        False
    """
    return False


def is_gloo_available() -> bool:
    """False: Gloo is not used.

    Example::

        >>> facula.distributed.is_gloo_available()
        False
    """
    return False


def is_mpi_available() -> bool:
    """False: MPI is not used.

    Example::

        >>> facula.distributed.is_mpi_available()
        False
    """
    return False


def is_nccl_available() -> bool:
    """False: NCCL is not used.

    Example::

        >>> facula.distributed.is_nccl_available()
        False
    """
    return False


def is_ucc_available() -> bool:
    """False: UCC is not used.

    Example::

        >>> facula.distributed.is_ucc_available()
        False
    """
    return False


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher has started this process, which it says in the environment.

    Example::

        >>> facula.distributed.is_torchelastic_launched()
        False
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
