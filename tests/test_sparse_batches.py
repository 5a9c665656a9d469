"""Batches of compressed matrices: made, taken apart, computed with, against PyTorch and dense."""

import copy
import io
import pickle

import pytest
from package_under_test import IS_FACULA, F

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is the reference")
DENSE = [[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], [[0.0, 4.0, 0.0], [5.0, 0.0, 6.0]]]


def batch(P=F, dtype=None, requires_grad=False):
    starts = P.tensor([[0, 2, 3], [0, 1, 3]])
    columns = P.tensor([[0, 2, 1], [1, 0, 2]])
    values = P.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=dtype or P.float32)
    return P.sparse_csr_tensor(starts, columns, values, (2, 2, 3), requires_grad=requires_grad)


def same(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.layout).split(".")[1] == str(theirs.layout).split(".")[1]
    if ours.layout is not F.strided:
        ours, theirs = ours.to_dense(), theirs.to_dense()
    F.testing.assert_close(ours, F.tensor(theirs.tolist(), dtype=ours.dtype))


def test_parts():
    t = batch()
    assert t.shape == (2, 2, 3) and t.layout is F.sparse_csr and t._nnz() == 3
    assert t.crow_indices().shape == (2, 3) and t.col_indices().shape == (2, 3)
    assert t.values().tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (t.sparse_dim(), t.dense_dim()) == (2, 0)
    assert t.to_dense().tolist() == DENSE


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "f",
    [
        lambda P, t: t.to_dense(),
        lambda P, t: t[1],
        lambda P, t: t.select(0, -1),
        lambda P, t: t.sin(),
        lambda P, t: t.abs(),
        lambda P, t: -t,
        lambda P, t: t * 2,
        lambda P, t: t.clone(),
        lambda P, t: t.to(P.float64),
        lambda P, t: t.to_sparse(),
        lambda P, t: t.sum(),
        lambda P, t: P.tensor(DENSE).to_sparse_csr(),
        lambda P, t: P.tensor(DENSE).to_sparse_csr().col_indices(),
        lambda P, t: P.tensor(DENSE).to_sparse_bsr((1, 3)).values(),
    ],
)
def test_as_in_pytorch(f):
    same(f(F, batch()), f(torch, batch(torch)))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch lacks some of these")
def test_further_operators():
    t = batch()
    other = F.randn(2, 3, 4)
    F.testing.assert_close(t @ other, F.tensor(DENSE) @ other)
    F.testing.assert_close(F.bmm(t, other), F.tensor(DENSE) @ other)
    assert (t + t).to_dense().tolist() == (2 * F.tensor(DENSE)).tolist()
    assert (t + batch()).values().tolist() == (2 * t.values()).tolist()
    assert [m.to_dense().tolist() for m in t.unbind(0)] == DENSE
    assert t.to_sparse_csc().to_dense().tolist() == DENSE
    assert (t / 2).values().tolist() == (t.values() / 2).tolist()
    assert (2 * t).values().tolist() == (t * 2).values().tolist()
    four = F.tensor([DENSE, DENSE]).to_sparse_csr()
    assert four.shape == (2, 2, 2, 3) and four.crow_indices().shape == (2, 2, 3)
    assert four[1, 0].to_dense().tolist() == DENSE[0] and four.to_dense()[0].tolist() == DENSE
    assert four.to_sparse().to_dense()[1].tolist() == DENSE


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch lacks derivatives here")
def test_gradients():
    x = F.tensor(DENSE, requires_grad=True)
    weight = F.arange(12.0).reshape(2, 2, 3)
    (x.to_sparse_csr().to_dense() * weight).sum().backward()
    F.testing.assert_close(x.grad, weight * F.tensor(DENSE).ne(0))
    values = F.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    starts, columns = batch().crow_indices(), batch().col_indices()
    t = F.sparse_csr_tensor(starts, columns, values, (2, 2, 3))
    (t @ F.ones(2, 3, 1)).square().sum().backward()
    expected = F.tensor([[6.0, 6.0, 6.0], [8.0, 22.0, 22.0]])
    F.testing.assert_close(values.grad, expected)
    leaf = batch(requires_grad=True)
    ((leaf * 3).sin() + leaf).to_dense().sum().backward()
    assert leaf.grad.layout is F.sparse_csr
    F.testing.assert_close(leaf.grad.values(), 3 * (3 * leaf.detach().values()).cos() + 1)


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch lacks some of these")
def test_copies():
    t = batch()
    file = io.BytesIO()
    F.save(t, file)
    file.seek(0)
    for other in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), F.load(file), t.detach()):
        assert other.layout is F.sparse_csr and other.to_dense().tolist() == DENSE
    assert "crow_indices" in repr(t)


@pytest.mark.parametrize(
    "parts",
    [
        ([[0, 2, 3]], [[0, 2, 1], [1, 0, 2]], [[1.0] * 3] * 2),
        ([[0, 2, 3], [0, 1, 4]], [[0, 2, 1], [1, 0, 2]], [[1.0] * 3] * 2),
        ([[0, 2, 3], [0, 1, 3]], [[0, 2, 1], [1, 0, 3]], [[1.0] * 3] * 2),
        ([[0, 2, 3], [0, 1, 3]], [[0, 2, 1], [1, 0, 2]], [[1.0] * 2] * 2),
        ([[0, 2, 3], [0, 1, 3]], [0, 2, 1], [[1.0] * 3] * 2),
    ],
)
def test_parts_that_do_not_fit(parts):
    with pytest.raises(RuntimeError):
        F.sparse_csr_tensor(*map(F.tensor, parts), (2, 2, 3), check_invariants=True)


def test_matrices_must_have_as_many_elements():
    with pytest.raises(RuntimeError):
        F.tensor([[[1.0, 0.0]], [[1.0, 2.0]]]).to_sparse_csr()


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch answers otherwise")
def test_what_is_missing_says_so():
    with pytest.raises(NotImplementedError, match="batches"):
        batch().cumsum(0)
    with pytest.raises(NotImplementedError, match="whole matrices"):
        batch().select(2, 0)
    with pytest.raises(NotImplementedError, match="numbers"):
        batch() * F.ones(2, 2, 3)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        batch() @ F.ones(2, 2, 3)
