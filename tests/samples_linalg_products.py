"""Samples of products of vectors, matrices and tensors."""

from __future__ import annotations

from collections.abc import Iterator

from operands import Sample, Source, registry
from samples_mathematics import SCALES

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead

EQUATIONS = [
    ("i->", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iji->ij", [(2, 3, 2)]),
    ("...ij->...ji", [(2, 2, 3)]),
    ("i,i->", [(4,), (4,)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,kj", [(2, 3), (4, 3)]),
    ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 2), (2, 2, 4, 2)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 2), (2, 4, 2, 2)]),
    ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
    ("ij,ij->i", [(2, 3), (1, 3)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,kl->il", [(2, 3), (2, 2)]),
    ("i,ij,j->", [(2,), (2, 3), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]),
    (",i->i", [(), (3,)]),
    ("ijk,jil->kl", [(2, 3, 2), (3, 2, 2)]),
]


@named("einsum", "ifc")
def einsum(row: Row, source: Source) -> Iterator[Sample]:
    for equation, shapes in EQUATIONS:
        yield Sample(f"{equation} {shapes}", (equation, [source(*s) for s in shapes]))
    strided = [source(2, 3, layout="transposed"), source(4, 3, layout="stepped")]
    yield Sample("strided", ("ij,kj->ik", strided))
    yield Sample("larger", ("ij,jk->ik", [source(33, 65), source(65, 17)]), smooth=False)


@named("tensordot", "ifc")
def tensordot(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrices", (source(2, 3), source(3, 4), [1], [0]))
    yield Sample("two dimensions", (source(2, 3, 2), source(3, 2, 2), [1, 2], [0, 1]))
    yield Sample("swapped", (source(2, 3, 2), source(2, 3, 2), [2, 1], [0, 1]))
    yield Sample("from the end", (source(2, 3), source(2, 3), [-1], [-1]))
    yield Sample("none", (source(2), source(3), [], []))
    yield Sample("empty", (source(2, 0), source(0, 3), [1], [0]))
    strided = (source(3, 4, layout="transposed"), source(4, 2, layout="stepped"))
    yield Sample("strided", (*strided, [1], [0]))


@named("inner", "ifc")
def inner(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vectors", (source(4), source(4)))
    yield Sample("matrices", (source(2, 3), source(4, 3)))
    yield Sample("cube", (source(2, 3), source(2, 2, 3)))
    yield Sample("0-dim", (source(), source(2, 3)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source(4, layout="stepped")))
    yield Sample("empty", (source(2, 0), source(3, 0)))


@named("kron")
def kron(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vectors", (source(2), source(3)))
    yield Sample("matrices", (source(2, 3), source(3, 2)))
    yield Sample("two ranks", (source(3), source(2, 2)))
    yield Sample("cube", (source(2, 1, 2), source(2, 3)))
    yield Sample("0-dim", (source(), source(2, 2)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source(2, 2, layout="stepped")))
    yield Sample("empty", (source(0, 2), source(2, 2)))


@named("addmv", "ifc")
def addmv(row: Row, source: Source) -> Iterator[Sample]:
    scales = SCALES[source.letter]
    yield Sample("small", (source(2), source(2, 3), source(3)))
    yield Sample("broadcast", (source(1), source(2, 3), source(3)), scales)
    yield Sample("0-dim", (source(), source(2, 3), source(3)))
    yield Sample("beta 0", (source(2), source(2, 3), source(3)), {"beta": 0}, smooth=False)
    strided = (source(2, layout="stepped"), source(2, 3, layout="transposed"), source(3))
    yield Sample("strided", strided, scales)
    yield Sample("no columns", (source(2), source(2, 0), source(0)), scales)


@named("addbmm", "ifc")
def addbmm(row: Row, source: Source) -> Iterator[Sample]:
    scales = SCALES[source.letter]
    yield Sample("small", (source(2, 4), source(2, 2, 3), source(2, 3, 4)))
    yield Sample("broadcast", (source(4), source(2, 2, 3), source(2, 3, 4)), scales)
    yield Sample("beta 0", (source(2, 2), source(3, 2, 1), source(3, 1, 2)), {"beta": 0})
    transposed = source(2, 2, 3, layout="transposed")
    yield Sample("strided", (source(2, 2), transposed, source(2, 3, 2, layout="stepped")), scales)
    yield Sample("no batch", (source(2, 2), source(0, 2, 3), source(0, 3, 2)))


@named("addr")
def addr(row: Row, source: Source) -> Iterator[Sample]:
    scales = SCALES.get(source.letter, {})
    yield Sample("small", (source(2, 3), source(2), source(3)))
    yield Sample("broadcast", (source(3), source(2), source(3)), scales)
    yield Sample("strided", (source(2, 3, layout="transposed"), source(2), source(3)), scales)
    yield Sample("beta 0", (source(2, 3), source(2), source(3)), {"beta": 0}, smooth=False)
    yield Sample("empty", (source(0, 3), source(0), source(3)))


def _chains(source: Source) -> Iterator[Sample]:
    yield Sample("two", ([source(2, 3), source(3, 4)],))
    yield Sample("three", ([source(2, 3), source(3, 4), source(4, 2)],))
    yield Sample("four", ([source(2, 5), source(5, 1), source(1, 3), source(3, 2)],))
    strided = [source(2, 3, layout="transposed"), source(3, 2, layout="stepped"), source(2, 2)]
    yield Sample("strided", (strided,))
    yield Sample("empty", ([source(2, 0), source(0, 3)],))


@named("chain", "ifc")
def chain(row: Row, source: Source) -> Iterator[Sample]:
    yield from _chains(source)


@named("multi_dot", "ifc")
def multi_dot(row: Row, source: Source) -> Iterator[Sample]:
    yield from _chains(source)
    yield Sample("vectors", ([source(2), source(2, 3), source(3)],))
    yield Sample("two vectors", ([source(3), source(3)],))
    yield Sample("first a vector", ([source(2), source(2, 3)],))


@named("vecdot", "fc")
def vecdot(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vectors", (source(3), source(3)))
    yield Sample("rows", (source(2, 3), source(2, 3)))
    yield Sample("columns", (source(2, 3), source(2, 3)), {"dim": 0})
    yield Sample("broadcast", (source(2, 1, 3), source(4, 3)))
    yield Sample("strided", (source(3, 4, layout="transposed"), source(3, 4, layout="stepped")))
    yield Sample("empty", (source(2, 0), source(2, 0)))


def _three(source: Source, dim: str) -> Iterator[Sample]:
    yield Sample("vectors", (source(3), source(3)), {dim: 0})
    yield Sample("rows", (source(4, 3), source(4, 3)), {dim: -1})
    yield Sample("columns", (source(3, 2), source(3, 2)), {dim: 0})
    yield Sample("broadcast", (source(1, 3), source(4, 3)), {dim: 1})
    strided = (source(3, 3, layout="transposed"), source(3, 3, layout="stepped"))
    yield Sample("strided", strided, {dim: 1})
    yield Sample("empty", (source(0, 3), source(0, 3)), {dim: 1})


@named("linalg_cross", "ifc")
def linalg_cross(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("last", (source(2, 3), source(2, 3)))
    yield from _three(source, "dim")


@named("cross", "ifc")
def cross(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("found", (source(2, 3), source(2, 3)))
    yield from _three(source, "dim")


@named("block_diag")
def block_diag(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrices", ([source(2, 3), source(1, 2)],))
    yield Sample("one", ([source(2, 2)],))
    yield Sample("all ranks", ([source(), source(2), source(2, 1)],))
    yield Sample("strided", ([source(2, 3, layout="transposed"), source(2, 2, layout="stepped")],))
    yield Sample("empty", ([source(0, 2), source(2, 1)],))


@named("linalg_diagonal")
def linalg_diagonal(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4),))
    yield Sample("batch", (source(2, 3, 3),), {"offset": 1})
    yield Sample("dims", (source(2, 3, 4),), {"dim1": 0, "dim2": 2, "offset": -1})
    yield Sample("strided", (source(3, 4, layout="transposed"),))
    yield Sample("empty", (source(0, 3),))


@named("linalg_vander", "ifc")
def linalg_vander(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(3, low=-2, high=2),))
    yield Sample("columns", (source(3, low=-2, high=2),), {"N": 4})
    yield Sample("batch", (source(2, 3, low=-2, high=2),), {"N": 2})
    yield Sample("strided", (source(3, low=-2, high=2, layout="stepped"),))


@named("vander", "ifc")
def vander(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("vector", (source(3, low=-2, high=2),))
    yield Sample("columns", (source(3, low=-2, high=2), 4))
    yield Sample("increasing", (source(3, low=-2, high=2),), {"increasing": True})
    yield Sample("no columns", (source(3, low=-2, high=2), 0), smooth=False)
    yield Sample("strided", (source(3, low=-2, high=2, layout="stepped"), 3))
