"""Samples by name: views, joining and repeating."""

from __future__ import annotations

from collections.abc import Iterator

from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead


def _sources(source: Source, *shape: int) -> list[tuple[str, Operand]]:
    """One shape in the layouts whose strides differ."""
    return [
        ("contiguous", source(*shape)),
        ("transposed", source(*shape, layout="transposed")),
        ("stepped", source(*shape, layout="stepped")),
    ]


def _cases(operands: list[tuple[str, Operand]], *arguments: tuple) -> Iterator[Sample]:
    for name, operand in operands:
        for given in arguments:
            yield Sample(f"{name}, {given}", (operand, *given))


@named("as_strided")
def as_strided(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("overlapping windows", (source(6), (4, 3), (1, 1)))
    yield Sample("offset", (source(12), (2, 3), (4, 1), 2))
    yield Sample("reversed order", (source(3, 4), (4, 3), (1, 4)))
    yield Sample("expanded", (source(3), (2, 3), (0, 1)))
    yield Sample("to 0-dim", (source(5), (), (), 3))
    yield Sample("zero-size", (source(5), (0, 2), (2, 1)))


@named("view")
def view(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("split", (source(6), (2, 3)))
    yield Sample("merged", (source(2, 3, 4), (6, 4)))
    yield Sample("inferred", (source(2, 3, 4), (-1, 2)))
    yield Sample("to 0-dim", (source(1), ()))
    yield Sample("from 0-dim", (source(), (1, 1)))
    yield Sample("zero-size", (source(0, 3), (3, 0)))
    yield Sample("rows of a transposed cube", (source(4, 2, 3, layout="transposed"), (2, 2, 2, 3)))
    yield Sample("stepped", (source(6, layout="stepped"), (3, 2)))


@named("reshape")
def reshape(row: Row, source: Source) -> Iterator[Sample]:
    yield from view(row, source)
    yield Sample("copy of a transposed matrix", (source(3, 4, layout="transposed"), (2, 6)))
    yield Sample("copy of an expanded one", (source(4, 3, layout="expanded"), (12,)), smooth=False)


@named("flatten")
def flatten(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3, 4), (), (1,), (0, 1), (-2, -1), (1, 1))
    yield Sample("0-dim", (source(),))
    yield Sample("zero-size", (source(2, 0, 3),))


@named("unflatten")
def unflatten(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 6), (1, (2, 3)), (1, (3, -1)), (-1, (6,)), (0, (1, 2)))


@named("two_dims")
def two_dims(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3, 4), (0, 1), (0, -1), (1, 1), (-3, 2))
    yield Sample("0-dim", (source(), 0, -1))
    yield Sample("zero-size", (source(0, 3), 0, 1))


@named("matrix")
def matrix(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 4), ())
    yield Sample("square", (source(3, 3),))
    yield Sample("no rows", (source(0, 3),))
    yield Sample("no columns", (source(3, 0),))


@named("permute")
def permute(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3, 4), ((2, 0, 1),), ((0, -1, 1),), ((0, 1, 2),))
    yield Sample("0-dim", (source(), ()))
    yield Sample("zero-size", (source(0, 3), (1, 0)))


@named("movedim")
def movedim(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3, 4), (0, -1), (2, 0), ((0, 1), (1, 2)), ((-1,), (0,)))


@named("expand")
def expand(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("column", (source(2, 1), (2, 3)))
    yield Sample("new dimension", (source(3), (2, 3)))
    if row.name == "expand":
        yield Sample("kept", (source(2, 1), (-1, 3)))
    yield Sample("0-dim", (source(), (2, 2)))
    yield Sample("to zero size", (source(1), (0,)))
    yield Sample("strided", (source(3, 1, 4, layout="stepped"), (2, 3, 5, 4)))


@named("squeeze")
def squeeze(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 1, 3, 1), ())
    yield Sample("nothing to drop", (source(2, 3),))
    yield Sample("all", (source(1, 1),))
    yield Sample("0-dim", (source(),))
    yield Sample("zero-size", (source(1, 0),))


