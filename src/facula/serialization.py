"""``save`` and ``load``: checkpoints in PyTorch's file format, in both directions."""

from __future__ import annotations

import io
import mmap as _mmap
import os
import pickle
import struct
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from facula import _C
from facula._checkpoint import names, pickling, safe_unpickler
from facula._checkpoint.archive import Archive, Sink, write_record
from facula._checkpoint.atomic import replacing
from facula._checkpoint.reading import MAGIC_NUMBER, PROTOCOL_VERSION, StreamReading, ZipReading
from facula.storage import TypedStorage, UntypedStorage

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

# What ``load(map_location=...)`` takes.
MAP_LOCATION = Callable[[Any, str], Any] | _C.device | str | dict[str, str] | None
DEFAULT_PROTOCOL = 2
_FORMAT_VERSION = b"3\n"
MAP_PRIVATE = getattr(_mmap, "MAP_PRIVATE", 2)
MAP_SHARED = getattr(_mmap, "MAP_SHARED", 1)


class LoadEndianness(Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_default_endianness: LoadEndianness | None = None
_mmap_flags = MAP_PRIVATE


def get_default_load_endianness() -> LoadEndianness | None:
    """What :func:`set_default_load_endianness` set; None means little."""
    return _default_endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not say theirs.

    Example::

        >>> from facula.serialization import LoadEndianness
        >>> facula.serialization.set_default_load_endianness(LoadEndianness.NATIVE)
        >>> facula.serialization.set_default_load_endianness(None)
    """
    global _default_endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(f"expected LoadEndianness or None, got {type(endianness).__name__}")
    _default_endianness = endianness


def get_default_mmap_options() -> int:
    """The flags with which ``load(mmap=True)`` maps files."""
    return _mmap_flags


class set_default_mmap_options:
    """Sets the flags with which ``load(mmap=True)`` maps files; also a context manager.

    Args:
        flags: ``mmap.MAP_PRIVATE`` (writes stay in memory) or ``mmap.MAP_SHARED`` (they go to the
            file).

    Example::

        >>> import mmap
        >>> with facula.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     facula.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    def __init__(self, flags: int) -> None:
        global _mmap_flags
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                f"Invalid argument: expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, got {flags}"
            )
        self._before = _mmap_flags
        _mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _mmap_flags
        _mmap_flags = self._before


_crc32 = True


def get_crc32_options() -> bool:
    """Whether :func:`save` writes checksums and :func:`load` compares them.

    Example::

        >>> facula.serialization.get_crc32_options()
        True
    """
    return _crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether :func:`save` writes checksums and :func:`load` compares them.

    Files without are written faster, and other programs may refuse to unzip them.

    Args:
        compute_crc32: whether there are checksums.

    Example::

        >>> facula.serialization.set_crc32_options(False)
        >>> facula.serialization.get_crc32_options()
        False
        >>> facula.serialization.set_crc32_options(True)
    """
    global _crc32
    _crc32 = bool(compute_crc32)


_skipping = threading.local()


class skip_data:
    """While active, :func:`save` writes zeros for storages, and :func:`load` does not fill them.

    The file has its full size and all descriptions, so the bytes can be filled in later.

    Args:
        materialize_fake_tensors: for programs of PyTorch; there are no fake tensors here.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> with facula.serialization.skip_data():
        ...     facula.save(facula.ones(2), file)
        >>> _ = file.seek(0)
        >>> facula.load(file)
        tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = _skips_data()
        _skipping.on = True

    def __exit__(self, *exc: object) -> None:
        _skipping.on = self._before


def _skips_data() -> bool:
    return getattr(_skipping, "on", False)


class SourceChangeWarning(Warning):
    """For classes whose source differs from that in a file; old files hold it."""


class StorageType:
    """What a class of storages is for a file that names it: its dtype.

    Args:
        name: the name of the class, such as ``"FloatStorage"``.

    Example::

        >>> facula.serialization.StorageType("FloatStorage").dtype
        facula.float32
    """

    def __init__(self, name: str) -> None:
        from facula.storage import NAMED

        if name not in NAMED:
            raise KeyError(f"there is no class of storages {name!r}")
        self._dtype = NAMED[name].dtype

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A new folder that is gone after the block.

    Example::

        >>> import os
        >>> with facula.serialization.mkdtemp() as folder:
        ...     os.path.isdir(folder)
        True
        >>> os.path.isdir(folder)
        False
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield folder


def validate_cuda_device(location: str) -> int:
    """The index of a CUDA device that exists, for a location in a file.

    Args:
        location: such as ``"cuda:0"``.

    Example::

        >>> facula.serialization.validate_cuda_device("cpu")
        Traceback (most recent call last):
            ...
        ValueError: Expected a cuda device, but got: cpu
    """
    device = _C.device(location)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    _check_cuda(device)
    return device.index or 0


