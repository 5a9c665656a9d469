"""jacrev, jacfwd and hessian against loops of backward passes."""

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

jacrev, jacfwd, hessian = F.func.jacrev, F.func.jacfwd, F.func.hessian

both = pytest.mark.parametrize("jacobian", [jacrev, jacfwd], ids=["reverse", "forward"])


def vector(*values):
    return F.tensor(values, dtype=F.float64)


X, Y = vector(0.5, 1.0, 2.0), vector(3.0, -1.0)


def by_loop(function, x):
    """The Jacobian of a tensor by a tensor, one backward pass per element."""
    leaf = x.clone().requires_grad_()
    output = function(leaf)
    rows = [
        F.autograd.grad(o, leaf, retain_graph=True, allow_unused=True)[0]
        for o in output.reshape(-1)
    ]
    rows = [F.zeros_like(x) if r is None else r for r in rows]
    return F.stack(rows).reshape(output.shape + x.shape)


@both
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sin(),
        lambda x: x.sum(),
        lambda x: F.outer(x, x**2),
        lambda x: x.cumsum(0)[:2],
        lambda x: x[0] * F.ones(2, 2, dtype=F.float64),
        lambda x: F.ones(2, dtype=F.float64),
    ],
    ids=["vector", "scalar", "matrix", "slice", "one entry", "constant"],
)
def test_jacobian_of_a_function(jacobian, function):
    expected = by_loop(function, X) if function(X.clone().requires_grad_()).requires_grad else 0
    actual = jacobian(function)(X)
    assert actual.shape == function(X).shape + X.shape
    if isinstance(expected, int):
        assert_equal(actual, F.zeros(2, 3, dtype=F.float64))
    else:
        assert_close(actual, expected)


@both
def test_by_a_matrix_and_by_a_scalar(jacobian):
    m = F.arange(6.0, dtype=F.float64).reshape(2, 3) / 5
    assert_close(jacobian(lambda m: (m @ m.T).sin())(m), by_loop(lambda m: (m @ m.T).sin(), m))
    s = F.tensor(0.3, dtype=F.float64)
    assert_close(jacobian(lambda s: X * s**2)(s), X * 2 * s)


@both
def test_argnums(jacobian):
    def function(x, y):
        return F.outer(x, y)

    by_y = jacobian(function, argnums=1)(X, Y)
    assert_close(by_y, by_loop(lambda y: function(X, y), Y))
    by_both = jacobian(function, argnums=(0, 1))(X, Y)
    assert isinstance(by_both, tuple)
    assert_close(by_both[0], by_loop(lambda x: function(x, Y), X))
    assert_close(by_both[1], by_y)
    if jacobian is jacrev or IS_FACULA:  # PyTorch's jacfwd gives zeros for negative positions
        assert_close(jacobian(function, argnums=(-1,))(X, Y)[0], by_y)


@both
def test_trees(jacobian):
    def function(params):
        return {"a": params["x"] * 2, "b": (params["x"].sum() * params["y"][0],)}

    result = jacobian(function)({"x": X, "y": [Y]})
    assert_equal(result["a"]["x"], 2 * F.eye(3, dtype=F.float64))
    assert_equal(result["a"]["y"][0], F.zeros(3, 2, dtype=F.float64))
    assert_close(result["b"][0]["x"], Y[:, None].expand(2, 3))
    assert_close(result["b"][0]["y"][0], X.sum() * F.eye(2, dtype=F.float64))


@both
def test_aux(jacobian):
    result, aux = jacobian(lambda x: (x**2, {"half": x / 2}), has_aux=True)(X)
    assert_close(result, F.diag(2 * X))
    assert_equal(aux["half"], X / 2)


@both
def test_under_vmap(jacobian):
    batch = F.stack([X, X * 2])
    result = F.func.vmap(jacobian(lambda x: x.sin() * x.sum()))(batch)
    expected = [by_loop(lambda x: x.sin() * x.sum(), row) for row in batch]
    assert_close(result, F.stack(expected))


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, 6, 100])
def test_chunks_give_the_same(chunk_size):
    def function(x):
        return (F.outer(x, Y * x.sum()), x.prod())

    plain = jacrev(function)(X)
    chunked = jacrev(function, chunk_size=chunk_size)(X)
    assert_close(chunked[0], plain[0])
    assert_close(chunked[1], plain[1])


def test_chunk_size_must_be_positive():
    with pytest.raises(ValueError, match="chunk_size"):
        jacrev(F.sin, chunk_size=0)


def scalar(x):
    return (x.sin() * x.roll(1)).sum() * x.prod()


def second_by_loop(x):
    leaf = x.clone().requires_grad_()
    (g,) = F.autograd.grad(scalar(leaf), leaf, create_graph=True)
    return F.stack([F.autograd.grad(o, leaf, retain_graph=True)[0] for o in g])


def test_hessian():
    assert_close(hessian(scalar)(X), second_by_loop(X))


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_every_composition_gives_the_hessian(outer, inner):
    assert_close(outer(inner(scalar))(X), second_by_loop(X))


def test_third_derivatives():
    x = vector(0.3, 0.7)
    third = jacfwd(hessian(lambda x: (x**4).sum()))(x)
    expected = F.zeros(2, 2, 2, dtype=F.float64)
    for i in range(2):
        expected[i, i, i] = 24 * x[i]
    assert_close(third, expected)


def test_hessian_by_several_arguments():
    def function(x, y):
        return (x**2).sum() * (y**3).sum()

    result = hessian(function, argnums=(0, 1))(X, Y)
    assert_close(result[0][0], 2 * (Y**3).sum() * F.eye(3, dtype=F.float64))
    assert_close(result[0][1], F.outer(2 * X, 3 * Y**2))
    assert_close(result[1][0], result[0][1].T)
    assert_close(result[1][1], (X**2).sum() * F.diag(6 * Y))


@both
def test_gradients_flow_through_the_jacobian(jacobian):
    x = X.clone().requires_grad_()
    result = jacobian(lambda x: x**3)(x)
    (g,) = F.autograd.grad(result.diagonal().sum(), x)
    assert_close(g, 6 * X)


@both
def test_complex_tensors_are_refused(jacobian):
    z = F.ones(2, dtype=F.complex64)
    with pytest.raises(RuntimeError, match="Expected all inputs to be real"):
        jacobian(lambda z: z * 2)(z)
    with pytest.raises(RuntimeError, match="Expected all outputs to be real"):
        jacobian(lambda x: x * 1j)(X)


@both
def test_argnums_that_do_not_fit(jacobian):
    with pytest.raises(RuntimeError, match="only 1 positional inputs"):
        jacobian(F.sin, argnums=1)(X)
    with pytest.raises(RuntimeError, match="unique"):
        jacobian(F.mul, argnums=(0, 0))(X, X)


def test_random_functions_need_a_randomness():
    with pytest.raises(RuntimeError, match="randomness"):
        jacfwd(lambda x: x * F.rand(3, dtype=F.float64))(X)
    F.manual_seed(0)
    noise = F.rand(3, dtype=F.float64)
    F.manual_seed(0)
    result = jacfwd(lambda x: x * F.rand(3, dtype=F.float64), randomness="same")(X)
    assert_close(result, F.diag(noise))


@both
def test_empty_input_and_output(jacobian):
    empty = F.zeros(0, dtype=F.float64)
    assert tuple(jacobian(lambda x: x[:0])(X).shape) == (0, 3)
    if jacobian is jacrev:
        assert tuple(jacobian(lambda e: e.sum() + X)(empty).shape) == (3, 0)
