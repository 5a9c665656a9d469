"""Reading and writing with brackets, case by case; test_indexing_hypothesis.py searches further."""

import numpy as np
import pytest
from package_under_test import F

CUBE = np.arange(24).reshape(2, 3, 4)


def cube():
    return F.arange(24).reshape(2, 3, 4)


def to_numpy_index(index):
    if isinstance(index, tuple):
        return tuple(to_numpy_index(i) for i in index)
    if not isinstance(index, F.Tensor):
        return index
    return np.array(index.tolist(), dtype=bool if index.dtype is F.bool else np.int64)


# Here PyTorch and NumPy agree, so NumPy gives the expected value.
LIKE_NUMPY = {
    "int": lambda: 1,
    "negative int": lambda: -2,
    "ints": lambda: (1, 2, 3),
    "numpy int": lambda: np.int64(1),
    "slice": lambda: slice(1, None),
    "slice with step": lambda: (slice(None), slice(0, 3, 2), slice(1, 4, 2)),
    "slice with negative bounds": lambda: (slice(None), slice(-2, -1)),
    "slice beyond the ends": lambda: (slice(-100, 1), slice(2, 100)),
    "slice that is empty": lambda: slice(1, 0),
    "slice with a huge step": lambda: (slice(None), slice(0, 3, 2**62)),
    "slice with huge bounds": lambda: slice(-(2**62), 2**62),
    "ellipsis": lambda: (..., 0),
    "ellipsis of no dimension": lambda: (0, 1, 2, ...),
    "ellipsis inside": lambda: (0, ..., slice(None, 2)),
    "none": lambda: (None, 0, None, ..., None),
    "empty tuple": lambda: (),
    "list": lambda: [1, 0, 1],
    "list with negatives": lambda: [-1, 0],
    "empty list": list,
    "range": lambda: range(2),
    "tuple inside a tuple": lambda: ((0, 1),),
    "array": lambda: np.array([[1, 0], [0, 1]]),
    "array of int32": lambda: np.array([1, 0], dtype=np.int32),
    "array of bools": lambda: np.array([True, False]),
    "list of bools": lambda: [True, False],
    "tensor": lambda: F.tensor([1, 0, 1]),
    "tensor of int32": lambda: F.tensor([1, 0], dtype=F.int32),
    "tensor of two dims": lambda: F.tensor([[1, 0, 1]]),
    "empty tensor": lambda: F.tensor([], dtype=F.int64),
    "0-dim tensor": lambda: F.tensor(1),
    "two tensors": lambda: (F.tensor([0, 1]), F.tensor([2, 0])),
    "two broadcast tensors": lambda: (F.tensor([[0, 1]]), F.tensor([[2], [0], [1]])),
    "three lists": lambda: ([0, 1], [2, 0], [3, 3]),
    "adjacent lists after a slice": lambda: (slice(None), [0, 2], [1, 3]),
    "separated lists go first": lambda: ([0, 1], slice(None), [1, 3]),
    "separated by none": lambda: ([0, 1], None, [1, 2]),
    "list before an ellipsis": lambda: ([1], ..., [2]),
    "list and slice": lambda: (slice(1), [2, 0]),
    "list, slice with a step": lambda: ([1, 0], slice(None, None, 2)),
    "list at the end": lambda: (..., [3, 0]),
    "mask of all dims": lambda: F.tensor((CUBE % 5 == 0).tolist()),
    "mask of the first dim": lambda: F.tensor([False, True]),
    "mask of the leading dims": lambda: F.tensor([[True, False, True], [False, True, False]]),
    "mask of the middle dim": lambda: (slice(None), F.tensor([True, False, True])),
    "mask of the trailing dims": lambda: (slice(None), F.tensor((CUBE[0] % 3 == 0).tolist())),
    "mask that is all false": lambda: F.tensor([False, False]),
    "mask and a list": lambda: (F.tensor([True, True]), [0, 2]),
    "mask, slice, list": lambda: (F.tensor([True, True]), slice(None), [3, 0]),
    "mask and none": lambda: (None, F.tensor([False, True])),
}


