"""Sums of squares of standard normal numbers."""

from __future__ import annotations

from typing import Any

from facula import Tensor
from facula.distributions import constraints
from facula.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of ``df`` standard normal numbers: ``Gamma(df / 2, 1 / 2)``.

    Args:
        df: the degrees of freedom.

    Example::

        >>> from facula.distributions import Chi2
        >>> Chi2(3.).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
