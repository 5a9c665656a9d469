"""dtype, device, layout and memory format objects; finfo and iinfo; the default dtype."""

import copy
import pickle

import pytest
from package_under_test import F

DTYPE_SIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}


@pytest.mark.parametrize("name, size", DTYPE_SIZES.items())
def test_dtype_object(name, size):
    dtype = getattr(F, name)
    assert type(dtype) is F.dtype
    assert repr(dtype) == str(dtype) == f"{F.__name__}.{name}"
    assert dtype.itemsize == size
    assert F.empty(3, dtype=dtype).dtype is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.copy(dtype) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert {dtype: 1}[dtype] == 1
    assert dtype != name
    assert dtype.is_floating_point == ("float" in name)
    assert dtype.is_complex == ("complex" in name)
    assert dtype.is_signed == (not name.startswith(("uint", "bool")))


def test_dtypes_are_distinct():
    dtypes = [getattr(F, name) for name in DTYPE_SIZES]
    assert len(set(dtypes)) == len(DTYPE_SIZES)


@pytest.mark.parametrize(
    "alias, name",
    [
        ("float", "float32"),
        ("double", "float64"),
        ("half", "float16"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
    ],
)
def test_dtype_aliases(alias, name):
    assert getattr(F, alias) is getattr(F, name)


def test_real_and_complex_counterparts():
    assert F.complex64.to_real() is F.float32
    assert F.float64.to_complex() is F.complex128
    assert F.float32.to_real() is F.float32


def test_dtypes_cannot_be_made():
    with pytest.raises(TypeError):
        F.dtype("float32")
    with pytest.raises(TypeError):
        F.float32()


def test_layouts_and_memory_formats():
    assert type(F.strided) is F.layout
    assert repr(F.strided) == f"{F.__name__}.strided"
    for name in ("channels_last", "channels_last_3d", "contiguous_format", "preserve_format"):
        memory_format = getattr(F, name)
        assert type(memory_format) is F.memory_format
        assert repr(memory_format) == f"{F.__name__}.{name}"
        assert pickle.loads(pickle.dumps(memory_format)) is memory_format


@pytest.mark.parametrize(
    "args, kwargs, type_, index, text",
    [
        (("cpu",), {}, "cpu", None, "cpu"),
        (("cpu:0",), {}, "cpu", 0, "cpu:0"),
        (("cuda",), {}, "cuda", None, "cuda"),
        (("cuda:1",), {}, "cuda", 1, "cuda:1"),
        (("cuda", 1), {}, "cuda", 1, "cuda:1"),
        ((), {"type": "cuda", "index": 2}, "cuda", 2, "cuda:2"),
        (("meta",), {}, "meta", None, "meta"),
    ],
)
def test_device_object(args, kwargs, type_, index, text):
    device = F.device(*args, **kwargs)
    assert (device.type, device.index, str(device)) == (type_, index, text)
    shown = f"device(type={type_!r})" if index is None else f"device(type={type_!r}, index={index})"
    assert repr(device) == shown
    assert F.device(device) == device
    assert pickle.loads(pickle.dumps(device)) == device
    assert copy.deepcopy(device) == device


def test_device_equality_and_hash():
    assert F.device("cuda:1") == F.device("cuda", 1)
    assert hash(F.device("cuda:1")) == hash(F.device("cuda", 1))
    assert F.device("cuda:1") != F.device("cuda:0")
    assert F.device("cuda") != F.device("cuda:0")
    assert F.device("cpu") != F.device("meta")
    assert F.device("cpu") != "cpu"
    assert len({F.device("cpu"), F.device("cpu"), F.device("cuda:0")}) == 2


@pytest.mark.parametrize(
    "args, error, text",
    [
        (("foo",), RuntimeError, "foo"),
        (("",), RuntimeError, "empty"),
        (("cuda:-1",), RuntimeError, "cuda:-1"),
        (("cuda:01",), RuntimeError, "cuda:01"),
        (("cuda:x",), RuntimeError, "cuda:x"),
        (("cuda:",), RuntimeError, "cuda:"),
        (("cuda:1", 1), RuntimeError, "index"),
        (("cuda", -1), RuntimeError, "negative"),
        (("cuda", "1"), TypeError, "index"),
        ((None,), TypeError, "NoneType"),
        (([],), TypeError, "list"),
        pytest.param(("cuda", 300), RuntimeError, "300", marks=pytest.mark.facula_only),
    ],
)
def test_bad_devices(args, error, text):
    with pytest.raises(error, match=text):
        F.device(*args)


def test_device_argument_takes_objects_and_strings():
    for device in ("meta", F.device("meta")):
        assert F.empty(2, device=device).is_meta
    with pytest.raises(RuntimeError, match="nowhere"):
        F.empty(2, device="nowhere")
    with pytest.raises(TypeError):
        F.empty(2, device=1.5)


@pytest.mark.parametrize(
    "name, largest, eps, smallest_normal, resolution",
    [
        ("float16", 65504.0, 2.0**-10, 2.0**-14, 1e-3),
        ("bfloat16", (2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126, 1e-2),
        ("float32", (2 - 2.0**-23) * 2.0**127, 2.0**-23, 2.0**-126, 1e-6),
        ("float64", (2 - 2.0**-52) * 2.0**1023, 2.0**-52, 2.0**-1022, 1e-15),
        ("float8_e4m3fn", 448.0, 0.125, 2.0**-6, 1.0),
        ("float8_e5m2", 57344.0, 0.25, 2.0**-14, 1.0),
    ],
)
def test_finfo(name, largest, eps, smallest_normal, resolution):
    info = F.finfo(getattr(F, name))
    assert (info.max, info.min, info.eps) == (largest, -largest, eps)
    assert info.smallest_normal == info.tiny == smallest_normal
    assert info.resolution == pytest.approx(resolution)
    assert info.bits == 8 * DTYPE_SIZES[name]
    assert info.dtype == name
    assert info == F.finfo(getattr(F, name))


def test_finfo_of_the_default_and_of_complex_dtypes():
    assert F.finfo() == F.finfo(F.float32)
    assert F.finfo(F.complex64).eps == 2.0**-23
    assert repr(F.finfo(F.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_iinfo(bits):
    signed, unsigned = F.iinfo(getattr(F, f"int{bits}")), F.iinfo(getattr(F, f"uint{bits}"))
    assert (signed.min, signed.max) == (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert (unsigned.min, unsigned.max) == (0, 2**bits - 1)
    assert signed.bits == unsigned.bits == bits
    assert signed.dtype == f"int{bits}"


def test_iinfo_repr():
    assert repr(F.iinfo(F.int16)) == "iinfo(min=-32768, max=32767, dtype=int16)"


@pytest.mark.facula_only
def test_iinfo_repr_shows_every_digit():
    assert repr(F.iinfo(F.int32)) == "iinfo(min=-2147483648, max=2147483647, dtype=int32)"


def test_finfo_and_iinfo_refuse_the_other_kind():
    with pytest.raises(TypeError, match="floating"):
        F.finfo(F.int32)
    with pytest.raises(TypeError, match="integer"):
        F.iinfo(F.float32)
    with pytest.raises(TypeError, match="bool"):
        F.iinfo(F.bool)


def test_default_dtype_is_what_floats_and_divisions_get(keep_default_dtype):
    assert F.get_default_dtype() is F.float32
    F.set_default_dtype(F.float64)
    assert F.get_default_dtype() is F.float64
    assert F.tensor(1.5).dtype is F.float64
    assert F.tensor([1.5j]).dtype is F.complex128
    assert F.tensor([1]).dtype is F.int64
    assert F.zeros(2).dtype is F.float64
    assert F.arange(0.0, 2.0).dtype is F.float64
    assert (F.tensor([1]) / 2).dtype is F.float64
    assert F.tensor([4]).sqrt().dtype is F.float64
    assert F.rand(1).dtype is F.float64
    F.set_default_dtype(F.float16)
    assert F.tensor(1.5).dtype is F.float16


@pytest.mark.parametrize("bad", ["int64", "bool", "complex64"])
def test_default_dtype_must_be_floating(bad):
    with pytest.raises(TypeError, match="float"):
        F.set_default_dtype(getattr(F, bad))
    assert F.get_default_dtype() is F.float32


def test_to_nothing_in_particular_is_the_tensor():
    x = F.ones(2)
    assert x.to() is x


ELSEWHERE = ["mps", "xpu", "xla", "hpu", "mtia", "ipu", "maia", "hip", "fpga", "lazy", "ve"]


@pytest.mark.parametrize("name", [*ELSEWHERE, "vulkan", "opengl", "privateuseone"])
def test_devices_of_other_makers_can_be_named(name):
    device = F.device(name)
    assert (device.type, device.index, str(device)) == (name, None, name)
    assert F.device(f"{name}:2") == F.device(name, 2) != device
    assert pickle.loads(pickle.dumps(device)) == device
    assert device not in (F.device("cpu"), F.device("meta"), F.ones(1).device)


@pytest.mark.parametrize("name", ["mps", "vulkan", "lazy", "maia"])
def test_devices_of_other_makers_hold_no_tensors(name):
    with pytest.raises(NotImplementedError, match="(?i)" + name):
        F.zeros(2, device=name)
    with pytest.raises(NotImplementedError, match="(?i)" + name):
        F.empty(0, device=F.device(name))
    for use in (lambda: F.ones(2).to(name), lambda: F.tensor([1.0], device=name)):
        with pytest.raises(RuntimeError):
            use()
    with pytest.raises(RuntimeError):
        F.Generator(name)
    with pytest.raises(NotImplementedError), F.device(name):
        F.zeros(2)
    assert F.zeros(2).device.type == "cpu"
