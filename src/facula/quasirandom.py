"""Points that fill a cube more evenly than random ones.

The direction numbers are those of S. Joe and F. Y. Kuo (2008), "Constructing Sobol sequences with
better two-dimensional projections", SIAM Journal on Scientific Computing 30, 2635-2654
(new-joe-kuo-6.21201, https://web.maths.unsw.edu.au/~fkuo/sobol/). Their licence is reproduced in
``_data/sobol_directions.txt``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import facula
from facula import _C, Tensor

__all__ = ["SobolEngine"]

_draw = _C._operators["_sobol_engine_draw"]
_fast_forward = _C._operators["_sobol_engine_ff"]
_scramble = _C._operators["_sobol_engine_scramble"]

# How many primitive polynomials of each degree the table has: all of them up to degree 17.
_POLYNOMIALS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)


@cache
def _table() -> bytes:
    return files("facula").joinpath("_data/sobol_directions.bin").read_bytes()


def _directions(degree: int, count: int, offset: int, bits: int) -> Tensor:
    """The direction numbers of the first ``count`` dimensions of a degree, (count, bits).

    A record of the table holds, lowest bits first, the inner coefficients of the polynomial and
    then m_2 ... m_degree, each without its last bit, which is 1; m_1 is 1.
    """
    length = (degree - 1 + degree * (degree - 1) // 2 + 7) // 8
    # The record of degree 1 is empty, which frombuffer refuses.
    raw = bytearray(_table()[offset : offset + count * length]) or bytearray(1)
    octets = facula.frombuffer(raw, dtype=facula.uint8).long().view(count, -1)
    stream = (octets.unsqueeze(-1) >> facula.arange(8)) & 1
    stream = stream.flatten(1)

    def number(first: int, width: int) -> Tensor:
        return (stream[:, first : first + width] << facula.arange(width)).sum(1)

    coefficients = stream[:, : degree - 1]  # of x^1 ... x^(degree - 1)
    columns = [facula.ones(count, dtype=facula.int64) << (bits - 1)]
    at = degree - 1
    for i in range(2, degree + 1):
        columns.append((2 * number(at, i - 1) + 1) << (bits - i))
        at += i - 1
    for i in range(degree, bits):
        oldest = columns[i - degree]
        column = oldest ^ (oldest >> degree)
        for k in range(1, degree):
            column = column ^ coefficients[:, degree - k - 1] * columns[i - k]
        columns.append(column)
    return facula.stack(columns[:bits], 1)


def _initial_state(dimension: int, bits: int) -> Tensor:
    """The direction numbers of all dimensions, (dimension, bits)."""
    first = facula.ones(1, bits, dtype=facula.int64) << facula.arange(bits - 1, -1, -1)
    parts, offset, missing = [first], 0, dimension - 1
    for degree, available in enumerate(_POLYNOMIALS, start=1):
        if missing == 0:
            break
        count = min(missing, available)
        parts.append(_directions(degree, count, offset, bits))
        offset += available * ((degree - 1 + degree * (degree - 1) // 2 + 7) // 8)
        missing -= count
    return facula.cat(parts)


class SobolEngine:
    """Makes the points of Sobol's sequence in [0, 1) ** ``dimension``, scrambled or not.

    Args:
        dimension: how many coordinates a point has, at most 21201.
        scramble: True shifts and mixes the digits at random (Owen), which keeps the points even and
            makes error estimates possible.
        seed: for the scrambling; None takes the default generator.

    Example::

        >>> engine = facula.quasirandom.SobolEngine(dimension=2)
        >>> engine.draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is "
                f"[1, {self.MAXDIM}], got {dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        with facula.device("cpu"):  # whatever the default device is
            self.sobolstate = _initial_state(dimension, self.MAXBIT)
            if scramble:
                self._scramble()
            else:
                self.shift = facula.zeros(dimension, dtype=facula.int64)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        generator: Any = None
        if self.seed is not None:
            generator = facula.Generator()
            generator.manual_seed(self.seed)
        digits = facula.randint(2, (self.dimension, self.MAXBIT), generator=generator)
        self.shift = (digits << facula.arange(self.MAXBIT)).sum(1)
        shape = (self.dimension, self.MAXBIT, self.MAXBIT)
        matrices = facula.randint(2, shape, generator=generator).tril()
        self.sobolstate = _scramble(self.sobolstate, matrices, self.dimension)

    def draw(
        self, n: int = 1, out: Tensor | None = None, dtype: facula.dtype | None = None
    ) -> Tensor:
        """The next ``n`` points, of shape (n, dimension).

        Args:
            n: how many points.
            out: a tensor to write them to.
            dtype: their dtype; the default dtype when None.

        Example::

            >>> facula.quasirandom.SobolEngine(1).draw(4).flatten()
            tensor([0.0000, 0.5000, 0.7500, 0.2500])
        """
        if n < 0:
            raise ValueError(f"the number of points must not be negative, got {n}")
        if dtype is None:
            dtype = facula.get_default_dtype()
        first = self.num_generated == 0 and n > 0
        rest = n - 1 if first else n
        done = max(self.num_generated - 1, 0)
        result, self.quasi = _draw(self.quasi, rest, self.sobolstate, self.dimension, done, dtype)
        if first:
            result = facula.cat([self._first_point.to(dtype), result])
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: facula.dtype | None = None
    ) -> Tensor:
        """The next ``2 ** m`` points; together with those before they must be a power of 2.

        Example::

            >>> facula.quasirandom.SobolEngine(3).draw_base2(3).shape
            facula.Size([8, 3])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point.

        Example::

            >>> engine = facula.quasirandom.SobolEngine(1)
            >>> bool((engine.draw(5) == engine.reset().draw(5)).all())
            True
        """
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips ``n`` points, however many, at once.

        Example::

            >>> facula.quasirandom.SobolEngine(1).fast_forward(3).draw()
            tensor([[0.2500]])
        """
        if n < 0:
            raise ValueError(f"the number of points must not be negative, got {n}")
        steps = n - 1 if self.num_generated == 0 and n > 0 else n
        done = max(self.num_generated - 1, 0)
        self.quasi = _fast_forward(self.quasi, steps, self.sobolstate, self.dimension, done)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += f", scramble={self.scramble}"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"
