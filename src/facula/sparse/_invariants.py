"""Whether constructors check more than what keeps memory safe."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

_enabled = False


def asked_for(given: bool | None) -> bool:
    """What an argument ``check_invariants`` means."""
    return _enabled if given is None else given


class check_sparse_tensor_invariants:
    """Switches the checks of sparse tensors' invariants on or off.

    Indices are always checked against the size. With the checks on, compressed layouts must have
    sorted, distinct indices in every row, and ``is_coalesced=True`` must be true. Also a context
    manager and a decorator.

    Example::

        >>> with facula.sparse.check_sparse_tensor_invariants():
        ...     facula.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether the checks are on."""
        return _enabled

    @staticmethod
    def enable() -> None:
        """Switches the checks on."""
        global _enabled
        _enabled = True

    @staticmethod
    def disable() -> None:
        """Switches the checks off."""
        global _enabled
        _enabled = False

    def __enter__(self) -> None:
        global _enabled
        if self._before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self._before = _enabled
        _enabled = self.state

    def __exit__(self, *exc: object) -> None:
        global _enabled
        assert self._before is not None
        _enabled, self._before = self._before, None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapped
