"""Finite differences, integrals, combinations, sequences: values against NumPy, errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_under_test import F, assert_close, assert_equal, leaf

FINITE = st.floats(-100, 100, allow_nan=False, width=32)


@st.composite
def sampled_functions(draw):
    """(values of at least three samples in each dimension, edge_order)"""
    shape = tuple(draw(st.lists(st.integers(3, 5), min_size=1, max_size=3)))
    count = int(np.prod(shape))
    values = draw(st.lists(FINITE, min_size=count, max_size=count))
    return np.array(values).reshape(shape), draw(st.sampled_from([1, 2]))


# ---- gradient --------------------------------------------------------------------------------


def assert_gradients(got, wanted):
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert_close(g, F.from_numpy(np.ascontiguousarray(w)), rtol=1e-9, atol=1e-7)


@given(sampled_functions(), st.sampled_from([1, 2, 0.5, -3.0]))
def test_gradient_with_one_distance(function, spacing):
    a, order = function
    got = F.gradient(F.from_numpy(a), spacing=spacing, edge_order=order)
    assert_gradients(got, np.gradient(a, spacing, edge_order=order))


@given(sampled_functions(), st.data())
def test_gradient_with_coordinates(function, data):
    a, order = function
    lines = [
        np.cumsum(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))).astype(float)
        for n in a.shape
    ]
    got = F.gradient(F.from_numpy(a), spacing=[F.from_numpy(x) for x in lines], edge_order=order)
    assert_gradients(got, np.gradient(a, *lines, edge_order=order))


def test_gradient_along_chosen_dimensions():
    a = np.arange(24.0).reshape(2, 3, 4) ** 2
    got = F.gradient(F.from_numpy(a), dim=(2, 0), spacing=[0.5, 2.0])
    assert_gradients(got, np.gradient(a, 0.5, 2.0, axis=(2, 0)))
    assert_gradients(F.gradient(F.from_numpy(a), dim=1), np.gradient(a, axis=1))
    assert F.gradient(F.from_numpy(a), dim=()) == ()


def test_gradient_of_integers_is_floating_point():
    (got,) = F.gradient(F.tensor([1, 2, 4, 8]))
    assert got.dtype is F.float32
    assert_close(got, [1.0, 1.5, 3.0, 4.0])


@pytest.mark.facula_only
def test_gradient_of_small_integers_does_not_wrap_around():
    (got,) = F.gradient(F.tensor([200, 0, 100], dtype=F.uint8))
    assert_close(got, [-200.0, -50.0, 100.0])


@pytest.mark.parametrize(
    "options",
    [
        {"edge_order": 3},
        {"edge_order": 2},
        {"spacing": [1.0]},
        {"spacing": [1.0, 1.0], "dim": 0},
        {"dim": (0, 0)},
        {"spacing": [F.ones(1, 1), F.ones(2)]},
    ],
)
def test_gradient_refuses(options):
    with pytest.raises(RuntimeError):
        F.gradient(F.ones(2, 2), **options)


@pytest.mark.facula_only
def test_gradient_wants_a_coordinate_for_each_sample():
    with pytest.raises(RuntimeError, match="coordinate"):
        F.gradient(F.ones(3), spacing=[F.ones(4)])


# ---- differences and integrals ---------------------------------------------------------------


def test_diff_joins_before_it_subtracts():
    x = F.tensor([1, 4, 9])
    assert F.diff(x, prepend=F.tensor([0]), append=F.tensor([10, 10])).tolist() == [1, 3, 5, 1, 0]
    assert F.diff(x, n=2).tolist() == [2]
    assert F.diff(x, n=5).tolist() == []
    assert F.diff(F.tensor([True, False, False])).tolist() == [True, False]


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.diff(F.tensor(1.0)),
        lambda: F.diff(F.ones(3), n=-1),
        lambda: F.diff(F.ones(3), prepend=F.tensor(1.0)),
        lambda: F.diff(F.ones(3, 2), prepend=F.ones(2, 2)),
        lambda: F.trapezoid(F.ones(3, dtype=F.bool)),
        lambda: F.trapezoid(F.ones(3), F.ones(2)),
        lambda: F.trapezoid(F.ones(3), dx=1j),
        lambda: F.combinations(F.ones(2, 2)),
        lambda: F.combinations(F.ones(2), r=-1),
    ],
)
def test_wrong_samples_are_refused(call):
    with pytest.raises(RuntimeError):
        call()


def test_trapezoid_of_no_samples_is_zero():
    assert_equal(F.trapezoid(F.ones(2, 0)), [0.0, 0.0])
    assert F.cumulative_trapezoid(F.ones(2, 0)).shape == (2, 0)
    with pytest.raises(IndexError):
        F.trapezoid(F.tensor(1.0))


def test_trapz_is_trapezoid():
    y, x = F.tensor([1.0, 2.0, 4.0]), F.tensor([0.0, 1.0, 3.0])
    assert_equal(F.trapz(y, x), F.trapezoid(y, x))
    assert_equal(F.trapz(y, dx=0.5), F.trapezoid(y, dx=0.5))


@given(st.integers(0, 6), st.integers(1, 4), st.booleans())
def test_combinations_come_in_order(n, r, replace):
    choose = itertools.combinations_with_replacement if replace else itertools.combinations
    got = F.combinations(F.arange(n), r, replace)
    assert got.shape[1] == r
    assert [tuple(row) for row in got.tolist()] == list(choose(range(n), r))


def test_combinations_that_do_not_fit_into_memory_are_refused():
    with pytest.raises((RuntimeError, MemoryError)):
        F.combinations(F.ones(200), 60)


def test_round_to_decimals():
    x = leaf([123.456, -0.0449])
    assert_close(F.round(x, decimals=1), [123.5, 0.0], atol=1e-9)
    assert_close(F.round(x, decimals=-2), [100.0, 0.0], atol=1e-9)
    F.round(x, decimals=1).sum().backward()
    assert_equal(x.grad, [0.0, 0.0])
    with pytest.raises(NotImplementedError):
        F.round(F.tensor([1, 2]), decimals=1)


# ---- sequences -------------------------------------------------------------------------------


def test_one_step_is_the_start():
    assert_equal(F.linspace(3, 7, 1), [3.0])
    assert_equal(F.linspace(3 + 1j, 7, 1), [3 + 1j])
    assert_equal(F.logspace(2, 7, 1, base=2), [4.0])


def test_integer_sequences_cut_their_ends_first():
    assert F.linspace(2.7, 3.9, 4, dtype=F.int64).tolist() == [2, 2, 2, 3]
    assert F.logspace(2, 1.2, 4, base=5.0, dtype=F.int64).tolist() == [25, 14, 8, 5]


def test_sequences_take_their_ends_from_tensors():
    assert_close(F.linspace(F.tensor(1), F.tensor(2.0), 3), [1.0, 1.5, 2.0])
    with pytest.raises(RuntimeError, match="0-dimensional"):
        F.linspace(F.ones(2), 1, 3)
    with pytest.raises(RuntimeError, match="cast"):
        F.linspace(0, 1j, 3, dtype=F.float32)
    with pytest.raises(RuntimeError, match="non-negative"):
        F.logspace(0, 1, -1)


def test_range_includes_its_end_and_warns():
    with pytest.warns(UserWarning, match="arange"):
        assert_close(F.range(1, 2, 0.5), [1.0, 1.5, 2.0])
