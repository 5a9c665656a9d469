"""Files in the safetensors format."""

import json
import random
import struct

import pytest

import facula
from facula import safetensors as st

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


def example():
    return {
        "weight": facula.arange(6.0).view(2, 3),
        "bias": facula.tensor([1, 2], dtype=facula.int16),
        "scalar": facula.tensor(3.5, dtype=facula.float64),
        "empty": facula.ones(0, 4),
    }


def same(a, b):
    return a.keys() == b.keys() and all(
        a[k].dtype is b[k].dtype and facula.equal(a[k], b[k]) for k in a
    )


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_survives(name):
    t = facula.tensor([0, 1, 1, 0]).to(getattr(facula, name)).view(2, 2)
    back = st.load(st.save({"t": t}))["t"]
    assert back.dtype is t.dtype and back.shape == (2, 2)
    assert back.to(facula.complex64).tolist() == t.to(facula.complex64).tolist()


def test_files_keep_tensors_and_metadata(tmp_path):
    path = tmp_path / "model.safetensors"
    st.save_file(example(), path, {"made": "today"})
    assert same(st.load_file(path), example())
    with st.safe_open(path, framework="pt") as file:
        assert sorted(file.keys()) == sorted(example()) and file.metadata() == {"made": "today"}
        part = file.get_slice("weight")
        assert part.get_shape() == [2, 3] and part[:, 1:].tolist() == [[1, 2], [4, 5]]
        with pytest.raises(st.SafetensorError, match="does not contain tensor"):
            file.get_tensor("nothing")
    with st.safe_open(path, framework="np") as file:
        assert file.get_tensor("bias").tolist() == [1, 2]


def test_numbers_are_aligned_and_in_place_changes_are_private(tmp_path):
    path = tmp_path / "model.safetensors"
    st.save_file(example(), path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    table = json.loads(content[8 : 8 + length])
    assert length % 8 == 0 and all(
        e["data_offsets"][0] % {"F64": 8, "F32": 4, "I16": 2}[e["dtype"]] == 0
        for e in table.values()
    )
    st.load_file(path)["weight"].zero_()
    assert path.read_bytes() == content


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    whole = facula.ones(4, 4)
    for bad, error in (
        ({"t": whole.t()[1:]}, ValueError),
        ({"t": facula.ones(2, dtype=facula.complex128)}, ValueError),
        ({"t": facula.ones(2, device="meta")}, ValueError),
        ({"t": 3}, ValueError),
        ({3: whole}, ValueError),
        ([whole], ValueError),
        ({"a": whole, "b": whole}, RuntimeError),
    ):
        with pytest.raises(error):
            st.save_file(bad, tmp_path / "x")
    assert not list(tmp_path.iterdir())
    assert st.load(st.save({"a": whole[:2], "b": whole[2:]})).keys() == {"a", "b"}
    with pytest.raises(TypeError, match="metadata"):
        st.save({"a": whole}, {"a": 1})


def header(table, data=b""):
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape, offsets, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 8,
        (2**40).to_bytes(8, "little") + b"{}",
        header(b"[1]"),
        header(b"{"),
        header(b"\xff\xfe"),
        header(b'{"a": 1}'),
        header(b"[" * 100000),
        header({"a": entry([1], [0, 4], "F31")}, bytes(4)),
        header({"a": entry([1], [0, 4], ["F32"])}, bytes(4)),
        header({"a": entry([2], [0, 4])}, bytes(4)),
        header({"a": entry([-1], [4, 0])}, bytes(4)),
        header({"a": entry([1], [0, 4.0])}, bytes(4)),
        header({"a": entry([True], [0, 4])}, bytes(4)),
        header({"a": entry([2**61, 2**61], [0, 0])}),
        header({"a": entry([1], [4, 8])}, bytes(8)),
        header({"a": entry([1], [0, 4]), "b": entry([1], [0, 4])}, bytes(4)),
        header({"a": entry([1], [0, 4])}, bytes(5)),
        header({"a": entry([1], [0, 4])}, bytes(3)),
        header(b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, '
               b'"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}', b"x"),
        header({"__metadata__": {"a": 1}}),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(content):
    with pytest.raises(st.SafetensorError):
        st.load(content)


def test_flipped_bits_and_cuts_load_or_are_refused():
    rng = random.Random(0)
    content = st.save(example(), {"made": "today"})
    for _ in range(1500):
        changed = bytearray(content)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            changed = changed[: rng.randrange(len(changed))]
        try:
            st.load(bytes(changed))
        except st.SafetensorError as error:
            assert str(error)


class Tied(facula.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = facula.nn.Parameter(facula.rand(2, 3))
        self.b = self.a
        self.register_buffer("c", facula.arange(6).view(2, 3).t())


def test_modules_with_shared_parameters(tmp_path):
    path = tmp_path / "m.safetensors"
    model, other = Tied(), Tied()
    st.save_model(model, path)
    assert st.load_model(other, path) == (set(), [])
    assert facula.equal(other.a, model.a) and other.b is other.a
    assert facula.equal(other.c, model.c)


def test_the_safetensors_package_agrees(tmp_path):
    package = pytest.importorskip("safetensors")
    arrays = pytest.importorskip("safetensors.numpy")
    assert package.deserialize(st.save({"x": facula.ones(2)}))
    ours = {k: v for k, v in example().items() if k != "empty"}
    theirs = arrays.load(st.save(ours, {"a": "b"}))
    assert {k: v.tolist() for k, v in theirs.items()} == {k: v.tolist() for k, v in ours.items()}
    back = st.load(arrays.save({k: v.numpy() for k, v in ours.items()}))
    assert same(back, ours)
    st.save_file(ours, tmp_path / "f", {"a": "b"})
    with package.safe_open(tmp_path / "f", framework="np") as file:
        assert file.metadata() == {"a": "b"}


def test_the_bytes_are_those_of_the_safetensors_package():
    tensors = {
        "b": facula.tensor([1], dtype=facula.uint16),
        "a": facula.tensor([2], dtype=facula.int16),
        "c": facula.tensor([3], dtype=facula.float64),
        "d": facula.tensor([4], dtype=facula.int64),
    }
    table = (
        b'{"__metadata__":{},'
        b'"d":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},'
        b'"c":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},'
        b'"b":{"dtype":"U16","shape":[1],"data_offsets":[16,18]},'
        b'"a":{"dtype":"I16","shape":[1],"data_offsets":[18,20]}}'
    )
    table += b" " * (-len(table) % 8)
    numbers = struct.pack("<qdHh", 4, 3.0, 1, 2)
    assert st.save(tensors, {}) == len(table).to_bytes(8, "little") + table + numbers


def test_metadata_may_be_empty_or_missing(tmp_path):
    for metadata in ({}, None, {"a": "b"}):
        st.save_file({"x": facula.ones(1)}, tmp_path / "f", metadata)
        with st.safe_open(tmp_path / "f", framework="pt") as file:
            assert file.metadata() == metadata


def test_names_that_a_model_misses_are_a_set(tmp_path):
    st.save_file({"weight": facula.ones(2, 2), "more": facula.ones(1)}, tmp_path / "f")
    found = st.load_model(facula.nn.Linear(2, 2), tmp_path / "f", strict=False)
    assert found == ({"bias"}, ["more"])
