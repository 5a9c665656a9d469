"""Factorisations of larger matrices by panels, and of small ones by vectors."""

import numpy as np
import pytest

import facula

SIZES = (64, 65, 100, 129, 200)
TOLERANCE = {facula.float32: 2e-5, facula.float64: 1e-13}


@pytest.fixture(params=[facula.float32, facula.float64], ids=str)
def dtype(request):
    return request.param


def matrix(rows, columns, dtype, seed=0):
    values = np.random.default_rng(seed).standard_normal((rows, columns))
    return facula.from_numpy(values).to(dtype)


def close(a, b, dtype):
    scale = max(1.0, b.abs().max().item())
    assert (a - b).abs().max().item() <= TOLERANCE[dtype] * scale * max(b.shape)


@pytest.mark.parametrize("n", SIZES)
def test_factors_of_lu_multiply_to_the_matrix_and_are_bounded_by_pivoting(n, dtype):
    a = matrix(n, n, dtype)
    P, L, U = facula.linalg.lu(a)
    close(P @ L @ U, a, dtype)
    assert L.abs().max().item() <= 1 + 1e-6


@pytest.mark.parametrize("n", range(3, 71))
def test_pivots_are_the_first_of_the_largest_elements(n, dtype):
    a = matrix(n, n, dtype).repeat(5, 1, 1).clamp(-1, 1)
    a[:, :, 0] = 0
    a[:, -1, 0] = 2
    a[:, :, 1] = 3  # equal in all rows, of which the first went down when the last came up
    pivots = facula.linalg.lu_factor(a).pivots
    assert pivots[:, :2].tolist() == [[n, 2]] * 5


@pytest.mark.parametrize("n", (3, 8, 16, 30, 70))
def test_a_zero_column_is_reported_and_the_rest_factored(n, dtype):
    a = matrix(n, n, dtype)
    a[:, 1] = 0
    LU, pivots, info = facula.linalg.lu_factor_ex(a.expand(3, n, n))
    assert info.tolist() == [2, 2, 2]
    P, L, U = facula.lu_unpack(LU, pivots)
    close(P @ L @ U, a.expand(3, n, n), dtype)


@pytest.mark.parametrize("shape", [(64, 64), (100, 70), (70, 100), (300, 80), (80, 300)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_of_tall_wide_and_square_matrices(shape, full, dtype):
    a = matrix(*shape, dtype)
    U, S, Vh = facula.linalg.svd(a, full_matrices=full)
    k = min(shape)
    close(U[:, :k] * S @ Vh[:k], a, dtype)
    close(U.mT @ U, facula.eye(U.shape[1], dtype=dtype), dtype)
    close(Vh @ Vh.mT, facula.eye(Vh.shape[0], dtype=dtype), dtype)
    assert (S[1:] <= S[:-1]).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "kind", ["any", "identity", "zero", "rank 2", "close to one", "two blocks"]
)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvectors_of_symmetric_matrices(n, kind, uplo, dtype):
    b = matrix(n, n, dtype)
    eye = facula.eye(n, dtype=dtype)
    a = {
        "any": b + b.mT,
        "identity": eye,
        "zero": eye * 0,
        "rank 2": b[:, :2] @ b[:, :2].mT,
        "close to one": eye + 1e-6 * (b + b.mT),
        "two blocks": facula.block_diag((b + b.mT)[: n // 2, : n // 2], eye[n // 2 :, n // 2 :]),
    }[kind]
    w, v = facula.linalg.eigh(a.tril() if uplo == "L" else a.triu(), uplo)
    close(v * w @ v.mT, a, dtype)
    close(v.mT @ v, eye, dtype)
    assert (w[1:] >= w[:-1]).all()


@pytest.mark.parametrize("shape", [(64, 64), (90, 70), (300, 64)])
@pytest.mark.parametrize("missing", [0, 1, 30])
def test_least_squares_finds_rank_and_the_shortest_solution(shape, missing, dtype):
    m, n = shape
    r = n - missing
    a = matrix(m, r, dtype) @ matrix(r, n, dtype, 1) if missing else matrix(m, n, dtype)
    b = matrix(m, 3, dtype, 2)
    found = facula.linalg.lstsq(a, b)
    assert found.rank.item() == r
    expected = facula.linalg.pinv(a.double(), rtol=1e-5 if dtype == facula.float32 else 1e-12)
    expected = (expected @ b.double()).to(dtype)
    error = (found.solution - expected).abs().max() / expected.abs().max()
    assert error.item() <= (5e-2 if dtype == facula.float32 else 1e-9)


@pytest.mark.parametrize("condition", [1e2, 1e4, 2e4, 1e5, 1e6])
@pytest.mark.parametrize("n", [20, 100, 300])
def test_least_squares_tells_the_rank_near_the_tolerance(n, condition):
    dtype = facula.float32
    q, p = (facula.linalg.qr(matrix(n, n, facula.float64, seed))[0] for seed in (1, 2))
    a = (q * facula.logspace(0, -np.log10(condition), n, dtype=facula.float64) @ p).to(dtype)
    b = matrix(n, 3, dtype, 3)
    found = facula.linalg.lstsq(a, b)
    cut = 1 / (facula.finfo(dtype).eps * n)  # the ratio of singular values that counts as singular
    if condition < cut / 4:
        assert found.rank.item() == n
        rest = (a.double() @ found.solution.double() - b.double()).norm() / b.double().norm()
        assert rest.item() <= 1e-6 * condition
    elif condition > 10 * cut:
        assert found.rank.item() < n


def test_least_squares_keeps_the_meaning_of_rcond(dtype):
    a = facula.diag(facula.logspace(0, -3, 100, dtype=dtype))
    b = facula.ones(100, 1, dtype=dtype)
    for rcond in (0.5, 1e-1, 1e-2):
        found = facula.linalg.lstsq(a, b, rcond=rcond)
        assert found.rank.item() == (a.diagonal() >= rcond).sum().item()


@pytest.mark.parametrize("norm", [1e-9, 2e-4, 1e-2, 0.04, 0.2, 0.5, 0.9, 1.4, 3.0, 20.0])
def test_matrix_exp_by_polynomials_of_all_degrees(norm, dtype):
    a = matrix(6, 6, dtype) / 10
    a = a * (norm / a.abs().sum(0).max())
    term = expected = facula.eye(6, dtype=facula.float64)
    squarings = 10
    for k in range(1, 25):
        term = term @ (a.double() / 2**squarings) / k
        expected = expected + term
    for _ in range(squarings):
        expected = expected @ expected
    result = facula.matrix_exp(a).double()
    error = (result - expected).abs().max() / expected.abs().max()
    assert error.item() <= (2e-6 if dtype == facula.float32 else 2e-12)


def test_results_do_not_depend_on_the_number_of_threads(dtype):
    a = matrix(200, 200, dtype)
    threads = facula.get_num_threads()
    functions = [
        facula.linalg.lu_factor,
        facula.linalg.qr,
        facula.linalg.svd,
        lambda a: facula.linalg.eigh(a + a.mT),
        lambda a: facula.linalg.lstsq(a, a.mT)[:1],
    ]
    try:
        results = []
        for count in (1, 2, 3):
            facula.set_num_threads(count)
            results.append([tuple(f(a)) for f in functions])
    finally:
        facula.set_num_threads(threads)
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            assert all(facula.equal(x, y) for x, y in zip(first, second, strict=True))
