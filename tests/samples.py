"""The samples of every row: by its family, or by the name that its `samples=` gives.

A row of ops/ without `samples` is covered by its family: elementwise rows by all their operands,
reductions by their `dim` and `keepdim`, other rows that take tensors only like elementwise ones.
`samples="none"` says that tests written by hand cover the row.
"""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from operands import DTYPES, LETTER, Operand, Sample, Source, dtypes_of

from gen.rows import Row

FULL = os.environ.get("FACULA_FULL") == "1"
# How many samples a dtype gets in the short run; the four dtypes that stand for the rest get all.
SHORT = 6
ALWAYS_ALL = ("int64", "float32", "float64", "complex128")


@dataclass(frozen=True)
class Generator:
    make: Callable[[Row, Source], Iterable[Sample]]
    types: str = "bifc"  # dtype letters, for rows that do not say
    dtypes: tuple[str, ...] = ()  # or single dtypes


# ---- elementwise


def elementwise_samples(row: Row, source: Source, second: str | None = None) -> Iterator[Sample]:
    """All operands of one domain; `second` is the domain of every operand but the first."""
    arguments = [a for a in row.schema.args if a.is_tensor]
    masks = row.family.options.get("masks", ())
    count = len(arguments)
    divides = divides_by_its_operands(row)

    def operands(shapes, layouts=("contiguous",), skip=()):
        made = []
        for k, argument in enumerate(arguments):
            shape, layout = shapes[k % len(shapes)], layouts[k % len(layouts)]
            if argument.name in masks:
                made.append(source.mask(*shape, layout=layout))
            else:
                made.append(
                    source(
                        *shape,
                        layout=layout,
                        domain=second if k else None,
                        nonzero=divides and k > 0,
                    )
                )
        return tuple(made)

    yield Sample("contiguous", operands([(2, 3)]))
    yield Sample("transposed", operands([(3, 4)], ["transposed"]))
    yield Sample("stepped", operands([(3, 5)], ["stepped"]))
    yield Sample("expanded", operands([(4, 3)], ["expanded", "contiguous"]), smooth=count > 1)
    yield Sample("alone", operands([(1, 5)], ["alone"]), smooth=False)
    yield Sample("0-dim", operands([()]))
    yield Sample("zero-size", operands([(0, 3)]))
    yield Sample("channels last", operands([(2, 3, 2, 2)], ["channels_last"]))
    yield Sample("odd length at an offset", operands([(37,)], ["offset"]), smooth=False)
    yield Sample("past the vector width", operands([(1031,)]), smooth=False)
    if source.dtype == "float32" or FULL:
        yield Sample("many", operands([(70_001,)]), smooth=False)
        yield Sample("many transposed", operands([(301, 233)], ["transposed"]), smooth=False)
    if count > 1:
        yield Sample("two layouts", operands([(3, 4)], ["transposed", "contiguous"]))
        yield Sample("three layouts", operands([(3, 4)], ["stepped", "offset", "transposed"]))
        yield Sample("broadcast", operands([(2, 1, 3), (4, 1), (3,)]))
        yield Sample("broadcast to zero size", operands([(0, 1), (1, 3)]))
        yield Sample("0-dim and more", operands([(2, 3), ()]))
        yield Sample("more and 0-dim", operands([(), (2, 3)]))
        takes_numbers = arguments[-1].operand and row.family.options.get("numbers") is not False
        if takes_numbers and arguments[-1].name not in masks:
            yield Sample("number", (*operands([(2, 3)])[:-1], source.number()))
        yield from _mixed_dtypes(row, operands, masks)
    for argument in row.schema.args:
        if row.is_elementwise and argument.type == "Scalar" and argument.default is not None:
            given = {"b": False, "c": 2 - 1j}.get(source.letter, 2)
            yield Sample(argument.name, operands([(2, 3)]), {argument.name: given})
    if source.letter == "f":
        yield Sample("special values", _special(operands, count, source), smooth=False)
    if source.letter == "i" and not divides:
        yield Sample("extreme values", _extreme(operands, count, source), smooth=False)


def divides_by_its_operands(row: Row) -> bool:
    """Whether operands after the first may not be zero when they are integers."""
    words = ("/", "divide", "remainder", "fmod")
    return row.name == "div" or any(w in text for text in row.f.values() for w in words)


def _mixed_dtypes(row: Row, operands, masks) -> Iterator[Sample]:
    first, second, *rest = operands([(2, 3)])
    if masks or second.role != "data" or row.family.options.get("check") == "end_of_one_dtype":
        return
    promoted = {"b": "uint8", "i": "float32", "f": "int32", "c": "float64"}
    other = promoted[LETTER[first.dtype]]
    if LETTER[first.dtype] == "i" and "f" not in row.family.options.get("types", "f"):
        other = "int16"
    values = second.values.real if LETTER[first.dtype] == "c" else second.values
    if LETTER[other] == "i":
        values = np.where(np.trunc(values) == 0, 1, np.trunc(values))
    converted = replace(second, values=values.astype(other), dtype=other)
    yield Sample("another dtype", (first, converted, *rest), smooth=False)


