"""Making tensors: from Python values, filled, ranges, strided; and what cannot be made."""

import math

import numpy as np
import pytest
from package_under_test import F

# ---- from Python values ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, name, values",
    [
        (1, "int64", 1),
        (True, "bool", True),
        (1.5, "float32", 1.5),
        (1j, "complex64", 1j),
        ([1, 2], "int64", [1, 2]),
        ((1, 2), "int64", [1, 2]),
        (range(3), "int64", [0, 1, 2]),
        ([1, 2.5], "float32", [1.0, 2.5]),
        ([True, 2], "int64", [1, 2]),
        ([True, 2.5], "float32", [1.0, 2.5]),
        ([1, 2j], "complex64", [1 + 0j, 2j]),
        ([[1, 2], [3, 4]], "int64", [[1, 2], [3, 4]]),
        ([(1, 2), [3, 4]], "int64", [[1, 2], [3, 4]]),
        ([], "float32", []),
        ([[], []], "float32", [[], []]),
        ([[[]]], "float32", [[[]]]),
        (2**63 - 1, "int64", 2**63 - 1),
        (-(2**63), "int64", -(2**63)),
        (1e39, "float32", math.inf),
    ],
)
def test_tensor_infers_dtype_and_shape(data, name, values):
    x = F.tensor(data)
    assert x.dtype is getattr(F, name)
    assert x.tolist() == values
    assert x.shape == np.shape(values)
    assert x.is_contiguous()


@pytest.mark.parametrize(
    "data, name",
    [
        (np.float64(1.5), "float64"),
        (np.float32(1.5), "float32"),
        (np.int8(1), "int8"),
        (np.bool_(True), "bool"),
        ([np.float64(1.5)], "float64"),
        ([np.int8(1)], "int8"),
        ([np.bool_(True)], "bool"),
        (np.array([1, 2], dtype=np.int16), "int16"),
        ([np.array([1, 2]), np.array([3, 4])], "int64"),
        ([np.array([1.5, 2])], "float64"),
    ],
)
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
def test_tensor_of_numpy_values_keeps_their_dtype(data, name):
    x = F.tensor(data)
    assert x.dtype is getattr(F, name)
    assert x.tolist() == np.asarray(data).tolist()


def test_tensor_of_zero_dim_tensors():
    assert F.tensor([F.tensor(1), F.tensor(2)]).tolist() == [1, 2]
    mixed = F.tensor([F.tensor(1.5), 2])
    assert (mixed.dtype, mixed.tolist()) == (F.float32, [1.5, 2.0])


@pytest.mark.parametrize(
    "data, name, values",
    [
        (1.5, "int64", 1),
        ([1.5, -1.5], "int32", [1, -1]),
        (2, "bool", True),
        (0.0, "bool", False),
        (1, "complex128", 1 + 0j),
        (-1, "uint8", 255),
        (2**63, "uint64", 2**63),
        (2**64 - 1, "uint64", 2**64 - 1),
        (2**63, "float64", 2.0**63),
        (1e39, "float16", math.inf),
        ([0.1], "float64", [0.1]),
        ([1 / 3], "bfloat16", [0.333984375]),
        ([3.0], "float8_e4m3fn", [3.0]),
    ],
)
def test_tensor_with_a_dtype(data, name, values):
    x = F.tensor(data, dtype=getattr(F, name))
    assert x.dtype is getattr(F, name)
    assert x.tolist() == values


@pytest.mark.parametrize(
    "type_, name", [(float, "float64"), (int, "int64"), (bool, "bool"), (complex, "complex128")]
)
def test_python_types_stand_for_dtypes(type_, name):
    assert F.tensor(1, dtype=type_).dtype is getattr(F, name)
    assert F.zeros(1, dtype=type_).dtype is getattr(F, name)


def test_tensor_copies():
    array = np.ones(2)
    x = F.tensor(array)
    array[0] = 5
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_tensor_of_a_tensor_is_a_detached_copy():
    source = F.ones(2, requires_grad=True)
    copy = F.tensor(source)
    assert copy.data_ptr() != source.data_ptr()
    assert not copy.requires_grad


