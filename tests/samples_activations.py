"""Samples of activations."""

from __future__ import annotations

from collections.abc import Iterator

from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()

# What to pass for parameters that have a default.
GIVEN = {
    "alpha": 0.7,
    "min_val": -0.4,
    "max_val": 2.5,
    "negative_slope": 0.3,
    "lower": 0.2,
    "upper": 0.6,
    "lambd": 1.25,
    "beta": 2.0,
    "threshold": 3.0,
}
# PyTorch's infinities become NaN here.
WITHOUT_INFINITIES = ("gelu", "mish", "silu")


def layouts(row: Row, source: Source, *rest) -> Iterator[Sample]:
    yield Sample("contiguous", (source(2, 3), *rest))
    yield Sample("transposed", (source(3, 4, layout="transposed"), *rest))
    yield Sample("stepped", (source(3, 5, layout="stepped"), *rest))
    yield Sample("expanded", (source(4, 3, layout="expanded"), *rest), smooth=False)
    yield Sample("0-dim", (source(), *rest))
    yield Sample("zero-size", (source(0, 3), *rest))
    yield Sample("channels last", (source(2, 3, 2, 2, layout="channels_last"), *rest))
    yield Sample("past the vector width", (source(1031), *rest), smooth=False)
    yield Sample("wide", (source(1031, low=-12, high=12), *rest), smooth=False)
    if source.letter == "f" and row.name not in WITHOUT_INFINITIES:
        special = [float("nan"), float("inf"), float("-inf"), 0.25, -0.25, 30.0, -30.0]
        yield Sample("special values", (source.of(special), *rest), smooth=False)


def with_parameters(row: Row, source: Source) -> Iterator[Sample]:
    yield from layouts(row, source)
    for argument in row.schema.args:
        if argument.name in GIVEN and argument.default is not None:
            yield Sample(argument.name, (source(2, 3),), {argument.name: GIVEN[argument.name]})


named("activation", "f")(with_parameters)
named("shrink", "f")(with_parameters)
named("softplus", "f")(with_parameters)


@named("in_order", "f")
def in_order(row: Row, source: Source) -> Iterator[Sample]:
    """PyTorch's results lie in order whatever the input's layout; random slopes: tested by hand."""
    for sample in with_parameters(row, source):
        if sample.name not in ("transposed", "channels last", "expanded"):
            yield sample


named("silu", "fc")(with_parameters)


@named("threshold", "f")
def threshold(row: Row, source: Source) -> Iterator[Sample]:
    yield from layouts(row, source, 0.5, 20.0)


@named("gelu", "f")
def gelu(row: Row, source: Source) -> Iterator[Sample]:
    yield from layouts(row, source)
    yield Sample("tanh", (source(2, 3),), {"approximate": "tanh"})
    yield Sample("tanh, strided", (source(3, 4, layout="stepped"),), {"approximate": "tanh"})


@named("prelu", "f")
def prelu(row: Row, source: Source) -> Iterator[Sample]:
    yield from layouts(row, source, source(1))
    yield Sample("a weight without dimensions", (source(2, 3), source()))
    yield Sample("for each channel", (source(2, 3, 4), source(3)))
    yield Sample("strided", (source(2, 3, 4, layout="stepped"), source(3, layout="stepped")))
    yield Sample("channels last", (source(2, 3, 2, 2, layout="channels_last"), source(3)))


@named("glu", "f")
def glu(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("last", (source(3, 4),))
    yield Sample("first", (source(4, 3), 0))
    yield Sample("vector", (source(6),))
    yield Sample("strided", (source(3, 4, layout="stepped"), 1))
    yield Sample("transposed", (source(4, 6, layout="transposed"), -2))
    yield Sample("zero-size", (source(0, 4),))


@named("softmax_functional", "f")
def softmax(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("last", (source(3, 4), -1))
    yield Sample("first", (source(3, 4), 0))
    yield Sample("middle", (source(2, 3, 4), 1))
    yield Sample("strided", (source(3, 4, layout="stepped"), 1))
    yield Sample("0-dim", (source(), 0))
    yield Sample("zero-size", (source(0, 3), 1))
    yield Sample("dtype", (source(3, 4), 1), {"dtype": "float64"}, smooth=False)
