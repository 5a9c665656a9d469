"""Datasets that read small files: which process does so makes no difference."""

import os
import pathlib

import numpy
import pytest

import facula
from facula.utils import data
from facula.utils.data._utils import pace
from facula.utils.data._utils.lookups import iterations_of, lookups_of
from facula.utils.data._utils.reading import IS_READ

pytestmark = pytest.mark.skipif(not IS_READ, reason="functions of this Python are not read")


class Files(data.Dataset):
    """Files with a few numbers."""

    def __init__(self, folder, count=6):
        for i in range(count):
            (folder / f"{i}.txt").write_text(f"{i} {i * i}\n")
            numpy.save(folder / f"{i}.npy", numpy.full(3, float(i)))
        self.root, self.path, self.count = str(folder), folder, count
        self.names = [f"{folder}/{i}.txt" for i in range(count)]
        self.paths = [folder / f"{i}.txt" for i in range(count)]
        self.open_one = None

    def __len__(self):
        return self.count


def text(self, index):
    with open(os.path.join(self.root, f"{index}.txt")) as file:
        return [int(word) for word in file.read().split()], index


def lines(self, index):
    with open(self.paths[index], encoding="utf-8") as file:
        return file.readline(), len(file.readlines())


def binary(self, index):
    with open(self.names[index], mode="rb") as file:
        content = file.read()
    return numpy.frombuffer(content, dtype=numpy.uint8)[:3].copy(), content.decode()


def text_of_path(self, index):
    return self.paths[index].read_text(encoding="utf-8").strip()


def bytes_of_path(self, index):
    return (self.path / f"{index}.txt").read_bytes()


def array(self, index):
    return numpy.load(self.root + f"/{index}.npy")


def of(getitem, folder):
    return type("Own", (Files,), {"__getitem__": getitem})(folder)


def flat(batch):
    if isinstance(batch, (list, tuple)):
        return [*map(flat, batch)]
    return batch.tolist() if isinstance(batch, facula.Tensor) else batch


@pytest.mark.parametrize("getitem", [text, lines, binary, text_of_path, bytes_of_path, array])
def test_reading_files_needs_no_process(getitem, tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "_START_SECONDS", 100.0)
    dataset = of(getitem, tmp_path)
    iterator = iter(data.DataLoader(dataset, 2, num_workers=2))
    found = [*map(flat, iterator)]
    assert iterator._crew is None
    assert found == [*map(flat, data.DataLoader(dataset, 2))]


def test_a_file_that_is_missing_is_the_workers_error(tmp_path):
    dataset = of(text, tmp_path)
    os.remove(tmp_path / "2.txt")
    iterator = iter(data.DataLoader(dataset, 2, num_workers=1))
    next(iterator)
    with pytest.raises(FileNotFoundError, match="worker process 0"):
        next(iterator)


class Lines(data.IterableDataset):
    def __init__(self, path):
        self.path = str(path)

    def __iter__(self):
        with open(self.path) as file:
            for line in file:
                yield line.strip()


def test_a_stream_of_lines_needs_no_process(tmp_path):
    (tmp_path / "lines").write_text("a\nb\nc\n")
    dataset = Lines(tmp_path / "lines")
    assert iterations_of(dataset, False) is not None
    assert [*data.DataLoader(dataset, 2, num_workers=2)] == [["a", "b"]] * 2 + [["c"]] * 2


def writes(self, index):
    with open(self.names[index], "w") as file:
        return file.write("x")


def keeps_open(self, index):
    if self.open_one is None:
        self.open_one = open(self.names[0])  # noqa: SIM115
    return self.open_one.read()


def open_already(self, index):
    return open(index).read()


def of_process(self, index):
    with open("/proc/self/stat") as file:
        return file.read()


def mode_of_index(self, index):
    with open(self.names[0], "r+" if index else "r") as file:
        return file.read()


@pytest.mark.parametrize("getitem", [writes, keeps_open, open_already, of_process, mode_of_index])
def test_other_uses_of_files_are_left_to_processes(getitem, tmp_path):
    dataset = of(getitem, tmp_path)
    assert lookups_of(dataset) is None
    assert iter(data.DataLoader(dataset, 2, num_workers=1))._crew is not None


def test_paths_with_code_of_their_own_are_left_to_processes(tmp_path):
    class Own(type(pathlib.Path())):
        pass

    dataset = of(text_of_path, tmp_path)
    dataset.paths = [*map(Own, dataset.paths)]
    assert lookups_of(dataset) is None