def validate_hpu_device(location: str) -> int:
    """Raises: there are no HPU devices here.

    Args:
        location: such as ``"hpu:0"``.

    Example::

        >>> facula.serialization.validate_hpu_device("hpu:0")
        Traceback (most recent call last):
            ...
        RuntimeError: There are no HPU devices; map_location="cpu" brings storages to the CPU
    """
    raise RuntimeError('There are no HPU devices; map_location="cpu" brings storages to the CPU')


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least a tuple of numbers.

    Args:
        module: the module.
        req_version_tuple: the least version.
        error_if_malformed: whether a version that is not made of such numbers is an error;
            otherwise it is a warning, and the answer is True.

    Example::

        >>> import numpy
        >>> facula.serialization.check_module_version_greater_or_equal(numpy, (1, 0))
        True
    """
    parts = module.__version__.split(".")
    try:
        pairs = zip(req_version_tuple, parts, strict=False)
        return tuple(type(wanted)(given) for wanted, given in pairs) >= req_version_tuple
    except ValueError as error:
        message = (
            f"the version {module.__version__!r} of {module.__name__} cannot be compared with "
            f"{req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but is taken to be sufficient", stacklevel=2)
        return True


def normalize_storage_type(storage_type: type) -> type:
    """The class of the package that has the name of a class of storages.

    Example::

        >>> facula.serialization.normalize_storage_type(facula.FloatStorage)
        <class 'facula.FloatStorage'>
    """
    import facula

    return getattr(facula, storage_type.__name__)  # type: ignore[no-any-return]


def storage_to_tensor_type(storage: Any) -> type:
    """The class that stands for tensors of a typed storage's dtype.

    Example::

        >>> storage = facula.storage.TypedStorage([1.], dtype=facula.float64)
        >>> facula.serialization.storage_to_tensor_type(storage)
        <class 'facula.DoubleTensor'>
    """
    import facula

    name = facula.storage.NAME_OF_DTYPE[storage.dtype].replace("Storage", "Tensor")
    return getattr(facula.cuda if storage.is_cuda else facula, name)  # type: ignore[no-any-return]


# ---- what weights_only=True may contain


def _global_name(entry: Any) -> tuple[str, Any]:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise ValueError(f"expected a callable or (callable, its full name), got {entry!r}")
        return entry[1], entry[0]
    if not callable(entry):
        raise TypeError(f"expected a class or function, got {type(entry).__name__}")
    module, name = names.name_of(entry) or (entry.__module__, entry.__qualname__)
    return f"{module}.{name}", entry


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets ``load(weights_only=True)`` use classes and functions.

    Args:
        safe_globals: classes or functions, or pairs of one and its full name in the checkpoint.

    Example::

        >>> import datetime
        >>> facula.serialization.add_safe_globals([datetime.timedelta])
        >>> facula.serialization.get_safe_globals()
        [<class 'datetime.timedelta'>]
        >>> facula.serialization.clear_safe_globals()
    """
    safe_unpickler.user_globals.update(map(_global_name, safe_globals))


def get_safe_globals() -> list[Any]:
    """What was added with :func:`add_safe_globals`."""
    found = []
    for name, entry in safe_unpickler.user_globals.items():
        plain = callable(entry) and _global_name(entry)[0] == name
        found.append(entry if plain else (entry, name))
    return found


def clear_safe_globals() -> None:
    """Takes back what was added with :func:`add_safe_globals`."""
    safe_unpickler.user_globals.clear()


class safe_globals:
    """Adds safe globals for a block; see :func:`add_safe_globals`.

    Example::

        >>> import datetime
        >>> with facula.serialization.safe_globals([datetime.timedelta]):
        ...     facula.serialization.get_safe_globals()
        [<class 'datetime.timedelta'>]
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.entries = safe_globals

    def __enter__(self) -> None:
        self.before = dict(safe_unpickler.user_globals)
        add_safe_globals(self.entries)

    def __exit__(self, *exc: object) -> None:
        safe_unpickler.user_globals.clear()
        safe_unpickler.user_globals.update(self.before)


# ---- where storages are: tags on saving, restoring on loading

_Tagger = Callable[[Any], "str | None"]
_Restorer = Callable[[Any, str], Any]
_packages: list[tuple[int, _Tagger, _Restorer]] = []


def register_package(priority: int, tagger: _Tagger, deserializer: _Restorer) -> None:
    """Adds a way to tag storages with their location and to bring them back there.

    Args:
        priority: lower ones are asked first.
        tagger: storage -> location, or None when it is not its business.
        deserializer: (storage in host memory, location) -> storage, or None.

    Example::

        >>> facula.serialization.register_package(
        ...     50, lambda s: None, lambda s, location: s if location == "tape" else None)
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda p: p[0])


