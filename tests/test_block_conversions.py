"""Conversions of many elements, dense and strided, which run by vectors and in blocks."""

from __future__ import annotations

import math

import pytest

import facula

INTEGERS = [0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**51 - 1, 2**51, -(2**51), -(2**51) - 1]
INTEGERS += [
    2**53 + 1,
    -(2**53) - 1,
    2**54 + 2,
    2**60 + 2**7 + 1,
    2**63 - 1,
    -(2**63),
    2**40 + 2**16,
]
FLOATS = [
    0.0,
    -0.0,
    0.75,
    -0.75,
    1.5,
    -1.5,
    1e9,
    -3e9,
    2.0**51 - 0.5,
    2.0**51,
    -(2.0**51),
    2.0**52 + 1,
]
FLOATS += [2.0**62, -(2.0**63), 2.0**63, 1e300, -math.inf, math.inf, math.nan, 255.9, -2147483648.5]


def placed(values, dtype, layout):
    """The values, each among 18 others, so that every position in a vector has its turn."""
    many = [v for i, value in enumerate(values) for v in [value] + [3] * (i % 5 + 14)]
    t = facula.tensor(many, dtype=dtype)
    if layout == "strided":
        t = t.repeat_interleave(2)[::2]
        assert not t.is_contiguous()
    return t, many


def truncated(x, bits):
    if math.isfinite(x) and -(2 ** (bits - 1)) <= math.trunc(x) < 2 ** (bits - 1):
        return math.trunc(x)
    return -(2 ** (bits - 1))


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("source", [facula.float32, facula.float64])
@pytest.mark.parametrize(
    ("target", "bits", "kept"),
    [(facula.int64, 64, 64), (facula.int32, 32, 32), (facula.int16, 32, 16), (facula.int8, 32, 8)],
)
def test_floats_are_cut_to_integers_and_what_does_not_fit_is_the_least(
    layout, source, target, bits, kept
):
    t, _ = placed(FLOATS, source, layout)
    half = 2 ** (kept - 1)
    expected = [(truncated(x, bits) + half) % 2**kept - half for x in t.double().tolist()]
    assert t.to(target).tolist() == expected


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("source", [facula.float32, facula.float64])
def test_floats_as_bytes_keep_the_low_bits(layout, source):
    t, _ = placed([0.5, 255.0, 256.0, -1.0, 1000.0, 70000.0], source, layout)
    assert t.to(facula.uint8).tolist() == [math.trunc(x) % 256 for x in t.tolist()]


@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_integers_as_floats_are_rounded_once(layout):
    t, many = placed(INTEGERS, facula.int64, layout)
    assert t.double().tolist() == [float(x) for x in many]

    def single(x):  # rounded to 24 bits from the integer itself, halves to even
        size = abs(x)
        drop = max(0, size.bit_length() - 24)
        kept, rest, half = size >> drop, size & ((1 << drop) - 1), (1 << drop) >> 1
        up = drop > 0 and (rest > half or (rest == half and kept & 1))
        return math.copysign(float((kept + up) << drop), x) if x else 0.0

    assert t.float().tolist() == [single(x) for x in many]


@pytest.mark.parametrize("layout", ["dense", "strided"])
@pytest.mark.parametrize("half", [facula.float16, facula.bfloat16])
@pytest.mark.parametrize(
    "other", [facula.float64, facula.int64, facula.int32, facula.uint8, facula.bool]
)
def test_halves_are_converted_by_way_of_float32(layout, half, other):
    t, _ = placed([0, 1, 2, 100, 200, 255, 17], other, layout)
    alone = facula.stack([x.to(facula.float32).to(half) for x in t])
    assert t.to(half).tolist() == alone.tolist()
    h, _ = placed([0.0, 1.25, 200.5, 3.0], half, layout)
    assert h.to(other).tolist() == h.float().to(other).tolist()


def test_bfloat16_beside_a_nan_are_rounded_to_even():
    values = [1.00390625, 1.01171875, -1.00390625, 3.0e38, math.inf, 1e-40] * 8
    for at in (0, 5, 9, 15, 47):
        values[at] = math.nan
    rounded = facula.tensor(values, dtype=facula.float32).bfloat16()
    for x, y in zip(values, rounded.tolist(), strict=True):
        one = facula.tensor([x], dtype=facula.float32).bfloat16().item()
        assert y == one or (math.isnan(x) and math.isnan(y))


def test_long_copies_are_whole_at_every_distance():
    n = 9000
    source = facula.arange(n + 64, dtype=facula.int32).to(facula.uint8)
    for at in (0, 1, 7, 31, 32, 33, 63):
        for size in (2047, 2048, 2049, 4095, 4096 + at, n):
            target = facula.zeros(n + 64, dtype=facula.uint8)
            target[at : at + size] = source[3 : 3 + size]
            assert facula.equal(target[at : at + size], source[3 : 3 + size].clone())
            assert not target[:at].any() and not target[at + size :].any()
