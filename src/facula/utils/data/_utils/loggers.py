"""Loggers that a dataset writes to: nobody can tell who did, as long as they keep silent."""

from __future__ import annotations

import logging
from typing import Any

from facula.utils.data._utils.known import Known, Method, NotSimpleError, asked, in_class

_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}
_OWN_METHODS = [(name, vars(logging.Logger)[name]) for name in _LEVELS]


def logs(value: Any, name: Any) -> bool:
    """Whether that is a method of a logger by which it writes something, and not the program's."""
    if type(value) not in (logging.Logger, logging.RootLogger) or name not in _LEVELS:
        return False
    own = all(in_class(logging.Logger, n) is method for n, method in _OWN_METHODS)
    return own and not _LEVELS.keys() & vars(value)


def _is_heard(logger: logging.Logger, level: int) -> bool:
    return logger.isEnabledFor(level)


def silent_call(method: Method) -> Known:
    """What such a method returns, which looks at nothing that it is given if nobody hears it."""
    if asked(_is_heard, method.owner.value, _LEVELS[method.function]):
        raise NotSimpleError
    return Known(None)
