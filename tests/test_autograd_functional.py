"""autograd.functional: products and all entries, graphs, strictness, vectorised or not."""

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

functional = F.autograd.functional
hessian, hvp, jacobian = functional.hessian, functional.hvp, functional.jacobian
jvp, vhp, vjp = functional.jvp, functional.vhp, functional.vjp


def vector(*values):
    return F.tensor(values, dtype=F.float64)


X, Y, V = vector(0.5, 1.0, 2.0), vector(3.0, -1.0, 0.25), vector(1.0, 10.0, -2.0)
EYE = F.eye(3, dtype=F.float64)


def cube(x):
    return (x**3).sum()


def both(x, y):
    return (x**2 * y).sum()


# ---- products


def test_vjp():
    output, product = vjp(lambda x: x.sin(), X, V)
    assert_close(output, X.sin())
    assert_close(product, X.cos() * V)
    assert not output.requires_grad and not product.requires_grad


def test_vjp_of_tuples():
    outputs, products = vjp(lambda x, y: (x * y, x.sum()), (X, Y), (V, F.ones((), dtype=F.float64)))
    assert isinstance(outputs, tuple) and isinstance(products, tuple)
    assert_close(products[0], V * Y + 1)
    assert_close(products[1], V * X)


def test_vector_may_be_left_out_for_one_element():
    assert_close(vjp(cube, X)[1], 3 * X**2)
    one = F.tensor(2.0)
    assert_equal(jvp(lambda x: x**3, one)[1], 12.0)
    assert_equal(hvp(lambda x: x**3, one)[1], 12.0)
    assert_equal(vhp(lambda x: x**3, one)[1], 12.0)


def test_jvp():
    output, product = jvp(lambda x: x.sin(), X, V)
    assert_close(output, X.sin())
    assert_close(product, X.cos() * V)
    _, products = jvp(lambda x, y: (x * y, x.sum()), (X, Y), (V, V))
    assert_close(products[0], V * Y + X * V)
    assert_close(products[1], V.sum())


@pytest.mark.parametrize("product_of", [vhp, hvp])
def test_hessian_products(product_of):
    output, product = product_of(cube, X, V)
    assert_close(output, cube(X))
    assert_close(product, 6 * X * V)
    _, products = product_of(both, (X, Y), (V, V))
    assert_close(products[0], 2 * Y * V + 2 * X * V)
    assert_close(products[1], 2 * X * V)


@pytest.mark.parametrize("function", [vjp, jvp])
def test_create_graph_of_jacobian_products(function):
    x, v = X.clone().requires_grad_(), V.clone().requires_grad_()
    output, product = function(lambda x: x**3, x, v, create_graph=True)
    gx, gv = F.autograd.grad(product.sum(), (x, v), retain_graph=True)
    assert_close(gx, 6 * X * V)
    assert_close(gv, 3 * X**2)
    assert_close(F.autograd.grad(output.sum(), x)[0], 3 * X**2)


@pytest.mark.parametrize("function", [vhp, hvp])
def test_create_graph_of_hessian_products(function):
    x = X.clone().requires_grad_()
    _, product = function(cube, x, V, create_graph=True)
    assert_close(F.autograd.grad(product.sum(), x)[0], 6 * V)


@pytest.mark.parametrize("function", [vjp, jvp])
def test_missing_influence_gives_zeros(function):
    _, product = function(lambda x, y: x * 2, (X, Y), V if function is vjp else (V, V))
    zero = product[1] if function is vjp else product * 0
    assert_equal(zero, F.zeros(3, dtype=F.float64))


def test_closed_over_inputs_are_not_differentiated():
    x = X.clone().requires_grad_()
    assert_close(vjp(lambda y: y * x, x, V)[1], X * V)
    assert_close(jacobian(lambda y: y * x, x), F.diag(X))


def test_works_under_no_grad():
    with F.no_grad():
        assert_close(vjp(lambda x: x**2, X, V)[1], 2 * X * V)
        assert_close(jvp(lambda x: x**2, X, V)[1], 2 * X * V)
        assert_close(vhp(cube, X, V)[1], 6 * X * V)
        assert_close(hvp(cube, X, V)[1], 6 * X * V)
        assert_close(jacobian(lambda x: x**2, X), F.diag(2 * X))


