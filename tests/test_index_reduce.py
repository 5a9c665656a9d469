"""index_reduce, nonzero_static and fill: what the derived tests do not say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_under_test import F, assert_close, assert_equal, leaf

FOLDS = {"prod": np.prod, "mean": np.mean, "amax": np.amax, "amin": np.amin}


@given(st.data())
def test_index_reduce_folds_what_goes_to_one_place(data):
    n, width = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    index = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    number = st.integers(-3, 3).map(float)
    own = np.array(data.draw(st.lists(number, min_size=n * width, max_size=n * width)))
    count = len(index) * width
    given_ = np.array(data.draw(st.lists(number, min_size=count, max_size=count)))
    own, given_ = own.reshape(n, width), given_.reshape(len(index), width)
    reduce, include = data.draw(st.sampled_from(sorted(FOLDS))), data.draw(st.booleans())
    wanted = own.copy()
    for place in set(index):
        parts = [g for i, g in zip(index, given_, strict=True) if i == place]
        wanted[place] = FOLDS[reduce](np.stack(parts + [own[place]] * include), axis=0)
    got = F.index_reduce(
        F.from_numpy(own),
        0,
        F.tensor(index, dtype=F.int64),
        F.from_numpy(given_),
        reduce,
        include_self=include,
    )
    assert_close(got, F.from_numpy(wanted), rtol=1e-12)


def test_index_reduce_in_place():
    x = F.ones(3)
    y = x.index_reduce_(0, F.tensor([0, 0, 2]), F.tensor([2.0, 3.0, 4.0]), "prod")
    assert y is x
    assert x.tolist() == [6.0, 1.0, 4.0]


def test_index_reduce_shares_the_gradient():
    x, src = leaf([1.0, 5.0]), leaf([4.0, 7.0, 4.0])
    F.index_reduce(x, 0, F.tensor([0, 1, 0]), src, "amax").sum().backward()
    assert_close(src.grad, [0.5, 1.0, 0.5])
    assert_close(x.grad, [0.0, 0.0])


@pytest.mark.parametrize(
    ("index", "source", "reduce", "error"),
    [
        ([[0, 0]], [[1.0, 1.0]] * 2, "mean", IndexError),
        ([0, 0], [[1.0, 1.0]] * 3, "mean", RuntimeError),
        ([0, 0], [[1.0]] * 2, "mean", RuntimeError),
        ([0, 0], [[1, 1]] * 2, "mean", RuntimeError),
        ([0, 0], [[1.0, 1.0]] * 2, "sum", RuntimeError),
        ([0.0, 0.0], [[1.0, 1.0]] * 2, "mean", RuntimeError),
    ],
)
def test_index_reduce_refuses(index, source, reduce, error):
    x = F.ones(3, 2)
    with pytest.raises(error):
        x.index_reduce_(0, F.tensor(index), F.tensor(source), reduce)
    assert_equal(x, [[1.0, 1.0]] * 3)


@pytest.mark.facula_only
def test_index_reduce_with_a_bad_index_writes_nothing():
    x = F.ones(3, 2)
    with pytest.raises((IndexError, RuntimeError)):
        x.index_reduce_(0, F.tensor([0, 5]), F.full((2, 2), 3.0), "mean")
    assert_equal(x, [[1.0, 1.0]] * 3)


def test_nonzero_static_has_a_fixed_shape():
    x = F.tensor([[0, 1], [2, 0]])
    assert F.nonzero_static(x, size=1).tolist() == [[0, 1]]
    assert F.nonzero_static(x, size=3, fill_value=9).tolist() == [[0, 1], [1, 0], [9, 9]]
    assert F.nonzero_static(F.tensor(3), size=2).shape == (2, 0)
    with pytest.raises(RuntimeError):
        F.nonzero_static(x, size=-1)


def test_fill_gives_a_new_tensor():
    x, value = leaf([1.0, 2.0]), leaf(3.0)
    y = F.fill(x, value)
    y.sum().backward()
    assert_equal(y, [3.0, 3.0])
    assert_equal(x, [1.0, 2.0])
    assert_equal(x.grad, [0.0, 0.0])
    assert_equal(value.grad, 2.0)
    with pytest.raises(RuntimeError):
        F.fill(x, F.ones(2))


def test_index_fill_counts_repeated_positions_once():
    value = leaf(3.0)
    F.zeros(3, dtype=F.float64).index_fill(0, F.tensor([1, 1]), value).sum().backward()
    assert_equal(value.grad, 1.0)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("width", [16, 1500])
@pytest.mark.parametrize("dim", [0, 1])
def test_index_fill_of_many_slices(dim, width, dtype):
    shape = (30, width) if dim == 0 else (3, 30, 7, width)
    x = F.arange(int(np.prod(shape))).reshape(shape).to(getattr(F, dtype))
    index = [3, -1, 7, 3, 0, -30, 29, 12]
    wanted = x.clone()
    for i in index:
        wanted.select(dim, i).fill_(7)
    before = x.clone()
    assert_equal(x.index_fill(dim, F.tensor(index), 7), wanted)
    assert_equal(x, before)
    assert_equal(x.index_fill(dim, F.tensor(index), F.tensor(7.0)), wanted)
    columns = x.transpose(-1, -2)
    assert_equal(columns.index_fill(1, F.tensor(index), 7), wanted.transpose(-1, -2))
    assert x.index_fill_(dim, F.tensor(index), 7) is x
    assert_equal(x, wanted)


def test_written_to_tensors_must_not_overlap():
    x = F.arange(6.0)
    with pytest.raises(RuntimeError):
        F.masked_select(x, x > 2, out=x)
    with pytest.raises(RuntimeError):
        F.index_select(F.ones(2, 3), 0, F.tensor([0, 1]), out=F.ones(1, 3).expand(2, 3))
    with pytest.raises(RuntimeError):
        F.complex(F.ones(2), F.ones(2), out=F.empty(2, dtype=F.complex128))


def test_gather_with_an_empty_index_of_any_integer_dtype():
    got = F.gather(F.ones(3), 0, F.empty(0, dtype=F.uint8))
    assert got.shape == (0,)


def test_logcumsumexp_of_complex_numbers():
    z = F.tensor([1 + 2j, -0.5 + 1j, 3 - 1j], dtype=F.complex128)
    assert_close(F.logcumsumexp(z, 0), F.log(F.cumsum(F.exp(z), 0)), rtol=1e-12)
    assert_close(F.logsumexp(z, 0), F.log(F.sum(F.exp(z))), rtol=1e-12)
