"""The zip archive of a checkpoint: uncompressed records under one folder, storages aligned."""

from __future__ import annotations

import mmap as _mmap
import os
import struct
import zipfile
import zlib
from typing import Any

from facula import _C
from facula._checkpoint.stream import read_exactly, read_into
from facula.storage import UntypedStorage

# Compressed records that grow more than this are made to exhaust memory.
_LARGEST_RATIO = 200
_ALWAYS_BYTES = 1 << 24
ALIGNMENT = 64  # of storages in the file, so that they can be used in place


_ZEROS = bytes(1 << 20)


def write_record(
    archive: zipfile.ZipFile, name: str, data: Any, *, nbytes: int = 0, checksum: bool = True
) -> None:
    """Stores bytes at an aligned place; padding is an extra field of the entry's header.

    ``data=None`` stands for ``nbytes`` zeros that are filled in later. These have no checksum,
    nor has any record without ``checksum``: the entry says 0 instead.
    """
    view = None if data is None else memoryview(data)
    if view is not None and view.nbytes:
        view = view.cast("B")
    entry = zipfile.ZipInfo(name)
    entry.file_size = entry.compress_size = nbytes if view is None else view.nbytes
    entry.CRC = zlib.crc32(view) if checksum and view is not None else 0
    zip64 = entry.file_size * 1.05 > zipfile.ZIP64_LIMIT
    begin = archive.start_dir + 30 + len(name.encode()) + (20 if zip64 else 0) + 4
    padding = -begin % ALIGNMENT
    entry.extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
    # The entry's header is complete before its bytes are written, so that nothing has to be
    # corrected behind: not every file can go back.
    entry.external_attr = 0o600 << 16
    entry.header_offset = archive.start_dir
    file: Any = archive.fp
    file.write(entry.FileHeader(zip64))
    if view is not None:
        file.write(view)
    else:
        for done in range(0, nbytes, len(_ZEROS)):
            file.write(_ZEROS[: nbytes - done])
    archive.start_dir = file.tell()
    archive.filelist.append(entry)
    archive.NameToInfo[entry.filename] = entry
    archive._didModify = True  # type: ignore[attr-defined]


class Sink:
    """A file object of a program, of which nothing is asked but ``write``."""

    def __init__(self, file: Any) -> None:
        self._file, self._written = file, 0

    def tell(self) -> int:
        """Bytes since the archive began, wherever in the file that was."""
        return self._written

    def write(self, data: Any) -> int:
        """All of the data: files without a buffer may take less at once."""
        left = memoryview(data)
        self._written += left.nbytes
        while left.nbytes:
            taken = self._file.write(left)
            if not isinstance(taken, int) or taken >= left.nbytes:
                break
            if taken <= 0:
                raise OSError(f"the file took none of {left.nbytes} bytes")
            left = left[taken:]
        return len(data)

    def flush(self) -> None:
        """Passes it on, where the file knows it."""
        if hasattr(self._file, "flush"):
            self._file.flush()


