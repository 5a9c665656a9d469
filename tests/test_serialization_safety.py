"""Files that were damaged or made to do harm: one clear error, no crash, no endless work; and
files that are being written when the process ends."""

import io
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import zipfile

import numpy
import pytest

import facula

# What a file that cannot be read gives. NotImplementedError (a RuntimeError) is for sparse,
# quantized and nested tensors.
ERRORS = (RuntimeError, pickle.UnpicklingError, EOFError)


@pytest.fixture(autouse=True)
def within_minutes():
    def stop(number, frame):
        raise TimeoutError("the test took longer than four minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def example():
    base = facula.arange(12.0).view(3, 4)
    return {
        "base": base,
        "view": base[1:, ::2],
        "half": facula.ones(5, dtype=facula.bfloat16),
        "parameter": facula.nn.Parameter(facula.ones(2)),
        "numbers": [1, 2.5, None, True, 2**70, "text", (1, 2), {3, 4}],
    }


def saved(zipped):
    file = io.BytesIO()
    facula.save(example(), file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def repacked(content, change):
    """The archive with its description changed and all checksums right."""
    source = zipfile.ZipFile(io.BytesIO(content))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            target.writestr(
                info.filename, change(data) if info.filename.endswith("data.pkl") else data
            )
    return out.getvalue()


def archive(description, records=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        target.writestr("archive/data.pkl", description)
        for name, data in records:
            target.writestr(f"archive/data/{name}", data)
    out.seek(0)
    return out


def load_or_refuse(content):
    try:
        facula.load(io.BytesIO(content))
    except ERRORS as error:
        assert str(error)
        return False
    return True


def flip(rng, content, count):
    changed = bytearray(content)
    for _ in range(count):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("zipped", [True, False])
def test_flipped_bits_load_or_are_refused(zipped):
    rng = random.Random(0)
    content = saved(zipped)
    assert load_or_refuse(content)
    for _ in range(1500):
        load_or_refuse(flip(rng, content, rng.choice([1, 1, 2, 8])))


def test_flipped_bits_of_the_description_behind_right_checksums():
    rng = random.Random(1)
    content = saved(True)
    for _ in range(600):
        load_or_refuse(repacked(content, lambda data: flip(rng, data, rng.choice([1, 2, 4]))))


@pytest.mark.parametrize("zipped", [True, False])
def test_truncated_and_scrambled_files_are_refused(zipped):
    rng = random.Random(2)
    content = saved(zipped)
    for _ in range(200):
        assert not load_or_refuse(content[: rng.randrange(len(content) - 1)])
    for _ in range(200):  # a piece moved, repeated or overwritten
        a, b = sorted(rng.randrange(len(content)) for _ in range(2))
        piece = content[a : a + rng.randrange(64)]
        load_or_refuse(content[:b] + piece + content[b + rng.randrange(64) :])
    for _ in range(200):
        start = b"PK\x03\x04" if zipped else b"\x80\x02"
        assert not load_or_refuse(start + rng.randbytes(rng.randrange(300)))


def test_a_flipped_bit_of_the_numbers_is_noticed():
    content = bytearray(saved(True))
    at = bytes(content).index(numpy.arange(12, dtype="float32").tobytes())
    content[at + 17] ^= 4
    with pytest.raises(RuntimeError, match="wrong checksum"):
        facula.load(io.BytesIO(bytes(content)))


# ---- made to do harm


# t = (t, t), sixty times; kept as 0
BILLIONS = b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * 60


@pytest.mark.parametrize("use", [b"}h\x00Ns.", b"cbuiltins\nset\n](h\x00e\x85R."])
def test_a_key_that_stands_for_billions_of_tuples_is_refused(use):
    with pytest.raises(pickle.UnpicklingError, match="nested without end"):
        facula.load(archive(BILLIONS + use))


def test_a_deep_tuple_as_a_key_is_refused():
    description = b"\x80\x02})" + b"\x85" * 500_000 + b"Ns."
    with pytest.raises(pickle.UnpicklingError, match="nested without end"):
        facula.load(archive(description))


def test_an_endless_description_of_a_storage_is_shown_short():
    with pytest.raises(RuntimeError, match="no description of a storage"):
        facula.load(archive(BILLIONS + b"Q."))


def forged(size, stride=(1,), numel=4):
    """The description of a float32 tensor, with numbers that a file may claim."""

    def number_or_tuple(value):
        return pickle.dumps(value, 2)[2:-1].split(b"q\x00")[0]

    storage = (
        b"X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    )
    return b"".join(
        [
            b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(",
            b"(" + storage + number_or_tuple(numel) + b"tQ",
            *map(number_or_tuple, (0, size, stride, False)),
            b"ccollections\nOrderedDict\n)RtR.",
        ]
    )


@pytest.mark.parametrize("size", [(2**62,), (5,), (2**31, 2**31, 4), (-1,), (2**70,)])
def test_sizes_beyond_the_storage_are_refused(size):
    strides = tuple(1 for _ in size)
    with pytest.raises(RuntimeError, match="does not fit"):
        facula.load(archive(forged(size, strides), [("0", bytes(16))]))


@pytest.mark.parametrize("numel", [2**40, 2**62, -3])
def test_storages_larger_than_their_record_are_refused(numel):
    with pytest.raises(RuntimeError, match="corrupt"):
        facula.load(archive(forged((2,), (1,), numel), [("0", bytes(16))]))


def test_a_compressed_record_that_explodes_is_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("archive/data.pkl", forged((2,), (1,), 2**24))
        target.writestr("archive/data/0", bytes(2**26))
    assert len(out.getvalue()) < 2**17
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RuntimeError, match="claim to stand for"):
        facula.load(io.BytesIO(out.getvalue()))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 2**15  # KiB


def test_a_forged_size_in_the_directory_is_refused():
    content = bytearray(saved(True))
    directory = bytes(content).index(b"PK\x01\x02")
    content[directory + 20 : directory + 28] = b"\xf0\xff\xff\x7f" * 2  # both sizes of data.pkl
    with pytest.raises(RuntimeError):
        facula.load(io.BytesIO(bytes(content)))


def test_records_that_overlap_are_refused():
    from facula._checkpoint.archive import Archive

    reader = Archive(archive(b"\x80\x02N.", [("0", bytes(4096))]), "the file")
    assert reader.storage("data/0", 4096).nbytes() == 4096
    with pytest.raises(RuntimeError, match="overlap"):
        for _ in range(3):
            reader.storage("data/0", 4096)


def test_errors_of_map_location_are_the_programs_own():
    def fail(storage, location):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        facula.load(io.BytesIO(saved(True)), map_location=fail)


def test_tensors_that_facula_lacks_are_refused_by_name():
    torch = pytest.importorskip("torch")
    t = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
    file = io.BytesIO()
    torch.save({"x": t}, file)
    file.seek(0)
    with pytest.raises(NotImplementedError, match="a nested tensor"):
        facula.load(file)


# ---- writing


def test_saving_replaces_the_file_and_keeps_its_mode_and_links(tmp_path):
    real = tmp_path / "real.pt"
    facula.save(1, real)
    os.chmod(real, 0o640)
    link = tmp_path / "link.pt"
    link.symlink_to(real)
    opened = open(real, "rb")  # noqa: SIM115
    facula.save(2, link)
    assert link.is_symlink() and facula.load(real) == 2
    assert os.stat(real).st_mode & 0o777 == 0o640
    assert facula.load(opened) == 1  # who had the old file still has it
    opened.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.pt", "real.pt"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    facula.save("old", path)
    from facula import serialization

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(serialization, "write_record", fail)
    with pytest.raises(OSError, match="disk full"):
        facula.save("new", path)
    assert facula.load(path) == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_process_killed_in_mid_save_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "model.pt"
    facula.save("old", path)
    program = (
        "import os, sys, facula\n"
        "from facula import serialization\n"
        "write = serialization.write_record\n"
        "def slow(archive, name, data, **how):\n"
        "    write(archive, name, data, **how)\n"
        "    if 'data/0' in name:\n"
        "        os.kill(os.getpid(), 9)\n"
        "serialization.write_record = slow\n"
        "facula.save({'a': facula.ones(1000), 'b': facula.ones(1000)}, sys.argv[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], timeout=50, check=False)
    assert done.returncode == -signal.SIGKILL
    assert facula.load(path) == "old"
    if hasattr(os, "O_TMPFILE"):
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] in (
            [],
            [f".{path.name}"],
        )


def test_devices_and_pipes_are_written_to_directly(tmp_path):
    facula.save(facula.ones(3), "/dev/null")
    assert not os.path.isfile("/dev/null")
