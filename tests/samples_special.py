"""Samples by name for special functions and for the format of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from operands import LETTER, Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()
WITH_NUMPY = ("float16", "float32", "float64")  # NumPy has no bfloat16 to compute in


def _elementwise(row: Row, source: Source, **options) -> Iterator[Sample]:
    """The family's samples without the large ones: these references take their time."""
    from samples import elementwise_samples

    for sample in elementwise_samples(row, source, **options):
        if all(o.values.size < 2000 for o in sample.operands()):
            yield sample


@named("special")
def special(row: Row, source: Source) -> Iterator[Sample]:
    yield from _elementwise(row, source)


@named("special_positive")
def special_positive(row: Row, source: Source) -> Iterator[Sample]:
    source.domain = "positive"
    yield from _elementwise(row, source)


@named("special_probability")
def special_probability(row: Row, source: Source) -> Iterator[Sample]:
    source.domain = "probability"
    yield from _elementwise(row, source)


@named("two_positive")
def two_positive(row: Row, source: Source) -> Iterator[Sample]:
    source.domain = "positive"
    yield from _elementwise(row, source)


@named("logit")
def logit(row: Row, source: Source) -> Iterator[Sample]:
    source.domain = "probability"
    yield from _elementwise(row, source)
    yield Sample("eps", (source(3, 4),), {"eps": 0.2})
    yield Sample("eps of 0", (source(3, 4), 0.0))
    yield Sample("eps, transposed", (source(3, 4, layout="transposed"), 0.3))
    if source.letter == "f":
        edges = [-1.0, 0.0, 0.1, 0.5, 0.9, 1.0, 2.0, np.nan, np.inf]
        yield Sample("edges", (source.of(edges),), smooth=False)
        yield Sample("edges, eps", (source.of(edges), 0.25), smooth=False)


@named("polygamma")
def polygamma(row: Row, source: Source) -> Iterator[Sample]:
    def x(*shape, **options):
        return source(*shape, domain="positive", **options)

    for n in range(5):
        yield Sample(f"order {n}", (n, x(2, 3)))
    yield Sample("transposed", (1, x(3, 4, layout="transposed")))
    yield Sample("stepped", (2, x(3, 5, layout="stepped")))
    yield Sample("0-dim", (1, x()))
    yield Sample("zero-size", (1, x(0, 3)))
    yield Sample("past the vector width", (1, x(1031)), smooth=False)
    if source.letter == "f":
        values = [np.nan, np.inf, -0.5, -2.25, -7.75, 1e-2, 30.0]
        for n in range(4):
            yield Sample(f"special values, order {n}", (n, source.of(values)), smooth=False)


@named("mvlgamma", "if")
def mvlgamma(row: Row, source: Source) -> Iterator[Sample]:
    for p in (1, 2, 3):
        yield Sample(f"p = {p}", (source(2, 3, domain="above_one"), p))
    yield Sample("transposed", (source(3, 4, domain="above_one", layout="transposed"), 2))
    yield Sample("0-dim", (source(domain="above_one"), 2))
    yield Sample("zero-size", (source(0, 3), 2))


@named("zeta")
def zeta(row: Row, source: Source) -> Iterator[Sample]:
    from samples import elementwise_samples

    # The exponent must exceed 1.
    source.domain = "above_one"
    for sample in elementwise_samples(row, source, second="positive"):
        if all(o.values.size < 2000 for o in sample.operands()):
            yield sample
    if source.letter == "f":
        yield Sample(
            "negative",
            (source.of([2.0, 3.0, 2.0, 2.5]), source.of([-0.5, -4.25, -3, -1.5])),
            smooth=False,
        )


@named("polynomial")
def polynomial(row: Row, source: Source) -> Iterator[Sample]:
    def degree(*shape, **options):
        drawn = source(*shape, low=0, high=7, **options)
        return replace(drawn, values=np.trunc(np.abs(drawn.values)).astype(drawn.values.dtype))

    yield Sample("contiguous", (source(2, 3), degree(2, 3)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), degree(3, 4)))
    yield Sample("stepped", (source(3, 5, layout="stepped"), degree(3, 5, layout="offset")))
    yield Sample("broadcast", (source(2, 1), degree(3)))
    yield Sample("0-dim", (source(), degree()))
    yield Sample("zero-size", (source(0, 3), degree(1)))
    for n in (0, 1, 2, 5, 9):
        yield Sample(f"degree {n}", (source(2, 3), n))
    yield Sample("at a number", (2, degree(2, 3)))
    if source.letter == "f":
        x = [-1.0, 1.0, 0.0, 0.5, -0.25, 2.0, 0.5, -1.0]
        n = [3.0, 4.0, 5.0, 12.0, 11.0, 3.0, -1.0, 0.0]
        yield Sample("edges", (source.of(x), source.of(n)), smooth=False)


