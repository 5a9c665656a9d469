"""Sizes, strides and dtypes at which kernels take another path, against NumPy and against the
plain path."""

import math
from fractions import Fraction

import numpy as np
import pytest
from package_under_test import F

NARROW = ["bool", "uint8", "int8", "int16", "int32", "uint16", "uint32"]


def numbers(*shape: int, scale: float = 50.0) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * scale).astype(np.float32)


@pytest.mark.parametrize("first", [0, 1, 5])
def test_results_larger_than_the_cache_are_those_of_smaller_ones(first):
    # 3 x 80 MB: written past the cache, from places that are not at the beginning of a line.
    a, b = numbers(20_000_003), numbers(20_000_003, scale=3.0)
    x, y = F.from_numpy(a)[first:], F.from_numpy(b)[first:]
    np.testing.assert_array_equal((x + y).numpy(), a[first:] + b[first:])
    np.testing.assert_array_equal((x * 2).numpy(), a[first:] * np.float32(2))
    np.testing.assert_array_equal(x.clone().numpy(), a[first:])
    np.testing.assert_array_equal(x.double().numpy(), a[first:].astype(np.float64))
    np.testing.assert_array_equal((x > y).numpy(), a[first:] > b[first:])
    np.testing.assert_array_equal(
        F.where(x > 0, x, y).numpy(), np.where(a[first:] > 0, a[first:], b[first:])
    )


def test_large_rows_with_repeated_operands():
    a = numbers(5000, 4000)
    x = F.from_numpy(a)
    np.testing.assert_array_equal((x + x[0]).numpy(), a + a[0])
    np.testing.assert_array_equal((x + x[:, :1]).numpy(), a + a[:, :1])
    np.testing.assert_array_equal((x.t() + 1).numpy(), a.T + np.float32(1))
    np.testing.assert_array_equal(F.full((20_000_001,), 2.5).numpy(), np.float32(2.5))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_operands_that_are_not_dense_pass_through_buffers(dtype):
    # Longer than a buffer; in turn the result, each operand and all of them have another stride.
    n = 5000
    a, b = (numbers(2 * n, scale=40.0) + shift for shift in (60, 70))
    a, b = a.astype(dtype), b.astype(dtype)
    x, y = F.from_numpy(a), F.from_numpy(b)
    for to, left, right in [(1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 2, 2), (1, 2, 0), (2, 0, 1)]:
        p, q = x[::left][:n] if left else x[3], y[::right][:n] if right else y[3]
        v, w = a[::left][:n] if left else a[3], b[::right][:n] if right else b[3]
        out = F.zeros(2 * n, dtype=x.dtype)
        F.add(p.expand(n), q.expand(n), out=out[::to][:n])
        wanted = np.zeros(2 * n, dtype)
        wanted[::to][:n] = v + w
        np.testing.assert_array_equal(out.numpy(), wanted)
        chosen = F.where((F.arange(2 * n) % 3 == 0)[::2], p.expand(n), q.expand(n))
        kept = (np.arange(2 * n) % 3 == 0)[::2]
        np.testing.assert_array_equal(chosen.numpy(), np.where(kept, v, w))