def location_tag(storage: Any) -> str:
    """The location that a file gives a storage, such as "cuda:0"."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """Brings a storage from host memory to the location that a file names."""
    for _, _, restore in _packages:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with "
        f"{location}). Pass map_location='cpu', or register_package() one that knows it"
    )


def _device_tag(storage: Any) -> str:
    return str(storage.device)


def _restore_to_device(storage: Any, location: str) -> Any:
    try:
        device = _C.device(location)
    except (RuntimeError, TypeError):
        return None
    if device.type == "cpu":
        return storage
    if device.type == "meta":
        return UntypedStorage(storage.nbytes(), device="meta")
    _check_cuda(device)
    return storage.cuda(device)


def _check_cuda(device: Any) -> None:
    from facula import cuda

    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but facula.cuda.is_available() is "
            f"False ({cuda.unavailable_reason()}). If you are running on a CPU-only machine, "
            "please use facula.load with map_location=facula.device('cpu') to map your storages "
            "to the CPU."
        )
    if device.index is not None and device.index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {device.index} but there are only "
            f"{cuda.device_count()}. Please use facula.load with map_location to map your storages "
            "to an existing device."
        )


register_package(10, _device_tag, _restore_to_device)


def _restorer(map_location: Any) -> Callable[[UntypedStorage, str], UntypedStorage]:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda s, tag: default_restore_location(s, str(map_location.get(tag, tag)))
    if isinstance(map_location, (str, bytes, _C.device)):
        where = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda s, tag: default_restore_location(s, where)
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, a string, a dict or a function, not "
            f"{type(map_location).__name__}"
        )

    def call(storage: UntypedStorage, tag: str) -> UntypedStorage:
        result = map_location(storage, tag)
        if result is None:
            return default_restore_location(storage, tag)
        return result.untyped() if isinstance(result, TypedStorage) else result

    return call


# ---- save


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Saves an object to a file that :func:`load` and PyTorch's ``torch.load`` can read.

    Tensors that share memory share it again after loading. An existing file is replaced when the
    new one is complete, so an error, or the end of the process, leaves it as it was.

    Args:
        obj: what to save: tensors, state dicts, numbers, containers of them, objects that pickle.
        f: a path, or a file object that has ``write``.
        pickle_module: the module whose ``Pickler`` describes the object.
        pickle_protocol: the version of the pickle format; 2 is read everywhere.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> facula.save({"weight": facula.ones(2)}, file)
        >>> _ = file.seek(0)
        >>> facula.load(file)
        {'weight': tensor([1., 1.])}
    """
    if not _use_new_zipfile_serialization:
        _save_as_stream(obj, f, pickle_module, pickle_protocol)
        return
    table = pickling.StorageTable()
    description = io.BytesIO()
    pickling.make_pickler(pickle_module, description, pickle_protocol, table, location_tag).dump(
        obj
    )
    with _opened_for_writing(f) as (file, name), zipfile.ZipFile(file, "w") as archive:
        write_record(archive, f"{name}/data.pkl", description.getbuffer())
        if not _disable_byteorder_record:
            write_record(archive, f"{name}/byteorder", sys.byteorder.encode())
        for key, storage in table.storages.items():
            data = None if _skips_data() else memoryview(storage.cpu())
            write_record(
                archive, f"{name}/data/{key}", data, nbytes=storage.nbytes(), checksum=_crc32
            )
        write_record(archive, f"{name}/version", _FORMAT_VERSION)


@contextmanager
def _opened_for_writing(f: Any) -> Iterator[tuple[Any, str]]:
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError(
                "expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
                f"got {type(f).__name__}"
            )
        yield Sink(f), "archive"
        return
    path = os.fspath(f)
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    name = os.path.splitext(os.path.basename(path))[0]
    with replacing(os.fsdecode(path)) as file:
        yield Sink(file), name if name.isascii() and name else "archive"


