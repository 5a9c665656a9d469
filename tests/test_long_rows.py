"""Arithmetic on rows: with repeated rows and columns, with gaps between rows, of any length."""

import numpy as np
import pytest

import facula as F

FUNCTIONS = {
    "add": (F.add, np.add),
    "sub": (F.sub, np.subtract),
    "mul": (F.mul, np.multiply),
    "div": (F.div, np.divide),
    "clamp_min": (F.clamp_min, np.maximum),
    "clamp_max": (F.clamp_max, np.minimum),
}
# The second ones are whole pages, where a repeated row is read from a copy.
LENGTHS = (600, 1024, 1037, 4096, 8192)
# Few rows, and more than the smallest work that is divided among threads.
COUNTS = (3, 70)


def values(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).uniform(1, 9, shape).astype(dtype)


def exactly(ours, expected):
    np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rows", COUNTS)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_row_and_a_column_repeat(name, rows, length):
    ours, theirs = FUNCTIONS[name]
    x = values(rows, length)
    for other in (values(length), values(rows, 1), values(1, 1)):
        exactly(ours(F.from_numpy(x), F.from_numpy(other)), theirs(x, other))
        exactly(ours(F.from_numpy(other), F.from_numpy(x)), theirs(other, x))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.uint8, np.complex64])
def test_other_types_and_more_dimensions(dtype, length):
    x = values(5, 11, length, dtype=dtype)
    for shape in ((11, length), (5, 1, length), (11, 1), (5, 1, 1), (5, 11, 1), (1, length)):
        other = values(*shape, dtype=dtype)
        exactly(F.from_numpy(x) + F.from_numpy(other), x + other)
        exactly(F.from_numpy(other) * F.from_numpy(x), other * x)


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_with_gaps_and_steps(length):
    x = values(40, length + 100)
    y = values(40, length)
    exactly(F.from_numpy(x)[:, :length] + F.from_numpy(y), x[:, :length] + y)
    exactly(F.from_numpy(x)[::3, 100:] * F.from_numpy(y)[0], x[::3, 100:] * y[0])
    every_second = F.from_numpy(x)[:, ::2]
    exactly(every_second - F.from_numpy(x)[:, :1], x[:, ::2] - x[:, :1])
    columns = F.from_numpy(values(length, 40)).T
    exactly(columns + F.from_numpy(y), values(length, 40).T + y)


@pytest.mark.parametrize("length", LENGTHS)
def test_in_place_and_into_a_given_result(length):
    x, row, column = values(40, length), values(length), values(40, 1)
    t = F.from_numpy(x.copy())
    t += F.from_numpy(row)
    t *= F.from_numpy(column)
    exactly(t, (x + row) * column)
    out = F.zeros(40, length + 64)[:, 64:]
    F.add(F.from_numpy(x), F.from_numpy(row), alpha=2, out=out)
    exactly(out, x + 2 * row)
    assert not out.is_contiguous()


@pytest.mark.parametrize("length", LENGTHS)
def test_limits_by_rows_and_columns(length):
    x = values(40, length)
    low, high = values(40, 1) - 1, values(40, 1) + 1
    exactly(F.clamp(F.from_numpy(x), F.from_numpy(low), F.from_numpy(high)), np.clip(x, low, high))
    low, high = values(length) - 1, values(length) + 1
    exactly(F.clamp(F.from_numpy(x), F.from_numpy(low), F.from_numpy(high)), np.clip(x, low, high))
    exactly(
        F.clamp(F.from_numpy(x), F.from_numpy(low), F.from_numpy(values(40, 1))),
        np.minimum(np.maximum(x, low), values(40, 1)),
    )


def test_the_number_of_threads_changes_nothing():
    x, row = F.from_numpy(values(70, 4096)), F.from_numpy(values(4096))
    threads = F.get_num_threads()
    try:
        F.set_num_threads(1)
        one = x / row
        F.set_num_threads(3)
        assert F.equal(x / row, one)
        assert F.equal(x[:2] / row, one[:2])
    finally:
        F.set_num_threads(threads)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_repeated_operand_of_another_type(length):
    x = values(40, length)
    for dtype in (F.bfloat16, F.float16, F.int64, F.bool):
        for other in (values(length), values(40, 1), values(length)[::2].repeat(2)[:length]):
            given = F.from_numpy(other).to(dtype)
            expected = x * given.to(F.float32).numpy()
            exactly(F.from_numpy(x) * given, expected)
            exactly(given[..., :].expand(40, length) * F.from_numpy(x), expected)
    halves = F.from_numpy(x).bfloat16()
    exactly(halves + F.from_numpy(values(length)), halves.float().numpy() + values(length))
    mask = values(40, 1) > 5
    out = F.where(F.from_numpy(mask), F.from_numpy(x), F.tensor(1.0, dtype=F.float64))
    exactly(out, np.where(mask, x, np.float32(1)))
