"""CUDA against the host: what the tests of operator families share."""

import pytest
from package_under_test import F

needs_cuda = pytest.mark.skipif(not F.cuda.is_available(), reason="no CUDA device")
FLOATS = [F.float32, F.float64, F.bfloat16, F.float16]
LOOSE = {"rtol": 2e-2, "atol": 2e-2}


def is_half(dtype):
    return dtype in (F.float16, F.bfloat16)


def close(cuda, cpu, **tolerance):
    assert cuda.is_cuda and cuda.dtype == cpu.dtype and cuda.shape == cpu.shape
    wanted = {**(LOOSE if is_half(cpu.dtype) else {"rtol": 2e-5, "atol": 2e-5}), **tolerance}
    a, b = cuda.detach().cpu(), cpu.detach()
    if not a.is_complex():
        a, b = a.double(), b.double()
    assert F.allclose(a, b, equal_nan=True, **wanted)


def same_with_gradients(f, *inputs, **tolerance):
    """f on the host and on the device: results, and gradients of all inputs that float."""
    results = []
    for device in ("cpu", "cuda"):
        leaves = [
            x.detach().to(device).requires_grad_(x.is_floating_point()) if x is not None else None
            for x in inputs
        ]
        out = f(*leaves)
        F.manual_seed(7)
        grad = F.randn(out.shape).to(out.dtype).to(device)
        wanted = [x for x in leaves if x is not None and x.requires_grad]
        results.append((out, F.autograd.grad(out, wanted, grad)))
    (cpu, cpu_grads), (cuda, cuda_grads) = results
    close(cuda, cpu, **tolerance)
    for a, b in zip(cuda_grads, cpu_grads, strict=True):
        close(a, b, **tolerance)


def random(*shape, dtype=F.float32, seed=0):
    F.manual_seed(seed)
    return F.randn(shape).to(dtype)
