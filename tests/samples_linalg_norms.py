"""Samples of norms and distances."""

from __future__ import annotations

import math
from collections.abc import Iterator

from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead

ORDERS = (2, 1, 0, 3, 0.5, 2.5, -1, math.inf, -math.inf)
SINGLE_AND_DOUBLE = ("float32", "float64")
LAPACK = (*SINGLE_AND_DOUBLE, "complex64", "complex128")


@named("vector_norm", "fc")
def vector_norm(row: Row, source: Source) -> Iterator[Sample]:
    for p in ORDERS:
        yield Sample(f"vector, {p}", (source(5, nonzero=True), p))
        yield Sample(f"rows, {p}", (source(3, 4, nonzero=True), p, 1))
    yield Sample("all", (source(2, 3),))
    yield Sample("columns", (source(3, 4), 2, 0), {"keepdim": True})
    yield Sample("two dimensions", (source(2, 3, 2), 2, (0, -1)))
    yield Sample("no dimensions", (source(2, 3), 2, ()))
    yield Sample("0-dim", (source(nonzero=True), 3))
    yield Sample("0-dim, dim", (source(nonzero=True), 2, 0))
    yield Sample("transposed", (source(3, 4, layout="transposed"), 2, 1))
    yield Sample("stepped", (source(3, 4, layout="stepped"), 2, (0,)))
    yield Sample("expanded", (source(4, 3, layout="expanded"), 1), smooth=False)
    yield Sample("empty", (source(0, 3), 2, 0))
    yield Sample("zeros", (source.of([[0, 0], [1, 2]]), 2, 1), smooth=False)
    yield Sample("large", (source(3, 1031), 2, 1), smooth=False)
    if source.dtype in ("float32", "complex64"):
        wide = {"float32": "float64", "complex64": "complex128"}[source.dtype]
        yield Sample("dtype", (source(3, 4), 2, 1), {"dtype": wide}, smooth=False)


def _matrix_norms(source: Source, orders: tuple) -> Iterator[Sample]:
    for p in orders:
        yield Sample(f"matrix, {p}", (source(3, 4), p))
        yield Sample(f"batch, {p}", (source(2, 3, 2), p), {"keepdim": True})
    yield Sample("dims", (source(2, 3, 4), orders[0], (2, 0)))
    yield Sample("dims kept", (source(2, 3, 4), orders[-1], (0, 2)), {"keepdim": True})
    yield Sample("transposed", (source(3, 4, layout="transposed"), orders[0]))
    yield Sample("stepped", (source(3, 4, layout="stepped"), orders[-1]))
    yield Sample("empty", (source(0, 3), orders[0]))


@named("matrix_norm", "fc", LAPACK)
def matrix_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield from _matrix_norms(source, (1, -1, 2, -2, math.inf, -math.inf))


@named("named_matrix_norm", "fc", LAPACK)
def named_matrix_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("default", (source(2, 3),))
    yield from _matrix_norms(source, ("fro", "nuc"))


@named("linalg_norm", "fc", LAPACK)
def linalg_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("all", (source(2, 3, 2),))
    yield Sample("vector", (source(4), 3))
    yield Sample("rows", (source(3, 4), 1, 1))
    yield Sample("two dimensions", (source(2, 3, 2), None, (0, 2)))
    yield Sample("matrix", (source(3, 4), -2))
    yield Sample("matrices", (source(2, 3, 4), math.inf, (1, 2)), {"keepdim": True})
    yield Sample("strided", (source(3, 4, layout="transposed"), 1))


@named("named_linalg_norm", "fc", LAPACK)
def named_linalg_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4), "fro"))
    yield Sample("matrices", (source(2, 3, 4), "nuc", (1, 2)), {"keepdim": True})
    yield Sample("strided", (source(3, 4, layout="transposed"), "nuc"))


@named("frobenius_norm", "fc")
def frobenius_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("rows", (source(3, 4), 1))
    yield Sample("matrices", (source(2, 3, 4), (1, 2)), {"keepdim": True})
    yield Sample("all", (source(2, 3), ()))
    yield Sample("strided", (source(3, 4, layout="transposed"), 0))