def _special(operands, count: int, source: Source) -> tuple[Operand, ...]:
    """Every pair of the special values meets once; a third operand is ordinary."""
    tiny = float(np.finfo("float16" if source.dtype == "float16" else "float32").tiny)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, tiny, 300.0, -300.0]
    n = len(special)
    columns = [np.repeat(special, n), np.tile(special, n)] if count > 1 else [np.array(special)]
    ordinary = operands([(len(columns[0]),)])
    return tuple(
        source.of(columns[k]) if k < len(columns) and ordinary[k].role == "data" else ordinary[k]
        for k in range(count)
    )


def _extreme(operands, count: int, source: Source) -> tuple[Operand, ...]:
    """Wrapping around the ends of an integer dtype."""
    info = np.iinfo(source.dtype)
    special = np.array([info.min, info.max, info.max // 2 + 1, 0, 1, 3], dtype=source.dtype)
    n = len(special)
    columns = [np.repeat(special, n), np.tile(special, n)] if count > 1 else [special]
    ordinary = operands([(len(columns[0]),)])
    return tuple(
        source.of(columns[k]) if k < len(columns) and ordinary[k].role == "data" else ordinary[k]
        for k in range(count)
    )


def _in_domain(domain: str) -> Generator:
    def make(row: Row, source: Source) -> Iterator[Sample]:
        source.domain = domain
        return elementwise_samples(row, source)

    return Generator(make)


def _positive_second(row: Row, source: Source) -> Iterator[Sample]:
    return elementwise_samples(row, source, second="positive")


# ---- reductions


def dims_for(argument, ndim: int) -> list:
    """What to pass for a `dim` argument: one dimension, or several where a list is taken."""
    one = [0, -1, 1][: max(ndim, 1)] if ndim != 1 else [0, -1]
    if argument.type == "int":
        return one
    several = [(0, -1)] if ndim >= 2 else []
    everything = [None] if argument.optional else []
    return [*one, *several, (-1,), *everything]


def reduction_samples(row: Row, source: Source) -> Iterator[Sample]:
    arguments = {a.name: a for a in row.schema.args}
    empty = row.family.options.get("empty", True)

    def over_dims(name: str, operand: Operand, smooth: bool = True) -> Iterator[Sample]:
        dim = arguments.get("dim")
        if (dim is None or dim.default is not None) and (empty or operand.values.size):
            yield Sample(name, (operand,), smooth=smooth)
        if dim is None:
            return
        for d in dims_for(dim, len(operand.shape)):
            axes = d if isinstance(d, tuple) else (d,)
            reduced = operand.values.size if d is None else 1
            if d is not None and operand.shape:
                reduced = int(np.prod([operand.shape[a] for a in axes]))
            if reduced == 0 and not empty:
                continue
            yield Sample(f"{name}, dim={d}", (operand, d), smooth=smooth)
            if "keepdim" in arguments:
                kept = {"keepdim": True}
                yield Sample(f"{name}, dim={d}, keepdim", (operand, d), kept, smooth=smooth)

    yield from over_dims("matrix", source(3, 4))
    yield from over_dims("vector", source(5))
    yield from over_dims("cube", source(2, 3, 4))
    yield from over_dims("transposed", source(3, 4, layout="transposed"))
    yield from over_dims("stepped", source(2, 3, 4, layout="stepped"))
    yield from over_dims("expanded", source(4, 3, layout="expanded"), smooth=False)
    yield from over_dims("alone", source(1, 3, 17, layout="alone"), smooth=False)
    yield from over_dims("0-dim", source())
    yield from over_dims("no rows", source(0, 3))
    yield from over_dims("no columns", source(3, 0))
    if row.name != "prod" or source.dtype in ("float32", "float64"):
        # Products of many numbers stay finite near 1. (PyTorch rounds half precision every time.)
        near_one = {"low": 0.98, "high": 1.02} if row.name == "prod" else {}
        yield from over_dims("wide", source(3, 1031, **near_one), smooth=False)
        yield from over_dims("tall", source(1031, 3, **near_one), smooth=False)
        if source.dtype == "float32" or FULL:
            yield from over_dims("many", source(301, 233, **near_one), smooth=False)
    if source.letter == "f" and row.name != "prod":
        special = [[np.nan, 1.0, 2.0], [np.inf, 1.0, -1.0], [np.inf, -np.inf, 0.0]]
        yield from over_dims("special values", source.of(special), smooth=False)
    if "dtype" in arguments and source.letter in "if":
        dim = (0,) if "dim" in arguments else ()
        yield Sample("dtype", (source(3, 4), *dim), {"dtype": "float64"}, smooth=False)


# ---- the registry

# Every file samples_<area>.py beside this one brings the generators of its rows.
_MODULES = [
    importlib.import_module(path.stem)
    for path in sorted(Path(__file__).parent.glob("samples_*.py"))
]
BY_FAMILY = {
    "elementwise": Generator(elementwise_samples),
    "reduction": Generator(reduction_samples),
    "view": Generator(elementwise_samples),
    "kernel": Generator(elementwise_samples),
    "composite": Generator(elementwise_samples),
}
BY_NAME = {
    "positive": _in_domain("positive"),
    "unit": _in_domain("unit"),
    "above_one": _in_domain("above_one"),
    "positive_second": Generator(_positive_second),
    **{name: Generator(*entry) for m in _MODULES for name, entry in m.NAMED.items()},
}
# Generators for one row, also where it says samples="none".
BY_ROW = {name: Generator(*entry) for m in _MODULES for name, entry in m.FOR_ROW.items()}
# Rows whose kernel takes fewer (or more) dtypes than the samples that they share with others.
TYPES_BY_ROW = {
    "mean": "fc",
    "nanmean": "fc",
    "median": "if",
    "msort": "bif",
    "max.dim": "bif",
    "min.dim": "bif",
    "trace": "ifc",
}


def row_id(row: Row) -> str:
    return f"{row.name}.{row.schema.overload}" if row.schema.overload else row.name


def has_samples(row: Row) -> bool:
    """False for rows that are covered elsewhere: by hand, or through the rows that use them."""
    if row_id(row) in BY_ROW:
        return True
    if row.samples == "none" or row.mutates:
        return False
    return row.samples is not None or (row.python != "" and not row.python.startswith("_"))


def generator_of(row: Row) -> Generator:
    """The generator of a row; raises LookupError, with what to do, when there is none."""
    if row_id(row) in BY_ROW:
        return BY_ROW[row_id(row)]
    if row.samples is not None:
        if row.samples not in BY_NAME:
            raise LookupError(
                f"{row_id(row)}: no samples are called {row.samples!r}. Add a generator of that "
                "name to tests/samples_*.py, or name one of: " + ", ".join(sorted(BY_NAME))
            )
        return BY_NAME[row.samples]
    if row.family.name != "reduction":
        for a in row.schema.args:
            if not a.is_tensor and a.default is None:
                raise LookupError(
                    f"{row_id(row)}: the {row.family.name} family has no samples for the argument "
                    f"{a.name!r}. Give the row samples=, with a generator in tests/samples_*.py"
                )
    return BY_FAMILY[row.family.name]


def sampled_dtypes(row: Row) -> list[str]:
    """The dtypes that the row accepts."""
    generator, options = generator_of(row), row.family.options
    if row_id(row) in TYPES_BY_ROW:
        return dtypes_of(TYPES_BY_ROW[row_id(row)])
    if generator.dtypes:
        return list(generator.dtypes)
    types = options.get("types", generator.types)
    if options.get("promote") == "Float" or options.get("integers"):
        types += "bi" if options.get("promote") == "Float" else "b"
    if options.get("result") == "Bool":
        types = "bifc"
    return dtypes_of(types)


def all_samples(row: Row, dtype: str) -> list[Sample]:
    samples = list(generator_of(row).make(row, Source(row_id(row), dtype)))
    refused = {n for n, text in row.grad.items() if text.startswith("_no_derivative")}
    return [_with_constants(row, s, refused) for s in samples] if refused else samples


def _with_constants(row: Row, sample: Sample, names: set[str]) -> Sample:
    """The sample with the named arguments marked as not differentiable."""

    def mark(name: str, value):
        return (
            replace(value, constant=True) if name in names and isinstance(value, Operand) else value
        )

    args = tuple(mark(a.name, v) for a, v in zip(row.schema.args, sample.args, strict=False))
    return replace(
        sample, args=args, kwargs={name: mark(name, v) for name, v in sample.kwargs.items()}
    )


def samples_of(row: Row, dtype: str, at_most: int = SHORT) -> list[Sample]:
    """All samples, or in the short run `at_most` of them, others for each dtype."""
    samples = all_samples(row, dtype)
    if FULL or dtype in ALWAYS_ALL or len(samples) <= at_most:
        return samples
    return spread(samples, at_most, f"{row_id(row)}:{dtype}")


def spread(samples: list[Sample], at_most: int, key: str) -> list[Sample]:
    """`at_most` of the samples at equal distances, from a start that depends on the key."""
    if FULL or len(samples) <= at_most:
        return samples
    start = zlib.crc32(key.encode()) % len(samples)
    chosen = {(start + k * len(samples) // at_most) % len(samples) for k in range(at_most)}
    return [samples[k] for k in sorted(chosen)]


assert set(LETTER) == {dtype for group in DTYPES.values() for dtype in group}