@pytest.mark.parametrize("shape", [(24, 64, 90, 96), (24, 67, 90, 91)])
def test_large_tensors_are_transposed(shape):
    a = numbers(*shape)
    x = F.from_numpy(a)
    last = x.permute(0, 2, 3, 1).contiguous()
    np.testing.assert_array_equal(last.numpy(), a.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(last.permute(0, 3, 1, 2).contiguous().numpy(), a)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_matrices_are_transposed_by_tiles_and_what_is_left_of_them(dtype):
    for rows, columns in [(8, 8), (15, 9), (16, 64), (33, 70), (129, 31), (256, 127), (700, 520)]:
        a = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
        for part in (np.s_[:, :], np.s_[1:, 3:], np.s_[:, :-1]):
            turned = F.from_numpy(a)[part].t().contiguous()
            np.testing.assert_array_equal(turned.numpy(), a[part].T)
    # Past the cache, where the rows of the result begin with a line of it.
    a = np.arange(1 << 26, dtype=np.uint8).view(dtype).reshape(1024, -1)
    turned = F.from_numpy(a).t().contiguous().numpy()
    assert turned.tobytes() == a.T.tobytes()


@pytest.mark.parametrize("channels", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_channels_alternate(channels, dtype):
    a = np.arange(2 * channels * 37 * 41).reshape(2, channels, 37, 41).astype(dtype)
    x = F.from_numpy(a)
    last = x.permute(0, 2, 3, 1).contiguous()
    np.testing.assert_array_equal(last.numpy(), a.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(last.permute(0, 3, 1, 2).contiguous().numpy(), a)


@pytest.mark.parametrize("width", [1, 3, 16, 31, 64, 300, 700, 2100])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_short_rows_meet_repeated_operands(width, dtype):
    rows = 4000 // width + 3
    a = np.round(numbers(3, rows, width)).astype(np.float64)
    x = F.from_numpy(a).to(getattr(F, dtype))
    row, column = np.arange(width) % 7.0, np.arange(rows).reshape(rows, 1) % 5.0
    each = np.arange(3).reshape(3, 1, 1) + row
    for b in (row, column, each, column[None] * np.ones((3, 1, 1))):
        y = F.from_numpy(b.astype(np.float64)).to(x.dtype)
        np.testing.assert_array_equal((x + y).double().numpy(), a + b)
        np.testing.assert_array_equal((y - x).double().numpy(), b - a)
        np.testing.assert_array_equal((x > y).numpy(), a > b)
        z = x.clone()
        z += y
        np.testing.assert_array_equal(z.double().numpy(), a + b)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("shape", [(7,), (1001,), (70_001,), (33, 129), (129, 33)])
def test_sums_of_narrow_integers_are_exact(dtype, shape):
    a = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, shape).astype(dtype)
    x = F.from_numpy(a)
    assert x.sum().item() == int(a.astype(object).sum())
    for dim in range(a.ndim):
        assert x.sum(dim).tolist() == np.asarray(a.astype(object).sum(dim)).tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_half_types_are_as_exact_as_their_result(dtype):
    for shape in [(5,), (1001,), (40_000,), (257, 131)]:
        x = F.from_numpy(np.abs(numbers(*shape, scale=0.1))).to(getattr(F, dtype))
        for dim in [None, *range(x.dim())]:
            exact = np.asarray(x.double().numpy().sum(dim))
            error = np.abs(x.sum(dim, dtype=F.float32).numpy() - exact) / exact
            assert error.max() < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(40, 17), (40, 128), (5, 300, 129), (3, 2, 1000)])
def test_extremes_of_columns(dtype, shape):
    a = np.random.default_rng(2).integers(0, 90, shape).astype(np.float64)
    if dtype == "bool":
        a = a % 2
    for with_nan in (False, True)[: 1 + dtype.startswith(("float", "bfloat"))]:
        if with_nan:
            a[a == 7] = np.nan
        x = F.from_numpy(a).to(getattr(F, dtype))
        for dim in range(len(shape)):
            values, places = x.max(dim)
            np.testing.assert_array_equal(places.numpy(), a.argmax(dim))
            np.testing.assert_array_equal(values.double().numpy(), a.max(dim))
            np.testing.assert_array_equal(x.min(dim)[1].numpy(), a.argmin(dim))
            np.testing.assert_array_equal(x.amax(dim).double().numpy(), a.max(dim))
            np.testing.assert_array_equal(x.amin(dim).double().numpy(), a.min(dim))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float64"])
def test_running_sums_and_products_of_rows_and_columns(dtype):
    for shape in [(1,), (7,), (1000,), (9, 2049), (300, 129), (4, 50, 200)]:
        a = (np.random.default_rng(3).integers(0, 3, shape)).astype(dtype)
        wide = a.astype(np.float64 if dtype == "float64" else np.int64)
        x = F.from_numpy(a)
        for dim in range(len(shape)):
            np.testing.assert_array_equal(x.cumsum(dim).numpy(), wide.cumsum(dim))
            np.testing.assert_array_equal(x.cumprod(dim).numpy(), wide.cumprod(dim))


