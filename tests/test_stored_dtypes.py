"""Dtypes without arithmetic: what tensors of them can do, and what they refuse."""

import copy
import io
import pickle

import pytest
from package_under_test import IS_FACULA, F

NAMES = [
    *("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "float4_e2m1fn_x2"),
    *(f"{kind}{width}" for kind in ("int", "uint") for width in range(1, 8)),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_says_what_it_is(name):
    dtype = getattr(F, name)
    assert isinstance(dtype, F.dtype)
    assert repr(dtype) == f"{F.__name__}.{name}"
    assert dtype.itemsize == (2 if name == "bits16" else 1)
    assert dtype.is_floating_point == name.startswith("float")
    assert not dtype.is_complex
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_signs():
    assert F.int4.is_signed and not F.uint4.is_signed
    with pytest.raises(RuntimeError):
        F.bits8.is_signed  # noqa: B018
    assert F.bit is F.uint1


@pytest.mark.parametrize("name", NAMES)
def test_bytes_keep_their_values_through_views(name):
    raw = F.arange(8, dtype=F.uint8)
    stored = raw.view(getattr(F, name))
    assert stored.dtype is getattr(F, name)
    assert stored.view(F.uint8).tolist() == list(range(8))
    assert stored.data_ptr() == raw.data_ptr()
    assert (
        stored[2:4].view(F.uint8).tolist()
        == raw.view(-1, stored.element_size())[2:4].flatten().tolist()
    )
    assert F.cat([stored, stored]).shape[0] == 2 * stored.shape[0]
    assert F.stack([stored, stored]).dtype is stored.dtype


def test_tensors_are_made():
    x = F.zeros(2, 3, dtype=F.uint4)
    assert x.shape == (2, 3) and x.dim() == 2 and x.numel() == 6
    assert x.view(F.uint8).tolist() == [[0] * 3] * 2
    assert F.empty(2, dtype=F.int7).dtype is F.int7
    assert F.empty_like(F.ones(2), dtype=F.int7).dtype is F.int7
    assert F.empty_like(x).dtype is F.uint4
    assert F.empty_like(x, dtype=F.float32).dtype is F.float32
    assert x.t().shape == (3, 2) and x.T.dtype is F.uint4
    assert not x.is_floating_point()
    assert x.type() == f"{F.__name__}.UInt4Tensor"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x,
        lambda x: x.sum(),
        lambda x: x.float(),
        lambda x: x.to(F.float32),
        lambda x: x.fill_(1),
        lambda x: x == x,
        lambda x: F.equal(x, x),
        lambda x: F.full((2,), 1, dtype=F.uint4),
        lambda x: x.tolist(),
    ],
)
def test_arithmetic_is_refused(call):
    with pytest.raises(NotImplementedError):
        call(F.zeros(3, dtype=F.uint4))


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch answers with other exceptions")
def test_other_uses_are_refused():
    with pytest.raises(TypeError):
        F.tensor([1], dtype=F.uint4)
    with pytest.raises(TypeError):
        F.ones(1).to(F.uint4)
    with pytest.raises(TypeError):
        F.iinfo(F.uint4)
    with pytest.raises(TypeError):
        F.finfo(F.float4_e2m1fn_x2)
    with pytest.raises(TypeError):
        F.dtype()
    with pytest.raises(RuntimeError):
        F.zeros(1, dtype=F.uint4, requires_grad=True)
    with pytest.raises(RuntimeError):
        F.cat([F.zeros(1, dtype=F.uint4), F.zeros(1, dtype=F.int4)])


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch copies bits only")
def test_copies():
    x = F.arange(4, dtype=F.uint8).view(F.uint4)
    for y in (
        x.clone(),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        F.zeros(4, dtype=F.uint4).copy_(x),
    ):
        assert y.dtype is F.uint4
        assert y.view(F.uint8).tolist() == [0, 1, 2, 3]
        assert y.data_ptr() != x.data_ptr()
    assert x.to("meta").is_meta
    assert x.to(F.uint4) is x
    assert len(x) == 4 and [v.dtype for v in x] == [F.uint4] * 4


def test_storages_of_quantized_numbers():
    for name in ("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage"):
        assert getattr(F, name).dtype is getattr(F, name.removesuffix("Storage").lower())


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch cannot save them")
@pytest.mark.parametrize("name", NAMES)
def test_checkpoints(name):
    file = io.BytesIO()
    F.save(F.arange(8, dtype=F.uint8).view(getattr(F, name))[1:], file)
    file.seek(0)
    loaded = F.load(file)
    assert loaded.dtype is getattr(F, name)
    assert loaded.view(F.uint8).tolist() == list(range(8))[loaded.element_size() :]


EIGHT_BITS = ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize(
    ("name", "codes", "numbers"),
    [
        ("float8_e4m3fnuz", [0, 1, 64, 127, 72, 200], [0.0, 2.0**-10, 1.0, 240.0, 2.0, -2.0]),
        ("float8_e5m2fnuz", [0, 1, 64, 127, 68, 196], [0.0, 2.0**-17, 1.0, 57344.0, 2.0, -2.0]),
        ("float8_e8m0fnu", [0, 127, 128, 254], [2.0**-127, 1.0, 2.0, 2.0**127]),
    ],
)
def test_eight_bit_floats_are_numbers(name, codes, numbers):
    dtype = getattr(F, name)
    x = F.tensor(codes, dtype=F.uint8).view(dtype)
    assert x.float().tolist() == numbers and x.tolist() == numbers
    assert F.tensor(numbers).to(dtype).view(F.uint8).tolist() == codes
    assert F.tensor(numbers, dtype=dtype).dtype is dtype
    assert x.double().dtype is F.float64 and x.to(F.float16).dtype is F.float16
    assert dtype.is_floating_point and dtype.itemsize == 1


