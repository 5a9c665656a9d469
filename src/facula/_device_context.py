"""``with facula.device(...)``: the stack of default devices."""

from __future__ import annotations

import threading
from typing import Any

from facula import _C

_state = threading.local()


def push(device: Any) -> None:
    stack = _state.__dict__.setdefault("stack", [])
    stack.append(_C.get_default_device())
    _C._set_default_device(device)


def pop() -> None:
    _C._set_default_device(_state.stack.pop())
