"""Sharing memory with NumPy, DLPack and buffers, both ways, and who keeps it alive."""

import array
import gc
import mmap
import warnings
import weakref

import numpy as np
import pytest
from package_under_test import F

NUMPY_DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]

ARRAYS = {
    "vector": lambda: np.arange(3.0),
    "matrix": lambda: np.arange(6).reshape(2, 3),
    "0-dim": lambda: np.array(3.5),
    "empty": lambda: np.zeros((0, 3)),
    "transposed": lambda: np.arange(6).reshape(2, 3).T,
    "fortran": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "with gaps": lambda: np.arange(12).reshape(3, 4)[::2, 1::2],
    "with an offset": lambda: np.arange(10)[3:],
    "field of a record": lambda: np.zeros(3, dtype=[("a", "i4"), ("b", "i4")])["b"],
}

# ---- from NumPy ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS.keys())
@pytest.mark.parametrize("convert", ["from_numpy", "as_tensor", "asarray", "from_dlpack"])
def test_arrays_become_tensors_of_the_same_memory(make, convert):
    a = make()
    x = getattr(F, convert)(a)
    assert x.shape == a.shape
    assert x.tolist() == a.tolist()
    copied = convert == "asarray" and a.ndim == 0  # read as a number
    if a.size and not copied:
        assert x.data_ptr() == a.ctypes.data
        assert x.stride() == tuple(s // a.itemsize for s in a.strides)
        a[...] = 7
        assert (x == 7).all()
        x.fill_(1)
        assert (a == 1).all()


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_dtype_goes_both_ways(name):
    a = np.array([0, 1, 1]).astype(name)
    x = F.from_numpy(a)
    assert x.dtype is getattr(F, name)
    assert x.numpy().dtype == a.dtype
    assert x.numpy().tolist() == x.tolist() == a.tolist()
    assert np.from_dlpack(x).dtype == a.dtype
    assert F.from_dlpack(a).dtype is x.dtype


def test_from_numpy_keeps_the_array_alive():
    a = np.arange(1000.0)
    alive = weakref.ref(a)
    x = F.from_numpy(a)[10:]
    del a
    gc.collect()
    assert alive() is not None
    assert x[0].item() == 10
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("name", ["from_numpy", "as_tensor", "tensor", "asarray"])
def test_arrays_that_are_refused(name):
    convert = getattr(F, name)
    with pytest.raises(TypeError, match="str_"):
        convert(np.array(["a"]))
    with pytest.raises(TypeError, match="datetime64"):
        convert(np.zeros(2, dtype="datetime64[s]"))
    with pytest.raises(ValueError, match="byte order"):
        convert(np.arange(3, dtype=">i4"))


@pytest.mark.parametrize("name", ["from_numpy", "as_tensor"])
def test_strides_that_are_refused(name):
    convert = getattr(F, name)
    with pytest.raises(ValueError, match="negative"):
        convert(np.arange(6)[::-1])
    with pytest.raises(ValueError, match="multiple of the element"):
        convert(np.zeros(3, dtype=[("a", "i4"), ("b", "i2")])["a"])


def test_from_numpy_wants_an_array():
    for bad in ([1], 3, np.float64(3), None):
        with pytest.raises(TypeError, match=r"expected np.ndarray"):
            F.from_numpy(bad)


def test_a_read_only_array_warns():
    if hasattr(F, "set_warn_always"):  # PyTorch says it once in a process
        F.set_warn_always(True)
    a = np.arange(3.0)
    a.flags.writeable = False
    try:
        with pytest.warns(UserWarning, match="not writable"):
            x = F.from_numpy(a)
    finally:
        if hasattr(F, "set_warn_always"):
            F.set_warn_always(False)
    assert x.tolist() == [0.0, 1.0, 2.0]


# ---- to NumPy --------------------------------------------------------------------------------

TENSORS = {
    "vector": lambda: F.arange(3.0),
    "0-dim": lambda: F.tensor(3.5),
    "empty": lambda: F.zeros(0, 3),
    "transposed": lambda: F.arange(6).reshape(2, 3).t(),
    "with gaps": lambda: F.arange(12).reshape(3, 4)[::2, 1::2],
    "bool": lambda: F.tensor([True, False]),
    "complex": lambda: F.tensor([1 + 2j]),
}


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS.keys())
@pytest.mark.parametrize("convert", [lambda x: x.numpy(), np.asarray, np.from_dlpack])
def test_tensors_become_arrays_of_the_same_memory(make, convert):
    x = make()
    a = convert(x)
    assert type(a) is np.ndarray
    assert a.shape == x.shape
    assert a.tolist() == x.tolist()
    if a.size:
        assert a.ctypes.data == x.data_ptr()
        assert a.strides == tuple(s * x.element_size() for s in x.stride())
        x.fill_(1)
        assert (a == 1).all()


