"""Files that are written in full or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replacing(path: str) -> Iterator[Any]:
    """A file to write to, which takes the place of ``path`` when the block ends without an error.

    Until then, ``path`` is as it was, and so it stays when the process is killed. Links are
    followed; what is no ordinary file (a pipe, a device) is written to directly.
    """
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    folder = os.path.dirname(path)
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(f"no permission to write to {path!r}")
    if not os.access(folder, os.W_OK):
        # Nothing can be put beside it, so that there is no way but to write into the file.
        with open(path, "wb") as file:
            yield file
        return
    beside = os.path.join(folder, f".{os.path.basename(path)[:200]}.{secrets.token_hex(8)}")
    file, named = _open_unnamed(folder, beside)
    try:
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            if not named:
                _give_name(file.fileno(), folder, beside)
                named = True
        os.replace(beside, path)
    except BaseException:
        if named:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        raise


def _open_unnamed(folder: str, beside: str) -> tuple[Any, bool]:
    """A file without a name, where the system has them: it cannot be left behind."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b"), False
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    return os.fdopen(descriptor, "w+b"), True


def _give_name(descriptor: int, folder: str, name: str) -> None:
    # Only with a folder's descriptor does os.link follow the link to the file itself.
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=at, follow_symlinks=True)
    finally:
        os.close(at)
