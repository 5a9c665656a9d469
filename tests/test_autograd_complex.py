"""Complex autograd in the conjugate convention, against formulas written by hand.

The gradient of a real loss L with respect to z = x + iy is dL/dx + i dL/dy, so that z - step * grad
descends. For w = f(z) and an incoming gradient v it is

    v * conj(df/dz) + conj(v) * df/dconj(z).
"""

import pytest
from package_under_test import F, assert_close, assert_equal, leaf

Z = [0.5 + 0.8j, -1.2 + 0.3j, 0.7 - 1.1j]
V = [1.0 - 2.0j, 0.5 + 0.25j, -1.5 + 1.0j]
C = 2.0 - 3.0j


def complex_leaf(values=Z):
    return leaf(values, F.complex128)


def constant(values):
    return F.tensor(values, dtype=F.complex128)


HOLOMORPHIC = {
    "sum with a constant": (lambda z: z + C, lambda z: F.ones_like(z)),
    "difference": (lambda z: C - z, lambda z: -F.ones_like(z)),
    "product with a constant": (lambda z: z * C, lambda z: F.full_like(z, C)),
    "square": (lambda z: z * z, lambda z: 2 * z),
    "quotient by a constant": (lambda z: z / C, lambda z: F.full_like(z, 1 / C)),
    "reciprocal": (lambda z: 1 / z, lambda z: -1 / (z * z)),
    "negative": (lambda z: -z, lambda z: -F.ones_like(z)),
    "cube": (lambda z: z**3, lambda z: 3 * z * z),
    "exp": (F.exp, F.exp),
    "log": (F.log, lambda z: 1 / z),
    "sin": (F.sin, F.cos),
    "cos": (F.cos, lambda z: -F.sin(z)),
    "tanh": (F.tanh, lambda z: 1 - F.tanh(z) ** 2),
    "sigmoid": (F.sigmoid, lambda z: F.sigmoid(z) * (1 - F.sigmoid(z))),
    "sqrt": (F.sqrt, lambda z: 0.5 / F.sqrt(z)),
    "composition": (lambda z: (z * z).exp(), lambda z: 2 * z * (z * z).exp()),
}


@pytest.mark.parametrize(("function", "derivative"), HOLOMORPHIC.values(), ids=HOLOMORPHIC.keys())
def test_holomorphic_functions_multiply_by_the_conjugate_derivative(function, derivative):
    z, v = complex_leaf(), constant(V)
    function(z).backward(v)
    assert_close(z.grad, v * derivative(constant(Z)).conj(), rtol=1e-12)


NOT_HOLOMORPHIC = {
    # function: (df/dz, df/dconj(z))
    "conj": (lambda z: z.conj(), lambda z: (z * 0, z * 0 + 1)),
    "square of the modulus": (lambda z: z * z.conj(), lambda z: (z.conj(), z)),
    "conjugate square": (lambda z: (z * z).conj(), lambda z: (z * 0, 2 * z.conj())),
    "real part, as complex": (
        lambda z: (z + z.conj()) / 2,
        lambda z: (z * 0 + 0.5, z * 0 + 0.5),
    ),
    "square times conjugate": (lambda z: z * z * z.conj(), lambda z: (2 * z * z.conj(), z * z)),
    "phase": (
        lambda z: z / z.abs(),
        lambda z: (0.5 / z.abs() + 0j, -0.5 * z * z / z.abs() ** 3),
    ),
}


@pytest.mark.parametrize(
    ("function", "derivatives"), NOT_HOLOMORPHIC.values(), ids=NOT_HOLOMORPHIC.keys()
)
def test_other_functions_add_the_part_of_the_conjugate(function, derivatives):
    z, v = complex_leaf(), constant(V)
    function(z).backward(v)
    of_z, of_conjugate = derivatives(constant(Z))
    assert_close(z.grad, v * of_z.conj() + v.conj() * of_conjugate, rtol=1e-12)


REAL_VALUED = {
    # function: gradient for an incoming gradient of one
    "abs": (lambda z: z.abs(), lambda z: z / z.abs()),
    "real": (lambda z: z.real, lambda z: z * 0 + 1),
    "imag": (lambda z: z.imag, lambda z: z * 0 + 1j),
    "square of abs": (lambda z: z.abs() ** 2, lambda z: 2 * z),
    "product of parts": (lambda z: z.real * z.imag, lambda z: F.complex(z.imag, z.real)),
    "norm": (lambda z: z.norm(), lambda z: z / z.abs().pow(2).sum().sqrt()),
}


@pytest.mark.parametrize(("function", "gradient"), REAL_VALUED.values(), ids=REAL_VALUED.keys())
def test_real_functions_of_complex_tensors(function, gradient):
    z = complex_leaf()
    result = function(z)
    assert result.dtype == F.float64
    result.sum().backward()
    assert_close(z.grad, gradient(constant(Z)), rtol=1e-12)


def test_the_gradient_of_abs_at_zero_is_zero():
    z = complex_leaf([0j])
    z.abs().backward()
    assert_equal(z.grad, constant([0j]))


def test_complex_joins_two_real_tensors():
    a, b, v = leaf([1.0, 2.0]), leaf([3.0, 4.0]), constant([5.0 + 6.0j, 7.0 - 8.0j])
    F.complex(a, b).backward(v)
    assert_equal(a.grad, [5.0, 7.0])
    assert_equal(b.grad, [6.0, -8.0])


def test_the_parts_can_be_taken_and_joined():
    z, v = complex_leaf(), constant(V)
    F.complex(z.real, z.imag).backward(v)
    assert_equal(z.grad, v)


