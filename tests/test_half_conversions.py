"""Conversions to and from half precision, to the bit, in every loop that has them."""

import numpy as np
import pytest

import facula

PATTERNS = np.arange(65536, dtype=np.uint16)


def halves_of(bits, dtype):
    return facula.from_numpy(bits.view(np.int16).copy()).view(dtype)


def bits_of(halves):
    return halves.contiguous().view(facula.int16).numpy().view(np.uint16)


def singles_of(bits, dtype):
    """What the patterns stand for, as float32."""
    if dtype is facula.float16:
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(x, dtype):
    """The patterns nearest to float32 numbers that are not NaN, ties to even."""
    if dtype is facula.float16:
        with np.errstate(over="ignore"):
            return x.astype(np.float16).view(np.uint16)
    words = x.view(np.uint32).astype(np.uint64)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def floats_to_round():
    """Numbers of half precision, midpoints and their neighbours, and random patterns."""
    generator = np.random.default_rng(0)
    words = [generator.integers(0, 2**32, 100_000, dtype=np.uint64).astype(np.uint32)]
    for exact in (
        PATTERNS.view(np.float16).astype(np.float32).view(np.uint32),
        PATTERNS.astype(np.uint32) << 16,
    ):
        for half_step in (0x1000, 0x8000):
            words += [
                exact + np.uint32(half_step),
                exact + np.uint32(half_step - 1),
                exact + np.uint32(half_step + 1),
            ]
        words.append(exact)
    x = np.concatenate(words).view(np.float32)
    return x[~np.isnan(x)]


def same_numbers(got, want):
    return (
        np.array_equal(
            np.where(np.isnan(want), 0, got.view(np.uint32)),
            np.where(np.isnan(want), 0, want.view(np.uint32)),
        )
        and (np.isnan(got) == np.isnan(want)).all()
    )


BOTH = pytest.mark.parametrize("dtype", [facula.float16, facula.bfloat16], ids=str)


@BOTH
def test_every_pattern_is_read_exactly(dtype):
    halves, want = halves_of(PATTERNS, dtype), singles_of(PATTERNS, dtype)
    assert same_numbers(halves.float().numpy(), want)
    assert same_numbers(
        halves.view(256, 256).t().float().contiguous().numpy(), want.reshape(256, 256).T.copy()
    )
    assert same_numbers(halves[1::3].float().numpy(), want[1::3].copy())


@BOTH
def test_floats_are_rounded_to_the_nearest_even_pattern(dtype):
    x = floats_to_round()
    want = rounded(x, dtype)
    given = facula.from_numpy(x.copy())
    assert np.array_equal(bits_of(given.to(dtype)), want)
    for step in (1, 3):  # not a whole number of vectors; strided
        assert np.array_equal(bits_of(given[5:1042:step].to(dtype)), want[5:1042:step])


@BOTH
@pytest.mark.parametrize("count", [1, 15, 16, 31, 32, 33, 63, 65, 65536])
def test_a_loop_that_reads_and_writes_halves_changes_no_number(dtype, count):
    bits = PATTERNS[:: 65536 // count][:count]
    halves, single = halves_of(bits, dtype), singles_of(bits, dtype)
    result = bits_of(facula.mul(halves, 1.0))
    numbers = ~np.isnan(single)
    assert np.array_equal(result[numbers], bits[numbers])
    assert np.isnan(singles_of(result, dtype)[~numbers]).all()


@BOTH
def test_nan_in_a_vector_leaves_its_neighbours_alone(dtype):
    generator = np.random.default_rng(1)
    x = generator.standard_normal(1024).astype(np.float32)
    for place in (0, 7, 16, 31, 32, 1023):
        y = x.copy()
        y[place] = np.nan
        sums = (facula.from_numpy(y).to(dtype) + facula.from_numpy(x).to(dtype)).float().numpy()
        lows = [
            singles_of(rounded(v, dtype), dtype) for v in (np.delete(y, place), np.delete(x, place))
        ]
        assert np.isnan(sums[place])
        assert np.array_equal(
            np.delete(sums, place), singles_of(rounded(lows[0] + lows[1], dtype), dtype)
        )


@BOTH
def test_sums_round_once(dtype):
    generator = np.random.default_rng(2)
    a, b = (
        singles_of(rounded(generator.standard_normal(1000).astype(np.float32), dtype), dtype)
        for _ in range(2)
    )
    x, y = (facula.from_numpy(v.copy()).to(dtype) for v in (a, b))
    want = rounded(a + b, dtype)
    assert np.array_equal(bits_of(x + y), want)
    assert np.array_equal(bits_of(x.clone().add_(y)), want)
    assert np.array_equal(
        bits_of(x.view(10, 100) + y[:100]), rounded(a.reshape(10, 100) + b[:100], dtype)
    )
    assert np.array_equal(
        bits_of(x.view(10, 100) + y[:10, None]), rounded(a.reshape(10, 100) + b[:10, None], dtype)
    )
    assert np.array_equal(bits_of(x[::2] + y[::2]), want[::2])
