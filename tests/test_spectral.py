"""Decompositions: what they reconstruct, when they fail, and which losses have a gradient."""

import math

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close, facula_module, leaf

checks = facula_module("autograd.gradcheck")
DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 2e-5, "complex64": 4e-5, "float64": 1e-12, "complex128": 1e-12}


def matrices(*shape, dtype="float64", seed=0):
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return F.from_numpy(values.astype(dtype))


def hermitian(*shape, dtype="float64", seed=0):
    a = matrices(*shape, dtype=dtype, seed=seed)
    return a + a.mH


def assert_orthonormal(q, dtype):
    identity = F.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1)
    assert_close(q.mH @ q, identity, TOLERANCE[dtype], TOLERANCE[dtype])


# ---- singular values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (2, 3, 4, 4), (300, 3, 3), (70, 40)])
def test_svd_reconstructs_the_matrix(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    k, tolerance = min(shape[-2:]), TOLERANCE[dtype] * 20
    for full in (True, False):
        u, s, vh = F.linalg.svd(a, full_matrices=full)
        assert_orthonormal(u, dtype)
        assert_orthonormal(vh.mH, dtype)
        assert_close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, tolerance, tolerance)
        assert bool((s[..., :-1] >= s[..., 1:]).all())
        assert bool((s >= 0).all())
    assert_close(F.linalg.svdvals(a), s, tolerance, tolerance)


def test_svd_of_no_elements_gives_complete_bases():
    u, s, vh = F.linalg.svd(F.ones(3, 0))
    assert u.tolist() == F.eye(3).tolist()
    assert (s.shape, vh.shape) == ((0,), (0, 0))


def test_legacy_svd_returns_v():
    a = matrices(4, 3, dtype="complex128")
    u, s, v = F.svd(a)
    assert_close((u * s) @ v.mH, a, 1e-12, 1e-12)
    assert F.svd(a, some=False).U.shape == (4, 4)
    zeros = F.svd(a, compute_uv=False)
    assert_close(zeros.S, s, 1e-12, 1e-12)
    assert not zeros.U.any() and not zeros.V.any()


def test_gradient_of_singular_values_may_have_repeated_ones():
    """The identity: each loss of S alone is smooth enough."""
    a = leaf(np.eye(3).tolist())
    F.linalg.svdvals(a).sum().backward()
    assert_close(a.grad, F.eye(3, dtype=F.float64), 1e-12, 1e-12)
    b = leaf(np.eye(3).tolist())
    F.linalg.svd(b).S.sum().backward()
    assert_close(b.grad, F.eye(3, dtype=F.float64), 1e-12, 1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_svd_has_two_derivatives(shape, dtype):
    a = matrices(*shape, dtype=dtype).requires_grad_()

    def invariant(x):
        u, s, vh = F.linalg.svd(x, full_matrices=False)
        return u.abs(), s, vh.abs(), u @ vh

    assert checks.gradcheck(invariant, (a,))
    assert checks.gradgradcheck(invariant, (a,), fast_mode=True)


# ---- eigenvalues


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3, 3), (500, 3, 3), (50, 50)])
def test_eigh_diagonalises_hermitian_matrices(shape, dtype):
    a = hermitian(*shape, dtype=dtype)
    tolerance = TOLERANCE[dtype] * 20
    for uplo in ("L", "U"):
        w, v = F.linalg.eigh(a, uplo)
        assert_orthonormal(v, dtype)
        assert_close((v * w[..., None, :]) @ v.mH, a, tolerance, tolerance)
        assert bool((w[..., :-1] <= w[..., 1:]).all())
        assert not w.is_complex()
    assert_close(F.linalg.eigvalsh(a), w, tolerance, tolerance)


def test_eigh_reads_one_triangle():
    a = F.tensor([[1.0, 100.0], [2.0, 1.0]], dtype=F.float64)
    assert_close(F.linalg.eigvalsh(a), F.tensor([-1.0, 3.0], dtype=F.float64), 1e-12)
    assert_close(F.linalg.eigvalsh(a, "U"), F.tensor([-99.0, 101.0], dtype=F.float64), 1e-12)
    with pytest.raises(RuntimeError, match="UPLO"):
        F.linalg.eigh(a, "X")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5), (200, 3, 3)])
