"""Gradients through sparse tensors, of sparse tensors, and steps of optimizers with them."""

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

ONLY_FACULA = pytest.mark.skipif(not IS_FACULA, reason="PyTorch does it otherwise")
INDICES = [[0, 1, 1, 2], [1, 0, 2, 2]]


def leaf(*values):
    return F.tensor(values, dtype=F.float64, requires_grad=True)


def sparse(values, size=(3, 4)):
    return F.sparse_coo_tensor(F.tensor(INDICES), values, size)


def weights(*shape):
    return F.tensor(np.random.default_rng(sum(shape)).normal(size=shape))


FUNCTIONS = {
    "to_dense": lambda v: sparse(v).to_dense() * weights(3, 4),
    "coalesce": lambda v: sparse(v).coalesce().values() ** 2,
    "scale": lambda v: (sparse(v) * 3).to_dense() ** 2,
    "sin": lambda v: sparse(v).sin().to_dense(),
    "sum of two": lambda v: (sparse(v) + sparse(v * v)).to_dense() ** 2,
    "product of two": lambda v: (sparse(v) * sparse(v * v)).to_dense(),
    "dense plus": lambda v: (weights(3, 4) + sparse(v)) ** 2,
    "times dense": lambda v: (sparse(v) * weights(3, 4)).to_dense() ** 2,
    "matrix product": lambda v: (sparse(v) @ weights(4, 2)) ** 2,
    "from the right": lambda v: (weights(2, 3) @ sparse(v)) ** 2,
    "two matrices": lambda v: (sparse(v) @ sparse(v * v, (4, 3))).to_dense(),
    "transpose": lambda v: sparse(v).t().to_dense() * weights(4, 3),
    "sum over rows": lambda v: F.sparse.sum(sparse(v), 0).to_dense() ** 2,
    "softmax": lambda v: F.sparse.softmax(sparse(v), 1).to_dense() * weights(3, 4),
    "log softmax": lambda v: F.sparse.log_softmax(sparse(v), 0).to_dense() * weights(3, 4),
    "select": lambda v: sparse(v)[1].to_dense() ** 2,
    "index_select": lambda v: sparse(v).index_select(0, F.tensor([1, 1, 0])).to_dense() ** 2,
    "cat": lambda v: F.cat([sparse(v), sparse(v * 2)], 1).to_dense() ** 2,
    "mask": lambda v: sparse(v).sparse_mask(F.ones(3, 4).to_sparse()).to_dense() ** 2,
}


@ONLY_FACULA
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_values(name):
    v = leaf(1.0, -2.0, 0.5, 3.0)
    assert F.autograd.gradcheck(FUNCTIONS[name], (v,))
    assert F.autograd.gradgradcheck(FUNCTIONS[name], (v,))


@ONLY_FACULA
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_gradients_through_compressed_layouts(layout):
    def function(x, w):
        s = {
            "csr": lambda: x.to_sparse_csr(),
            "csc": lambda: x.to_sparse_csc(),
            "bsr": lambda: x.to_sparse_bsr((1, 2)),
        }[layout]()
        return (s * 2) @ w

    x = F.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=F.float64, requires_grad=True)
    w = weights(2, 3).requires_grad_()
    function(x, w).pow(2).sum().backward()
    y = x.detach().clone().requires_grad_()
    u = w.detach().clone().requires_grad_()
    ((y * 2) @ u).pow(2).sum().backward()
    stored = np.ones((2, 2)) if layout == "bsr" else (x.detach().numpy() != 0)
    assert_close(x.grad, y.grad.numpy() * stored, 1e-12)
    assert_close(w.grad, u.grad, 1e-12)


def test_gradient_of_a_sparse_leaf_is_sparse_and_has_its_pattern():
    s = sparse(F.tensor([1.0, 2.0, 3.0, 4.0])).coalesce().requires_grad_()
    w = F.ones(4, 2, requires_grad=True)
    F.sparse.mm(s, w).sum().backward()
    assert s.grad.is_sparse
    assert_equal(s.grad.coalesce().indices(), s.detach().indices())
    assert_equal(s.grad.coalesce().values(), [2.0, 2.0, 2.0, 2.0])
    assert_equal(w.grad, s.detach().to_dense().sum(0).unsqueeze(1).expand(4, 2))


def test_gradients_of_equal_positions_are_those_of_the_position():
    s = F.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,), requires_grad=True)
    (s.to_dense() ** 2).sum().backward()
    assert_equal(s.grad.to_dense(), [6.0, 0.0])


def test_gradients_add_up():
    s = sparse(F.tensor([1.0, 2.0, 3.0, 4.0])).coalesce().requires_grad_()
    for _ in range(2):
        s.to_dense().sum().backward()
    assert_equal(s.grad.to_dense(), (s.detach().to_dense() != 0) * 2.0)


