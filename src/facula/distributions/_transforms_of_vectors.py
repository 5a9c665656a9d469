"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions._transform_base import Transform, _WithoutParameters
from facula.distributions.bernoulli import softplus
from facula.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix


class ReshapeTransform(Transform):
    """Another shape of the dimensions on the right.

    Args:
        in_shape: the shape of an event before.
        out_shape: the shape after, with as many elements.

    Example::

        >>> from facula.distributions.transforms import ReshapeTransform
        >>> ReshapeTransform((2, 3), (6,))(facula.ones(4, 2, 3)).shape
        facula.Size([4, 6])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                "in_shape, out_shape have different numbers of elements: "
                f"{tuple(self.in_shape)} and {tuple(self.out_shape)}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchange(shape: Any, old: Size, new: Size) -> Size:
        shape = Size(shape)
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape: Any) -> Any:
        return self._exchange(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._exchange(shape, self.out_shape, self.in_shape)


def _require_vectors(shape: Any) -> None:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")


class SoftmaxTransform(_WithoutParameters):
    """``y = exp(x)`` divided by its sum: vectors become probabilities.

    It is not bijective (adding a number to all components changes nothing); for a bijection see
    :class:`StickBreakingTransform`.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return facula.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _require_vectors(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        _require_vectors(shape)
        return shape


class StickBreakingTransform(_WithoutParameters):
    """Vectors become probabilities with one component more.

    Each number breaks its share, a sigmoid, off what is left of a stick of length 1.

    Example::

        >>> from facula.distributions.transforms import StickBreakingTransform
        >>> StickBreakingTransform()(facula.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offsets(x: Tensor) -> Tensor:
        """Log-odds that make equal parts of x = 0: 1 of n + 1, then 1 of n, ..."""
        n = x.shape[-1]
        return facula.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        info = facula.finfo(x.dtype)
        share = facula.sigmoid(x - self._offsets(x)).clamp(min=info.tiny, max=1.0 - info.eps)
        left = (1 - share).cumprod(-1)
        one = facula.ones_like(share[..., :1])
        return facula.cat([share, one], -1) * facula.cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        left = 1 - broken.cumsum(-1)
        left = left.clamp(min=facula.finfo(y.dtype).tiny)
        return broken.log() - left.log() + self._offsets(broken)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offsets(x)
        # dy/dx = share (1 - share) left, and y = share left
        return (-softplus(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _require_vectors(shape)
        return Size(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        _require_vectors(shape)
        return Size(shape[:-1]) + (shape[-1] - 1,)


class CorrCholeskyTransform(Transform):
    """Vectors of ``D (D - 1) / 2`` numbers become Cholesky factors of correlation matrices.

    The numbers become correlations by ``tanh``; each breaks its share off what is left of the
    squared length 1 of its row.

    Example::

        >>> from facula.distributions.transforms import CorrCholeskyTransform
        >>> CorrCholeskyTransform()(facula.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = facula.tanh(x)
        eps = facula.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + facula.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        one = facula.ones_like(left[..., :1])
        return r * facula.cat([one, left[..., :-1]], dim=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - facula.cumsum(y * y, dim=-1)
        one = facula.ones_like(left[..., :1])
        left = facula.cat([one, left[..., :-1]], dim=-1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # dy/dr is the root of what was left of the row; dr/dx = 1 - tanh(x)^2 as in TanhTransform
        left = 1 - (y * y).cumsum(dim=-1)
        roots = 0.5 * tril_matrix_to_vec(left, diag=-2).log()
        tanh = 2 * (x + softplus(-2 * x) - math.log(2.0))
        return roots.sum(-1) - tanh.sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        _require_vectors(shape)
        entries = shape[-1]
        size = (1 + math.isqrt(1 + 8 * entries)) // 2
        if size * (size - 1) // 2 != entries:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size(shape[:-1]) + (size, size)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        size = shape[-1]
        return Size(shape[:-2]) + (size * (size - 1) // 2,)


class LowerCholeskyTransform(_WithoutParameters):
    """Square matrices become lower triangular ones with a positive diagonal.

    What is above the diagonal is dropped; the diagonal goes through ``exp``.
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_WithoutParameters):
    """Square matrices become positive definite ones, by way of their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(facula.linalg.cholesky(y))
