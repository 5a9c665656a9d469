"""facula.save and facula.load: PyTorch's files in both directions, sharing, locations, safety."""

import collections
import contextlib
import datetime
import importlib
import io
import mmap
import pickle
import struct
import zipfile
import zoneinfo

import checkpoint_bytes
import numpy as np
import pytest
from package_under_test import IS_FACULA, F

try:
    import torch
except ImportError:
    torch = None

serialization = F.serialization
needs_torch = pytest.mark.skipif(torch is None or not IS_FACULA, reason="needs PyTorch beside it")
DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


def saved(obj, **options):
    file = io.BytesIO()
    F.save(obj, file, **options)
    file.seek(0)
    return file


def round_trip(obj, **options):
    return F.load(saved(obj), **options)


def numbers(tensor):
    wide = tensor.float() if tensor.element_size() < 4 and tensor.is_floating_point() else tensor
    return wide.tolist()


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_of_every_dtype(name, weights_only):
    t = F.tensor([0, 1, 1]).to(getattr(F, name))
    back = round_trip(t, weights_only=weights_only)
    assert back.dtype is t.dtype and numbers(back) == numbers(t)


@pytest.mark.parametrize(
    "obj",
    [
        None, True, 3, -(2**70), 2.5, 1 + 2j, "text é", b"bytes", bytearray(b"more"), (), [], {},
        (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [1, [2]], {"a": {"b": 1}}, {1, 2}, frozenset([1]),
        collections.OrderedDict(b=1, a=2), collections.Counter("aab"), float("inf"), 2**31, 300,
        list(range(2000)), {i: str(i) for i in range(2000)}, "x" * 70000,
    ],
    ids=lambda o: type(o).__name__,
)  # fmt: skip
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_objects_load_safely(obj, protocol):
    back = F.load(saved(obj, pickle_protocol=protocol))
    assert back == obj and type(back) is type(obj)


def test_constants():
    things = [F.float16, F.bool, F.device("cpu"), F.device("cuda", 1), F.Size([2, 3]), F.strided]
    back = round_trip(things)
    assert back == things
    assert back[0] is F.float16 and type(back[4]) is F.Size


def test_layout_gradient_and_attributes_are_kept():
    t = F.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)[1:]
    t.requires_grad_()
    t.note = "x"
    back = round_trip(t)
    assert back.stride() == t.stride() and back.storage_offset() == t.storage_offset()
    assert back.tolist() == t.tolist() and back.requires_grad and back.is_leaf
    assert back.note == "x"


def test_tensors_without_memory_and_without_elements():
    meta, empty, scalar = round_trip(
        [F.empty(2, 3, device="meta"), F.zeros(0, 3), F.tensor(5, dtype=F.int16)]
    )
    assert meta.device.type == "meta" and meta.shape == (2, 3)
    assert empty.shape == (0, 3)
    assert scalar.shape == () and scalar.item() == 5


def test_memory_that_was_shared_is_shared_again():
    x = F.arange(6.0)
    a, b, c = round_trip([x, x[2:4], x.view(2, 3).t()])
    a[2] = 70
    assert b[0].item() == 70 and c[2, 0].item() == 70
    assert a.untyped_storage() is b.untyped_storage()


def test_an_object_that_occurs_twice_is_one_object():
    t = F.ones(2)
    a, b = round_trip([t, t])
    assert a is b


def test_memory_seen_as_two_dtypes_is_shared_again():
    x = F.arange(4, dtype=F.int32)
    a, b = round_trip([x, x.view(F.float32)])
    assert a.dtype is F.int32 and b.dtype is F.float32
    a[0] = 0x3F800000
    assert b[0].item() == 1.0


def test_the_file_holds_the_whole_storage_once():
    big = F.zeros(1000)
    file = saved([big[:2], big[500:]])
    sizes = [i.file_size for i in zipfile.ZipFile(file).infolist() if "/data/" in i.filename]
    assert sizes == [4000]