def test_gradient_of_to_sparse_is_dense():
    x = F.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    (x.to_sparse() * 3).to_dense().sum().backward()
    assert_equal(x.grad, [[0.0, 3.0], [3.0, 0.0]])


def test_in_place_is_on_the_tape():
    v = F.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    s = sparse(v * 2)
    s = s.mul(3) if not IS_FACULA else s.mul_(3)
    s.to_dense().sum().backward()
    assert_equal(v.grad, [6.0] * 4)


def test_sampled_product_is_differentiable():
    at = F.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=F.float64).to_sparse_csr()
    a, b = weights(2, 3).requires_grad_(), weights(3, 2).requires_grad_()
    F.sparse.sampled_addmm(at, a, b).to_dense().sum().backward()
    mask = np.array([[0.0, 1.0], [1.0, 1.0]])
    assert_close(a.grad, mask @ b.detach().numpy().T, 1e-12)
    assert_close(b.grad, a.detach().numpy().T @ mask, 1e-12)


def test_gradcheck_of_sparse_inputs():
    check = F.sparse.as_sparse_gradcheck(F.autograd.gradcheck)
    s = sparse(F.tensor([1.0, 2.0, 3.0, 4.0], dtype=F.float64)).coalesce().requires_grad_()
    assert check(lambda t: t * t, (s,), masked=True)


# ---- embeddings and optimizers


def table():
    rows = F.arange(10.0).reshape(5, 2) / 10
    return F.nn.Embedding.from_pretrained(rows, freeze=False, sparse=True, padding_idx=3)


def test_embedding_has_a_sparse_gradient():
    e = table()
    e(F.tensor([[1, 3], [1, 4]])).sum().backward()
    grad = e.weight.grad
    assert grad.is_sparse and grad.dense_dim() == 1
    assert_equal(grad.to_dense(), [[0, 0], [2.0, 2.0], [0, 0], [0, 0], [1.0, 1.0]])
    e(F.tensor([0])).sum().backward()
    assert e.weight.grad.is_sparse
    assert_equal(e.weight.grad.to_dense()[0], [1.0, 1.0])


def test_frequencies_and_sparse_gradients_do_not_go_together():
    e = F.nn.Embedding(3, 2, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        e(F.tensor([1])).sum().backward()


OPTIMIZERS = {
    "sgd": (lambda p: F.optim.SGD(p, lr=0.1), lambda p: F.optim.SGD(p, lr=0.1)),
    "momentum": (
        lambda p: F.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: F.optim.SGD(p, lr=0.1, momentum=0.9),
    ),
    "adagrad": (lambda p: F.optim.Adagrad(p, lr=0.1), lambda p: F.optim.Adagrad(p, lr=0.1)),
    "adam": (lambda p: F.optim.SparseAdam(p, lr=0.1), lambda p: F.optim.Adam(p, lr=0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_with_dense_gradients(name):
    """On rows that every step sees; SparseAdam leaves the averages of others alone."""
    lookups = F.tensor([0, 1, 2, 4, 4])
    results = []
    for is_sparse, make in zip((True, False), OPTIMIZERS[name], strict=True):
        e = F.nn.Embedding.from_pretrained(
            F.arange(10.0).reshape(5, 2) / 10, freeze=False, sparse=is_sparse
        )
        optimizer = make(list(e.parameters()))
        for _ in range(3):
            optimizer.zero_grad()
            (e(lookups) ** 2).sum().backward()
            assert e.weight.grad.is_sparse == is_sparse
            optimizer.step()
        results.append(e.weight.detach())
    assert_close(results[0], results[1], 1e-4)


def test_sparse_adam_leaves_other_rows_alone():
    e = table()
    before = e.weight.detach().clone()
    optimizer = F.optim.SparseAdam(list(e.parameters()))
    e(F.tensor([1])).sum().backward()
    optimizer.step()
    changed = (e.weight.detach() != before).any(1)
    assert_equal(changed, [False, True, False, False, False])
    assert set(optimizer.state[e.weight]) == {"step", "exp_avg", "exp_avg_sq"}


def test_other_optimizers_refuse_sparse_gradients_and_change_nothing():
    e = table()
    before = e.weight.detach().clone()
    dense = F.nn.Parameter(F.ones(2))
    dense.grad = F.ones(2)
    e(F.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match=r"(?i)sparse"):
        F.optim.Adam([dense, *e.parameters()]).step()
    assert_equal(e.weight.detach(), before)
    if IS_FACULA:
        assert_equal(dense.detach(), [1.0, 1.0])
