"""Runs a function in several processes and watches over them."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """One of the processes failed.

    Attributes:
        msg: what happened.
        error_index: which process.
        pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised in one of the processes; the message has the traceback."""


class ProcessExitedException(ProcessException):
    """One of the processes ended with another exit code than 0, or by a signal.

    Attributes:
        exit_code: the exit code; negative for signals.
        signal_name: the signal's name, or None.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        args = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), args


_LONGEST_REPORT = 32768  # fits into a pipe that nobody reads from yet


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], report: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent gets one, too
    except Exception:
        report.send_bytes(traceback.format_exc().encode()[-_LONGEST_REPORT:])
        sys.exit(1)


class ProcessContext:
    """The processes that :func:`start_processes` started.

    Args:
        processes: they.
        reports: pipes into which each writes the traceback of an exception.
    """

    def __init__(self, processes: list[Any], reports: list[Any]) -> None:
        self.processes, self.reports = processes, reports
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for processes to end. True when all have; raises when one failed, after ending the
        others.

        Args:
            timeout: seconds to wait at most.
            grace_period: seconds that the others get to end by themselves when one failed.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[index]
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        self._raise(failed)
        return False

    def _end_others(self, grace_period: float | None) -> None:
        if grace_period is not None:
            deadline = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0.0, deadline - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + (30 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        report = None
        with contextlib.suppress(EOFError, OSError):
            if self.reports[index].poll():
                report = self.reports[index].recv_bytes().decode("utf-8", "replace")
        if report is not None:
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{report}",
                index,
                process.pid,
            )
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, process.pid, code
        )


class SpawnContext(ProcessContext):
    """What :func:`spawn` returns with ``join=False``."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in processes 0 to ``nprocs - 1``.

    Args:
        fn: the function; with "spawn", one that can be pickled.
        args: its further arguments.
        nprocs: how many processes.
        join: whether to wait for all of them; raises when one fails.
        daemon: whether they end with this process.
        start_method: "spawn", "fork" or "forkserver".
        numa_options: accepted for PyTorch's sake; only None.

    Example::

        >>> results = facula.zeros(2).share_memory_()
        >>> def work(i, results):
        ...     results[i] = i + 1
        >>> facula.multiprocessing.start_processes(work, (results,), 2, start_method="fork")
        >>> results
        tensor([1., 2.])
    """
    if numa_options is not None:
        raise NotImplementedError("start_processes(): numa_options are not supported")
    context = multiprocessing.get_context(start_method)
    processes: list[Any] = []
    reports: list[Any] = []
    made = SpawnContext if start_method == "spawn" else ProcessContext
    for i in range(nprocs):
        report, theirs = context.Pipe(duplex=False)
        reports.append(report)
        process = context.Process(target=_run, args=(fn, i, args, theirs), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        processes.append(process)
    running = made(processes, reports)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in new processes; see :func:`start_processes`."""
    if start_method != "spawn":
        import warnings

        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}). To use a "
            "different start_method use facula.multiprocessing.start_processes(...)",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
