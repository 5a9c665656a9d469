"""Sparse tensors: parts, layouts, arithmetic, products, reductions, text, memory and errors."""

import copy
import io
import pickle

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

ONLY_FACULA = pytest.mark.skipif(not IS_FACULA, reason="PyTorch does not have it")
DENSE = [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]


def matrix(**options):
    return F.tensor(DENSE, **options)


def repeated():
    """A tensor with two elements at one position, out of order."""
    return F.sparse_coo_tensor([[1, 0, 1], [2, 1, 2]], [3.0, 4.0, 5.0], (2, 3))


REPEATED = np.array([[0.0, 4.0, 0.0], [0.0, 0.0, 8.0]])

LAYOUTS = {
    "coo": lambda t: t.to_sparse(),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": lambda t: t.to_sparse_bsr((1, 3)),
    "bsc": lambda t: t.to_sparse_bsc((2, 1)),
}


def random_matrix(rows, columns, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns))
    values[rng.random((rows, columns)) > density] = 0
    return values


# ---- parts and layouts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_its_elements_back(layout):
    s = LAYOUTS[layout](matrix())
    assert s.shape == (2, 3) and s.dtype == F.float32 and s.dim() == 2 and s.numel() == 6
    assert str(s.layout).endswith(f"sparse_{layout}")
    assert_equal(s.to_dense(), DENSE)
    assert_equal(s.to_sparse().to_dense(), DENSE)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_layouts_convert_into_each_other(layout):
    for other in LAYOUTS:
        if other in ("bsr", "bsc") and not IS_FACULA:
            continue
        s = LAYOUTS[layout](LAYOUTS[other](matrix()).to_sparse())
        assert str(s.layout).endswith(f"sparse_{layout}")
        assert_equal(s.to_dense(), DENSE)


def test_parts_of_coo():
    s = matrix().to_sparse()
    assert_equal(s.indices(), [[0, 1, 1], [1, 0, 2]])
    assert_equal(s.values(), [1.0, 2.0, 3.0])
    assert s._nnz() == 3 and s.sparse_dim() == 2 and s.dense_dim() == 0
    assert s.is_sparse and not s.is_sparse_csr and s.is_coalesced()
    assert not matrix().is_sparse and matrix().layout == F.strided


def test_parts_of_compressed_layouts():
    csr = matrix().to_sparse_csr()
    assert_equal(csr.crow_indices(), [0, 1, 3])
    assert_equal(csr.col_indices(), [1, 0, 2])
    assert csr.is_sparse_csr and not csr.is_sparse
    csc = matrix().to_sparse_csc()
    assert_equal(csc.ccol_indices(), [0, 1, 2, 3])
    assert_equal(csc.row_indices(), [1, 0, 1])
    assert_equal(csc.values(), [2.0, 1.0, 3.0])


def test_dense_dimensions():
    s = F.tensor(DENSE).to_sparse(1)
    assert s.sparse_dim() == 1 and s.dense_dim() == 1
    assert_equal(s.values(), DENSE)
    assert_equal((s * F.tensor([1.0, 2.0, 3.0])).to_dense(), np.array(DENSE) * [1, 2, 3])


def test_rows_of_zeros_are_not_elements():
    s = F.tensor([[0.0, 0.0], [0.0, 5.0]]).to_sparse(1)
    assert s._nnz() == 1
    assert_equal(s.indices(), [[1]])


def test_equal_positions_are_added_up():
    s = repeated()
    assert not s.is_coalesced() and s._nnz() == 3
    assert_equal(s.to_dense(), REPEATED)
    c = s.coalesce()
    assert c.is_coalesced() and c._nnz() == 2
    assert_equal(c.indices(), [[0, 1], [1, 2]])
    assert_equal(c.values(), [4.0, 8.0])
    with pytest.raises(RuntimeError, match="coalesce"):
        s.indices()


