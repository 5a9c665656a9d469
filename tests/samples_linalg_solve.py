"""Samples by name: factorisations and linear systems, on matrices far from singular."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import references_linalg_solve as references
from operands import Operand, Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()  # by a row's id instead
LAPACK = ("float32", "float64", "complex64", "complex128")
SQUARES = ((3, 3), (1, 1), (5, 5), (2, 3, 3), (2, 2, 2, 2), (0, 0), (0, 3, 3), (2, 0, 0))
RECTANGLES = ((4, 3), (3, 4), (3, 3), (2, 5, 3), (2, 3, 5), (1, 4), (0, 3), (3, 0), (0, 3, 2))
LAYOUTS = ("transposed", "stepped", "offset")


def _values(source: Source, *shape: int) -> np.ndarray:
    return source(*shape, low=-1, high=1).values


def _invertible(source: Source, *shape: int) -> np.ndarray:
    """A dominant diagonal, with rows in another order so that factorisations exchange some."""
    n = shape[-1]
    values = _values(source, *shape) + 2 * n * np.eye(n)
    return values[..., source.random.permutation(n), :]


def _positive_definite(source: Source, *shape: int) -> np.ndarray:
    values = _values(source, *shape)
    return values @ np.conj(np.swapaxes(values, -2, -1)) + shape[-1] * np.eye(shape[-1])


def _symmetric(source: Source, *shape: int, hermitian: bool) -> np.ndarray:
    """Dominant diagonals of both signs, so that the factorisation exchanges nothing."""
    values = _values(source, *shape)
    other = np.swapaxes(values, -2, -1)
    signs = np.where(np.arange(shape[-1]) % 2, -1, 1)
    return values + (other.conj() if hermitian else other) + 8 * np.diag(signs)


def _pivots(source: Source, values: np.ndarray) -> Operand:
    return replace(source.of(values, dtype="int32"), role="index")


def _one_operand(source: Source, make, shapes, names: dict | None = None) -> Iterator[Sample]:
    """Every shape, the layouts of one of them, and the options in `names`."""
    for shape in shapes:
        yield Sample(f"shape {shape}", (source.of(make(source, *shape)),))
    for layout in LAYOUTS:
        for shape in shapes[:1], shapes[3:4]:
            yield Sample(f"{layout}, {shape[0]}", (source.of(make(source, *shape[0]), layout),))
    expanded = np.broadcast_to(make(source, *shapes[0]), (2, *shapes[0]))
    strides = (0, *source.of(expanded[0]).strides)
    yield Sample(
        "expanded", (Operand(source.of(expanded).values, source.dtype, strides),), smooth=False
    )
    for name, given in (names or {}).items():
        yield Sample(name, (source.of(make(source, *shapes[0])),), given)
        yield Sample(f"{name}, batch", (source.of(make(source, *shapes[3])),), given)


# ---- Cholesky


@named("positive_definite", dtypes=LAPACK)
def positive_definite(row: Row, source: Source) -> Iterator[Sample]:
    yield from _one_operand(source, _positive_definite, SQUARES, {"upper": {"upper": True}})


def _factor(source: Source, *shape: int, upper: bool = False) -> np.ndarray:
    """A Cholesky factor; the other triangle must not matter."""
    factor = references.cholesky(_positive_definite(source, *shape), upper)
    other = np.tril(_values(source, *shape), -1)
    return factor + (other if upper else np.swapaxes(other, -2, -1))


@named("cholesky_inverse", dtypes=LAPACK)
def cholesky_inverse(row: Row, source: Source) -> Iterator[Sample]:
    smooth = source.letter != "c"  # LAPACK takes the diagonal for real, finite differences do not
    for sample in _one_operand(source, _factor, SQUARES):
        yield replace(sample, smooth=smooth)
    upper = source.of(_factor(source, 3, 3, upper=True))
    yield Sample("upper", (upper, True), smooth=smooth)


@named("cholesky_solve", dtypes=LAPACK)
def cholesky_solve(row: Row, source: Source) -> Iterator[Sample]:
    for name, shape, b in _right_hand_sides():
        given = source.of(_values(source, *b)), source.of(_factor(source, *shape))
        yield Sample(name, given)
    upper = source.of(_factor(source, 3, 3, upper=True), "transposed")
    yield Sample("upper", (source(3, 2), upper, True))
    stepped = source.of(_factor(source, 3, 3), "stepped")
    yield Sample("stepped", (source(3, 2, layout="transposed"), stepped))


# ---- LU


@named("lu_factor", dtypes=LAPACK)
def lu_factor(row: Row, source: Source) -> Iterator[Sample]:
    def make(source: Source, *shape: int) -> np.ndarray:
        # The leading square is far from singular, rows and columns beyond it are not larger.
        values = _values(source, *shape)
        return (
            values + 2 * max(shape[-2:]) * np.eye(*shape[-2:])[source.random.permutation(shape[-2])]
        )

    yield from _one_operand(source, make, RECTANGLES)


@named("lu_unpack", dtypes=LAPACK)
def lu_unpack(row: Row, source: Source) -> Iterator[Sample]:
    for sample in lu_factor(row, source):
        (operand,) = sample.args
        if operand.overlaps:
            continue
        lu, pivots = references.lu_factor(operand.array())
        given = (source.of(lu), _pivots(source, pivots))
        yield Sample(sample.name, given, smooth=sample.smooth)
    strided = source.of(lu, "transposed"), _pivots(source, pivots)
    yield Sample("strided factors", strided)
    yield Sample("data only", given, {"unpack_pivots": False})
    yield Sample("pivots only", given, {"unpack_data": False}, smooth=False)


def _right_hand_sides() -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """(name, shape of the matrix, shape of the right-hand sides)"""
    yield "matrix", (3, 3), (3, 2)
    yield "size 1", (1, 1), (1, 4)
    yield "size 6", (6, 6), (6, 3)
    yield "batch", (2, 3, 3), (2, 3, 2)
    yield "one matrix for a batch", (3, 3), (2, 3, 2)
    yield "one right-hand side for a batch", (2, 3, 3), (3, 2)
    yield "broadcast batches", (2, 1, 3, 3), (4, 3, 1)
    yield "no equations", (0, 0), (0, 2)
    yield "no right-hand sides", (3, 3), (3, 0)
    yield "no matrices", (0, 3, 3), (0, 3, 2)


@named("lu_solve", dtypes=LAPACK)
def lu_solve(row: Row, source: Source) -> Iterator[Sample]:
    def factors(*shape: int, layout: str = "contiguous") -> tuple[Operand, Operand]:
        lu, pivots = references.lu_factor(_invertible(source, *shape))
        return source.of(lu, layout), _pivots(source, pivots)

    for name, shape, b in _right_hand_sides():
        yield Sample(name, (*factors(*shape), source(*b)))
    for layout in LAYOUTS:
        yield Sample(layout, (*factors(3, 3, layout=layout), source(3, 2, layout=layout)))
    for shape in (3, 3), (2, 5, 5):
        n = shape[-1]
        yield Sample(f"adjoint, {shape}", (*factors(*shape), source(n, 2)), {"adjoint": True})
        right = (*factors(*shape), source(2, n))
        yield Sample(f"right, {shape}", right, {"left": False})
        yield Sample(f"right adjoint, {shape}", right, {"left": False, "adjoint": True})


@named("legacy_lu_solve", dtypes=LAPACK)
def legacy_lu_solve(row: Row, source: Source) -> Iterator[Sample]:
    for sample in lu_solve(row, source):
        if not sample.kwargs:
            lu, pivots, b = sample.args
            yield Sample(sample.name, (b, lu, pivots))


# ---- systems, inverses, determinants


@named("solve", dtypes=LAPACK)
def solve(row: Row, source: Source) -> Iterator[Sample]:
    for name, shape, b in _right_hand_sides():
        yield Sample(name, (source.of(_invertible(source, *shape)), source(*b)))
    for layout in LAYOUTS:
        given = source.of(_invertible(source, 3, 3), layout), source(3, 2, layout=layout)
        yield Sample(layout, given)
    for shape in (3, 3), (2, 5, 5):
        n = shape[-1]
        right = source.of(_invertible(source, *shape)), source(*shape[:-2], 2, n)
        yield Sample(f"right, {shape}", right, {"left": False})
    yield Sample("vector", (source.of(_invertible(source, 3, 3)), source(3)))
    yield Sample("vector for a batch", (source.of(_invertible(source, 2, 3, 3)), source(3)))
    yield Sample("as many vectors", (source.of(_invertible(source, 2, 3, 3)), source(2, 3)))


@named("invertible", dtypes=LAPACK)
def invertible(row: Row, source: Source) -> Iterator[Sample]:
    yield from _one_operand(source, _invertible, (*SQUARES, (4, 4), (7, 7)))


@named("determinant", dtypes=LAPACK)
def determinant(row: Row, source: Source) -> Iterator[Sample]:
    def make(source: Source, *shape: int) -> np.ndarray:
        return _invertible(source, *shape) / 4

    yield from _one_operand(source, make, (*SQUARES, (4, 4)))


@named("logdet", dtypes=LAPACK)
def logdet(row: Row, source: Source) -> Iterator[Sample]:
    yield from _one_operand(source, _positive_definite, SQUARES)
    if source.letter == "f":
        yield Sample("negative", (source.of([[0.0, 1.0], [1.0, 0.0]]),), smooth=False)
        yield Sample("zero", (source.of([[1.0, 1.0], [1.0, 1.0]]),), smooth=False)


@named("tensorinv", dtypes=LAPACK)
def tensorinv(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("two dimensions", (source.of(_invertible(source, 6, 6).reshape(2, 3, 6)),))
    four = source.of(_invertible(source, 6, 6).reshape(6, 2, 1, 3))
    yield Sample("one dimension", (four, 1))
    strided = source.of(_invertible(source, 6, 6).reshape(2, 3, 6), "transposed")
    yield Sample("transposed", (strided,), {"ind": 2})


@named("tensorsolve", dtypes=LAPACK)
def tensorsolve(row: Row, source: Source) -> Iterator[Sample]:
    cube = _invertible(source, 6, 6).reshape(2, 3, 6)
    yield Sample("cube", (source.of(cube), source(2, 3)))
    yield Sample("stepped", (source.of(cube, "stepped"), source(2, 3, layout="stepped")))
    moved = np.moveaxis(_invertible(source, 6, 6).reshape(2, 3, 3, 2), 3, 0)
    yield Sample("dims", (source.of(moved), source(2, 3)), {"dims": (0,)})


@named("matrix_power", dtypes=LAPACK)
def matrix_power(row: Row, source: Source) -> Iterator[Sample]:
    for shape in (3, 3), (2, 2, 2), (0, 0), (0, 3, 3):
        for n in (0, 1, 2, 3, 6, -1, -3):
            values = _invertible(source, *shape) / max(2 * shape[-1], 1)
            yield Sample(f"{shape} to the {n}", (source.of(values), n))
    yield Sample("transposed", (source.of(_invertible(source, 3, 3), "transposed"), 3))


# ---- triangular systems


def _triangular(source: Source, *shape: int) -> np.ndarray:
    """Both triangles are filled; the operator reads one."""
    return _values(source, *shape) / 2 + 2 * np.eye(shape[-1])


@named("solve_triangular", dtypes=LAPACK)
def solve_triangular(row: Row, source: Source) -> Iterator[Sample]:
    for name, shape, b in _right_hand_sides():
        given = source.of(_triangular(source, *shape)), source(*b)
        yield Sample(name, given, {"upper": True})
        yield Sample(f"{name}, lower", given, {"upper": False})
    for layout in LAYOUTS:
        for upper in (True, False):
            given = source.of(_triangular(source, 3, 3), layout), source(3, 2, layout=layout)
            yield Sample(f"{layout}, upper={upper}", given, {"upper": upper})
            right = source.of(_triangular(source, 2, 3, 3), layout), source(2, 3, layout=layout)
            yield Sample(f"right, {layout}, {upper}", right, {"upper": upper, "left": False})
    unit = source.of(_triangular(source, 3, 3)), source(3, 2)
    yield Sample("unit diagonal", unit, {"upper": True, "unitriangular": True})
    yield Sample("unit diagonal, lower", unit, {"upper": False, "unitriangular": True})


@named("triangular_solve", dtypes=LAPACK)
def triangular_solve(row: Row, source: Source) -> Iterator[Sample]:
    for name, shape, b in _right_hand_sides():
        yield Sample(name, (source(*b), source.of(_triangular(source, *shape))))
    for layout in LAYOUTS:
        given = source(3, 2, layout=layout), source.of(_triangular(source, 3, 3), layout)
        yield Sample(layout, given, {"upper": False})
        yield Sample(f"{layout}, transpose", given, {"transpose": True})
        yield Sample(f"{layout}, unit diagonal", given, {"unitriangular": True})


# ---- QR


def _tall(source: Source, *shape: int) -> np.ndarray:
    return _values(source, *shape) + 2 * np.eye(*shape[-2:])


@named("qr", dtypes=LAPACK)
def qr(row: Row, source: Source) -> Iterator[Sample]:
    yield from _one_operand(source, _tall, RECTANGLES)
    for shape in RECTANGLES:
        wide = shape[-1] >= shape[-2]  # else the last columns of Q are free
        operand = source.of(_tall(source, *shape))
        yield Sample(f"complete, {shape}", (operand, "complete"), smooth=wide)
        yield Sample(f"r, {shape}", (operand,), {"mode": "r"}, smooth=False)


@named("legacy_qr", dtypes=LAPACK)
def legacy_qr(row: Row, source: Source) -> Iterator[Sample]:
    for sample in qr(row, source):
        if len(sample.args) == 1 and not sample.kwargs:
            yield sample
    yield Sample("complete", (source.of(_tall(source, 3, 4)), False))


@named("geqrf", dtypes=LAPACK)
def geqrf(row: Row, source: Source) -> Iterator[Sample]:
    for sample in _one_operand(source, _tall, RECTANGLES):
        yield replace(sample, smooth=False)  # without a derivative


@named("householder_product", dtypes=LAPACK)
def householder_product(row: Row, source: Source) -> Iterator[Sample]:
    for shape in ((3, 3), (4, 3), (2, 4, 2), (5, 1), (3, 0), (0, 0), (0, 3, 2)):
        for k in {shape[-1], max(shape[-1] - 1, 0), 0}:
            tau = source(*shape[:-2], k, low=0.2, high=1.5)
            yield Sample(f"{shape}, {k} reflectors", (source.of(_values(source, *shape)), tau))
    for layout in LAYOUTS:
        reflectors = source.of(_values(source, 4, 3), layout)
        yield Sample(layout, (reflectors, source(3, layout=layout, low=0.2, high=1.5)))


@named("ormqr", dtypes=LAPACK)
def ormqr(row: Row, source: Source) -> Iterator[Sample]:
    for shape in ((3, 3), (4, 3), (3, 4), (2, 4, 2), (0, 0), (4, 0), (0, 3, 2)):
        batch, m = shape[:-2], shape[-2]
        reflectors, tau = references.geqrf(_tall(source, *shape))
        for left in (True, False):
            for transpose in (True, False):
                other = source(*batch, m, 2) if left else source(*batch, 2, m)
                given = source.of(reflectors), source.of(tau), other, left, transpose
                yield Sample(f"{shape}, {left}, {transpose}", given)
    reflectors, tau = references.geqrf(_tall(source, 4, 3))
    for layout in LAYOUTS:
        given = source.of(reflectors, layout), source.of(tau, layout), source(4, 2, layout=layout)
        yield Sample(layout, given)


# ---- L D L^T


@named("ldl_factor", dtypes=LAPACK)
def ldl_factor(row: Row, source: Source) -> Iterator[Sample]:
    def make(hermitian: bool):
        return lambda source, *shape: _symmetric(source, *shape, hermitian=hermitian)

    for sample in _one_operand(source, make(False), SQUARES):
        yield replace(sample, smooth=False)  # without a derivative
    if source.letter == "c":
        for shape in SQUARES:
            operand = source.of(make(True)(source, *shape))
            yield Sample(f"Hermitian, {shape}", (operand,), {"hermitian": True}, smooth=False)


@named("ldl_solve", dtypes=LAPACK)
def ldl_solve(row: Row, source: Source) -> Iterator[Sample]:
    for name, shape, b in _right_hand_sides():
        if shape[:-2] != b[:-2]:
            continue  # PyTorch reads past the pivots; test_linalg_solve.py has these
        for hermitian in (False, True) if source.letter == "c" else (False,):
            values = _symmetric(source, *shape, hermitian=hermitian)
            ld, pivots = references.ldl_factor(values, hermitian=hermitian)
            given = source.of(ld), _pivots(source, pivots), source(*b)
            yield Sample(f"{name}, {hermitian}", given, {"hermitian": hermitian}, smooth=False)
    ld, pivots = references.ldl_factor(_symmetric(source, 3, 3, hermitian=False))
    for layout in LAYOUTS:
        given = source.of(ld, layout), _pivots(source, pivots), source(3, 2, layout=layout)
        yield Sample(layout, given, smooth=False)


# ---- least squares


@named("lstsq", dtypes=LAPACK)
def lstsq(row: Row, source: Source) -> Iterator[Sample]:
    for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
        given = {"driver": driver} if driver else {}
        for shape in ((4, 3), (3, 4), (3, 3), (2, 5, 2), (2, 2, 5)):
            operand = source.of(_tall(source, *shape))
            yield Sample(f"{shape}, {driver}", (operand, source(*shape[:-1], 2)), given)
        for shape in ((0, 3), (3, 0), (0, 3, 2)):
            if shape == (3, 0) and driver == "gels":
                continue  # PyTorch's residuals are 0
            operand = source.of(_tall(source, *shape))
            yield Sample(
                f"{shape}, {driver}", (operand, source(*shape[:-1], 2)), given, smooth=False
            )
        vectors = source.of(_tall(source, 2, 4, 3)), source(2, 4)
        yield Sample(f"vectors, {driver}", vectors, given)
        broadcast = source.of(_tall(source, 1, 4, 3)), source(2, 4, 2)
        yield Sample(f"broadcast, {driver}", broadcast, given)
    for layout in LAYOUTS:
        yield Sample(layout, (source.of(_tall(source, 4, 3), layout), source(4, 2, layout=layout)))
