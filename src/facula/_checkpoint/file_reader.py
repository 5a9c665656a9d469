"""Records of a checkpoint, one by one."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from facula._checkpoint.archive import Archive


class PyTorchFileReader:
    """A checkpoint open for reading, record by record.

    Args:
        file: a path, or an open file.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> facula.save(facula.ones(2), file)
        >>> reader = facula.PyTorchFileReader(file)
        >>> reader.has_record("data.pkl"), reader.get_record_size("data/0")
        (True, 8)
    """

    def __init__(self, file: Any) -> None:
        self._own: Any = None  # a file that this object has to close
        if isinstance(file, (str, os.PathLike)):
            file = self._own = open(file, "rb")  # noqa: SIM115 - open as long as this object is
        self._archive = Archive(file, str(getattr(file, "name", type(file).__name__)))

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        data: bytes = self._archive.zip.read(self._entry(name))
        return data

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return self._archive.has(name)

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        prefix = f"{self._archive.folder}/"
        return [n.removeprefix(prefix) for n in self._archive.zip.namelist()]

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._entry(name).file_size

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        return self._archive.data_offset(self._entry(name))

    def get_record_header_offset(self, name: str) -> int:
        """Where a record's header begins in the file."""
        return self._entry(name).header_offset

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A tensor of one dimension over a copy of a record's bytes."""
        from facula.storage import whole_tensor

        return whole_tensor(self._archive.storage(name, numel * dtype.itemsize), dtype)

    def serialization_id(self) -> str:
        """What identifies the file, or an empty text when it has nothing of the kind."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""

    def _entry(self, name: str) -> zipfile.ZipInfo:
        return self._archive.entry(name)

    def __del__(self) -> None:
        if getattr(self, "_own", None) is not None:
            self._own.close()