def test_numpy_writes_reach_the_tensor():
    x = F.zeros(2, 3)
    x.numpy()[1, 2] = 5
    x.t().numpy()[0, 0] = 4
    assert x.tolist() == [[4, 0, 0], [0, 0, 5]]
    assert x.numpy().flags.writeable


def test_an_array_keeps_the_tensor_memory_alive():
    x = F.arange(1000.0)
    a = x[10:].numpy()
    del x
    gc.collect()
    F.zeros(1000).fill_(-1)  # would land in the memory if it had been freed
    assert a[:3].tolist() == [10, 11, 12]


def test_numpy_of_an_expanded_tensor_repeats():
    a = F.arange(3).expand(2, 3).numpy()
    assert a.strides == (0, 8)
    assert a.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_numpy_needs_a_plain_cpu_tensor():
    leaf = F.ones(2, requires_grad=True)
    for x in (leaf, leaf * 2):
        with pytest.raises(RuntimeError, match="detach"):
            x.numpy()
        with pytest.raises(RuntimeError, match="detach"):
            np.asarray(x)
        assert x.numpy(force=True).tolist() == x.tolist()
        assert x.detach().numpy().ctypes.data == x.data_ptr()
    with pytest.raises(TypeError, match="meta"):
        F.ones(2, device="meta").numpy()
    with pytest.raises(TypeError, match="BFloat16"):
        F.ones(2, dtype=F.bfloat16).numpy()


@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_array_protocol():
    x = F.arange(3.0)
    assert x.__array__().ctypes.data == x.data_ptr()
    assert x.__array__(np.float64).dtype == np.float64
    assert x.__array__(dtype=np.int32).tolist() == [0, 1, 2]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    copied = np.array(x, copy=True)
    copied[0] = 9
    assert x[0].item() == 0


@pytest.mark.facula_only
def test_array_protocol_of_numpy_2():
    x = F.arange(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.asarray(x, copy=False).ctypes.data == x.data_ptr()
        assert np.array(x, copy=True).ctypes.data != x.data_ptr()
        with pytest.raises(ValueError, match="copy"):
            np.asarray(x, dtype=np.float64, copy=False)
        assert x.__array__(copy=True).ctypes.data != x.data_ptr()


# ---- mixed arithmetic ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:__array_wrap__")
def test_numpy_functions_on_tensors():
    x = F.tensor([0.0, 1.0])
    assert np.sqrt(x).tolist() == [0.0, 1.0]
    assert isinstance(np.sqrt(x), F.Tensor)
    assert np.concatenate([x, x]).tolist() == [0.0, 1.0, 0.0, 1.0]
    assert np.stack([x, x]).shape == (2, 2)
    assert np.allclose(x, [0.0, 1.0])
    assert np.array_equal(x, x)
    assert np.array([F.tensor(1), F.tensor(2)]).tolist() == [1, 2]
    assert np.array([F.tensor([1, 2]), F.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert np.int64(F.tensor(3)) == 3


def test_numpy_scalars_count_as_python_numbers():
    x = F.tensor([1.0, 2.0])
    for result in (np.float64(2) * x, x * np.float64(2), np.int64(2) * x, x.mul(np.float64(2))):
        assert (result.dtype, result.tolist()) == (F.float32, [2.0, 4.0])
    assert (np.float64(2) - x).tolist() == [1.0, 0.0]
    assert (np.float64(1.5) < x).tolist() == [False, True]
    assert (np.float64(2) + F.tensor([1])).dtype is F.float32


@pytest.mark.filterwarnings("ignore:__array_wrap__")
def test_arrays_in_operators():
    x = F.tensor([1.0, 2.0])
    total = x + np.ones(2)
    assert isinstance(total, F.Tensor)
    assert (total.dtype, total.tolist()) == (F.float64, [2.0, 3.0])
    with pytest.raises(TypeError, match=r"other.*Tensor.*ndarray"):
        F.add(x, np.ones(2))
    with pytest.raises(TypeError, match=r"input.*Tensor.*ndarray"):
        F.sum(np.ones(2))


@pytest.mark.facula_only
def test_arrays_on_the_left_of_operators():
    x = F.tensor([1.0, 2.0])
    for result, expected in [
        (np.ones(2) + x, [2.0, 3.0]),
        (np.ones(2) - x, [0.0, -1.0]),
        (np.ones(2) < x, [False, True]),
    ]:
        assert isinstance(result, F.Tensor)
        assert result.tolist() == expected


def test_tensors_index_arrays():
    a = np.arange(3)
    assert a[F.tensor([0, 2])].tolist() == [0, 2]
    assert a[F.tensor(1)] == 1
    assert a[F.tensor([True, False, True])].tolist() == [0, 2]


# ---- DLPack ----------------------------------------------------------------------------------


def test_dlpack_capsules():
    x = F.arange(3.0)
    assert '"dltensor"' in repr(x.__dlpack__())
    assert '"dltensor"' in repr(x.__dlpack__(stream=None, max_version=None, copy=None))
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__(dl_device=(1, 0)))
    assert tuple(int(part) for part in x.__dlpack_device__()) == (1, 0)


def test_dlpack_between_tensors():
    x = F.arange(6.0).reshape(2, 3).t()
    y = F.from_dlpack(x)
    assert y.data_ptr() == x.data_ptr()
    assert (y.shape, y.stride()) == (x.shape, x.stride())
    assert F.from_dlpack(x.__dlpack__()).data_ptr() == x.data_ptr()
    assert F.from_dlpack(x.__dlpack__(max_version=(1, 0))).data_ptr() == x.data_ptr()
    assert F.from_dlpack(F.ones(2, dtype=F.bfloat16)).dtype is F.bfloat16


def test_dlpack_copies_on_request():
    x = F.arange(3.0)
    assert np.from_dlpack(x, copy=True).ctypes.data != x.data_ptr()
    assert F.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert F.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    assert F.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True)).data_ptr() != x.data_ptr()