# ---- all entries

ways = pytest.mark.parametrize(
    "way",
    [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}],
    ids=["loop", "vectorised", "forward"],
)


@ways
def test_jacobian(way):
    assert_close(jacobian(lambda x: x.sin(), X, **way), F.diag(X.cos()))
    matrix = jacobian(lambda x: F.outer(x, Y[:2]), X, **way)
    assert_close(matrix, EYE[:, None, :] * Y[:2, None])
    assert_close(jacobian(cube, X, **way), 3 * X**2)


@ways
def test_jacobian_of_tuples(way):
    result = jacobian(lambda x, y: (x * y, x.sum()), (X, Y), **way)
    if IS_FACULA or "strategy" not in way:  # PyTorch gives lists in forward mode
        assert isinstance(result, tuple) and isinstance(result[0], tuple)
    assert_close(result[0][0], F.diag(Y))
    assert_close(result[0][1], F.diag(X))
    assert_equal(result[1][0], F.ones(3, dtype=F.float64))
    assert_equal(result[1][1], F.zeros(3, dtype=F.float64))
    single = jacobian(lambda x, y: x * y, (X, Y), **way)
    assert len(single) == 2 and tuple(single[0].shape) == (3, 3)
    several = jacobian(lambda x: (x, x * 2), X, **way)
    assert_equal(several[1], 2 * EYE)


@ways
def test_jacobian_of_a_constant(way):
    result = jacobian(lambda x: F.ones(2, dtype=F.float64), X, **way)
    assert_equal(result, F.zeros(2, 3, dtype=F.float64))


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian_with_a_graph(vectorize):
    x = X.clone().requires_grad_()
    result = jacobian(lambda x: x**3, x, create_graph=True, vectorize=vectorize)
    assert_close(F.autograd.grad(result.sum(), x)[0], 6 * X)
    assert not jacobian(lambda x: x**3, x, vectorize=vectorize).requires_grad


@pytest.mark.parametrize(
    "way",
    [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}],
    ids=["loop", "vectorised", "forward"],
)
def test_hessian(way):
    assert_close(hessian(cube, X, **way), F.diag(6 * X))
    result = hessian(both, (X, Y), **way)
    assert_close(result[0][0], F.diag(2 * Y))
    assert_close(result[0][1], F.diag(2 * X))
    assert_close(result[1][0], F.diag(2 * X))
    assert_equal(result[1][1], F.zeros(3, 3, dtype=F.float64))


def test_hessian_with_a_graph():
    x = X.clone().requires_grad_()
    result = hessian(lambda x: (x**4).sum(), x, create_graph=True)
    assert_close(F.autograd.grad(result.sum(), x)[0], 24 * X)


# ---- strictness


def test_strict_outputs():
    for function in (vjp, jvp):
        with pytest.raises(RuntimeError, match=r"Output 0 .* does not require gradients"):
            function(lambda x: x.detach(), X, V, strict=True)
    for function in (vhp, hvp):
        with pytest.raises(RuntimeError, match=r"Output 0 .* does not require gradients"):
            function(lambda x: x.detach().sum(), X, V, strict=True)
    with pytest.raises(RuntimeError, match=r"Output 0 .* does not require gradients"):
        jacobian(lambda x: x.detach(), X, strict=True)