@named("nuclear_norm", "fc", LAPACK)
def nuclear_norm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("matrix", (source(3, 4),))
    yield Sample("kept", (source(2, 3),), {"keepdim": True})
    yield Sample("strided", (source(3, 4, layout="transposed"),))


@named("nuclear_norm_dim", "fc", LAPACK)
def nuclear_norm_dim(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("last", (source(2, 3, 4), (1, 2)))
    yield Sample("first", (source(2, 3, 4), (0, 1)), {"keepdim": True})
    yield Sample("strided", (source(3, 4, layout="transposed"), (0, 1)))


@named("norm_except_dim", "fc")
def norm_except_dim(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("rows", (source(3, 4),))
    yield Sample("columns", (source(3, 4), 2, 1))
    yield Sample("middle", (source(2, 3, 2), 1, 1))
    yield Sample("all", (source(2, 3), 2, -1))
    yield Sample("strided", (source(3, 4, layout="transposed"),))


# ---- distances


@named("dist", "fc")
def dist(row: Row, source: Source) -> Iterator[Sample]:
    for p in (2, 1, 3, 0.5, math.inf):
        yield Sample(f"same shape, {p}", (source(2, 3), source(2, 3)), {"p": p})
    yield Sample("broadcast", (source(2, 3), source(3)))
    yield Sample("0-dim", (source(), source()))
    yield Sample("strided", (source(3, 4, layout="transposed"), source(3, 4, layout="stepped")))


@named("renorm", "fc")
def renorm(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("rows", (source(3, 4), 2, 0, 1.5))
    yield Sample("columns", (source(3, 4), 1, 1, 4.0))
    yield Sample("cube", (source(2, 3, 2), 3, -1, 2.0))
    yield Sample("inf", (source(3, 4), math.inf, 0, 2.0))
    yield Sample("small", (source(3, 4), 2, 0, 1000.0))
    yield Sample("strided", (source(3, 4, layout="transposed"), 2, 0, 1.0))
    yield Sample("empty", (source(0, 3), 2, 1, 1.0))


@named("cosine_similarity", "f")
def cosine_similarity(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("rows", (source(3, 4), source(3, 4)))
    yield Sample("columns", (source(3, 4), source(3, 4)), {"dim": 0})
    yield Sample("broadcast", (source(2, 1, 3), source(4, 3)), {"dim": -1})
    yield Sample("eps", (source(3, 4), source(3, 4)), {"eps": 7.0}, smooth=False)
    yield Sample("strided", (source(3, 4, layout="transposed"), source(3, 4, layout="stepped")))
    if source.dtype in SINGLE_AND_DOUBLE:  # PyTorch gives NaN in half precision
        yield Sample("zeros", (source.of([[0, 0, 0]]), source(1, 3)), smooth=False)


DISTANCE_ORDERS = (2, 1, 3, 1.5, 0.5, math.inf)


@named("cdist", "f")
def cdist(row: Row, source: Source) -> Iterator[Sample]:
    for p in DISTANCE_ORDERS:
        yield Sample(f"matrices, {p}", (source(3, 4), source(2, 4)), {"p": p})
    yield Sample("count", (source(3, 4), source(2, 4)), {"p": 0}, smooth=False)
    yield Sample("batch", (source(2, 1, 3, 2), source(3, 2, 2)), {"p": 1})
    product = {"compute_mode": "use_mm_for_euclid_dist"}
    yield Sample("by product", (source(3, 2), source(2, 2)), product)
    yield Sample("batch by product", (source(2, 3, 2), source(2, 2)), product)
    yield Sample("strided", (source(3, 4, layout="transposed"), source(2, 4, layout="stepped")))
    yield Sample("no rows", (source(0, 4), source(2, 4)))
    yield Sample("no columns", (source(3, 0), source(2, 0)))
    if source.dtype in SINGLE_AND_DOUBLE:
        yield Sample("large", (source(40, 33), source(30, 33)), smooth=False)


@named("pdist", "f")
def pdist(row: Row, source: Source) -> Iterator[Sample]:
    for p in DISTANCE_ORDERS:
        yield Sample(f"points, {p}", (source(4, 3), p))
    yield Sample("one", (source(1, 3),))
    yield Sample("strided", (source(3, 4, layout="transposed"),))
