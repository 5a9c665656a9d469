"""Operators on tensors so large that they are split: over threads, digits, tiles and panels.

Results are compared with NumPy's, and those of two threads with those of one, bit by bit.
"""

import numpy as np
import pytest
from package_under_test import F

RNG = np.random.default_rng(7)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = F.get_num_threads()
    F.set_num_threads(request.param)
    yield request.param
    F.set_num_threads(before)


def same_with_two_threads(run):
    """The results of ``run()`` as arrays, which must not depend on the threads."""
    before = F.get_num_threads()
    results = []
    for n in (1, 2):
        F.set_num_threads(n)
        out = run()
        results.append([t.numpy() for t in (out if isinstance(out, tuple) else (out,))])
    F.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        assert one.tobytes() == two.tobytes()
    return results[0]


def keys(kind, n):
    if kind == "few":
        return RNG.integers(-5, 5, n)
    if kind == "wide":
        return RNG.integers(-(1 << 62), 1 << 62, n)
    if kind == "medium":
        return RNG.integers(0, 1 << 40, n)
    if kind == "bytes":
        return RNG.integers(0, 256, n).astype(np.uint8)
    if kind == "int32":
        return RNG.integers(-(1 << 31), 1 << 31, n).astype(np.int32)
    x = RNG.standard_normal(n)
    if kind == "coarse":
        x = np.round(x, 2)
    x[:: n // 50] = np.nan
    x[1 :: n // 50] = -0.0
    x[2 :: n // 50] = 0.0
    narrow = {"coarse": np.float32, "float32": np.float32, "half": np.float16}
    return x.astype(narrow.get(kind, np.float64))


KINDS = ["few", "wide", "medium", "bytes", "int32", "coarse", "float32", "float64", "half"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [100, 5_000, 300_000])
def test_sort_is_stable_and_keeps_the_bits(kind, n):
    x = keys(kind, n)
    values, order = same_with_two_threads(lambda: tuple(F.tensor(x).sort(stable=True)))
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    assert values.tobytes() == x[order].tobytes()


@pytest.mark.parametrize("kind", ["few", "medium", "coarse", "float64"])
def test_descending_sort_keeps_the_order_of_equal_elements(kind):
    n = 200_000
    x = keys(kind, n)
    values, order = same_with_two_threads(lambda: tuple(F.tensor(x).sort(descending=True)))
    rank = np.unique(x, return_inverse=True)[1]  # NaN last, all equal
    np.testing.assert_array_equal(order, np.lexsort((np.arange(n), -rank)))
    assert values.tobytes() == x[order].tobytes()


@pytest.mark.parametrize("kind", ["few", "medium", "coarse", "float32", "int32", "half"])
@pytest.mark.parametrize("k", [1, 10, 64, 100, 3000])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_the_front_of_the_sorted_line(kind, k, largest):
    x = F.tensor(keys(kind, 20_000))
    values, order = x.topk(k, largest=largest)
    expected = x.sort(descending=largest)
    assert values.numpy().tobytes() == expected.values[:k].numpy().tobytes()
    np.testing.assert_array_equal(order.numpy(), expected.indices[:k].numpy())


@pytest.mark.parametrize("kind", ["few", "wide", "medium", "bytes", "int32"])
@pytest.mark.parametrize("n", [1, 40, 200_000])
def test_unique_integers(kind, n):
    x = keys(kind, n)
    run = lambda: F.unique(F.tensor(x), return_inverse=True, return_counts=True)  # noqa: E731
    for got, expected in zip(
        same_with_two_threads(run),
        np.unique(x, return_inverse=True, return_counts=True),
        strict=True,
    ):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(F.unique(F.tensor(x)).numpy(), np.unique(x))


def test_unique_floats_count_every_nan_and_one_zero():
    x = keys("coarse", 100_000)
    values, inverse, counts = same_with_two_threads(
        lambda: F.unique(F.tensor(x), return_inverse=True, return_counts=True)
    )
    np.testing.assert_array_equal(values[inverse], x)
    assert counts.sum() == x.size
    assert np.isnan(values).sum() == np.isnan(x).sum()
    assert (values == 0).sum() == 1
    expected = np.unique(x[~np.isnan(x)])
    np.testing.assert_array_equal(values[: expected.size], expected)


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.float32, np.float64, np.float16])
def test_consecutive_runs(dtype):
    x = np.repeat(RNG.integers(0, 5, 60_000), RNG.integers(1, 5, 60_000)).astype(dtype)
    values, inverse, counts = same_with_two_threads(
        lambda: F.unique_consecutive(F.tensor(x), return_inverse=True, return_counts=True)
    )
    first = np.concatenate([[True], x[1:] != x[:-1]])
    np.testing.assert_array_equal(values, x[first])
    np.testing.assert_array_equal(inverse, np.cumsum(first) - 1)
    np.testing.assert_array_equal(counts, np.diff(np.append(np.flatnonzero(first), x.size)))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
def test_searches(right, n):
    edges = np.sort(RNG.integers(0, 500, n).astype(np.float32))
    values = np.append(RNG.integers(-5, 505, 3_003).astype(np.float32), np.nan)
    got = F.searchsorted(F.tensor(edges), F.tensor(values), right=right).numpy()
    expected = np.searchsorted(edges, values, side="right" if right else "left")
    expected[-1] = n  # NaN is behind everything
    np.testing.assert_array_equal(got, expected)


def test_counts_of_many_values(threads):
    x = RNG.integers(0, 300, 200_001)
    np.testing.assert_array_equal(F.bincount(F.tensor(x)).numpy(), np.bincount(x))


@pytest.mark.parametrize("width", [1, 3, 16, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16])
def test_rows_are_added_in_the_order_of_the_index(width, dtype):
    index = RNG.zipf(1.3, 30_000) % 500
    source = RNG.standard_normal((30_000, width)).astype(dtype)
    run = lambda: F.zeros(500, width, dtype=F.tensor(source).dtype).index_add(  # noqa: E731
        0, F.tensor(index), F.tensor(source)
    )
    got = same_with_two_threads(run)[0]
    expected = np.zeros((500, width), np.float32 if dtype == np.float16 else dtype)
    np.add.at(expected, index, source.astype(expected.dtype))
    np.testing.assert_array_equal(got, expected.astype(dtype))


def test_the_last_of_equal_rows_is_written(threads):
    index = RNG.integers(0, 100, 5_000)
    source = RNG.standard_normal((5_000, 32)).astype(np.float32)
    out = F.zeros(100, 32).index_put_((F.tensor(index - 100),), F.tensor(source)).numpy()
    expected = np.zeros((100, 32), np.float32)
    for i, row in zip(index, source, strict=True):
        expected[i] = row
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1])
def test_an_expanded_index_moves_whole_slices(reduce, dim):
    index = RNG.integers(0, 50, 700)
    source = RNG.integers(1, 4, (700, 40)).astype(np.float64)
    source[3, 5] = np.nan
    start = np.ones((50, 40))
    combine = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    expected = start.copy()
    with np.errstate(over="ignore"):
        combine.at(expected, index, source)
    at = F.tensor(index).unsqueeze(1).expand(700, 40)
    turn = (lambda t: t.t()) if dim else (lambda t: t)
    run = lambda: turn(  # noqa: E731
        turn(F.tensor(start)).scatter_reduce(dim, turn(at), turn(F.tensor(source)), reduce)
    ).contiguous()
    np.testing.assert_array_equal(same_with_two_threads(run)[0], expected)
    taken = F.tensor(start).gather(0, at[:50]).numpy()
    np.testing.assert_array_equal(taken, start[index[:50]])