def test_strict_inputs():
    for function in (vjp, jvp):
        with pytest.raises(RuntimeError, match="independent of input 1"):
            function(lambda x, y: x * 2, (X, Y), V if function is vjp else (V, V), strict=True)
    for function in (vhp, hvp):
        with pytest.raises(RuntimeError, match="independent of input 1"):
            function(lambda x, y: cube(x), (X, Y), (V, V), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        jacobian(lambda x, y: x * 2, (X, Y), strict=True)


def test_strict_second_derivatives():
    def linear(x):
        return x.sum()

    for function in (vhp, hvp):
        with pytest.raises(RuntimeError, match=r"jacobian .* is independent of the input"):
            function(linear, X, V, strict=True)
    with pytest.raises(RuntimeError, match=r"jacobian .* is independent of the input"):
        hessian(linear, X, strict=True)
    with pytest.raises(RuntimeError, match="create_graph=True"):
        vjp(linear, X, strict=True, create_graph=True)


# ---- what is refused


def test_types():
    for function in (vjp, jvp, vhp, hvp):
        with pytest.raises(TypeError, match="inputs given to"):
            function(cube, [X], V)
        with pytest.raises(TypeError, match="value at index 1"):
            function(cube, (X, 3.0), V)
    for function in (vjp, jvp, vhp, hvp, jacobian, hessian):
        with pytest.raises(TypeError, match="outputs of the user-provided function"):
            function(lambda x: 3.0, X, *([V] if function in (jvp, vhp, hvp) else []))
    with pytest.raises(TypeError, match="The v given to"):
        vjp(lambda x: x, X, [V])


def test_shapes_of_the_vector():
    for function in (vjp, jvp):
        with pytest.raises(RuntimeError, match="v has invalid size"):
            function(lambda x: x * 2, X, V[:2])
        with pytest.raises(RuntimeError, match="single Tensor"):
            function(lambda x: x * 2, X, (V, V))
        with pytest.raises(RuntimeError, match="v can only be None"):
            function(lambda x: x * 2, X)
    with pytest.raises(RuntimeError, match="invalid length: should be 2 but got 1"):
        jvp(both, (X, Y), (V,))
    with pytest.raises(RuntimeError, match="Entry 1 in v has invalid size"):
        jvp(both, (X, Y), (V, V[:2]))


def test_functions_that_are_not_scalar():
    for function in (vhp, hvp):
        with pytest.raises(RuntimeError, match="single element"):
            function(lambda x: x * 2, X, V)
        with pytest.raises(RuntimeError, match="single Tensor"):
            function(lambda x: (x.sum(), x.sum()), X, V)
    with pytest.raises(RuntimeError, match="single element"):
        hessian(lambda x: x * 2, X)
    with pytest.raises(RuntimeError, match="single Tensor"):
        hessian(lambda x: (x.sum(), x.sum()), X)


def test_combinations_of_options():
    forward = {"strategy": "forward-mode"}
    with pytest.raises(AssertionError, match="strategy"):
        jacobian(cube, X, strategy="sideways")
    with pytest.raises(AssertionError, match="strategy"):
        hessian(cube, X, outer_jacobian_strategy="sideways")
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        jacobian(cube, X, **forward)
    with pytest.raises(NotImplementedError, match="create_graph=True"):
        jacobian(cube, X, create_graph=True, vectorize=True, **forward)
    with pytest.raises(RuntimeError, match="strict=True"):
        jacobian(cube, X, strict=True, vectorize=True, **forward)
    with pytest.raises(RuntimeError, match="strict=True"):
        jacobian(cube, X, strict=True, vectorize=True)


# ---- autograd.grad with batches and dictionaries


def test_batched_gradients():
    x = X.clone().requires_grad_()
    y, z = x**2, x.sum()
    basis = F.eye(3, dtype=F.float64)
    (rows,) = F.autograd.grad(y, x, basis, is_grads_batched=True, retain_graph=True)
    assert_close(rows, F.diag(2 * X))
    gx, gu = F.autograd.grad(
        (y, z),
        (x, x.clone()),
        (basis, vector(1.0, 2.0, 3.0)),
        is_grads_batched=True,
        allow_unused=True,
        retain_graph=True,
    )
    assert_close(gx, F.diag(2 * X) + vector(1.0, 2.0, 3.0)[:, None])
    assert gu is None
    (rows,) = F.autograd.grad(y, x, basis, is_grads_batched=True, create_graph=True)
    assert_close(F.autograd.grad(rows.sum(), x)[0], F.full((3,), 2.0, dtype=F.float64))


def test_inputs_as_a_dictionary():
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    result = F.autograd.grad((x * y).sum(), {"x": x, "y": y})
    assert_equal(result["x"], Y)
    assert_equal(result["y"], X)
