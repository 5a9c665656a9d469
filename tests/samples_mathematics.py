"""Samples by name: functions with a domain of their own, products, scans and searches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead
SCALES = {
    "i": {"beta": 2, "alpha": 3},
    "f": {"beta": 0.5, "alpha": -1.5},
    "c": {"beta": 0.5 - 1j, "alpha": -1.5 + 0.5j},
}
SINGLE_AND_DOUBLE = ("float32", "float64")


@named("unary")
def unary(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(2, 3),))
    yield Sample("transposed", (source(3, 4, layout="transposed"),))
    yield Sample("stepped", (source(3, 5, layout="stepped"),))
    yield Sample("expanded", (source(4, 3, layout="expanded"),), smooth=False)
    yield Sample("0-dim", (source(),))
    yield Sample("zero-size", (source(0, 3),))
    yield Sample("channels last", (source(2, 3, 2, 2, layout="channels_last"),))
    yield Sample("many", (source(1031, layout="offset"),), smooth=False)
    yield Sample("zeros", (source.of([[0, 1, 0], [0, 0, 2]]),), smooth=False)


@named("complex", "c")
def complex_numbers(row: Row, source: Source) -> Iterator[Sample]:
    yield from unary(row, source)


@named("complex_or_real", "fc")
def complex_or_real(row: Row, source: Source) -> Iterator[Sample]:
    yield from unary(row, source)


@named("two_real", "f", SINGLE_AND_DOUBLE)
def two_real(row: Row, source: Source) -> Iterator[Sample]:
    # The first may be a magnitude.
    def first(*shape, **options):
        return source(*shape, domain="positive", **options)

    yield Sample("same shape", (first(2, 3), source(2, 3)))
    yield Sample("transposed", (first(2, 3, layout="transposed"), source(2, 3)))
    yield Sample("stepped", (first(7, layout="stepped"), source(7)))
    yield Sample("broadcast", (first(2, 1), source(3)))
    yield Sample("0-dim", (first(), source()))
    yield Sample("zero-size", (first(0), source(0)))


@named("pairs", "f", SINGLE_AND_DOUBLE)
def pairs(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(3, 2),))
    yield Sample("one pair", (source(2),))
    yield Sample("cube", (source(2, 3, 2),))
    yield Sample("zero-size", (source(0, 2),))
    swapped = source(3, 4, 2)
    yield Sample("transposed", (Operand(swapped.values, swapped.dtype, (2, 6, 1)),))


@named("pow", "ifc")
def power(row: Row, source: Source) -> Iterator[Sample]:
    def base(*shape, **options):
        return source(*shape, domain="positive", **options)

    def exponent(*shape, **options):
        if source.letter == "i":
            return source(*shape, low=0, high=4, **options)
        return source(*shape, **options)

    yield Sample("contiguous", (base(2, 3), exponent(2, 3)))
    yield Sample("transposed", (base(3, 4, layout="transposed"), exponent(3, 4)))
    yield Sample("stepped", (base(3, 5, layout="stepped"), exponent(3, 5, layout="offset")))
    yield Sample("broadcast", (base(2, 1), exponent(3)))
    yield Sample("0-dim", (base(), exponent()))
    yield Sample("zero-size", (base(0, 3), exponent(1)))
    yield Sample("many", (base(1031), exponent(1031)), smooth=False)
    yield Sample("number to a power", (2, exponent(2, 3)))
    powers = [0, 1, 2, 3] + ([-1, -2, 0.5, -0.5, 2.5] if source.letter in "fc" else [])
    for p in powers:
        yield Sample(f"to the power {p}", (base(2, 3), p))
    if source.letter != "c" and not source.dtype.startswith("u"):
        yield Sample("negative base", (source.of([[-3, -1], [2, 1]]), 3))
    if source.letter == "f":
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0])
        left, right = np.repeat(special, len(special)), np.tile(special, len(special))
        yield Sample("special values", (source.of(left), source.of(right)), smooth=False)


@named("shift", "i")
def shift(row: Row, source: Source) -> Iterator[Sample]:
    bits = np.iinfo(source.dtype).bits

    def by(*shape, **options):
        return source(*shape, low=0, high=bits - 2, **options)

    yield Sample("contiguous", (source(2, 3), by(2, 3)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), by(3, 4)))
    yield Sample("broadcast", (source(2, 1), by(3)))
    yield Sample("0-dim", (source(), by()))
    yield Sample("zero-size", (source(0, 3), by(1)))
    yield Sample("number", (source(2, 3), 2))
    yield Sample("many", (source(1031), by(1031)))


@named("clamp", "if")
def clamp(row: Row, source: Source) -> Iterator[Sample]:
    low, high = (-1, 2) if not source.dtype.startswith("u") else (2, 5)
    if source.letter == "f":
        low, high = low + 0.25, high + 0.25
    yield Sample("numbers", (source(3, 4), low, high))
    yield Sample("only min", (source(3, 4), low))
    yield Sample("only max", (source(3, 4),), {"max": high})
    yield Sample("transposed", (source(3, 4, layout="transposed"), low, high))
    yield Sample("stepped", (source(3, 4, layout="stepped"), low, high))
    yield Sample("0-dim", (source(), low, high))
    yield Sample("zero-size", (source(0, 2), low, high))
    yield Sample("tensors", (source(2, 3), source(2, 3), source(2, 3)))
    yield Sample("broadcast", (source(2, 1), source(3), source(1, 3)))
    yield Sample("tensor as min", (source(2, 3), source(3)))
    yield Sample("tensor as max", (source(2, 3),), {"max": source(3)})
    yield Sample("min above max", (source(3, 4), high, low))
    if source.letter == "f":
        yield Sample("NaN", (source.of([np.nan, -9.0, 9.0, np.inf]), low, high), smooth=False)


@named("isclose")
def isclose(row: Row, source: Source) -> Iterator[Sample]:
    a = source(3, 4)
    near = a.values if source.letter in "bi" else a.values * (1 + 1e-7)
    yield Sample("other values", (a, source(3, 4)))
    yield Sample("near values", (a, source.of(near)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), source(3, 4)))
    yield Sample("broadcast", (source(2, 1), source(3)))
    yield Sample("0-dim", (source(), source()))
    yield Sample("zero-size", (source(0, 3), source(3)))
    if source.letter != "b":
        yield Sample("tolerances", (a, source(3, 4)), {"rtol": 0.5, "atol": 1.0})
    if source.letter == "f":
        values = [np.nan, np.inf, -np.inf, 1.0, 0.0]
        left, right = np.repeat(values, 5), np.tile(values, 5)
        yield Sample("special values", (source.of(left), source.of(right)))
        yield Sample(
            "special values, equal NaN", (source.of(left), source.of(right)), {"equal_nan": True}
        )


@for_row("div.mode", "if")
def rounded_division(row: Row, source: Source) -> Iterator[Sample]:
    for mode in (None, "trunc", "floor"):

        def sample(name, a, b, mode=mode):
            # The floor of a quotient has no derivative at its steps; draws lie between them.
            return Sample(f"{name}, {mode}", (a, b), {"rounding_mode": mode})

        divisor = source(3, 4, nonzero=True)
        yield sample("contiguous", source(3, 4), divisor)
        yield sample("transposed", source(3, 4, layout="transposed"), divisor)
        yield sample("broadcast", source(2, 1), source(3, nonzero=True))
        yield sample("0-dim", source(), source(nonzero=True))
        yield sample("zero-size", source(0, 3), source(3, nonzero=True))
        yield sample("number", source(3, 4), 2)


# ---- where and masks


@named("where")
def where(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("contiguous", (source.mask(2, 3), source(2, 3), source(2, 3)))
    yield Sample(
        "strided",
        (source.mask(3, 4, layout="transposed"), source(3, 4, layout="stepped"), source(3, 4)),
    )
    yield Sample("broadcast", (source.mask(2, 1, 1), source(4, 1), source(3)))
    yield Sample("0-dim", (source.mask(), source(), source()))
    yield Sample("zero-size", (source.mask(0, 3), source(1, 3), source(3)))
    yield Sample("number", (source.mask(2, 3), source(2, 3), source.number()))
    yield Sample("number first", (source.mask(2, 3), source.number(), source(2, 3)))
    yield Sample("many", (source.mask(1031), source(1031), source(1031)), smooth=False)


@named("masked_fill")
def masked_fill(row: Row, source: Source) -> Iterator[Sample]:
    number = source.number()
    yield Sample("number", (source(2, 3), source.mask(2, 3), number))
    yield Sample("strided", (source(3, 4, layout="transposed"), source.mask(3, 4), number))
    yield Sample("broadcast", (source(2, 3, 4), source.mask(3, 1), number))
    yield Sample("0-dim", (source(), source.mask(), number))
    yield Sample("zero-size", (source(0, 3), source.mask(3), number))
    yield Sample("tensor", (source(2, 3), source.mask(2, 3), source()))
    yield Sample("many", (source(1031), source.mask(1031), number), smooth=False)


# ---- products


@named("mm", "ifc")
def mm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(2, 3), source(3, 4)))
    yield Sample("transposed", (source(2, 3, layout="transposed"), source(3, 4)))
    yield Sample(
        "both transposed", (source(2, 3, layout="transposed"), source(3, 4, layout="transposed"))
    )
    yield Sample("stepped", (source(2, 3, layout="stepped"), source(3, 2)))
    yield Sample("expanded", (source(2, 3, layout="expanded"), source(3, 2)), smooth=False)
    yield Sample("no inner size", (source(2, 0), source(0, 3)))
    yield Sample("no rows", (source(0, 3), source(3, 2)))
    yield Sample("larger", (source(67, 33), source(33, 45)), smooth=False)


@named("bmm", "ifc")
def bmm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(2, 2, 3), source(2, 3, 4)))
    yield Sample("transposed", (source(2, 2, 3, layout="transposed"), source(2, 3, 2)))
    yield Sample("stepped", (source(2, 2, 3, layout="stepped"), source(2, 3, 2)))
    yield Sample("expanded", (source(3, 2, 3, layout="expanded"), source(3, 3, 2)), smooth=False)
    yield Sample("no batch", (source(0, 2, 3), source(0, 3, 2)))
    yield Sample("no inner size", (source(2, 2, 0), source(2, 0, 3)))
    yield Sample("larger", (source(5, 17, 33), source(5, 33, 9)), smooth=False)


@named("mv", "ifc")
def mv(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(2, 3), source(3)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), source(4)))
    yield Sample("stepped", (source(3, 4, layout="stepped"), source(4, layout="stepped")))
    yield Sample("no columns", (source(2, 0), source(0)))
    yield Sample("no rows", (source(0, 2), source(2)))
    yield Sample("larger", (source(65, 130), source(130)), smooth=False)


@named("dot", "ifc")
def dot(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(5), source(5)))
    yield Sample("stepped", (source(5, layout="stepped"), source(5)))
    yield Sample("empty", (source(0), source(0)))
    yield Sample("larger", (source(1031), source(1031)), smooth=False)


@named("outer")
def outer(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(2), source(3)))
    yield Sample("stepped", (source(4, layout="stepped"), source(3)))
    yield Sample("empty", (source(0), source(3)))


@named("addmm", "ifc")
def addmm(row: Row, source: Source) -> Iterator[Sample]:
    scales = SCALES[source.letter]
    yield Sample("small", (source(2, 4), source(2, 3), source(3, 4)))
    yield Sample("broadcast", (source(4), source(2, 3), source(3, 4)))
    yield Sample("scaled", (source(2, 4), source(2, 3), source(3, 4)), scales)
    yield Sample("beta 0", (source(2, 4), source(2, 3), source(3, 4)), {"beta": 0}, smooth=False)
    yield Sample(
        "transposed",
        (
            source(2, 4, layout="transposed"),
            source(2, 3, layout="transposed"),
            source(3, 4, layout="stepped"),
        ),
        scales,
    )
    yield Sample("no inner size", (source(2, 4), source(2, 0), source(0, 4)), scales)
    yield Sample("no rows", (source(0, 4), source(0, 3), source(3, 4)))
    yield Sample("larger", (source(45), source(67, 33), source(33, 45)), smooth=False)


@named("baddbmm", "ifc")
def baddbmm(row: Row, source: Source) -> Iterator[Sample]:
    scales = SCALES[source.letter]
    yield Sample("small", (source(2, 2, 4), source(2, 2, 3), source(2, 3, 4)))
    yield Sample("broadcast", (source(2, 1, 4), source(2, 2, 3), source(2, 3, 4)), scales)
    yield Sample(
        "transposed",
        (source(2, 2, 2), source(2, 2, 3, layout="transposed"), source(2, 3, 2, layout="stepped")),
        scales,
    )
    yield Sample("no batch", (source(0, 2, 2), source(0, 2, 3), source(0, 3, 2)))
    yield Sample("no inner size", (source(2, 2, 3), source(2, 2, 0), source(2, 0, 3)), scales)


@named("matmul", "ifc")
def matmul(row: Row, source: Source) -> Iterator[Sample]:
    shapes = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((2, 2, 3), (3,)),
        ((2, 2, 3), (3, 2)),
        ((3,), (2, 3, 2)),
        ((2, 3), (2, 3, 2)),
        ((2, 1, 2, 3), (3, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
        ((0, 2, 3), (3, 2)),
    ]
    for a, b in shapes:
        yield Sample(f"{a} @ {b}", (source(*a), source(*b)))
    yield Sample(
        "strided", (source(2, 2, 3, layout="transposed"), source(2, 3, 2, layout="stepped"))
    )
    yield Sample("expanded", (source(4, 2, 3, layout="expanded"), source(3, 2)), smooth=False)


# ---- along one dimension


def _along(source: Source, make, smooth: bool = True, **options) -> Iterator[Sample]:
    """`make(name, operand, dim, smooth)` for every layout and dimension."""
    cases = [
        ("matrix", source(3, 4, **options), (0, 1, -1)),
        ("vector", source(5, **options), (0,)),
        ("cube", source(2, 3, 4, **options), (0, 1, -1)),
        ("transposed", source(3, 4, layout="transposed", **options), (0, 1)),
        ("stepped", source(3, 4, layout="stepped", **options), (0, 1)),
        ("alone", source(1, 2, 17, layout="alone", **options), (0, 1)),
        ("0-dim", source(**options), (0, -1)),
    ]
    for name, operand, dims in cases:
        for dim in dims:
            yield make(f"{name}, dim={dim}", operand, dim, smooth)


@named("scan")
def scan(row: Row, source: Source) -> Iterator[Sample]:
    def make(name, operand, dim, smooth):
        return Sample(name, (operand, dim), smooth=smooth)

    options = {} if source.letter in "fc" else {"low": 0, "high": 3}
    yield from _along(source, make, **options)
    yield make("zero-size", source(0, 3), 0, True)
    yield make("zero-size, dim=1", source(0, 3), 1, True)
    if row.name == "cumsum":
        yield make("many", source(1031), 0, False)
        yield (
            Sample("dtype", (source(3, 4), 0), {"dtype": "float64"}, smooth=False)
            if (source.letter in "if")
            else make("again", source(3, 4), 0, True)
        )
    if source.letter == "f":
        yield make("special values", source.of([1.0, np.inf, 2.0, np.nan, 3.0]), 0, False)


@named("scan_real", "bif")
def scan_real(row: Row, source: Source) -> Iterator[Sample]:
    def make(name, operand, dim, smooth):
        return Sample(name, (operand, dim), smooth=smooth)

    yield from _along(source, make)
    yield make("zero-size", source(0, 3), 0, True)
    yield make("many", source(1031, distinct=source.dtype == "float64"), 0, False)
    if source.letter == "f":
        yield make("special values", source.of([1.0, np.inf, 2.0, np.nan, 3.0]), 0, False)


@named("scan_floating", "f")
def scan_floating(row: Row, source: Source) -> Iterator[Sample]:
    def make(name, operand, dim, smooth):
        return Sample(name, (operand, dim), smooth=smooth)

    yield from _along(source, make)
    yield make("zero-size", source(0, 3), 0, True)
    yield make("large values", source.of([200.0, 199.0, -200.0, 201.0]), 0, False)
    yield make("infinite values", source.of([-np.inf, -np.inf, 1.0, np.inf]), 0, False)


@named("softmax", "f")
def softmax(row: Row, source: Source) -> Iterator[Sample]:
    def make(name, operand, dim, smooth):
        return Sample(name, (operand, dim), smooth=smooth)

    yield from _along(source, make)
    yield make("zero-size", source(0, 3), 1, True)
    yield make("zero-size, dim=0", source(0, 3), 0, True)
    yield make("wide", source(3, 1031), 1, False)
    yield make("tall", source(131, 37), 0, False)
    yield make("large values", source.of([200.0, 199.0, -200.0]), 0, False)
    yield make("infinite values", source.of([-np.inf, 1.0, 2.0]), 0, False)
    yield Sample("dtype", (source(3, 4), 1), {"dtype": "float64"}, smooth=False)


@named("one_dim", "if")
def one_dim(row: Row, source: Source) -> Iterator[Sample]:
    def make(name, operand, dim, smooth):
        return Sample(name, (operand, dim), smooth=smooth)

    distinct = row.name != "mode" or source.dtype == "float64"
    options = {"distinct": distinct} if distinct else {"low": 0, "high": 2}
    yield from _along(source, make, **options)
    yield Sample("keepdim", (source(3, 4, **options), 0), {"keepdim": True})
    yield Sample("keepdim, last", (source(2, 3, 4, **options), -1, True))
    yield make("nothing kept", source(0, 3), 1, True)
    if source.dtype not in ("uint8", "int8", "float16", "bfloat16"):
        yield make("many", source(3, 131, **options), 1, False)
    if source.letter == "f" and row.name != "mode":
        special = [[1.0, np.nan, 3.0, np.nan, 2.0], [np.inf, 1.0, 2.0, -np.inf, 0.5]]
        yield make("special values", source.of(special), 1, False)


@named("arg_reduce", "bif")
def arg_reduce(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in [
        ("matrix", source(3, 4)),
        ("vector", source(5)),
        ("transposed", source(3, 4, layout="transposed")),
        ("stepped", source(2, 3, 4, layout="stepped")),
        ("expanded", source(4, 3, layout="expanded")),
        ("many", source(131, 17)),
    ]:
        yield Sample(name, (operand,))
        for dim in (0, -1):
            yield Sample(f"{name}, dim={dim}", (operand, dim))
            yield Sample(f"{name}, dim={dim}, keepdim", (operand, dim), {"keepdim": True})
    yield Sample("0-dim", (source(),))
    yield Sample("0-dim, dim=0", (source(), 0))
    yield Sample("nothing kept", (source(0, 3), 1))
    if source.letter == "f":
        special = [[1.0, np.nan, 3.0, np.nan], [np.inf, np.inf, 1.0, -np.inf]]
        yield Sample("special values", (source.of(special), 1))


def _floating_operands(source: Source) -> list[tuple[str, Operand, bool]]:
    return [
        ("matrix", source(3, 4), True),
        ("vector", source(5), True),
        ("cube", source(2, 3, 4), True),
        ("transposed", source(3, 4, layout="transposed"), True),
        ("stepped", source(2, 3, 4, layout="stepped"), True),
        ("expanded", source(4, 3, layout="expanded"), False),
        ("wide", source(3, 1031), False),
    ]


@named("floating", "f")
def floating(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand, smooth in _floating_operands(source):
        if name != "expanded":
            yield Sample(name, (operand,), smooth=smooth)
    yield Sample("0-dim", (source(),))
    if source.letter == "f":
        yield Sample("NaN", (source.of([1.0, np.nan, 3.0]),), smooth=False)
        yield Sample("NaN in both rows", (source.of([[np.nan, 2.0], [3.0, np.nan]]),), smooth=False)


def _with_dims(row: Row, source: Source) -> Iterator[Sample]:
    arguments = {a.name: a for a in row.schema.args}
    for name, operand, smooth in _floating_operands(source):
        if "dim" in arguments and arguments["dim"].default is not None:
            yield Sample(name, (operand,), smooth=smooth)
        ndim = len(operand.shape)
        dims = [0, -1, (0,)] + ([(0, -1)] if ndim > 1 else [])
        dims += [None] if arguments["dim"].optional else []
        for dim in dims:
            given = {"dim": dim}
            yield Sample(f"{name}, dim={dim}", (operand,), given, smooth=smooth)
            if "keepdim" in arguments:
                kept = {"dim": dim, "keepdim": True}
                yield Sample(f"{name}, dim={dim}, keepdim", (operand,), kept, smooth=smooth)
    if "correction" in arguments:
        for correction in (0, 2, 1.5):
            given = {"dim": 1, "correction": correction}
            yield Sample(f"correction {correction}", (source(3, 4),), given)
    if "p" in arguments:
        for p in (1, 3, 0, float("inf"), -float("inf"), 0.5):
            given = {"p": p, "dim": 1}
            yield Sample(f"p={p}", (source(3, 4),), given, smooth=p not in (0, 0.5))
    if "dtype" in arguments and source.letter == "f":
        given = {"dim": 0, "dtype": "float64"}
        yield Sample("dtype", (source(3, 4),), given, smooth=False)


@named("floating_dim", "fc")
def floating_dim(row: Row, source: Source) -> Iterator[Sample]:
    yield from _with_dims(row, source)


@named("floating_dims", "f")
def floating_dims(row: Row, source: Source) -> Iterator[Sample]:
    yield from _with_dims(row, source)


@named("floating_dim_only", "bifc")
def floating_dim_only(row: Row, source: Source) -> Iterator[Sample]:
    yield from _with_dims(row, source)
    yield Sample("zeros", (source.of([[0, 1, 0], [0, 0, 2]]), 1), smooth=False)


@named("sum_to_size", "ifc")
def sum_to_size(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("kept", (source(2, 3), (2, 3)))
    yield Sample("rows", (source(2, 3), (1, 3)))
    yield Sample("dropped", (source(4, 2, 3), (2, 1)))
    yield Sample("to one", (source(2, 3), (1,)))
    yield Sample("to 0-dim", (source(2, 3), ()))
    yield Sample("strided", (source(3, 4, layout="transposed"), (3, 1)))


@named("isin", "if")
def isin(row: Row, source: Source) -> Iterator[Sample]:
    def few(*shape, **options):
        return source(*shape, low=0, high=6, **options)

    def drawn(*shape, **options):
        operand = few(*shape, **options)
        return source.of(np.trunc(operand.values)) if source.letter == "f" else operand

    yield Sample("small", (drawn(2, 3), drawn(4)))
    yield Sample("many tests", (drawn(2, 3), drawn(60)))
    yield Sample("inverted", (drawn(2, 3), drawn(4)), {"invert": True})
    yield Sample("number", (drawn(2, 3), 2))
    yield Sample("0-dim", (drawn(), drawn(3)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source(5, layout="stepped")))
    yield Sample("zero-size", (drawn(0), drawn(3)))
    yield Sample("no tests", (drawn(3), drawn(0)))


def _sorted(source: Source, *shape: int, layout: str = "contiguous") -> Operand:
    drawn = source(*shape)
    return source.of(np.sort(drawn.values, axis=-1), layout=layout)


@named("searchsorted", "if")
def searchsorted(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (_sorted(source, 5), source(2, 3)))
    yield Sample("strided", (_sorted(source, 5), source(3, 4, layout="transposed")))
    yield Sample("rows", (_sorted(source, 3, 5), source(3, 4)))
    yield Sample("strided rows", (_sorted(source, 3, 5, layout="transposed"), source(3, 4)))
    yield Sample("right", (_sorted(source, 5), source(2, 3)), {"right": True})
    yield Sample("side", (_sorted(source, 5), source(2, 3)), {"side": "right"})
    yield Sample("int32", (_sorted(source, 5), source(2, 3)), {"out_int32": True})
    yield Sample("number", (_sorted(source, 5), 2))
    yield Sample("zero-size", (_sorted(source, 5), source(0)))
    yield Sample("empty sequence", (_sorted(source, 0), source(3)))


@named("bucketize", "if")
def bucketize(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(2, 3), _sorted(source, 5)))
    yield Sample("strided", (source(3, 4, layout="transposed"), _sorted(source, 5)))
    yield Sample("right", (source(2, 3), _sorted(source, 5)), {"right": True})
    yield Sample("int32", (source(2, 3), _sorted(source, 5)), {"out_int32": True})
    yield Sample("number", (2, _sorted(source, 5)))
    yield Sample("zero-size", (source(0), _sorted(source, 5)))


@named("bincount", "i")
def bincount(row: Row, source: Source) -> Iterator[Sample]:
    def counts(n, **options):
        return source(n, low=0, high=5, **options)

    yield Sample("plain", (counts(9),))
    yield Sample("stepped", (counts(9, layout="stepped"),))
    yield Sample("minlength", (counts(9),), {"minlength": 12})
    yield Sample("weights", (counts(9), source(9, dtype="float64")))
    yield Sample("empty", (counts(0),))
    yield Sample("empty, minlength", (counts(0),), {"minlength": 3})


@named("histc", "f")
def histc(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("range of the data", (source(37),), {"bins": 5}, smooth=False)
    yield Sample("given range", (source(37),), {"bins": 4, "min": -1, "max": 2}, smooth=False)
    strided = source(5, 7, layout="transposed")
    yield Sample("strided", (strided,), {"bins": 4, "min": -2, "max": 2}, smooth=False)
    yield Sample("equal values", (source.of([2.0, 2.0]),), {"bins": 4}, smooth=False)


# ---- overloads that say in another way what a row with samples says


@for_row("max.other", "bif")
@for_row("min.other", "bif")
def two_operands(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("contiguous", (source(2, 3), source(2, 3)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), source(3, 4)))
    yield Sample("broadcast", (source(2, 1), source(3)))
    yield Sample("0-dim", (source(), source()))
    yield Sample("zero-size", (source(0, 3), source(3)))


@for_row("var.unbiased", "fc")
@for_row("std.unbiased", "fc")
def unbiased(row: Row, source: Source) -> Iterator[Sample]:
    for given in (True, False):
        yield Sample(f"matrix, {given}", (source(3, 4), given))
        yield Sample(f"transposed, {given}", (source(3, 4, layout="transposed"), given))


@for_row("var.unbiased_dim", "fc")
@for_row("std.unbiased_dim", "fc")
def unbiased_dim(row: Row, source: Source) -> Iterator[Sample]:
    for given in (True, False):
        for dim in (0, -1, (0, 1)):
            yield Sample(f"matrix, {dim}, {given}", (source(3, 4), dim, given))
        strided = source(3, 4, layout="transposed")
        yield Sample(f"transposed, {given}", (strided, 1, given), {"keepdim": True})