@named("decimals", "f")
def decimals(row: Row, source: Source) -> Iterator[Sample]:
    for count in (0, 1, 2, -1):
        yield Sample(f"{count} decimals", (source(3, 4),), {"decimals": count})
    yield Sample("transposed", (source(3, 4, layout="transposed"),), {"decimals": 1})
    yield Sample("0-dim", (source(),), {"decimals": 1})
    yield Sample("zero-size", (source(0, 3),), {"decimals": 1})
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 25.0, 35.0, 2.5]
    yield Sample("special values", (source.of(values),), {"decimals": -1}, smooth=False)


@named("float_power")
def float_power(row: Row, source: Source) -> Iterator[Sample]:
    def base(*shape, **options):
        return source(*shape, domain="positive", **options)

    def exponent(*shape, **options):
        return source(*shape, **({"low": 0, "high": 4} if source.letter == "i" else {}), **options)

    yield Sample("contiguous", (base(2, 3), exponent(2, 3)))
    yield Sample("transposed", (base(3, 4, layout="transposed"), exponent(3, 4)))
    yield Sample("broadcast", (base(2, 1), exponent(3)))
    yield Sample("0-dim", (base(), exponent()))
    yield Sample("zero-size", (base(0, 3), exponent(1)))
    yield Sample("number", (base(2, 3), 2))
    yield Sample("negative number", (base(2, 3), -1))
    yield Sample("fraction", (base(2, 3), 0.5))
    yield Sample("number to a power", (2, exponent(2, 3)))


@named("one_dtype")
def one_dtype(row: Row, source: Source) -> Iterator[Sample]:
    for sample in _elementwise(row, source):
        if len({o.dtype for o in sample.operands()}) == 1:
            yield sample
    if source.letter != "b":
        at_zero = source.of([-1, 0, 2] if _signed(source) else [0, 1, 2])
        yield Sample("zeros", (at_zero, source(3)), smooth=False)


def _signed(source: Source) -> bool:
    return not source.dtype.startswith("u")


@named("nextafter", "f", WITH_NUMPY)
def nextafter(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("contiguous", (source(2, 3), source(2, 3)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), source(3, 4)))
    yield Sample("broadcast", (source(2, 1), source(3)))
    yield Sample("0-dim", (source(), source()))
    yield Sample("zero-size", (source(0, 3), source(1)))
    info = np.finfo(source.dtype)
    special = [0.0, -0.0, 1.0, -1.0, 2.0, float(info.max), float(info.tiny), np.inf, np.nan, 3e-5]
    left, right = np.repeat(special, len(special)), np.tile(special, len(special))
    yield Sample("special values", (_as_is(source, left), _as_is(source, right)), smooth=False)


def _as_is(source: Source, values) -> Operand:
    return source.of(np.asarray(values).astype(source.dtype))


@named(
    "nan_to_num",
    "bifc",
    ("bool", "uint8", "int64", "uint32", *WITH_NUMPY, "complex64", "complex128"),
)
def nan_to_num(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("contiguous", (source(2, 3),))
    yield Sample("transposed", (source(3, 4, layout="transposed"),))
    yield Sample("stepped", (source(3, 5, layout="stepped"),))
    yield Sample("0-dim", (source(),))
    yield Sample("zero-size", (source(0, 3),))
    if source.letter in "fc":
        values = np.array([np.nan, np.inf, -np.inf, 1.5, -0.0, 2.0])
        if source.letter == "c":
            values = np.repeat(values, 6) + 1j * 0
            values.imag = np.tile([np.nan, np.inf, -np.inf, 1.5, -0.0, 2.0], 6)
        special = source.of(values)
        yield Sample("special values", (special,), smooth=False)
        yield Sample("replaced", (special, 1.0, 2.0, 3.0), smooth=False)
        yield Sample("infinity only", (special,), {"posinf": 7.5}, smooth=False)


@named("numbers", "ifc")
def numbers(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(2, 3),))
    yield Sample("transposed", (source(3, 4, layout="transposed"),))
    yield Sample("stepped", (source(3, 5, layout="stepped"),))
    yield Sample("0-dim", (source(),))
    yield Sample("zero-size", (source(0, 3),))


@named("hash_tensor", "bif")
def hash_tensor(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("all", (source(2, 3),))
    yield Sample("one dim", (source(2, 3), 1))
    yield Sample("keepdim", (source(2, 3, 2), (0, 2)), {"keepdim": True})
    yield Sample("transposed", (source(3, 4, layout="transposed"), 0))
    yield Sample("stepped", (source(3, 5, layout="stepped"),))
    yield Sample("0-dim", (source(),))
    yield Sample("many", (source(1031),))
    if LETTER[source.dtype] == "f":
        yield Sample("special values", (source.of([np.inf, -np.inf, 0.0, -0.0, 1.0]),))