def _save_as_stream(obj: object, f: Any, pickle_module: Any, protocol: int) -> None:
    """The format before zip archives: pickles one after the other, then the storages."""
    out = io.BytesIO()
    info = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, info):
        pickle.dump(header, out, protocol=protocol)
    table = pickling.StorageTable(stream=True)
    pickling.make_pickler(pickle_module, out, protocol, table, location_tag).dump(obj)
    keys = sorted(table.storages)
    pickle.dump(keys, out, protocol=protocol)
    with _opened_for_writing(f) as (file, _):
        file.write(out.getbuffer())
        for key in keys:
            storage = table.storages[key].cpu()
            file.write(struct.pack("=q", storage.nbytes() // table.item_size(key)))
            file.write(memoryview(storage))


# ---- load


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what :func:`save` or PyTorch's ``torch.save`` wrote.

    Args:
        f: a path, or a file object with ``read``, ``seek`` and ``tell``; what was written before
            zip archives needs ``readline``, too.
        map_location: where tensors go: a device or its name, a dict from the locations in the file
            to others, or a function of a storage in host memory and its location in the file.
        pickle_module: the module whose ``Unpickler`` reads the description, without
            ``weights_only``.
        weights_only: True (what None means, too) reads tensors, numbers, texts, containers and
            what :func:`add_safe_globals` allows, and runs no code from the file. False runs
            whatever the file says: only for files that you trust, and not where the environment
            sets ``TORCH_FORCE_WEIGHTS_ONLY_LOAD=1``. Where it sets
            ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1``, None means False.
        mmap: True uses the file's pages as memory instead of reading it; needs a path.
        pickle_load_args: for the unpickler, such as ``encoding="latin1"`` for Python 2.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> facula.save(facula.arange(3), file)
        >>> _ = file.seek(0)
        >>> facula.load(file, map_location="cpu")
        tensor([0, 1, 2])
    """
    weights_only = _forced_by_environment(weights_only)
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and (unknown := pickle_load_args.keys() - {"encoding"}):
        raise TypeError(
            f"load() got unexpected keyword arguments {sorted(unknown)}: with weights_only=True "
            "there is no unpickler to give them to"
        )
    options = {"encoding": "utf-8", **pickle_load_args}
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(
                file, os.fspath(f), map_location, pickle_module, weights_only, mmap, options
            )
    if mmap:
        raise ValueError(
            "f must be a file name in order to use the mmap argument, got a file object"
        )
    for needed in ("read", "seek", "tell"):
        _expect_method(f, needed)
    return _load(f, type(f).__name__, map_location, pickle_module, weights_only, False, options)


def _expect_method(file: Any, name: str) -> None:
    if not hasattr(file, name):
        raise AttributeError(
            f"'{type(file).__name__}' object has no attribute '{name}'. You can only load from "
            "a path or a file that is seekable. Please pre-load the data into a buffer like "
            "io.BytesIO and try to load from it instead."
        )


def _forced_by_environment(weights_only: bool | None) -> bool | None:
    forced, unforced = (
        os.environ.get(f"TORCH_FORCE_{word}WEIGHTS_ONLY_LOAD", "0").lower()
        in ("1", "y", "yes", "true")
        for word in ("", "NO_")
    )
    if forced and unforced:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set"
        )
    if unforced and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected: load() without "
            "weights_only runs the code that a file names",
            stacklevel=3,
        )
        return False
    return True if forced else weights_only


def _load(
    file: Any,
    source: str,
    map_location: Any,
    pickle_module: Any,
    safe: bool,
    mmap: bool | None,
    options: dict[str, Any],
) -> Any:
    start = file.tell()
    begin = file.read(4)
    file.seek(start)
    if not begin:
        raise EOFError(f"Ran out of input: {source} is empty")
    how = (source, _restorer(map_location), pickle_module or pickle, safe, options)
    if begin != b"PK\x03\x04":
        if mmap:
            raise RuntimeError(
                f"mmap can only be used with zip archives, which {source} is none of; load it "
                "with mmap=False and save it again"
            )
        _expect_method(file, "readline")  # by pickles; archives do without
        return StreamReading(*how).load(file)
    archive = Archive(file, source, _mmap_flags == MAP_SHARED if mmap else None)
    archive.skip_data, archive.checksums = _skips_data(), _crc32
    with archive.zip:
        return ZipReading(*how).load(archive, _default_order())


def _default_order() -> str:
    if _default_endianness is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if _default_endianness is LoadEndianness.BIG else "little"


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a checkpoint that ``load(weights_only=True)`` would refuse.

    Example::

        >>> import datetime, io
        >>> file = io.BytesIO()
        >>> facula.save([facula.ones(1), datetime.timedelta(1)], file)
        >>> _ = file.seek(0)
        >>> facula.serialization.get_unsafe_globals_in_checkpoint(file)
        ['datetime.timedelta']
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    start = f.tell()
    begin = f.read(4)
    f.seek(start)
    if begin != b"PK\x03\x04":
        raise ValueError(
            "Expected input to be a checkpoint returned by save(), as a zip archive, but it "
            f"begins with {begin!r}"
        )
    archive = Archive(f, type(f).__name__)
    with archive.zip:
        return safe_unpickler.unsafe_globals_in(io.BytesIO(archive.read("data.pkl")))