def test_a_real_factor_gets_a_real_gradient():
    x, z = leaf([1.0, 2.0, 3.0]), complex_leaf()
    v = constant(V)
    (x * z).backward(v)
    assert x.grad.dtype == F.float64
    assert_close(x.grad, (v * constant(Z).conj()).real)
    assert_close(z.grad, v * F.tensor([1.0, 2.0, 3.0], dtype=F.float64))


def test_a_real_summand_gets_the_real_part():
    x = leaf([1.0, 2.0, 3.0])
    (x + constant(Z)).backward(constant(V))
    assert_equal(x.grad, constant(V).real)


def test_gradients_of_a_complex_matrix_product_use_the_adjoint():
    a = complex_leaf([[1 + 1j, 2 - 1j], [0.5j, 3.0 + 0j]])
    b = complex_leaf([[1j, 1 - 2j], [2 + 2j, -1 + 0j]])
    v = constant([[1 + 0j, 2j], [3 - 1j, 1 + 1j]])
    (a @ b).backward(v)
    assert_close(a.grad, v @ b.detach().conj().t(), rtol=1e-12)
    assert_close(b.grad, a.detach().conj().t() @ v, rtol=1e-12)


def test_gradients_of_reductions_and_scans():
    v = 2.0 - 1.0j
    z = complex_leaf()
    z.sum().backward(F.tensor(v, dtype=F.complex128))
    assert_equal(z.grad, constant([v, v, v]))
    z = complex_leaf()
    z.mean().backward(F.tensor(v, dtype=F.complex128))
    assert_close(z.grad, constant([v / 3] * 3))
    z = complex_leaf()
    z.prod().backward(F.tensor(v, dtype=F.complex128))
    assert_close(z.grad, v * (constant(Z).prod() / constant(Z)).conj(), rtol=1e-12)
    z = complex_leaf()
    z.cumsum(0).backward(constant(V))
    assert_close(z.grad, constant([sum(V), V[1] + V[2], V[2]]))


def test_gradients_pass_through_views_and_selections():
    z, v = complex_leaf(), constant(V)
    F.stack([z, z.conj()])[1].backward(v)
    assert_equal(z.grad, v.conj())
    z = complex_leaf()
    z[F.tensor([2, 0])].backward(constant([1j, 2 + 0j]))
    assert_equal(z.grad, constant([2 + 0j, 0j, 1j]))
    z = complex_leaf()
    F.where(F.tensor([True, False, True]), z, z.conj()).backward(v)
    assert_equal(z.grad, constant([V[0], V[1].conjugate(), V[2]]))


def test_gradients_of_changes_in_place():
    z, v = complex_leaf(), constant(V)
    y = z.clone()
    y.mul_(C).add_(1j)
    y.backward(v)
    assert_close(z.grad, v * C.conjugate())


def test_the_real_part_is_a_view_that_can_be_changed_in_place():
    z, v = complex_leaf(), constant(V)
    y = z.clone()
    y.real.mul_(3.0)
    assert_equal(y, F.complex(constant(Z).real * 3.0, constant(Z).imag))
    y.backward(v)
    assert_equal(z.grad, F.complex(v.real * 3.0, v.imag))


@pytest.mark.skipif(not hasattr(F, "view_as_real"), reason="needs view_as_real")
def test_view_as_real_and_view_as_complex():
    z = complex_leaf([1 + 2j, 3 - 4j])
    weights = F.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=F.float64)
    (F.view_as_real(z) * weights).sum().backward()
    assert_equal(z.grad, constant([1 + 10j, 100 + 1000j]))
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    F.view_as_complex(x).backward(constant([5 + 6j, 7 + 8j]))
    assert_equal(x.grad, [[5.0, 6.0], [7.0, 8.0]])


def test_descent_along_the_gradient_finds_the_minimum():
    target = constant([1 + 2j, -3 + 1j])
    z = F.zeros(2, dtype=F.complex128, requires_grad=True)
    for _ in range(60):
        loss = ((z - target).abs() ** 2).sum()
        (grad,) = F.autograd.grad(loss, z)
        with F.no_grad():
            z.sub_(0.2 * grad)
    assert_close(z, target, atol=1e-9)


def test_second_derivatives():
    z = complex_leaf([0.5 + 0.8j])
    # L = |z|^4, grad = 4 |z|^2 z
    (grad,) = F.autograd.grad(z.abs() ** 4, z, create_graph=True)
    d = constant([0.5 + 0.8j])
    assert_close(grad, 4 * d.abs() ** 2 * d)
    # The gradient of Re(4 |z|^2 z) = 4 (x^2 + y^2) x
    (second,) = F.autograd.grad(grad.real, z)
    x, y = 0.5, 0.8
    assert_close(second, constant([12 * x * x + 4 * y * y + 8j * x * y]))


def test_a_conversion_to_complex_and_its_gradient():
    x = leaf([1.0, 2.0])
    x.to(F.complex128).backward(constant([3 + 4j, 5 - 6j]))
    assert x.grad.dtype == F.float64
    assert_equal(x.grad, [3.0, 5.0])


def test_a_complex_output_needs_an_explicit_gradient():
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar"):
        (complex_leaf([1j]) * 2).backward()


def test_real_and_complex_gradients_cannot_be_mixed_up():
    with pytest.raises(RuntimeError, match="dtype"):
        (complex_leaf() * 2).backward(F.ones(3, dtype=F.float64))
    with pytest.raises(RuntimeError, match="dtype"):
        (leaf([1.0]) * 2).backward(constant([1j]))


def test_single_precision_has_the_same_convention():
    z = leaf([1 + 2j], F.complex64)
    (z * z).backward(F.tensor([1 + 0j], dtype=F.complex64))
    assert z.grad.dtype == F.complex64
    assert_equal(z.grad, F.tensor([2 - 4j], dtype=F.complex64))
