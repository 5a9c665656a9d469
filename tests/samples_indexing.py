"""Samples by name: reading and writing by index and mask, diagonals, sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead


def _unique(source: Source, *shape: int, below: int, dim: int) -> Operand:
    """Positions that differ along `dim`, so that no two writes meet."""
    lines = np.empty(shape, dtype=np.int64)
    moved = np.moveaxis(lines, dim, 0)
    for line in np.ndindex(moved.shape[1:]):
        moved[(slice(None), *line)] = source.random.permutation(below)[: moved.shape[0]]
    return source.positions(lines)


def _brackets(source: Source, distinct: bool) -> list[tuple[str, Operand, list]]:
    """(name, self, indices); None stands for a full slice."""

    def rows(n, below):
        return _unique(source, n, below=below, dim=0) if distinct else source.index(n, below=below)

    return [
        ("vector", source(6), [rows(4, 6)]),
        ("rows", source(4, 3), [rows(3, 4)]),
        ("columns", source(3, 4), [None, rows(3, 4)]),
        ("both", source(4, 5), [rows(3, 4), rows(3, 5)]),
        ("around a slice", source(3, 2, 4), [rows(2, 3), None, rows(2, 4)]),
        ("negative", source(6), [source.positions([-1, 0, -3])]),
        ("broadcast", source(4, 5), [source.positions([[0], [3]]), source.positions([1, 4, 2])]),
        ("strided", source(4, 3, layout="transposed"), [rows(3, 4)]),
        ("mask", source(2, 3), [source.mask(2, 3)]),
        ("mask of rows", source(4, 3), [source.mask(4)]),
        ("no positions", source(4, 3), [source.positions(np.empty(0, dtype=np.int64))]),
    ]


@named("index")
def index(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand, indices in _brackets(source, distinct=False):
        yield Sample(name, (operand, indices))


@named("index_put")
def index_put(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand, indices in _brackets(source, distinct=True):
        key = tuple(slice(None) if i is None else i.values for i in indices)
        shape = operand.values[key].shape
        yield Sample(name, (operand, indices, source(*shape)))
        yield Sample(f"{name}, one value", (operand, indices, source()))
    if source.letter != "b":
        again = [source.positions([1, 1, 0, 1])]
        yield Sample("accumulate", (source(3), again, source(4), True))
        rows = [source.positions([2, 0, 2])]
        yield Sample("accumulate rows", (source(3, 2), rows, source(3, 2), True))


@named("gather")
def gather(row: Row, source: Source) -> Iterator[Sample]:
    for dim, below in ((0, 3), (1, 4), (-1, 4)):
        yield Sample(f"dim={dim}", (source(3, 4), dim, source.index(3, 4, below=below)))
    yield Sample("smaller index", (source(3, 4), 1, source.index(2, 2, below=4)))
    yield Sample("cube", (source(2, 3, 4), 1, source.index(2, 5, 4, below=3)))
    strided = source.index(3, 4, below=4, layout="transposed")
    yield Sample("strided", (source(3, 4, layout="transposed"), 1, strided))
    expanded = (source(4, 3, layout="expanded"), 0, source.index(2, 3, below=4))
    yield Sample("expanded", expanded, smooth=False)
    yield Sample("0-dim", (source(), 0, source.index(below=1)))
    yield Sample("no index", (source(3, 4), 1, source.index(3, 0, below=4)))


@named("scatter")
def scatter(row: Row, source: Source) -> Iterator[Sample]:
    for dim, below in ((0, 5), (1, 4), (-1, 4)):
        positions = _unique(source, 3, 2, below=below, dim=dim)
        yield Sample(f"dim={dim}", (source(5, 4), dim, positions, source(3, 2)))
    positions = _unique(source, 3, 2, below=4, dim=1)
    yield Sample("larger source", (source(5, 4), 1, positions, source(4, 3)))
    strided = (source(3, 4, layout="transposed"), 1, positions, source(3, 2, layout="stepped"))
    yield Sample("strided", strided)
    yield Sample("0-dim", (source(), 0, source.positions(0), source()))
    yield Sample("no index", (source(3, 4), 1, source.index(3, 0, below=4), source(3, 4)))
    if row.name != "scatter":
        again = source.positions([0, 0, 2, 0])
        yield Sample("equal positions", (source(3), 0, again, source(4)))


@named("scatter_value")
def scatter_value(row: Row, source: Source) -> Iterator[Sample]:
    for dim, below in ((0, 5), (1, 4)):
        positions = _unique(source, 3, 2, below=below, dim=dim)
        yield Sample(f"dim={dim}", (source(5, 4), dim, positions, source.number()))
    positions = source.index(3, 2, below=4)
    strided = (source(3, 4, layout="transposed"), 1, positions, source.number())
    yield Sample("strided", strided)
    yield Sample("no index", (source(3, 4), 1, source.index(3, 0, below=4), source.number()))


@named("scatter_reduce", "if")
def scatter_reduce(row: Row, source: Source) -> Iterator[Sample]:
    again = source.positions([0, 0, 2, 0])
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        if reduce == "mean" and source.letter == "i":
            continue
        small = {"low": 1, "high": 3}
        yield Sample(reduce, (source(4, **small), 0, again, source(4, **small), reduce))
        given = (source(4, **small), 0, again, source(4, **small), reduce)
        yield Sample(f"{reduce}, without self", given, {"include_self": False})
        matrix = (source(3, 4, **small), 1, source.index(3, 3, below=4), source(3, 3, **small))
        yield Sample(f"{reduce}, matrix", (*matrix, reduce))
        strided = (
            source(3, 4, layout="transposed", **small),
            0,
            source.index(2, 4, below=3),
            source(2, 4, layout="stepped", **small),
        )
        yield Sample(f"{reduce}, strided", (*strided, reduce))


@named("index_select")
def index_select(row: Row, source: Source) -> Iterator[Sample]:
    for dim, below in ((0, 3), (1, 4), (-1, 4)):
        yield Sample(f"dim={dim}", (source(3, 4), dim, source.index(5, below=below)))
    yield Sample("transposed", (source(3, 4, layout="transposed"), 1, source.index(3, below=4)))
    stepped = source.index(3, below=3, layout="stepped")
    yield Sample("stepped", (source(3, 4, layout="stepped"), 0, stepped))
    yield Sample("0-dim", (source(), 0, source.index(1, below=1)))
    yield Sample("no index", (source(3, 4), 1, source.index(0, below=4)))


def _slices(source: Source, distinct: bool) -> Iterator[tuple[str, Operand, int, Operand, Operand]]:
    """(name, self, dim, index, source of the slices)"""
    for dim, below, shape in ((0, 4, (2, 3)), (1, 3, (4, 2)), (-1, 3, (4, 2))):
        positions = (
            _unique(source, 2, below=below, dim=0) if distinct else source.index(2, below=below)
        )
        yield f"dim={dim}", source(4, 3), dim, positions, source(*shape)
    positions = source.positions([2, 0])
    yield (
        "strided",
        source(4, 3, layout="transposed"),
        0,
        positions,
        source(2, 3, layout="stepped"),
    )
    yield "cube", source(2, 3, 2), 1, positions, source(2, 2, 2)
    yield "no index", source(4, 3), 0, source.index(0, below=4), source(0, 3)


@named("index_add", "ifc")
def index_add(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand, dim, positions, slices in _slices(source, distinct=False):
        yield Sample(name, (operand, dim, positions, slices))
    again = source.positions([0, 2, 0])
    given = (source(3, 2), 0, again, source(3, 2))
    yield Sample("alpha", given, {"alpha": {"i": 2, "f": 1.5, "c": 1.5 - 1j}[source.letter]})


@named("index_copy")
def index_copy(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand, dim, positions, slices in _slices(source, distinct=True):
        yield Sample(name, (operand, dim, positions, slices))


@named("index_fill")
def index_fill(row: Row, source: Source) -> Iterator[Sample]:
    for name, operand, dim, positions, _ in _slices(source, distinct=True):
        yield Sample(name, (operand, dim, positions, source.number()))
    yield Sample("tensor", (source(4, 3), 0, source.positions([1, 3]), source()))


@named("take")
def take(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4), source.index(2, 3, below=12)))
    yield Sample("negative", (source(3, 4), source.index(5, below=12, low=-12)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source.index(5, below=12)))
    yield Sample("0-dim", (source(3, 4), source.index(below=12)))
    yield Sample("no index", (source(3, 4), source.index(0, below=12)))


@named("put")
def put(row: Row, source: Source) -> Iterator[Sample]:
    positions = source.positions([[0, 7], [-1, 3]])
    yield Sample("matrix", (source(3, 4), positions, source(2, 2)))
    yield Sample("strided", (source(3, 4, layout="transposed"), positions, source(4)))
    yield Sample("no index", (source(3, 4), source.index(0, below=12), source(0)))
    if source.letter != "b":
        again = source.positions([0, 5, 0])
        yield Sample("accumulate", (source(3, 4), again, source(3)), {"accumulate": True})


@named("take_along_dim")
def take_along_dim(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("dim=0", (source(3, 4), source.index(2, 4, below=3), 0))
    yield Sample("dim=1", (source(3, 4), source.index(3, 2, below=4), 1))
    yield Sample("broadcast", (source(3, 4), source.index(1, 2, below=4), 1))
    yield Sample("flat", (source(3, 4), source.index(5, below=12)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source.index(3, 2, below=4), -1))


@named("masked_select")
def masked_select(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("same shape", (source(3, 4), source.mask(3, 4)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source.mask(3, 4)))
    yield Sample("broadcast mask", (source(3, 4), source.mask(3, 1)))
    yield Sample("broadcast self", (source(4), source.mask(3, 1)))
    yield Sample("0-dim", (source(), source.mask()))
    yield Sample("zero-size", (source(0, 3), source.mask(3)))


@named("masked_scatter")
def masked_scatter(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("same shape", (source(3, 4), source.mask(3, 4), source(12)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source.mask(3, 4), source(3, 4)))
    yield Sample("broadcast mask", (source(3, 4), source.mask(4), source(14)))
    yield Sample("zero-size", (source(0, 3), source.mask(3), source(2)))


# ---- a copy with one view replaced


@named("select_scatter")
def select_scatter(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("rows", (source(3, 4), source(4), 0, 1))
    yield Sample("columns", (source(3, 4), source(3), -1, -2))
    strided = (source(3, 4, layout="transposed"), source(3, layout="stepped"), 1, 0)
    yield Sample("strided", strided)


@named("slice_scatter")
def slice_scatter(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("rows", (source(4, 3), source(2, 3), 0, 1, 3))
    yield Sample("steps", (source(3, 5), source(3, 3), 1, None, None, 2))
    yield Sample("negative", (source(3, 5), source(3, 2), -1, -3, -1))
    strided = (source(4, 3, layout="transposed"), source(2, 3, layout="stepped"), 0, 2)
    yield Sample("strided", strided)


@named("diagonal_scatter")
def diagonal_scatter(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("main", (source(3, 4), source(3)))
    yield Sample("above", (source(3, 4), source(3), 1))
    yield Sample("below", (source(3, 4, layout="transposed"), source(2, layout="stepped"), -1))
    yield Sample("cube", (source(2, 3, 4), source(2, 3), 0, 1, 2))


# ---- diagonals


@named("diag_embed")
def diag_embed(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(3),))
    yield Sample("above", (source(3), 1))
    yield Sample("below", (source(2, 3, layout="transposed"), -2))
    yield Sample("dimensions", (source(2, 3), 0, 0, 2))
    yield Sample("zero-size", (source(0),))


@named("diag")
def diag(row: Row, source: Source) -> Iterator[Sample]:
    for k in (0, 1, -2):
        yield Sample(f"vector, {k}", (source(3), k))
        yield Sample(f"matrix, {k}", (source(3, 4), k))
    yield Sample("stepped", (source(3, layout="stepped"),))
    yield Sample("transposed", (source(3, 4, layout="transposed"), -1))


# ---- order


@named("sort", "bif")
def sort(row: Row, source: Source) -> Iterator[Sample]:
    for descending in (False, True):

        def sample(name, operand, dim, smooth=True, descending=descending):
            order = ", descending" if descending else ""
            return Sample(f"{name}{order}", (operand, dim, descending), {}, smooth)

        yield sample("matrix", source(3, 4), 0)
        yield sample("vector", source(7), -1)
        yield sample("cube", source(2, 3, 4), 1)
        yield sample("transposed", source(3, 4, layout="transposed"), 1)
        yield sample("stepped", source(3, 4, layout="stepped"), 0)
        yield sample("0-dim", source(), 0)
        yield sample("zero-size", source(0, 3), 0)
        yield sample("many", source(1031), 0, False)
        if source.letter == "f":
            special = [1.0, np.nan, np.inf, -np.inf, 0.0, -0.0, np.nan, 1.0]
            yield sample("special values", source.of(special), 0, False)


@named("topk", "if")
def topk(row: Row, source: Source) -> Iterator[Sample]:
    for largest in (True, False):

        def sample(name, operand, k, dim, smooth=True, largest=largest):
            which = "largest" if largest else "smallest"
            return Sample(f"{name}, {which}", (operand, k, dim, largest), {}, smooth)

        yield sample("matrix", source(3, 4, distinct=True), 2, 0)
        yield sample("all", source(3, 4, distinct=True), 4, -1)
        yield sample("none", source(3, 4, distinct=True), 0, 1)
        yield sample("transposed", source(3, 4, layout="transposed", distinct=True), 2, 1)
        yield sample("stepped", source(3, 4, layout="stepped", distinct=True), 1, 0)
        yield sample("0-dim", source(), 1, 0)
        if source.dtype not in ("uint8", "int8", "float16", "bfloat16"):
            yield sample("many", source(1031, distinct=True), 5, 0, False)


@named("kthvalue", "if")
def kthvalue(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("first", (source(3, 4, distinct=True), 1))
    yield Sample("dim=0", (source(3, 4, distinct=True), 2, 0))
    yield Sample("keepdim", (source(3, 4, distinct=True), 3, 1, True))
    yield Sample("transposed", (source(3, 4, layout="transposed", distinct=True), 4, 1))
    yield Sample("stepped", (source(3, 4, layout="stepped", distinct=True), 2, 0))
    yield Sample("0-dim", (source(), 1, 0))


# ---- overloads that say in another way what a row with samples says


@for_row("scatter.reduce", "if")
def scatter_with(row: Row, source: Source) -> Iterator[Sample]:
    again = source.positions([0, 0, 2, 0])
    for reduce in ("add", "multiply"):
        given = {"reduce": reduce}
        yield Sample(reduce, (source(4), 0, again, source(4)), given, smooth=False)
        strided = (
            source(3, 4, layout="transposed"),
            1,
            source.index(3, 2, below=4),
            source(3, 2),
        )
        yield Sample(f"{reduce}, strided", strided, given, smooth=False)


@for_row("scatter.value_reduce", "if")
def scatter_number_with(row: Row, source: Source) -> Iterator[Sample]:
    for reduce in ("add", "multiply"):
        given = {"reduce": reduce}
        positions = _unique(source, 3, 2, below=4, dim=1)
        strided = (source(3, 4, layout="transposed"), 1, positions, source.number())
        yield Sample(f"{reduce}, strided", strided, given, smooth=False)


@for_row("sort.stable", "bif")
@for_row("argsort.stable", "bif")
def stable_sort(row: Row, source: Source) -> Iterator[Sample]:
    for descending in (False, True):
        given = {"stable": True, "dim": 0, "descending": descending}
        yield Sample(f"vector, descending={descending}", (source(37),), given)
        strided = source(3, 4, layout="transposed")
        yield Sample(f"strided, descending={descending}", (strided,), given)
