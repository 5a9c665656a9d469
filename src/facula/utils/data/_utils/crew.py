"""The workers of an iterator."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from facula.utils.data._utils.process_worker import ProcessWorker


class Crew(list[Any]):
    """The workers of an iterator, which end with it."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()
        self._is_dismissed = False

    def dismiss(self, at_once: bool = False) -> None:
        """Ends the workers."""
        if self._is_dismissed:
            return
        self._is_dismissed = True
        if os.getpid() != self._process:  # a copy in a forked process: they are not its own
            return
        for worker in self:
            worker.close()
        if at_once:
            for worker in self:
                if isinstance(worker, ProcessWorker) and worker.process is not None:
                    worker.process.terminate()
        for worker in self:
            worker.join()

    def __del__(self) -> None:
        # When the interpreter ends, modules may be gone before this.
        with contextlib.suppress(AttributeError, TypeError, ImportError):
            self.dismiss()