@pytest.mark.parametrize("make", LIKE_NUMPY.values(), ids=LIKE_NUMPY.keys())
def test_reading(make):
    index = make()
    result, expected = cube()[index], CUBE[to_numpy_index(index)]
    assert result.shape == expected.shape
    assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("make", LIKE_NUMPY.values(), ids=LIKE_NUMPY.keys())
def test_writing_a_number(make):
    index, x, expected = make(), cube(), CUBE.copy()
    x[index] = -1
    expected[to_numpy_index(index)] = -1
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("make", LIKE_NUMPY.values(), ids=LIKE_NUMPY.keys())
def test_writing_a_tensor_of_the_result_shape(make):
    index, x, expected = make(), cube(), CUBE.copy()
    positions = CUBE[to_numpy_index(index)]
    if len(set(positions.flatten().tolist())) < positions.size:
        positions = positions * 0  # one place is written twice: both writes must agree
    x[index] = F.tensor((-positions).tolist(), dtype=F.int64).reshape(positions.shape)
    expected[to_numpy_index(index)] = -positions
    assert x.tolist() == expected.tolist()


# PyTorch reads these its own way: integers are taken before lists are looked at, and a Python or
# 0-dim bool is a mask of no dimension.
@pytest.mark.parametrize(
    "index, shape",
    [
        ((0, slice(None), [1, 0]), (3, 2)),
        ((F.tensor(0), slice(None), F.tensor([0, 1])), (3, 2)),
        ((slice(None), [0, 1], 0), (2, 2)),
        (True, (1, 2, 3, 4)),
        (False, (0, 2, 3, 4)),
        (F.tensor(True), (1, 2, 3, 4)),
        (F.tensor(False), (0, 2, 3, 4)),
        ((0, True), (1, 3, 4)),
        ((None, True), (1, 1, 2, 3, 4)),
        ((..., ...), (2, 3, 4)),
    ],
)
def test_where_pytorch_differs_from_numpy(index, shape):
    assert cube()[index].shape == shape


def test_integers_next_to_lists_pick_before_the_lists():
    assert cube()[0, :, [1, 0]].tolist() == [[1, 0], [5, 4], [9, 8]]


def test_zero_dim_integer_tensors_make_views():
    x = cube()
    x[F.tensor(1), 1:][0] = 0
    assert x[1, 1].tolist() == [0, 0, 0, 0]


@pytest.mark.filterwarnings("ignore:indexing with dtype")
def test_uint8_tensors_are_masks():
    assert cube()[F.tensor([0, 1], dtype=F.uint8)].shape == (1, 3, 4)


def test_slice_bounds_may_be_tensors():
    assert cube()[F.tensor(0) : F.tensor(1)].shape == (1, 3, 4)


def test_indexing_zero_dim_tensors():
    x = F.tensor(5)
    assert x[...].tolist() == x[()].tolist() == 5
    assert x[None].tolist() == x[True].tolist() == [5]
    assert x[False].tolist() == []
    x[...] = 6
    assert x.item() == 6
    x[()] = 7
    assert x.item() == 7
    x[True] = 8
    assert x.item() == 8
    x[False] = 9
    assert x.item() == 8


def test_indexing_zero_size_tensors():
    empty = F.tensor([], dtype=F.int64)
    assert F.zeros(0, 3)[empty].shape == (0, 3)
    assert F.zeros(0, 3)[:, empty].shape == (0, 0)
    assert F.zeros(3, 0)[F.tensor([0, 1])].shape == (2, 0)
    assert F.zeros(0, 3)[F.zeros(0, dtype=F.bool)].shape == (0, 3)
    assert F.zeros(0, 3)[F.zeros(0, 3, dtype=F.bool)].shape == (0,)
    with pytest.raises(IndexError):
        F.zeros(0, 3)[F.tensor([0])]
    with pytest.raises(IndexError):
        F.zeros(0)[0]


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int16", "float16", "bfloat16", "float64", "complex64", "complex128"]
    + [
        pytest.param(name, marks=pytest.mark.facula_only) for name in ("uint16", "uint32", "uint64")
    ],
)
def test_advanced_indexing_of_every_item_size(dtype):
    x = F.tensor([0, 1, 0, 1]).to(getattr(F, dtype))
    assert x[[1, 0, 3]].tolist() == [1, 0, 1]
    assert x[F.tensor([True, False, False, True])].tolist() == [0, 1]
    x[[0, 2]] = F.tensor([1, 1]).to(x.dtype)
    assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.facula_only
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "uint32", "uint64"])
def test_tensors_of_any_integer_dtype_are_indices(dtype):
    index = F.tensor([1, 0], dtype=getattr(F, dtype))
    assert F.tensor([10, 20])[index].tolist() == [20, 10]


