"""Modules at work at the same time, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import facula

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Any],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The results of modules, each called with its arguments.

    An exception in one of them is raised here, when all have ended.

    Example::

        >>> facula.nn.parallel.parallel_apply([abs, abs], [facula.tensor(-1), facula.tensor(-2)])
        [tensor(1), tensor(2)]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"got {len(inputs)} inputs for {len(modules)} modules")
    names = kwargs_tup or [{} for _ in modules]
    if len(names) != len(modules) or (devices is not None and len(devices) != len(modules)):
        raise AssertionError(f"{len(modules)} modules need as many kwargs and devices")
    results: list[Any] = [None] * len(modules)
    errors: list[BaseException | None] = [None] * len(modules)
    grad = facula.is_grad_enabled()
    autocast = [
        {
            "device_type": kind,
            "enabled": facula.is_autocast_enabled(kind),
            "dtype": facula.get_autocast_dtype(kind),
        }
        for kind in ("cpu", "cuda")
        if facula.is_autocast_enabled(kind)
    ]

    def work(i: int) -> None:
        argument = inputs[i]
        arguments = argument if isinstance(argument, (list, tuple)) else (argument,)
        try:
            with ExitStack() as stack:
                stack.enter_context(facula.set_grad_enabled(grad))
                for settings in autocast:
                    stack.enter_context(facula.autocast(**settings))
                results[i] = modules[i](*arguments, **names[i])
        except Exception as error:
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(f"in replica {i}" + (f" on {devices[i]}" if devices else ""))
            errors[i] = error

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results
