"""A decorator for functions in Python that ``__torch_function__`` can take over."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from facula import _C

F = TypeVar("F", bound=Callable[..., Any])


def overridable(function: F) -> F:
    """Asks the arguments, and lists among them, for a ``__torch_function__`` before each call.

    Operators of the core do so themselves. A function made of them needs this where it looks at
    its arguments in another way, or to arrive as one call and under its own name.
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        relevant = [*args, *kwargs.values()]
        for argument in relevant[:]:
            if type(argument) in (list, tuple):
                relevant += argument
        if _C._has_torch_function(relevant):
            return _C._handle_torch_function(checked, relevant, args, kwargs)
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]