# ---- negative steps --------------------------------------------------------------------------

NEGATIVE_STEPS = [
    slice(None, None, -1),
    slice(None, None, -2),
    slice(2, 0, -1),
    slice(-1, -3, -1),
    slice(0, 2, -1),
    slice(100, None, -1),
    slice(None, -100, -2),
    (slice(None, None, -1), 0, slice(None, None, -3)),
    (..., slice(None, None, -1)),
    (slice(None, None, -1), [0, 2]),
    ([1, 0], slice(None, None, -2)),
    (slice(None, None, -1), None, slice(1, None), slice(None, None, -1)),
]


@pytest.mark.facula_only
@pytest.mark.parametrize("index", NEGATIVE_STEPS)
def test_negative_steps_read_backwards(index):
    result = cube()[index]
    assert result.shape == CUBE[index].shape
    assert result.tolist() == CUBE[index].tolist()


@pytest.mark.facula_only
@pytest.mark.parametrize("index", NEGATIVE_STEPS)
def test_negative_steps_write_backwards(index):
    x, expected = cube(), CUBE.copy()
    value = -CUBE[index]
    x[index] = F.tensor(value.tolist(), dtype=F.int64).reshape(value.shape)
    expected[index] = value
    assert x.tolist() == expected.tolist()
    x[index] = 7
    expected[index] = 7
    assert x.tolist() == expected.tolist()


def test_a_step_of_zero_is_refused():
    with pytest.raises(ValueError, match="step"):
        cube()[::0]


# ---- assignment ------------------------------------------------------------------------------


def assigned(index, value, dtype=None):
    x = F.zeros(2, 3, dtype=dtype)
    x[index] = value
    return x.tolist()


@pytest.mark.parametrize(
    "index, value, expected",
    [
        (0, [1.0, 2.0, 3.0], [[1, 2, 3], [0, 0, 0]]),
        (0, [[[4.0]]], [[4, 4, 4], [0, 0, 0]]),  # leading ones are dropped
        ((slice(None), 1), [5.0, 6.0], [[0, 5, 0], [0, 6, 0]]),
        ((slice(None), slice(1, None)), [[1.0], [2.0]], [[0, 1, 1], [0, 2, 2]]),
        ((0, 0), [7.0], [[7, 0, 0], [0, 0, 0]]),
        (..., 3.0, [[3, 3, 3], [3, 3, 3]]),
        (None, 3.0, [[3, 3, 3], [3, 3, 3]]),
        ((None, 0), 3.0, [[3, 3, 3], [0, 0, 0]]),
        (True, 3.0, [[3, 3, 3], [3, 3, 3]]),
        (False, 3.0, [[0, 0, 0], [0, 0, 0]]),
        ([1], [1.0, 2.0, 3.0], [[0, 0, 0], [1, 2, 3]]),
        (([0, 1], [2, 0]), [8.0, 9.0], [[0, 0, 8], [9, 0, 0]]),
        ((slice(None), [0, 2]), [1.0, 2.0], [[1, 0, 2], [1, 0, 2]]),
        ([], 5.0, [[0, 0, 0], [0, 0, 0]]),
        (slice(0, 0), [1.0, 2.0, 3.0], [[0, 0, 0], [0, 0, 0]]),
        ([True, False], [1.0, 2.0, 3.0], [[1, 2, 3], [0, 0, 0]]),
    ],
)
def test_assignment_broadcasts_the_value(index, value, expected):
    value = F.tensor(value) if isinstance(value, list) else value
    assert assigned(index, value) == expected


