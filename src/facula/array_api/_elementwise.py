"""Functions of each element, and of pairs of elements after promotion and broadcasting."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula.array_api._dtypes import isdtype, result_type

Operand = Tensor | complex


def promote(*values: Any) -> list[Tensor]:
    """Arrays and numbers as arrays of their common dtype, in which arrays without dimensions count
    as any other."""
    dtype = result_type(*values)
    device = next(v.device for v in values if isinstance(v, Tensor))
    return [
        v.to(dtype) if isinstance(v, Tensor) else facula.tensor(v, dtype=dtype, device=device)
        for v in values
    ]


def _unary(name: str, function: Callable[[Tensor], Tensor], doc: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /) -> Tensor:
        return function(x)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _binary(
    name: str, function: Callable[[Tensor, Tensor], Tensor], doc: str
) -> Callable[..., Tensor]:
    def call(x1: Operand, x2: Operand, /) -> Tensor:
        return function(*promote(x1, x2))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _unless_integral(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Rounding leaves integers, and booleans, as they are."""
    return lambda x: function(x) if x.dtype.is_floating_point else x.clone()


def _round(x: Tensor) -> Tensor:
    if x.is_complex():
        return facula.complex(facula.round(x.real), facula.round(x.imag))
    return _unless_integral(facula.round)(x)


def _abs(x: Tensor) -> Tensor:
    return x.clone() if isdtype(x.dtype, ("unsigned integer", "bool")) else facula.abs(x)


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
    if not a.dtype.is_floating_point:
        return facula.floor_divide(a, b)
    # An infinite divisor leaves -1 or 0, by the signs.
    quotient = facula.floor_divide(a, b)
    far = facula.isinf(b) & facula.isfinite(a)
    opposite = (a != 0) & (facula.signbit(a) != facula.signbit(b))
    return facula.where(
        far, facula.where(opposite, -1.0, 0.0 * a * facula.sign(b)).to(a.dtype), quotient
    )


def _remainder(a: Tensor, b: Tensor) -> Tensor:
    if not a.dtype.is_floating_point:
        return facula.remainder(a, b)
    # The result has the divisor's sign, a zero also; beside infinity it is the dividend.
    rest = facula.remainder(a, b)
    rest = facula.where(rest == 0, facula.copysign(rest, b), rest)
    far = facula.isinf(b) & facula.isfinite(a)
    same = (a == 0) | (facula.signbit(a) == facula.signbit(b))
    return facula.where(far, facula.where(same, facula.copysign(a.abs(), b), b), rest)


def _pow(a: Tensor, b: Tensor) -> Tensor:
    if isdtype(a.dtype, "integral"):
        # A negative exponent has no integral result; the lowest bits are as good as any.
        return (
            facula.pow(a, b.clamp(min=0))
            if isdtype(b.dtype, "signed integer")
            else facula.pow(a, b)
        )
    return facula.pow(a, b)


def _sign(x: Tensor) -> Tensor:
    if x.is_complex():
        return facula.sgn(x)
    if x.dtype.is_floating_point:
        return facula.where(facula.isnan(x), x, facula.sign(x))
    return facula.sign(x)


def _copied_real(x: Tensor) -> Tensor:
    return x.real if x.is_complex() else x


_ONE: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "abs": (_abs, "The absolute value."),
    "acos": (facula.acos, "The angle whose cosine an element is."),
    "acosh": (facula.acosh, "The number whose hyperbolic cosine an element is."),
    "asin": (facula.asin, "The angle whose sine an element is."),
    "asinh": (facula.asinh, "The number whose hyperbolic sine an element is."),
    "atan": (facula.atan, "The angle whose tangent an element is."),
    "atanh": (facula.atanh, "The number whose hyperbolic tangent an element is."),
    "bitwise_invert": (facula.bitwise_not, "Every bit the other way round."),
    "ceil": (_unless_integral(facula.ceil), "The next integer above."),
    "conj": (lambda x: facula.conj(x).resolve_conj(), "The conjugate of a complex number."),
    "cos": (facula.cos, "The cosine."),
    "cosh": (facula.cosh, "The hyperbolic cosine."),
    "exp": (facula.exp, "The exponential."),
    "expm1": (facula.expm1, "The exponential less one, exact for small numbers."),
    "floor": (_unless_integral(facula.floor), "The next integer below."),
    "imag": (lambda x: x.imag, "The imaginary part."),
    "isfinite": (facula.isfinite, "Whether an element is neither infinite nor NaN."),
    "isinf": (facula.isinf, "Whether an element is infinite."),
    "isnan": (facula.isnan, "Whether an element is NaN."),
    "log": (facula.log, "The natural logarithm."),
    "log10": (facula.log10, "The logarithm to the base 10."),
    "log1p": (facula.log1p, "The logarithm of one more, exact for small numbers."),
    "log2": (facula.log2, "The logarithm to the base 2."),
    "logical_not": (facula.logical_not, "True where an element is false."),
    "negative": (facula.negative, "The element with the other sign."),
    "positive": (lambda x: x.clone(), "The element itself."),
    "real": (_copied_real, "The real part."),
    "reciprocal": (facula.reciprocal, "One by the element."),
    "round": (_round, "The nearest integer, the even one of two."),
    "sign": (_sign, "-1, 0 or 1; for a complex number, its direction."),
    "signbit": (facula.signbit, "Whether the sign is negative, that of zero and NaN also."),
    "sin": (facula.sin, "The sine."),
    "sinh": (facula.sinh, "The hyperbolic sine."),
    "sqrt": (facula.sqrt, "The square root."),
    "square": (facula.square, "The square."),
    "tan": (facula.tan, "The tangent."),
    "tanh": (facula.tanh, "The hyperbolic tangent."),
    "trunc": (_unless_integral(facula.trunc), "The next integer towards zero."),
}

