"""Settings of PyTorch's compiler as scripts give them. They are kept; nothing reads them, since
nothing is compiled.

Example::

    >>> import facula._dynamo
    >>> facula._dynamo.config.suppress_errors = True
    >>> with facula._dynamo.config.patch(suppress_errors=False):
    ...     facula._dynamo.config.suppress_errors
    False
    >>> facula._dynamo.config.suppress_errors
    True
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

suppress_errors = False
verbose = False
disable = False
cache_size_limit = 8
recompile_limit = 8
accumulated_cache_size_limit = 256
automatic_dynamic_shapes = True
assume_static_by_default = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
error_on_recompile = False
guard_nn_modules = True
optimize_ddp = True


@contextmanager
def patch(**changes: Any) -> Iterator[None]:
    """A block, or function that it decorates, in which settings are others."""
    settings = globals()
    before = {name: settings[name] for name in changes}
    settings.update(changes)
    try:
        yield
    finally:
        settings.update(before)
