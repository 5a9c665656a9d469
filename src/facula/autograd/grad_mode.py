"""Switching the tape on and off, as context managers and decorators."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any

from facula import _C

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Mode:
    """A context manager that is also a decorator for functions and generators."""

    def clone(self) -> _Mode:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function: Any) -> Any:
        """The mode holds while the generator runs and not while its caller does."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            with self.clone():
                try:
                    value = next(generator)
                except StopIteration as stop:
                    return stop.value
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    with self.clone():
                        try:
                            value = generator.throw(error)
                        except StopIteration as stop:
                            return stop.value
                else:
                    with self.clone():
                        try:
                            value = generator.send(sent)
                        except StopIteration as stop:
                            return stop.value

        return wrapped


class no_grad(_Mode):
    """Operations inside are not recorded: results do not require grad.

    Example::

        >>> x = facula.ones(1, requires_grad=True)
        >>> with facula.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __init__(self) -> None:
        self.before = False

    def __new__(cls, orig_func: Any = None) -> Any:
        # `@no_grad` without parentheses decorates, too.
        self = super().__new__(cls)
        if orig_func is None:
            return self
        self.before = False
        return self(orig_func)

    def __enter__(self) -> None:
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self.before)


class enable_grad(_Mode):
    """Operations inside are recorded, also within ``no_grad``.

    Example::

        >>> x = facula.ones(1, requires_grad=True)
        >>> with facula.no_grad(), facula.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __enter__(self) -> None:
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(True)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self.before)


class set_grad_enabled(_Mode):
    """Sets grad mode at once; as a context manager, sets it back at the end.

    Example::

        >>> with facula.set_grad_enabled(False):
        ...     facula.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'mode' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.before = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, function: Any) -> Any:
        _C._set_grad_enabled(self.before)
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self.before)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}(mode={self.mode})"


class inference_mode(_Mode):
    """Like ``no_grad``, and new tensors keep no version counter and can never join a graph.

    Example::

        >>> with facula.inference_mode():
        ...     y = facula.ones(1) * 2
        >>> y.is_inference()
        True
    """

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def clone(self) -> inference_mode:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        self.before = (_C.is_grad_enabled(), _C.is_inference_mode_enabled())
        _C._set_inference_mode(self.mode)
        _C._set_grad_enabled(not self.mode)

    def __exit__(self, *exc: object) -> None:
        grad, inference = self.before
        _C._set_grad_enabled(grad)
        _C._set_inference_mode(inference)


class set_multithreading_enabled(_Mode):
    """Whether backward passes may use several threads, at once or for a block.

    Facula runs the passes of one call on the calling thread in any case, so that results do not
    vary; the setting is kept for programs that read it back.

    Example::

        >>> with facula.autograd.set_multithreading_enabled(False):
        ...     facula.autograd.is_multithreading_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.before = is_multithreading_enabled()
        _multithreading.enabled = self.mode

    def __enter__(self) -> None:
        _multithreading.enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        _multithreading.enabled = self.before

    def clone(self) -> set_multithreading_enabled:
        return type(self)(self.mode)


_multithreading = threading.local()


def is_multithreading_enabled() -> bool:
    """What :class:`set_multithreading_enabled` set."""
    return getattr(_multithreading, "enabled", True)
