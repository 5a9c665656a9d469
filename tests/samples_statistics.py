"""Samples by name: statistics, finite differences, further shapes and selections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead

SINGLE_AND_DOUBLE = ("float32", "float64")


def _layouts(source: Source, *shape: int, **options) -> Iterator[tuple[str, Operand]]:
    for layout in ("contiguous", "transposed", "stepped"):
        yield layout, source(*shape, layout=layout, **options)


# ---- moments


def _spoilt(source: Source, operand: Operand) -> Operand:
    """The operand with some elements replaced by NaN, never a whole line of them."""
    values = operand.values.copy()
    flat = values.reshape(-1)
    flat[:: max(len(flat) // 2, 2)] = np.nan
    return source.of(values)


@named("with_nan", "bifc")
def with_nan(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in (("matrix", source(3, 4)), ("cube", source(2, 3, 4)), ("0-dim", source())):
        yield Sample(name, (operand,))
        for dim in (0, -1):
            yield Sample(f"{name}, dim={dim}", (operand, dim))
            yield Sample(f"{name}, dim={dim}, keepdim", (operand, dim), {"keepdim": True})
    yield Sample("strided", (source(3, 4, layout="transposed"), (0, 1)))
    if source.letter in "fc":
        yield Sample("NaN", (_spoilt(source, source(3, 4)), 1), smooth=False)
        yield Sample("NaN of all", (_spoilt(source, source(3, 5)),), smooth=False)
    if source.letter == "f":
        given = {"dtype": "float64"}
        yield Sample("dtype", (_spoilt(source, source(3, 4)), 1), given, smooth=False)


@named("aminmax", "bif")
def aminmax(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4, distinct=True):
        yield Sample(name, (operand,))
        for dim in (0, -1):
            yield Sample(f"{name}, dim={dim}", (operand,), {"dim": dim})
        yield Sample(f"{name}, keepdim", (operand,), {"dim": 1, "keepdim": True})
    yield Sample("0-dim", (source(),), {"dim": 0})
    yield Sample("no rows", (source(0, 3),), {"dim": 1})
    yield Sample("everything, keepdim", (source(2, 3, 2),), {"keepdim": True})


def _unbiased_mean(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        for unbiased in (True, False):
            if row.schema.overload == "unbiased":
                yield Sample(f"{name}, {unbiased}", (operand, unbiased))
            else:
                yield Sample(f"{name}, {unbiased}", (operand, 1, unbiased))
                yield Sample(f"{name}, {unbiased}, kept", (operand, (0, 1), unbiased, True))


for _name in ("var_mean", "std_mean"):
    for _overload in ("unbiased", "unbiased_dim"):
        for_row(f"{_name}.{_overload}", "fc")(_unbiased_mean)


@named("cov", "ifc")
def cov(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 5):
        yield Sample(name, (operand,))
    yield Sample("one variable", (source(5),))
    yield Sample("one row", (source(1, 5),))
    yield Sample("no correction", (source(3, 5),), {"correction": 0})
    frequencies = source.positions([1, 2, 1, 0, 3])
    importance = source(5, dtype="float64", low=0.5, high=2.0)
    yield Sample("frequencies", (source(3, 5),), {"fweights": frequencies}, smooth=False)
    if source.letter != "i":
        given = {"aweights": source(5, dtype=_real(source), low=0.5, high=2.0)}
        yield Sample("importance", (source(3, 5),), given, smooth=False)
    if source.dtype in ("float64", "complex128"):
        both = {"fweights": frequencies, "aweights": importance}
        yield Sample("both", (source(3, 5),), both, smooth=False)


def _real(source: Source) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(source.dtype, source.dtype)


@named("corrcoef", "fc", (*SINGLE_AND_DOUBLE, "complex64", "complex128"))
def corrcoef(row: Row, source: Source) -> Iterator[Sample]:
    # A correlation of exactly 1 lies on the edge of a clamp, where no difference quotient is right.
    for name, operand in _layouts(source, 2, 5):
        yield Sample(name, (operand,), smooth=False)
    yield Sample("one variable", (source(5),), smooth=False)


# ---- quantiles

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantiles(source: Source, row: Row) -> Iterator[tuple[str, Operand]]:
    yield from _layouts(source, 3, 5, distinct=True)
    if row.name == "nanquantile":
        yield "NaN", _spoilt(source, source(3, 5, distinct=True))
    else:
        yield "one NaN", source.of([[1.0, np.nan, 2.0], [3.0, 1.0, 2.0]])


@named("quantile", "f", SINGLE_AND_DOUBLE)
def quantile(row: Row, source: Source) -> Iterator[Sample]:
    levels = source.of([0.13, 0.58, 0.94])
    for name, operand in _quantiles(source, row):
        smooth = "NaN" not in name
        yield Sample(name, (operand, levels), smooth=smooth)
        for dim in (0, -1):
            yield Sample(f"{name}, dim={dim}", (operand, levels, dim), smooth=smooth)
        yield Sample(f"{name}, kept", (operand, levels, 1, True), smooth=smooth)
    for way in _INTERPOLATIONS:
        given = {"interpolation": way}
        yield Sample(way, (source(4, 6, distinct=True), levels, 1), given)
    yield Sample("0-dim level", (source(3, 4, distinct=True), source.of(0.3), 0))
    yield Sample("0-dim", (source(), source.of([0.3, 0.5])))


@named("quantile_scalar", "f", SINGLE_AND_DOUBLE)
def quantile_scalar(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _quantiles(source, row):
        smooth = "NaN" not in name
        for level in (0.0, 0.37, 1.0):
            yield Sample(f"{name}, {level}", (operand, level), smooth=smooth)
            yield Sample(f"{name}, {level}, dim=1", (operand, level, 1), smooth=smooth)
        yield Sample(f"{name}, kept", (operand, 0.5, None, True), smooth=smooth)
    for way in _INTERPOLATIONS:
        yield Sample(way, (source(4, 6, distinct=True), 0.45, 1), {"interpolation": way})


# ---- histograms


@named("histogram", "f", SINGLE_AND_DOUBLE)
def histogram(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 4, 5):
        yield Sample(name, (operand, 4))
    yield Sample("range", (source(20), 5), {"range": (-1.0, 2.0)})
    yield Sample("density", (source(20), 5), {"range": (-3.0, 3.0), "density": True})
    weighted = {"range": (-3.0, 3.0), "weight": source(20, domain="positive")}
    yield Sample("weight", (source(20), 5), weighted)
    yield Sample("equal elements", (source.of([2.0, 2.0]), 3))
    yield Sample("many", (source(100_000), 7), {"range": (-3.0, 3.0)})


@named("histogram_edges", "f", SINGLE_AND_DOUBLE)
def histogram_edges(row: Row, source: Source) -> Iterator[Sample]:
    edges = source.of([-2.0, -1.5, 0.0, 0.25, 3.0])
    for name, operand in _layouts(source, 4, 5):
        yield Sample(name, (operand, edges))
    yield Sample("strided edges", (source(20), source.of([-2.0, 0.0, 3.0], layout="stepped")))
    yield Sample("density", (source(20), edges), {"density": True})
    yield Sample("weight", (source(20), edges), {"weight": source(20, domain="positive")})


# ---- finite differences and integrals


@named("diff")
def diff(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 5):
        for given in ((), (1, 0), (2,), (3, 1), (7,), (0,)):
            yield Sample(f"{name}, {given}", (operand, *given))
    joined = (source(3, 5), 1, 1, source(3, 2), source(3, 1))
    yield Sample("prepend and append", joined)
    yield Sample("prepend rows", (source(3, 5), 2, 0, source(1, 5)))
    yield Sample("zero-size", (source(3, 0),))


_SAMPLED_FUNCTIONS = {"edge_order": 1}, {"edge_order": 2}


@named("gradient", "ifc")
def gradient(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        for given in _SAMPLED_FUNCTIONS:
            yield Sample(f"{name}, {given}", (operand,), given)
        yield Sample(f"{name}, spacing", (operand,), {"spacing": 2})
        yield Sample(f"{name}, dim", (operand,), {"spacing": 0.5, "dim": 1})
        yield Sample(f"{name}, dims", (operand,), {"dim": (1, 0), "edge_order": 2})
    yield Sample("two elements", (source(2),))
    yield Sample("0-dim", (source(),))


@named("gradient_each", "fc")
def gradient_each(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        for given in _SAMPLED_FUNCTIONS:
            yield Sample(f"{name}, {given}", (operand,), {"spacing": [0.5, 2.0], **given})
        yield Sample(f"{name}, dim", (operand,), {"spacing": [0.5], "dim": (-1,)})


@named("gradient_coordinates", "f")
def gradient_coordinates(row: Row, source: Source) -> Iterator[Sample]:
    rows, columns = source.of([0.0, 1.0, 3.0]), source.of([-1.0, 0.5, 1.0, 4.0])
    for name, operand in _layouts(source, 3, 4):
        for given in _SAMPLED_FUNCTIONS:
            yield Sample(f"{name}, {given}", (operand,), {"spacing": [rows, columns], **given})
        yield Sample(f"{name}, dim", (operand,), {"spacing": [columns], "dim": 1})


@named("samples", "ifc")
def samples(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        yield Sample(name, (operand,))
        yield Sample(f"{name}, rows", (operand,), {"dim": 0, "dx": 0.5})
    yield Sample("one sample", (source(3, 1),))


@named("samples_at", "ifc")
def samples_at(row: Row, source: Source) -> Iterator[Sample]:
    def places(*shape):
        """In rising order and near each other: PyTorch's small integers wrap around."""
        return source.of(np.sort(source(*shape, low=0, high=3).values))

    small = {"low": 0, "high": 3}
    for name, operand in _layouts(source, 3, 4, **small):
        yield Sample(name, (operand, places(4)))
        yield Sample(f"{name}, rows", (operand, places(3)), {"dim": 0})
    yield Sample("each line", (source(3, 4, **small), places(3, 4)))
    yield Sample("fewer dimensions", (source(2, 3, 4, **small), places(3, 4)))
    yield Sample("one sample", (source(3, 1), source(1)))


