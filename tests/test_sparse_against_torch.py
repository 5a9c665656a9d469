"""Sparse tensors beside PyTorch's: values, layouts, text, gradients and files."""

import io

import numpy as np
import pytest
from package_under_test import IS_FACULA

facula = pytest.importorskip("facula")
torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not IS_FACULA, reason="compares both packages"),
    pytest.mark.filterwarnings("ignore"),
]

INDICES = [[0, 1, 1, 0, 3], [2, 0, 0, 2, 4]]
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0]


def dense_array():
    rng = np.random.default_rng(0)
    found = rng.normal(size=(4, 5)).astype(np.float32)
    found[rng.random((4, 5)) < 0.6] = 0
    return found


def uncoalesced(M):
    return M.sparse_coo_tensor(INDICES, VALUES, (4, 5))


def hybrid(M):
    return M.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))


def in_place(M, x):
    s = uncoalesced(M)
    s.mul_(3)
    s.add_(x.to_sparse())
    s.div_(2)
    found = s.coalesce()
    s.zero_()
    return found, s


def into_dense(M, x):
    y = x.clone()
    y.add_(uncoalesced(M), alpha=2)
    y.sub_(x.to_sparse())
    return y


CASES = {
    "make": lambda M, x: uncoalesced(M),
    "infer size": lambda M, x: M.sparse_coo_tensor(INDICES, VALUES),
    "make dtype": lambda M, x: M.sparse_coo_tensor(INDICES, [1, 2, 3, 4, 5], dtype=M.float64),
    "make leaf": lambda M, x: M.sparse_coo_tensor(INDICES, VALUES, requires_grad=True),
    "make csr": lambda M, x: M.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], [1.0, 2, 3, 4]),
    "make int32": lambda M, x: M.sparse_csr_tensor(
        M.tensor([0, 2, 4], dtype=M.int32), M.tensor([0, 1, 0, 1], dtype=M.int32), M.arange(4.0)
    ),
    "empty": lambda M, x: M.sparse_coo_tensor((2, 3)),
    "coalesce": lambda M, x: uncoalesced(M).coalesce(),
    "to_dense": lambda M, x: uncoalesced(M).to_dense(),
    "to_sparse": lambda M, x: x.to_sparse(),
    "to_sparse 1": lambda M, x: x.to_sparse(1),
    "csr": lambda M, x: x.to_sparse_csr(),
    "csc": lambda M, x: x.to_sparse_csc(),
    "bsr": lambda M, x: x.to_sparse_bsr((2, 5)),
    "bsc": lambda M, x: x.to_sparse_bsc((2, 1)),
    "csr to coo": lambda M, x: x.to_sparse_csr().to_sparse(),
    "0-dim": lambda M, x: M.tensor(3.0).to_sparse(),
    "sqrt": lambda M, x: uncoalesced(M).sqrt(),
    "abs": lambda M, x: abs(x.to_sparse()),
    "neg": lambda M, x: -uncoalesced(M),
    "relu": lambda M, x: M.nn.functional.relu(x.to_sparse()),
    "isnan": lambda M, x: M.isnan(uncoalesced(M)),
    "times number": lambda M, x: uncoalesced(M) * 2,
    "by number": lambda M, x: uncoalesced(M) / 2,
    "power": lambda M, x: uncoalesced(M) ** 2,
    "plus itself": lambda M, x: uncoalesced(M) + uncoalesced(M),
    "plus": lambda M, x: x.to_sparse() + uncoalesced(M).coalesce(),
    "dense plus": lambda M, x: x + uncoalesced(M),
    "dense minus": lambda M, x: x - uncoalesced(M),
    "times dense": lambda M, x: x.to_sparse() * M.arange(20.0).reshape(4, 5),
    "times sparse": lambda M, x: x.to_sparse() * uncoalesced(M).coalesce(),
    "complex": lambda M, x: (x.to_sparse() * (1 + 2j)).conj(),
    "bfloat16": lambda M, x: x.to_sparse().to(M.bfloat16) * 2,
    "csr plus": lambda M, x: x.to_sparse_csr() + x.to_sparse_csr(),
    "csr sin": lambda M, x: x.to_sparse_csr().sin(),
    "csr turned": lambda M, x: x.to_sparse_csr().t(),
    "mm": lambda M, x: M.mm(uncoalesced(M), x.t()),
    "mv": lambda M, x: uncoalesced(M) @ M.ones(5),
    "csr mv": lambda M, x: x.to_sparse_csr() @ M.ones(5),
    "from the right": lambda M, x: M.ones(2, 4) @ x.to_sparse(),
    "addmm": lambda M, x: M.addmm(M.ones(4, 4), uncoalesced(M), x.t(), beta=2, alpha=3),
    "sparse.mm": lambda M, x: M.sparse.mm(x.to_sparse(), x.t().to_sparse()),
    "csr csr": lambda M, x: (x.to_sparse_csr() @ x.t().to_sparse_csr()).to_dense(),
    "bmm": lambda M, x: M.bmm(M.stack([uncoalesced(M), x.to_sparse()]), M.ones(2, 5, 2)),
    "linear": lambda M, x: M.nn.functional.linear(M.ones(2, 5), x.to_sparse_csr(), M.ones(4)),
    "smm": lambda M, x: M.smm(x.to_sparse(), M.ones(5, 2)),
    "hspmm": lambda M, x: M.hspmm(x.to_sparse(), M.ones(5, 2)).to_dense(),
    "sampled": lambda M, x: M.sparse.sampled_addmm(x.to_sparse_csr(), x @ x.t(), x),
    "sum": lambda M, x: M.sparse.sum(uncoalesced(M)),
    "sum 0": lambda M, x: M.sparse.sum(uncoalesced(M), 0),
    "sum 1": lambda M, x: M.sparse.sum(uncoalesced(M), -1),
    "sum of both": lambda M, x: M.sparse.sum(uncoalesced(M), [0, 1]),
    "Tensor.sum": lambda M, x: x.to_sparse().sum(1),
    "hybrid sum": lambda M, x: M.sparse.sum(hybrid(M), 1),
    "norm": lambda M, x: x.to_sparse().norm(),
    "softmax": lambda M, x: M.sparse.softmax(uncoalesced(M), 0),
    "log_softmax": lambda M, x: M.sparse.log_softmax(x.to_sparse(), 1),
    "hybrid softmax": lambda M, x: M.sparse.softmax(hybrid(M), 1),
    "spdiags": lambda M, x: M.sparse.spdiags(
        M.arange(9.0).reshape(3, 3), M.tensor([0, -1, 2]), (3, 3)
    ),
    "t": lambda M, x: x.to_sparse().t(),
    "permute": lambda M, x: x.to_sparse().permute(1, 0),
    "unsqueeze": lambda M, x: x.to_sparse().unsqueeze(0),
    "unsqueeze behind": lambda M, x: x.to_sparse().unsqueeze(2),
    "select": lambda M, x: uncoalesced(M)[0],
    "select column": lambda M, x: uncoalesced(M).select(1, 2),
    "index_select": lambda M, x: x.to_sparse().index_select(0, M.tensor([1, 0, 1])),
    "index_select 1": lambda M, x: x.to_sparse().index_select(1, M.tensor([2, 2, 0])),
    "narrow_copy": lambda M, x: M.narrow_copy(x.to_sparse(), 0, 1, 2),
    "cat": lambda M, x: M.cat([x.to_sparse(), x.to_sparse()]),
    "cat 1": lambda M, x: M.cat([uncoalesced(M), x.to_sparse()], 1),
    "stack": lambda M, x: M.stack([x.to_sparse(), x.to_sparse()]),
    "zeros_like": lambda M, x: M.zeros_like(uncoalesced(M)),
    "clone": lambda M, x: uncoalesced(M).clone(),
    "double": lambda M, x: uncoalesced(M).double(),
    "int": lambda M, x: uncoalesced(M).int(),
    "mask": lambda M, x: M.ones(4, 5).sparse_mask(x.to_sparse()),
    "mask sparse": lambda M, x: x.to_sparse().sparse_mask(uncoalesced(M).coalesce()),
    "resize": lambda M, x: uncoalesced(M).sparse_resize_((6, 7), 2, 0),
    "clear": lambda M, x: uncoalesced(M).sparse_resize_and_clear_((6, 7, 2), 2, 1),
    "in place": in_place,
    "into dense": into_dense,
    "flags": lambda M, x: [
        (s.is_sparse, s.is_sparse_csr, s.layout, s.sparse_dim(), s.dense_dim(), s._nnz())
        for s in (uncoalesced(M), x.to_sparse_csr(), hybrid(M))
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_results_print_the_same(name):
    array = dense_array()
    ours = repr(CASES[name](facula, facula.tensor(array))).replace("facula", "torch")
    assert ours == repr(CASES[name](torch, torch.tensor(array)))


def leaf_of(x):
    return x.to_sparse().requires_grad_()


def product_gradients(M, x):
    s, w = uncoalesced(M).coalesce().requires_grad_(), M.arange(10.0).reshape(5, 2).requires_grad_()
    (M.sparse.mm(s, w) ** 2).sum().backward()
    return s.grad, w.grad


def two_products(M, x):
    a, b = leaf_of(x), uncoalesced(M).coalesce().requires_grad_()
    (M.sparse.mm(a, b.t()).to_dense() ** 2).sum().backward()
    return a.grad, b.grad


def one_leaf(function):
    def run(M, x):
        s = leaf_of(x)
        function(M, s, x).sum().backward()
        return (s.grad,)

    return run


def values_leaf(M, x):
    v = M.tensor(VALUES, requires_grad=True)
    (M.sparse_coo_tensor(INDICES, v, (4, 5)).to_dense() * x).sum().backward()
    return (v.grad,)


def uncoalesced_leaf(M, x):
    s = uncoalesced(M).requires_grad_()
    (s.coalesce().values() ** 2).sum().backward()
    return (s.grad,)


def through_to_sparse(M, x):
    y = x.clone().requires_grad_()
    ((y.to_sparse() * y.to_sparse()).to_dense() ** 2).sum().backward()
    return (y.grad,)


def bags(M, x):
    bag = M.nn.EmbeddingBag.from_pretrained(x.clone(), freeze=False, sparse=True, mode="mean")
    bag(M.tensor([1, 2, 1, 0]), M.tensor([0, 3])).pow(2).sum().backward()
    return (bag.weight.grad,)


GRADIENTS = {
    "sparse.mm": product_gradients,
    "two sparse": two_products,
    "values": values_leaf,
    "coalesce": uncoalesced_leaf,
    "to_sparse": through_to_sparse,
    "to_dense": one_leaf(lambda M, s, x: s.to_dense() ** 2),
    "softmax": one_leaf(lambda M, s, x: M.sparse.softmax(s, 1).to_dense() * x),
    "log_softmax": one_leaf(lambda M, s, x: M.sparse.log_softmax(s, 0).to_dense() * x),
    "sum": one_leaf(lambda M, s, x: M.sparse.sum(s, 0).to_dense() ** 2),
    "scale": one_leaf(lambda M, s, x: (s * 3).to_dense() * x),
    "t": one_leaf(lambda M, s, x: s.t().to_dense() * x.t()),
    "embedding bags": bags,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_the_same(name):
    array = dense_array()
    ours = GRADIENTS[name](facula, facula.tensor(array))
    theirs = GRADIENTS[name](torch, torch.tensor(array))
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.layout).partition(".")[2] == str(b.layout).partition(".")[2]
        np.testing.assert_allclose(a.to_dense().numpy(), b.to_dense().numpy(), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.25, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
        ("SparseAdam", {"lr": 0.1}),
        ("SparseAdam", {"lr": 0.1, "betas": (0.5, 0.9), "maximize": True}),
    ],
)
def test_steps_are_the_same(name, options):
    def trained(M):
        table = M.nn.Embedding.from_pretrained(M.tensor(dense_array()), freeze=False, sparse=True)
        optimizer = getattr(M.optim, name)(list(table.parameters()), **options)
        for i in range(4):
            optimizer.zero_grad()
            table(M.tensor([[1, 2], [1, i]])).pow(2).sum().backward()
            optimizer.step()
        return table.weight.detach().numpy()

    np.testing.assert_allclose(trained(facula), trained(torch), 1e-5, 1e-6)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_files_go_both_ways(layout):
    array = dense_array()

    def made(M):
        block = {"blocksize": (2, 5)} if layout.startswith("b") else {}
        return M.tensor(array).to_sparse(layout=getattr(M, f"sparse_{layout}"), **block)

    for source, target in ((facula, torch), (torch, facula)):
        file = io.BytesIO()
        source.save({"x": made(source)}, file)
        file.seek(0)
        found = target.load(file)["x"]
        assert found.layout == made(target).layout
        np.testing.assert_array_equal(found.to_dense().numpy(), array)