def test_storages():
    typed = F.tensor([1, 2], dtype=F.int16).storage()
    back = round_trip(typed)
    assert back.tolist() == [1, 2] and back.dtype is F.int16
    untyped = round_trip(F.tensor([1, 2], dtype=F.uint8).untyped_storage())
    assert list(untyped) == [1, 2]


def test_generators_go_on_with_their_numbers():
    g = F.Generator().manual_seed(4)
    F.randn(3, generator=g)
    back = round_trip(g, weights_only=False)
    assert F.randn(5, generator=back).tolist() == F.randn(5, generator=g).tolist()


def test_operators_and_named_results():
    add, named = round_trip([F.add, F.max(F.tensor([[1.0, 3.0]]), 1)], weights_only=False)
    assert add is F.add
    assert named.values.tolist() == [3] and named.indices.tolist() == [1]


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return type(other) is Point and self.x == other.x

    __hash__ = None

    class Inner:
        pass


class Marked(F.Tensor):
    pass


def test_objects_of_programs():
    back = round_trip([Point(1), Point.Inner, datetime.timedelta(3)], weights_only=False)
    assert back == [Point(1), Point.Inner, datetime.timedelta(3)]


def test_subclasses_of_tensor():
    t = F.ones(2).as_subclass(Marked)
    t.note = 5
    back = round_trip(t, weights_only=False)
    assert type(back) is Marked and back.tolist() == [1, 1] and back.note == 5
    with serialization.safe_globals([Marked]):
        assert type(round_trip(t)) is Marked


@pytest.mark.parametrize("protocol", [2, 4])
def test_the_format_before_zip_archives(protocol):
    x = F.arange(6.0)
    obj = {"x": x, "part": x[2:4], "u16": F.tensor([7], dtype=F.uint16), "n": 3}
    file = saved(obj, _use_new_zipfile_serialization=False, pickle_protocol=protocol)
    for weights_only in (True, False):
        file.seek(0)
        back = F.load(file, weights_only=weights_only)
        back["x"][2] = 9
        assert back["part"].tolist() == [9, 3]
        assert back["u16"].tolist() == [7] and back["n"] == 3


# ---- files -------------------------------------------------------------------------------------


def test_paths(tmp_path):
    path = tmp_path / "model.pt"
    F.save({"a": F.ones(2)}, path)
    assert F.load(path)["a"].tolist() == [1, 1]
    assert F.load(str(path))["a"].tolist() == [1, 1]
    assert "model/data.pkl" in zipfile.ZipFile(path).namelist()
    with pytest.raises(RuntimeError, match="Parent directory"):
        F.save(1, tmp_path / "none" / "x.pt")
    with pytest.raises(FileNotFoundError):
        F.load(tmp_path / "none.pt")


def test_an_object_that_cannot_be_saved_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "model.pt"
    F.save(F.ones(2), path)
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        F.save([F.ones(3), lambda: 0], path)
    assert F.load(path).tolist() == [1, 1]


class Unseekable(io.RawIOBase):
    def __init__(self):
        self.data = bytearray()

    def writable(self):
        return True

    def seekable(self):
        return False

    def write(self, part):
        self.data += bytes(part)
        return len(part)

    def tell(self):
        raise OSError


def test_files_that_can_only_be_written():
    file = Unseekable()
    F.save(F.arange(3), file)
    assert F.load(io.BytesIO(bytes(file.data))).tolist() == [0, 1, 2]
    with pytest.raises(AttributeError):
        F.save(1, 3)
    with pytest.raises(AttributeError, match="seekable"):
        F.load(object())


def test_storages_are_aligned_in_the_file(tmp_path):
    path = tmp_path / "x.pt"
    F.save([F.ones(3), F.ones(5)], path)
    content = path.read_bytes()
    for entry in zipfile.ZipFile(path).infolist():
        name, extra = struct.unpack_from("<HH", content, entry.header_offset + 26)
        if "/data/" in entry.filename:
            assert (entry.header_offset + 30 + name + extra) % 64 == 0


