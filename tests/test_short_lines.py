"""Short lines, narrow columns and tiny matrices, which have loops of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import facula

LENGTHS = [1, 2, 3, 5, 10, 16, 17, 31, 32, 33, 64, 100, 128, 129]
DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool"]


def _few_values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Numbers with many ties; floats also have NaN and both zeros."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 7, shape).astype(dtype)
    if dtype.startswith("float"):
        x -= 3
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.1] = -0.0
    return x


def _order(x: Any, descending: bool) -> Any:
    """A stable order of rows in which NaN is the largest."""
    keys = x.astype("float64")
    keys = np.where(np.isnan(keys), np.inf, keys)
    return np.argsort(-keys if descending else keys, axis=-1, kind="stable")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_short_lines_are_sorted_stably(n: int, dtype: str) -> None:
    for lines in (1, 15, 16, 37):
        x = _few_values((lines, n), dtype, seed=n)
        for descending in (False, True):
            want = _order(x, descending)
            for given in (facula.tensor(x), facula.tensor(np.ascontiguousarray(x.T)).t()):
                values, at = facula.sort(given, descending=descending, stable=True)
                np.testing.assert_array_equal(at.numpy(), want)
                np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, want, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_topk_and_picks_of_short_lines_agree_with_the_sorted_line(n: int, dtype: str) -> None:
    x = _few_values((40, n), dtype, seed=n)
    order = _order(x, False)
    for k in {1, (n + 1) // 2, n}:
        values, at = facula.topk(facula.tensor(x), k, largest=False)
        np.testing.assert_array_equal(at.numpy(), order[:, :k])
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order[:, :k], -1))
        np.testing.assert_array_equal(
            facula.kthvalue(facula.tensor(x), k).indices.numpy(), order[:, k - 1]
        )
    plain = np.where(np.isnan(x), 0, x).astype(dtype)
    np.testing.assert_array_equal(
        facula.median(facula.tensor(plain), -1).values.numpy(),
        np.sort(plain, -1)[:, (n - 1) // 2],
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16"])
@pytest.mark.parametrize("n", [513, 2000, 70000, 140000])
def test_medians_of_long_lines_are_those_of_the_sorted_line(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    for x in (rng.normal(0, 1000, n), np.sort(rng.normal(0, 9, n)), rng.integers(0, 3, n)):
        x = x.astype(dtype)
        order = np.argsort(x, kind="stable")
        for k in (1, n // 3, n - 1, n):
            assert facula.kthvalue(facula.tensor(x), k).indices.item() == order[k - 1]
        assert facula.median(facula.tensor(x)).item() == x[order[(n - 1) // 2]]


def test_medians_of_long_lines_with_nan() -> None:
    x = np.random.default_rng(0).normal(size=5000).astype("float32")
    x[7::13] = np.nan
    kept = np.sort(x[~np.isnan(x)])
    assert facula.median(facula.tensor(x), 0).indices.item() == 7
    assert facula.nanmedian(facula.tensor(x)).item() == kept[(len(kept) - 1) // 2]


@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        *(((300, n), 1) for n in (2, 3, 10, 32, 33, 63, 64, 65, 200)),
        *(((n, 10), 0) for n in (3, 40, 52, 1000, 9000)),
        ((5, 300, 3), 1),
        ((64, 10, 100), 1),
        ((4, 7, 5), 2),
    ],
)
def test_extrema_stand_where_they_are_first(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x = _few_values(shape, dtype)
    wide = x.astype("float64")
    for largest in (True, False):
        keys = np.where(np.isnan(wide), np.inf, wide if largest else -wide)
        want = np.argmax(keys, axis=dim)
        found = (facula.max if largest else facula.min)(facula.tensor(x), dim)
        np.testing.assert_array_equal(found.indices.numpy(), want)
        taken = np.take_along_axis(x, np.expand_dims(want, dim), dim).squeeze(dim)
        np.testing.assert_array_equal(found.values.numpy(), taken)
        every_other = facula.tensor(np.repeat(x, 2, axis=-1))[..., ::2]
        strided = (facula.argmax if largest else facula.argmin)(every_other, dim)
        np.testing.assert_array_equal(strided.numpy(), want)


def test_largest_of_tiny_numbers_and_of_limits() -> None:
    tiny = np.zeros(100, "float32")
    tiny[50:] = 1e-45
    assert facula.max(facula.tensor(tiny), 0).indices.item() == 50
    assert facula.min(facula.tensor(tiny), 0).indices.item() == 0
    least = np.full(100, np.iinfo("int64").min)
    least[70] += 1
    assert facula.max(facula.tensor(least), 0).indices.item() == 70
    assert facula.min(facula.tensor(least), 0).indices.item() == 0
    endless = np.full(100, -np.inf, "float32")
    assert facula.max(facula.tensor(endless), 0).indices.item() == 0


@pytest.mark.parametrize("count", [1, 2, 3, 10, 63, 64])
def test_gather_and_scatter_along_short_lines(count: int) -> None:
    rng = np.random.default_rng(count)
    x = rng.normal(size=(700, 10)).astype("float32")
    at = rng.integers(0, 10, (700, count))
    values = rng.normal(size=(700, count)).astype("float32")
    got = facula.gather(facula.tensor(x), 1, facula.tensor(at))
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, at, 1))
    turned = facula.gather(facula.tensor(x).t(), 0, facula.tensor(at).t())
    np.testing.assert_array_equal(turned.numpy(), np.take_along_axis(x, at, 1).T)
    put, added = x.copy(), x.copy()
    np.put_along_axis(put, at[:, :1], values[:, :1], 1)
    for i in range(count):
        np.add.at(added, (np.arange(700), at[:, i]), values[:, i])
    index, source = facula.tensor(at), facula.tensor(values)
    first = facula.tensor(x).scatter(1, index[:, :1], source[:, :1])
    np.testing.assert_array_equal(first.numpy(), put)
    np.testing.assert_array_equal(facula.tensor(x).scatter_add(1, index, source).numpy(), added)
    at[650, count - 1] = 10
    with pytest.raises((RuntimeError, IndexError), match="index 10"):
        facula.gather(facula.tensor(x), 1, facula.tensor(at))


@pytest.mark.parametrize("n", [1, 15, 16, 63, 64, 65, 8191, 8192, 8193, 20000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_masks_of_any_density(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    x, mask = rng.normal(size=n).astype("float32"), rng.random(n) < share
    t, m = facula.tensor(x), facula.tensor(mask)
    np.testing.assert_array_equal(facula.masked_select(t, m).numpy(), x[mask])
    np.testing.assert_array_equal(facula.nonzero(m)[:, 0].numpy(), np.flatnonzero(mask))
    want = np.zeros(n, "float32")
    want[mask] = x[: mask.sum()]
    np.testing.assert_array_equal(facula.zeros(n).masked_scatter(m, t).numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (2, 2, 2), (3, 4, 5), (8, 8, 8), (1, 16, 16), (16, 9, 1)]
)
def test_many_tiny_products(m: int, k: int, n: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for batch in (8, 37):
        a = rng.integers(-4, 5, (batch, m, k)).astype(dtype)
        b = rng.integers(-4, 5, (batch, k, n)).astype(dtype)
        c = rng.integers(-4, 5, (batch, m, n)).astype(dtype)
        x, y = facula.tensor(a), facula.tensor(b)
        np.testing.assert_array_equal(facula.bmm(x, y).numpy(), a @ b)
        turned = facula.bmm(y.transpose(1, 2), x.transpose(1, 2))
        np.testing.assert_array_equal(turned.numpy(), (a @ b).transpose(0, 2, 1))
        apart = facula.tensor(np.repeat(a, 2, axis=-1))[..., ::2]
        np.testing.assert_array_equal(facula.bmm(apart, y).numpy(), a @ b)
        both = facula.baddbmm(facula.tensor(c), x, y, beta=2, alpha=3)
        np.testing.assert_array_equal(both.numpy(), 2 * c + 3 * (a @ b))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("shape", [(2, 3), (9, 1), (40, 10), (300, 7), (20, 16), (30, 40)])
def test_pdist_is_the_upper_triangle_of_cdist(shape: tuple[int, int], p: float) -> None:
    x = facula.tensor(np.random.default_rng(1).normal(size=shape), requires_grad=True)
    rows, columns = np.triu_indices(shape[0], 1)
    mode = "donot_use_mm_for_euclid_dist"
    all_pairs = facula.cdist(x, x, p, compute_mode=mode)[
        facula.tensor(rows), facula.tensor(columns)
    ]
    some_pairs = facula.pdist(x, p)
    np.testing.assert_allclose(some_pairs.detach().numpy(), all_pairs.detach().numpy(), rtol=1e-12)
    weight = facula.arange(len(rows), dtype=facula.float64)
    (one,) = facula.autograd.grad((some_pairs * weight).sum(), x)
    (other,) = facula.autograd.grad((all_pairs * weight).sum(), x)
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


def _running_extreme(line: Any, largest: bool) -> tuple[Any, list[int]]:
    values, places, best = line.copy(), [], 0
    for i, x in enumerate(line):
        held = line[best]
        if x != x or (held == held and (x >= held if largest else x <= held)):
            best = i
        values[i] = line[best]
        places.append(best)
    return values, places


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("n", [*LENGTHS, 300])
def test_running_extrema_are_the_last_of_equal_ones(n: int, dtype: str) -> None:
    """Lines that rise, fall, repeat and jump; NaN wins and stays, zeros keep their signs."""
    some = _few_values((n,), dtype, seed=n)
    calm = np.sort(np.nan_to_num(some))
    steps = np.arange(n).astype(dtype)
    for line in (some, calm, calm[::-1].copy(), steps, steps[::-1].copy(), steps % 20 * 5):
        for largest, function in ((True, facula.cummax), (False, facula.cummin)):
            values, places = _running_extreme(line, largest)
            got = function(facula.tensor(line), 0)
            np.testing.assert_array_equal(got.values.numpy(), values)
            np.testing.assert_array_equal(np.signbit(got.values.numpy()), np.signbit(values))
            assert got.indices.tolist() == places


@pytest.mark.parametrize("shape", [(40, 100), (3, 10, 100), (3, 100, 10), (2, 300, 6), (7, 2)])
def test_extrema_and_sums_over_any_dimension(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "float64"):
        x = np.random.default_rng(2).integers(-9, 9, shape).astype(dtype)
        with_nan = x.copy()
        with_nan[(0,) * len(shape)] = np.nan
        for dim in range(len(shape)):
            np.testing.assert_array_equal(facula.amax(facula.tensor(x), dim).numpy(), x.max(dim))
            np.testing.assert_array_equal(facula.sum(facula.tensor(x), dim).numpy(), x.sum(dim))
            np.testing.assert_array_equal(
                facula.amin(facula.tensor(with_nan), dim).numpy(), with_nan.min(dim)
            )


def test_any_and_all_of_bytes() -> None:
    for n in (1, 100, 70000):
        x = np.zeros(n, "uint8")
        assert not facula.any(facula.tensor(x)).item()
        x[n // 2] = 128
        assert facula.any(facula.tensor(x)).item()
        assert facula.all(facula.tensor(x)).item() == (n == 1)
        assert facula.all(facula.tensor(np.full(n, -1, "int8"))).item()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [*range(33, 70), 100, 127, 128, 200, 1000, 1024, 1025])
def test_sums_of_rows_do_not_depend_on_their_company(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    x = rng.standard_normal((90, n)).astype(dtype)
    x[3, n // 2], x[20, 0], x[40] = np.nan, np.inf, -0.0
    given = facula.tensor(x)
    alone = facula.stack([row.sum() for row in given])
    np.testing.assert_allclose(alone.numpy(), x.astype("float64").sum(1), rtol=1e-4, atol=1e-4)
    for begin, end in ((0, 90), (0, 16), (1, 88), (5, 7), (10, 25)):
        together = given[begin:end].sum(1)
        np.testing.assert_array_equal(together.numpy(), alone[begin:end].numpy())
    gaps = facula.zeros(90, n + 3, dtype=given.dtype)[:, :n].copy_(given)
    np.testing.assert_array_equal(gaps.sum(-1).numpy(), alone.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("n", [31, 32, 33, 48, 55, 56, 57, 63, 64])
def test_folds_of_many_short_rows_are_those_of_numpy(n: int, dtype: str) -> None:
    x = _few_values((150, n), dtype, seed=n)
    given = facula.tensor(x)
    np.testing.assert_array_equal(given.amax(1).numpy(), x.max(1))
    np.testing.assert_array_equal(given.amin(1).numpy(), x.min(1))
    signs = np.where(x > 1, 2, -1).astype(dtype)  # whose products are exact
    np.testing.assert_array_equal(facula.tensor(signs).prod(1).numpy(), signs.prod(1))
    np.testing.assert_array_equal(given.sum(1).numpy(), x.sum(1))