def test_eig_diagonalises_square_matrices(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    w, v = F.linalg.eig(a)
    assert w.is_complex() and v.is_complex()
    tolerance = TOLERANCE[dtype] * 20
    assert_close(a.to(v.dtype) @ v, v * w[..., None, :], tolerance, tolerance)
    assert_close(v.abs().square().sum(-2), F.ones(shape[:-1], dtype=v.real.dtype), tolerance)
    found = np.sort_complex(F.linalg.eigvals(a).numpy().astype(np.complex128))
    assert np.allclose(found.sum(-1), w.numpy().sum(-1), atol=1e-3)


def test_rotation_has_a_conjugate_pair():
    values = F.linalg.eigvals(F.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=F.float64))
    assert sorted(values.imag.tolist()) == [-1, 1]


def test_gradient_of_eigenvalues_alone():
    a = matrices(4, 4).requires_grad_()
    (grad,) = F.autograd.grad(F.linalg.eigvals(a).sum().real, a)  # the trace
    assert_close(grad, F.eye(4, dtype=F.float64), 1e-9, 1e-9)


# ---- losses that depend on a phase


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_loss_that_depends_on_a_phase_is_refused(name):
    a = hermitian(3, 3, dtype="complex128").requires_grad_()
    vectors = F.linalg.svd(a).U if name == "svd" else getattr(F.linalg, name)(a)[1]
    # A fixed phase in front, since some vectors may happen to be real.
    loss = (vectors * (0.3 + 0.8j)).sum().imag
    with pytest.raises(RuntimeError, match="phi"):
        loss.backward()
    vectors = F.linalg.svd(a).U if name == "svd" else getattr(F.linalg, name)(a)[1]
    (vectors.abs() * F.arange(9.0).reshape(3, 3)).sum().backward()
    assert bool(F.isfinite(F.view_as_real(a.grad)).all())


# ---- failures


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh"])
def test_matrix_that_is_not_finite_is_named(name):
    a = matrices(4, 3, 3)
    a[2, 1, 1] = math.nan
    with pytest.raises(F.linalg.LinAlgError, match=r"Batch element 2"):
        getattr(F.linalg, name)(a)
    with pytest.raises(F.linalg.LinAlgError, match="failed to converge"):
        getattr(F.linalg, name)(a[2])
    if IS_FACULA:
        with pytest.raises(F.linalg.LinAlgError, match="non-finite"):
            getattr(F.linalg, name)(F.full((2, 2), math.inf))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's eigvals may end the process")
@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_eigenvalues_of_infinities_are_refused(name):
    with pytest.raises(RuntimeError, match="infs or NaNs"):
        getattr(F.linalg, name)(F.full((2, 2), math.nan))


@pytest.mark.parametrize("name", ["eigh", "eig", "eigvals", "eigvalsh", "matrix_exp"])
def test_square_matrices_are_required(name):
    with pytest.raises(RuntimeError, match=r"square.*2 by 3"):
        getattr(F.linalg, name)(F.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"at least 2 dim"):
        getattr(F.linalg, name)(F.ones(3))


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_dtypes_without_a_decomposition_are_refused(name):
    for dtype in (F.int64, F.float16, F.bfloat16):
        with pytest.raises(RuntimeError):
            getattr(F.linalg, name)(F.ones(2, 2).to(dtype))