@pytest.mark.parametrize("count", [10, 5000])
def test_coalesce_of_many(count):
    rng = np.random.default_rng(1)
    at, values = rng.integers(0, 60, (3, count)), rng.normal(size=count)
    expected = np.zeros((60, 60, 60))
    np.add.at(expected, tuple(at), values)
    s = F.sparse_coo_tensor(F.tensor(at), F.tensor(values), (60, 60, 60)).coalesce()
    assert_close(s.to_dense(), expected, 1e-12)
    keys = np.ravel_multi_index(s.indices().numpy(), (60, 60, 60))
    assert (np.diff(keys) > 0).all()


def test_without_elements():
    s = F.sparse_coo_tensor((2, 3))
    assert s._nnz() == 0 and s.shape == (2, 3)
    assert_equal(s.to_dense(), np.zeros((2, 3)))
    assert_equal((s @ F.ones(3, 2)), np.zeros((2, 2)))
    assert_equal((s + s).to_dense(), np.zeros((2, 3)))


def test_sizes_are_inferred():
    assert F.sparse_coo_tensor([[0, 4], [1, 2]], [1.0, 2.0]).shape == (5, 3)


@pytest.mark.parametrize("dtype", [F.float16, F.float64, F.bool, F.uint8])
def test_positions_of_any_dtype_are_taken_as_int64(dtype):
    s = F.sparse_coo_tensor(F.tensor([[0, 1]]).to(dtype), [1.0, 2.0], (3,))
    assert s._indices().dtype == F.int64
    assert s.to_dense().tolist() == [1, 2, 0]
    empty = F.sparse_coo_tensor(F.empty(1, 0), F.empty(0, 1), (5, 1))
    assert empty._indices().dtype == F.int64
    assert empty.to_dense().tolist() == [[0]] * 5
    assert F.sparse_csr_tensor([0, 1, 2], [3, 0], [1.0, 2.0]).shape == (2, 4)


def test_index_dtype_of_csr_is_kept():
    at = F.tensor([0, 1], dtype=F.int32)
    s = F.sparse_csr_tensor(at, F.tensor([0], dtype=F.int32), F.tensor([1.0]), (1, 1))
    assert s.crow_indices().dtype == F.int32
    assert_equal(s @ F.ones(1, 1), [[1.0]])


def test_sparse_mask():
    s = F.arange(6.0).reshape(2, 3).sparse_mask(matrix().to_sparse())
    assert_equal(s.values(), [1.0, 3.0, 5.0])
    wide = matrix().to_sparse().sparse_mask(F.ones(2, 3).to_sparse())
    assert wide._nnz() == 6
    assert_equal(wide.to_dense(), DENSE)


def test_sparse_resize():
    s = matrix().to_sparse().sparse_resize_((3, 4), 2, 0)
    assert s.shape == (3, 4) and s._nnz() == 3
    assert_equal(s.to_dense()[:2, :3], DENSE)
    assert s.sparse_resize_and_clear_((5,), 1, 0)._nnz() == 0


# ---- arithmetic

UNARY = ["sin", "tan", "asin", "atan", "sinh", "tanh", "sqrt", "abs", "sign", "neg", "ceil"]
UNARY += ["floor", "trunc", "round", "expm1", "log1p", "erf", "relu", "square"]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_functions_that_keep_zero(name, layout):
    if (name, layout) == ("square", "csr") and not IS_FACULA:
        pytest.skip("PyTorch does not have it")
    x = F.tensor([[0.0, 0.5, 0.0], [0.25, 0.0, 0.125]])
    s = getattr(LAYOUTS[layout](x), name)()
    assert_equal(s.to_dense(), getattr(x, name)())
    assert s._nnz() == 3


def test_functions_see_sums_of_equal_positions():
    assert_equal(repeated().sqrt().to_dense(), np.sqrt(REPEATED).astype(np.float32))