@named("combinations")
def combinations(row: Row, source: Source) -> Iterator[Sample]:
    for r in (0, 1, 2, 3, 6):
        for replace in (False, True):
            yield Sample(f"{r} of 4, {replace}", (source(4), r, replace), smooth=r > 0)
    yield Sample("stepped", (source(5, layout="stepped"),))
    yield Sample("none", (source(0), 2))


# ---- shapes


@named("rot90")
def rot90(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        for k in range(-1, 5):
            yield Sample(f"{name}, {k}", (operand, k))
    yield Sample("cube", (source(2, 3, 4), 1, (1, 2)))
    yield Sample("negative dims", (source(2, 3, 4), 3, (-1, 0)))
    yield Sample("zero-size", (source(0, 3), 1))


@named("at_least_matrix")
def at_least_matrix(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        yield Sample(name, (operand,))
    yield Sample("cube", (source(2, 3, 4, layout="transposed"),))
    yield Sample("zero-size", (source(0, 3),))


@named("matrices")
def matrices(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 2, 3, 4):
        yield Sample(name, (operand,))
    yield Sample("matrix", (source(3, 4),))


@named("unsafe_split")
def unsafe_split(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 5, 4):
        for given in ((2,), (3, 1), (9, 0), (1, -1)):
            yield Sample(f"{name}, {given}", (operand, *given))


@named("as_strided_scatter")
def as_strided_scatter(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("every other", (source(6), source(3), (3,), (2,)))
    yield Sample("offset", (source(12), source(2, 3), (2, 3), (4, 1), 2))
    yield Sample("turned", (source(3, 4), source(4, 3), (4, 3), (1, 4)))
    yield Sample("stepped", (source(3, 4), source(2, 2, layout="stepped"), (2, 2), (4, 2)))
    yield Sample("one element", (source(5), source(), (), (), 3))


# ---- selections


@named("index_reduce", "if")
def index_reduce(row: Row, source: Source) -> Iterator[Sample]:
    for reduce in ("prod", "mean", "amax", "amin"):
        if reduce == "mean" and source.letter == "i":
            continue
        small = {"low": 1, "high": 3}
        again = source.positions([0, 0, 2, 0])
        vector = (source(4, **small), 0, again, source(4, **small), reduce)
        yield Sample(reduce, vector)
        yield Sample(f"{reduce}, without self", vector, {"include_self": False})
        rows = (source(4, 3, **small), 0, again, source(4, 3, **small), reduce)
        yield Sample(f"{reduce}, rows", rows)
        strided = (
            source(3, 4, layout="transposed", **small),
            -1,
            source.positions([1, 1]),
            source(3, 2, layout="stepped", **small),
            reduce,
        )
        yield Sample(f"{reduce}, strided", strided)


@named("nonzero_static")
def nonzero_static(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        for size in (0, 2, 20):
            yield Sample(f"{name}, {size}", (operand,), {"size": size})
    yield Sample("fill", (source(3, 4),), {"size": 20, "fill_value": 7})
    yield Sample("0-dim", (source(),), {"size": 2})


@named("fill")
def fill(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand in _layouts(source, 3, 4):
        yield Sample(f"{name}, tensor", (operand, source()))
        yield Sample(name, (operand, source.number()))
    yield Sample("0-dim", (source(), source.number()))
    yield Sample("zero-size", (source(0, 3), source.number()))
