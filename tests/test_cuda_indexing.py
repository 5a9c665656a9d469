"""Reading and writing by indices on CUDA devices against the host. Skipped without a device."""

import pytest
from cuda_pairs import FLOATS, check, check_gradients, compare, strided
from package_under_test import F

pytestmark = pytest.mark.skipif(not F.cuda.is_available(), reason="no CUDA device")

DTYPES = [F.float32, F.float64, F.float16, F.bfloat16, F.int64, F.uint8, F.bool, F.complex64]


def numbers(*shape, dtype=F.float32, seed=0):
    F.manual_seed(seed)
    return (F.randn(*shape) * 4).to(dtype)


def positions(high, *shape, seed=1):
    F.manual_seed(seed)
    return F.randint(0, high, shape)


# ---- brackets


@pytest.mark.parametrize("dtype", DTYPES)
def test_reading_with_tensors(dtype):
    x = numbers(6, 5, 8, dtype=dtype)
    i, j = positions(6, 7), positions(5, 3, 7, seed=2)
    for source in (x, strided(x) if dtype != F.bool else x):
        check(lambda a, p: a[p], source, i, exact=True)
        check(lambda a, p: a[:, p % 5], source, i, exact=True)
        check(lambda a, p, q: a[p, q], source, i, j, exact=True)
        check(lambda a, p, q: a[p, :, q], source, i, j, exact=True)
        check(lambda a, p: a[..., -p - 1], source, i, exact=True)
    check(lambda a, m: a[m], x, x.abs() > 2 if dtype != F.bool else x, exact=True)
    check(lambda a, m: a[m], x, positions(2, 6).bool(), exact=True)
    check(lambda a, m: a[:, m], x, positions(2, 5).bool(), exact=True)