@pytest.mark.parametrize("layout", ["coo", pytest.param("csr", marks=ONLY_FACULA)])
def test_numbers(layout):
    s = LAYOUTS[layout](matrix())
    for result, expected in [
        (s * 2, np.array(DENSE) * 2),
        (2 * s, np.array(DENSE) * 2),
        (s / 2, np.array(DENSE) / 2),
        (-s, -np.array(DENSE)),
        (s * F.tensor(3.0), np.array(DENSE) * 3),
    ]:
        assert result.layout == s.layout
        assert_equal(result.to_dense(), expected)


def test_power_of_a_positive_number():
    assert_equal((repeated() ** 2).to_dense(), REPEATED**2)


def test_sparse_with_sparse():
    a, b = matrix().to_sparse(), repeated()
    assert_equal((a + b).to_dense(), np.array(DENSE) + REPEATED)
    assert_equal((a - b).to_dense(), np.array(DENSE) - REPEATED)
    assert_equal((a * b).to_dense(), np.array(DENSE) * REPEATED)
    assert_equal(F.add(a, b, alpha=3).to_dense(), np.array(DENSE) + 3 * REPEATED)
    both = a + b.coalesce()
    assert both.is_coalesced()
    assert_equal(both.to_dense(), np.array(DENSE) + REPEATED)


def test_csr_with_csr():
    a, b = matrix().to_sparse_csr(), repeated().coalesce().to_sparse_csr()
    total = a + b
    assert total.is_sparse_csr
    assert_equal(total.to_dense(), np.array(DENSE) + REPEATED)


def test_dense_with_sparse():
    x = F.arange(6.0).reshape(2, 3)
    assert_equal(x + repeated(), x.numpy() + REPEATED)
    assert_equal(x - repeated(), x.numpy() - REPEATED)
    product = repeated() * x
    assert product.is_sparse
    assert_equal(product.to_dense(), x.numpy() * REPEATED)


@ONLY_FACULA
def test_sparse_first_and_broadcasting():
    x = F.arange(6.0).reshape(2, 3)
    assert_equal(repeated() + x, x.numpy() + REPEATED)
    assert_equal((repeated() * x[:1]).to_dense(), x.numpy()[:1] * REPEATED)
    assert_equal((repeated() * x[:, :1]).to_dense(), x.numpy()[:, :1] * REPEATED)


def test_in_place():
    s = repeated()
    s.mul_(2).add_(matrix().to_sparse())
    assert_equal(s.to_dense(), REPEATED * 2 + DENSE)
    s.zero_()
    assert s._nnz() == 0
    x = F.zeros(2, 3)
    x.add_(repeated(), alpha=0.5)
    assert_equal(x, REPEATED / 2)
    s.copy_(repeated())
    assert_equal(s.to_dense(), REPEATED)


@ONLY_FACULA
def test_in_place_is_seen_by_detached_tensors():
    s = matrix().to_sparse()
    s.detach().mul_(2)
    assert_equal(s.to_dense(), np.array(DENSE) * 2)


def test_dtypes():
    s = matrix().to_sparse()
    assert s.to(F.float64).dtype == F.float64
    assert s.int().values().tolist() == [1, 2, 3]
    assert (s.to(F.bfloat16) * 2).dtype == F.bfloat16
    z = s * (1 + 2j)
    assert_equal(z.conj().to_dense(), np.array(DENSE, dtype=np.complex64) * (1 - 2j))
    truth = F.tensor([[True, False]]).to_sparse()
    assert_equal(truth.to_dense(), [[True, False]])


