"""functionalize: functions that write to nothing that their caller sees until they end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.utils import _pytree as pytree

__all__ = ["functionalize"]

Tensor = _C.Tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that does the same, and writes to its arguments at its end only.

    Inside, the arguments are copies. Those that were changed in place are copied back when the
    function has returned, so an error leaves the arguments as they were.

    Args:
        func: the function.
        remove: ``"mutations"``, or ``"mutations_and_views"``, with which results share no memory
            with arguments or with each other.

    Example::

        >>> def scaled(x):
        ...     x.mul_(2)
        ...     return x + 1
        >>> x = facula.ones(2)
        >>> facula.func.functionalize(scaled)(x), x
        (tensor([3., 3.]), tensor([2., 2.]))
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): remove must be 'mutations' or "
            f"'mutations_and_views', got {remove!r}"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        flat, spec = pytree.tree_flatten((args, kwargs))
        copies = {id(t): _C._operators["clone"](t) for t in flat if isinstance(t, Tensor)}
        given = [copies[id(t)] if isinstance(t, Tensor) else t for t in flat]
        versions = {id(c): c._version for c in copies.values()}
        new_args, new_kwargs = pytree.tree_unflatten(given, spec)
        result = func(*new_args, **new_kwargs)
        originals = {id(copies[id(t)]): t for t in flat if isinstance(t, Tensor)}
        for copy, original in ((copies[id(t)], t) for t in flat if isinstance(t, Tensor)):
            if copy._version != versions[id(copy)]:
                original.copy_(copy)
                versions[id(copy)] = copy._version

        def returned(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            own = originals.get(id(value), value)
            return own.clone() if remove == "mutations_and_views" and own is value else own

        return pytree.tree_map(returned, result)

    return wrapped