def test_mask_assignment():
    mask = F.tensor([[True, False, True], [False, True, False]])
    assert assigned(mask, 7) == [[7, 0, 7], [0, 7, 0]]
    assert assigned(mask, F.tensor([1.0, 2.0, 3.0])) == [[1, 0, 2], [0, 3, 0]]
    assert assigned(mask, F.tensor([4.0])) == [[4, 0, 4], [0, 4, 0]]
    assert assigned(mask, F.tensor(5.0)) == [[5, 0, 5], [0, 5, 0]]


def test_assignment_casts():
    assert assigned(0, 1.7, F.int64) == [[1, 1, 1], [0, 0, 0]]
    assert assigned(0, F.tensor([1.7, -2.2, 3]), F.int64) == [[1, -2, 3], [0, 0, 0]]
    assert assigned(0, True, F.int64) == [[1, 1, 1], [0, 0, 0]]
    assert assigned(0, 2, F.bool) == [[True] * 3, [False] * 3]
    assert assigned([0], 1.7, F.int64) == [[1, 1, 1], [0, 0, 0]]
    assert assigned(0, np.float64(2.5)) == [[2.5] * 3, [0] * 3]
    assert assigned(0, -1, F.uint8) == [[255] * 3, [0] * 3]


def test_assignment_from_an_overlapping_view_of_itself():
    x = F.arange(6)
    x[:3] = x[3:]
    assert x.tolist() == [3, 4, 5, 3, 4, 5]
    x[:] = x
    assert x.tolist() == [3, 4, 5, 3, 4, 5]
    y = F.arange(4)
    y[[0, 1, 2, 3]] = y[[3, 2, 1, 0]]
    assert y.tolist() == [3, 2, 1, 0]


def test_augmented_assignment_of_items():
    x = F.arange(6).reshape(2, 3)
    x[0] += 10
    x[:, 1] *= 2
    x[[1, 0], [0, 2]] -= 100
    assert x.tolist() == [[10, 22, -88], [-97, 8, 5]]