# ---- rank, pseudo-inverse, condition


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 4), (3, 4, 2)])
def test_pinv_satisfies_the_penrose_conditions(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    p, tolerance = F.linalg.pinv(a), TOLERANCE[dtype] * 50
    assert_close(a @ p @ a, a, tolerance, tolerance)
    assert_close(p @ a @ p, p, tolerance, tolerance)
    assert_close((a @ p).mH, a @ p, tolerance, tolerance)
    assert_close((p @ a).mH, p @ a, tolerance, tolerance)


def test_pinv_of_hermitian_matrices():
    a = hermitian(4, 4, dtype="complex128")
    assert_close(F.linalg.pinv(a, hermitian=True), F.linalg.pinv(a), 1e-10, 1e-10)
    rank_one = F.outer(a[0], a[0].conj())
    ours = F.linalg.pinv(rank_one, hermitian=True, rtol=1e-10)
    assert_close(ours, F.linalg.pinv(rank_one, rtol=1e-10), 1e-10, 1e-10)


def test_gradient_of_pinv_of_a_singular_matrix():
    """Along directions that keep the rank; the formula needs no inverse."""
    factor = matrices(4, 2).requires_grad_()
    assert checks.gradcheck(lambda b: F.linalg.pinv(b @ b.mT, rtol=1e-10), (factor,))


def test_rank_counts_singular_values_above_the_tolerance():
    a = F.diag(F.tensor([1.0, 1e-3, 1e-9, 0.0], dtype=F.float64))
    assert F.linalg.matrix_rank(a).item() == 3
    assert F.linalg.matrix_rank(a, rtol=1e-6).item() == 2
    assert F.linalg.matrix_rank(a, atol=0.01).item() == 1
    assert F.linalg.matrix_rank(a, 0.01).item() == 1
    assert F.linalg.matrix_rank(a, hermitian=True).item() == 3
    batch = F.stack([a, F.eye(4, dtype=F.float64)])
    tolerances = F.tensor([1e-6, 2.0], dtype=F.float64)
    assert F.linalg.matrix_rank(batch, atol=tolerances).tolist() == [2, 0]
    assert F.linalg.matrix_rank(F.ones(2, 0, 3)).tolist() == [0, 0]


@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"])
def test_condition_number_matches_numpy(p):
    a = matrices(2, 4, 4)
    expected = F.tensor(np.array([np.linalg.cond(m, p) for m in a.numpy()]))
    assert_close(F.linalg.cond(a, p), expected, 1e-9, 1e-9)


def test_condition_number_of_a_singular_matrix_is_infinite():
    assert F.linalg.cond(F.ones(2, 2), 1).item() == math.inf
    with pytest.raises(RuntimeError, match="square"):
        F.linalg.cond(F.ones(2, 3), 1)
    with pytest.raises(RuntimeError, match="invalid norm type"):
        F.linalg.cond(F.ones(2, 2), 3)


# ---- the exponential


def test_exponential_of_a_rotation_generator():
    for angle in (1e-4, 0.1, 1.0, 3.0, 20.0, 500.0):
        a = F.tensor([[0.0, -angle], [angle, 0.0]], dtype=F.float64)
        c, s = math.cos(angle), math.sin(angle)
        assert_close(F.matrix_exp(a), F.tensor([[c, -s], [s, c]], dtype=F.float64), 1e-11, 1e-11)


def test_exponential_of_a_nilpotent_matrix_is_its_polynomial():
    n = F.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]], dtype=F.float64)
    assert_close(F.matrix_exp(n), F.eye(3, dtype=F.float64) + n + n @ n / 2, 1e-14, 1e-14)


def test_exponentials_of_a_batch_with_very_different_norms():
    scales = F.tensor([1e-6, 1e-3, 1.0, 30.0, 0.0], dtype=F.float64).reshape(5, 1, 1)
    a = matrices(5, 6, 6) * scales
    together = F.matrix_exp(a)
    for i in range(5):
        assert_close(together[i], F.matrix_exp(a[i]), 1e-10, 1e-10)
    assert together[4].tolist() == F.eye(6).tolist()


