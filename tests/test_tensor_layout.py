"""Memory formats and strides: what operators keep, what contiguous() and to() make."""

import pytest
from package_under_test import F


def channels_last(*shape):
    return F.zeros(*shape).contiguous(memory_format=F.channels_last)


def test_channels_last_strides():
    x = channels_last(2, 3, 4, 5)
    assert x.stride() == (60, 1, 15, 3)
    assert x.is_contiguous(memory_format=F.channels_last)
    assert not x.is_contiguous()
    v = F.zeros(2, 3, 4, 5, 6).to(memory_format=F.channels_last_3d)
    assert v.stride() == (360, 1, 90, 18, 3)
    assert v.is_contiguous(memory_format=F.channels_last_3d)


def test_channels_last_keeps_the_values():
    x = F.arange(24).reshape(1, 2, 3, 4)
    y = x.contiguous(memory_format=F.channels_last)
    assert y.tolist() == x.tolist()
    assert y.contiguous().flatten().tolist() == list(range(24))


@pytest.mark.parametrize(
    "shape, plain, last",
    [
        ((2, 3), True, False),
        ((2, 3, 4, 5), True, False),
        ((2, 1, 4, 5), True, True),  # one channel: both at once
        ((2, 3, 1, 1), True, True),
    ],
)
def test_is_contiguous_of_fresh_tensors(shape, plain, last):
    x = F.zeros(shape)
    assert x.is_contiguous() is plain
    assert x.is_contiguous(memory_format=F.channels_last) is last


def test_is_contiguous_ignores_strides_of_single_elements():
    assert F.zeros(3, 4)[:1].is_contiguous()
    assert F.zeros(3, 4)[1:].is_contiguous()
    assert not F.zeros(3, 4)[:, :1].is_contiguous()
    assert not F.zeros(3, 4).t().is_contiguous()
    assert F.zeros(3, 4)[:, :0].is_contiguous()
    assert F.zeros(1, 4).expand(1, 4).t().is_contiguous() is True


def test_contiguous_returns_the_tensor_itself_when_it_can():
    x = F.zeros(2, 3)
    assert x.contiguous() is x
    c = channels_last(2, 3, 4, 5)
    assert c.contiguous(memory_format=F.channels_last) is c
    t = x.t().contiguous()
    assert t.stride() == (2, 1)
    assert t.data_ptr() != x.data_ptr()


def test_contiguous_preserves_what_is_contiguous_only():
    x = F.zeros(2, 3)
    assert x.contiguous(memory_format=F.preserve_format) is x
    with pytest.raises(RuntimeError, match="preserve memory format"):
        x.t().contiguous(memory_format=F.preserve_format)


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x + 1,
        lambda x: x + F.zeros(5),
        lambda x: x + F.zeros(2, 3, 4, 5),
        lambda x: x.exp(),
        lambda x: x > 0,
        lambda x: F.where(x > 0, x, x),
        lambda x: x.clone(),
        lambda x: x.to(F.float64),
        lambda x: F.empty_like(x),
        lambda x: F.zeros_like(x, dtype=F.int8),
        lambda x: F.rand_like(x),
    ],
)
def test_channels_last_is_kept(op):
    assert op(channels_last(2, 3, 4, 5)).stride() == (60, 1, 15, 3)


def test_the_first_operand_decides_between_layouts():
    x = F.zeros(2, 3, 4, 5)
    assert (x + channels_last(2, 3, 4, 5)).stride() == (60, 20, 5, 1)
    a, b = F.zeros(3, 4).t(), F.zeros(4, 3)
    assert (a + b).stride() == (1, 4)
    assert (b + a).stride() == (3, 1)


