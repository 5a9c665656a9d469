"""Names of older programs: FloatTensor and its kin, Tensor(...), Variable, typed storages."""

import copy
import pickle

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

KINDS = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16", "ByteTensor": "uint8", "CharTensor": "int8",
    "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64", "BoolTensor": "bool",
}  # fmt: skip


@pytest.mark.parametrize("name, dtype", KINDS.items())
def test_classes_stand_for_dtypes(name, dtype):
    kind, dtype = getattr(F, name), getattr(F, dtype)
    assert kind is getattr(F, name)
    assert kind.dtype is dtype and not kind.is_cuda and kind.__name__ == name
    made = kind(2, 3)
    assert made.dtype is dtype and made.shape == (2, 3)
    assert isinstance(made, kind)
    assert not isinstance(made, F.LongTensor if name != "LongTensor" else F.FloatTensor)
    assert made.type() == f"{F.__name__}.{name}"
    assert F.ones(2).type(kind).dtype is dtype
    assert F.ones(2).type(f"{F.__name__}.{name}").dtype is dtype
    assert F.ones(2).type(dtype).dtype is dtype


def test_what_the_constructors_take():
    x = F.ones(2, 3)
    assert F.LongTensor([1, 2]).tolist() == [1, 2]
    assert F.LongTensor([1.7]).tolist() == [1]
    assert F.LongTensor((3,)).tolist() == [3]
    assert F.LongTensor(np.array([1, 2])).tolist() == [1, 2]
    assert F.FloatTensor(x.shape).shape == (2, 3)
    assert F.FloatTensor().shape == (0,)
    assert F.FloatTensor(3).shape == (3,)
    assert F.FloatTensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    same = F.FloatTensor(x)
    same[0, 0] = 5
    assert x[0, 0].item() == 5
    over = F.FloatTensor(x.storage())
    assert over.shape == (6,) and over.data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.FloatTensor(2.5),
        lambda: F.FloatTensor(True),
        lambda: F.FloatTensor(3, [2]),
        lambda: F.FloatTensor("a"),
        lambda: F.LongTensor(F.ones(2)),
        lambda: F.LongTensor(F.ones(2).storage()),
        lambda: F.Tensor(2.5),
        lambda: F.Tensor(3, [2]),
        lambda: F.Tensor("a"),
    ],
)
def test_what_the_constructors_refuse(call):
    with pytest.raises((TypeError, RuntimeError)):
        call()


def test_tensor_as_a_constructor():
    x = F.ones(2, 3)
    assert F.Tensor(2, 3).shape == (2, 3) and F.Tensor().shape == (0,)
    assert F.Tensor([1, 2]).dtype is F.float32
    assert F.Tensor(F.Size([2])).shape == (2,)
    assert F.Tensor(range(3)).tolist() == [0, 1, 2]
    assert F.Tensor(np.ones(3)).dtype is F.float32
    assert F.Tensor(F.tensor([1])).dtype is F.int64
    assert F.Tensor(x.storage()).data_ptr() == x.data_ptr()
    assert F.Tensor(x.untyped_storage()).shape == (6,)


def test_names_of_types():
    with pytest.raises(ValueError, match="invalid type"):
        F.ones(1).type("LongTensor")
    with pytest.raises(ValueError, match="invalid type"):
        F.ones(1).type("nonsense")
    assert F.typename(F.ones(1)) == F.__name__ + ".FloatTensor"
    assert F.typename(3) == "int" and F.typename(int) == "int"
    assert F.typename(np.float32(1)) == "numpy.float32"


@pytest.mark.filterwarnings("ignore")
def test_default_tensor_type():
    try:
        F.set_default_tensor_type(F.DoubleTensor)
        assert F.ones(1).dtype is F.float64
        F.set_default_tensor_type(F.__name__ + ".FloatTensor")
        assert F.ones(1).dtype is F.float32
        with pytest.raises(TypeError):
            F.set_default_tensor_type(F.LongTensor)
        with pytest.raises(TypeError):
            F.set_default_tensor_type(3)
    finally:
        F.set_default_dtype(F.float32)


def test_variables_are_tensors():
    x = F.ones(2)
    v = F.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad and not x.requires_grad and v.data_ptr() == x.data_ptr()
    assert isinstance(x, F.autograd.Variable) and not isinstance(3, F.autograd.Variable)


# ---- typed storages ----------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage")