def test_reading_edges():
    x = numbers(4, 5)
    check(lambda a, p: a[p], x, F.zeros(0, dtype=F.int64))
    check(lambda a, p: a[p], x, F.tensor(2))
    check(lambda a, m: a[m], x, F.zeros(4, 5, dtype=F.bool))
    check(lambda a, m: a[m], F.tensor(2.5), F.tensor(True))
    check(lambda a, p: a[p], x, F.tensor([0, 3], dtype=F.int32))
    assert (x.cuda()[F.tensor([1, 2])].cpu() == x[1:3]).all()  # indices may be on the host
    with pytest.raises(RuntimeError):
        x[F.tensor([1]).cuda()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_writing_with_tensors(dtype, accumulate):
    x, v = numbers(6, 5, 8, dtype=dtype), numbers(3, 8, dtype=dtype, seed=3)
    i, j = F.tensor([4, 1, -6]), F.tensor([0, 2, 3])
    check(lambda a, p, q, b: a.index_put((p, q), b, accumulate), x, i, j, v)
    check(lambda a, p, b: a.index_put((p,), b[:, None], accumulate), x, i, v)

    def in_place(a, p, q, b):
        a = a.clone().transpose(0, 2)
        a[:, q, p] = b.t()
        return a

    check(in_place, x, i, j, v, exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_accumulating_equal_indices(dtype):
    x, i, v = numbers(10, dtype=dtype), positions(10, 1000), numbers(1000, dtype=dtype, seed=2) / 50
    check(lambda a, p, b: a.index_put((p,), b, True), x, i, v, atol=5e-2)
    check(lambda a, p, b: a.index_add(0, p, b, alpha=2), x, i, v, atol=1e-1)
    check(lambda a, p, b: a.scatter_add(0, p, b), x, i, v, atol=5e-2)


def test_deterministic_sums_are_those_of_the_host():
    x, i, v = numbers(50, 4), positions(50, 5000), numbers(5000, 4, seed=2)
    F.use_deterministic_algorithms(True)
    try:
        check(lambda a, p, b: a.index_add(0, p, b), x, i, v, exact=True)
        check(lambda a, p, b: a.index_put((p,), b, True), x, i, v, exact=True)
        check(lambda a, p, b: a.scatter_add(0, p[:, None].expand(-1, 4), b), x, i, v, exact=True)
        # Of values that meet the last one wins.
        check(lambda a, p, b: a.index_put((p,), b), x, i, v, exact=True)
        check(lambda a, p, b: a.index_copy(0, p, b), x, i, v, exact=True)
        check(lambda a, p, b: a.scatter(0, p[:, None].expand(-1, 4), b), x, i, v, exact=True)
    finally:
        F.use_deterministic_algorithms(False)


def test_filling_by_masks():
    def fill(a, m):
        a = a.clone()
        a[m] = 3.5
        return a

    x = numbers(9, 7)
    check(fill, x, x > 0, exact=True)
    check(fill, x, x[:, 0] > 0, exact=True)
    check(lambda a, m: a.masked_fill(m, -1), x, x > 0, exact=True)
    check(lambda a, m, s: a.masked_scatter(m, s), x, x > 0, numbers(63, seed=3), exact=True)
    check(lambda a, m: a.masked_select(m), strided(x), x > 0, exact=True)
    with pytest.raises(RuntimeError, match="source"):
        x.cuda().masked_scatter(F.ones(9, 7, dtype=F.bool).cuda(), F.ones(3).cuda())


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype):
    x = numbers(5, 7, 3, dtype=dtype) * (positions(2, 5, 7, 3) == 1)
    check(lambda a: a.nonzero(), x, exact=True)
    check(lambda a: a.nonzero(as_tuple=True), x, exact=True)
    check(lambda a: F.nonzero(a), (numbers(300_001) > 1).to(dtype), exact=True)
    for edge in (F.zeros(3), F.zeros(0, 4), F.tensor(1.0), F.tensor(0.0)):
        check(lambda a: a.nonzero(), edge, exact=True)


# ---- along one dimension


@pytest.mark.parametrize("dtype", DTYPES)
def test_slices_along_a_dimension(dtype):
    x = numbers(6, 4, 16, dtype=dtype)
    for dim in range(3):
        i = F.randperm(x.shape[dim])[:3]
        part = x.index_select(dim, i)
        check(lambda a, p, d=dim: a.index_select(d, p), x, i, exact=True)
        check(lambda a, p, b, d=dim: a.index_copy(d, p, b), x, i, part)
        check(lambda a, p, d=dim: a.index_fill(d, p, 1), x, i, exact=True)
        check(lambda a, p, b, d=dim: a.index_add(d, p, b), x, i, part)
    check(lambda a, p: a.take(p), x, positions(6 * 4 * 16, 5, 6), exact=True)
    check(lambda a, p: a.take(p), x.transpose(0, 1), -positions(300, 9) - 1, exact=True)
    check(lambda a, p, b: a.clone().put_(p, b), x, F.tensor([3, 0, -1]), numbers(3, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_and_scatter(dtype):
    x, src = numbers(5, 6, 7, dtype=dtype), numbers(5, 6, 7, dtype=dtype, seed=2)
    for dim in range(3):
        i = positions(x.shape[dim], 5, 3, 2, seed=dim)
        check(lambda a, p, d=dim: a.gather(d, p), strided(x), i, exact=True)
        once = F.arange(2).expand(5, 3, 2) if dim == 2 else i[:1, :1, :1]
        check(lambda a, p, b, d=dim: a.scatter(d, p, b), x, once, src, exact=True)
        check(lambda a, p, d=dim: a.scatter(d, p, 1), x, i, exact=True)
        check(lambda a, p, b, d=dim: a.scatter_add(d, p, b), x, i, src)
    check(lambda a, p: a.gather(0, p), F.tensor(3.0), F.tensor([0, 0]))


@pytest.mark.parametrize("dtype", [F.float32, F.float64, F.bfloat16, F.int32, F.int16, F.uint8])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reductions(dtype, reduce, include_self):
    x, i = numbers(6, 8, dtype=dtype) % 3 + 1, positions(6, 20, 8)
    src = numbers(20, 8, dtype=dtype, seed=2) % 2 + 1
    check(lambda a, p, b: a.scatter_reduce(0, p, b, reduce, include_self=include_self), x, i, src)
    if reduce != "sum":
        check(
            lambda a, p, b: a.index_reduce(0, p, b, reduce, include_self=include_self),
            x,
            i[:, 0],
            src,
        )


def test_products_of_complex_numbers():
    x = F.ones(3, dtype=F.complex128)
    src = F.randn(50, dtype=F.complex128)
    src = src / src.abs()
    check(lambda a, p, b: a.scatter_reduce(0, p, b, "prod"), x, positions(3, 50), src)


# ---- derivatives


def test_gradients():
    x, i, j = numbers(6, 5), positions(6, 9), positions(5, 9, seed=2)
    v = numbers(9, 5, seed=3)
    check_gradients(lambda a, p, q: a[p, q], x, i, j)
    check_gradients(lambda a, p: a[p], x, i)
    check_gradients(lambda a, m: a[m], x, x > 0)
    check_gradients(lambda a, p: a.index_select(0, p), x, i)
    check_gradients(lambda a, p, b: a.index_add(0, p, b), x, i, v)
    check_gradients(lambda a, p, b: a.index_put((p,), b, True), x, i, v)
    check_gradients(lambda a, p: a.gather(1, p), x, positions(5, 6, 3))
    check_gradients(lambda a, p, b: a.scatter_add(0, p, b), x, positions(6, 4, 5), v)
    check_gradients(lambda a, p: a.take(p), x, positions(30, 11))
    check_gradients(lambda a, m, b: a.masked_scatter(m, b), x, x > 0, numbers(30, seed=4))
    check_gradients(lambda a, b: F.cat([a, b, a], 0), x, v)
    check_gradients(lambda a: a.tril(1) + a.triu(-1), x)


# ---- embeddings


@pytest.mark.parametrize("dtype", FLOATS)
def test_embedding(dtype):
    w, i = numbers(50, 24, dtype=dtype), positions(50, 7, 9)
    embedding = F.nn.functional.embedding
    check(lambda p, a: embedding(p, a), i, w, exact=True)
    check(lambda p, a: embedding(p.int(), a), i, strided(w), exact=True)
    check_gradients(lambda p, a: embedding(p, a), i, w)
    check_gradients(lambda p, a: embedding(p, a, padding_idx=3), i, w)
    check_gradients(lambda p, a: embedding(p, a, scale_grad_by_freq=True), i, w)


def test_many_lookups_of_few_rows():
    w, i = numbers(1000, 8), positions(10, 20_000)
    check_gradients(F.nn.functional.embedding, i, w, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [F.float32, F.float16])
def test_embedding_bags(mode, dtype):
    w, i = numbers(30, 40, dtype=dtype), positions(30, 60)
    offsets = F.tensor([0, 5, 5, 20, 59])
    bag = F.nn.functional.embedding_bag
    check(lambda p, a, o: bag(p, a, o, mode=mode), i, w, offsets)
    check(lambda p, a: bag(p, a, mode=mode, padding_idx=2), i.reshape(12, 5), w)
    check_gradients(lambda p, a, o: bag(p, a, o, mode=mode), i, w, offsets)
    if mode == "sum":
        check_gradients(
            lambda p, a, o, f: bag(p, a, o, mode=mode, per_sample_weights=f),
            i,
            w,
            offsets,
            numbers(60, dtype=dtype, seed=4),
        )


def test_renormalised_embedding():
    def lookup(p, a):
        a = a.clone()
        out = F.nn.functional.embedding(p, a, max_norm=1.0)
        return out, a

    check(lookup, positions(20, 15), numbers(20, 6))


# ---- counting


def test_counting():
    i, w = positions(17, 1000), F.rand(1000)
    check(lambda p: F.bincount(p, minlength=20), i, exact=True)
    check(lambda p, a: F.bincount(p, a), i, w)
    check(lambda a: F.histc(a, 20, -2, 2), numbers(5000))
    check(lambda a: F.histc(a, 7), numbers(100))
    check(lambda a: F.histogram(a, 11), numbers(5000))
    check(lambda a, e, b: F.histogram(a, e, weight=b), numbers(1000), F.linspace(-3, 3, 8), w)
    check(lambda a: F.histogramdd(a, [4, 5])[0], numbers(500, 2))
    check(lambda p: F.nn.functional.one_hot(p), i, exact=True)
    check(lambda p: F.zeros(0, dtype=F.int64).to(p.device).bincount(), i)


@pytest.mark.parametrize("dtype", [F.float32, F.float64, F.bfloat16, F.int64, F.uint8])
@pytest.mark.parametrize("right", [False, True])
def test_searching(dtype, right):
    edges = numbers(33, dtype=dtype).sort()[0]
    x = numbers(6, 50, dtype=dtype, seed=2)
    check(lambda e, a: F.searchsorted(e, a, right=right), edges, x, exact=True)
    check(lambda e, a: F.bucketize(a, e, out_int32=True, right=right), edges, x, exact=True)
    rows = numbers(6, 9, dtype=dtype).sort(-1)[0]
    check(lambda e, a: F.searchsorted(e, a, right=right), rows, x, exact=True)
    check(lambda e: F.searchsorted(e, 1), edges, exact=True)
    order = F.randperm(33)
    check(
        lambda e, a, s: F.searchsorted(e, a, sorter=s), edges[order], x, order.argsort(), exact=True
    )
    check(lambda a, b: F.isin(a, b), x, edges, exact=True)


# ---- joining and rearranging


@pytest.mark.parametrize("dtype", DTYPES)
def test_joining(dtype):
    parts = [numbers(3, n, 4, dtype=dtype, seed=n) for n in (1, 5, 2)]
    check(lambda a, b, c: F.cat([a, b, c], 1), *parts, exact=True)
    check(lambda a, b, c: F.cat([a, b.transpose(0, 2).transpose(0, 2), c], 1), *parts, exact=True)
    check(lambda a, b: F.cat([a[..., 1:], b[..., :3]], 1), *parts[:2], exact=True)
    check(lambda a: F.cat([a, a.new_zeros(0)], 1), parts[1], exact=True)
    check(lambda a: F.stack([a, a * 1, a], 1), parts[1], exact=True)
    check(lambda a: F.stack([a, a], -1), parts[1], exact=True)
    check(lambda a: F.cat([a[0, 0]] * 300, 0), parts[0], exact=True)
    check(lambda a: F.cat([a, a.to(F.complex128)], 0), parts[0])


def test_rearranging():
    x = numbers(5, 6, 7)
    check(lambda a: a.flip(0, 2), x, exact=True)
    check(lambda a: a.roll((2, -3), (0, 2)), x, exact=True)
    check(lambda a: a.repeat_interleave(3, 1), x, exact=True)
    check(lambda a, r: a.repeat_interleave(r, 0), x, F.tensor([0, 2, 1, 0, 4]), exact=True)
    check(lambda a: a.tril(-1), x, exact=True)
    check(lambda a: a.triu(2), strided(x), exact=True)
    check(lambda a: F.tril_indices(4, 5, device=a.device), x, exact=True)
    check(lambda a: a.diagonal(1).clone(), x, exact=True)
    check(lambda a: F.diag_embed(a), x, exact=True)
    check(lambda a: F.where(a > 0, a, -a), x, exact=True)
    with pytest.raises(RuntimeError, match="negative"):
        x.cuda().repeat_interleave(F.tensor([0, -1, 0, 0, 0]).cuda(), 0)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding(mode):
    pad = F.nn.functional.pad
    x = numbers(2, 3, 6, 5)
    check(lambda a: pad(a, (2, 1, 3, 0), mode), x, exact=True)
    check(lambda a: pad(a, (-1, 2), mode), x[0], exact=True)
    check_gradients(lambda a: pad(a, (2, 1, 3, 0), mode), x)
    last = x.contiguous(memory_format=F.channels_last)
    assert pad(last.cuda(), (1, 1, 1, 1), mode).stride() == pad(last, (1, 1, 1, 1), mode).stride()


# ---- bad indices


@pytest.mark.parametrize(
    "bad",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.gather(0, i),
        lambda x, i: x.scatter_add(0, i, x[: len(i)]),
        lambda x, i: x.index_put((i,), x[: len(i)]),
        lambda x, i: x.take(i),
        lambda x, i: F.nn.functional.embedding(i, x[:, None]),
    ],
)
def test_bad_indices_raise_when_the_device_is_waited_for(bad):
    x, i = F.arange(5.0).cuda(), F.tensor([1, 77, 2]).cuda()
    with pytest.raises(IndexError, match="77"):
        bad(x, i)
        F.cuda.synchronize()
    F.cuda.synchronize()
    assert x.sum().item() == 10  # the device is still usable, and nothing else was written
    compare(x, F.arange(5.0))