@named("squeeze_dim")
def squeeze_dim(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 1, 3, 1), (0,), (-1,), (1,), ((0, 2),), ((0, 1),))
    yield Sample("0-dim", (source(), 0))


@named("unsqueeze")
def unsqueeze(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3), (0,), (1,), (2,), (-1,), (-3,))
    yield Sample("0-dim", (source(), 0))
    yield Sample("zero-size", (source(0), -1))


@named("select")
def select(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3, 4), (0, 1), (1, -1), (-1, 0), (2, 3))
    yield Sample("vector", (source(3), 0, 2))
    yield Sample("zero-size", (source(2, 0), 0, 1))


@named("slice")
def slice_(row: Row, source: Source) -> Iterator[Sample]:
    given = [(0, 1), (1, 1, 4), (1, None, None, 2), (-1, -3, -1), (0, 2, 1), (1, 0, 99, 3)]
    yield from _cases(_sources(source, 3, 5), *given)
    yield Sample("zero-size", (source(0, 3), 0, 0, 2))


@named("narrow")
def narrow(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 5), (0, 1, 2), (1, 0, 5), (-1, 2, 0), (1, -2, 2))


@named("diagonal")
def diagonal(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 4), (), (1,), (-1,), (9,), (0, 1, 0))
    yield from _cases(_sources(source, 2, 3, 4), (0, 1, 2), (1, 0, -1), (-1, -2, 0))
    yield Sample("zero-size", (source(0, 3),))


@named("unfold")
def unfold(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(
        _sources(source, 3, 6), (1, 2, 2), (1, 3, 1), (0, 2, 1), (-1, 6, 1), (1, 1, 4)
    )
    yield Sample("0-dim", (source(), 0, 1, 1))


@named("unbind")
def unbind(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3), (), (1,), (-1,))
    yield Sample("vector", (source(3),))
    yield Sample("zero-size", (source(2, 0),))


@named("split_with_sizes")
def split_with_sizes(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 5), ((1, 2),), ((2, 0, 3), 1), ((5,), -1))
    yield Sample("zero-size", (source(0, 2), (0, 0)))


@for_row("_split")
def split(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 5), (2,), (2, 1), (5, -1), (9,))
    yield Sample("zero-size", (source(0, 2), 1))


@named("chunk")
def chunk(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 5), (2,), (2, 1), (3, -1), (1,))
    yield Sample("more pieces than elements", (source(2), 3))
    yield Sample("zero-size", (source(0, 2), 2))


# ---- joining


@named("cat")
def cat(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vectors", ([source(2), source(3)],))
    yield Sample("rows", ([source(2, 3), source(1, 3), source(2, 3)],))
    yield Sample("columns", ([source(2, 3), source(2, 1)], 1))
    yield Sample("negative dim", ([source(2, 2, 3), source(2, 1, 3)], -2))
    yield Sample(
        "strided", ([source(3, 4, layout="transposed"), source(3, 4, layout="stepped")], 1)
    )
    yield Sample("expanded", ([source(4, 3, layout="expanded"), source(2, 3)],), smooth=False)
    yield Sample("one", ([source(2, 3)], 1))
    yield Sample("zero-size", ([source(0, 3), source(2, 3)],))
    yield Sample("all zero-size", ([source(0, 3), source(0, 3)], 1))
    yield Sample("many", ([source(501), source(530), source(1)],), smooth=False)
    other = {"b": "uint8", "i": "float32", "f": "float64", "c": "complex128"}[source.letter]
    yield Sample("another dtype", ([source(2), source(3, dtype=other)],), smooth=False)


@named("stack")
def stack(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vectors", ([source(3), source(3)],))
    yield Sample("in the middle", ([source(2, 3), source(2, 3), source(2, 3)], 1))
    yield Sample("at the end", ([source(2, 3), source(2, 3)], -1))
    yield Sample(
        "strided", ([source(3, 4, layout="transposed"), source(3, 4, layout="stepped")], 1)
    )
    yield Sample("0-dim", ([source(), source()],))
    yield Sample("zero-size", ([source(0, 3), source(0, 3)],))


@named("hstack")
def hstack(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vectors", ([source(3), source(3)],))
    yield Sample("matrices", ([source(2, 3), source(2, 3)],))
    yield Sample("cubes", ([source(2, 3, 2), source(2, 3, 2)],))
    yield Sample("0-dim", ([source(), source()],))
    yield Sample("strided", ([source(3, 4, layout="transposed"), source(3, 4, layout="stepped")],))


@named("flip")
def flip(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3, 4), ((0,),), ((0, -1),), ((1,),))
    yield Sample("expanded", (source(4, 3, layout="expanded"), (0, 1)), smooth=False)
    yield Sample("zero-size", (source(0, 3), (0,)))
    yield Sample("many", (source(1031), (0,)), smooth=False)


@named("roll")
def roll(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 4), (1,), (1, 0), (-2, 1), ((1, -1), (0, 1)), (9, -1))
    yield Sample("zero-size", (source(0, 3), 1, 1))


@named("repeat")
def repeat(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3), ((2, 2),), ((1, 3),), ((2, 1, 2),))
    yield Sample("vector", (source(3), (2,)))
    yield Sample("0-dim", (source(), (3,)))
    yield Sample("zero times", (source(3), (0,)))
    yield Sample("zero-size", (source(0, 2), (2, 2)))


