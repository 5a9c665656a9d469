"""Operators on sparse tensors that follow from others, against the same operators on dense ones."""

import pytest
from package_under_test import IS_FACULA, F

LAYOUTS = ["coo", "csr", "csc"]
DATA = [[2.0, 1.0, 0.0], [0.0, -3.0, 0.0], [1.0, 0.0, 4.0]]


def sparse(layout, data=None, **options):
    t = F.tensor(DATA if data is None else data, **options)
    return {"coo": t.to_sparse, "csr": t.to_sparse_csr, "csc": t.to_sparse_csc}[layout]()


def dense(t):
    return t.to_dense() if t.layout is not F.strided else t


OPERATORS = {
    "adjoint": lambda t: t.adjoint(),
    "movedim": lambda t: t.movedim(0, 1),
    "float_power": lambda t: t.float_power(2),
    "matrix_power": lambda t: t.matrix_power(3),
    "inner": lambda t: F.inner(t, F.tensor(2.0)),
    "ldexp": lambda t: F.ldexp(t, F.tensor(2.0)),
    "flatten of one dimension": lambda t: t.flatten(1),
    "unbind": lambda t: t.unbind(1)[1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_values(name, layout):
    if layout != "coo" and name in ("movedim", "float_power") and not IS_FACULA:
        pytest.skip("PyTorch has it for COO")
    result = OPERATORS[name](sparse(layout))
    F.testing.assert_close(dense(result), OPERATORS[name](F.tensor(DATA)))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch lacks some of the derivatives")
@pytest.mark.parametrize("name", OPERATORS)
def test_gradients(name):
    x, y = (F.tensor(DATA, requires_grad=True) for _ in range(2))
    dense(OPERATORS[name](x.to_sparse())).sum().backward()
    result = OPERATORS[name](y)
    (result * dense(OPERATORS[name](F.tensor(DATA).to_sparse())).ne(0)).sum().backward()
    F.testing.assert_close(x.grad, y.grad * F.tensor(DATA).ne(0))


def test_distance_and_sums():
    a, b = sparse("coo"), sparse("coo", [[0.0, 1.0, 2.0]] * 3)
    assert F.dist(a, b).item() == pytest.approx(F.dist(a.to_dense(), b.to_dense()).item())
    assert dense(a.sum_to_size(1)).tolist() == [5.0]


def test_turned_in_place():
    for turn in (lambda t: t.t_(), lambda t: t.transpose_(0, 1), lambda t: t.swapaxes_(0, 1)):
        t = sparse("coo", [[1.0, 2.0, 0.0]])
        assert turn(t) is t
        assert t.shape == (3, 1) and t.to_dense().tolist() == [[1.0], [2.0], [0.0]]
        assert t._version > 0


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch answers otherwise")
def test_turning_in_place_that_cannot_be():
    with pytest.raises(RuntimeError, match="layout"):
        sparse("csr").t_()
    with pytest.raises(RuntimeError, match="requires grad"):
        (sparse("coo", requires_grad=True) * 2).t_()


def test_conjugates_in_place():
    t = sparse("coo", [[1 + 2j, 0]])
    assert t.conj_physical_().to_dense().tolist() == [[1 - 2j, 0]]
    real = sparse("csr")
    assert real.conj_physical_().to_dense().tolist() == DATA


def test_new_tensors_have_no_elements():
    t = sparse("coo").new_zeros((2, 3))
    assert t.layout is F.sparse_coo and t._nnz() == 0 and t.shape == (2, 3)
    assert sparse("coo").new_empty(4, dtype=F.float64).dtype is F.float64
    if IS_FACULA:
        assert sparse("csr").new_zeros((2, 3)).to_dense().tolist() == [[0.0] * 3] * 2


def test_history_is_forgotten_in_place():
    t = sparse("coo", requires_grad=True) * 2
    assert t.requires_grad and not t.detach_().requires_grad


def test_products_of_compressed_matrices_are_compressed_by_rows():
    for a in ("csr", "csc"):
        for b in ("csr", "csc"):
            product = sparse(a) @ sparse(b)
            assert product.layout is F.sparse_csr
            F.testing.assert_close(product.to_dense(), F.tensor(DATA) @ F.tensor(DATA))


def test_blocks_of_one_size():
    x = F.eye(4)
    assert x.to_sparse_bsr(2).values().shape == (2, 2, 2)
    assert x.to_sparse_bsc(2).to_dense().tolist() == x.tolist()
