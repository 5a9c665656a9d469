"""Sparse tensors of random shapes, with repeated positions and dense dimensions, against NumPy."""

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="PyTorch lacks some of these")


def random_pair(rng, shape, sparse_dims):
    """A sparse tensor and the array that it stands for."""
    count = 0 if 0 in shape[:sparse_dims] else int(rng.integers(0, 8))
    at = [rng.integers(0, size, count) for size in shape[:sparse_dims] if count] or [
        np.zeros(count, dtype=np.int64)
    ] * sparse_dims
    values = rng.integers(-3, 4, (count, *shape[sparse_dims:])).astype(float)
    array = np.zeros(shape)
    np.add.at(array, tuple(at), values)
    s = F.sparse_coo_tensor(F.tensor(np.stack(at)), F.tensor(values), shape)
    return (s.coalesce() if rng.random() < 0.5 else s), array


def random_shape(rng):
    rank = int(rng.integers(1, 4))
    shape = tuple(map(int, rng.integers(0 if rng.random() < 0.1 else 1, 5, rank)))
    return shape, int(rng.integers(1, rank + 1)), int(rng.integers(0, rank))


def check(name, found, expected):
    dense = found.to_dense().numpy()
    assert dense.shape == expected.shape, name
    np.testing.assert_allclose(dense, expected, err_msg=name)


@pytest.mark.parametrize("seed", range(60))
def test_arithmetic_and_sums(seed):
    rng = np.random.default_rng(seed)
    shape, sparse_dims, dim = random_shape(rng)
    s, a = random_pair(rng, shape, sparse_dims)
    t, b = random_pair(rng, shape, sparse_dims)
    x = rng.integers(-3, 4, shape).astype(float)
    y = rng.integers(-3, 4, [n if rng.random() < 0.5 else 1 for n in shape]).astype(float)
    check("coalesce", s.coalesce(), a)
    check("add", s + t, a + b)
    check("sub", s - t, a - b)
    check("mul", s * t, a * b)
    check("square", s.square(), a**2)
    check("dense add", F.tensor(x) + s, x + a)
    check("dense mul", s * F.tensor(x), a * x)
    check("broadcast", s * F.tensor(y), a * y)
    check("sum", F.sparse.sum(s, dim), a.sum(dim))
    check("mask", F.tensor(x).sparse_mask(F.tensor(a).to_sparse()), np.where(a != 0, x, 0))


@pytest.mark.parametrize("seed", range(60))
def test_moves(seed):
    rng = np.random.default_rng(1000 + seed)
    shape, sparse_dims, dim = random_shape(rng)
    s, a = random_pair(rng, shape, sparse_dims)
    t, b = random_pair(rng, shape, sparse_dims)
    check("cat", F.cat([s, t], dim), np.concatenate([a, b], dim))
    check("stack", F.stack([s, t], dim), np.stack([a, b], dim))
    check("unsqueeze", s.unsqueeze(dim), np.expand_dims(a, dim))
    order = [*rng.permutation(sparse_dims), *(sparse_dims + rng.permutation(s.dense_dim()))]
    check("permute", s.permute([int(d) for d in order]), a.transpose(order))
    size = shape[dim]
    if not size:
        return
    picks = rng.integers(0, size, int(rng.integers(0, 5)))
    check("index_select", s.index_select(dim, F.tensor(picks)), np.take(a, picks, dim))
    at = int(rng.integers(0, size))
    check("select", s.select(dim, at), np.take(a, at, dim))
    begin, end = sorted(map(int, rng.integers(0, size + 1, 2)))
    where = (slice(None),) * dim + (slice(begin, end, int(rng.integers(1, 3))),)
    check("slice", s[where], a[where])


@pytest.mark.parametrize("seed", range(60))
def test_layouts_and_products(seed):
    rng = np.random.default_rng(2000 + seed)
    shape = tuple(map(int, rng.integers(1, 7, 2)))
    s, a = random_pair(rng, shape, 2)
    t, b = random_pair(rng, shape, 2)
    x = rng.integers(-3, 4, shape).astype(float)
    w = rng.integers(-3, 4, (shape[1], int(rng.integers(0, 20)))).astype(float)
    block = [int(rng.choice([d for d in range(1, n + 1) if n % d == 0])) for n in shape]
    for found in (
        s,
        s.to_sparse_csr(),
        s.to_sparse_csc(),
        s.to_sparse_bsr(block),
        s.to_sparse_bsc(block),
    ):
        check("to_dense", found, a)
        check("t", found.t(), a.T)
        check("mul", found * F.tensor(x), a * x)
        check("mm", found @ F.tensor(w), a @ w)
        check("from the right", F.tensor(w.T.copy()) @ found.t(), w.T @ a.T)
        check("sparse mm", found @ t.t(), a @ b.T)
