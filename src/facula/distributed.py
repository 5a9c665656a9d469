"""Whether processes can work together: this build has no communication, and says so.

Programs that ask ``is_available()`` or ``is_initialized()`` first, as they must with PyTorch, run
on one process. What libraries import from here is there: ``init_process_group`` raises a
RuntimeError, and what needs a process group the ValueError that PyTorch raises when there is none.

Example::

    >>> import facula.distributed as dist
    >>> rank = dist.get_rank() if dist.is_available() else 0
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
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


class ReduceOp(IntEnum):
    """How tensors of several processes would be combined.

    Example::

        >>> facula.distributed.ReduceOp.SUM.name
        'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ProcessGroup:
    """The type of a group of processes, for annotations and ``isinstance``; there are none.

    Example::

        >>> isinstance(None, facula.distributed.ProcessGroup)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{type(self).__name__}: {_NO_COMMUNICATION}")


class Store(ProcessGroup):
    """The type of what processes would find each other by; there are none.

    Example::

        >>> isinstance(None, facula.distributed.Store)
        False
    """


class Work(ProcessGroup):
    """The type of communication under way; there is none.

    Example::

        >>> isinstance(None, facula.distributed.Work)
        False
    """


class Backend(str):
    """The name of a way to communicate, in lower case.

    Example::

        >>> facula.distributed.Backend("GLOO") == facula.distributed.Backend.GLOO
        True
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend: the name must be a str, not {name!r}")
        return super().__new__(cls, name.lower())


class GroupMember:
    """What a process that is not in a group gets in its place.

    Example::

        >>> facula.distributed.GroupMember.WORLD is None
        True
    """

    WORLD = None
    NON_GROUP_MEMBER = -100


class group:
    """``group.WORLD``, the group of all processes: None, since there is none.

    Example::

        >>> facula.distributed.group.WORLD is None
        True
    """

    WORLD = None


_NO_COMMUNICATION = (
    "this build of Facula has no communication between processes "
    "(facula.distributed.is_available() is False)"
)


def _needs_group(purpose: str, arguments: str) -> Callable[[_Function], _Function]:
    """Makes a function, of which there is only the head, say that there is no group."""

    def decorate(function: _Function) -> _Function:
        name = function.__name__

        @functools.wraps(function)
        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            function(*args, **kwargs)  # does nothing, or raises a TypeError
            raise ValueError(
                f"{name}(): Default process group has not been initialized; {_NO_COMMUNICATION}"
            )

        refuse.__doc__ = f"""{purpose}

    Raises a ValueError: there is no process group.

    Example::

        >>> try:
        ...     facula.distributed.{name}({arguments})
        ... except ValueError:
        ...     print("no process group")
        no process group
    """
        return cast("_Function", refuse)

    return decorate


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> NoReturn:
    """Raises a RuntimeError: processes cannot be connected.

    Example::

        >>> try:
        ...     facula.distributed.init_process_group("gloo")
        ... except RuntimeError:
        ...     print("no process group")
        no process group
    """
    raise RuntimeError(f"init_process_group(): {_NO_COMMUNICATION}")


def destroy_process_group(group: Any = None) -> NoReturn:
    """Raises an AssertionError, as PyTorch does: there is nothing to take down.

    Example::

        >>> try:
        ...     facula.distributed.destroy_process_group()
        ... except AssertionError:
        ...     print("no process group")
        no process group
    """
    raise AssertionError("destroy_process_group(): there is no process group")


@_needs_group("Would collect a tensor of every process in a list.", "[], facula.ones(1)")
def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any: ...


@_needs_group(
    "Would collect a tensor of every process in one tensor.",
    "facula.ones(2), facula.ones(1)",
)
def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Any: ...


@_needs_group("Would collect an object of every process in a list.", "[], 1")
def all_gather_object(object_list: Any, obj: Any, group: Any = None) -> Any: ...


@_needs_group("Would combine the tensors of all processes, in place.", "facula.ones(1)")
def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any: ...


@_needs_group("Would send a tensor of a list to each process.", "[], []")
def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any: ...


@_needs_group("Would send a part of a tensor to each process.", "facula.ones(1), facula.ones(1)")
def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any: ...


@_needs_group("Would wait for all processes.", "")
def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> Any: ...


@_needs_group("Would give a tensor of one process to all.", "facula.ones(1), 0")
def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any: ...


@_needs_group("Would give objects of one process to all.", "[1], 0")
def broadcast_object_list(
    object_list: Any,
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> Any: ...


@_needs_group("Would collect a tensor of every process on one.", "facula.ones(1)")
def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any: ...


@_needs_group("Would collect an object of every process on one.", "1")
def gather_object(
    obj: Any,
    object_gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> Any: ...


@_needs_group("Would name how the processes of a group communicate.", "")
def get_backend(group: Any = None) -> Any: ...


@_needs_group("Would give the number among all processes of a member of a group.", "None, 0")
def get_global_rank(group: Any, group_rank: int) -> Any: ...


@_needs_group("Would give the number in a group of one of all processes.", "None, 0")
def get_group_rank(group: Any, global_rank: int) -> Any: ...


@_needs_group("Would list the processes of a group.", "None")
def get_process_group_ranks(group: Any) -> Any: ...


@_needs_group("Would give the number of this process.", "")
def get_rank(group: Any = None) -> Any: ...


@_needs_group("Would give the number of processes.", "")
def get_world_size(group: Any = None) -> Any: ...


@_needs_group("Would start to receive a tensor.", "facula.ones(1), 0")
def irecv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Any: ...


@_needs_group("Would start to send a tensor.", "facula.ones(1), 0")
def isend(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Any: ...


@_needs_group("Would wait for all processes, and name those that do not come.", "")
def monitored_barrier(
    group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
) -> Any: ...


@_needs_group("Would make a group of some processes.", "[0]")
def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: Any = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any: ...


@_needs_group("Would receive a tensor.", "facula.ones(1), 0")
def recv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Any: ...


@_needs_group("Would combine the tensors of all processes on one.", "facula.ones(1), 0")
def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any: ...


@_needs_group(
    "Would combine lists of tensors and give each process one of them.",
    "facula.ones(1), []",
)
def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any: ...


@_needs_group(
    "Would combine tensors and give each process a part.",
    "facula.ones(1), facula.ones(1)",
)
def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any: ...


@_needs_group("Would give each process a tensor of a list.", "facula.ones(1)")
def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any: ...


@_needs_group("Would give each process an object of a list.", "[]")
def scatter_object_list(
    scatter_object_output_list: Any,
    scatter_object_input_list: Any = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> Any: ...


@_needs_group("Would send a tensor.", "facula.ones(1), 0")
def send(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Any: ...
