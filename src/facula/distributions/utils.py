"""What the distributions share: broadcasting of parameters, conversions, lazy properties."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import facula
from facula import Tensor
from facula._C import transforms as _transforms
from facula.overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060
Number = (int, float, bool)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape from tensors and numbers.

    Numbers get the dtype and device of the first tensor, or the default dtype where there is none.

    Example::

        >>> from facula.distributions.utils import broadcast_all
        >>> broadcast_all(facula.zeros(2), 1.)
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, facula.Tensor or objects "
            "implementing __torch_function__, got " + ", ".join(type(v).__name__ for v in values)
        )
    if not all(map(is_tensor_like, values)):
        like: dict[str, Any] = {"dtype": facula.get_default_dtype()}
        for value in values:
            if isinstance(value, Tensor):
                like = {"dtype": value.dtype, "device": value.device}
                break
        values = tuple(v if is_tensor_like(v) else facula.tensor(v, **like) for v in values)
    shape = values[0].shape
    if all(v.shape == shape for v in values):
        return values
    return tuple(facula.broadcast_tensors(*values))


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return facula.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last ``dim`` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def _all_true(found: Tensor) -> bool:
    """Whether all are true: under vmap for every element of the batch, which is one question."""
    while _transforms.level_of(found) >= 0:
        found = _transforms.value_of(found)
    return bool(found.all())


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds, or of unnormalised log-probabilities along the last dimension.

    Example::

        >>> from facula.distributions.utils import logits_to_probs
        >>> logits_to_probs(facula.zeros(2), is_binary=True)
        tensor([0.5000, 0.5000])
    """
    return facula.sigmoid(logits) if is_binary else facula.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept a rounding error away from 0 and 1.

    Example::

        >>> from facula.distributions.utils import clamp_probs
        >>> bool((clamp_probs(facula.tensor([0., 1.])) % 1 > 0).all())
        True
    """
    eps = facula.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of probabilities, or their logarithms, both finite.

    Example::

        >>> from facula.distributions.utils import probs_to_logits
        >>> probs_to_logits(facula.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    if is_binary:
        return facula.log(clamped) - facula.log1p(-clamped)
    return facula.log(clamped)


class lazy_property:
    """A property that is computed once, with gradients, and kept on the object."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with facula.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """A lazy property asked of the class: tools that collect properties find one."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below a diagonal, row after row, in one dimension.

    Example::

        >>> from facula.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(facula.tensor([[1, 0], [2, 3]]))
        tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = facula.tril_indices(n, n, offset=diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of :func:`tril_matrix_to_vec`, with zeros elsewhere.

    Example::

        >>> from facula.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(facula.tensor([1, 2, 3]))
        tensor([[1, 0],
                [2, 3]])
    """
    # With u diagonals above the main one, n rows hold n (n + 1) / 2 + u n - u (u + 1) / 2 entries;
    # with diagonals missing, there are as many as in a whole triangle of n + diag rows.
    entries, above = vec.shape[-1], max(diag, 0)
    odd = 1 + 2 * above
    root = math.isqrt(odd**2 + 8 * entries + 4 * above * (above + 1))
    size = (root - odd) // 2
    if size * (size + 1) // 2 + above * size - above * (above + 1) // 2 != entries:
        raise ValueError(
            f"The size of last dimension is {entries} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    size -= min(diag, 0)
    matrix = vec.new_zeros(vec.shape[:-1] + (size, size))
    rows, columns = facula.tril_indices(size, size, offset=diag, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix
