"""Sparse tensors on CUDA against the host: every layout, forward and gradients, errors, memory."""

import copy
import io
import pickle

import numpy as np
import pytest
from cuda_comparison import LOOSE, close, is_half, needs_cuda
from package_under_test import F
from sparse_calls import CASES, LAYOUTS, Inputs, cases, compare, gradients, numbers, outcome, parts

pytestmark = needs_cuda

DENSE = [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]
# With dtypes other than float32: what has kernels of its own, in layouts that go different ways.
CHOSEN = (
    "to_dense bsr sin square times_dense times_sparse plus_sparse into_dense matrix vector "
    "from_the_right sparse_product addmm sum_of_rows mean norm softmax_of_rows mask_of_dense row "
    "rows index_select_of_rows cat_of_rows coalesce repeated_to_dense repeated_mm hybrid "
    "hybrid_sum hybrid_softmax cube_sum bmm sampled_addmm mm_by_mean mm_by_amax batch_times"
)
DTYPES = [F.float64, F.float16, F.bfloat16, F.complex64, F.int64]


def near(found, expected):
    found, expected = found.cpu(), expected.cpu()
    if not (expected.is_floating_point() or expected.is_complex()):
        return F.equal(found, expected)
    wanted = LOOSE if is_half(expected.dtype) else {"rtol": 1e-4, "atol": 1e-5}
    if expected.is_floating_point():
        found, expected = found.double(), expected.double()
    return F.allclose(found, expected, equal_nan=True, **wanted)


def same_as_host(call, layout, dtype):
    host, cuda = Inputs(layout, "cpu", dtype), Inputs(layout, "cuda", dtype)
    expected, found = outcome(call, host), outcome(call, cuda)
    compare(found, expected, near)
    if not isinstance(expected, Exception):
        assert all(r.is_cuda and all(p.is_cuda for p in parts(r)) for r in found)
        compare(gradients(found, cuda), gradients(expected, host), near)


# ---- every call


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_result_and_gradients_are_those_of_the_host(layout, name):
    same_as_host(cases(layout)[name], layout, F.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["coo", "csr", "bsc"])
def test_other_dtypes(layout, dtype):
    chosen = {n: c for n, c in cases(layout).items() if n.replace(" ", "_") in CHOSEN.split()}
    assert len(chosen) > 20
    for name, call in chosen.items():
        try:
            same_as_host(call, layout, dtype)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error


# ---- larger ones


def random_matrix(rows, columns, count, seed=0, dtype=None):
    """Uncoalesced; some rows have many elements, some none."""
    rng = np.random.default_rng(seed)
    at = np.stack(
        [(rows * rng.random(count) ** 3).astype(np.int64), rng.integers(0, columns, count)]
    )
    values = F.tensor(rng.normal(size=count)).to(dtype or F.float64)
    return F.sparse_coo_tensor(F.tensor(at), values, (rows, columns))


@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [(2000, 3000, 50_000), (100_000, 90_000, 20_000), (3, 70_000, 30_000), (70_000, 2, 30_000)],
)
def test_patterns_of_many_elements(rows, columns, count):
    s, t = random_matrix(rows, columns, count), random_matrix(rows, columns, count // 3, 1)
    a, b = s.cuda(), t.cuda()
    small = rows * columns < 10**8
    for call in (
        lambda s, t: s.coalesce(),
        lambda s, t: s.to_sparse_csr(),
        lambda s, t: s.to_sparse_csc(),
        lambda s, t: s.to_sparse_csr().t().to_sparse_csr(),
        lambda s, t: s + t,
        lambda s, t: s.coalesce() + t.coalesce(),
        lambda s, t: s * t,
        lambda s, t: F.sparse.sum(s, 0),
        lambda s, t: F.sparse.softmax(s, 1),
        lambda s, t: s[1:-1:2],
        lambda s, t: s.index_select(1, F.arange(0, columns, 3, device=s.device)),
        lambda s, t: F.cat([s, t], 1).coalesce(),
        lambda s, t: s.to_dense() if small else s,
        lambda s, t: s.to_dense().to_sparse_csr() if small else s,
        lambda s, t: s.sparse_mask(t.coalesce()),
    ):
        compare([call(a, b)], [call(s, t)], near)


def test_products_of_two_sparse_matrices():
    a, b = random_matrix(500, 800, 6000), random_matrix(800, 300, 5000, 1)
    compare([a.cuda() @ b.cuda()], [a @ b], near)
    a, b = a.to_sparse_csr(), b.to_sparse_csr()
    compare([a.cuda() @ b.cuda()], [a @ b], near)


@pytest.mark.parametrize("width", [1, 2, 3, 8, 16, 33, 64, 100, 128, 257, 1000])
def test_products_of_every_width(width):
    s = random_matrix(400, 300, 5000).to_sparse_csr()
    x = numbers((300, width), 1, F.float64)
    y = numbers((400, width), 2, F.float64)
    for dtype in (F.float64, F.float32, F.float16):
        a, b, c = s.to(dtype), x.to(dtype), y.to(dtype)
        tolerance = {"rtol": 1e-12, "atol": 1e-11} if dtype == F.float64 else {"rtol": 1e-3}
        tolerance = tolerance if dtype != F.float16 else {"rtol": 2e-2, "atol": 0.1}
        close(a.cuda() @ b.cuda(), a @ b, **{"atol": 1e-3, **tolerance})
        sampled = [
            F.sparse.sampled_addmm(*(t.to(d) for t in (a, c, b.t())), beta=0).values()
            for d in ("cuda", "cpu")
        ]
        close(*sampled, **{"atol": 1e-3, **tolerance})


@pytest.mark.parametrize("width", [1, 2, 7, 64, 300])
def test_products_of_few_long_rows(width):
    s = random_matrix(3, 5000, 40_000).coalesce().to_sparse_csr()
    x, y = numbers((5000, width), 1, F.float64), numbers((3, width), 2, F.float64)
    for dtype in (F.float64, F.float32):
        a, b, c = s.to(dtype), x.to(dtype), y.to(dtype)
        tolerance = {"rtol": 1e-10, "atol": 1e-9} if dtype == F.float64 else LOOSE
        close(a.cuda() @ b.cuda(), a @ b, **tolerance)
        sampled = F.sparse.sampled_addmm(a.cuda(), c.cuda(), b.cuda().t(), beta=0)
        close(sampled.values(), F.sparse.sampled_addmm(a, c, b.t(), beta=0).values(), **tolerance)


def test_products_of_matrices_that_lie_across_memory():
    s, x = random_matrix(40, 30, 300).to_sparse_csr(), numbers((7, 61), 1, F.float64)
    for cut in (
        lambda t: t[:, 1:31].t(),
        lambda t: t[:, ::2][:, :30].t(),
        lambda t: t[:1, :30].t(),
    ):
        close(s.cuda() @ cut(x.cuda()), s @ cut(x))


def test_halves_are_added_up_in_float32():
    for dtype in (F.float16, F.bfloat16):
        row = F.ones(1, 6016, dtype=dtype).to_sparse_csr().cuda()
        x = F.full((6016, 2), 1 / 64, dtype=dtype, device="cuda")
        assert (row @ x).tolist() == [[94.0, 94.0]]


def test_products_and_their_gradients_do_not_vary():
    s = random_matrix(3000, 2000, 90_000, dtype=F.float32).coalesce().cuda()
    x = F.randn(2000, 17, device="cuda")

    def run():
        a, b = s.detach().requires_grad_(), x.detach().requires_grad_()
        y = a @ b
        y.backward(F.ones_like(y))
        return y.detach(), a.grad.values(), b.grad

    first = run()
    for _ in range(5):
        assert all(F.equal(p, q) for p, q in zip(run(), first, strict=True))


@pytest.mark.parametrize("dense", [(), (5,)], ids=str)
def test_sums_at_one_position_do_not_vary(dense):
    at = random_matrix(50, 40, 60_000)._indices()
    s = F.sparse_coo_tensor(at, F.randn(60_000, *dense), (50, 40, *dense))
    there, t = s.cuda(), random_matrix(40, 50, 1000, dtype=F.float32)
    for call in (
        lambda s: s.coalesce(),
        lambda s: F.sparse.sum(s, 0),
        lambda s: F.sparse.softmax(s, 0),
        lambda s: s if dense else s @ t.to(s.device),
    ):
        found = [call(there) for _ in range(3)]
        assert all(F.equal(r._values(), found[0]._values()) for r in found)
        expected = call(s)
        assert F.allclose(found[0]._values().cpu(), expected._values(), rtol=1e-3, atol=1e-3)
    F.use_deterministic_algorithms(True)
    try:
        found = [there.to_dense() for _ in range(3)]
    finally:
        F.use_deterministic_algorithms(False)
    assert all(F.equal(r, found[0]) for r in found)
    close(found[0], s.to_dense(), rtol=1e-3, atol=1e-3)


def test_second_derivatives():
    pattern = numbers((4, 5), 1, F.float64, 0.5).to_sparse_csr().cuda()
    values = pattern.values().clone().requires_grad_()
    x = numbers((5, 3), 2, F.float64).cuda().requires_grad_()

    def product(v, x):
        s = F.sparse_csr_tensor(pattern.crow_indices(), pattern.col_indices(), v, (4, 5))
        return ((s @ x) ** 2).sum()

    assert F.autograd.gradcheck(product, (values, x))
    assert F.autograd.gradgradcheck(product, (values, x))


# ---- where things are


@pytest.mark.parametrize("layout", LAYOUTS)
def test_round_trips(layout):
    d = numbers((6, 8), 1, None, 0.6)
    s = LAYOUTS[layout](d)
    there = s.cuda()
    for t in (
        there,
        s.to("cuda"),
        s.to("cuda:0"),
        LAYOUTS[layout](d.cuda()),
        there.clone(),
        copy.deepcopy(there),
        copy.copy(there),
        pickle.loads(pickle.dumps(there)),
    ):
        assert t.is_cuda and t.device == F.device("cuda", 0)
        assert all(p.device == t.device for p in parts(t))
        compare([t], [s], near)
    compare([there.cpu()], [s])
    compare([there.double().cpu()], [s.double()])
    assert there.cuda() is there and F.equal(there.to_dense().cpu(), d)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files(layout):
    s = LAYOUTS[layout](numbers((6, 8), 1, None, 0.6))
    for saved, where, wanted in (
        (s.cuda(), None, "cuda"),
        (s.cuda(), "cpu", "cpu"),
        (s, "cuda", "cuda"),
    ):
        file = io.BytesIO()
        F.save({"s": saved}, file)
        file.seek(0)
        loaded = F.load(file, map_location=where)["s"]
        assert loaded.device.type == wanted and all(p.device.type == wanted for p in parts(loaded))
        compare([loaded], [s], near)


def test_text():
    s = F.tensor(DENSE).to_sparse()
    assert str(s.cuda()) == (
        "tensor(indices=tensor([[0, 1, 1],\n"
        "                       [1, 0, 2]]),\n"
        "       values=tensor([1., 2., 3.]),\n"
        "       device='cuda:0', size=(2, 3), nnz=3, layout=facula.sparse_coo)"
    )
    for make in LAYOUTS.values():
        s = make(numbers((6, 8), 1))
        words = str(s).replace("size=(6, 8)", "device='cuda:0', size=(6, 8)").split()
        assert str(s.cuda()).split() == words  # lines break elsewhere


def test_tensors_are_made_where_the_values_are():
    at, values = F.tensor([[0, 1], [1, 0]]), F.tensor([1.0, 2.0])
    expected = F.sparse_coo_tensor(at, values, (2, 2))
    for t in (
        F.sparse_coo_tensor(at, values, (2, 2), device="cuda"),
        F.sparse_coo_tensor(at, values.cuda(), (2, 2)),
        F.sparse_coo_tensor(at.cuda(), values.cuda()),
        F.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], device="cuda"),
    ):
        assert t.is_cuda and t._indices().is_cuda
        compare([t], [expected], near)
    csr = F.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], device="cuda")
    assert csr.crow_indices().is_cuda and csr.col_indices().is_cuda and csr.values().is_cuda
    compare([csr.to_sparse()], [expected.coalesce()], near)
    t = F.sparse_coo_tensor(at, values, (2, 2), device="cuda", requires_grad=True)
    t.to_dense().sum().backward()
    assert t.grad.is_cuda and t.grad._indices().is_cuda


def test_gradients_flow_between_devices():
    values = F.tensor([1.0, 2.0], requires_grad=True)
    s = F.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2), device="cuda")
    (s.to_dense() * F.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")).sum().backward()
    assert values.grad.tolist() == [2.0, 3.0]
    leaf = F.tensor(DENSE).to_sparse().requires_grad_()
    (leaf.cuda() * 2).cpu().sum().backward()
    assert leaf.grad.to_dense().tolist() == [[0.0, 2.0, 0.0], [2.0, 0.0, 2.0]]


def test_tensors_of_the_host_are_refused():
    s, x = F.tensor(DENSE).to_sparse(), F.ones(3, 2)
    for f in (
        lambda: s.cuda() @ x,
        lambda: s @ x.cuda(),
        lambda: s.cuda() + s,
        lambda: s.cuda() * F.ones(2, 3),
        lambda: s.cuda().index_select(0, F.tensor([0])),
        lambda: F.ones(2, 3).sparse_mask(s.cuda()),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            f()


def test_copies_between_devices():
    s = F.tensor(DENSE).to_sparse()
    there = F.zeros_like(s.cuda())
    assert there.copy_(s).is_cuda and there._indices().is_cuda
    assert F.equal(there.to_dense().cpu(), F.tensor(DENSE))
    here = F.zeros_like(s).copy_(there)
    assert not here.is_cuda and F.equal(here.to_dense(), F.tensor(DENSE))
    assert F.equal(F.zeros(2, 3).copy_(there), F.tensor(DENSE))


def test_modules_take_their_sparse_buffers_along():
    class Graph(F.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("edges", F.tensor(DENSE).to_sparse_csr())
            self.layer = F.nn.Linear(4, 2)

        def forward(self, x):
            return self.edges @ self.layer(x)

    module, x = Graph(), F.ones(3, 4)
    expected = module(x)
    module.cuda()
    assert module.edges.is_cuda and module.edges.col_indices().is_cuda
    close(module(x.cuda()), expected, rtol=1e-4, atol=1e-4)
    assert module.state_dict()["edges"].is_cuda
    module.load_state_dict({**module.cpu().state_dict(), "edges": module.edges.cuda()})
    assert not module.edges.is_cuda and F.equal(module(x), expected)


# ---- embeddings and optimisers


def trained(device, make, steps=4, bag=False):
    F.manual_seed(0)
    if bag:
        table = F.nn.EmbeddingBag(50, 6, sparse=True, mode="mean")
    else:
        table = F.nn.Embedding(50, 6, sparse=True, padding_idx=3)
    table = table.to(device)
    optimizer = make(table.parameters())
    for step in range(steps):
        words = ((F.arange(24) * (step + 3)) % 11).reshape(4, 6).to(device)
        weight = numbers((6,), step).to(device)
        optimizer.zero_grad()
        (table(words) * weight).square().sum().backward()
        grad = table.weight.grad
        assert grad.is_sparse and grad.device == table.weight.device == grad._indices().device
        optimizer.step()
    return table.weight.detach()


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda p: F.optim.SparseAdam(list(p), lr=0.1),
        lambda p: F.optim.SGD(p, lr=0.1),
        lambda p: F.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: F.optim.Adagrad(p, lr=0.1),
    ],
    ids=["SparseAdam", "SGD", "momentum", "Adagrad"],
)
def test_sparse_gradients_train_tables(make, bag):
    close(trained("cuda", make, bag=bag), trained("cpu", make, bag=bag), rtol=1e-4, atol=1e-5)


def test_gradients_of_embeddings_are_added_up():
    table = F.nn.Embedding(10, 3, sparse=True).cuda()
    for words in ([1, 2, 2], [2, 5, 1]):
        table(F.tensor(words, device="cuda")).sum().backward()
    assert table.weight.grad._nnz() == 6
    rows = table.weight.grad.coalesce()
    assert rows.indices().tolist() == [[1, 2, 5]] and rows.values()[:, 0].tolist() == [2, 3, 1]


# ---- memory, waiting, graphs


def test_products_take_no_memory_for_each_product():
    s = random_matrix(2000, 2000, 400_000, dtype=F.float32).to_sparse_csr().cuda()
    x = F.randn(2000, 64, device="cuda")
    s @ x
    F.cuda.synchronize()
    before = F.cuda.memory_allocated()
    F.cuda.reset_peak_memory_stats()
    y = s @ x
    assert F.cuda.max_memory_allocated() - before <= y.numel() * 4 + 4096


def test_products_do_not_wait_for_the_device():
    s = random_matrix(200, 200, 4000, dtype=F.float32).to_sparse_csr().cuda().requires_grad_()
    x = F.randn(200, 8, device="cuda", requires_grad=True)
    (s @ x).sum().backward()
    F.cuda.set_sync_debug_mode("error")
    try:
        (s @ x).sum().backward()
    finally:
        F.cuda.set_sync_debug_mode("default")


def test_products_in_graphs():
    s, x = random_matrix(50, 40, 600, dtype=F.float32).to_sparse_csr(), F.ones(40, 3)
    a, b = s.cuda(), x.cuda()
    side = F.cuda.Stream()
    with F.cuda.stream(side):
        a @ b
    F.cuda.current_stream().wait_stream(side)
    graph = F.cuda.CUDAGraph()
    with F.cuda.graph(graph):
        y = a @ b
    b.fill_(2)
    graph.replay()
    close(y, s @ (x * 2), rtol=1e-4, atol=1e-4)


def test_products_on_other_streams():
    s, x = random_matrix(500, 400, 6000).to_sparse_csr(), numbers((400, 5), 1, F.float64)
    side = F.cuda.Stream()
    with F.cuda.stream(side):
        a, b = s.cuda().requires_grad_(), x.cuda().requires_grad_()
        y = (a @ b).square().sum()
    y.backward()
    c, d = s.detach().requires_grad_(), x.detach().requires_grad_()
    (c @ d).square().sum().backward()
    close(b.grad, d.grad)
    close(a.grad.values(), c.grad.values())


def test_gradients_are_clipped_and_unscaled():
    norms, grads = [], []
    for device in ("cpu", "cuda"):
        tables = [F.nn.Embedding(9, 3, sparse=True) for _ in range(2)]
        for seed, table in enumerate(tables):
            F.manual_seed(seed)
            table.weight.data.normal_()
            table.to(device)
            table(F.tensor([1, 2, 2, 7], device=device)).square().sum().backward()
        weights = [t.weight for t in tables]
        norms.append(F.nn.utils.clip_grad_norm_(weights, 0.5))
        grads.append([w.grad.to_dense() for w in weights])
    close(norms[1], norms[0])
    for cuda, cpu in zip(*reversed(grads), strict=True):
        close(cuda, cpu)
    scaler = F.amp.GradScaler("cuda", init_scale=8.0)
    table = F.nn.Embedding(9, 3, sparse=True).cuda()
    optimizer = F.optim.SGD(table.parameters(), lr=1.0)
    before = table.weight.detach().clone()
    scaler.scale(table(F.tensor([1, 2, 2], device="cuda")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert (before - table.weight.detach())[:, 0].round().tolist() == [0, 1, 2, 0, 0, 0, 0, 0, 0]
