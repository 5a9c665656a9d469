"""Factorisations, decompositions and Fourier transforms on a CUDA device against the host."""

import pytest
from package_under_test import F
from test_cuda_device import pytestmark  # noqa: F401  (the mark skips without a device)

DTYPES = [F.float32, F.float64, F.complex64, F.complex128]
BATCHES = [(), (3,), (2, 5)]


def near(cuda, cpu, slack=1.0):
    assert cuda.is_cuda and cuda.shape == cpu.shape and cuda.dtype == cpu.dtype
    if cpu.numel() == 0:
        return
    limit = 1e-3 if cpu.dtype in (F.float32, F.complex64) else 1e-9
    scale = max(1.0, cpu.abs().max().item())
    assert (cuda.cpu() - cpu).abs().max().item() <= slack * limit * scale


def matrices(*shape, dtype, seed=0):
    F.manual_seed(seed)
    return F.randn(*shape, dtype=dtype)


def square(batch, n, dtype, seed=0):
    return matrices(*batch, n, n, dtype=dtype, seed=seed) + 3 * F.eye(n, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 5, 70, 600])
def test_systems(n, batch, dtype):
    if n == 600 and batch:
        pytest.skip("large matrices one at a time")
    a, b = square(batch, n, dtype), matrices(*batch, n, 3, dtype=dtype, seed=1)
    near(F.linalg.solve(a.cuda(), b.cuda()), F.linalg.solve(a, b))
    right = b.transpose(-2, -1)
    near(F.linalg.solve(a.cuda(), right.cuda(), left=False), F.linalg.solve(a, right, left=False))
    near(F.linalg.inv(a.cuda()), F.linalg.inv(a))
    if n < 600 or dtype in (F.float64, F.complex128):
        # Scaled, since products of many numbers leave the range of a dtype.
        unit = a / (F.linalg.slogdet(a).logabsdet / n).exp()[..., None, None]
        near(F.linalg.det(unit.cuda()), F.linalg.det(unit), 10)
    for got, wanted in zip(F.linalg.slogdet(a.cuda()), F.linalg.slogdet(a), strict=True):
        near(got, wanted)
    lu, pivots = F.linalg.lu_factor(a.cuda())
    p, lower, upper = F.lu_unpack(lu, pivots)
    near(p @ lower @ upper, a)
    for adjoint in (False, True):
        for left in (False, True):
            rhs = b if left else right
            near(
                F.linalg.lu_solve(lu, pivots, rhs.cuda(), left=left, adjoint=adjoint),
                F.linalg.lu_solve(*F.linalg.lu_factor(a), rhs, left=left, adjoint=adjoint),
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_cholesky_and_triangular_systems(batch, dtype):
    x = matrices(*batch, 6, 6, dtype=dtype)
    a = x @ x.mH + F.eye(6, dtype=dtype)
    b = matrices(*batch, 6, 2, dtype=dtype, seed=1)
    for upper in (False, True):
        factor, host = F.linalg.cholesky(a.cuda(), upper=upper), F.linalg.cholesky(a, upper=upper)
        near(factor, host)
        near(F.cholesky_solve(b.cuda(), factor, upper), F.cholesky_solve(b, host, upper))
        near(F.cholesky_inverse(factor, upper), F.cholesky_inverse(host, upper), 10)
        for left in (False, True):
            rhs = b if left else b.mT
            near(
                F.linalg.solve_triangular(factor, rhs.cuda(), upper=upper, left=left),
                F.linalg.solve_triangular(host, rhs, upper=upper, left=left),
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7), (1, 3)])
def test_orthogonal_factors_and_singular_values(shape, batch, dtype):
    a = matrices(*batch, *shape, dtype=dtype)
    for mode in ("reduced", "complete", "r"):
        q, r = F.linalg.qr(a.cuda(), mode=mode)
        if mode != "r":
            near(q @ r, a)
            near(q.mH @ q, F.eye(q.shape[-1], dtype=dtype).expand(*batch, -1, -1).clone())
        near(r.abs(), F.linalg.qr(a, mode=mode)[1].abs())
    near(F.linalg.svdvals(a.cuda()), F.linalg.svdvals(a))
    for full in (False, True):
        u, s, vh = F.linalg.svd(a.cuda(), full_matrices=full)
        host = F.linalg.svd(a, full_matrices=full)
        assert u.shape == host[0].shape and vh.shape == host[2].shape
        k = s.shape[-1]
        near((u[..., :k] * s.unsqueeze(-2).to(dtype)) @ vh[..., :k, :], a)
        near(s, host[1])
    if shape[0] >= shape[1]:
        reflectors, tau = F.geqrf(a.cuda())
        near(
            F.linalg.householder_product(reflectors, tau) @ reflectors.triu()[..., : shape[1], :], a
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_eigenvalues(batch, dtype):
    a = matrices(*batch, 6, 6, dtype=dtype)
    hermitian = a + a.mH
    for uplo in "LU":
        values, vectors = F.linalg.eigh(hermitian.cuda(), uplo)
        near(values, F.linalg.eigh(hermitian, uplo)[0])
        near(vectors * values.unsqueeze(-2).to(dtype) @ vectors.mH, hermitian)
    near(F.linalg.eigvalsh(hermitian.cuda()), F.linalg.eigvalsh(hermitian))
    values, vectors = F.linalg.eig(a.cuda())
    near(a.cuda().to(vectors.dtype) @ vectors, (vectors * values.unsqueeze(-2)).cpu())
    near(F.linalg.eigvals(a.cuda()).sum(-1), F.linalg.eigvals(a).sum(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_least_squares_and_exponentials(shape, dtype):
    a, b = matrices(2, *shape, dtype=dtype), matrices(2, shape[0], 3, dtype=dtype, seed=1)
    got, wanted = F.linalg.lstsq(a.cuda(), b.cuda()), F.linalg.lstsq(a, b, driver="gels")
    near(got.solution, wanted.solution, 10)
    near(got.residuals, wanted.residuals, 10)
    if dtype in (F.float64, F.complex128):
        grads = []
        for x, y in ((a.cuda(), b.cuda()), (a, b)):
            x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
            found = F.linalg.lstsq(x, y, driver="gels")
            (found.solution.abs().sin().sum() + found.residuals.sin().sum()).backward()
            grads.append((x.grad, y.grad))
        for one, other in zip(*grads, strict=True):
            near(one, other, 100)
    if shape[0] == shape[1]:
        for scale in (0.1, 1.0, 20.0):
            near(F.matrix_exp(a.cuda() * scale), F.matrix_exp(a * scale), 100)


def test_failures_are_those_of_the_host():
    singular = F.zeros(2, 3, 3).cuda()
    with pytest.raises(F.linalg.LinAlgError, match="singular"):
        F.linalg.inv(singular)
    with pytest.raises(F.linalg.LinAlgError, match="positive-definite"):
        F.linalg.cholesky(-F.eye(3).cuda())
    with pytest.raises(F.linalg.LinAlgError, match="non-finite"):
        F.linalg.svd(F.full((3, 3), float("nan")).cuda())
    with pytest.raises(RuntimeError, match="gels"):
        F.linalg.lstsq(F.eye(2).cuda(), F.eye(2).cuda(), driver="gelsd")
    assert F.linalg.det(F.eye(3).cuda()).item() == 1


@pytest.mark.parametrize("name", ["solve", "inv", "det", "cholesky", "qr", "eigh", "svdvals"])
def test_gradients(name):
    x = square((2,), 4, F.float64)
    if name in ("cholesky", "eigh"):
        x = x @ x.mT

    def loss(t):
        if name == "solve":
            return F.linalg.solve(t, t @ t.mT).sin().sum()
        result = getattr(F.linalg, name)(t)
        parts = result if isinstance(result, tuple) else (result,)
        return sum(p.abs().sin().sum() for p in parts)

    host, device = x.clone().requires_grad_(), x.cuda().requires_grad_()
    loss(host).backward()
    loss(device).backward()
    near(device.grad, host.grad, 100)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms(norm, dtype):
    x = matrices(3, 8, 5, 7, dtype=dtype)
    a = x.cuda()
    for dims in [(-1,), (1,), (0, 2), (1, 2, 3), (0, 1, 2, 3)]:
        near(F.fft.fftn(a, dim=dims, norm=norm), F.fft.fftn(x, dim=dims, norm=norm), 10)
        near(F.fft.ifftn(a, dim=dims, norm=norm), F.fft.ifftn(x, dim=dims, norm=norm))
        if not x.is_complex():
            half, host = F.fft.rfftn(a, dim=dims, norm=norm), F.fft.rfftn(x, dim=dims, norm=norm)
            near(half, host, 10)
            sizes = [x.shape[d] for d in dims]
            near(F.fft.irfftn(half, sizes, dims, norm), F.fft.irfftn(host, sizes, dims, norm), 10)
    near(F.fft.fft(a.transpose(0, 2)[::2], 9, 1), F.fft.fft(x.transpose(0, 2)[::2], 9, 1), 10)
    near(F.fft.hfft(a), F.fft.hfft(x), 10)


def test_gradients_of_fourier_transforms():
    x = matrices(4, 9, dtype=F.float64)
    host, device = x.clone().requires_grad_(), x.cuda().requires_grad_()
    for t in (host, device):
        (F.fft.rfft2(t).abs().sin().sum() + F.fft.irfft(F.fft.rfft(t), 9).sin().sum()).backward()
    near(device.grad, host.grad)