@pytest.mark.parametrize("n", [1, 2, 8, 15, 16, 17, 31, 32, 33])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int16", "uint8"])
def test_short_lines_are_sorted_stably(n, dtype):
    a = np.random.default_rng(4).integers(0, 12, (50, n)).astype(np.float64)
    if "float" in dtype:
        a[a == 3] = np.nan
        a[a == 0] = np.where(np.arange((a == 0).sum()) % 2, 0.0, -0.0)
    for b, dim in ((a, 1), (a.T.copy(), 0)):
        x = F.from_numpy(b).to(getattr(F, dtype))
        order = np.argsort(b, dim, kind="stable")
        values, places = F.sort(x, dim=dim, stable=True)
        np.testing.assert_array_equal(places.numpy(), order)
        np.testing.assert_array_equal(values.double().numpy(), np.take_along_axis(b, order, dim))
        down = np.argsort(np.where(np.isnan(b), -np.inf, -b), dim, kind="stable")
        values, places = F.sort(x, dim=dim, descending=True, stable=True)
        np.testing.assert_array_equal(places.numpy(), down)
        k = (n + 1) // 2
        np.testing.assert_array_equal(
            x.topk(k, dim)[0].double().numpy(),
            np.take_along_axis(b, down, dim).take(range(k), dim),
        )


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_integers_divide_as_in_python(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    some = np.random.default_rng(5)
    edges = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100]
    edges += [s * (1 << b) + d for b in (31, 52, 53, 62) for s in (1, -1) for d in (-1, 0, 1)]
    edges = [e for e in edges if low <= e <= high]
    a = [x for x in edges for _ in edges] + some.integers(low, high, 4000, dtype).tolist()
    b = [y for _ in edges for y in edges] + some.integers(low, high, 4000, dtype).tolist()
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if y != 0 and not (x == low and y == -1)]
    x, y = (F.tensor(list(column), dtype=getattr(F, dtype)) for column in zip(*pairs, strict=True))
    assert (x // y).tolist() == [p // q for p, q in pairs]
    assert (x % y).tolist() == [p % q for p, q in pairs]
    assert F.fmod(x, y).tolist() == [abs(p) % abs(q) * (-1 if p < 0 else 1) for p, q in pairs]
    assert F.div(x, y, rounding_mode="trunc").tolist() == [
        abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs
    ]
    for divisor in (1, 3, 10, 127):
        assert (x // divisor).tolist() == [p // divisor for p, _ in pairs]
        assert (x % divisor).tolist() == [p % divisor for p, _ in pairs]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_quotients_with_any_number_of_bits(dtype):
    rng = np.random.default_rng(2)
    b = (rng.standard_normal(3000) * 3).astype(dtype)
    for bits in (0, 10, 22, 23, 24, 27, 29, 51, 53):
        a = (b * 2.0**bits * rng.uniform(-1, 1, 3000)).astype(dtype)
        x, y = F.from_numpy(a), F.from_numpy(b)
        np.testing.assert_array_equal(F.fmod(x, y).numpy(), np.fmod(a, b))
        np.testing.assert_array_equal(F.remainder(x, y).numpy(), np.remainder(a, b))


def test_functions_of_any_nan_are_nan():
    bits = np.r_[0x7F800001:0x7F800201, 0xFFC00000:0xFFC00200].astype(np.uint32)
    x = F.from_numpy(bits.view(np.float32))
    names = ("exp", "exp2", "expm1", "sigmoid", "tanh", "erf")
    for f in [getattr(F, name) for name in names] + [F.nn.functional.silu, F.nn.functional.gelu]:
        assert f(x).isnan().all() and f(x.double()).isnan().all()


def test_common_divisors_of_large_integers():
    pairs = [
        (1 << 62, 3 << 55),
        ((1 << 62) + 1, 7),
        (-(1 << 61), 6),
        ((1 << 53) + 1, (1 << 54) + 2),
    ]
    x, y = (F.tensor(list(column)) for column in zip(*pairs, strict=True))
    assert F.gcd(x, y).tolist() == [math.gcd(p, q) for p, q in pairs]


def test_many_points_on_few_places_do_not_depend_on_threads():
    index = F.from_numpy(np.random.default_rng(6).integers(0, 500, 200_000))
    values = F.from_numpy(numbers(200_000))
    before, results = F.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            F.set_num_threads(threads)
            results.append(F.zeros(500).scatter_add(0, index, values))
            results.append(F.zeros(500).index_add(0, index, values))
            results.append(F.zeros(500).index_put((index - 500,), values, accumulate=True))
    finally:
        F.set_num_threads(before)
    exact = np.bincount(index.numpy(), values.double().numpy(), 500)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), results[0].numpy())
        np.testing.assert_allclose(result.numpy(), exact, rtol=1e-3, atol=1e-2)