def test_a_capsule_is_consumed_once():
    capsule = F.arange(3.0).__dlpack__()
    F.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="once"):
        F.from_dlpack(capsule)


def test_unconsumed_capsules_free_their_tensor():
    x = F.arange(1000.0)
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        del capsule
    assert x[5].item() == 5


def test_dlpack_keeps_memory_alive_both_ways():
    a = np.arange(1000.0)
    alive = weakref.ref(a)
    x = F.from_dlpack(a)
    del a
    gc.collect()
    assert x[7].item() == 7
    del x
    gc.collect()
    assert alive() is None
    b = np.from_dlpack(F.arange(1000.0))
    gc.collect()
    F.zeros(1000).fill_(-1)
    assert b[:3].tolist() == [0, 1, 2]


def test_dlpack_refuses_what_it_cannot_share():
    with pytest.raises(BufferError, match="grad"):
        F.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises((BufferError, RuntimeError), match="meta"):
        F.ones(2, device="meta").__dlpack__()
    with pytest.raises((AssertionError, BufferError, ValueError), match="stream"):
        F.ones(2).__dlpack__(stream=1)
    with pytest.raises((RuntimeError, TypeError, AttributeError, BufferError)):
        F.from_dlpack([1])


@pytest.mark.facula_only
def test_dlpack_with_negative_strides_raises():  # PyTorch ends the process here
    with pytest.raises((ValueError, BufferError, RuntimeError), match="negative"):
        F.from_dlpack(np.arange(3)[::-1])


# ---- buffers ---------------------------------------------------------------------------------


def test_frombuffer_shares_memory():
    data = bytearray(8)
    x = F.frombuffer(data, dtype=F.int16)
    x[1] = 0x0102
    assert data[2:4] == (0x0102).to_bytes(2, "little")
    data[0] = 7
    assert x.tolist() == [7, 0x0102, 0, 0]
    assert F.frombuffer(data, dtype=F.int16, count=2, offset=2).tolist() == [0x0102, 0]
    assert F.frombuffer(bytearray(4), dtype=F.float32, requires_grad=True).requires_grad


def test_frombuffer_of_other_buffers():
    assert F.frombuffer(array.array("i", [1, 2, 3]), dtype=F.int32).tolist() == [1, 2, 3]
    assert F.frombuffer(memoryview(bytearray(b"ab")), dtype=F.uint8).tolist() == [97, 98]
    assert F.frombuffer(np.arange(3), dtype=F.int64).tolist() == [0, 1, 2]
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:4] = b"\x01\x00\x00\x00"
        x = F.frombuffer(mapped, dtype=F.int32, count=2)
        assert x.tolist() == [1, 0]
        x[1] = 2
        assert mapped[4:8] == b"\x02\x00\x00\x00"
        del x
        gc.collect()


def test_frombuffer_keeps_the_buffer_alive():
    class Bytes(bytearray):
        """Weak references need a subclass."""

    data = Bytes(b"abcd")
    alive = weakref.ref(data)
    x = F.frombuffer(data, dtype=F.uint8)
    del data
    gc.collect()
    assert x.tolist() == [97, 98, 99, 100]
    assert alive() is not None
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_frombuffer_of_read_only_bytes():
    assert F.frombuffer(b"abcd", dtype=F.uint8).tolist() == [97, 98, 99, 100]