@pytest.mark.parametrize("op", [lambda x: x + 1, lambda x: x.clone(), lambda x: F.empty_like(x)])
@pytest.mark.parametrize(
    "make, strides",
    [
        (lambda: F.zeros(3, 4).t(), (1, 4)),  # dense and permuted: kept
        (lambda: F.zeros(2, 3, 4).permute(1, 2, 0), (4, 1, 12)),
        (lambda: F.zeros(3, 4)[:, ::2], (2, 1)),  # gaps: packed
        (lambda: F.zeros(4).expand(3, 4), (4, 1)),  # overlap: packed
        (lambda: F.zeros(3, 1).expand(3, 4), (4, 1)),
    ],
)
def test_preserved_strides_of_dense_layouts(make, strides, op):
    assert op(make()).stride() == strides


def test_memory_format_arguments():
    c = channels_last(2, 3, 4, 5)
    plain = (60, 20, 5, 1)
    assert c.contiguous().stride() == plain
    assert c.clone(memory_format=F.contiguous_format).stride() == plain
    assert c.to(memory_format=F.contiguous_format).stride() == plain
    assert F.empty_like(c, memory_format=F.contiguous_format).stride() == plain
    assert F.empty(2, 3, 4, 5, memory_format=F.channels_last).stride() == (60, 1, 15, 3)
    assert c.clone(memory_format=F.preserve_format).stride() == c.stride()


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.empty(2, 3, memory_format=F.channels_last),
        lambda: F.zeros(2, 3, 4, 5, 6).to(memory_format=F.channels_last),
        lambda: F.zeros(2, 3, 4, 5).contiguous(memory_format=F.channels_last_3d),
    ],
)
def test_memory_formats_that_do_not_fit(call):
    with pytest.raises(RuntimeError):
        call()


# ---- to, new_*, *_like -----------------------------------------------------------------------


def test_to_returns_self_when_nothing_changes():
    x = F.ones(2)
    same = [x.to(F.float32), x.to("cpu"), x.to(F.device("cpu")), x.to(x), x.to(None), x.float()]
    assert all(y is x for y in same)
    assert x.cpu() is x
    assert x.to(F.float32, copy=True) is not x
    assert x.to(F.float32, copy=True).data_ptr() != x.data_ptr()


def test_to_overloads():
    x = F.ones(2)
    calls = [
        x.to(F.float64),
        x.to(dtype=F.float64),
        x.to("cpu", F.float64),
        x.to(device="cpu", dtype=F.float64),
        x.to(F.zeros(1, dtype=F.float64)),
        x.to(tensor=F.zeros(1, dtype=F.float64)),
        x.to(F.float64, non_blocking=True),
        x.to(F.float64, True, True),
        x.double(),
        x.type_as(F.zeros(1, dtype=F.float64)),
    ]
    for y in calls:
        assert y.dtype is F.float64
        assert y.tolist() == [1.0, 1.0]
    meta = x.to("meta")
    assert (meta.device.type, meta.shape, meta.dtype) == ("meta", (2,), F.float32)


def test_to_errors():
    x = F.ones(2)
    with pytest.raises(RuntimeError, match="float32"):
        x.to("float32")  # a device name is expected
    with pytest.raises(TypeError):
        x.to([1])
    with pytest.raises(NotImplementedError, match="meta"):
        F.zeros(2, device="meta").to("cpu")