def test_a_bad_expanded_index_is_refused_and_changes_nothing():
    target = F.zeros(10, 8)
    index = F.tensor([1, 2, 10]).unsqueeze(1).expand(3, 8)
    with pytest.raises((IndexError, RuntimeError), match="index 10 is out of bounds"):
        target.scatter_add_(0, index, F.ones(3, 8))
    assert float(target.sum()) == 0
    with pytest.raises((IndexError, RuntimeError), match="index 10 is out of bounds"):
        F.zeros(10, 8).gather(0, index)


@pytest.mark.parametrize("shape", [(3, 70, 50), (300, 200), (1, 9), (65, 5, 3)])
@pytest.mark.parametrize("layout", ["dense", "columns", "strided"])
def test_scans(shape, layout, threads):
    x = np.round(RNG.standard_normal(shape), 1) + 1
    t = F.tensor(x)
    if layout == "columns":
        t = t.transpose(0, -1).contiguous().transpose(0, -1)
    elif layout == "strided":
        t = F.tensor(np.repeat(x, 2, -1))[..., ::2]
    for dim in range(len(shape)):
        np.testing.assert_allclose(t.cumprod(dim).numpy(), np.cumprod(x, dim), rtol=1e-12)
        values, where = t.cummax(dim)
        np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(x, dim))
        np.testing.assert_array_equal(np.take_along_axis(x, where.numpy(), dim), values.numpy())


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((300, 210), (1, 0)),
        ((17, 33, 65), (2, 1, 0)),
        ((17, 33, 65), (0, 2, 1)),
        ((4, 3, 70, 70), (0, 2, 3, 1)),
        ((4, 70, 70, 3), (0, 3, 1, 2)),
        ((6, 50, 12, 40), (0, 2, 1, 3)),
        ((64, 64, 64), (1, 2, 0)),
    ],
)
def test_permuted_copies(shape, dims, dtype, threads):
    x = (RNG.integers(0, 250, shape)).astype(dtype)
    np.testing.assert_array_equal(F.tensor(x).permute(dims).contiguous().numpy(), x.transpose(dims))
    part = F.tensor(x)[1:, :, ...]
    np.testing.assert_array_equal(part.permute(dims).contiguous().numpy(), x[1:].transpose(dims))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.complex128])
