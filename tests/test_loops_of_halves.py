"""Loops that read and write half precision, and reductions of short rows and narrow columns."""

from __future__ import annotations

import numpy as np
import pytest

import facula

HALVES = [facula.float16, facula.bfloat16]


def every_value(dtype: facula.dtype) -> facula.Tensor:
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    return facula.from_numpy(bits.copy()).view(dtype)[: (1 << 16) - 5]  # no whole vectors


def rounded(x: np.ndarray, dtype: facula.dtype) -> np.ndarray:
    return facula.tensor(x.astype(np.float32)).to(dtype).float().numpy()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
def test_result_is_that_of_float32_rounded_once(name, dtype):
    a = every_value(dtype)
    b = a[facula.randperm(len(a))].contiguous()
    with np.errstate(all="ignore"):
        want = getattr(facula, name)(a.float(), b.float()).numpy()
    got = getattr(facula, name)(a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.float().numpy(), rounded(want, dtype))


def slope_of(function):
    def gradient(x):
        x = x.detach().requires_grad_()
        y = function(x)
        (g,) = facula.autograd.grad(y, x, facula.full_like(y, 1.5))
        return g

    return gradient


F = facula.nn.functional
UNARY = {
    "floor": facula.floor,
    "ceil": facula.ceil,
    "round": facula.round,
    "trunc": facula.trunc,
    "frac": facula.frac,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "gelu": F.gelu,
    "leaky_relu": F.leaky_relu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "sin": facula.sin,
    "cos": facula.cos,
    "erf": facula.erf,
    "prelu": lambda x: F.prelu(x, facula.tensor([0.3], dtype=x.dtype)),
    "leaky_relu_slope": slope_of(F.leaky_relu),
    "hardswish_slope": slope_of(F.hardswish),
    "hardsigmoid_slope": slope_of(F.hardsigmoid),
    "threshold_slope": slope_of(lambda x: F.threshold(x, 0.1, 20.0)),
    "logsigmoid_slope": slope_of(F.logsigmoid),
    "silu_slope": slope_of(F.silu),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", UNARY)
def test_function_of_every_value_is_that_of_float32_rounded_once(name, dtype):
    a = every_value(dtype)
    if name == "prelu":  # the weight is one of half precision, too
        weight = facula.tensor([0.3], dtype=dtype).float()
        want = F.prelu(a.float(), weight)
    else:
        want = UNARY[name](a.float())
    got = UNARY[name](a)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.float().numpy(), rounded(want.numpy(), dtype))
    # Zeros keep their signs, and strides do not matter.
    assert facula.equal(facula.signbit(got[got == 0]), facula.signbit(want.to(dtype)[got == 0]))
    np.testing.assert_array_equal(UNARY[name](a[::3]).float().numpy(), got[::3].float().numpy())


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("n", [1, 7, 16, 31, 32, 33, 100, 1000, 70_000, 200_001])
def test_dot_product_is_added_in_float32(n, dtype):
    a = (facula.arange(n) * 7919 % 17 - 8).to(dtype)
    b = (facula.arange(n) * 104729 % 13 - 6).to(dtype)
    want = float(np.dot(a.double().numpy(), b.double().numpy()))
    assert facula.dot(a, b).item() == facula.tensor(want, dtype=facula.float32).to(dtype).item()
    spread = facula.zeros(n, 3, dtype=dtype)
    spread[:, 1] = a
    assert facula.dot(spread[:, 1], b).item() == facula.dot(a, b).item()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_values_that_are_not_numbers(dtype, largest):
    x = facula.randn(20_000).to(dtype)
    x[100:15_000] = -facula.inf
    x[7_000:7_010] = facula.inf
    x[18_000] = facula.nan
    x[19_000] = -facula.tensor(facula.nan, dtype=dtype)  # with a sign
    x[19_500], x[19_501] = 0.0, -0.0
    values, places = x.topk(40, largest=largest)
    order = x.sort(descending=largest)
    assert places.tolist() == order.indices[:40].tolist()
    np.testing.assert_array_equal(values.float().numpy(), order.values[:40].float().numpy())


@pytest.mark.parametrize("dtype", HALVES)
def test_sign_changes_in_every_value(dtype):
    a = every_value(dtype)
    np.testing.assert_array_equal((-a).float().numpy(), -a.float().numpy())
    np.testing.assert_array_equal(a.abs().float().numpy(), np.abs(a.float().numpy()))