def test_eight_bit_floats_are_rounded_to_even():
    ties = [1 + 1 / 16, 1 + 3 / 16, -(1 + 3 / 16), 0.75 * 2**-10, 0.5 * 2**-10]
    x = F.tensor(ties).to(F.float8_e4m3fnuz)
    assert x.tolist() == [1.0, 1.25, -1.25, 2.0**-10, 0.0]
    # No infinity and no negative zero: their code is the one NaN.
    special = F.tensor([float("inf"), float("nan"), 300.0, 248.0, -0.0]).to(F.float8_e4m3fnuz)
    assert special.view(F.uint8).tolist() == [128, 128, 128, 128, 0]
    powers = F.tensor([1.5, 3.0, 1.25, -4.0, 0.0]).to(F.float8_e8m0fnu)
    assert powers.tolist() == [2.0, 4.0, 1.0, 4.0, 2.0**-127]


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_what_eight_bit_floats_can_do(name):
    dtype = getattr(F, name)
    x = F.ones(2, dtype=dtype)
    assert repr(x) == f"tensor([1., 1.], dtype={F.__name__}.{name})"
    assert (x == F.full((2,), 1.0, dtype=dtype)).tolist() == [True, True]
    x.fill_(2)
    x[0] = 4
    assert x.tolist() == [4.0, 2.0] and x[1].item() == 2.0
    assert F.empty(2, dtype=dtype).copy_(F.tensor([1.0, 8.0])).float().tolist() == [1.0, 8.0]
    assert F.cat([x, x]).tolist() == [4.0, 2.0, 4.0, 2.0]
    assert F.zeros_like(x).dtype is dtype and x.new_full((1,), 2.0).tolist() == [2.0]
    with pytest.raises(NotImplementedError):
        x + x
    with pytest.raises(NotImplementedError):
        x.sum()


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_conversions_to_eight_bit_floats(name):
    dtype = getattr(F, name)
    x, like = F.tensor([1.0, 2.0]), F.ones(1, dtype=dtype)
    made = (
        x.to(like),
        x.type_as(like),
        x.to("cpu", dtype),
        x.to(dtype=dtype),
        F.as_tensor([1.0, 2.0], dtype=dtype),
        F.as_tensor(x, dtype=dtype, device="cpu"),
        F.full_like(x, 1.0, dtype=dtype).copy_(x),
    )
    for y in made:
        assert y.dtype is dtype and y.tolist() == [1.0, 2.0]
    assert like.type_as(x).dtype is F.float32 and like.to(F.int64).tolist() == [1]


def test_limits_of_eight_bit_floats():
    info = F.finfo(F.float8_e4m3fnuz)
    assert (info.max, info.min, info.eps, info.tiny) == (240.0, -240.0, 0.125, 2.0**-7)
    assert F.finfo(F.float8_e5m2fnuz).max == 57344.0
    assert F.finfo(F.float8_e8m0fnu).min == 2.0**-127
    assert F.finfo(F.complex32).dtype == "float16"


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_halved_complex_numbers():
    z = F.tensor([1 + 2j, 3 - 4j]).to(F.complex32)
    assert z.dtype is F.complex32 and z.element_size() == 4
    assert repr(z) == f"tensor([1.+2.j, 3.-4.j], dtype={F.__name__}.complex32)"
    assert z.tolist() == [1 + 2j, 3 - 4j] and z[1].item() == 3 - 4j
    assert z.real.dtype is F.float16 and z.imag.tolist() == [2.0, -4.0]
    assert z.to(F.complex128).tolist() == [1 + 2j, 3 - 4j]
    assert F.tensor([1.5]).half().to(F.complex32).tolist() == [1.5 + 0j]
    assert F.tensor([1j]).chalf().dtype is F.complex32
    z.real[0] = 5.0
    assert z.cfloat().tolist() == [5 + 2j, 3 - 4j]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_arithmetic_of_halved_complex_numbers():
    z = F.tensor([1 + 2j, 3 - 4j]).to(F.complex32)
    for result, numbers in ((z + 1, [2 + 2j, 4 - 4j]), (z * z, [-3 + 4j, -7 - 24j])):
        assert result.dtype is F.complex32 and result.tolist() == numbers
    assert z.abs().dtype is F.float16 and z.abs()[1].item() == 5.0
    assert (z * F.tensor([2.0, 2.0])).dtype is F.complex64
    assert (z + 1j).tolist() == [1 + 3j, 3 - 3j]
    z += 1
    assert z.tolist() == [2 + 2j, 4 - 4j]
    assert F.ones(2, dtype=F.chalf).tolist() == [1 + 0j, 1 + 0j]
    with pytest.raises(TypeError, match="ComplexHalf"):
        z.numpy()


@pytest.mark.parametrize("name", [*EIGHT_BITS, "complex32"])
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_checkpoints_of_stored_numbers(name):
    file = io.BytesIO()
    F.save(F.tensor([1.0, 2.0]).to(getattr(F, name)), file)
    file.seek(0)
    assert F.load(file).to(F.complex64).tolist() == [1.0, 2.0]
