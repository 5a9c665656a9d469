"""copy, deepcopy and pickle: what is shared, what is kept."""

import copy
import pickle

import pytest
from package_under_test import F


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


ROUND_TRIPS = [copy.deepcopy, through_pickle]


def test_copy_shares_storage_and_is_another_object():
    x = F.ones(3, requires_grad=True)
    y = copy.copy(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    assert y.requires_grad


@pytest.mark.parametrize("round_trip", ROUND_TRIPS)
@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int16",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    + [
        pytest.param(name, marks=pytest.mark.facula_only)
        for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
    ],
)
def test_values_and_dtype_survive(round_trip, dtype):
    x = F.tensor([0, 1, 1]).to(getattr(F, dtype))
    y = round_trip(x)
    assert y.dtype is x.dtype
    assert y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("round_trip", ROUND_TRIPS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: F.tensor(3.5),
        lambda: F.zeros(0, 3),
        lambda: F.arange(12).reshape(3, 4).t(),
        lambda: F.arange(12).reshape(3, 4)[:, 1],
        lambda: F.arange(12).reshape(3, 4)[1:, ::2],
        lambda: F.arange(3).expand(2, 3),
        lambda: F.arange(16).reshape(1, 4, 2, 2).contiguous(memory_format=F.channels_last),
    ],
)
def test_shape_strides_and_offset_survive(round_trip, make):
    x = make()
    y = round_trip(x)
    assert (y.shape, y.stride(), y.storage_offset()) == (x.shape, x.stride(), x.storage_offset())
    assert y.tolist() == x.tolist()
    assert y.untyped_storage().nbytes() == x.untyped_storage().nbytes()


@pytest.mark.parametrize("round_trip", ROUND_TRIPS)
def test_requires_grad_survives(round_trip):
    for wanted in (True, False):
        y = round_trip(F.ones(2, requires_grad=wanted))
        assert y.requires_grad is wanted
        assert y.is_leaf


def test_deepcopy_preserves_sharing_between_tensors():
    x = F.arange(6.0)
    pair = copy.deepcopy([x, x, x.view(2, 3)])
    assert pair[0] is pair[1]
    pair[0][0] = 100
    assert pair[2][0, 0].item() == 100
    assert x[0].item() == 0


def test_deepcopy_uses_the_memo():
    x = F.ones(2)
    memo = {}
    y = copy.deepcopy(x, memo)
    assert copy.deepcopy(x, memo) is y


def test_deepcopy_copies_the_gradient_and_the_attributes():
    x = F.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    x.tag = ["a"]
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [3.0, 3.0]
    assert y.grad is not x.grad
    assert y.tag == ["a"]
    assert y.tag is not x.tag


def test_deepcopy_of_a_computed_tensor_is_refused():
    y = F.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(y)
    assert copy.deepcopy(y.detach()).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_binary_pickle_protocol(protocol):
    x = F.arange(4.0).reshape(2, 2).t()
    y = pickle.loads(pickle.dumps(x, protocol=protocol))
    assert y.tolist() == [[0.0, 2.0], [1.0, 3.0]]
    assert y.stride() == (1, 2)


def test_a_pickled_tensor_can_be_written():
    y = through_pickle(F.zeros(3))
    y[1] = 5
    assert y.tolist() == [0.0, 5.0, 0.0]


def test_pickle_of_containers_keeps_one_object_one():
    x = F.ones(2)
    a, b = through_pickle((x, x))
    assert a is b


def test_pickle_keeps_attributes():
    x = F.ones(2)
    x.tag = "hello"
    assert through_pickle(x).tag == "hello"


def test_clone_is_a_copy_on_the_tape_and_detach_a_view_off_it():
    x = F.ones(2, requires_grad=True)
    assert x.clone().data_ptr() != x.data_ptr()
    assert x.clone().grad_fn is not None
    d = x.detach()
    assert d.data_ptr() == x.data_ptr()
    assert not d.requires_grad
    d[0] = 9
    assert x.tolist() == [9.0, 1.0]
