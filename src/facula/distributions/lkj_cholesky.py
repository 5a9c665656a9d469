"""Random correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions.beta import Beta
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, by the onion method.

    The density of the matrix is in proportion to its determinant to the power
    ``concentration - 1``: 1 is uniform over correlation matrices, more prefers weak correlations
    (Lewandowski, Kurowicka and Joe 2009).

    Args:
        dim: the size of the matrices.
        concentration: the exponent plus 1.

    Example::

        >>> from facula.distributions import LKJCholesky
        >>> LKJCholesky(3).sample().shape
        facula.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        # The squared length of each row left of the diagonal is beta distributed.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = facula.cat([facula.zeros((1,), **like), facula.arange(dim - 1, **like)])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args)

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        with facula.no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            rows = facula.randn(self._extended_shape(sample_shape), **like).tril(-1)
            rows = rows / rows.norm(dim=-1, keepdim=True)
            rows[..., 0, :].fill_(0.0)  # the first row is its diagonal alone
            w = facula.sqrt(squared) * rows
            tiny = facula.finfo(w.dtype).tiny
            diagonal = facula.clamp(1 - facula.sum(w**2, dim=-1), min=tiny).sqrt()
            return w + facula.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # Each diagonal entry from the second on has the exponent 2 (eta - 1) + dim - its place.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        places = facula.arange(2, self.dim + 1, device=self.concentration.device)
        exponents = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - places
        density = facula.sum(exponents * diagonal.log(), dim=-1)
        # What the density integrates to (page 1999 of the paper).
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = (
            0.5 * n * math.log(math.pi) + facula.mvlgamma(alpha - 0.5, n) - facula.lgamma(alpha) * n
        )
        return density - normalizer
