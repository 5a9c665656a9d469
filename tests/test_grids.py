"""meshgrid, cartesian_prod, unravel_index, and shapes that are turned, cut and restrided."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_under_test import F, assert_equal, leaf


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.sampled_from(["ij", "xy"]))
def test_meshgrid_is_that_of_numpy(sizes, indexing):
    lines = [np.arange(n) + 10 * k for k, n in enumerate(sizes)]
    got = F.meshgrid(*(F.from_numpy(x) for x in lines), indexing=indexing)
    for g, w in zip(got, np.meshgrid(*lines, indexing=indexing), strict=True):
        assert g.shape == w.shape
        assert g.tolist() == w.tolist()


def test_meshgrid_counts_numbers_as_vectors_of_one_element():
    x, y = F.meshgrid(F.tensor([1, 2, 3]), F.tensor(7), indexing="xy")
    assert x.tolist() == [[1, 2, 3]]
    assert y.tolist() == [[7, 7, 7]]


def test_meshgrid_refuses():
    with pytest.raises(RuntimeError, match="dtype"):
        F.meshgrid(F.ones(2), F.arange(2), indexing="ij")
    with pytest.raises(RuntimeError, match="0D or 1D"):
        F.meshgrid(F.ones(2, 2), indexing="ij")
    with pytest.raises(RuntimeError, match="indexing"):
        F.meshgrid(F.ones(2), indexing="yx")
    with pytest.raises(RuntimeError, match="non-empty"):
        F.meshgrid(indexing="ij")


def test_cartesian_prod():
    got = F.cartesian_prod(F.tensor([1, 2]), F.tensor([3, 4, 5]))
    assert got.tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]
    assert F.cartesian_prod(F.tensor([1, 2])).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="1D"):
        F.cartesian_prod(F.ones(2, 2), F.ones(2))
    with pytest.raises(TypeError):
        F.cartesian_prod([F.ones(2)])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_unravel_index_is_that_of_numpy(shape, data):
    count = int(np.prod(shape))
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=5))
    got = F.unravel_index(F.tensor(places, dtype=F.int64), shape)
    wanted = np.unravel_index(np.array(places, dtype=np.int64), shape)
    assert [g.tolist() for g in got] == [w.tolist() for w in wanted]


def test_unravel_index_of_small_integers_does_not_wrap_around():
    rows, columns = F.unravel_index(F.tensor([200], dtype=F.uint8), (2, 1000))
    assert (rows.tolist(), columns.tolist()) == ([0], [200])


@pytest.mark.parametrize(
    ("indices", "shape", "error"),
    [
        ([1.0], (2,), TypeError),
        ([True], (2,), TypeError),
        ([1], (2.0,), TypeError),
        ([1], "ab", TypeError),
        ([1], (2, -1), ValueError),
    ],
)
def test_unravel_index_refuses(indices, shape, error):
    with pytest.raises(error):
        F.unravel_index(F.tensor(indices), shape)


# ---- turned, cut, restrided ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.rot90(F.ones(2)), RuntimeError),
        (lambda: F.rot90(F.ones(2, 2), 1, (0,)), RuntimeError),
        (lambda: F.rot90(F.ones(2, 2), 1, (0, 0)), RuntimeError),
        (lambda: F.rot90(F.ones(2, 2), 1, (0, 2)), IndexError),
        (lambda: F.fliplr(F.ones(2)), RuntimeError),
        (lambda: F.flipud(F.tensor(1.0)), RuntimeError),
        (lambda: F.adjoint(F.ones(2)), RuntimeError),
        (lambda: F.narrow_copy(F.ones(2), 0, 1, 2), RuntimeError),
        (lambda: F.narrow(F.ones(2), 0, F.tensor([1]), 1), RuntimeError),
        (lambda: F.unsafe_split(F.ones(2), -1), RuntimeError),
        (lambda: F.unsafe_chunk(F.ones(2), 0), RuntimeError),
        (lambda: F.empty_permuted((2, 3), (0, 0)), RuntimeError),
        (lambda: F.empty_permuted((2, 3), (0, 2)), RuntimeError),
        (lambda: F.empty_permuted((2, 3), (0,)), RuntimeError),
        (lambda: F.as_strided_scatter(F.ones(4), F.ones(3), (2,), (2,)), RuntimeError),
        (lambda: F.ones(2).as_strided_((3,), (1,)), RuntimeError),
    ],
)
def test_wrong_shapes_are_refused(call, error):
    with pytest.raises(error):
        call()


def test_pieces_of_unsafe_split_may_be_written_to():
    x = leaf([1.0, 2.0, 3.0])
    first, rest = F.unsafe_split(x * 1, 2)
    first.mul_(10)
    (first.sum() + rest.sum()).backward()
    assert_equal(x.grad, [10.0, 10.0, 1.0])
    with pytest.raises(RuntimeError):  # as a view it may not
        F.split(x * 1, 2)[0].mul_(10)


def test_narrow_copy_has_its_own_memory():
    x = F.arange(5)
    part = F.narrow_copy(x, 0, 1, 2)
    part.zero_()
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert F.narrow(x, 0, F.tensor(3), 2).tolist() == [3, 4]


def test_as_strided_in_place_changes_the_geometry():
    x = F.arange(6.0)
    assert x.as_strided_((2, 2), (3, 1), 1) is x
    assert x.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert x.storage_offset() == 1
    y = leaf([1.0, 2.0, 3.0]) * 2
    y.as_strided_((2,), (2,))
    y.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        leaf([1.0, 2.0]).as_strided_((1,), (1,))


def test_as_strided_scatter_counts_in_the_storage():
    whole = F.zeros(6)
    part = whole[2:]
    got = part.as_strided_scatter(F.tensor([1.0, 2.0]), (2,), (2,), 3)
    assert got.tolist() == [0.0, 1.0, 0.0, 2.0]
    assert whole.tolist() == [0.0] * 6
    turned = F.zeros(2, 3).t().as_strided_scatter(F.ones(3), (3,), (2,))
    assert turned.stride() == (1, 3)
    assert turned.tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


@pytest.mark.facula_only
def test_as_strided_scatter_gives_each_element_its_gradient():
    x, src = leaf([1.0, 2.0, 3.0]), leaf([5.0, 6.0])
    (x.as_strided_scatter(src, (2,), (2,)) * F.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert_equal(x.grad, [0.0, 10.0, 0.0])
    assert_equal(src.grad, [1.0, 100.0])


def test_gradient_of_a_view_that_begins_before_its_base():
    x = leaf([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    base = x[2:]
    base.as_strided((2,), (3,), 1).sum().backward()
    assert_equal(x.grad, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


def test_empty_permuted_lays_out_from_slow_to_fast():
    assert F.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    assert F.empty_permuted((2, 3), (1, 0), dtype=F.int64, requires_grad=False).dtype is F.int64


def test_more_than_64_dimensions_raise_instead_of_overrunning():
    x = F.ones([1] * 65)
    for name in ("amax", "aminmax"):
        with pytest.raises(RuntimeError, match="64 dims"):
            getattr(F, name)(x, dim=-1)
    assert x.clone().shape == x.shape


# ---- methods ---------------------------------------------------------------------------------


def test_new_makes_tensors_of_the_same_dtype():
    x = F.ones(2, dtype=F.float64)
    assert x.new(2, 3).shape == x.new(size=(2, 3)).shape == (2, 3)
    assert x.new(other=x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError):
        x.new(2, size=(3,))
    assert x.new(F.Size([4])).shape == (4,)
    assert x.new().shape == (0,)
    assert x.new([1, 2]).dtype is F.float64
    assert x.new([1, 2]).tolist() == [1.0, 2.0]
    assert x.new(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError):
        x.new(F.ones(2, dtype=F.float32))
    with pytest.raises(TypeError):
        x.new(1.5)


def test_resize_as_takes_shape_and_format():
    x = F.arange(4.0)
    assert x.resize_as_(F.ones(2, 2)) is x
    assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    like = F.ones(1, 2, 2, 3).contiguous(memory_format=F.channels_last)
    y = F.empty(0).resize_as_(like, memory_format=F.preserve_format)
    assert y.stride() == like.stride()
    with pytest.raises(RuntimeError):
        F.ones(2, requires_grad=True).resize_as_(F.ones(3))


def test_apply_and_map_call_python():
    assert F.tensor([1.0, 2.0]).apply_(lambda v: v + 1).tolist() == [2.0, 3.0]
    assert F.tensor([1, 2]).map_(F.tensor([3, 4]), lambda a, b: a * b).tolist() == [3, 8]
    with pytest.raises(RuntimeError):
        F.ones(2, requires_grad=True).apply_(lambda v: v)


def test_functions_that_write_to_their_argument():
    x = F.ones(3)
    assert F.zero_(x) is x
    assert x.tolist() == [0.0] * 3
    assert F.fill_(x, 2).tolist() == [2.0] * 3
    assert F.as_strided_(x, (2,), (1,)).shape == (2,)
    assert F.tensor([1, 1, 2]).unique_consecutive().tolist() == [1, 2]


def test_results_of_histograms_pickle_as_what_they_are():
    points = F.tensor([[0.0, 0.0], [1.0, 1.0]])
    for result in (F.histogram(points, 3), F.histogramdd(points, [2, 2])):
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) is getattr(F.return_types, type(result).__name__)
        assert_equal(again.hist, result.hist)
    assert type(result)((1, 2)).bin_edges == 2
    with pytest.raises(TypeError, match="2-sequence"):
        type(result)((1,))