@pytest.mark.parametrize(
    "size, kwargs, text",
    [
        (7, {}, "multiple of element size"),
        (8, {"offset": 9}, "offset"),
        (8, {"offset": -1}, "offset"),
        (8, {"count": 5}, "greater than actual"),
        (8, {"count": 0}, "must not be 0"),
        (0, {}, "must not be 0"),
    ],
)
def test_frombuffer_bounds(size, kwargs, text):
    with pytest.raises(ValueError, match=text):
        F.frombuffer(bytearray(size), dtype=F.int16, **kwargs)


def test_frombuffer_wants_a_buffer_and_a_dtype():
    with pytest.raises(ValueError, match="buffer protocol"):
        F.frombuffer([1, 2], dtype=F.uint8)
    with pytest.raises(TypeError, match="dtype"):
        F.frombuffer(bytearray(4))


# ---- the array interface ---------------------------------------------------------------------


class HasArrayInterface:
    def __init__(self, a):
        self.array = a
        self.__array_interface__ = a.__array_interface__


@pytest.mark.facula_only
@pytest.mark.parametrize("name", ["as_tensor", "asarray"])
def test_objects_with_an_array_interface_are_shared(name):
    convert = getattr(F, name)
    a = np.arange(6.0).reshape(2, 3)[:, ::2]
    x = convert(HasArrayInterface(a))
    assert x.tolist() == [[0, 2], [3, 5]]
    assert x.data_ptr() == a.ctypes.data
    holder = HasArrayInterface(np.arange(1000.0))
    alive = weakref.ref(holder)
    y = convert(holder)
    del holder
    gc.collect()
    assert alive() is not None
    assert y[9].item() == 9


def test_cuda_interface_of_a_cpu_tensor_is_an_attribute_error():
    with pytest.raises(AttributeError):
        _ = F.ones(2).__cuda_array_interface__


def test_numpy_of_what_requires_grad_needs_no_detach_under_no_grad():
    x = F.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with F.no_grad():
        x.numpy()[0] = 5
        assert np.asarray(x).tolist() == [5, 1]


def test_numpy_in_the_forward_of_a_function():
    class Cube(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return F.tensor(x.numpy() ** 3)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return F.tensor(3 * x.numpy() ** 2) * grad

    x = F.tensor([1.0, 2.0], requires_grad=True)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 12]


def test_asarray_keeps_the_history_of_a_tensor():
    leaf = F.ones(2, requires_grad=True)
    made = leaf + 1
    assert F.asarray(made) is made
    assert F.asarray(made, dtype=F.float64).requires_grad
    assert not F.asarray(made, requires_grad=False).requires_grad
    assert made.requires_grad
    assert not F.asarray([1.0]).requires_grad
    assert F.asarray([1.0], requires_grad=True).requires_grad


@pytest.mark.filterwarnings("ignore:__array_wrap__")
def test_a_tensor_and_an_array_promote_as_numpy_does():
    def dtype(tensor, array, operation=lambda a, b: a + b):
        a, b = F.tensor([1, 2], dtype=getattr(F, tensor)), np.array([1, 2], dtype=array)
        return str(operation(a, b).dtype).rpartition(".")[2]

    assert dtype("int64", "float32") == "float64"  # float32 does not hold all of its integers
    assert dtype("float32", "int64") == "float64"
    assert dtype("float32", "int16") == "float32"
    assert dtype("int16", "float16") == "float32"
    assert dtype("float16", "uint8") == "float16"
    assert dtype("int32", "complex64") == "complex128"
    assert dtype("uint8", "int8") == "int16"
    assert dtype("int8", "int8", lambda a, b: a / b) == "float64"
    assert dtype("int64", "float32", lambda a, b: a @ b) == "float64"
    assert dtype("int64", "float32", lambda a, b: a**b) == "float64"
    assert (F.tensor(2) + np.array([1, 2], dtype="float16")).dtype is F.float64
    assert (F.tensor([1, 2]) * np.array([0.5, 1], dtype="float32")).tolist() == [0.5, 2.0]


@pytest.mark.filterwarnings("ignore:__array_wrap__")
def test_truth_values_of_numpys_functions_come_back_as_uint8():
    x = F.tensor([1.0, float("nan")])
    found = np.isnan(x)
    assert (found.dtype, found.tolist()) == (F.uint8, [0, 1])
    both = F.tensor([True, False]) & np.array([True, True])
    assert (both.dtype, both.tolist()) == (F.uint8, [1, 0])


def test_is_set_to_by_name():
    x = F.ones(2)
    assert x.is_set_to(tensor=x[:]) and not x.is_set_to(tensor=x[1:])
