"""Handles that remove hooks."""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["RemovableHandle"]


class RemovableHandle:
    """Removes one hook from the dict it was added to; usable in ``with``.

    Example::

        >>> x = facula.ones(1, requires_grad=True)
        >>> with x.register_hook(lambda g: g * 2):
        ...     x.sum().backward()
        >>> x.grad
        tensor([2.])
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        # Plain dicts take no weak references; the dict belongs to a tensor or node and is small.
        try:
            self.hooks_dict_ref: Any = weakref.ref(hooks_dict)
        except TypeError:
            self.hooks_dict_ref = lambda: hooks_dict
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict = extra_dict

    def remove(self) -> None:
        """Takes the hook out; doing it twice is harmless."""
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)
        extras = self.extra_dict
        if extras is not None:
            for extra in extras if isinstance(extras, (list, tuple)) else (extras,):
                extra.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