# ---- products


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("width", [1, 3, 20, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_sparse_times_dense(layout, width, dtype):
    if dtype == "int64" and not IS_FACULA:
        pytest.skip("PyTorch has no products of integers in CSR")
    a = random_matrix(17, 11)
    b = np.random.default_rng(3).normal(size=(11, width))
    a, b = ((a * 4).round(), (b * 4).round()) if dtype == "int64" else (a, b)
    a, b = a.astype(dtype), b.astype(dtype)
    s = LAYOUTS[layout](F.tensor(a))
    near = 1e-5 * np.abs(a @ b).max()
    np.testing.assert_allclose((s @ F.tensor(b)).numpy(), a @ b, 1e-5, near)
    other = F.tensor(b.T.copy()) @ LAYOUTS[layout](F.tensor(a.T.copy()))
    np.testing.assert_allclose(other.numpy(), (a @ b).T, 1e-5, near)


def test_products_with_vectors_and_sums():
    a = random_matrix(4, 5).astype(np.float32)
    s, v = F.tensor(a).to_sparse(), np.arange(5, dtype=np.float32)
    assert_close(s @ F.tensor(v), a @ v, 1e-6)
    assert_close(F.mv(s, F.tensor(v)), a @ v, 1e-6)
    m = np.ones((4, 2), dtype=np.float32)
    b = np.arange(10, dtype=np.float32).reshape(5, 2)
    found = F.addmm(F.tensor(m), s, F.tensor(b), beta=2, alpha=3)
    assert_close(found, 2 * m + 3 * a @ b, 1e-5)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_times_sparse(layout):
    a, b = random_matrix(13, 9, 1), random_matrix(9, 7, 2)
    product = LAYOUTS[layout](F.tensor(a)) @ LAYOUTS[layout](F.tensor(b))
    assert str(product.layout).endswith(f"sparse_{layout}")
    assert_close(product.to_dense(), a @ b, 1e-12)


def test_batches():
    a = np.stack([random_matrix(3, 4, 1), random_matrix(3, 4, 2)])
    b = np.random.default_rng(5).normal(size=(2, 4, 2))
    assert_close(F.bmm(F.tensor(a).to_sparse(), F.tensor(b)), a @ b, 1e-12)


def test_linear_layer_with_sparse_weight():
    w = random_matrix(3, 5).astype(np.float32)
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    found = F.nn.functional.linear(F.tensor(x), F.tensor(w).to_sparse_csr(), F.ones(3))
    assert_close(found, x @ w.T + 1, 1e-5)


def test_sampled_product():
    a, b = np.random.default_rng(0).normal(size=(2, 4, 4))
    pattern = F.tensor([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0] * 4, [1.0] * 4])
    pattern = pattern.double().to_sparse_csr()
    found = F.sparse.sampled_addmm(pattern, F.tensor(a), F.tensor(b), beta=0.5, alpha=2)
    mask = pattern.to_dense().numpy()
    assert_close(found.to_dense(), (a @ b) * mask * 2 + 0.5 * mask, 1e-12)


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_rows_put_together_otherwise(reduce):
    a = random_matrix(5, 4, density=0.6).astype(np.float32)
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = F.sparse.mm(F.tensor(a).to_sparse_csr(), F.tensor(x), reduce)
    join = {"mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    for row in range(5):
        at = np.flatnonzero(a[row])
        expected = join(a[row, at, None] * x[at], axis=0) if len(at) else np.zeros(2)
        assert_close(found[row], expected, 1e-5)


# ---- moves


def test_transposes():
    for turn in (lambda t: t.t(), lambda t: t.transpose(0, 1), lambda t: t.permute(1, 0)):
        assert_equal(turn(repeated()).to_dense(), REPEATED.T)
    csr = matrix().to_sparse_csr().t()
    assert str(csr.layout).endswith("sparse_csc")
    assert_equal(csr.to_dense(), np.array(DENSE).T)


def test_select_and_index_select():
    s = repeated()
    assert_equal(s[1].to_dense(), REPEATED[1])
    assert_equal(s.select(1, 2).to_dense(), REPEATED[:, 2])
    picks = [1, 0, 1]
    assert_equal(s.index_select(0, F.tensor(picks)).to_dense(), REPEATED[picks])
    assert_equal(s.index_select(1, F.tensor([2, 2])).to_dense(), REPEATED[:, [2, 2]])


@ONLY_FACULA
def test_slices():
    s = F.tensor(random_matrix(6, 5)).to_sparse()
    dense = s.to_dense().numpy()
    assert_equal(s[1:4].to_dense(), dense[1:4])
    assert_equal(s[::2, 1:].to_dense(), dense[::2, 1:])
    assert s.to_sparse_csr()[1:3].is_sparse_csr


def test_joining():
    a, b = matrix().to_sparse(), repeated()
    for dim in (0, 1):
        expected = np.concatenate([DENSE, REPEATED], dim)
        assert_equal(F.cat([a, b], dim).to_dense(), expected)
    assert_equal(F.stack([a, b]).to_dense(), np.stack([DENSE, REPEATED]))
    assert_equal(F.cat([a.unsqueeze(0), b.unsqueeze(0)]).to_dense(), np.stack([DENSE, REPEATED]))
    hybrid = matrix().to_sparse(1)
    assert_equal(F.cat([hybrid, hybrid], 1).to_dense(), np.concatenate([DENSE, DENSE], 1))


# ---- reductions


def test_sums():
    s = repeated()
    assert float(F.sparse.sum(s)) == 12.0
    assert_equal(F.sparse.sum(s, 0).to_dense(), REPEATED.sum(0))
    assert_equal(F.sparse.sum(s, [0, 1]), REPEATED.sum())
    assert_equal(s.sum(1).to_dense(), REPEATED.sum(1))
    hybrid = matrix().to_sparse(1)
    assert_equal(F.sparse.sum(hybrid, 0), np.sum(DENSE, 0))
    assert_close(s.norm(), np.linalg.norm(REPEATED), 1e-6)


def test_softmax_is_over_elements():
    dense = random_matrix(4, 6)
    s = F.tensor(dense).to_sparse()
    masked = np.where(dense != 0, dense, -np.inf)
    for dim in (0, 1):
        with np.errstate(invalid="ignore", divide="ignore"):
            powers = np.exp(masked - masked.max(dim, keepdims=True))
            expected = np.nan_to_num(powers / powers.sum(dim, keepdims=True))
            logs = np.log(expected)
        assert_close(F.sparse.softmax(s, dim).to_dense(), expected, 1e-12)
        found = F.sparse.log_softmax(s, dim)
        at = tuple(found.indices().numpy())
        assert_close(found.values(), logs[at], 1e-10)


def test_diagonals():
    d = F.arange(9.0).reshape(3, 3)
    found = F.sparse.spdiags(d, F.tensor([0, -1, 2]), (3, 3))
    assert_equal(found.to_dense(), [[0.0, 0.0, 8.0], [3.0, 1.0, 0.0], [0.0, 4.0, 2.0]])
    assert F.sparse.spdiags(d, F.tensor([0, -1, 2]), (3, 3), layout=F.sparse_csr).is_sparse_csr
    with pytest.raises(RuntimeError, match="duplicate"):
        F.sparse.spdiags(d, F.tensor([0, 0, 1]), (3, 3))


# ---- text, copies, files


def test_text():
    name = F.__name__
    assert repr(matrix().to_sparse()) == (
        "tensor(indices=tensor([[0, 1, 1],\n                       [1, 0, 2]]),\n"
        "       values=tensor([1., 2., 3.]),\n"
        f"       size=(2, 3), nnz=3, layout={name}.sparse_coo)"
    )
    assert repr(matrix(dtype=F.float64).to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 1, 3]),\n       col_indices=tensor([1, 0, 2]),\n"
        f"       values=tensor([1., 2., 3.]), size=(2, 3), nnz=3, dtype={name}.float64,\n"
        f"       layout={name}.sparse_csr)"
    )
    assert "tensor([], size=(2, 0))" in repr(F.sparse_coo_tensor((2, 3)))
    assert "requires_grad=True" in repr(matrix().to_sparse().requires_grad_())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_and_pickles(layout):
    s = LAYOUTS[layout](matrix())
    copies = [s.clone(), pickle.loads(pickle.dumps(s))]
    if IS_FACULA or layout == "coo":
        copies.append(copy.deepcopy(s))
    for other in copies:
        assert other.layout == s.layout and other is not s
        assert_equal(other.to_dense(), DENSE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_saving(layout):
    file = io.BytesIO()
    F.save({"x": LAYOUTS[layout](matrix())}, file)
    file.seek(0)
    s = F.load(file)["x"]
    assert str(s.layout).endswith(f"sparse_{layout}")
    assert_equal(s.to_dense(), DENSE)
    if layout == "coo":
        assert s.is_coalesced()


# ---- errors


def test_indices_outside_of_the_size_are_refused():
    with pytest.raises(RuntimeError, match=r"size is inconsistent with indices.*found index 5"):
        F.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True)
    with pytest.raises(RuntimeError, match="negative"):
        F.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), check_invariants=True)
    with pytest.raises(RuntimeError, match="nnz"):
        F.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,))


