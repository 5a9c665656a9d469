"""Files in the safetensors format: a table of names, dtypes and shapes, then the numbers.

The functions are named as in the ``safetensors.torch`` module, and the files are the same. Reading
executes nothing and checks every number of the table.

Example::

    >>> from facula.safetensors import load, save
    >>> load(save({"weight": facula.ones(2)}))
    {'weight': tensor([1., 1.])}
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import facula
from facula import _C
from facula.storage import UntypedStorage, swap_bytes, whole_tensor

__all__ = [
    "SafetensorError",
    "deserialize",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]

# In the order of the format's own list, the wider later.
_DTYPES = {
    "BOOL": _C.bool,
    "U8": _C.uint8,
    "I8": _C.int8,
    "F8_E5M2": _C.float8_e5m2,
    "F8_E4M3": _C.float8_e4m3fn,
    "I16": _C.int16,
    "U16": _C.uint16,
    "F16": _C.float16,
    "BF16": _C.bfloat16,
    "I32": _C.int32,
    "U32": _C.uint32,
    "F32": _C.float32,
    "C64": _C.complex64,
    "F64": _C.float64,
    "I64": _C.int64,
    "U64": _C.uint64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_RANKS = {dtype: rank for rank, dtype in enumerate(_NAMES)}
_LONGEST_HEADER = 100_000_000
_METADATA = "__metadata__"


class SafetensorError(Exception):
    """A file that is not in the safetensors format, or damaged."""


# ---- writing


def _checked(tensors: Any) -> dict[str, Any]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, Tensor] but received {type(tensors).__name__}")
    holders: dict[int, list[str]] = {}
    for name, t in tensors.items():
        if not isinstance(name, str) or not isinstance(t, facula.Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected Tensor but received {type(t).__name__}"
            )
        if name == _METADATA:
            raise ValueError(f"{_METADATA!r} is the name of the metadata, not of a tensor")
        if t.is_meta:
            raise ValueError(f"the tensor `{name}` is on the meta device and has no numbers")
        if t.dtype not in _NAMES:
            raise ValueError(
                f"the tensor `{name}` is {t.dtype}, which safetensors files cannot hold; they "
                f"hold {', '.join(str(d) for d in _NAMES)}"
            )
        if not t.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. "
                "It either means you are trying to save tensors which are reference of each other "
                "in which case it's recommended to save only the full tensors, and reslice at load "
                "time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
        if t.numel():
            holders.setdefault(t.untyped_storage()._cdata, []).append(name)
    shared = [names for names in holders.values() if len(names) > 1 and _overlap(tensors, names)]
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential "
            f"differences when loading them again: {shared}. A potential way to correctly save "
            "your model is to use `save_model`."
        )
    return tensors


def _overlap(tensors: dict[str, Any], names: list[str]) -> bool:
    spans = sorted((tensors[n].data_ptr(), tensors[n].nbytes) for n in names)
    return any(a + n > b for (a, n), (b, _) in itertools.pairwise(spans))


def _header(tensors: dict[str, Any], metadata: dict[str, str] | None) -> tuple[bytes, list[str]]:
    if metadata is not None and not all(
        isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()
    ):
        raise TypeError(f"metadata must be a dict of texts, got {metadata!r:.200}")
    # Wide dtypes first: then every tensor begins at a multiple of its item size. Beyond that, the
    # order is that of the safetensors package, so that its files have the same bytes.
    order = sorted(tensors, key=lambda n: (-_RANKS[tensors[n].dtype], n))
    table: dict[str, Any] = {} if metadata is None else {_METADATA: dict(metadata)}
    end = 0
    for name in order:
        t = tensors[name]
        begin, end = end, end + t.nbytes
        table[name] = {
            "dtype": _NAMES[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"the table of {len(tensors)} tensors is longer than the format allows")
    return len(text).to_bytes(8, "little") + text, order


def _parts(tensors: Any, metadata: dict[str, str] | None) -> Iterator[Any]:
    header, order = _header(_checked(tensors), metadata)
    yield header
    for name in order:
        t = tensors[name].detach().cpu().resolve_conj().resolve_neg()
        storage = t.untyped_storage()
        if sys.byteorder != "little":
            storage, begin = t.clone().untyped_storage(), 0
            swap_bytes(storage, t.dtype)
        else:
            begin = t.storage_offset() * t.itemsize
        if t.nbytes:
            yield memoryview(storage)[begin : begin + t.nbytes]


def save(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file.

    Args:
        tensors: name to tensor; contiguous, not sharing memory.
        metadata: texts to go along.

    Example::

        >>> len(facula.safetensors.save({"x": facula.ones(2)}))
        72
    """
    return b"".join(_parts(tensors, metadata))


