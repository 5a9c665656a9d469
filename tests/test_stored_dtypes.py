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
