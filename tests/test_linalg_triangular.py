"""Triangular systems: all orientations and layouts, hard triangles, and what is built on them."""

import itertools

import numpy as np
import pytest

import facula

SIZES = (1, 2, 5, 8, 9, 16, 17, 40, 64, 100, 129, 260)


@pytest.fixture(params=[facula.float32, facula.float64], ids=str)
def dtype(request):
    return request.param


def matrix(rows, columns, dtype, seed=0):
    values = np.random.default_rng(seed).standard_normal((rows, columns))
    return facula.from_numpy(values).to(dtype)


def well_conditioned(n, dtype, seed=0):
    return matrix(n, n, dtype, seed) + 2 * n**0.5 * facula.eye(n, dtype=dtype)


def backward_error(a, x, b):
    """What is left of b, by columns, beside |a| |x|, in units of n eps."""
    left = (a.double() @ x.double() - b.double()).abs()
    scale = a.double().abs() @ x.double().abs()
    worst = (left / scale.clamp(min=1e-300)).max().item()
    return worst / (a.shape[-1] * facula.finfo(x.dtype).eps)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("columns", [1, 3, 8, 25, 100])
def test_solutions_leave_no_more_than_rounding_in_every_orientation(n, columns, dtype):
    full = well_conditioned(n, dtype)
    for upper, left, unit, turned, strided in itertools.product((False, True), repeat=5):
        a = (full / (4 * n) if unit else full).mT if turned else (full / (4 * n) if unit else full)
        b = matrix(n, columns, dtype, 1)
        b = b if left else b.mT
        if strided:
            b = facula.stack([b, b], -1)[..., 0]
        x = facula.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
        triangle = a.triu(int(unit)) if upper else a.tril(-int(unit))
        if unit:
            triangle = triangle + facula.eye(n, dtype=dtype)
        if left:
            assert backward_error(triangle, x, b) <= 2
        else:
            assert backward_error(triangle.mT, x.mT, b.mT) <= 2


@pytest.mark.parametrize("n", (700, 1100))
def test_triangles_that_are_larger_than_a_cache(n, dtype):
    a, b = well_conditioned(n, dtype), matrix(n, 150, dtype, 1)
    for upper in (False, True):
        x = facula.linalg.solve_triangular(a, b, upper=upper)
        assert backward_error(a.triu() if upper else a.tril(), x, b) <= 2


@pytest.mark.parametrize("n", (7, 30, 90))
def test_hard_triangles_are_solved_as_exactly_as_easy_ones(n, dtype):
    graded = matrix(n, n, dtype) * facula.logspace(0, -20, n, dtype=dtype)[:, None]
    kahan = facula.eye(n, dtype=dtype) - 0.8 * facula.ones(n, n, dtype=dtype).triu(1)
    kahan = kahan * (0.6 ** facula.arange(n, dtype=dtype).clamp(max=60))[:, None]
    b = matrix(n, 10, dtype, 1)
    for a in (graded, kahan):
        x = facula.linalg.solve_triangular(a, b, upper=True)
        if x.isfinite().all():
            assert backward_error(a.triu(), x, b) <= 2


@pytest.mark.parametrize("n", (3, 8, 30))
def test_the_other_triangle_is_not_read(n, dtype):
    a, b = well_conditioned(n, dtype), matrix(n, 5, dtype, 1)
    for upper in (False, True):
        triangle = a.triu() if upper else a.tril()
        other = a.isnan() | (facula.ones_like(a).triu(1) > 0)
        spoilt = a.masked_fill(other.mT if upper else other, float("nan"))
        expected = facula.linalg.solve_triangular(triangle, b, upper=upper)
        assert facula.equal(facula.linalg.solve_triangular(spoilt, b, upper=upper), expected)


@pytest.mark.parametrize("n", (4, 20))
def test_zeros_infinities_and_the_least_numbers_on_the_diagonal(n, dtype):
    least = facula.finfo(dtype).tiny / 64  # whose inverse overflows
    most = facula.finfo(dtype).max
    for value in (0.0, float("inf"), least, most):
        a, b = facula.eye(n, dtype=dtype), facula.ones(n, 3, dtype=dtype)
        a[2, 2] = value
        b[2] = least if value == least else 2.0
        x = facula.linalg.solve_triangular(a, b, upper=False)
        assert facula.equal(x[2], b[2] / a[2, 2])
        assert value == 0 or (x[3:] == 1).all()