def test_a_bad_index_leaves_few_places_as_they_were():
    index = F.zeros(100_000, dtype=F.int64)
    index[-1] = 10
    target = F.ones(10)
    with pytest.raises((IndexError, RuntimeError), match="10"):
        target.scatter_add_(0, index, F.ones(100_000))
    with pytest.raises((IndexError, RuntimeError), match="10"):
        target.index_add_(0, index, F.ones(100_000))
    assert target.tolist() == [1.0] * 10


def test_half_types_are_added_to_rows_in_float32():
    index = F.from_numpy(np.random.default_rng(7).integers(0, 40, 3000))
    values = F.from_numpy(np.abs(numbers(3000, 33, scale=0.01))).to(F.bfloat16)
    result = F.zeros(40, 33, dtype=F.bfloat16).index_add(0, index, values)
    exact = F.zeros(40, 33, dtype=F.float64).index_add(0, index, values.double())
    np.testing.assert_allclose(result.double().numpy(), exact.numpy(), rtol=1 / 256)


def test_slices_of_a_batch_are_gathered():
    a = numbers(8, 50, 33)
    index = np.random.default_rng(8).integers(0, 50, (8, 20, 1))
    spread = F.from_numpy(index).expand(8, 20, 33)
    expected = np.take_along_axis(a, np.broadcast_to(index, (8, 20, 33)), 1)
    np.testing.assert_array_equal(F.from_numpy(a).gather(1, spread).numpy(), expected)
    turned = F.from_numpy(a.transpose(0, 2, 1).copy()).transpose(1, 2)
    np.testing.assert_array_equal(turned.gather(1, spread).numpy(), expected)


def test_clamp_between_limits():
    nan = float("nan")
    a = np.array([1.0, nan, -3.0, 5.0, 0.0])
    x = F.from_numpy(a)
    for low, high in [(0, 2), (2, 0), (nan, 1), (0, nan), (-1, -1)]:
        expected = np.minimum(np.maximum(a, low), high)
        np.testing.assert_array_equal(x.clamp(low, high).numpy(), expected)
    y = F.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    low, high = (F.tensor(v, requires_grad=True) for v in (-1.0, 1.0))
    y.clamp(low, high).sum().backward()
    assert y.grad.tolist() == [0, 1, 0] and low.grad.item() == 1 and high.grad.item() == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("count", [1, 2, 17])
def test_small_tensors_are_changed_in_place(dtype, count):
    kind = getattr(F, dtype)
    for other in (
        F.tensor(0.25, dtype=kind),
        F.full((1,), 0.25, dtype=kind),
        F.full((count,), 0.25, dtype=kind),
        F.full((count, 2), 0.25, dtype=kind)[:, 0],
    ):
        x = F.full((count,), 3.0, dtype=kind)
        x.mul_(other).add_(other)
        assert x.tolist() == [1.0] * count
        x = F.full((count, 2), 3.0, dtype=kind)
        x[:, 1].mul_(other)
        assert x.tolist() == [[3.0, 0.75]] * count


@pytest.mark.parametrize("n", [3, 4, 7, 1000, 70_001])
def test_running_sums_of_float32_are_kept_in_float64(n):
    x = numbers(3, n, scale=1e3)
    exact = np.cumsum(x.astype(np.float64), axis=1).astype(np.float32)
    got = F.cumsum(F.from_numpy(x), 1).numpy()
    np.testing.assert_array_max_ulp(got, exact, maxulp=1)
    np.testing.assert_array_equal(got[1], F.cumsum(F.from_numpy(x[1]), 0).numpy())
    x[0, 2] = np.inf
    sums = F.cumsum(F.from_numpy(x), 1).numpy()
    assert np.isfinite(sums[0, :2]).all() and (sums[0, 2:] == np.inf).all()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_many_tensors_are_joined_to_few_rows(dtype):
    # Pieces of any length, some of them empty, that parts of the work begin and end within.
    lengths = np.random.default_rng(3).integers(0, 4000, 300)
    for rows in (1, 2, 8, 9):
        parts = [np.arange(i, i + rows * n).reshape(rows, n) for i, n in enumerate(lengths)]
        parts = [part.astype(dtype) for part in parts]
        tensors = [F.from_numpy(part) for part in parts]
        wanted = np.concatenate(parts, 1)
        np.testing.assert_array_equal(F.cat(tensors, 1).numpy(), wanted)
        wide = [F.cat([t, t], 1)[:, : t.shape[1]] for t in tensors]  # rows that are apart
        np.testing.assert_array_equal(F.cat(wide, 1).numpy(), wanted)
    single = [np.array([i]).astype(dtype) for i in range(1000)]
    np.testing.assert_array_equal(
        F.cat([F.from_numpy(x) for x in single]).numpy(), np.ravel(single)
    )
    rows = [np.full(700, i).astype(dtype) for i in range(500)]
    np.testing.assert_array_equal(F.stack([F.from_numpy(x) for x in rows]).numpy(), rows)