def save_file(
    tensors: dict[str, Any],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes a safetensors file; an existing one is replaced when the new one is complete."""
    from facula._checkpoint.atomic import replacing

    parts = _parts(tensors, metadata)
    first = next(parts)  # what cannot be saved is refused before the file is touched
    with replacing(os.fsdecode(filename)) as file:
        file.write(first)
        for part in parts:
            file.write(part)


# ---- reading


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise SafetensorError("a name occurs twice in the header")
    return found


def _read_header(
    file: Any, size: int, source: str
) -> tuple[dict[str, Any], dict[str, str] | None, int]:
    """(table, metadata, where the numbers begin), all checked against the file's size."""

    def broken(what: str) -> SafetensorError:
        return SafetensorError(f"{source} is no safetensors file, or damaged: {what}")

    begin = file.read(8)
    if len(begin) < 8:
        raise broken("it has less than 8 bytes")
    length = int.from_bytes(begin, "little")
    if length > min(_LONGEST_HEADER, size - 8):
        raise broken(f"its header has {length} bytes, the file {size}")
    try:
        table = json.loads(file.read(length).decode(), object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise broken(f"its header is no JSON ({error})") from None
    if not isinstance(table, dict):
        raise broken("its header is no table")
    metadata = table.pop(_METADATA, None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
    ):
        raise broken("its metadata are no texts")
    spans = []
    for name, entry in table.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise broken(f"the entry of {name!r:.100} is {entry!r:.100}")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
            raise broken(f"the dtype of {name!r:.100} is {entry['dtype']!r:.50}")
        numbers = entry["data_offsets"], entry["shape"]
        if not all(
            isinstance(part, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in part)
            for part in numbers
        ):
            raise broken(f"the entry of {name!r:.100} is {entry!r:.100}")
        if len(entry["data_offsets"]) != 2 or len(entry["shape"]) > 64:
            raise broken(f"the entry of {name!r:.100} is {entry!r:.100}")
        needed = _DTYPES[entry["dtype"]].itemsize
        for n in entry["shape"]:
            needed *= n
        first, last = entry["data_offsets"]
        if last - first != needed:
            raise broken(f"{name!r:.100} has {last - first} bytes instead of {needed}")
        spans.append((first, last))
    end = 0
    for first, last in sorted(spans):
        if first != end:
            raise broken(f"its tensors overlap or have gaps at byte {min(first, end)}")
        end = last
    if 8 + length + end != size:
        raise broken(f"it has {size} bytes instead of {8 + length + end}")
    return table, metadata, 8 + length


class _Source:
    """An open file or bytes, and its table."""

    def __init__(self, file: Any, source: str) -> None:
        self.file, self.source = file, source
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(0)
        self.table, self.metadata, self.begin = _read_header(file, size, source)

    def tensor(self, name: str, device: Any) -> Any:
        try:
            entry = self.table[name]
        except KeyError:
            raise SafetensorError(f"File does not contain tensor {name}") from None
        dtype = _DTYPES[entry["dtype"]]
        first, last = entry["data_offsets"]
        storage = UntypedStorage(last - first)
        self.file.seek(self.begin + first)
        view, done = memoryview(storage), 0
        while done < last - first:
            n = self.file.readinto(view[done:])
            if not n:
                raise SafetensorError(f"{self.source} ended while it was read")
            done += n
        view.release()
        if sys.byteorder != "little":
            swap_bytes(storage, dtype)
        t = whole_tensor(storage, dtype).view(entry["shape"])
        return t if str(device) == "cpu" else t.to(device)


def load(data: bytes, device: Any = "cpu") -> dict[str, Any]:
    """The tensors of a safetensors file that is in memory."""
    import io

    source = _Source(io.BytesIO(data), "the data")
    return {name: source.tensor(name, device) for name in source.table}


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Any]:
    """The tensors of a safetensors file.

    Args:
        filename: the file.
        device: where the tensors go.
    """
    with safe_open(filename, framework="pt", device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def deserialize(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Names, and for each the dtype's name, the shape and the bytes."""
    import io

    source = _Source(io.BytesIO(data), "the data")
    return [
        (
            name,
            {
                "dtype": entry["dtype"],
                "shape": entry["shape"],
                "data": bytes(
                    data[source.begin + entry["data_offsets"][0] :][
                        : entry["data_offsets"][1] - entry["data_offsets"][0]
                    ]
                ),
            },
        )
        for name, entry in source.table.items()
    ]


class _Slice:
    """A tensor in a file, of which indexing gives a part."""

    def __init__(self, source: _Source, name: str, device: Any) -> None:
        self.source, self.name, self.device = source, name, device

    def get_shape(self) -> list[int]:
        return list(self.source.table[self.name]["shape"])

    def get_dtype(self) -> str:
        return self.source.table[self.name]["dtype"]

    def __getitem__(self, index: Any) -> Any:
        return self.source.tensor(self.name, self.device)[index].clone()


class safe_open:
    """An open safetensors file, whose tensors are read one by one.

    Args:
        filename: the file.
        framework: "pt" for tensors, "np" for NumPy arrays.
        device: where tensors go.

    Example::

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as f:
        ...     facula.safetensors.save_file({"x": facula.arange(3)}, f.name, {"made": "today"})
        ...     with facula.safetensors.safe_open(f.name, framework="pt") as opened:
        ...         print(opened.keys(), opened.metadata(), opened.get_tensor("x"))
        ['x'] {'made': 'today'} tensor([0, 1, 2])
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu"
    ) -> None:
        if framework not in ("pt", "torch", "pytorch", "np", "numpy"):
            raise SafetensorError(f"framework {framework!r} is invalid, use 'pt' or 'np'")
        self.arrays = framework in ("np", "numpy")
        self.device = device
        self._file = open(filename, "rb")  # noqa: SIM115
        try:
            self._source = _Source(self._file, os.fsdecode(filename))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return list(self._source.table)

    def offset_keys(self) -> list[str]:
        """The names in the order in which the numbers lie in the file."""
        table = self._source.table
        return sorted(table, key=lambda n: table[n]["data_offsets"])

    def metadata(self) -> dict[str, str] | None:
        """The texts that go along, or None."""
        found = self._source.metadata
        return None if found is None else dict(found)

    def get_tensor(self, name: str) -> Any:
        """One tensor, or array."""
        t = self._source.tensor(name, self.device)
        return t.numpy() if self.arrays else t

    def get_slice(self, name: str) -> _Slice:
        """One tensor, to take a part of by indexing."""
        if name not in self._source.table:
            raise SafetensorError(f"File does not contain tensor {name}")
        return _Slice(self._source, name, self.device)


# ---- modules


def save_model(
    model: Any,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes a module's ``state_dict()``. Of entries that share memory, one is written, and the
    metadata say which it stands for."""
    metadata = dict(metadata or {})
    kept: dict[str, Any] = {}
    names: dict[tuple[Any, ...], str] = {}
    for name, t in model.state_dict().items():
        where = (t.data_ptr(), t.shape, t.stride(), t.dtype) if t.numel() else (name,)
        if where in names:
            metadata[name] = names[where]
            continue
        names[where] = name
        kept[name] = t.contiguous() if force_contiguous else t
    save_file(kept, filename, metadata or None)


def load_model(
    model: Any,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: Any = "cpu",
) -> tuple[set[str], list[str]]:
    """Loads what :func:`save_model` wrote; returns the names that are missing and unexpected."""
    with safe_open(filename, device=device) as file:
        state = {name: file.get_tensor(name) for name in file.offset_keys()}
        aliases = file.metadata() or {}
    for name, kept in aliases.items():
        if kept in state and name not in state:
            state[name] = state[kept]
    wanted = model.state_dict()
    state = {n: t for n, t in state.items() if n in wanted or n not in aliases}
    found = model.load_state_dict(state, strict=strict)
    return set(found.missing_keys), list(found.unexpected_keys)