def test_storages_of_tensors_share_memory():
    x = F.arange(4, dtype=F.int32)
    s = x[1:].storage()
    assert len(s) == s.size() == 4 and s.nbytes() == 16 and s.element_size() == 4
    assert s.dtype is F.int32 and s.tolist() == [0, 1, 2, 3] and list(s) == [0, 1, 2, 3]
    s[1] = 9
    assert x[1].item() == 9 and s[1] == 9 and s[-1] == 3
    assert s.data_ptr() == x.data_ptr() and s.untyped().nbytes() == 16
    assert s.device == F.device("cpu") and not s.is_cuda
    with pytest.raises(IndexError):
        s[4]
    assert F.is_storage(s) and F.is_storage(s.untyped()) and not F.is_storage(x)
    assert isinstance(s, F.IntStorage) and not isinstance(s, F.FloatStorage)


def test_making_and_filling_storages():
    s = F.FloatStorage(3).fill_(2)
    assert s.tolist() == [2, 2, 2] and s.dtype is F.float32
    assert F.LongStorage([1, 2]).tolist() == [1, 2]
    assert F.TypedStorage(2, dtype=F.int16).size() == 2
    other = s.clone()
    other[0] = 5
    assert s.tolist() == [2, 2, 2]
    s.copy_(other)
    assert s.tolist() == [5, 2, 2]
    assert s.resize_(2).tolist() == [5, 2]
    with pytest.raises(RuntimeError, match="size"):
        s.copy_(other)


def test_converting_storages():
    s = F.FloatStorage([1.5, 2])
    assert s.double().dtype is F.float64 and s.double().tolist() == [1.5, 2]
    assert s.long().tolist() == [1, 2] and s.bool().tolist() == [True, True]
    assert s.float() is not s and s.float().tolist() == [1.5, 2] and s.cpu() is s
    assert s.half().dtype is F.float16 and s.complex_float().dtype is F.complex64


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's deprecated classes differ in details")
def test_storages_from_buffers_and_files(tmp_path):
    data = np.array([1, 2], dtype=">i2").tobytes()
    assert F.ShortStorage.from_buffer(data, "big").tolist() == [1, 2]
    assert F.TypedStorage.from_buffer(b"\1\0\2\0", "little", dtype=F.int16).tolist() == [1, 2]
    with pytest.raises(ValueError, match="byte_order"):
        F.ShortStorage.from_buffer(data, "middle")
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(3, dtype=np.float32).tobytes())
    assert F.FloatStorage.from_file(str(path), size=3).tolist() == [0, 1, 2]
    s = F.FloatStorage([1, 2])
    assert copy.deepcopy(s).tolist() == pickle.loads(pickle.dumps(s)).tolist() == [1, 2]
    assert s.type() == "facula.FloatStorage" and s.type("facula.IntStorage").dtype is F.int32
    assert "of size 2" in repr(s)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_bytes_of_a_storage_as_numbers():
    s = F.tensor([1, 258], dtype=F.int16).untyped_storage()
    assert s.float().tolist() == [1.0, 0.0, 2.0, 1.0] and s.float().dtype is F.float32
    assert s.long().dtype is F.int64 and s.bool().tolist() == [True, False, True, True]
    copy = s.byte()
    copy[0] = 9
    assert s.tolist() == [1, 0, 2, 1]
    s.byteswap(F.int16)
    assert s.tolist() == [0, 1, 1, 2]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_what_a_storage_says_of_its_memory():
    untyped, typed = F.ones(2).untyped_storage(), F.ones(2).storage()
    for s in (untyped, typed):
        assert not s.is_pinned() and not s.is_shared() and s.resizable()
        assert not s.is_sparse
        assert s.to(device="cpu").tolist() == s.tolist()
        assert s.share_memory_() is s and s.is_shared()
        with pytest.raises(TypeError):
            s.to("cpu")
    assert untyped.to(device="cpu") is untyped and untyped.untyped() is untyped
    assert untyped.get_device() is None
    assert untyped.type() == f"{F.__name__}.storage.UntypedStorage"
    assert F.ones(2).untyped_storage().new().nbytes() == 0


def test_a_storage_is_made_of_a_buffer_or_a_file(tmp_path):
    made = F.UntypedStorage.from_buffer(b"abcd", dtype=F.uint8)
    assert made.tolist() == [97, 98, 99, 100]
    path = tmp_path / "bytes"
    path.write_bytes(b"abcd")
    mapped = F.UntypedStorage.from_file(str(path), shared=True, nbytes=4)
    mapped[1] = 66
    assert path.read_bytes() == b"aBcd"


def test_names_of_unsigned_types():
    kinds = [F.uint16, F.uint32, F.uint64]
    names = [F.zeros(1, dtype=kind).type() for kind in kinds]
    assert names == [f"{F.__name__}.UInt{n}Tensor" for n in (16, 32, 64)]