def test_tensors_larger_than_the_cache_are_joined():
    parts = [numbers(9_000_001), numbers(3), numbers(8_000_000, scale=2.0)]
    joined = F.cat([F.from_numpy(part) for part in parts])
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(parts))


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "int64", "complex64"])
def test_columns_of_tensors_are_joined(dtype):
    x = F.from_numpy(numbers(6, 50, 700)).to(getattr(F, dtype))
    parts = [x[..., :100], x[..., 300:], x[..., 100:300]]
    joined = F.cat(parts, -1)
    at = 0
    for part in parts:
        assert F.equal(joined[..., at : at + part.shape[-1]], part)
        at += part.shape[-1]
    rows = F.stack([x[:, 1], x[:, 7], x[:, 1]], 1)  # rows far from each other
    for i, k in enumerate((1, 7, 1)):
        assert F.equal(rows[:, i], x[:, k])


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "int64", "complex128"])
def test_two_tensors_alternate(dtype):
    x, y = (F.from_numpy(numbers(301, 203, scale=s)).to(getattr(F, dtype)) for s in (9, 4))
    pairs = F.stack([x, y], -1)
    assert F.equal(pairs[..., 0], x)
    assert F.equal(pairs[..., 1], y)
    odd = F.stack([y.flatten()[1:], y.flatten()[:-1]], -1)  # both in one memory
    assert F.equal(odd[:, 0], y.flatten()[1:])
    assert F.equal(odd[:, 1], y.flatten()[:-1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_become_complex_numbers(dtype):
    a, b = (numbers(211, 97, scale=s).astype(dtype) for s in (9, 4))
    np.testing.assert_array_equal(F.complex(F.from_numpy(a), F.from_numpy(b)).numpy(), a + 1j * b)
    wide = F.complex(F.from_numpy(a), F.from_numpy(b[:1])).numpy()
    np.testing.assert_array_equal(wide, a + 1j * b[:1])
    turned = F.complex(F.from_numpy(a).t(), F.from_numpy(b).t()).numpy()
    np.testing.assert_array_equal(turned, (a + 1j * b).T)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8"])
def test_sequences_longer_than_a_block(dtype):
    target = getattr(F, dtype)
    n = 70_001
    counted = F.arange(n, dtype=F.int64)
    if dtype == "bfloat16":  # vectors of sixteen have first elements that are rounded
        m = 30_016
        i = counted[:m]
        assert F.equal(F.arange(m, dtype=target), ((i - i % 16).to(target) + i % 16).to(target))
    else:
        assert F.equal(F.arange(n, dtype=target), counted.to(target))
    half, stored = n // 2, np.dtype("float32" if dtype == "bfloat16" else dtype).type

    def fused(base, step, at):  # rounded once
        return float(Fraction(float(base)) + Fraction(float(step)) * int(at))

    positions = [0, 1, 7, 511, 512, 513, 32_771, half - 1, half, half + 1, n - 2, n - 1]
    if dtype == "float64":
        counted = F.arange(0.5, 0.5 + 30_001 * 0.1 - 0.05, 0.1, dtype=target)
        for i in (0, 1, 7, 510, 511, 512, 513, 29_997, 29_998, 29_999):  # vectors of four
            first = fused(0.5, 0.1, i - i % 4)
            assert counted[i].item() == fused(first, 0.1, i % 4)
        assert counted[30_000].item() == fused(0.5, 0.1, 30_000)  # after the last pair of them
    spaced = F.linspace(3, 11, n, dtype=target)
    if dtype == "bfloat16":  # rounded at each step
        i = F.arange(n)
        step = F.tensor(8.0).to(target) / F.tensor(n - 1.0).to(target)
        rising, falling = 3 + step * i.to(target), 11 - step * (n - 1 - i).to(target)
        assert F.equal(spaced, F.where(i < half, rising, falling))
        return
    step = np.float32(8) / np.float32(n - 1) if dtype == "float32" else 8 / (n - 1)
    for i in positions:
        value = fused(3, step, i) if i < half else fused(11, -step, n - 1 - i)
        assert spaced[i].item() == stored(value)


def test_a_tensor_equals_itself_unless_it_holds_nan():
    x = F.tensor([1.0, math.nan])
    assert not F.equal(x, x)
    assert not F.equal(x.to(F.complex64), x.to(F.complex64))
    n = F.tensor([1, 2])
    assert F.equal(n, n)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64", "uint8"])
def test_scans_of_strided_tensors(dtype):
    x = F.from_numpy(np.abs(numbers(60, 90, scale=2.0))).to(getattr(F, dtype))
    x[3, 7] = x[40, 60]
    for strided in (x.t(), x[:, ::2], x[::3].t()):
        dense = strided.contiguous()
        for dim in (0, 1):
            assert F.equal(F.cumsum(strided, dim), F.cumsum(dense, dim))
            assert F.equal(F.cumprod(strided, dim), F.cumprod(dense, dim))
            got, want = F.cummax(strided, dim), F.cummax(dense.float(), dim)
            assert F.equal(got.values.float(), want.values)
            assert F.equal(got.indices, want.indices)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("n", [1, 2047, 2049, 70_001, 300_000])
def test_both_extremes_of_all_elements(dtype, n):
    x = F.from_numpy(np.abs(numbers(n))).to(getattr(F, dtype))
    for at in (0, n // 2, n - 1):
        x[at] = 0
        low, high = F.aminmax(x)
        assert low.dtype == high.dtype == x.dtype
        assert low == x.amin() == 0
        assert high == x.amax()
    if x.is_floating_point():
        x[n // 3] = math.nan
        assert all(e.isnan() for e in F.aminmax(x))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_bits_are_shifted_by_a_number(dtype):
    n = np.arange(-300, 300).astype(dtype)
    x = F.from_numpy(n.copy())
    for count in (0, 1, 4, 7):
        np.testing.assert_array_equal((x >> count).numpy(), n >> np.array(count, dtype))
        np.testing.assert_array_equal((x << count).numpy(), n << np.array(count, dtype))
    assert not (x << n.itemsize * 8).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_larger_and_smaller_of_rows_and_columns(dtype):
    a = numbers(70, 400).astype(dtype)
    x = F.from_numpy(a)
    for other in (a[:1] / 2, a[:, :1] / 2):
        y = F.from_numpy(other.astype(dtype))
        np.testing.assert_array_equal(F.maximum(x, y).numpy(), np.maximum(a, y.numpy()))
        np.testing.assert_array_equal(F.minimum(y, x).numpy(), np.minimum(a, y.numpy()))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_large_operands_across_the_result(dtype):
    a, b = numbers(1100, 1000), numbers(1000, 1100)
    x, y = F.from_numpy(a).to(getattr(F, dtype)), F.from_numpy(b).to(getattr(F, dtype))
    small = slice(0, 700), slice(300, 340)
    for across in (y.t(), y.reshape(100, 10, 1100).permute(2, 0, 1).reshape(1100, 1000)):
        want = x[small].clone() + across[small].clone()
        assert F.equal((x + across)[small], want)
        assert F.equal((across + x)[small], want)
        assert F.equal(F.where(x > across, x, across)[small], F.maximum(x, across)[small])
        z = x.clone()
        z += across
        assert F.equal(z[small], want)
    wide = F.from_numpy(a) + y.t()  # of two dtypes
    assert F.equal(wide[small], F.from_numpy(a)[small].clone() + y.t()[small].clone())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_many_short_rows_that_are_apart(dtype):
    x = F.from_numpy(numbers(40, 60)).to(getattr(F, dtype))
    windows = x.unfold(1, 3, 1)
    dense = windows.clone()
    assert F.equal(windows * 2, dense * 2)
    assert F.equal(windows + windows.flip(2), dense + dense.flip(2))
    assert F.equal(windows + windows[:1, :1], dense + dense[:1, :1])
    out = F.zeros(40, 58, 4).to(getattr(F, dtype))
    out[..., :3] += windows
    assert F.equal(out[..., :3], dense)
    assert not out[..., 3].any()