def test_exponential_of_large_and_half_precision_matrices():
    a = matrices(300, 300) / 20
    inverse = F.matrix_exp(-a)
    assert_close(F.matrix_exp(a) @ inverse, F.eye(300, dtype=F.float64), 1e-8, 1e-8)
    if IS_FACULA:  # PyTorch's is NaN
        half = F.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=F.bfloat16)
        assert_close(F.matrix_exp(half)[0, 0].double(), math.cosh(1), 1e-2, 0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_exponential_has_two_derivatives(dtype):
    a = (matrices(3, 3, dtype=dtype) / 2).requires_grad_()
    assert checks.gradcheck(F.matrix_exp, (a,))
    assert checks.gradgradcheck(F.matrix_exp, (a,), fast_mode=True)


# ---- parts of decompositions


def test_svd_lowrank_finds_a_matrix_of_low_rank():
    a = matrices(40, 3) @ matrices(3, 25, seed=1)
    for given in (a, a.mT, F.stack([a, 2 * a])):
        u, s, v = F.svd_lowrank(given, q=3)
        assert_close((u * s[..., None, :]) @ v.mH, given, 1e-9, 1e-9)
    mean = a.mean(0, keepdim=True)
    u, s, v = F.svd_lowrank(a, q=4, M=mean)
    assert_close((u * s) @ v.mH, a - mean, 1e-9, 1e-9)


def test_pca_lowrank_centres_columns():
    data = matrices(50, 4) * F.tensor([5.0, 1.0, 0.1, 0.01], dtype=F.float64) + 3
    _, s, v = F.pca_lowrank(data, q=2)
    centred = data - data.mean(0)
    assert_close(s, F.linalg.svdvals(centred)[:2], 1e-4, 1e-4)
    assert v.shape == (4, 2)
    with pytest.raises(ValueError, match="min"):
        F.pca_lowrank(data, q=5)
    with pytest.raises(ValueError, match="niter"):
        F.pca_lowrank(data, niter=-1)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("generalised", [True, False])
def test_lobpcg_finds_extreme_eigenpairs(largest, generalised):
    a = hermitian(2, 30, 30)
    b = matrices(30, 30, seed=3)
    b = (b @ b.mT + 30 * F.eye(30, dtype=F.float64)).expand(2, 30, 30) if generalised else None
    e, x = F.lobpcg(a, k=3, B=b, largest=largest)
    bx = x if b is None else b @ x
    assert_close(a @ x, bx * e[:, None, :], 1e-4, 1e-4)
    assert_close(x.mT @ bx, F.eye(3, dtype=F.float64).expand(2, 3, 3), 1e-6, 1e-6)
    if b is None:
        values = F.linalg.eigvalsh(a)
        expected = values.flip(-1)[:, :3] if largest else values[:, :3]
        assert_close(e, expected, 1e-5, 1e-5)


def test_lobpcg_has_a_gradient():
    a = hermitian(12, 12).requires_grad_()
    e, x = F.lobpcg(a, k=2, tol=1e-12)
    (grad,) = F.autograd.grad((e * F.tensor([1.0, 2.0])).sum() + x.abs()[:4].sum(), a)
    w, v = F.linalg.eigh(a)
    w, v = w.flip(0)[:2], v.flip(1)[:, :2]
    (expected,) = F.autograd.grad((w * F.tensor([1.0, 2.0])).sum() + v.abs()[:4].sum(), a)
    assert_close(grad + grad.mT, expected + expected.mT, 1e-6, 1e-6)


def test_lobpcg_shows_its_steps_and_stops_when_told():
    steps = []

    def watch(worker):
        steps.append(worker.ivars["istep"])
        assert worker.X.shape == (20, 2)
        worker.bvars["force_stop"] = len(steps) == 3

    F.lobpcg(hermitian(20, 20), k=2, tol=1e-14, tracker=watch)
    assert steps == [1, 2, 3]
    with pytest.raises(ValueError, match="not applicable"):
        F.lobpcg(hermitian(5, 5), k=2)


def test_nuclear_condition_number_of_a_singular_matrix():
    assert F.linalg.cond(F.tensor([[2.0, 0.0], [0.0, 0.0]]), "nuc").item() == math.inf
    assert math.isnan(F.linalg.cond(F.zeros(2, 2), "nuc").item())
    batch = F.stack([F.eye(2), F.diag(F.tensor([4.0, 1.0]))])
    assert_close(F.linalg.cond(batch, "nuc"), [4.0, 6.25])


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_parts_of_decompositions_of_sparse_matrices(layout):
    a = getattr(F.diag(F.arange(1.0, 13.0)), layout)()
    F.manual_seed(0)
    E, X = F.lobpcg(a, k=2, largest=False)
    assert_close(E, [1.0, 2.0], rtol=1e-3)
    assert X.shape == (12, 2)
    b = getattr(F.eye(12) * 2, layout)()
    assert_close(F.lobpcg(a, k=1, B=b)[0], [6.0], rtol=1e-3)
    if IS_FACULA or layout == "to_sparse":
        dense = F.pca_lowrank(a.to_dense(), q=12)[1]
        assert_close(F.pca_lowrank(a, q=12)[1][:3], dense[:3], rtol=1e-3)


def test_sparse_matrices_have_no_gradient_of_lobpcg():
    a = F.diag(F.arange(1.0, 13.0)).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match="does not support sparse input"):
        F.lobpcg(a, k=1)[0].sum().backward()
