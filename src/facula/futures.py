"""Results that are not there yet."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
_logger = logging.getLogger(__name__)


class Future(Generic[T]):
    """A result that another thread may set later.

    Args:
        devices: accepted for programs that name the devices of the result.

    Example::

        >>> future = facula.futures.Future()
        >>> future.done()
        False
        >>> future.set_result(3)
        >>> future.wait()
        3
    """

    def __init__(self, *, devices: Any = None) -> None:
        self.devices = devices
        self._changed = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._done

    def wait(self) -> T:
        """The result, as soon as there is one; raises the error if there is one instead."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The result, which must be there; raises the error if there is one instead."""
        if not self._done:
            raise RuntimeError("Future.value(): there is no result yet; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[no-any-return]

    def set_result(self, result: T) -> None:
        """Sets the result, once, and calls what waits for it."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which ``wait`` raises."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result!r} is of type {type(result)}, not an Exception")
        self._finish(None, result)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Future: the result has been set already")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[Future[T]], Any]) -> None:
        # Who sets a result has nothing to do with what its receivers make of it.
        try:
            callback(self)
        except Exception:
            _logger.exception("A callback of a future raised an error, which is ignored")

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Calls ``callback(future)`` when there is a result: at once if there is one already.

        An error that it raises is logged; :meth:`then` hands errors on.
        """
        if not callable(callback):
            raise TypeError(f"expected a function as callback, got {type(callback).__name__}")
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future of ``callback(future)``, which is called when this one is done."""
        if not callable(callback):
            raise TypeError(f"expected a function as callback, got {type(callback).__name__}")
        following: Future[Any] = Future(devices=self.devices)

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future whose result is the list of futures, once all of them are done.

    Example::

        >>> a, b = facula.futures.Future(), facula.futures.Future()
        >>> both = facula.futures.collect_all([a, b])
        >>> a.set_result(1); b.set_result(2)
        >>> [f.wait() for f in both.wait()]
        [1, 2]
    """
    futures = list(futures)
    together: Future[list[Future[Any]]] = Future()
    left, lock = len(futures), threading.Lock()
    if not futures:
        together.set_result(futures)

    def count(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            together.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The results of futures, as soon as all of them are there.

    Example::

        >>> facula.futures.wait_all([facula.fork(lambda: 1), facula.fork(lambda: 2)])
        [1, 2]
    """
    return [future.wait() for future in collect_all(futures).wait()]


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Calls a function and returns a future of its result, which is there when ``fork`` returns.

    Example::

        >>> facula.fork(lambda x: x + 1, facula.ones(1)).wait()
        tensor([2.])
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """The result of a future.

    Example::

        >>> facula.wait(facula.fork(max, 1, 2))
        2
    """
    return future.wait()