RAGGED_OR_ODD = {
    "ragged, longer": ([[1], [2, 3]], ValueError, "length 1 at dim 1.*got 2"),
    "ragged, shorter": ([[1, 2], [3]], ValueError, "length 2 at dim 1.*got 1"),
    "list among numbers": ([1, [2]], (TypeError, ValueError), ""),
    "number among lists": ([[1], 2], (TypeError, ValueError), "sequence"),
    "deeper list": ([[1], [[2]]], (TypeError, ValueError), ""),
    "string": ("abc", TypeError, "str"),
    "list of strings": (["a"], (TypeError, ValueError), "str"),
    "bytes": (b"ab", TypeError, "bytes"),
    "none": (None, (RuntimeError, TypeError), "NoneType"),
    "list of none": ([1, None], (RuntimeError, TypeError), "NoneType"),
    "dict": ({}, (RuntimeError, TypeError), "dict"),
    "set": ({1, 2}, (RuntimeError, TypeError), "set"),
    "object": (object(), (RuntimeError, TypeError), "object"),
    "too large": (2**63, (ValueError, RuntimeError, OverflowError), ""),
    "array of strings": (np.array(["a"]), TypeError, "str_.*supported types.*float64"),
    "array of objects": (np.array([object()]), TypeError, "object_.*supported types"),
}


@pytest.mark.parametrize("data, error, text", RAGGED_OR_ODD.values(), ids=RAGGED_OR_ODD.keys())
def test_values_that_are_no_tensor(data, error, text):
    with pytest.raises(error, match=text or None):
        F.tensor(data)


def test_cyclic_lists_raise():
    loop = [1]
    loop.append(loop)
    mutual = [[]]
    mutual[0].append(mutual)
    only = []
    only.append(only)
    for data in (loop, mutual, only):
        with pytest.raises((TypeError, ValueError, RuntimeError, RecursionError)):
            F.tensor(data)


def test_very_deep_lists_raise():
    deep = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises((TypeError, ValueError, RuntimeError, RecursionError)):
        F.tensor(deep)
    while isinstance(deep, list):  # unwind without recursion
        deep = deep.pop()


@pytest.mark.parametrize(
    "data, name",
    [
        (300, "uint8"),
        ([300], "uint8"),
        (2**64, "uint64"),
        (float("nan"), "int64"),
        (float("inf"), "int32"),
        (1j, "float32"),
    ],
)
def test_values_that_do_not_fit_the_dtype(data, name):
    with pytest.raises((RuntimeError, OverflowError, TypeError)):
        F.tensor(data, dtype=getattr(F, name))


