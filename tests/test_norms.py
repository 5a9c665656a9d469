"""Norms against NumPy for every order and dimension, and the older ways to ask for them."""

import math

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close, leaf

ORDERS = [0, 0.5, 1, 1.5, 2, 3, 4.5, -1, -2, math.inf, -math.inf]
DIMS = [None, 0, 1, -1, (0, 1), (2, 0), (0, 1, 2)]


def data(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 3, shape) * np.random.default_rng(
        seed + 1
    ).choice([-1, 1], shape)


def numpy_vector_norm(a, p, dim, keepdim):
    axes = tuple(range(a.ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    size = np.abs(a)
    if math.isinf(p):
        return (size.max if p > 0 else size.min)(axis=axes, keepdims=keepdim)
    if p == 0:
        return (size != 0).sum(axis=axes, keepdims=keepdim).astype(float)
    return (size**p).sum(axis=axes, keepdims=keepdim) ** (1 / p)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("p", ORDERS)
def test_vector_norm_matches_numpy(p, dim):
    for values in (data(2, 3, 4), data(2, 3, 4) + 1j * data(2, 3, 4, seed=7)):
        for keepdim in (False, True):
            ours = F.linalg.vector_norm(F.from_numpy(values), p, dim, keepdim)
            expected = numpy_vector_norm(values, p, dim, keepdim)
            assert_close(ours, F.from_numpy(np.asarray(expected)), 1e-12, 1e-12)


@pytest.mark.parametrize("p", [1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"])
@pytest.mark.parametrize("dim", [(0, 1), (1, 0), (-2, -1), (2, 0)])
def test_matrix_norm_matches_numpy(p, dim):
    values = data(3, 4, 2)
    for keepdim in (False, True):
        ours = F.linalg.matrix_norm(F.from_numpy(values), p, dim, keepdim)
        expected = np.linalg.norm(values, p, dim, keepdim)
        assert_close(ours, F.from_numpy(np.asarray(expected)), 1e-12, 1e-12)


@pytest.mark.parametrize("shape", [(7,), (70_001,), (301, 233), (3, 5000), (5000, 3)])
def test_euclidean_norm_of_many_elements(shape):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    tensor = F.from_numpy(values)
    exact = values.astype(np.float64)
    assert_close(tensor.norm(), F.tensor(np.sqrt((exact**2).sum())), 1e-6, 0)
    for dim in range(values.ndim):
        expected = F.tensor(np.sqrt((exact**2).sum(dim)), dtype=F.float32)
        assert_close(tensor.norm(dim=dim), expected, 1e-6, 0)


def test_squares_may_be_too_large_for_half_precision():
    x = F.full((4,), 300.0, dtype=F.float16)
    assert x.norm().item() == 600
    assert F.linalg.vector_norm(x, 3).dtype == F.float16


def test_norm_of_a_tensor_without_dimensions():
    x = F.tensor(-3.0)
    assert F.linalg.vector_norm(x).item() == 3
    assert F.linalg.vector_norm(x, 0, dim=-1).item() == 1
    with pytest.raises(IndexError):
        F.linalg.vector_norm(x, 2, dim=1)


def test_dtype_is_the_dtype_of_the_computation():
    x = F.full((1000,), 0.1)
    wide = F.linalg.vector_norm(x, 1, dtype=F.float64)
    assert wide.dtype == F.float64
    assert_close(wide, F.tensor(float(np.float32(0.1)) * 1000, dtype=F.float64), 1e-12, 0)
    with pytest.raises(RuntimeError, match="narrowing"):
        F.linalg.vector_norm(x.double(), dtype=F.float32)
    with pytest.raises(RuntimeError, match="complex"):
        F.linalg.vector_norm(x.to(F.complex64), dtype=F.float32)


@pytest.mark.parametrize("p", [2, 1, 3, 0.5, math.inf])
def test_gradient_at_zero_is_finite(p):
    x = leaf([[0.0, 0.0], [0.0, 2.0]])
    F.linalg.vector_norm(x, p, dim=1).sum().backward()
    assert bool(F.isfinite(x.grad).all())
    assert x.grad[0].tolist() == [0, 0]


def test_equal_magnitudes_share_the_gradient_of_the_largest():
    x = leaf([3.0, -3.0, 1.0])
    F.linalg.vector_norm(x, math.inf).backward()
    assert x.grad.tolist() == [0.5, -0.5, 0]


def test_second_gradient_of_the_euclidean_norm():
    x = leaf([3.0, 4.0])
    (g,) = F.autograd.grad(x.norm(), x, create_graph=True)
    (h,) = F.autograd.grad(g[0], x)
    # d2|x| / dx0 dxj = (delta_0j - x0 xj / |x|^2) / |x|
    assert_close(h, F.tensor([(1 - 9 / 25) / 5, -12 / 25 / 5], dtype=F.float64), 1e-12, 1e-12)


# ---- linalg.norm and norm


def test_order_decides_between_vectors_and_matrices():
    a = F.from_numpy(data(3, 4))
    assert_close(F.linalg.norm(a), F.linalg.vector_norm(a))
    assert_close(F.linalg.norm(a, 2), F.linalg.matrix_norm(a, 2))
    assert_close(F.linalg.norm(a, 1, dim=0), F.linalg.vector_norm(a, 1, dim=0))
    assert_close(F.linalg.norm(a, "nuc"), F.linalg.matrix_norm(a, "nuc"))
    assert_close(F.linalg.norm(a[0], 3), F.linalg.vector_norm(a[0], 3))
    batch = F.from_numpy(data(2, 3, 4))
    assert_close(F.linalg.norm(batch), F.linalg.vector_norm(batch))
    with pytest.raises(RuntimeError, match="1D or 2D"):
        F.linalg.norm(batch, 2)
    with pytest.raises(RuntimeError, match="length 1 or 2"):
        F.linalg.norm(batch, 2, dim=(0, 1, 2))


def test_older_norm_takes_names_and_numbers():
    a = F.from_numpy(data(3, 4))
    assert_close(F.norm(a), F.linalg.vector_norm(a))
    assert_close(F.norm(a, "fro", dim=(0, 1)), F.linalg.vector_norm(a))
    assert_close(F.norm(a, "nuc"), F.linalg.matrix_norm(a, "nuc"))
    assert_close(a.norm(1, 0), F.linalg.vector_norm(a, 1, 0))
    assert_close(a.norm(p=math.inf, dim=1, keepdim=True), a.abs().amax(1, keepdim=True))
    assert_close(F.norm(a, None), F.linalg.vector_norm(a))
    out = F.empty(3, dtype=F.float64)
    assert F.norm(a, 2, dim=1, out=out) is out
    assert_close(out, a.norm(dim=1))
    with pytest.raises(RuntimeError, match="floating"):
        F.norm(F.ones(3, dtype=F.int64))


@pytest.mark.parametrize("p", [math.inf, -math.inf, -1])
def test_norm_without_identity_refuses_no_elements(p):
    with pytest.raises((RuntimeError, IndexError), match="identity"):
        F.linalg.vector_norm(F.ones(0), p)
    with pytest.raises((RuntimeError, IndexError), match="identity"):
        F.linalg.vector_norm(F.ones(0, 3), p, dim=0)
    assert F.linalg.vector_norm(F.ones(0, 3), p, dim=1).shape == (0,)
    assert F.linalg.vector_norm(F.ones(0), 2).item() == 0


def test_matrix_norm_refuses_what_is_no_matrix():
    with pytest.raises(RuntimeError, match="at least 2"):
        F.linalg.matrix_norm(F.ones(3))
    with pytest.raises(RuntimeError, match="2-tuple"):
        F.linalg.matrix_norm(F.ones(3, 3), dim=(0,))
    with pytest.raises(RuntimeError, match="different"):
        F.linalg.matrix_norm(F.ones(3, 3), 1, dim=(0, 0))
    with pytest.raises(RuntimeError, match="not supported"):
        F.linalg.matrix_norm(F.ones(3, 3), 3)
    with pytest.raises(RuntimeError, match="not supported"):
        F.linalg.matrix_norm(F.ones(3, 3), "max")


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's texts are PyTorch's")
def test_error_names_the_operator_and_the_fix():
    with pytest.raises(RuntimeError, match=r"linalg\.vector_norm: .*Long.*float32"):
        F.linalg.vector_norm(F.ones(3, dtype=F.int64))


def test_order_zero_of_a_number_has_the_gradient_zero():
    x = F.tensor(3.0, requires_grad=True)
    size = F.linalg.vector_norm(x, 0)
    size.backward()
    assert size.item() == 1 and x.grad.item() == 0


def test_rms_norm_of_complex_numbers_takes_the_root_of_the_mean_square():
    x = np.array([[1 + 2j, 3 - 1j], [0.5j, 2]], np.complex128)
    weight = np.array([2, 1j])
    want = x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * weight
    got = F.rms_norm(F.tensor(x), [2], F.tensor(weight), 0.1)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.rms_norm(F.tensor(x), [3])
