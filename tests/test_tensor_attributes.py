"""What a tensor says about itself: shape, strides, storage, dtype, device."""

import pickle

import pytest
from package_under_test import F


def test_shape_is_a_size_and_a_tuple():
    x = F.zeros(2, 3, 4)
    assert type(x.shape) is F.Size
    assert type(x.size()) is F.Size
    assert isinstance(x.shape, tuple)
    assert x.shape == x.size() == (2, 3, 4)
    assert hash(x.shape) == hash((2, 3, 4))
    assert x.shape.numel() == 24
    assert F.zeros(()).shape.numel() == 1
    assert F.zeros(0, 3).shape.numel() == 0


def test_size_repr_slices_sums_and_pickles_as_a_size():
    size = F.Size([2, 3, 4])
    assert repr(size) == f"{F.__name__}.Size([2, 3, 4])"
    assert repr(F.Size([])) == f"{F.__name__}.Size([])"
    for derived, expected in [
        (size[1:], (3, 4)),
        (size + (1,), (2, 3, 4, 1)),
        ((1,) + size, (1, 2, 3, 4)),
        (size * 2, (2, 3, 4, 2, 3, 4)),
        (pickle.loads(pickle.dumps(size)), (2, 3, 4)),
    ]:
        assert type(derived) is F.Size
        assert derived == expected
    assert size[1] == 3
    batch, *rest = size
    assert (batch, rest) == (2, [3, 4])


@pytest.mark.parametrize("bad", [(2.5,), 5, ("3",), (None,)])
def test_size_refuses_what_is_not_an_iterable_of_ints(bad):
    with pytest.raises(TypeError):
        F.Size(bad)


def test_size_and_stride_of_one_dimension():
    x = F.zeros(2, 3, 4)
    assert (x.size(0), x.size(-1), x.stride(0), x.stride(-1)) == (2, 4, 12, 1)
    for method in (x.size, x.stride):
        for dim in (3, -4):
            with pytest.raises(IndexError, match=r"\[-3, 2\], but got " + str(dim)):
                method(dim)


def test_counts_and_bytes():
    x = F.zeros(2, 3, 4, dtype=F.float64)
    assert x.numel() == x.nelement() == 24
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert x.element_size() == x.itemsize == 8
    assert x.nbytes == 192
    assert len(x) == 2


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2, 0, 4)])
def test_zero_dim_and_zero_size_tensors(shape):
    x = F.ones(shape)
    count = 1 if shape == () else 0
    assert x.shape == shape
    assert x.numel() == count
    assert x.is_contiguous()
    assert x.sum().item() == float(count)
    assert (x + 1).shape == shape
    assert x.clone().shape == shape
    assert x.reshape(count).shape == (count,)


def test_strides_of_an_empty_tensor_count_empty_dimensions_as_one():
    assert F.empty(2, 0, 4).stride() == (4, 4, 1)
    assert F.empty(3, 0).stride() == (1, 1)
    assert F.empty(0).stride() == (1,)
    assert F.empty(()).stride() == ()


def test_storage_offset_and_data_ptr_of_a_view():
    x = F.arange(12).reshape(3, 4)
    row = x[1]
    assert x.storage_offset() == 0
    assert row.storage_offset() == 4
    assert row.data_ptr() == x.data_ptr() + 4 * 8
    assert x[1, 2:].storage_offset() == 6


def test_untyped_storage_is_shared_by_views():
    x = F.arange(12, dtype=F.int32).reshape(3, 4)
    row = x[1]
    assert x.untyped_storage().nbytes() == 48
    assert row.untyped_storage().nbytes() == 48
    assert row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() == x.data_ptr()
    assert x.clone().untyped_storage().data_ptr() != x.data_ptr()


def test_empty_tensor_has_no_data_pointer():
    assert F.empty(0).data_ptr() == 0


def test_flags_of_a_plain_cpu_tensor():
    x = F.zeros(2)
    assert x.device == F.device("cpu")
    assert x.layout is F.strided
    assert x.is_leaf
    assert not x.requires_grad
    assert not x.is_cuda
    assert not x.is_meta
    assert not x.is_sparse
    assert not x.is_quantized
    assert not x.is_conj()
    assert not x.is_inference()
    assert x.get_device() == -1
    assert x.grad is None
    assert x.grad_fn is None
    assert x._base is None


def test_version_counts_writes_and_is_shared_by_views():
    x = F.zeros(3)
    view = x[1:]
    assert x._version == view._version == 0
    x.add_(1)
    assert x._version == view._version == 1
    view.mul_(2)
    assert x._version == 2
    x[0] = 5
    assert x._version == 3
    assert x.detach()._version == 3
    assert x.clone()._version == 0
    assert x.data._version == 0