class Misbehaved:
    """A sequence that lies about its length."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index == 0:
            return 1
        raise RuntimeError("no more items")


def test_exceptions_inside_sequences_come_through():
    with pytest.raises(RuntimeError, match="no more items"):
        F.tensor(Misbehaved())


def test_legacy_constructors():
    assert F.Tensor(2, 3).shape == (2, 3)
    assert F.Tensor([1, 2]).dtype is F.float32
    assert F.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert F.Tensor(F.Size([2])).shape == (2,)
    assert F.Tensor().shape == (0,)
    assert F.FloatTensor([1, 2]).tolist() == [1.0, 2.0]
    assert F.LongTensor([1]).dtype is F.int64
    assert F.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(F.LongTensor([1]), F.LongTensor)
    assert not isinstance(F.FloatTensor([1]), F.LongTensor)


# ---- as_tensor and asarray -------------------------------------------------------------------


def test_as_tensor_shares_when_it_can():
    x = F.ones(2)
    assert F.as_tensor(x) is x
    assert F.as_tensor(x, dtype=F.float64).dtype is F.float64
    array = np.ones(2)
    shared = F.as_tensor(array)
    array[0] = 5
    assert shared.tolist() == [5.0, 1.0]
    copied = F.as_tensor(array, dtype=F.float32)
    array[0] = 7
    assert copied.tolist() == [5.0, 1.0]
    assert F.as_tensor([1, 2]).tolist() == [1, 2]


def test_asarray():
    array = np.ones(2)
    assert F.asarray(array).data_ptr() == array.ctypes.data
    assert F.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert F.asarray(array, copy=False).data_ptr() == array.ctypes.data
    x = F.ones(2)
    assert F.asarray(x).data_ptr() == x.data_ptr()
    assert F.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert F.asarray([1, 2], dtype=F.float16).dtype is F.float16
    assert F.asarray(3).tolist() == 3
    assert F.asarray(bytearray(8), dtype=F.float32).tolist() == [0.0, 0.0]
    assert F.asarray([1.0], requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="alias"):
        F.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="alias"):
        F.asarray(array, dtype=F.float32, copy=False)
    with pytest.raises((RuntimeError, TypeError)):
        F.asarray(None)


# ---- filled ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name, value", [("zeros", 0.0), ("ones", 1.0)])
def test_sizes_may_be_written_in_many_ways(name, value):
    make = getattr(F, name)
    for made in (
        make(2, 3),
        make((2, 3)),
        make([2, 3]),
        make(F.Size([2, 3])),
        make(size=(2, 3)),
        make(np.int64(2), F.tensor(3)),
    ):
        assert made.tolist() == [[value] * 3] * 2
    assert make(()).tolist() == value
    assert make(0, 2**40).shape == (0, 2**40)


def test_full_takes_the_dtype_of_the_value():
    for value, name in [(True, "bool"), (1, "int64"), (1.5, "float32"), (1j, "complex64")]:
        made = F.full((2,), value)
        assert (made.dtype, made.tolist()) == (getattr(F, name), [value, value])
    assert F.full((2,), 3.7, dtype=F.int32).tolist() == [3, 3]
    assert F.full((), 3).tolist() == 3
    assert F.full((2,), F.tensor(3)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="overflow"):
        F.full((2,), 300, dtype=F.uint8)
    with pytest.raises(TypeError, match=r"fill_value.*Number.*NoneType"):
        F.full((2,), None)


def test_options_of_creation():
    x = F.zeros(2, dtype=F.float64, device="cpu", layout=F.strided, requires_grad=True)
    assert (x.dtype, x.requires_grad, x.is_leaf) == (F.float64, True, True)
    with pytest.raises(RuntimeError, match="floating point and complex"):
        F.zeros(2, dtype=F.int32, requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point and complex"):
        F.tensor([1], requires_grad=True)
    out = F.ones(2)
    assert F.zeros(2, out=out) is out
    assert out.tolist() == [0.0, 0.0]
    assert F.arange(3, out=F.empty(0)).tolist() == [0.0, 1.0, 2.0]


CREATORS = {
    "tensor": lambda **k: F.tensor([1.0, 2.0], **k),
    "empty": lambda **k: F.empty(2, **k),
    "zeros": lambda **k: F.zeros(2, **k),
    "ones": lambda **k: F.ones(2, **k),
    "full": lambda **k: F.full((2,), 1.5, **k),
    "arange": lambda **k: F.arange(2.0, **k),
    "linspace": lambda **k: F.linspace(0, 1, 2, **k),
    "logspace": lambda **k: F.logspace(0, 1, 2, **k),
    "eye": lambda **k: F.eye(2, **k)[0],
    "rand": lambda **k: F.rand(2, **k),
    "randn": lambda **k: F.randn(2, **k),
    "empty_strided": lambda **k: F.empty_strided((2,), (1,), **k),
    "empty_like": lambda **k: F.empty_like(F.zeros(2), **k),
    "zeros_like": lambda **k: F.zeros_like(F.zeros(2), **k),
    "full_like": lambda **k: F.full_like(F.zeros(2), 1.5, **k),
    "rand_like": lambda **k: F.rand_like(F.zeros(2), **k),
    "new_zeros": lambda **k: F.zeros(1).new_zeros(2, **k),
}


@pytest.mark.parametrize("make", CREATORS.values(), ids=CREATORS.keys())
def test_every_creator_takes_dtype_device_and_requires_grad(make):
    assert make().dtype is F.float32
    made = make(dtype=F.float64, requires_grad=True)
    assert (made.shape, made.dtype, made.requires_grad) == ((2,), F.float64, True)
    meta = make(device="meta")
    assert (meta.is_meta, meta.shape, meta.dtype) == (True, (2,), F.float32)


@pytest.mark.parametrize(
    "make",
    [
        lambda: F.randint(3, (2,), device="meta"),
        lambda: F.randperm(2, device="meta"),
        lambda: F.arange(2, device="meta"),
    ],
)
def test_integer_creators_on_meta(make):
    meta = make()
    assert (meta.is_meta, meta.shape, meta.dtype) == (True, (2,), F.int64)


# ---- sizes that cannot be --------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [(2**62,), (2**40, 2**40), (2**31, 2**31, 2**31), (2**50,), (2**62, 4)]
)
@pytest.mark.parametrize("name", ["empty", "zeros", "rand"])
def test_absurd_sizes_raise(name, size):
    with pytest.raises((RuntimeError, MemoryError)):
        getattr(F, name)(size)


@pytest.mark.parametrize("size", [(2**63,), (2**70,), (2, 2**64)])
def test_sizes_beyond_64_bits_raise(size):
    with pytest.raises((TypeError, RuntimeError, OverflowError, ValueError)):
        F.zeros(size)


@pytest.mark.parametrize("size", [(-1,), (2, -3), (0, -1)])
@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand"])
def test_negative_sizes_raise(name, size):
    with pytest.raises(RuntimeError, match="negative"):
        getattr(F, name)(size)
    with pytest.raises(RuntimeError, match="negative"):
        F.full(size, 1)


@pytest.mark.parametrize("size", [2.5, (2, 2.5), "a", None, (2, None), float("nan"), True, {}])
def test_sizes_must_be_integers(size):
    with pytest.raises(TypeError, match="size"):
        F.zeros(size)


def test_size_is_required():
    with pytest.raises(TypeError, match="size"):
        F.zeros()


def test_empty_strided():
    x = F.empty_strided((2, 3), (1, 2))
    assert (x.shape, x.stride()) == ((2, 3), (1, 2))
    assert F.empty_strided((2, 3), (0, 0)).untyped_storage().nbytes() == 4
    assert F.empty_strided((2, 0), (5, 5)).untyped_storage().nbytes() == 0
    for args in (((2, 3), (1,)), ((2, 3), (-1, 2)), ((2, -3), (1, 2)), ((2**62, 4), (1, 1))):
        with pytest.raises(RuntimeError):
            F.empty_strided(*args)


# ---- ranges ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, kwargs, name, values",
    [
        ((5,), {}, "int64", [0, 1, 2, 3, 4]),
        ((1, 5), {}, "int64", [1, 2, 3, 4]),
        ((1, 5, 2), {}, "int64", [1, 3]),
        ((5, 0, -2), {}, "int64", [5, 3, 1]),
        ((0,), {}, "int64", []),
        ((3, 3), {}, "int64", []),
        ((0, 1, 0.25), {}, "float32", [0.0, 0.25, 0.5, 0.75]),
        ((3.0,), {}, "float32", [0.0, 1.0, 2.0]),
        ((0.5, 3), {}, "float32", [0.5, 1.5, 2.5]),
        ((3,), {"dtype": "float64"}, "float64", [0.0, 1.0, 2.0]),
        ((2.5,), {"dtype": "int64"}, "int64", [0, 1]),
        ((3,), {"dtype": "uint8"}, "uint8", [0, 1, 2]),
        ((3,), {"dtype": "bfloat16"}, "bfloat16", [0.0, 1.0, 2.0]),
        ((), {"end": 3}, "int64", [0, 1, 2]),
        ((), {"start": 1, "end": 3}, "int64", [1, 2]),
        ((2**63 - 2, 2**63 - 1), {}, "int64", [2**63 - 2]),
    ],
)
def test_arange(args, kwargs, name, values):
    kwargs = {k: getattr(F, v) if k == "dtype" else v for k, v in kwargs.items()}
    x = F.arange(*args, **kwargs)
    assert (x.dtype, x.tolist()) == (getattr(F, name), values)


def test_arange_counts_its_steps_in_double():
    assert F.arange(0, 1, 0.1).shape == (10,)
    assert F.arange(0, 1, 0.1, dtype=F.float64).tolist() == [i * 0.1 for i in range(10)]
    assert F.arange(F.tensor(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "args, text",
    [
        ((5, 0), "step sign"),
        ((0, 5, -1), "step sign"),
        ((0, 5, 0), "nonzero"),
        ((0, math.inf), "unsupported range"),
        ((0, math.nan), "unsupported range"),
        ((2**62,), None),
    ],
)
def test_arange_errors(args, text):
    with pytest.raises((RuntimeError, MemoryError), match=text):
        F.arange(*args)


def test_linspace():
    assert F.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert F.linspace(3, 1, 3).tolist() == [3.0, 2.0, 1.0]
    assert F.linspace(4, 10, 1).tolist() == [4.0]
    assert F.linspace(0, 1, 0).tolist() == []
    assert F.linspace(0, 10, 5, dtype=F.int64).tolist() == [0, 2, 5, 7, 10]
    assert F.linspace(0, 1j, 3).tolist() == [0j, 0.5j, 1j]
    assert F.linspace(F.tensor(0.0), F.tensor(1.0), 3).tolist() == [0.0, 0.5, 1.0]
    x = F.linspace(-0.1, 0.1, 8, dtype=F.float64)
    assert (x + x.flip(0) == 0).all()  # both ends count inwards, so it is symmetric
    assert x[-1].item() == 0.1
    with pytest.raises(RuntimeError, match="non-negative"):
        F.linspace(0, 1, -1)
    with pytest.raises(TypeError):
        F.linspace(0, 1)


def test_logspace():
    assert F.logspace(0, 2, 3).tolist() == [1.0, 10.0, 100.0]
    assert F.logspace(0, 3, 4, base=2).tolist() == [1.0, 2.0, 4.0, 8.0]
    assert F.logspace(-1, 1, 3, dtype=F.float64).tolist() == pytest.approx([0.1, 1.0, 10.0])


# ---- matrices --------------------------------------------------------------------------------


def test_eye():
    assert F.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert F.eye(2, 3, dtype=F.int64).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert F.eye(0).shape == (0, 0)
    with pytest.raises(RuntimeError, match="-1"):
        F.eye(-1)


def test_triangles():
    assert F.tril_indices(3, 3).tolist() == [[0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]]
    assert F.tril_indices(2, 3, 1).tolist() == [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]
    assert F.triu_indices(3, 3).tolist() == [[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    assert F.triu_indices(2, 3, -1, dtype=F.int32).dtype is F.int32
    assert F.triu_indices(3, 2, 2).tolist() == [[], []]
    assert F.triu_indices(3, 2, -9).tolist() == [[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]]
    assert F.tril_indices(3, 2, -2).tolist() == [[2], [0]]
    assert F.tril_indices(0, 2).shape == (2, 0)
    assert F.tril(F.ones(2, 2)).tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert F.triu(F.ones(2, 3), 1).tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    assert F.diag(F.tensor([1, 2])).tolist() == [[1, 0], [0, 2]]
    assert F.diag(F.tensor([[1, 2], [3, 4]])).tolist() == [1, 4]


def test_scalars_and_complex_numbers():
    assert F.scalar_tensor(3).dtype is F.float32
    assert F.scalar_tensor(3, dtype=F.int32).tolist() == 3
    z = F.complex(F.tensor([1.0]), F.tensor([2.0]))
    assert (z.dtype, z.tolist()) == (F.complex64, [1 + 2j])
    assert F.complex(F.tensor([1.0]).double(), F.tensor([2.0]).double()).dtype is F.complex128
    assert F.polar(F.tensor([2.0]), F.tensor([0.0])).tolist() == [2 + 0j]
    with pytest.raises(RuntimeError, match="Double"):
        F.complex(F.tensor([1.0]), F.tensor([2.0]).double())
    with pytest.raises(RuntimeError, match="Long"):
        F.complex(F.tensor([1]), F.tensor([2]))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: F.tensor(), "data"),
        (lambda: F.tensor(1, 2), "positional"),
        (lambda: F.tensor(1, bad=2), "bad"),
        (lambda: F.tensor(1, dtype="float32"), "dtype.*str"),
        (lambda: F.zeros(2, bad=2), "bad"),
        (lambda: F.full(2, 3), "size.*tuple of ints.*int"),
        (lambda: F.zeros_like([1, 2]), "input.*Tensor.*list"),
        (lambda: F.zeros(2, requires_grad="yes"), "requires_grad"),
    ],
)
def test_argument_errors_name_the_argument(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_nothing_given_has_no_format_to_preserve():
    with pytest.raises(RuntimeError, match="unsupported memory format"):
        F.empty(2, 3, memory_format=F.preserve_format)


def test_no_blocks_make_an_empty_row():
    assert F.block_diag().shape == (1, 0)


def test_negative_sizes_do_not_broadcast():
    with pytest.raises(ValueError, match="negative"):
        F.broadcast_shapes((-1,), (3,))


def test_triangles_of_any_size_are_counted_before_they_are_written():
    assert F.triu_indices(2**62, 3).tolist() == F.triu_indices(3, 3).tolist()
    assert F.tril_indices(3, 2**62).tolist() == F.tril_indices(3, 3).tolist()
    assert F.tril_indices(5, 2**63 - 1, -(2**63)).shape == (2, 0)
    with pytest.raises(RuntimeError):  # their number is 0 modulo 2**64
        F.tril_indices(2**20, 2**44, 2**44)


@pytest.mark.parametrize("name", ["uint8", "uint16"])
@pytest.mark.parametrize("value", [-2.0, -0.5])
def test_negative_fractions_do_not_wrap_around_in_unsigned_dtypes(name, value):
    dtype = getattr(F, name)
    x = F.zeros(2, dtype=dtype)

    def write():
        x[0] = value

    for attempt in (
        write,
        lambda: x.fill_(value),
        lambda: x.masked_fill(x == 0, value),
        lambda: F.tensor(value, dtype=dtype),
        lambda: F.full((2,), value, dtype=dtype),
        lambda: F.constant_pad_nd(x, (1, 0), value),
        lambda: F.nn.functional.pad(x, (1, 0), value=int(value) or -1),  # a float there, too
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            attempt()
    assert x.fill_(-2).tolist() == [F.iinfo(dtype).max - 1] * 2  # integers do
    assert x.fill_(-0.0).tolist() == [0, 0]


# ---- last bits of sequences ----------------------------------------------------------------------


def test_linspace_multiplies_and_adds_in_one_rounding():
    x = F.linspace(2.4580338977940386, 6.806962410453355, 33)
    assert [x[10].item().hex(), x[23].item().hex()] == [
        "0x1.e895e00000000p+1",
        "0x1.655d6a0000000p+2",
    ]
    x = F.linspace(1, -614.9291897993248, 101, dtype=F.float64)
    assert [x[i].item().hex() for i in (7, 60, 99)] == [
        "-0x1.50eb9bd07654cp+5",
        "-0x1.708eb93ac7ed2p+8",
        "-0x1.30628c03b1bd3p+9",
    ]
    z = F.linspace(1.363895731928089 + 1j, 6 - 2j, 31, dtype=F.complex64)
    assert z[[1, 4]].tolist() == [
        1.5184326171875 + 0.8999999761581421j,
        1.9820430278778076 + 0.6000000238418579j,
    ]


def test_linspace_of_integers_cuts_what_one_rounding_gives():
    x = F.linspace(8, -2.227665741369167, 16, dtype=F.int64)
    assert x.tolist() == [8, 7, 6, 6, 5, 4, 4, 3, 2, 1, 1, 0, 0, 0, -1, -2]
    assert F.linspace(-1, 100, 3, dtype=F.uint8).tolist() == [255, 177, 100]  # ends wrap around


def test_linspace_of_halves_rounds_each_step():
    x = F.linspace(-0.4489393636109511, 20, 31, dtype=F.float16)
    assert x[7:11].tolist() == [4.32421875, 5.00390625, 5.68359375, 6.3671875]
    x = F.linspace(0.3, 20, 31, dtype=F.bfloat16)
    assert x[12:16].tolist() == [8.25, 8.875, 9.5625, 10.125]


@pytest.mark.facula_only
def test_linspace_of_more_halves_than_float16_can_count():
    assert F.linspace(0, 1, 70_000, dtype=F.float16)[700].item() == pytest.approx(0.01, rel=1e-3)


def test_arange_of_floats_counts_from_the_first_of_each_vector():
    x = F.arange(-470.59308285520876, -460.2135724212750134, 0.1)  # 104: six pairs, 8 elements
    assert x[[2, 11, -1]].tolist() == [-470.39306640625, -469.49310302734375, -460.2930908203125]
    x = F.arange(-781.1182751825892, -700, 1.0085529397711352, dtype=F.float64)
    assert [x[i].item().hex() for i in (3, 7, 80)] == [
        "-0x1.850bdada5dac0p+9",
        "-0x1.830779cd5477fp+9",
        "-0x1.5e378e9f6c81dp+9",
    ]
    x = F.arange(-7.61954420518391, 6.56934773966964, 0.1, dtype=F.bfloat16)
    assert x[:6].tolist() == [-7.625, -7.53125, -7.4375, -7.3125, -7.21875, -7.125]
    assert x[-3:].tolist() == [6.28125, 6.375, 6.46875]


def test_logspace_computes_exponents_in_float64_from_bounds_of_the_dtype():
    x = F.logspace(-0.7152143386905394, -0.0033333333333333335, 33, base=2.5)
    assert x[[2, 15]].tolist() == [0.5408701300621033, 0.7049817442893982]
    x = F.logspace(-2.249000035791362, -0.025033081663211387, 16, base=2, dtype=F.bfloat16)
    assert x[3:7].tolist() == [0.28515625, 0.31640625, 0.3515625, 0.388671875]
    z = F.logspace(-1.0580078690797803, -0.0332606415195246, 11, base=2.5, dtype=F.complex64)
    assert z[[1, 3]].tolist() == [0.4166344106197357, 0.5027044415473938]


@pytest.mark.parametrize("function", ["linspace", "logspace"])
def test_bounds_of_sequences_must_fit_the_dtype(function):
    f = getattr(F, function)
    for start, end, steps, dtype in [
        (0, 1e40, 5, F.float32),
        (1e40, 0, 5, F.float32),
        (0, 70_000, 3, F.float16),
        (0, 300, 3, F.uint8),
    ]:
        with pytest.raises(RuntimeError, match="without overflow"):
            f(start, end, steps, dtype=dtype)
    assert f(0, 1e40, 1).shape == (1,)  # of one step the end is not read


def test_factories_refuse_pinned_memory_where_there_is_none():
    if F.cuda.is_available():
        pytest.skip("there is pinned memory")
    for make in (
        lambda: F.full((2,), 1.0, pin_memory=True),
        lambda: F.eye(2, pin_memory=True),
        lambda: F.ones(2).new_zeros(2, pin_memory=True),
        lambda: F.ones(2).new_empty(2, pin_memory=True),
    ):
        with pytest.raises(RuntimeError):
            make()
