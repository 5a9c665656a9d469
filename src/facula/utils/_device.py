"""The default device, for libraries that set it without ``with facula.device(...)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from facula import _C, _device_context

__all__: list[str] = []


class DeviceContext:
    """New tensors lie on ``device`` while it is entered.

    Example::

        >>> from facula.utils._device import DeviceContext
        >>> with DeviceContext("meta"):
        ...     facula.ones(2).device
        device(type='meta')
    """

    def __init__(self, device: Any) -> None:
        self.device = _C.device(device)

    def __enter__(self) -> DeviceContext:
        _device_context.push(self.device)
        return self

    def __exit__(self, *exc: object) -> None:
        _device_context.pop()


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates functions: new tensors lie on ``device`` while they run."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with DeviceContext(device):
                return function(*args, **kwargs)

        return wrapped

    return decorate
