"""One call of ``load``: unpickles the description and gives it the storages it asks for."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

from facula import _C
from facula._checkpoint import pickling
from facula._checkpoint.archive import Archive
from facula._checkpoint.safe_unpickler import DryUnpickler, SafeUnpickler
from facula._checkpoint.stream import read_exactly, read_into, shown, storage_id, text
from facula.storage import TypedStorage, UntypedStorage, swap_bytes

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # begins files of the time before zip archives
PROTOCOL_VERSION = 1001

Restore = Callable[[UntypedStorage, str], UntypedStorage]


class Reading:
    """What all formats have in common.

    Args:
        source: what messages call the file.
        restore: (storage in host memory, location in the file) -> storage.
        safe: whether code in the file is refused; else ``pickle_module`` runs it.
        options: for the unpickler.
    """

    def __init__(
        self, source: str, restore: Restore, pickle_module: Any, safe: bool, options: dict[str, Any]
    ) -> None:
        self.source, self.restore, self.safe = source, restore, safe
        self.pickle_module, self.options = pickle_module, options
        self.untyped: dict[str, UntypedStorage] = {}
        self.objects: dict[tuple[str, Any], Any] = {}

    def unpickle(self, file: Any, persistent_load: Callable[[Any], Any]) -> Any:
        if not self.safe:
            return pickling.make_unpickler(
                self.pickle_module, file, persistent_load, self.options
            ).load()
        try:
            return SafeUnpickler(
                file, persistent_load=persistent_load, encoding=self.options["encoding"]
            ).load()
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(
                f"Weights only load failed: {error}. With weights_only=True, {self.source} may "
                "hold only tensors, numbers, texts and containers of them. Loading it with "
                "weights_only=False runs the code that it names, so do that only if you trust its "
                "source."
            ) from None

    def storage(self, kind: Any, key: str, location: str, read: Callable[[Any], Any]) -> Any:
        """The storage of a key as the type ``kind``; ``read(dtype)`` is called once for a key."""
        dtype = dtype_of(kind)
        if key not in self.untyped:
            self.untyped[key] = self.restore(read(dtype or _C.uint8), location)
        if (key, dtype) not in self.objects:
            untyped = self.untyped[key]
            made = TypedStorage(wrap_storage=untyped, dtype=dtype) if dtype else untyped
            self.objects[key, dtype] = made
        return self.objects[key, dtype]


class ZipReading(Reading):
    """Zip archives: what PyTorch has written since version 1.6."""

    def load(self, archive: Archive, default_order: str) -> Any:
        swapped = (archive.byte_order() or default_order) != sys.byteorder

        def persistent_load(pid: Any) -> Any:
            kind, key, location, numel = storage_id(pid, 5)[1:]

            def read(dtype: Any) -> UntypedStorage:
                storage = archive.storage(f"data/{key}", numel * dtype.itemsize)
                if swapped:
                    swap_bytes(storage, dtype)
                return storage

            return self.storage(kind, key, location, read)

        return self.unpickle(io.BytesIO(archive.read("data.pkl")), persistent_load)


class StreamReading(Reading):
    """The format before: pickles one after the other, then the bytes of the storages."""

    def load(self, file: Any) -> Any:
        self.file = file
        self.check_magic_number()
        version = self.unpickle(file, self.no_storage)
        if version != PROTOCOL_VERSION:
            raise RuntimeError(f"Invalid protocol version: {shown(version)}")
        info = self.unpickle(file, self.no_storage)
        little = not isinstance(info, dict) or bool(info.get("little_endian", True))
        # The description comes first and needs the storages: it is gone over once to find its end.
        begin = file.tell()
        wanted = self.storages_in_description()
        length = file.tell() - begin
        keys = self.unpickle(file, self.no_storage)
        if not isinstance(keys, list):
            raise RuntimeError(f"corrupt checkpoint: {self.source} has no list of storages")
        host = {}
        for key in map(text, keys):
            if key not in wanted:
                raise RuntimeError(
                    f"corrupt checkpoint: nothing refers to the storage {shown(key)}"
                )
            host[key] = self.read_storage(key, *wanted[key], little)

        def persistent_load(pid: Any) -> Any:
            if is_class(pid):
                return pid[1]
            kind, key, location, _, view = storage_id(pid, 6)[1:]
            if key not in host:
                raise RuntimeError(f"corrupt checkpoint: the storage {shown(key)} is missing")
            root = self.storage(kind, key, location, lambda dtype: host[key])
            return root if view is None else self.part(root, key, view)

        end = file.tell()
        file.seek(begin)
        description = io.BytesIO(read_exactly(file, length, self.source))
        file.seek(end)  # several checkpoints may follow each other in one file
        return self.unpickle(description, persistent_load)

    def check_magic_number(self) -> None:
        begin = self.file.tell()
        try:
            magic = SafeUnpickler(self.file, persistent_load=self.no_storage).load()
        except (pickle.UnpicklingError, EOFError):
            magic = None
        if magic == MAGIC_NUMBER and type(magic) is int:
            return
        # As with PyTorch, some other pickle is a RuntimeError, unless it was not to be trusted.
        kind = pickle.UnpicklingError
        if not self.safe and self.is_pickle(begin):
            kind = RuntimeError
        self.file.seek(begin)
        raise kind(
            f"Invalid magic number; corrupt file? {self.source} begins with "
            f"{self.file.read(16)!r} and is no checkpoint of facula.save or torch.save"
        )

    def is_pickle(self, begin: int) -> bool:
        self.file.seek(begin)
        try:
            DryUnpickler(self.file).load()
        except Exception:
            return False
        return True

    def no_storage(self, pid: Any) -> Any:
        raise RuntimeError(f"corrupt checkpoint: {self.source} refers to a storage too early")

    def storages_in_description(self) -> dict[str, tuple[int, Any]]:
        """Key -> number of elements and dtype; leaves the file at the end of the description."""
        reader = DryUnpickler(self.file)
        reader.load()
        found: dict[str, tuple[int, Any]] = {}
        for pid in reader.persistent_ids:
            if is_class(pid):
                continue
            kind, key, _, numel, _ = storage_id(pid, 6)[1:]
            found.setdefault(key, (numel, dtype_of(kind) or _C.uint8))
        return found

    def read_storage(self, key: str, numel: int, dtype: Any, little: bool) -> UntypedStorage:
        header = read_exactly(self.file, 8, self.source)
        count = struct.unpack("<q" if little else ">q", header)[0]
        if count != numel:
            raise RuntimeError(
                f"corrupt checkpoint: the storage {shown(key)} has {count} elements instead of "
                f"{numel}"
            )
        self.check_left(numel * dtype.itemsize)
        storage = UntypedStorage(numel * dtype.itemsize)
        read_into(self.file, storage, self.source)
        if little != (sys.byteorder == "little"):
            swap_bytes(storage, dtype)
        return storage

    def part(self, root: Any, key: str, view: Any) -> Any:
        """A storage that is a piece of another one."""
        name, offset, size = view
        item = root.dtype.itemsize
        if type(offset) is not int or type(size) is not int or not 0 <= offset <= offset + size:
            raise RuntimeError(f"corrupt checkpoint: a storage's piece {shown(view)}")
        if (offset + size) * item > root.nbytes():
            raise RuntimeError(f"corrupt checkpoint: the piece {shown(view)} is out of its storage")
        index = (f"{key}/{text(name)}", root.dtype)
        if index not in self.objects:
            piece = root.untyped()[offset * item : (offset + size) * item]
            self.objects[index] = TypedStorage(wrap_storage=piece, dtype=root.dtype)
        return self.objects[index]

    def check_left(self, nbytes: int) -> None:
        here = self.file.tell()
        self.file.seek(0, os.SEEK_END)
        left = self.file.tell() - here
        self.file.seek(here)
        if nbytes > left:
            raise RuntimeError(
                f"{self.source} is truncated: a storage of {nbytes} bytes does not fit into the "
                f"{left} bytes that are left"
            )


def is_class(pid: Any) -> bool:
    """Old files name a class together with its source text."""
    return isinstance(pid, tuple) and len(pid) > 1 and text(pid[0]) == "module"


def dtype_of(kind: Any) -> Any:
    """The dtype of a type of storages; None for bytes."""
    if kind is UntypedStorage:
        return None
    dtype = getattr(kind, "dtype", None)
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"corrupt checkpoint: {shown(kind)} is no type of storages")
    return dtype