@pytest.mark.parametrize(
    "method, name",
    [
        ("half", "float16"),
        ("bfloat16", "bfloat16"),
        ("float", "float32"),
        ("double", "float64"),
        ("byte", "uint8"),
        ("char", "int8"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("bool", "bool"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
    ],
)
def test_conversion_methods(method, name):
    y = getattr(F.tensor([0, 1, 1]), method)()
    assert y.dtype is getattr(F, name)
    assert y.tolist() == [0, 1, 1]


def test_value_conversions():
    assert F.tensor([1.9, -1.9]).int().tolist() == [1, -1]
    assert F.tensor([0.0, -0.0, 0.1, float("nan")]).bool().tolist() == [False, False, True, True]
    assert F.tensor([300, -1]).byte().tolist() == [44, 255]
    assert F.tensor([1 / 3]).half().item() == 0.333251953125
    assert F.tensor([1 / 3]).bfloat16().item() == 0.333984375
    assert F.tensor([65520.0]).half().item() == float("inf")
    assert F.tensor([True, False]).float().tolist() == [1.0, 0.0]
    assert F.tensor([2**24 + 1]).float().item() == 2.0**24
    assert F.tensor([-1]).to(F.uint32).tolist() == [2**32 - 1]
    assert F.tensor([2**40 + 5]).to(F.uint16).tolist() == [5]


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_complex_to_real_drops_the_imaginary_part():
    assert F.tensor([1 + 2j]).float().tolist() == [1.0]
    assert F.tensor([0 + 2j]).bool().tolist() == [True]


def test_new_methods_take_dtype_and_device_from_the_tensor():
    x = F.zeros(2, dtype=F.int8)
    assert x.new_zeros(3).tolist() == [0, 0, 0]
    assert x.new_ones(2, 1).tolist() == x.new_ones((2, 1)).tolist() == [[1], [1]]
    assert x.new_full((2,), 3.7).tolist() == [3, 3]
    assert x.new_tensor([1.5, 2.5]).tolist() == [1, 2]
    assert x.new_empty(2, 3).shape == (2, 3)
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    made = [x.new_zeros(3), x.new_ones(1), x.new_full((2,), 3), x.new_tensor([1]), x.new_empty(1)]
    assert all(y.dtype is F.int8 for y in made)
    assert x.new_zeros(3, dtype=F.float64).dtype is F.float64
    assert F.zeros(1, device="meta").new_ones(2).is_meta
    assert F.zeros(1).new_ones(2, requires_grad=True).requires_grad


def test_like_functions():
    x = F.zeros(2, 3, dtype=F.int16)
    assert F.ones_like(x).tolist() == [[1] * 3] * 2
    assert F.zeros_like(F.ones(2)).tolist() == [0.0, 0.0]
    assert F.full_like(x, 7).tolist() == [[7] * 3] * 2
    assert F.full_like(x, 3.7).tolist() == [[3] * 3] * 2
    for made in (F.ones_like(x), F.zeros_like(x), F.full_like(x, 1), F.empty_like(x)):
        assert (made.shape, made.dtype) == ((2, 3), F.int16)
    assert F.ones_like(x, dtype=F.float64).dtype is F.float64
    assert F.ones_like(x, device="meta").is_meta
    assert F.zeros_like(F.ones(2), requires_grad=True).requires_grad
    assert not F.zeros_like(F.ones(2, requires_grad=True)).requires_grad


# ---- as_strided ------------------------------------------------------------------------------


def test_as_strided():
    x = F.arange(10)
    assert x.as_strided((3, 3), (2, 1), 1).tolist() == [[1, 2, 3], [3, 4, 5], [5, 6, 7]]
    assert F.as_strided(x, (2, 2), (0, 1)).tolist() == [[0, 1], [0, 1]]
    tail = x[2:]
    assert tail.as_strided((2,), (1,)).tolist() == [2, 3]  # starts where the tensor starts
    assert tail.as_strided((2,), (1,), 0).tolist() == [0, 1]  # an offset counts from the storage
    x.as_strided((5,), (2,))[1] = 99
    assert x[2].item() == 99


@pytest.mark.parametrize(
    "args",
    [
        ((3, 3), (4, 1), 1),  # past the end
        ((11,), (1,)),
        ((3, 3), (-1, 1), 4),
        ((3,), (1, 1)),
        ((3, -3), (1, 1)),
        ((3,), (1,), -1),
        ((2**62,), (1,)),
        ((2**40, 2**40), (2**40, 1)),
    ],
)
def test_as_strided_refuses_what_leaves_the_storage(args):
    with pytest.raises(RuntimeError):
        F.arange(10).as_strided(*args)