@ONLY_FACULA
@pytest.mark.parametrize(
    ("starts", "plain"),
    [([0, 1], [0, 1]), ([0, 3, 2], [0, 1]), ([1, 1, 2], [0, 1]), ([0, 1, 2], [0, 7])],
)
def test_broken_rows_are_refused(starts, plain):
    with pytest.raises(RuntimeError, match="indices"):
        F.sparse_csr_tensor(starts, plain, [1.0, 2.0], (2, 3))


@ONLY_FACULA
def test_unsorted_rows_are_refused_on_request():
    s = F.sparse_csr_tensor([0, 2], [2, 0], [1.0, 2.0], (1, 3))
    assert_equal(s.to_dense(), [[2.0, 0.0, 1.0]])
    assert_equal(s.to_sparse().coalesce().values(), [2.0, 1.0])
    with F.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="sorted"):
        F.sparse_csr_tensor([0, 2], [2, 0], [1.0, 2.0], (1, 3))


@ONLY_FACULA
def test_operators_without_a_rule_say_what_to_do():
    s = matrix().to_sparse()
    with pytest.raises(NotImplementedError, match=r"cos\(\).*facula.sparse_coo.*to_dense"):
        s.cos()
    with pytest.raises(NotImplementedError, match="to_dense"):
        s + 1
    with pytest.raises(NotImplementedError, match="to_dense"):
        s**-1
    with pytest.raises(RuntimeError, match="same size"):
        s + s.t()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        s @ s
    with pytest.raises(NotImplementedError, match="vmap"):
        F.vmap(lambda x: x)(s)