def test_meta_tensors_have_everything_but_data():
    x = F.empty(2, 3, device="meta")
    assert x.is_meta
    assert x.device == F.device("meta")
    assert (x.shape, x.stride(), x.dtype) == ((2, 3), (3, 1), F.float32)
    y = (x + F.empty(3, device="meta", dtype=F.float64)).sum(0)
    assert (y.shape, y.dtype, y.is_meta) == ((3,), F.float64, True)
    with pytest.raises((RuntimeError, NotImplementedError)):
        x.tolist()
    with pytest.raises((RuntimeError, NotImplementedError)):
        x[0, 0].item()


@pytest.mark.parametrize(
    "dtype, floating, is_complex, signed",
    [
        ("bool", False, False, False),
        ("uint8", False, False, False),
        ("uint16", False, False, False),
        ("int64", False, False, True),
        ("float16", True, False, True),
        ("bfloat16", True, False, True),
        ("float64", True, False, True),
        ("complex64", False, True, True),
        ("float8_e4m3fn", True, False, True),
    ],
)
def test_category_queries(dtype, floating, is_complex, signed):
    x = F.empty(1, dtype=getattr(F, dtype))
    assert x.is_floating_point() is F.is_floating_point(x) is floating
    assert x.is_complex() is F.is_complex(x) is is_complex
    assert x.is_signed() is signed


@pytest.mark.parametrize(
    "dtype, name",
    [
        ("float32", "FloatTensor"),
        ("float64", "DoubleTensor"),
        ("float16", "HalfTensor"),
        ("bfloat16", "BFloat16Tensor"),
        ("uint8", "ByteTensor"),
        ("int8", "CharTensor"),
        ("int16", "ShortTensor"),
        ("int32", "IntTensor"),
        ("int64", "LongTensor"),
        ("bool", "BoolTensor"),
        ("complex64", "ComplexFloatTensor"),
    ],
)
def test_type_names(dtype, name):
    x = F.zeros(2, dtype=getattr(F, dtype))
    assert x.type() == f"{F.__name__}.{name}"
    assert F.zeros(2).type(f"{F.__name__}.{name}").dtype == x.dtype
    assert F.zeros(2).type(x.dtype).dtype == x.dtype


def test_free_functions_on_tensors():
    x = F.zeros(2, 3)
    assert F.is_tensor(x)
    assert not F.is_tensor([1])
    assert F.numel(x) == 6
    assert F.is_nonzero(F.tensor([[2]]))
    assert not F.is_nonzero(F.tensor(0.0))


def test_real_and_imag_are_views():
    z = F.tensor([1 + 2j, 3 + 4j])
    z.real[0] = 10
    z.imag[1] = 40
    assert z.tolist() == [10 + 2j, 3 + 40j]
    assert z.real.stride() == (2,)
    x = F.zeros(2)
    assert x.real is x or x.real.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="imag"):
        _ = x.imag


def test_transposed_attributes():
    x = F.arange(6).reshape(2, 3)
    assert x.T.tolist() == x.mT.tolist() == x.H.tolist() == [[0, 3], [1, 4], [2, 5]]
    z = F.tensor([[1 + 1j, 2 - 2j]])
    assert z.H.tolist() == z.mH.tolist() == [[1 - 1j], [2 + 2j]]
    batch = F.zeros(5, 2, 3)
    assert batch.mT.shape == (5, 3, 2)
    with pytest.raises(RuntimeError):
        _ = batch.H
    with pytest.raises(RuntimeError):
        _ = F.zeros(3).mT


def test_data_shares_memory_and_leaves_the_tape():
    x = F.ones(3, requires_grad=True)
    y = x * 2
    assert not x.data.requires_grad
    assert y.data.grad_fn is None
    assert x.data.data_ptr() == x.data_ptr()
    x.data[0] = 7
    assert x.tolist() == [7.0, 1.0, 1.0]
    x.data = F.zeros(2, 2)
    assert x.shape == (2, 2)
    assert x.requires_grad
    with pytest.raises(TypeError):
        x.data = [1, 2]


def test_any_attribute_can_be_set_on_a_tensor():
    x = F.zeros(2)
    x.label = "weights"
    assert x.label == "weights"
    assert x.__dict__ == {"label": "weights"}
    del x.label
    assert not hasattr(x, "label")
    assert not hasattr(F.zeros(2), "label")


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "ndim", "is_leaf", "T", "nbytes"])
def test_computed_attributes_are_read_only(name):
    x = F.zeros(2, 2)
    with pytest.raises(AttributeError):
        setattr(x, name, getattr(x, name))


def test_requires_grad_can_be_switched_on_leaves_only():
    x = F.zeros(2)
    x.requires_grad = True
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad
    y = x.requires_grad_() * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="float"):
        F.zeros(2, dtype=F.int64).requires_grad = True
