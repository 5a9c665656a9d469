"""The old home of ``facula.func.functional_call``."""

from __future__ import annotations

import warnings
from typing import Any

from facula.func import functional_call as _functional_call

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old name of :func:`facula.func.functional_call`."""
    warnings.warn(
        "`facula.nn.utils.stateless.functional_call` is deprecated. Please use "
        "`facula.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
