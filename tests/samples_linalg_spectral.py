"""Samples of singular value and eigenvalue decompositions and of functions of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead

LAPACK = ("float32", "float64", "complex64", "complex128")
REAL_PART = {"complex64": "float32", "complex128": "float64"}


def _rectangles(source: Source) -> Iterator[tuple[str, Operand]]:
    yield "square", source(3, 3)
    yield "tall", source(4, 2)
    yield "wide", source(2, 3)
    yield "batch", source(2, 3, 2)
    yield "transposed", source(3, 2, layout="transposed")
    yield "stepped", source(2, 3, layout="stepped")
    yield "one", source(1, 1, nonzero=True)
    yield "no rows", source(0, 3)
    yield "no columns", source(2, 0)
    yield "no batch", source(0, 2, 2)


def _squares(source: Source) -> Iterator[tuple[str, Operand]]:
    yield "matrix", source(3, 3)
    yield "batch", source(2, 3, 3)
    yield "transposed", source(3, 3, layout="transposed")
    yield "stepped", source(2, 2, layout="stepped")
    yield "one", source(1, 1, nonzero=True)
    yield "empty", source(0, 0)
    yield "no batch", source(0, 2, 2)


@named("svd", "fc", LAPACK)
def svd(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _rectangles(source):
        yield Sample(name, (a,))
        yield Sample(f"{name}, reduced", (a, False))
    yield Sample("larger", (source(21, 13), False), smooth=False)


@named("svdvals", "fc", LAPACK)
def svdvals(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _rectangles(source):
        yield Sample(name, (a,))
    yield Sample("larger", (source(21, 13),), smooth=False)


@named("legacy_svd", "fc", LAPACK)
def legacy_svd(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _rectangles(source):
        yield Sample(name, (a,))
    yield Sample("complete", (source(3, 2), False))
    # Zeros take the place of the vectors, and have no graph.
    yield Sample("values only", (source(3, 2), True, False), smooth=False)


@named("eigh", "fc", LAPACK)
def eigh(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _squares(source):
        yield Sample(name, (a,))
    yield Sample("upper", (source(3, 3), "U"))
    yield Sample("larger", (source(17, 17),), smooth=False)


@named("eig", "fc", LAPACK)
def eig(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _squares(source):
        yield Sample(name, (a,))
    yield Sample("real eigenvalues", (source.of([[2, 1, 0], [1, 3, 1], [0, 1, 5]]),))
    yield Sample("pairs", (source.of([[0, -2, 0], [1, 0, 0], [0, 0, 3]]),))


@named("matrix_exp", "fc")
def matrix_exp(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _squares(source):
        yield Sample(name, (a,))
    if source.dtype in LAPACK:
        # Every degree of the approximation, and squarings.
        for size in (1e-3, 0.1, 0.5, 1.0, 4.0):
            a = source(4, 4)
            yield Sample(f"norm {size}", (source.of(a.values * size / 12),), smooth=False)


# ---- tolerances


def _low_rank(source: Source, *shape: int) -> Operand:
    """Of rank 2, with singular values that differ enough."""
    columns = shape[-1]
    left, right = source(*shape[:-1], 2), source(*shape[:-2], 2, columns)
    scale = np.array([4.0, 1.0])
    left_basis = np.linalg.qr(left.values.astype("complex128"))[0]
    right_basis = np.linalg.qr(np.swapaxes(right.values, -1, -2).astype("complex128"))[0]
    values = (left_basis * scale) @ np.conj(np.swapaxes(right_basis, -1, -2))
    return source.of(values if source.letter == "c" else values.real)


def _hermitian(source: Source, *shape: int) -> Operand:
    a = source(*shape).values
    return source.of(a + np.conj(np.swapaxes(a, -1, -2)))


def _tolerance(source: Source, values) -> Operand:
    return source.of(values, dtype=REAL_PART.get(source.dtype, source.dtype))


@named("pinv", "fc", LAPACK)
def pinv(row: Row, source: Source) -> Iterator[Sample]:
    for name, a in _rectangles(source):
        yield Sample(name, (a,))
    yield Sample("low rank", (_low_rank(source, 4, 3),), smooth=False)
    yield Sample("hermitian", (_hermitian(source, 3, 3),), {"hermitian": True}, smooth=False)
    given = {"atol": _tolerance(source, [0.5, 2.0])}
    yield Sample("atol", (_low_rank(source, 2, 4, 3),), given, smooth=False)
    given = {"rtol": _tolerance(source, 0.5), "atol": _tolerance(source, 0.01)}
    yield Sample("both", (_low_rank(source, 3, 4),), given, smooth=False)


@named("pinv_numbers", "fc", LAPACK)
def pinv_numbers(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("atol", (_low_rank(source, 4, 3),), {"atol": 2.0}, smooth=False)
    yield Sample("rtol", (_low_rank(source, 4, 3),), {"rtol": 0.5}, smooth=False)
    yield Sample("both", (_low_rank(source, 2, 3, 4),), {"rtol": 0.1, "atol": 0.5}, smooth=False)
    yield Sample("strided", (source(3, 2, layout="transposed"),), {"rtol": 1e-4})


@named("pinv_rcond", "fc", LAPACK)
def pinv_rcond(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(3, 2), 1e-4))
    yield Sample("large", (_low_rank(source, 3, 4), 0.5), smooth=False)
    yield Sample("strided", (source(3, 2, layout="transposed"), 1e-4))


@named("pinv_rcond_tensor", "fc", LAPACK)
def pinv_rcond_tensor(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("small", (source(3, 2), _tolerance(source, 1e-4)), smooth=False)
    yield Sample(
        "batch", (_low_rank(source, 2, 3, 4), _tolerance(source, [0.5, 0.01])), smooth=False
    )
    strided = source(3, 2, layout="transposed")
    yield Sample("strided", (strided, _tolerance(source, 1e-4)), smooth=False)


@named("cond", "fc", LAPACK)
def cond(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("default", (source(3, 2),))
    for p in (2, -2, 1, -1, math.inf, -math.inf):
        yield Sample(f"square, {p}", (source(3, 3), p))
    yield Sample("batch", (source(2, 3, 3), 1))
    yield Sample("strided", (source(3, 3, layout="transposed"), 2))
    yield Sample("singular", (source.of([[1, 1], [1, 1]]), 1), smooth=False)
    yield Sample("empty", (source(0, 0),), smooth=False)


@named("named_cond", "fc", LAPACK)
def named_cond(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("fro", (source(3, 3), "fro"))
    yield Sample("nuc", (source(2, 3, 3), "nuc"))
    yield Sample("strided", (source(3, 3, layout="transposed"), "fro"))