class _Seekable:
    """A file object that has ``seek`` without saying so, which ``zipfile`` asks for."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def seekable(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Archive:
    """A checkpoint that is open for reading.

    Args:
        file: the open file.
        source: what messages call it.
        map_shared: None reads storages; False and True map them into memory, where True writes
            changes back to the file.
    """

    # Storages are made and not filled; checksums are compared.
    skip_data = False
    checksums = True

    def __init__(self, file: Any, source: str, map_shared: bool | None = None) -> None:
        if not hasattr(file, "seekable"):
            file = _Seekable(file)
        self.file, self.source = file, source
        try:
            self.zip = zipfile.ZipFile(file)
        except Exception as error:  # zipfile trusts the numbers that it reads
            raise RuntimeError(
                f"failed reading zip archive {source}: failed finding central directory "
                f"({error}). The file is truncated or no checkpoint"
            ) from error
        names = [n.partition("/") for n in self.zip.namelist()]
        if any(record == "constants.pkl" for _, _, record in names):
            raise RuntimeError(
                f"{source} is a TorchScript archive, which holds a program; save the model's "
                "state_dict() instead"
            )
        folders = [folder for folder, _, record in names if record == "data.pkl"]
        if not folders:
            raise RuntimeError(
                f"{source} is a zip archive but no checkpoint: it has no record data.pkl"
            )
        self.folder = folders[0]
        file.seek(0, os.SEEK_END)
        self.size = file.tell()
        self.left = self.size  # records that overlap would make a small file a large one
        self.mapped: Any = None
        if map_shared is not None:
            with open(file.name, "r+b" if map_shared else "rb") as mapped:
                access = _mmap.ACCESS_WRITE if map_shared else _mmap.ACCESS_COPY
                self.mapped = _mmap.mmap(mapped.fileno(), 0, access=access)
            if map_shared:
                self.drop_checksums()

    def drop_checksums(self) -> None:
        """Takes the checksums of storages out of a file that the program may write to from now on:
        those of before would say that it is damaged."""
        at = self.zip.start_dir
        for entry in self.zip.infolist():  # in the order of the directory
            if self.mapped[at : at + 4] != b"PK\x01\x02":
                raise RuntimeError(f"{self.source} is corrupt: its directory is not where it says")
            lengths = struct.unpack_from("<HHH", self.mapped, at + 28)
            if entry.CRC and entry.filename.startswith(f"{self.folder}/data/"):
                self.data_offset(entry)  # is there a header?
                entry.CRC = 0
                for place in (at + 16, entry.header_offset + 14):
                    self.mapped[place : place + 4] = bytes(4)
            at += 46 + sum(lengths)

    def has(self, name: str) -> bool:
        return f"{self.folder}/{name}" in self.zip.NameToInfo

    def entry(self, name: str) -> zipfile.ZipInfo:
        try:
            found = self.zip.getinfo(f"{self.folder}/{name}")
        except KeyError:
            raise RuntimeError(
                f"{self.source} is not complete: the record {name} is missing"
            ) from None
        stored = found.compress_type == zipfile.ZIP_STORED
        if stored and found.file_size != found.compress_size:
            raise RuntimeError(f"{self.source} is corrupt: the record {name} has a wrong size")
        if found.file_size > max(_LARGEST_RATIO * found.compress_size, _ALWAYS_BYTES):
            raise RuntimeError(
                f"{self.source} is refused: the {found.compress_size} bytes of the record {name} "
                f"claim to stand for {found.file_size} bytes"
            )
        if found.header_offset < 0 or found.header_offset + found.compress_size > self.size:
            raise RuntimeError(f"{self.source} is truncated: the record {name} is not complete")
        return found

    def take(self, entry: zipfile.ZipInfo) -> None:
        self.left -= entry.compress_size
        if self.left < 0:
            raise RuntimeError(f"{self.source} is corrupt: its records overlap")

    def read(self, name: str) -> bytes:
        entry = self.entry(name)
        self.take(entry)
        compared = self.checksums and entry.CRC  # 0 says that there is none
        if not compared and entry.compress_type == zipfile.ZIP_STORED:
            self.file.seek(self.data_offset(entry))
            return read_exactly(self.file, entry.file_size, self.source)
        try:
            return self.zip.read(entry)
        except Exception as error:
            raise RuntimeError(
                f"{self.source} is corrupt: the record {name} cannot be read ({error})"
            ) from error

    def byte_order(self) -> str | None:
        """ "little" or "big", or None when the file does not say."""
        if not self.has("byteorder"):
            return None
        order = self.read("byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type in {self.source}: {order!r}")
        return order

    def storage(self, name: str, nbytes: int) -> UntypedStorage:
        entry = self.entry(name)
        if entry.file_size != nbytes:
            raise RuntimeError(
                f"{self.source} is corrupt: the record {name} has {entry.file_size} bytes, but the "
                f"storage has {nbytes}"
            )
        if self.skip_data:
            return UntypedStorage(nbytes)
        stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
        begin = self.data_offset(entry) if stored else 0
        if self.mapped is not None and stored and nbytes and begin % 16 == 0:
            region = memoryview(self.mapped)[begin : begin + nbytes]
            return _C._frombuffer(region, _C.uint8).untyped_storage()
        storage = UntypedStorage(nbytes)
        if stored:
            self.take(entry)
            self.file.seek(begin)
            read_into(self.file, storage, self.source)
            compared = self.checksums and entry.CRC  # 0 says that there is none
            if compared and zlib.crc32(memoryview(storage)) != entry.CRC:
                raise RuntimeError(
                    f"{self.source} is corrupt: wrong checksum of the record {name}. If it was "
                    "changed on purpose, set_crc32_options(False) loads it"
                )
        elif nbytes:
            memoryview(storage)[:] = self.read(name)
        return storage

    def data_offset(self, entry: zipfile.ZipInfo) -> int:
        """Where an entry's bytes begin: after its header, whose lengths stand only there."""
        self.file.seek(entry.header_offset)
        header = read_exactly(self.file, 30, self.source)
        name_length, extra_length = struct.unpack_from("<HH", header, 26)
        begin = entry.header_offset + 30 + name_length + extra_length
        if header[:4] != b"PK\x03\x04" or begin + entry.compress_size > self.size:
            raise RuntimeError(f"{self.source} is corrupt: bad header of {entry.filename}")
        return begin