_TWO: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "add": (facula.add, "The sum."),
    "atan2": (facula.atan2, "The angle of the point (x2, x1)."),
    "bitwise_and": (facula.bitwise_and, "The bits that both have."),
    "bitwise_left_shift": (facula.bitwise_left_shift, "The bits of x1 moved x2 places up."),
    "bitwise_or": (facula.bitwise_or, "The bits that either has."),
    "bitwise_right_shift": (facula.bitwise_right_shift, "The bits of x1 moved x2 places down."),
    "bitwise_xor": (facula.bitwise_xor, "The bits that one of them has."),
    "copysign": (facula.copysign, "x1 with the sign of x2."),
    "divide": (facula.true_divide, "The quotient."),
    "equal": (facula.eq, "Whether x1 is x2."),
    "floor_divide": (_floor_divide, "The quotient rounded down."),
    "greater": (facula.gt, "Whether x1 is above x2."),
    "greater_equal": (facula.ge, "Whether x1 is x2 or above."),
    "hypot": (facula.hypot, "The length of the vector (x1, x2)."),
    "less": (facula.lt, "Whether x1 is below x2."),
    "less_equal": (facula.le, "Whether x1 is x2 or below."),
    "logaddexp": (facula.logaddexp, "The logarithm of the sum of exponentials."),
    "logical_and": (facula.logical_and, "Whether both are true."),
    "logical_or": (facula.logical_or, "Whether one of them is true."),
    "logical_xor": (facula.logical_xor, "Whether exactly one of them is true."),
    "maximum": (facula.maximum, "The larger one; NaN where either is."),
    "minimum": (facula.minimum, "The smaller one; NaN where either is."),
    "multiply": (facula.mul, "The product."),
    "nextafter": (facula.nextafter, "The next number after x1 in the direction of x2."),
    "not_equal": (facula.ne, "Whether x1 is not x2."),
    "pow": (_pow, "x1 to the power of x2."),
    "remainder": (_remainder, "What division leaves, with the sign of x2."),
    "subtract": (facula.sub, "The difference."),
}

_functions = {
    **{name: _unary(name, f, doc) for name, (f, doc) in _ONE.items()},
    **{name: _binary(name, f, doc) for name, (f, doc) in _TWO.items()},
}
globals().update(_functions)


def clip(
    x: Tensor,
    /,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
) -> Tensor:
    """Elements no smaller than ``min`` and no larger than ``max``; of the dtype of ``x``.

    Example::

        >>> import facula.array_api as xp
        >>> xp.clip(xp.asarray([1, 5, 9]), 2, max=6)
        tensor([2, 5, 6])
    """
    result = x
    for bound, choose in ((min, facula.maximum), (max, facula.minimum)):
        if bound is None:
            continue
        if not isinstance(bound, Tensor):
            if not x.dtype.is_floating_point and x.dtype is not facula.bool:
                # A bound beyond the dtype keeps nothing away, or everything.
                limits = facula.iinfo(x.dtype)
                bound = builtins.min(builtins.max(bound, limits.min), limits.max)
            bound = facula.tensor(bound, dtype=x.dtype, device=x.device)
        result = choose(result, bound.to(x.dtype))
    return result.clone() if result is x else result


__all__ = ["clip", *_functions]