def test_compressed_archives_can_be_read():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        source = zipfile.ZipFile(saved(F.zeros(1000)))
        for name in source.namelist():
            out.writestr(name, source.read(name))
    packed.seek(0)
    assert F.load(packed).tolist() == [0] * 1000


def test_mapped_files(tmp_path):
    path = tmp_path / "x.pt"
    F.save({"a": F.arange(5.0), "empty": F.zeros(0)}, path)
    mapped = F.load(path, mmap=True)
    assert mapped["a"].tolist() == [0, 1, 2, 3, 4] and mapped["empty"].numel() == 0
    mapped["a"][0] = 9  # stays in memory
    assert F.load(path)["a"][0].item() == 0
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        F.load(path, mmap=True)["a"][0] = 8
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert F.load(path, mmap=True)["a"][0].item() == 8
    with pytest.raises(ValueError, match="MAP_PRIVATE"):
        serialization.set_default_mmap_options(77)
    with pytest.raises(ValueError, match="file name"):
        F.load(io.BytesIO(path.read_bytes()), mmap=True)
    F.save(1, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap"):
        F.load(path, mmap=True)


def test_byte_order():
    back = F.load(io.BytesIO(checkpoint_bytes.BIG_ENDIAN))
    assert back[0].tolist() == [1, -2] and back[1].tolist() == [1 + 2j]
    file = saved(F.tensor([1, 2], dtype=F.int16), _disable_byteorder_record=True)
    assert F.load(file).tolist() == [1, 2]
    assert serialization.get_default_load_endianness() is None
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        file.seek(0)
        assert F.load(file).tolist() == [256, 512]
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("big")


# ---- locations ---------------------------------------------------------------------------------


def with_location(location, weights=b"\0\0\x80?"):
    """A checkpoint whose tensor was on another device."""
    source = zipfile.ZipFile(saved(F.ones(1)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("data.pkl"):
                old = b"X\x03\0\0\0cpu"
                assert old in data
                data = data.replace(old, b"X" + struct.pack("<I", len(location)) + location)
            out.writestr(name, data)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "map_location",
    ["cpu", F.device("cpu"), {"cuda:5": "cpu"}, lambda storage, location: storage],
    ids=["str", "device", "dict", "function"],
)
def test_map_location(map_location):
    assert F.load(with_location(b"cuda:5"), map_location=map_location).tolist() == [1]


def test_map_location_as_a_function_sees_storage_and_tag():
    seen = []

    def place(storage, location):
        seen.append((type(storage), location, storage.nbytes()))
        return storage.clone()

    assert F.load(with_location(b"cuda:5"), map_location=place).tolist() == [1]
    assert seen == [(F.UntypedStorage, "cuda:5", 4)]
    assert F.load(with_location(b"cpu"), map_location=lambda s, tag: None).tolist() == [1]


def test_map_location_meta():
    t = F.load(with_location(b"cuda:5"), map_location="meta")
    assert t.is_meta and t.shape == (1,)


@pytest.mark.skipif(F.cuda.is_available(), reason="is about machines without CUDA")
def test_a_location_that_is_not_here_says_what_to_do():
    with pytest.raises(RuntimeError, match="map_location"):
        F.load(with_location(b"cuda:5"))
    with pytest.raises(RuntimeError, match="tape7"):
        F.load(with_location(b"tape7"))
    with pytest.raises(TypeError, match="map_location"):
        F.load(with_location(b"cpu"), map_location=3)


def test_packages_tag_and_restore():
    known = list(serialization._packages)
    try:
        serialization.register_package(
            5,
            lambda s: "tape" if s.nbytes() == 12 else None,
            lambda s, tag: s.clone() if tag == "tape" else None,
        )
        assert serialization.location_tag(F.ones(3).untyped_storage()) == "tape"
        assert serialization.location_tag(F.ones(2).untyped_storage()) == "cpu"
        file = saved(F.ones(3))
        assert b"tape" in zipfile.ZipFile(file).read("archive/data.pkl")
        file.seek(0)
        assert F.load(file).tolist() == [1, 1, 1]
    finally:
        serialization._packages[:] = known


# ---- safety ------------------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return print, ("code ran",)


def pickled(description, data=b"\0" * 16):
    """A checkpoint with a description of one's own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("archive/data.pkl", description)
        out.writestr("archive/version", "3\n")
        out.writestr("archive/data/0", data)
    file.seek(0)
    return file


def test_code_is_not_run(capsys):
    file = saved([F.ones(1), Evil()])
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print.*add_safe_globals"):
        F.load(file)
    assert serialization.get_unsafe_globals_in_checkpoint(file) == ["builtins.print"]
    assert capsys.readouterr().out == ""


def test_programs_can_allow_more():
    file = saved([Point(3), datetime.timedelta(2)])
    unsafe = set(serialization.get_unsafe_globals_in_checkpoint(file))
    assert unsafe == {f"{__name__}.Point", "datetime.timedelta"}
    with pytest.raises(pickle.UnpicklingError, match="Point"):
        F.load(file)
    with serialization.safe_globals([Point, (datetime.timedelta, "datetime.timedelta")]):
        assert set(serialization.get_safe_globals()) == {Point, datetime.timedelta}
        file.seek(0)
        assert F.load(file) == [Point(3), datetime.timedelta(2)]
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([Point])
    try:
        assert F.load(saved(Point(4))) == Point(4)
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(TypeError):
        serialization.add_safe_globals([3])


def tensor_pickle(offset=0, size=(4,), stride=(1,), numel=4, kind="FloatStorage", key="0"):
    """The description of one tensor, as PyTorch writes it, with numbers of one's own."""

    def raw(value):
        return pickle.dumps(value, 2)[2:-1]

    storage = b"(X\x07\0\0\0storage" + f"ctorch\n{kind}\n".encode() + raw(key)
    storage += b"X\x03\0\0\0cpu" + raw(numel) + b"tQ"
    geometry = raw(offset) + raw(size) + raw(stride)
    hooks = b"ccollections\nOrderedDict\n)R"
    head = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
    return head + storage + geometry + b"\x89" + hooks + b"tR."


def test_a_description_of_ones_own_works():
    data = np.arange(4, dtype=np.float32).tobytes()
    assert F.load(pickled(tensor_pickle(), data)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "options",
    [
        {"size": (5,)},
        {"size": (2**62,)},
        {"size": (2**40, 2**40), "stride": (0, 1)},
        {"offset": 1},
        {"offset": 2**62},
        {"offset": -1},
        {"stride": (2,)},
        {"stride": (-1,)},
        {"stride": (2**62,)},
        {"size": (-1,)},
        {"size": (2, 2), "stride": (1,)},
        {"size": 4, "stride": 1},
        {"size": ("a",)},
        {"size": (True,)},
        {"numel": 5},
        {"numel": 2**58},
        {"numel": -4},
        {"numel": 4.0},
        {"numel": None},
        {"kind": "DoubleStorage"},
        {"kind": "Tensor"},
        {"kind": "Size"},
        {"key": "1"},
        {"key": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_that_do_not_fit_their_memory_are_refused(options, weights_only):
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        F.load(pickled(tensor_pickle(**options)), weights_only=weights_only)


@pytest.mark.parametrize(
    "description",
    [
        b"",
        b".",
        b"\x80",
        b"\x80\x09.",
        b"0.",
        b"(.",
        b"t.",
        b"R.",
        b"h\x05.",
        b"X\xff\xff\xff\xff.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x8b\xff\xff\xff\xff.",
        b"cbuiltins\neval\n(X\x01\0\0\x001tR.",
        b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.",
        b"ctorch\nTensor\n(J\xff\xff\xff\x7ftR.",
        b"ctorch\nFloatStorage\n(J\xff\xff\xff\x7ftR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n)R.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\n)NtR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n}X\x08\0\0\0__code__Nsb.",
        b"ccollections\nOrderedDict\n}X\x01\0\0\0aNsb.",
        b"K\x01K\x02a.",
        b"]K\x01K\x02s.",
        b"}]K\x01s.",
        b"(K\x01d.",
        b"K\x01Q.",
        b"(X\x07\0\0\0storageK\x01tQ.",
        b"ctorch\nno_such_thing\n.",
        b"c\n\n.",
        b"\xff.",
        b"I1e9\n.",
        b"S'a\n.",
    ],
)
def test_broken_pickles_raise(description):
    with pytest.raises((pickle.UnpicklingError, EOFError, RuntimeError)):
        F.load(pickled(description))


def test_any_cut_of_a_file_raises():
    content = saved({"a": F.arange(5.0), "b": [1, "x"]}).getvalue()
    for length in range(0, len(content), 7):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            F.load(io.BytesIO(content[:length]))
    old = saved({"a": F.arange(5.0)}, _use_new_zipfile_serialization=False).getvalue()
    for length in range(len(old)):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            F.load(io.BytesIO(old[:length]))


@pytest.mark.parametrize("form", [True, False])
def test_changed_bytes_raise_or_load_but_never_crash(form):
    content = saved([F.arange(5.0), {"n": 1}], _use_new_zipfile_serialization=form).getvalue()
    source = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(content)
        for place in source.integers(0, len(content), 2):
            broken[place] = source.integers(0, 256)
        with contextlib.suppress(RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
            F.load(io.BytesIO(bytes(broken)))


def test_damaged_numbers_are_noticed():
    file = saved(F.arange(100.0))
    content = file.getvalue()
    place = content.index(np.arange(100, dtype=np.float32).tobytes())
    broken = content[:place] + b"\1" + content[place + 1 :]
    with pytest.raises(RuntimeError, match="checksum"):
        F.load(io.BytesIO(broken))


@pytest.mark.parametrize(
    "content, error, text",
    [
        (b"", EOFError, "empty"),
        (b"hello world, no checkpoint", pickle.UnpicklingError, "magic number.*hello"),
        (pickle.dumps([1, 2]), pickle.UnpicklingError, "magic number"),
        (b"PK\x03\x04 and then nothing", RuntimeError, "central directory"),
    ],
)
def test_what_is_no_checkpoint_is_named(content, error, text):
    with pytest.raises(error, match=text):
        F.load(io.BytesIO(content))


def test_other_zip_archives_are_named():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("notes.txt", "x")
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"no record data\.pkl"):
        F.load(file)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("m/data.pkl", "x")
        out.writestr("m/constants.pkl", "x")
    file.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):
        F.load(file)


def test_names_that_facula_lacks_are_named():
    with pytest.raises(AttributeError, match=r"torch\.nn\.modules\.nothing\.Nothing"):
        F.load(pickled(b"ctorch.nn.modules.nothing\nNothing\n."), weights_only=False)


def test_whole_modules_of_pytorch():
    file = io.BytesIO(checkpoint_bytes.MODULE)
    if not hasattr(F.nn, "Linear"):
        with pytest.raises(AttributeError, match=r"torch\.nn\.modules\.linear\.Linear"):
            F.load(file, weights_only=False)
        return
    layer = F.load(file, weights_only=False)
    assert type(layer) is F.nn.Linear and layer.weight.shape == (1, 2)


def test_pickle_module():
    file = saved([Point(1)], pickle_module=pickle)
    assert F.load(file, pickle_module=pickle) == [Point(1)]
    with pytest.raises(RuntimeError, match="pickle_module"):
        F.load(file, pickle_module=pickle, weights_only=True)


# ---- PyTorch's own files -----------------------------------------------------------------------


def check_contents(obj, zipped):
    model = obj["model"]
    assert type(model) is collections.OrderedDict and list(model) == ["weight", "bias"]
    assert model["weight"].tolist() == [[1, 2], [3, 4]] and model["weight"].requires_grad
    assert model["bias"].tolist() == [5, 6] and not model["bias"].requires_grad
    x, row, transposed = obj["views"]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and transposed.stride() == (1, 3)
    x[1, 0] = 9
    assert row[0].item() == 9 and transposed[0, 1].item() == 9
    assert obj["epoch"] == 7 and obj["name"] == "é" and obj["flags"] == (True, None, 2.5)
    assert obj["half"].dtype is F.bfloat16 and obj["half"].item() == 1.5
    assert obj["dtype"] is F.float16 and obj["device"] == F.device("cpu")
    assert obj["size"] == (2, 3) and type(obj["size"]) is F.Size
    assert obj["conj"].tolist() == [1 - 2j]
    if zipped:
        assert obj["u16"].dtype is F.uint16 and obj["u16"].item() == 65535


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_pytorch(weights_only):
    for name in ("ZIP", "STREAM"):
        file = io.BytesIO(getattr(checkpoint_bytes, name))
        check_contents(F.load(file, weights_only=weights_only), name == "ZIP")
    [storage] = F.load(io.BytesIO(checkpoint_bytes.BARE_STORAGE), weights_only=weights_only)
    assert storage.tolist() == [1, 2]


def example(package):
    x = package.arange(6.0).reshape(2, 3)
    return {
        "views": [x, x[1], x.t()],
        "grad": package.zeros(2, requires_grad=True),
        "dtypes": [package.tensor([0, 1, 1]).to(getattr(package, d)) for d in DTYPES],
        "ordered": collections.OrderedDict(k=1, j=package.ones(1)),
        "meta": package.empty(2, 3, device="meta"),
        "constants": [package.float16, package.device("cuda:1"), x.shape, package.strided],
        "conj": package.tensor([1 + 2j]).conj(),
        "plain": [1, 2.5, "é", b"b", {1, 2}, None, (True, 1 + 2j)],
        "empty": package.zeros(0, 3),
    }


def comparable(obj):
    if isinstance(obj, (F.Tensor, torch.Tensor)):
        values = None if obj.device.type == "meta" else numbers(obj.detach())
        dtype = str(obj.dtype).rpartition(".")[2]
        return dtype, tuple(obj.shape), tuple(obj.stride()), obj.requires_grad, values
    if isinstance(obj, dict):
        return type(obj).__name__, [(k, comparable(v)) for k, v in obj.items()]
    if isinstance(obj, (list, tuple)):
        return type(obj).__name__, [comparable(v) for v in obj]
    if type(obj).__module__.partition(".")[0] in ("facula", "torch"):
        return str(obj).rpartition(".")[2]
    return obj


@needs_torch
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("form", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_both_packages_read_each_others_files(weights_only, form):
    for writer, reader in ((torch, F), (F, torch)):
        obj = example(writer)
        file = io.BytesIO()
        writer.save(obj, file, _use_new_zipfile_serialization=form)
        file.seek(0)
        back = reader.load(file, weights_only=weights_only)
        assert comparable(back) == comparable(obj)
        back["views"][0][1, 1] = 77
        assert back["views"][1][1].item() == 77 and back["views"][2][1, 1].item() == 77


@needs_torch
@pytest.mark.parametrize("weights_only", [True, False])
def test_pytorch_reads_one_memory_as_two_dtypes(weights_only):
    x = F.arange(4, dtype=F.int32)
    a, b = torch.load(saved([x, x.view(F.float32)]), weights_only=weights_only)
    assert a.dtype is torch.int32 and b.dtype is torch.float32
    a[0] = 0x3F800000
    assert b[0].item() == 1.0


@needs_torch
def test_pytorch_maps_facula_files(tmp_path):
    path = tmp_path / "x.pt"
    F.save({"a": F.arange(5.0)}, path)
    assert torch.load(path, mmap=True)["a"].tolist() == [0, 1, 2, 3, 4]
    torch.save({"a": torch.arange(5.0)}, path)
    assert F.load(path, mmap=True)["a"].tolist() == [0, 1, 2, 3, 4]


@needs_torch
def test_generators_and_named_results_are_exchanged():
    theirs = torch.Generator().manual_seed(4)
    file = io.BytesIO()
    torch.save([theirs, torch.max(torch.ones(1, 2), 1), torch.add], file)
    file.seek(0)
    g, named, add = F.load(file, weights_only=False)
    assert F.rand(3, generator=g).tolist() == torch.rand(3, generator=theirs).tolist()
    assert named.values.tolist() == [1] and add is F.add
    theirs, named, add = torch.load(saved([g, F.max(F.ones(1, 2), 1), F.add]), weights_only=False)
    assert F.rand(3, generator=g).tolist() == torch.rand(3, generator=theirs).tolist()
    assert named.indices.tolist() == [0] and add is torch.add


def test_streams_of_pickles_may_follow_each_other_in_one_file():
    file = io.BytesIO()
    for value in (F.arange(3), {"step": 2}, F.ones(2)):
        F.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert F.load(file).tolist() == [0, 1, 2]
    assert F.load(file) == {"step": 2}
    assert F.load(file).tolist() == [1, 1]
    assert file.read() == b""


class Plain:
    """A file object with the four methods that ``load`` asks for, and no others."""

    def __init__(self, data):
        file = io.BytesIO(data)
        self.read, self.readline, self.seek, self.tell = (
            file.read,
            file.readline,
            file.seek,
            file.tell,
        )


@pytest.mark.parametrize("zipped", [True, False])
def test_load_reads_file_objects_that_have_no_more_than_four_methods(zipped):
    file = io.BytesIO()
    F.save({"a": F.arange(3)}, file, _use_new_zipfile_serialization=zipped)
    assert F.load(Plain(file.getvalue()))["a"].tolist() == [0, 1, 2]


def test_saving_a_tensor_with_hooks_warns_that_they_stay_behind():
    x = F.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    for save in (lambda: F.save(x, io.BytesIO()), lambda: pickle.dumps(x)):
        with pytest.warns(UserWarning, match="will not be serialized"):
            save()


def test_environment_forces_safe_loading(monkeypatch):
    file = io.BytesIO()
    F.save(datetime.date(2020, 1, 1), file)
    file.seek(0)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match=r"datetime\.date"):
        F.load(file, weights_only=False)


def test_environment_lets_files_run_code_where_the_call_says_nothing(monkeypatch):
    file = io.BytesIO()
    F.save(datetime.date(2020, 1, 1), file)

    def load(**options):
        file.seek(0)
        return F.load(file, **options)

    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert load() == datetime.date(2020, 1, 1)
    with pytest.raises(pickle.UnpicklingError, match=r"datetime\.date"):
        load(weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or"):
        load()


def test_safe_globals_have_the_names_that_python_3_gives_them():
    file = io.BytesIO()
    F.save(range(3), file)  # which protocol 2 calls __builtin__.xrange
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[.*range\]\)"):
        F.load(file)
    file.seek(0)
    with F.serialization.safe_globals([range]):
        assert F.load(file) == range(3)


def test_methods_of_classes_may_be_safe_globals():
    zone = zoneinfo.ZoneInfo("UTC")
    file = io.BytesIO()
    F.save(zone, file)
    file.seek(0)
    with F.serialization.safe_globals([getattr, zoneinfo.ZoneInfo, zoneinfo.ZoneInfo._unpickle]):
        assert F.load(file) is zone
    file.seek(0)
    without = F.serialization.safe_globals([getattr, zoneinfo.ZoneInfo])
    with without, pytest.raises(pickle.UnpicklingError, match="_unpickle"):
        F.load(file)


def test_unsafe_globals_are_looked_for_in_archives_only():
    file = io.BytesIO()
    F.save(1, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by"):
        F.serialization.get_unsafe_globals_in_checkpoint(file)


def test_load_refuses_arguments_that_nothing_takes():
    file = io.BytesIO()
    F.save(1, file)
    file.seek(0)
    with pytest.raises(TypeError, match="foo"):
        F.load(file, foo=1)


def test_no_list_of_safe_globals_lets_a_file_run_the_system():
    import os

    class Runs:
        def __reduce__(self):
            return os.system, ("true",)

    file = io.BytesIO()
    F.save(Runs(), file)
    file.seek(0)
    with (
        F.serialization.safe_globals([os.system]),
        pytest.raises(pickle.UnpicklingError, match=r"whose module (posix|nt) is blocked"),
    ):
        F.load(file)


@pytest.mark.parametrize("module", ["gzip", "bz2", "lzma"])
def test_files_that_are_compressed_while_they_are_written(module, tmp_path):
    opened = importlib.import_module(module).open
    with opened(tmp_path / "x", "wb") as file:
        F.save({"a": F.arange(3), "empty": F.ones(0)}, file)
    with opened(tmp_path / "x", "rb") as file:
        back = F.load(file)
    assert back["a"].tolist() == [0, 1, 2] and back["empty"].numel() == 0


class Piecewise:
    """A file without a buffer, which takes seven bytes at once, or says nothing of how many."""

    def __init__(self, at_once):
        self.data, self.at_once = bytearray(), at_once

    def write(self, part):
        part = bytes(part)[: self.at_once]
        self.data += part
        return None if self.at_once is None else len(part)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("at_once", [7, None])
def test_saving_needs_no_more_than_write(at_once, zipped):
    file = Piecewise(at_once)
    F.save(F.arange(30), file, _use_new_zipfile_serialization=zipped)
    assert F.load(io.BytesIO(bytes(file.data))).tolist() == list(range(30))
    if zipped:
        assert zipfile.ZipFile(io.BytesIO(bytes(file.data))).testzip() is None


def test_an_archive_may_begin_behind_other_bytes():
    file = io.BytesIO(b"abc")
    file.seek(3)
    F.save(F.arange(3), file)
    file.seek(3)
    assert F.load(file).tolist() == [0, 1, 2]


def test_files_without_checksums_load():
    serialization.set_crc32_options(False)
    try:
        file = saved(F.arange(3))
    finally:
        serialization.set_crc32_options(True)
    assert zipfile.ZipFile(file).getinfo("archive/data/0").CRC == 0
    file.seek(0)
    assert F.load(file).tolist() == [0, 1, 2]


def test_storages_that_were_skipped_may_be_filled_in_later():
    file = io.BytesIO()
    with serialization.skip_data():
        F.save(F.zeros(3, dtype=F.uint8), file)
    file.seek(F.PyTorchFileReader(file).get_record_offset("data/0"))
    file.write(bytes([4, 5, 6]))
    file.seek(0)
    assert F.load(file).tolist() == [4, 5, 6]


def test_a_file_that_was_written_to_through_a_mapping_loads(tmp_path):
    path = tmp_path / "x.pt"
    F.save({"a": F.zeros(3), "b": F.ones(2)}, path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        F.load(path, mmap=True)["a"].fill_(7)
    back = F.load(path)
    assert back["a"].tolist() == [7, 7, 7] and back["b"].tolist() == [1, 1]
    content = bytearray(path.read_bytes())  # the description still has its checksum
    content[content.index(b"\x80\x02}")] ^= 4
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=r"data\.pkl cannot be read"):
        F.load(path)


def test_only_the_format_before_archives_needs_lines():
    def plain(zipped):
        file = Plain(saved(F.arange(3), _use_new_zipfile_serialization=zipped).getvalue())
        del file.readline
        return file

    assert F.load(plain(True)).tolist() == [0, 1, 2]
    with pytest.raises(AttributeError, match="readline"):
        F.load(plain(False))