@pytest.mark.parametrize("dtype", HALVES)
def test_number_is_not_rounded_to_half_precision(dtype):
    a = facula.full((100,), 3.0, dtype=dtype)
    number = 1.0009765625 + 2.0**-12  # between two values of float16
    want = rounded(np.float32(3.0) * np.full(100, number, np.float32), dtype)
    np.testing.assert_array_equal((a * number).float().numpy(), want)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 31, 32, 33])
@pytest.mark.parametrize("rows", [63, 64, 65, 1000])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, facula.bfloat16, facula.int32])
def test_short_rows_and_narrow_columns_are_folded(width, rows, dim, dtype):
    x = (facula.arange(rows * width) * 7919 % 201 - 100).reshape(rows, width)
    given, plain = x.to(dtype), x.numpy()
    np.testing.assert_array_equal(given.amax(dim).double().numpy(), plain.max(dim))
    total = given.sum(dim, dtype=facula.float64 if given.is_floating_point() else None)
    np.testing.assert_array_equal(total.double().numpy(), plain.sum(dim))
    if given.is_floating_point():
        lengths = facula.linalg.vector_norm(given, dim=dim, dtype=facula.float64)
        np.testing.assert_allclose(lengths.numpy(), np.linalg.norm(plain, axis=dim), rtol=1e-12)


def test_nan_in_a_short_row_reaches_its_maximum_only():
    x = facula.zeros(100, 8)
    x[37, 5] = float("nan")
    assert x.amax(1).isnan().nonzero().tolist() == [[37]]


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, *HALVES])
def test_nan_and_infinity_anywhere_in_a_row_reach_its_extremes(dtype):
    n = 300
    x = facula.randn(n, n).to(dtype)
    x.diagonal().fill_(facula.nan)
    assert x.amax(1).isnan().all() and x.amin(1).isnan().all()
    x.diagonal().fill_(facula.inf)
    assert (x.amax(1) == facula.inf).all() and x.amin(1).isfinite().all()
    x.diagonal().fill_(1000.0)
    assert (x.amax(1) == 1000).all() and (x.amin(1) < 0).all()


def test_largest_difference_keeps_nan():
    x, y = facula.zeros(3, 40), facula.ones(2, 40)
    x[1, 3] = float("nan")
    x[2, 39] = -4.0
    d = facula.cdist(x, y, p=float("inf"))
    assert d[1].isnan().all() and d[0].tolist() == [1.0, 1.0] and d[2].tolist() == [5.0, 5.0]


@pytest.mark.parametrize("dtype", [*HALVES, facula.int8, facula.uint8, facula.int32])
@pytest.mark.parametrize("rows", [1, 4, 7, 8, 13, 140])
@pytest.mark.parametrize("width", [5, 16, 31, 32, 40, 100, 129])
def test_sums_of_columns_of_narrow_elements(width, rows, dtype):
    x = (facula.arange(rows * width) * 7919 % 101).reshape(rows, width).to(dtype)
    wide = facula.float32 if x.is_floating_point() else facula.int64
    np.testing.assert_array_equal(x.sum(0, dtype=wide).numpy(), x.to(wide).numpy().sum(0))
    if x.is_floating_point():
        x[rows // 2, width - 1] = float("nan")
        total = x.sum(0, dtype=wide)
        assert total.isnan().nonzero().tolist() == [[width - 1]]
        assert x.nansum(0, dtype=wide).isfinite().all()


@pytest.mark.parametrize("n", [16, 33, 63, 64, 65, 100, 127, 256, 1000])
@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, facula.int32, facula.int64])
def test_rows_that_are_folded_together_are_those_folded_alone(n, dtype):
    x = (facula.arange(150 * n) * 7919 % 2003 - 1000).reshape(150, n).to(dtype)
    y = x / 1000 if x.is_floating_point() else x
    for name in ("amax", "amin", "prod", "sum"):
        together = getattr(y, name)(1)
        alone = facula.stack([getattr(row, name)() for row in y.unbind()])
        if name in ("amax", "amin"):
            np.testing.assert_array_equal(together.numpy(), alone.numpy())
        else:
            np.testing.assert_allclose(together.numpy(), alone.numpy(), rtol=1e-4, atol=1e-5)
    if x.is_floating_point():
        y[37, n // 2], y[38, n - 1], y[39, 0] = float("nan"), float("inf"), -float("inf")
        assert y.amax(1).isnan().nonzero().tolist() == [[37]]
        assert y.amin(1).isnan().nonzero().tolist() == [[37]]
        assert y.amax(1)[38] == float("inf") and y.amin(1)[39] == -float("inf")
        np.testing.assert_array_equal(y.amax(1)[100:].numpy(), y.numpy().max(1)[100:])
