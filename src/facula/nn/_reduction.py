"""How losses are reduced, as the numbers that libraries with kernels of their own hand to them."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction: 0 for "none", 1 for "mean", 2 for "sum".

    Example::

        >>> facula.nn.functional._Reduction.get_enum("sum")
        2
    """
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2,
        )
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None,
    reduce: bool | None,
    emit_warning: bool = True,
    stacklevel: int = 2,
) -> str:
    """The reduction that the older arguments ``size_average`` and ``reduce`` stand for.

    Example::

        >>> facula.nn.functional._Reduction.legacy_get_string(False, True, emit_warning=False)
        'sum'
    """
    if reduce is False:
        result = "none"
    else:
        result = "sum" if size_average is False else "mean"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{result}' instead.",
            stacklevel=stacklevel,
        )
    return result


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of :func:`legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