@ONLY_FACULA
@pytest.mark.parametrize(
    "read",
    [
        lambda s: s.numpy(),
        lambda s: s.tolist(),
        lambda s: s.untyped_storage(),
        lambda s: s.stride(),
        lambda s: s.resize_(1),
        lambda s: s.set_(s),
        lambda s: F.ones(2, 3).set_(s),
        lambda s: np.asarray(s),
        lambda s: F.tensor([s, s]),
        lambda s: s.__dlpack__(),
        lambda s: s.contiguous(),
        lambda s: s.view(-1),
    ],
)
def test_memory_is_not_there(read):
    with pytest.raises((RuntimeError, TypeError, ValueError, BufferError)):
        read(matrix().to_sparse())


def test_one_element_can_be_read():
    assert F.sparse_coo_tensor([[0]], [4.0], (1,)).to_dense().item() == 4.0


# ---- the rest of the library


def test_names_of_types():
    s = matrix().to_sparse()
    assert s.type() == f"{F.__name__}.sparse.FloatTensor"
    assert isinstance(s, F.sparse.FloatTensor) and not isinstance(s, F.FloatTensor)
    old = F.sparse.FloatTensor(F.tensor([[0, 1]]), F.tensor([1.0, 2.0]), F.Size([3]))
    assert_equal(old.to_dense(), [1.0, 2.0, 0.0])


