"""Limits on the size of gradients."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import Any

import facula
from facula import _C, Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _as_list(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads_of(parameters: list[Tensor]) -> list[Tensor]:
    return [grad for p in parameters if (grad := p.grad) is not None]


@facula.no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of several tensors as if they were one vector.

    Args:
        tensors: the tensors.
        norm_type: the order of the norm, also ``inf``.
        error_if_nonfinite: whether to raise when the norm is NaN or infinite.
        foreach: accepted; the norms are always computed in one call.

    Example::

        >>> facula.nn.utils.get_total_norm([facula.tensor([3.]), facula.tensor([4.])])
        tensor(5.)
    """
    tensors = _as_list(tensors)
    if not tensors:
        return facula.tensor(0.0)
    norm_type = float(norm_type)
    norm = _C._total_norm(tensors, norm_type)
    if error_if_nonfinite and not norm.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return norm


@facula.no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales the gradients of parameters by ``max_norm / total_norm``, if that is less than 1.

    Args:
        parameters: the parameters.
        max_norm: the largest norm that is allowed.
        total_norm: the norm of the gradients, from :func:`get_total_norm`.
        foreach: accepted; the gradients are always scaled in one call.
    """
    grads = _grads_of(_as_list(parameters))
    if grads:
        factor = float(max_norm) / (total_norm + 1e-6)
        _C._scale_all(grads, factor.clamp(max=1.0))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients in place so that the norm of all together is at most ``max_norm``.

    Args:
        parameters: the parameters.
        max_norm: the largest norm that is allowed.
        norm_type: the order of the norm, also ``inf``.
        error_if_nonfinite: whether to raise when the norm is NaN or infinite.
        foreach: accepted; the gradients are always scaled in one call.

    Returns:
        The norm before scaling.

    Example::

        >>> p = facula.nn.Parameter(facula.zeros(2))
        >>> p.grad = facula.tensor([3., 4.])
        >>> facula.nn.utils.clip_grad_norm_(p, max_norm=1.0)
        tensor(5.)
        >>> p.grad
        tensor([0.6000, 0.8000])
    """
    given = parameters
    parameters = _as_list(parameters)
    if not parameters and isinstance(given, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    norm = get_total_norm(_grads_of(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, norm, foreach)
    return norm


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`facula.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`facula.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@facula.no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limits each element of the gradients to ``[-clip_value, clip_value]``, in place.

    Example::

        >>> p = facula.nn.Parameter(facula.zeros(2))
        >>> p.grad = facula.tensor([3., -4.])
        >>> facula.nn.utils.clip_grad_value_(p, 3.5)
        >>> p.grad
        tensor([ 3.0000, -3.5000])
    """
    clip_value = float(clip_value)
    for grad in _grads_of(_as_list(parameters)):
        grad.clamp_(min=-clip_value, max=clip_value)
