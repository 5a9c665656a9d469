"""Sparse tensors on the meta device: sizes, dtypes and layouts without elements."""

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="PyTorch has few operators for them")

DENSE = [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
LAYOUTS = ["to_sparse", "to_sparse_csr", "to_sparse_csc"]

OPERATORS = {
    "sin": lambda t, d: t.sin(),
    "abs": lambda t, d: t.abs(),
    "mul by a number": lambda t, d: t * 2,
    "mul": lambda t, d: t * t,
    "add": lambda t, d: t + t,
    "add to dense": lambda t, d: d + t,
    "mm": lambda t, d: t @ d.t(),
    "mm of sparse": lambda t, d: t @ t.t(),
    "addmm": lambda t, d: F.sparse.addmm(d[:, :2], t, d.t()),
    "to_dense": lambda t, d: t.to_dense(),
    "double": lambda t, d: t.double(),
    "t": lambda t, d: t.t(),
    "sum": lambda t, d: t.sum(),
    "clone": lambda t, d: t.clone(),
    "to_sparse_csr": lambda t, d: t.to_sparse_csr(),
    "to_sparse_csc": lambda t, d: t.to_sparse_csc(),
    "to_sparse": lambda t, d: t.to_sparse(),
    "zeros_like": lambda t, d: F.zeros_like(t),
    "cat": lambda t, d: F.cat([t, t]),
    "select": lambda t, d: t[0],
    "slice": lambda t, d: t[:, 1:],
    "index_select": lambda t, d: t.index_select(1, F.zeros(2, dtype=F.int64, device=d.device)),
    "from dense": lambda t, d: d.to_sparse_bsr((1, 3)),
    "sparse_mask": lambda t, d: d.sparse_mask(t),
    "norm": lambda t, d: t.norm(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_results_look_like_real_ones(name, layout):
    real = F.tensor(DENSE)
    expected = OPERATORS[name](getattr(real, layout)(), real)
    found = OPERATORS[name](getattr(real, layout)().to("meta"), real.to("meta"))
    assert found.is_meta
    assert (found.shape, found.dtype, found.layout) == (
        expected.shape,
        expected.dtype,
        expected.layout,
    )


def test_they_are_made_without_elements():
    for t in (
        F.sparse_coo_tensor((2, 3), device="meta"),
        F.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), device="meta"),
        F.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3), device="meta"),
        F.ones(2, 3, device="meta").to_sparse(),
    ):
        assert t.is_meta and t.shape == (2, 3) and t._nnz() == 0
        assert t.values().is_meta and "meta" in repr(t)
    at = F.zeros(2, 4, dtype=F.int64, device="meta")
    assert F.sparse_coo_tensor(at, F.ones(4, device="meta"), (2, 3)).is_meta
    assert F.sparse_coo_tensor((2, 3), device="meta").indices().is_meta
    with pytest.raises(RuntimeError, match="needs a size"):
        F.sparse_coo_tensor(at, F.ones(4, device="meta"))


def test_gradients():
    x = F.ones(3, 2, device="meta", requires_grad=True)
    t = F.sparse_coo_tensor((2, 3), device="meta", requires_grad=True)
    (t @ x).sum().backward()
    assert x.grad.is_meta and x.grad.shape == (3, 2)
    assert t.grad.is_meta and t.grad.shape == (2, 3)


def test_nothing_can_be_read_and_devices_do_not_mix():
    real, meta = F.tensor(DENSE).to_sparse(), F.tensor(DENSE).to_sparse().to("meta")
    with pytest.raises(NotImplementedError, match="no data"):
        meta.cpu()
    with pytest.raises(NotImplementedError, match="no data"):
        real.copy_(meta)
    assert meta.copy_(real)._nnz() == 0
    dense = F.ones(2, 3, device="meta")
    for mix in (
        lambda: real @ dense.t(),
        lambda: real + dense,
        lambda: real * dense,
        lambda: real + meta,
        lambda: dense.sparse_mask(real),
        lambda: real.to_sparse_csr() @ dense.t(),
        lambda: meta @ F.ones(3, 2),
        lambda: F.sparse.sampled_addmm(F.eye(2).to_sparse_csr(), dense, dense.t()),
        lambda: real.index_select(0, F.zeros(1, dtype=F.int64, device="meta")),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            mix()


def test_sparse_tensors_are_made_where_meta_is_the_default_device():
    with F.device("meta"):
        made = [
            F.sparse_coo_tensor([[0]], [1.0], (2,)),
            F.sparse_coo_tensor((2, 3)),
            F.sparse_csr_tensor([0, 1], [0], [1.0], (1, 2)),
        ]
    assert [(t.device.type, tuple(t.shape)) for t in made] == [
        ("meta", (2,)),
        ("meta", (2, 3)),
        ("meta", (1, 2)),
    ]