def joined(batch):
    return F.stack(batch)


def test_workers_send_sparse_batches():
    data = [matrix().to_sparse(), repeated()]
    loader = F.utils.data.DataLoader(data, batch_size=2, num_workers=1, collate_fn=joined)
    (found,) = list(loader)
    assert_equal(found.to_dense(), np.stack([DENSE, REPEATED]))


def test_modules_hold_sparse_tensors():
    class Graph(F.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = F.nn.Parameter(matrix().to_sparse())
            self.register_buffer("edges", matrix().to_sparse_csr())

        def forward(self, x):
            return F.sparse.mm(self.weight, x) + self.edges @ x

    model = Graph()
    model(F.ones(3, 1)).sum().backward()
    assert model.weight.grad.is_sparse
    other = Graph()
    other.load_state_dict(model.state_dict())
    assert_equal(other(F.ones(3, 1)).detach(), [[2.0], [10.0]])
    assert other.double().weight.dtype == F.float64


def test_comparing():
    F.testing.assert_close(matrix().to_sparse(), matrix().to_sparse())
    with pytest.raises(AssertionError):
        F.testing.assert_close(matrix().to_sparse(), (matrix() * 2).to_sparse())


@ONLY_FACULA
def test_transforms_of_dense_arguments():
    s, x = matrix().to_sparse_csr(), F.arange(12.0).reshape(2, 3, 2)
    assert_equal(F.vmap(lambda v: s @ v)(x), matrix() @ x)
    slope = F.func.grad(lambda v: (s @ v).pow(2).sum())(x[0])
    assert_equal(slope, 2 * matrix().t() @ (matrix() @ x[0]))
    value, tangent = F.func.jvp(lambda v: s @ v, (x[0],), (x[1],))
    assert_equal(value, matrix() @ x[0])
    assert_equal(tangent, matrix() @ x[1])


@ONLY_FACULA
@pytest.mark.parametrize("offset", [1, -5, 10**9])
def test_positions_that_a_program_wrote_out_of_bounds_are_refused(offset):
    coo = matrix().to_sparse()
    coo.indices().add_(offset)
    csr = matrix().to_sparse_csr()
    csr.col_indices().add_(offset)
    starts = matrix().to_sparse_csr()
    starts.crow_indices().add_(offset)
    for broken in (coo, csr, starts):
        for use in (lambda t: t @ F.ones(3, 2), lambda t: t.to_dense(), lambda t: t + t):
            with pytest.raises(RuntimeError):
                use(broken)
    for broken in (csr, starts):
        with pytest.raises(RuntimeError):
            F.sparse.sampled_addmm(broken, F.ones(2, 2), F.ones(2, 3))


def test_positions_that_a_program_wrote_count():
    t = matrix().to_sparse()
    t.indices()[:] = F.tensor([[1, 0, 0], [2, 1, 0]])
    assert_equal(t.to_dense(), [[3.0, 2.0, 0.0], [0.0, 0.0, 1.0]])


def test_tensors_without_elements_are_made_by_their_layout():
    x = F.zeros(2, 3, layout=F.sparse_coo, dtype=F.float64)
    assert x.layout is F.sparse_coo and x.dtype is F.float64
    assert x._nnz() == 0 and x.sparse_dim() == 2 and x.is_coalesced()
    assert_equal((x + matrix(dtype=F.float64).to_sparse()).to_dense(), DENSE)
    assert F.empty((0,), layout=F.sparse_coo).shape == (0,)
    assert F.zeros(1, layout=F.sparse_coo, requires_grad=True).requires_grad
    y = F.zeros((2, 3), layout=F.sparse_csr)
    assert y.crow_indices().tolist() == [0, 0, 0] and y.values().shape == (0,)
    batch = F.zeros(2, 3, 4, layout=F.sparse_csc)
    assert batch.ccol_indices().shape == (2, 5) and batch.values().shape == (2, 0)
    assert F.ones(1).new_zeros((2, 3), layout=F.sparse_coo)._nnz() == 0
    with pytest.raises(RuntimeError, match=r"\(non-block\) tensor layout"):
        F.zeros(2, 3, layout=F.sparse_bsr)
    with pytest.raises(RuntimeError, match="Only batched sparse compressed"):
        F.zeros(3, layout=F.sparse_csr)
    assert F.zeros(2, layout=F.strided).tolist() == [0.0, 0.0]


def test_tensors_without_elements_go_with_all_others():
    hybrid = matrix().to_sparse(1)
    for total in (F.zeros(2, 3, layout=F.sparse_coo), F.sparse_coo_tensor((2, 3))):
        assert_equal((total + hybrid).to_dense(), DENSE)
        assert_equal((hybrid - total).to_dense(), DENSE)
        assert (total * hybrid)._nnz() == 0
        total += hybrid
        assert_equal(total.to_dense(), DENSE)


def test_a_single_element_is_in_order():
    for count in (0, 1):
        t = F.sparse_coo_tensor(F.ones(2, count, dtype=F.int64), F.ones(count), (2, 2))
        assert t.is_coalesced() and t.indices().shape == (2, count)
        assert (t * 2).is_coalesced() and t.t().is_coalesced()
    assert not repeated().is_coalesced()


@ONLY_FACULA
def test_other_functions_refuse_sparse_layouts():
    with pytest.raises(ValueError, match=r"ones\(\): is implemented for strided tensors only"):
        F.ones(2, layout=F.sparse_coo)


def test_nothing_like_a_tensor_in_another_layout():
    blocks = F.eye(4).to_sparse_bsr((2, 2))
    other = F.zeros_like(blocks, layout=F.sparse_bsc)
    assert other.ccol_indices().tolist() == [0, 0, 0] and other.values().shape == (0, 2, 2)
    assert F.zeros_like(F.eye(3), layout=F.sparse_csr).layout is F.sparse_csr
    assert F.zeros_like(matrix().to_sparse(), layout=F.sparse_csr)._nnz() == 0
    assert F.zeros_like(matrix().to_sparse(), layout=F.strided).tolist() == [[0.0] * 3] * 2
    hybrid = F.zeros_like(F.ones(2, 3, 4).to_sparse(2), layout=F.sparse_csr)
    assert hybrid.values().shape == (0, 4) and hybrid.shape == (2, 3, 4)
    batch = F.eye(3).expand(2, 3, 3).to_sparse_csr()
    assert F.zeros_like(batch).crow_indices().tolist() == [[0, 0, 0, 0]] * 2


def test_numbers_where_a_compressed_tensor_has_elements():
    t = matrix().to_sparse_csr()
    for like, values in ((F.ones_like(t), [1.0] * 3), (F.full_like(t, 2.5), [2.5] * 3)):
        assert like.crow_indices().tolist() == [0, 1, 3]
        assert like.values().tolist() == values
    F.manual_seed(0)
    assert F.randn_like(t, dtype=F.float64).values().dtype is F.float64
    assert F.empty_like(t).col_indices().tolist() == [1, 0, 2]


def test_sums_that_keep_dimensions_of_a_matrix_by_rows():
    t = matrix().to_sparse_csr()
    rows, columns = t.sum(1, keepdim=True), t.sum(0, keepdim=True)
    assert rows.layout is columns.layout is F.sparse_csr
    assert_equal(rows.to_dense(), [[1.0], [5.0]])
    assert_equal(columns.to_dense(), [[2.0, 1.0, 3.0]])
    assert_equal(t.sum((0, 1), keepdim=True).to_dense(), [[6.0]])
