"""CUDA tensors against the same work on the host. Skipped where there is no device."""

import numpy as np
import pytest
from package_under_test import F

pytestmark = pytest.mark.skipif(not F.cuda.is_available(), reason="no CUDA device")

FLOATS = [F.float32, F.float64, F.float16, F.bfloat16]


def close(cuda, cpu, **tolerance):
    assert cuda.is_cuda and cuda.dtype == cpu.dtype and cuda.shape == cpu.shape
    loose = (
        {"rtol": 1e-2, "atol": 1e-2}
        if cpu.dtype in (F.float16, F.bfloat16)
        else {"rtol": 1e-5, "atol": 1e-5}
    )
    assert F.allclose(cuda.cpu().double(), cpu.double(), **{**loose, **tolerance})


def pair(*shape, dtype=F.float32, seed=0):
    F.manual_seed(seed)
    x = F.randn(*shape).to(dtype)
    return x.cuda(), x


def test_tensors_travel_to_the_device_and_back():
    x = F.arange(24).reshape(2, 3, 4)
    y = x.cuda()
    assert y.is_cuda and y.device == F.device("cuda", 0)
    assert y.cpu().tolist() == x.tolist()
    assert y.transpose(0, 2).cpu().tolist() == x.transpose(0, 2).tolist()
    assert y[1, ::2].to("cpu").tolist() == x[1, ::2].tolist()
    assert y.to(F.float16).cpu().tolist() == x.to(F.float16).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name", ["exp", "tanh", "sigmoid", "sin", "sqrt", "neg", "abs", "relu", "floor", "erf"]
)
def test_functions_of_one_variable(name, dtype):
    a, x = pair(33, 17, dtype=dtype)
    f = getattr(F, name)
    close(f(a.abs() + 0.5), f(x.abs() + 0.5))
    close(f(a.t()[::2].abs()), f(x.t()[::2].abs()))


def test_roots_are_exact_up_to_the_ends_of_the_range():
    bits = np.concatenate(
        [
            np.arange(0, 1 << 32, 99_991, dtype=np.uint64),
            np.arange(0x3F800000 - 40_000, 0x3F800000 + 40_000, dtype=np.uint64),
            [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x80000000, 0xFF800000],
        ]
    ).astype(np.uint32)
    x = bits.view(np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.sqrt(x)
    found = F.from_numpy(x).cuda().sqrt().cpu().numpy()
    assert np.array_equal(found, expected, equal_nan=True)
    assert (np.signbit(found) == np.signbit(expected))[x == 0].all()


@pytest.mark.parametrize("dtype", [*FLOATS, F.int32, F.int64, F.uint8])
def test_arithmetic_broadcasts_and_promotes(dtype):
    a, x = pair(4, 1, 5, dtype=dtype)
    b, y = pair(3, 5, dtype=dtype, seed=1)
    for f in (F.add, F.mul, F.sub, F.maximum):
        close(f(a, b), f(x, y))
    close(a + 2, x + 2)
    close(a * 0.5, x * 0.5)
    close(F.where(a > 0, a, b), F.where(x > 0, x, y))
    assert (a > b).cpu().tolist() == (x > y).tolist()


def test_complex_arithmetic():
    F.manual_seed(0)
    x = F.randn(7, dtype=F.complex64)
    a = x.cuda()
    close_parts = (a * a + a).cpu()
    assert F.allclose(close_parts.real, (x * x + x).real, atol=1e-5)
    assert F.allclose(a.abs().cpu(), x.abs(), atol=1e-5)


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("name", ["sum", "amax", "amin"])
def test_reductions(name, dim):
    a, x = pair(16, 33, 65)
    if dim is None:
        close(getattr(a, name)(), getattr(x, name)(), rtol=1e-4, atol=1e-3)
    else:
        close(getattr(a, name)(dim), getattr(x, name)(dim), rtol=1e-4, atol=1e-3)


def test_large_sums_and_truth():
    x = F.ones(3_000_001)
    assert x.cuda().sum().item() == 3_000_001
    assert (x.cuda() > 0).all().item() and not (x.cuda() < 0).any().item()
    assert F.arange(100_000).cuda().sum().item() == 4_999_950_000


@pytest.mark.parametrize("dtype", FLOATS)
def test_matrix_products(dtype):
    a, x = pair(64, 96, dtype=dtype)
    b, y = pair(96, 32, dtype=dtype, seed=1)
    close(a @ b, x @ y, rtol=3e-2, atol=2e-1 if dtype in (F.float16, F.bfloat16) else 1e-3)
    c, z = pair(5, 32, 96, dtype=dtype, seed=2)
    close(
        c @ c.transpose(1, 2),
        z @ z.transpose(1, 2),
        rtol=3e-2,
        atol=3e-1 if dtype in (F.float16, F.bfloat16) else 1e-3,
    )


def test_writing_in_place():
    a, x = pair(5, 6)
    a[1] = 7.0
    x[1] = 7.0
    a.add_(1).mul_(a)
    x.add_(1).mul_(x)
    a[:, 2] = F.zeros(5).cuda()
    x[:, 2] = F.zeros(5)
    close(a, x)


def test_gradients_flow_on_the_device():
    w, v = pair(8, 4)
    x, y = pair(16, 8, seed=1)
    w.requires_grad_()
    v.requires_grad_()
    loss = ((x @ w).tanh() ** 2).mean()
    host = ((y @ v).tanh() ** 2).mean()
    loss.backward()
    host.backward()
    close(w.grad, v.grad)
    with F.no_grad():
        w -= 0.1 * w.grad
        v -= 0.1 * v.grad
    close(w.detach(), v.detach())


def test_mixed_devices_are_refused():
    with pytest.raises(RuntimeError, match="same device"):
        F.ones(2).cuda() + F.ones(2)
    assert (F.ones(2).cuda() + F.tensor(1.0)).cpu().tolist() == [2.0, 2.0]


def test_operators_without_a_device_kernel_say_so():
    state = F.zeros(2, dtype=F.int64).cuda(), 1, F.zeros(2, 30, dtype=F.int64).cuda(), 2, 0
    with pytest.raises(NotImplementedError, match="cuda"):
        F._C._operators["_sobol_engine_ff"](*state)


def test_memory_is_counted_and_reused():
    before = F.cuda.memory_allocated()
    x = F.ones(1 << 20).cuda()
    assert F.cuda.memory_allocated() - before >= 4 << 20
    del x
    assert F.cuda.memory_allocated() == before


def test_printing():
    assert repr(F.arange(3).cuda()) == "tensor([0, 1, 2], device='cuda:0')"
