"""Decompositions of single real matrices, by vectors along their columns, also of hard ones."""

import numpy as np
import pytest

import facula as F

# Around the sizes at which another way is taken or a vector is full.
SIZES = (2, 3, 4, 9, 15, 16, 17, 18, 19, 31, 33, 50, 65, 100, 127, 130, 161)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


def general(n):
    random = np.random.default_rng(n)
    a = random.standard_normal((n, n))
    q = np.linalg.qr(a)[0]
    turn = np.kron(np.eye((n + 1) // 2), [[0, 1], [-1, 0]])[:n, :n]
    scale = np.logspace(0, -12, n)
    return {
        "any": a,
        "rows that fall": a * scale[:, None],
        "scaled in and out": scale[:, None] * a / scale,
        "one Jordan block": 2 * np.eye(n) + np.eye(n, k=1),
        "zero": a * 0,
        "permutation": np.roll(np.eye(n), 1, 0),
        "shift": np.eye(n, k=-1),
        "skew": a - a.T,
        "orthogonal": q,
        "equal pairs": turn,
        "repeated": q * np.repeat([1.0, 2, 3], n)[:n] @ q.T,
        "rank 2": a[:, :2] @ a[:2],
        "ones": np.ones((n, n)),
        "triangle": np.triu(a),
        "sparse": a * (random.random((n, n)) < 0.15),
        "small": a * 1e-14,
        "tiny": a * 1e-30,
        "large": a * 1e15,
    }


def symmetric(n):
    scale = np.logspace(0, -12, n)
    matrices = {name: a + a.T for name, a in general(n).items() if name != "skew"}
    a, q = matrices["any"], np.linalg.qr(matrices["any"])[0]
    return matrices | {
        "falling": scale[:, None] * a * scale,
        "rising": scale[::-1, None] * a * scale[::-1],
        "all but equal": q * (1 + 1e-9 * np.arange(n)) @ q.T,
        "tridiagonal": np.eye(n, k=1) + np.eye(n, k=-1),
        "ill-conditioned": q * np.logspace(0, -18, n) @ q.T,
    }


def norm(a):
    return np.linalg.norm(a, 2)


@pytest.mark.parametrize("n", SIZES)
def test_eigenvectors_of_square_matrices(n, dtype):
    unit = float(np.finfo(dtype).eps) * n
    for name, a in general(n).items():
        a = a.astype(dtype)
        w, v = (x.numpy().astype("complex128") for x in F.linalg.eig(F.from_numpy(a)))
        assert norm(a @ v - v * w) <= 10 * unit * norm(a), name
        assert np.abs(np.linalg.norm(v, axis=0) - 1).max() <= 10 * unit, name
        assert sorted(w.imag) == sorted(-w.imag), name
        # Alone they come from another path: their sums are those of the diagonals of a and a^2.
        w, size = F.linalg.eigvals(F.from_numpy(a)).numpy().astype("complex128"), norm(a) or 1
        a = a.astype("float64") / size
        assert abs((w / size).sum() - np.trace(a)) <= 20 * unit, name
        assert abs(((w / size) ** 2).sum() - np.trace(a @ a)) <= 20 * unit, name


@pytest.mark.parametrize("n", (*SIZES, 260, 420))
def test_eigenvectors_of_symmetric_matrices(n, dtype):
    unit = float(np.finfo(dtype).eps) * n
    for name, a in symmetric(n).items():
        a = a.astype(dtype)
        a = np.tril(a) + np.tril(a, -1).T
        w, v = (x.numpy().astype("float64") for x in F.linalg.eigh(F.from_numpy(a)))
        values = F.linalg.eigvalsh(F.from_numpy(a)).numpy()
        a = a.astype("float64")
        assert norm(a @ v - v * w) <= 10 * unit * norm(a), name
        assert norm(v.T @ v - np.eye(n)) <= 10 * unit, name
        assert (np.diff(w) >= 0).all() and (np.diff(values) >= 0).all(), name
        expected = np.linalg.eigvalsh(a)
        assert np.abs(w - expected).max() <= 10 * unit * norm(a), name
        assert np.abs(values - expected).max() <= 10 * unit * norm(a), name


@pytest.mark.parametrize("shape", [*((n, n) for n in SIZES), (40, 3), (3, 40), (33, 20), (60, 100)])
def test_singular_vectors(shape, dtype):
    m, n = shape
    unit = float(np.finfo(dtype).eps) * max(shape)
    for name, a in general(max(shape)).items():
        a = a[:m, :n].astype(dtype)
        u, s, vh = (
            x.numpy().astype("float64") for x in F.linalg.svd(F.from_numpy(a), full_matrices=False)
        )
        values = F.linalg.svdvals(F.from_numpy(a)).numpy()
        a = a.astype("float64")
        assert norm(u * s @ vh - a) <= 10 * unit * norm(a), name
        assert norm(u.T @ u - np.eye(min(shape))) <= 10 * unit, name
        assert norm(vh @ vh.T - np.eye(min(shape))) <= 10 * unit, name
        expected = np.linalg.svd(a, compute_uv=False)
        assert np.abs(s - expected).max() <= 10 * unit * norm(a), name
        assert np.abs(values - expected).max() <= 10 * unit * norm(a), name
        assert (np.diff(values) <= 0).all() and (values >= 0).all(), name


def test_reflections_of_vanishing_numbers_keep_q_orthogonal(dtype):
    least = np.finfo(dtype).tiny
    a = np.random.default_rng(0).standard_normal((40, 40)) * least * 100
    q = F.linalg.qr(F.from_numpy(a.astype(dtype)))[0].double().numpy()
    assert norm(q.T @ q - np.eye(40)) <= 100 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["eig", "eigvals", "eigh", "eigvalsh", "svd", "svdvals"])
@pytest.mark.parametrize("n", [5, 20, 70])
def test_numbers_that_are_not_finite_are_refused(name, n, dtype):
    for bad in (np.nan, np.inf):
        a = F.from_numpy(general(n)["any"].astype(dtype))
        a[1, 0] = bad
        with pytest.raises(RuntimeError):
            getattr(F.linalg, name)(a)


@pytest.mark.parametrize("name", ["eig", "eigvals", "eigvalsh", "svdvals"])
@pytest.mark.parametrize("n", [40, 300])
def test_results_do_not_depend_on_the_number_of_threads(name, n, dtype):
    a = F.from_numpy(general(n)["any"].astype(dtype))
    threads, results = F.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            F.set_num_threads(count)
            found = getattr(F.linalg, name)(a)
            results.append(found if isinstance(found, tuple) else (found,))
    finally:
        F.set_num_threads(threads)
    for result in results[1:]:
        assert all(x.equal(y) for x, y in zip(results[0], result, strict=True))