@named("repeat_interleave")
def repeat_interleave(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 2, 3), (2,), (2, 0), (3, -1), (1, 1))
    yield Sample("0-dim", (source(), 3))
    yield Sample("zero times", (source(3), 0))
    yield Sample("zero-size", (source(0, 2), 2, 1))


@named("triangle")
def triangle(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 4), (), (1,), (-1,), (9,), (-9,))
    yield from _cases(_sources(source, 2, 3, 3), (), (-1,))
    yield Sample("zero-size", (source(0, 3),))


# ---- rows whose other arguments are the shape of another tensor, or positions


@for_row("reshape_as")
@for_row("view_as")
def shape_of_another(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("split", (source(6), source(2, 3)))
    yield Sample("merged", (source(2, 3), source(6, layout="stepped")))
    yield Sample("zero-size", (source(0, 3), source(3, 0)))


@for_row("expand_as")
def expanded_to_another(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("column", (source(2, 1), source(2, 3)))
    yield Sample("0-dim", (source(), source(2, 2, layout="transposed")))
    yield Sample("strided", (source(3, 1, layout="stepped"), source(2, 3, 2)))


@for_row("tensor_split.indices")
def tensor_split_at(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 3, 5), ((1, 2),), ((2,), 1), ((), 0), ((1, 9), -1))


@for_row("hsplit.sections")
@for_row("vsplit.sections")
@for_row("dsplit.sections")
def split_in_two(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 4, 2, 6), (2,))
    if row.name != "dsplit":
        yield from _cases(_sources(source, 2, 4), (2,), (1,))


@for_row("hsplit.indices")
@for_row("vsplit.indices")
@for_row("dsplit.indices")
def split_at(row: Row, source: Source) -> Iterator[Sample]:
    yield from _cases(_sources(source, 4, 3, 5), ((1, 2),), ((2,),), ((),))


@for_row("column_stack")
@for_row("dstack")
def stacked(row: Row, source: Source) -> Iterator[Sample]:
    yield from hstack(row, source)


@for_row("repeat_interleave.each")
def repeat_each(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(3), source.positions([2, 0, 1])))
    yield Sample("rows", (source(3, 2), source.positions([1, 2, 3]), 0))
    yield Sample("transposed", (source(2, 3, layout="transposed"), source.positions([2, 0, 1]), 1))
    yield Sample("one count", (source(2, 3), source.positions([2]), -1))


@for_row("repeat_interleave.positions", dtypes=("int64",))
def repeat_positions(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("counts", (source.positions([2, 0, 1]),))
    yield Sample("stepped", (source.index(4, below=3, layout="stepped"),))
    yield Sample("empty", (source.index(0, below=3),))
