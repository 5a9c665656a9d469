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


def test_largest_difference_keeps_nan():
    x, y = facula.zeros(3, 40), facula.ones(2, 40)
    x[1, 3] = float("nan")
    x[2, 39] = -4.0
    d = facula.cdist(x, y, p=float("inf"))
    assert d[1].isnan().all() and d[0].tolist() == [1.0, 1.0] and d[2].tolist() == [5.0, 5.0]
