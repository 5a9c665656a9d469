"""Eigenvalues and singular values of many small matrices, which go through vectors together."""

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

REAL = ["float32", "float64"]
SIZES = [1, 2, 3, 5, 8, 16, 17, 33, 64]


def company(rows, columns, dtype):
    """Random matrices among special ones: scaled, zero, singular, graded, diagonal."""
    random = np.random.default_rng(rows + columns)
    a = random.standard_normal((21, rows, columns))
    a[1] *= 1e-30
    a[2] *= 1e15
    a[3] = 0
    a[4] = np.eye(rows, columns)
    a[5] = 1
    a[6] = np.diag(10.0 ** -np.arange(max(rows, columns)))[:rows, :columns]
    a[7] = np.round(a[7])
    a[8, :, 0] = 0
    a[9] *= 10.0 ** np.linspace(0, -20, columns)
    return a.astype(dtype)


def assert_orthonormal(q, units):
    """Columns of every matrix, within so many units of rounding."""
    eps = np.finfo(q.dtype).eps
    wide = q.astype("float64")
    assert np.abs(wide.swapaxes(-2, -1) @ wide - np.eye(q.shape[-1])).max() <= units * eps


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("uplo", "LU")
def test_eigh_of_many_matrices(n, uplo, dtype):
    a = company(n, n, dtype)
    a = a + a.swapaxes(-2, -1)
    # Only one triangle is read.
    given = np.tril(a) if uplo == "L" else np.triu(a)
    w, v = (t.numpy() for t in F.linalg.eigh(F.from_numpy(given), UPLO=uplo))
    wide = a.astype("float64")
    expected = np.linalg.eigvalsh(wide)
    unit = np.finfo(dtype).eps * (np.abs(expected).max(-1, keepdims=True) + 1e-300)
    assert (np.abs(w - expected) <= 10 * (1 + n**0.5) * unit).all()
    assert (np.diff(w) >= 0).all()
    assert (np.abs(wide @ v - v * w[:, None]) <= 30 * unit[..., None]).all()
    assert_orthonormal(v, 10 * (1 + n**0.5))
    values = F.linalg.eigvalsh(F.from_numpy(given), UPLO=uplo).numpy()
    assert (np.abs(values - expected) <= 10 * (1 + n**0.5) * unit).all()


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", [*((n, n) for n in SIZES), (9, 4), (4, 9), (31, 28), (28, 31)])
def test_svd_of_many_matrices(shape, dtype):
    a = company(*shape, dtype)
    n = max(shape)
    u, s, vh = (t.numpy() for t in F.linalg.svd(F.from_numpy(a), full_matrices=False))
    expected = np.linalg.svd(a.astype("float64"), compute_uv=False)
    unit = np.finfo(dtype).eps * (expected[:, :1] + 1e-300)
    assert (np.abs(s - expected) <= 10 * (1 + n**0.5) * unit).all()
    assert (np.diff(s) <= 0).all()
    product = (u.astype("float64") * s[:, None]) @ vh
    assert (np.abs(product - a) <= 30 * unit[..., None]).all()
    assert_orthonormal(u, 10 * (1 + n**0.5))
    assert_orthonormal(vh.swapaxes(-2, -1), 10 * (1 + n**0.5))
    values = F.linalg.svdvals(F.from_numpy(a)).numpy()
    assert (np.abs(values - expected) <= 10 * (1 + n**0.5) * unit).all()


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch takes them one by one")
@pytest.mark.parametrize("n", [3, 16, 33])
def test_results_do_not_depend_on_the_company(n):
    a = company(n, n, "float32")
    for decompose in (lambda x: F.linalg.eigh(x + x.mT), F.linalg.svd):
        together, some = decompose(F.from_numpy(a)), decompose(F.from_numpy(a[3:13]))
        for whole, part in zip(together, some, strict=True):
            assert np.array_equal(whole.numpy()[3:13], part.numpy())


def test_a_matrix_that_is_not_finite_is_named():
    a = np.stack([np.eye(4)] * 20)
    a[11, 1, 2] = np.nan
    for decompose in (F.linalg.eigh, F.linalg.eigvalsh, F.linalg.svd, F.linalg.svdvals):
        with pytest.raises(RuntimeError, match="11"):
            decompose(F.from_numpy(a))
