"""Numbers in stored dtypes: eight-bit floats of other formats, powers of two, halved complex.

The core computes with none of them, but their numbers can be read and written. :class:`Format` says
how, by operators of the core; conversions, fills, comparisons and texts are made of that. Halved
complex numbers also take part in other operators, which run in complex64 and round what they
return.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from facula import _C
from facula._stored.dtypes import STORED, StoredDType, names_in

_op = _C._operators


@dataclass(frozen=True)
class Format:
    """How the bytes of a dtype are numbers of a dtype of the core."""

    wide: Any  # holds all of them exactly
    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]
    computes: bool = False  # other operators run in the wide dtype


# ---- eight bits: sign, exponent, fraction, with one NaN in the place of the negative zero


def _magnitudes(exponent_bits: int) -> list[float]:
    """The numbers without a sign, by their codes, and the one behind them, which is too large."""
    fraction_bits = 7 - exponent_bits
    steps, bias = 1 << fraction_bits, 1 << (exponent_bits - 1)
    normal = [
        math.ldexp(steps + code % steps, code // steps - bias - fraction_bits)
        for code in range(steps, 129)
    ]
    return [math.ldexp(code, 1 - bias - fraction_bits) for code in range(steps)] + normal


@functools.cache
def _tables(exponent_bits: int) -> tuple[Any, Any]:
    """The numbers by their codes, and the bounds at which rounding changes from one to the next."""
    sizes = _magnitudes(exponent_bits)
    numbers = [*sizes[:128], math.nan, *(-x for x in sizes[1:128])]
    bounds = [(a + b) / 2 for a, b in itertools.pairwise(sizes)]
    return _C.tensor(numbers), _C.tensor(bounds)


def _decode_signed(exponent_bits: int, raw: Any) -> Any:
    numbers = _tables(exponent_bits)[0].to(raw.device)
    return numbers[raw.to(_C.int64)]


def _encode_signed(exponent_bits: int, x: Any) -> Any:
    bounds = _tables(exponent_bits)[1].to(x.device)
    size = x.abs()
    below = _op["bucketize"](size, bounds)
    up = _op["bucketize"](size, bounds, right=True)  # one more where x lies on a bound
    code = _op["where"](below % 2 == 0, below, up)  # the even one then
    code = _op["where"](_op["logical_and"](x < 0, code > 0), code | 128, code)
    return _op["where"](x != x, 128, code).to(_C.uint8)


# ---- eight bits of exponent: powers of two from 2**-127


def _decode_power(raw: Any) -> Any:
    exponent = raw.to(_C.int64) - 127
    numbers = _op["ldexp"](_C.tensor(1.0, dtype=_C.float64, device=raw.device), exponent)
    return _op["where"](raw == 255, math.nan, numbers.to(_C.float32))


def _encode_power(x: Any) -> Any:
    fraction, exponent = _op["frexp"](x.abs().to(_C.float64))  # in [0.5, 1)
    code = exponent.to(_C.int64) + 126 + (fraction >= 0.75)
    code = _op["where"](x == 0, 0, code).clamp(0, 255)
    return _op["where"](_op["isfinite"](x), code, 255).to(_C.uint8)


# ---- two halves


def _decode_halves(raw: Any) -> Any:
    return _op["view_as_complex"](raw.unsqueeze(-1).view(_C.float16).to(_C.float32).contiguous())


def _encode_halves(x: Any) -> Any:
    parts = _op["view_as_real"](x.resolve_conj()).to(_C.float16).contiguous()
    return parts.view(_C.int32).squeeze(-1)


def _signed(exponent_bits: int) -> Format:
    return Format(
        _C.float32,
        functools.partial(_decode_signed, exponent_bits),
        functools.partial(_encode_signed, exponent_bits),
    )


FORMATS = {
    STORED["float8_e4m3fnuz"]: _signed(4),
    STORED["float8_e5m2fnuz"]: _signed(5),
    STORED["float8_e8m0fnu"]: Format(_C.float32, _decode_power, _encode_power),
    STORED["complex32"]: Format(_C.complex64, _decode_halves, _encode_halves, computes=True),
}


def converted(tensor: Any, dtype: Any) -> Any:
    """A tensor of numbers, stored or not, in another dtype, stored or not."""
    from facula._stored.tensor import StoredTensor, dtype_of, raw_of

    held = dtype_of(tensor)
    if held is dtype:
        return tensor
    wide = FORMATS[held].decode(raw_of(tensor)) if isinstance(held, StoredDType) else tensor
    if not isinstance(dtype, StoredDType):
        return wide.to(dtype)
    form = FORMATS[dtype]
    return StoredTensor.make(form.encode(wide.detach().to(form.wide)), dtype)


def text(tensor: Any) -> str:
    """What ``repr`` shows: the numbers, and the dtype."""
    from facula._stored.tensor import dtype_of
    from facula._tensor_str import get_printoptions

    dtype = dtype_of(tensor)
    shown = repr(converted(tensor, FORMATS[dtype].wide))[:-1]
    suffix = f"dtype={dtype}"
    # As _tensor_str breaks lines.
    column = len(shown) - shown.rfind("\n") + 1
    fits = column + len(suffix) + 2 <= get_printoptions()["linewidth"]
    return shown + (", " if fits else ",\n       ") + suffix + ")"


# ---- operators

# What dtypes without arithmetic can do beside conversions.
_PLAIN = names_in(
    """
    __bool__ __eq__ __float__ __int__ __ne__ __setitem__ abs eq fill_ full full_like index_select
    isnan item ne new_full new_ones new_tensor ones ones_like repeat tensor tolist where
    """
)
# What no operator on other numbers can stand for.
_NEVER = {"requires_grad_", "numpy", "__array__", "backward", "register_hook"}
_WRITES = {"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__"}
# These take the dtype of a tensor among the arguments, or the one that is named.
_KEEPS = _PLAIN - {"tolist", "item", "eq", "ne", "__eq__", "__ne__"}


def _widened(value: Any) -> Any:
    """The arguments of an operator with numbers of the core in the place of stored ones."""
    from facula._stored.tensor import StoredTensor, dtype_of

    if isinstance(value, StoredTensor):
        return converted(value, FORMATS[dtype_of(value)].wide)
    if isinstance(value, StoredDType):
        return FORMATS[value].wide
    if type(value) in (tuple, list):
        return type(value)(_widened(v) for v in value)
    return value


def _narrowed(value: Any, dtype: StoredDType, real: Any) -> Any:
    """The results of an operator in the stored dtype, real ones in the dtype of its parts."""
    if type(value) in (tuple, list):
        return type(value)(_narrowed(v, dtype, real) for v in value)
    if not isinstance(value, _C.Tensor):
        return value
    if value.dtype is FORMATS[dtype].wide:
        return converted(value, dtype)
    return value.to(real) if real is not None and value.dtype is _C.float32 else value


def _tensors(values: Any) -> list[Any]:
    if isinstance(values, _C.Tensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [t for v in values for t in _tensors(v)]
    return []


def compute(func: Any, name: str, dtype: StoredDType, args: Any, kwargs: Any) -> Any:
    """Runs an operator on numbers of a stored dtype; NotImplemented when it cannot."""
    from facula._stored.tensor import StoredTensor, dtype_of

    form = FORMATS.get(dtype)
    if form is None or name in _NEVER or not (form.computes or name in _PLAIN):
        return NotImplemented
    everything = (args, tuple(kwargs.values()))
    named = any(isinstance(v, StoredDType) for v in (*args, *kwargs.values()))
    others = [t for t in _tensors(everything) if not (named or isinstance(t, StoredTensor))]
    wide_args = _widened(args)
    result = func(*wide_args, **{k: _widened(v) for k, v in kwargs.items()})
    if name in _WRITES or (name.endswith("_") and not name.endswith("__")):
        target = args[0]
        if isinstance(target, StoredTensor):
            target.__dict__["_raw"].copy_(FORMATS[dtype_of(target)].encode(wide_args[0]))
            return target
        return result
    # Beside tensors of more precise dtypes, results have those.
    wider = {_C.float32, _C.float64, _C.bfloat16, _C.complex64, _C.complex128}
    if form.computes and any(t.dtype in wider and t.dim() for t in others):
        return result
    if not form.computes and name not in _KEEPS:
        return result
    return _narrowed(result, dtype, _C.float16 if form.computes else None)