def test_reversed_and_repeated_copies(dtype, threads):
    x = RNG.integers(0, 250, (40, 61, 37)).astype(dtype)
    for dims in [(0,), (2,), (1, 2), (0, 1, 2)]:
        np.testing.assert_array_equal(F.tensor(x).flip(dims).numpy(), np.flip(x, dims))
    for dim in range(3):
        repeated = F.tensor(x).repeat_interleave(3, dim)
        np.testing.assert_array_equal(repeated.numpy(), np.repeat(x, 3, dim))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("width", [1, 3, 8, 15, 16, 31, 32, 33, 64, 100, 257])
def test_copies_of_expanded_columns(width, dtype, threads):
    x = RNG.integers(0, 250, (5, 300)).astype(dtype)
    expanded = F.tensor(x).unsqueeze(-1).expand(5, 300, width)
    np.testing.assert_array_equal(expanded.contiguous().numpy(), np.repeat(x[..., None], width, -1))
    room = F.zeros(5, 300, width + 1, dtype=expanded.dtype)
    room[..., 1:] = expanded  # rows that begin anywhere
    np.testing.assert_array_equal(room[..., 1:].numpy(), expanded.contiguous().numpy())
    assert not room[..., 0].any()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_joins(dim, threads):
    parts = [RNG.standard_normal((50, 40, 30)).astype(np.float32) for _ in range(3)]
    tensors = [F.tensor(p) for p in parts]
    np.testing.assert_array_equal(F.cat(tensors, dim).numpy(), np.concatenate(parts, dim))
    np.testing.assert_array_equal(F.stack(tensors, dim).numpy(), np.stack(parts, dim))
    mixed = [
        tensors[0],
        tensors[1].double(),
        tensors[2].transpose(0, 2).contiguous().transpose(0, 2),
    ]
    np.testing.assert_array_equal(F.cat(mixed, dim).numpy(), np.concatenate(parts, dim))
    out = F.stack([tensors[0], tensors[1]])
    np.testing.assert_array_equal(
        F.stack([out[1].clone(), out[0].clone()], out=out).numpy(), np.stack([parts[1], parts[0]])
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m, n", [(64, 64), (65, 65), (100, 70), (70, 100), (256, 256), (600, 530)])
def test_factorisations_by_panels(m, n, dtype):
    a = RNG.standard_normal((m, n)).astype(dtype)
    t = F.tensor(a)
    tight = 5e-4 if dtype == np.float32 else 1e-11
    P, L, U = same_with_two_threads(lambda: tuple(F.linalg.lu(t)))
    np.testing.assert_allclose(P @ L @ U, a, atol=tight)
    assert np.abs(L).max() <= 1
    for mode in ("reduced", "complete"):
        Q, R = same_with_two_threads(lambda mode=mode: tuple(F.linalg.qr(t, mode)))
        np.testing.assert_allclose(Q @ R, a, atol=tight)
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=tight)
        assert not np.tril(R, -1).any()
    expected = np.linalg.qr(a)[1]  # LAPACK's signs
    np.testing.assert_allclose(F.linalg.qr(t, "r").R.numpy(), expected, atol=10 * tight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [5, 16, 64, 100, 256])
@pytest.mark.parametrize("columns", [1, 9, 100])
def test_systems_with_many_columns(n, columns, dtype):
    a = (RNG.standard_normal((n, n)) + 4 * np.sqrt(n) * np.eye(n)).astype(dtype)
    b = RNG.standard_normal((n, columns)).astype(dtype)
    tight = 1e-4 if dtype == np.float32 else 1e-11
    x = same_with_two_threads(lambda: F.linalg.solve(F.tensor(a), F.tensor(b)))[0]
    np.testing.assert_allclose(a @ x, b, atol=tight)
    y = F.linalg.solve(F.tensor(a), F.tensor(b.T.copy()), left=False).numpy()
    np.testing.assert_allclose(y @ a, b.T, atol=tight)
    inverse = same_with_two_threads(lambda: F.linalg.inv(F.tensor(a)))[0]
    np.testing.assert_allclose(inverse @ a, np.eye(n), atol=tight)
    np.testing.assert_allclose(
        F.linalg.slogdet(F.tensor(a)).logabsdet.numpy(), np.linalg.slogdet(a)[1], rtol=1e-4
    )


def test_a_large_singular_matrix_is_named_by_its_pivot():
    a = RNG.standard_normal((100, 100))
    a[:, 70] = 0
    assert int(F.linalg.lu_factor_ex(F.tensor(a)).info) == 71
    assert float(F.linalg.det(F.tensor(a))) == 0
    with pytest.raises(RuntimeError, match="singular"):
        F.linalg.inv(F.tensor(a))