@pytest.mark.parametrize(
    "index, value, error, text",
    [
        (0, lambda: F.ones(2), RuntimeError, r"\(3\) must match the existing size \(2\)"),
        (0, lambda: F.ones(2, 1, 3), RuntimeError, r"\[2, 1, 3\]"),
        ((0, 0), lambda: F.ones(2), RuntimeError, r"\[2\]"),
        (([0, 1], [0, 1]), lambda: F.ones(3), RuntimeError, r"shape mismatch.*\[3\].*\[2\]"),
        ([], lambda: F.ones(2, 3), RuntimeError, r"shape mismatch.*\[2, 3\].*\[0, 3\]"),
        ([0, 1], lambda: F.tensor([1, 2, 3]), RuntimeError, "dtypes match.*Float.*Long"),
        (0, lambda: "a", TypeError, "can't assign a str"),
        (0, lambda: None, TypeError, "can't assign a NoneType"),
        (0, lambda: 1 + 2j, RuntimeError, "cannot be converted to type float without overflow"),
        (2, lambda: 1, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        ((0, 0, 0), lambda: 1, IndexError, "too many indices"),
        ([5], lambda: 1, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (1.5, lambda: 1, IndexError, "only integers, slices.*float"),
    ],
)
def test_assignment_errors_leave_the_tensor_alone(index, value, error, text):
    x = F.zeros(2, 3)
    with pytest.raises(error, match=text):
        x[index] = value()
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_items_cannot_be_deleted():
    x = F.zeros(2)
    with pytest.raises(TypeError):
        del x[0]


# ---- errors of reading -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "index, text",
    [
        (2, "index 2 is out of bounds for dimension 0 with size 2"),
        (-3, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 5), "index 5 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), "too many indices for tensor of dimension 3"),
        ((slice(None),) * 4, "too many indices for tensor of dimension 3"),
        ([0, 7], "index 7 is out of bounds for dimension 0 with size 2"),
        ((slice(None), [0, -4]), r"index -4 is out of bounds for dimension \d with size 3"),
        pytest.param(
            (slice(None), [0, -4]),
            "index -4 is out of bounds for dimension 1 with size 3",
            marks=pytest.mark.facula_only,
        ),
        (([0, 1], [1, 0, 2]), r"shape mismatch.*broadcast together with shapes \[2\], \[3\]"),
        ([True, False, True], r"mask \[3\] at index 0.*indexed tensor \[2, 3, 4\] at index 0"),
        (1.0, "only integers, slices.*got float"),
        ({}, "only integers, slices.*got dict"),
    ],
)
def test_reading_errors(index, text):
    with pytest.raises(IndexError, match=text):
        cube()[index]


def test_reading_errors_of_tensor_indices():
    with pytest.raises(IndexError, match=r"mask \[2, 2\] at index 1.*\[2, 3, 4\] at index 1"):
        cube()[F.ones(2, 2, dtype=F.bool)]
    with pytest.raises(IndexError, match="too many indices"):
        cube()[F.ones(2, 3, 4, 1, dtype=F.bool)]
    for dtype in (F.float32, F.complex64):
        with pytest.raises(IndexError, match="tensors used as indices must be"):
            cube()[F.ones(1, dtype=dtype)]
    with pytest.raises(IndexError, match="0-dim tensor"):
        F.tensor(5)[0]
    with pytest.raises(IndexError, match="too many indices"):
        F.tensor(5)[[0]]


@pytest.mark.parametrize("bound", ["a", 1.5])
def test_slice_bounds_must_be_integers(bound):
    with pytest.raises(TypeError, match="slice indices must be integers"):
        cube()[bound:]


def test_integers_beyond_64_bits():
    with pytest.raises((ValueError, IndexError, OverflowError)):
        cube()[2**70]


def test_gradients_flow_through_brackets():
    x = F.zeros(3, 2, requires_grad=True)
    (x[[0, 0, 2], [1, 1, 0]] * F.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[0, 11], [0, 0], [100, 0]]
    y = F.ones(3, requires_grad=True)
    z = y * 2
    z[1] = 5
    z.sum().backward()
    assert y.grad.tolist() == [2, 0, 2]


@pytest.mark.parametrize("shape", [(1, 4), (1, 1, 4), (1, 2, 4), (1, 1, 2, 1), (1, 1)])
@pytest.mark.parametrize("index", [[0, 2], np.array([True, False, True])])
def test_leading_ones_of_assigned_tensors_do_not_count(shape, index):
    x, value = F.zeros(3, 4), F.arange(float(np.prod(shape))).view(shape).requires_grad_()
    x[index] = value
    assert x[1].tolist() == [0.0] * 4
    assert F.equal(x[[0, 2]], value.detach().expand(*(1,) * (len(shape) - 2), 2, 4).view(2, 4))
    x.sum().backward()
    assert value.grad.sum() == 8


def test_other_dimensions_too_many_are_refused():
    with pytest.raises(RuntimeError, match="shape mismatch"):
        F.zeros(3, 4)[[0, 1]] = F.ones(2, 1, 4)


def test_an_array_of_one_integer_is_an_integer():
    x = F.zeros(3)
    x[np.array(1)].add_(1)
    x[np.array(2, dtype=np.int32)] = F.tensor(5)
    assert x.tolist() == [0, 1, 5]


def test_assigning_to_true_is_to_everything_and_to_false_to_nothing():
    x = F.zeros(3)
    x[True] = F.tensor([1, 2, 3])
    x[False] = F.ones(7)
    assert x.tolist() == [1, 2, 3]


def test_a_lone_full_slice_is_a_slice_to_autograd():
    x = F.ones(2, 3, requires_grad=True)
    names = [type(view.grad_fn).__name__ for view in (x[:], x[0:], x[:, :], x[...])]
    assert names == ["SliceBackward0", "SliceBackward0", "AliasBackward0", "AliasBackward0"]