def test_a_solution_does_not_depend_on_those_beside_it_nor_on_threads(dtype):
    a, b = well_conditioned(200, dtype), matrix(200, 150, dtype, 1)
    threads = facula.get_num_threads()
    together = facula.linalg.solve_triangular(a, b, upper=False)
    for count in (2, 7, 31, 99):
        part = facula.linalg.solve_triangular(a, b[:, :count], upper=False)
        assert facula.equal(part, together[:, :count])
    try:
        for count in (1, 3):
            facula.set_num_threads(count)
            assert facula.equal(facula.linalg.solve_triangular(a, b, upper=False), together)
    finally:
        facula.set_num_threads(threads)


def bits(t):
    """Of the numbers and the signs of zeros; NaN counts as one number."""
    return t.nan_to_num(nan=12345.0).contiguous().numpy().tobytes()


def test_zeros_nan_and_rounding_do_not_depend_on_threads(dtype):
    diagonal = -facula.diag(facula.arange(2, 102, dtype=dtype))
    spoilt = facula.eye(100, dtype=dtype)
    spoilt[5, 0] = float("nan")
    factors = facula.linalg.lu_factor(matrix(300, 300, dtype))
    tall, b = matrix(1100, 40, dtype), matrix(300, 70, dtype, 1)
    threads, seen = facula.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            facula.set_num_threads(count)
            results = [
                facula.linalg.inv(diagonal),
                facula.cholesky_inverse(spoilt),
                facula.linalg.lu_solve(*factors, b),
                *facula.linalg.qr(tall),
            ]
            seen.append([bits(t) for t in results])
    finally:
        facula.set_num_threads(threads)
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("n", (20, 24))
def test_rows_that_fill_the_last_block_do_not_turn_infinities_into_nan(n, dtype):
    factor = facula.eye(n, dtype=dtype)
    factor[-1, :-1] = 0.5
    factor[-1, -1] = 0
    b = facula.zeros(n, 2, dtype=dtype)
    b[-1] = 1
    pivots = facula.arange(1, n + 1, dtype=facula.int32)
    x = facula.linalg.lu_solve(factor, pivots, b, adjoint=True)
    assert (x[-1] == float("inf")).all() and (x[-2] == -float("inf")).all()


@pytest.mark.parametrize("n", (1, 7, 33, 200))
def test_one_right_hand_side_has_the_solution_it_has_among_others(n, dtype):
    a, b = well_conditioned(n, dtype), matrix(n, 5, dtype, 1)
    eps = facula.finfo(dtype).eps
    for upper, unit, turned, strided in itertools.product((False, True), repeat=4):
        m = a / (4 * n) if unit else a
        m = m.mT.contiguous().mT if turned else m
        m = facula.stack([m, m], -1)[..., 0] if strided else m
        x = facula.linalg.solve_triangular(m, b[:, 2:3], upper=upper, unitriangular=unit)
        among = facula.linalg.solve_triangular(m, b, upper=upper, unitriangular=unit)[:, 2:3]
        assert facula.allclose(x, among, rtol=100 * n * eps, atol=100 * n * eps)
    factor = facula.linalg.cholesky(a @ a.mT + facula.eye(n, dtype=dtype))
    x = facula.cholesky_solve(b[:, :1], factor)
    among = facula.cholesky_solve(b, factor)[:, :1]
    assert facula.allclose(x, among, rtol=1e4 * n * eps, atol=1e4 * n * eps)


@pytest.mark.parametrize("n", (17, 40, 70, 150, 300))
def test_solving_with_factors(n, dtype):
    a, b = matrix(n, n, dtype), matrix(n, 30, dtype, 1)
    factors = facula.linalg.lu_factor(a)
    for adjoint in (False, True):
        x = facula.linalg.lu_solve(*factors, b, adjoint=adjoint)
        y = facula.linalg.lu_solve(*factors, b.mT, left=False, adjoint=adjoint)
        for system, solution in ((a.mT if adjoint else a, x), (a if adjoint else a.mT, y.mT)):
            assert backward_error(system, solution, b) <= 20
    positive = a @ a.mT + n * facula.eye(n, dtype=dtype)
    for upper in (False, True):
        factor = facula.linalg.cholesky(positive, upper=upper)
        x = facula.cholesky_solve(b, factor, upper=upper)
        assert backward_error(positive, x, b) <= 20
        close = facula.cholesky_inverse(factor, upper=upper) @ positive
        error = (close - facula.eye(n, dtype=dtype)).abs().max().item()
        assert error <= 20 * n * facula.finfo(dtype).eps
        assert facula.equal(
            facula.cholesky_inverse(factor, upper=upper),
            facula.cholesky_inverse(factor, upper=upper).mT,
        )


@pytest.mark.parametrize("n", (17, 40, 70, 150, 300))
def test_inverses(n, dtype):
    a = matrix(n, n, dtype)
    x = facula.linalg.inv(a)
    assert backward_error(a, x, facula.eye(n, dtype=dtype)) <= 20
