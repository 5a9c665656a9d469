"""Reads pickles without running code from them: the way ``load(weights_only=True)`` goes.

A pickle is a program for a small stack machine. This one knows the instructions that make numbers,
texts, containers and tensors, calls only functions that are on a list, and sets attributes only on
objects whose class is on it.
"""

from __future__ import annotations

import _compat_pickle
import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from types import BuiltinMethodType, MethodType
from typing import Any

from facula import _C, storage
from facula._checkpoint import names, rebuild
from facula._checkpoint.stream import shown
from facula._stored.dtypes import STORED
from facula._stored.schemes import SCHEMES

UnpicklingError = pickle.UnpicklingError

_MARK = object()


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes bytes."""
    if encoding != "latin1" or not isinstance(text, str):
        raise UnpicklingError(f"unexpected encoding {shown(encoding)} of bytes")
    return text.encode("latin1")


def _from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """A subclass's tensor, from one of the functions below and nothing else."""
    if not any(func is known for known in _TENSORS.values()):
        raise UnpicklingError(f"trying to make a tensor with {shown(func)}, which is not allowed")
    return rebuild.from_type_v2(func, new_type, args, state)


_TENSORS = {
    n: f for n, f in names.SPECIAL.items() if n.startswith(("torch._utils.", "torch.nested."))
}
_FUNCTIONS: dict[str, Any] = {
    **_TENSORS,
    "torch._tensor._rebuild_from_type_v2": _from_type_v2,
    "torch.serialization._get_layout": rebuild.layout,
    "torch._dynamo.decorators._DimRange": rebuild.DimRange,
    "torch.Size": _C.Size,
    "torch.device": _C.device,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": _encode,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.complex": complex,
}
# Allowed, but only to be spoken of: dtypes, and the types of tensors and storages.
_NAMES: dict[str, Any] = {
    "torch.Tensor": _C.Tensor,
    "torch.storage.UntypedStorage": _C.UntypedStorage,
    "torch.storage.TypedStorage": storage.TypedStorage,
    **{f"torch.{n}": getattr(_C, n) for n in dir(_C) if isinstance(getattr(_C, n), _C.dtype)},
    **{f"torch.{n}": value for n, value in (STORED | SCHEMES).items()},
    **{f"torch.{n}": kind for n, kind in storage.NAMED.items()},
    **{f"torch.cuda.{n}": kind for n, kind in storage.NAMED.items()},
}
DEFAULT_GLOBALS = {**_NAMES, **_FUNCTIONS}
_FUNCTION_IDS = frozenset(map(id, _FUNCTIONS.values()))
# Classes of modules that are imported only when a checkpoint names them.
_LATE_NAMES = {"torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", *names.MOVED}
# What programs have added: full name -> object.
user_globals: dict[str, Any] = {}

_NEVER = ("nt", "os", "posix", "sys")  # modules
_HASHING = (OrderedDict, Counter, set, frozenset)


def check_key(key: Any) -> Any:
    """Refuses a tuple whose hash would take forever: a few nested bytes can stand for billions."""
    if type(key) not in (tuple, frozenset, list):
        return key
    left = [key]
    for _ in range(10_000):
        if not left:
            return key
        item = left.pop()
        if type(item) in (tuple, frozenset, list):
            left.extend(item)
    raise UnpicklingError("corrupt pickle: a key of a dict or set is nested without end")


def python3_name(module: str, name: str) -> tuple[str, str]:
    """Where Python 3 has a name: protocol 2 writes those of Python 2, xrange for range."""
    moved = _compat_pickle.IMPORT_MAPPING.get(module, module)
    return _compat_pickle.NAME_MAPPING.get((module, name), (moved, name))


class _FromOutside(Exception):
    """Carries an error of the program, such as one in ``map_location``, through the reader."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class SafeUnpickler:
    """Reads one pickle from a file.

    Args:
        file: an object with ``read`` and ``readline``.
        persistent_load: called with the description of each storage.
        encoding: of texts that Python 2 wrote; "bytes" leaves them as bytes.
    """

    def __init__(
        self,
        file: Any,
        *,
        persistent_load: Callable[[Any], Any] | None = None,
        encoding: str = "ASCII",
    ) -> None:
        self.file = file
        self.encoding = encoding
        if persistent_load is not None:
            self.persistent_load = persistent_load  # type: ignore[method-assign]
        self.memo: dict[int, Any] = {}
        self.stack: list[Any] = []

    def persistent_load(self, pid: Any) -> Any:
        raise UnpicklingError("the pickle refers to a storage, but there is none")

    # ---- bytes

    def read(self, n: int) -> bytes:
        data = self.file.read(n)
        if len(data) != n:
            raise EOFError("the checkpoint is truncated: its pickle ends too early")
        return data

    def line(self) -> str:
        data = self.file.readline()
        if data[-1:] != b"\n":
            raise EOFError("the checkpoint is truncated: its pickle ends too early")
        return data[:-1].decode("utf-8")

    def long_bytes(self, header: str) -> bytes:
        size = self.number(header)
        if size < 0:
            raise UnpicklingError(f"negative length {size}")
        parts = []
        while size:  # in pieces, so that a false length does not ask for all memory at once
            parts.append(self.read(min(size, 1 << 24)))
            size -= len(parts[-1])
        return b"".join(parts)

    def number(self, header: str) -> Any:
        return struct.unpack(header, self.read(struct.calcsize(header)))[0]

    # ---- the stack

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise UnpicklingError("corrupt pickle: the stack is empty")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        items = []
        while self.stack:
            item = self.stack.pop()
            if item is _MARK:
                return items[::-1]
            items.append(item)
        raise UnpicklingError("corrupt pickle: a mark is missing")

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise UnpicklingError("corrupt pickle: the stack is empty")
        return self.stack[-1]

    # ---- the machine

    def load(self) -> Any:
        """The object."""
        try:
            return self.run()
        except (UnpicklingError, EOFError, RuntimeError, OSError):
            raise
        except _FromOutside as passed:
            raise passed.error from None
        except Exception as error:
            raise UnpicklingError(f"corrupt pickle: {error}") from error

    def run(self) -> Any:
        push = self.stack.append
        while True:
            code = self.read(1)
            if code == b".":
                return self.pop()
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                raise UnpicklingError(f"unsupported instruction {code!r} in the pickle")
            value = instruction(self)
            if value is not _MARK:
                push(value)

    def find_global(self, module: str, name: str) -> Any:
        module, name = python3_name(module, name)
        found = f"{module}.{name}"
        if module in _NEVER:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {found} whose module {module} is blocked: what "
                "it does reaches beyond the program, so no list of safe globals allows it"
            )
        if found in user_globals:
            return user_globals[found]
        if found in DEFAULT_GLOBALS:
            return DEFAULT_GLOBALS[found]
        if found in _LATE_NAMES:
            return names.find(module, name)
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {found} was not an allowed global by default. If you "
            f"trust it, use `facula.serialization.add_safe_globals([{name}])` or the "
            f"`facula.serialization.safe_globals([{name}])` context manager"
        )

    def is_allowed(self, function: Any) -> bool:
        if id(function) in _FUNCTION_IDS or any(f is function for f in user_globals.values()):
            return True
        # Newer versions of Python have a type of their own for methods of classes in C.
        if not isinstance(function, (BuiltinMethodType, MethodType)):
            return False
        # A class makes a new object of its method whenever it is asked for it.
        return any(type(f) is type(function) and f == function for f in user_globals.values())

    def call(self, function: Any, args: Any) -> Any:
        if not self.is_allowed(function):
            raise UnpicklingError(f"trying to call {shown(function)}, which is not allowed")
        if not isinstance(args, tuple):
            raise UnpicklingError(f"corrupt pickle: arguments of type {type(args).__name__}")
        if function is bytearray and args and isinstance(args[0], int):
            raise UnpicklingError("corrupt pickle: a bytearray without content")
        if function in _HASHING:
            for arg in args:
                check_key(arg)
                if isinstance(arg, (list, tuple)):
                    for item in arg:
                        check_key(item)
        return function(*args)

    def old_object(self) -> Any:
        cls, *args = self.pop_to_mark()
        return self.call(cls, tuple(args))

    def new_object(self) -> Any:
        args, cls = self.pop(), self.pop()
        return self.make(cls, args, {})

    def new_object_with_keywords(self) -> Any:
        kwargs, args, cls = self.pop(), self.pop(), self.pop()
        return self.make(cls, args, kwargs)

    def make(self, cls: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(cls, type) or not self.is_allowed(cls) or cls is bytearray:
            raise UnpicklingError(f"trying to make an object of {shown(cls)}, which is not allowed")
        return cls.__new__(cls, *args, **kwargs)

    def build(self) -> Any:
        state, instance = self.pop(), self.top()
        cls = type(instance)
        if any(cls is known for known in user_globals.values()):
            if hasattr(instance, "__setstate__"):
                instance.__setstate__(state)
            else:
                rebuild.set_state(instance, state)
        elif cls is rebuild.DimRange:
            instance.__setstate__(state)
        elif cls in (OrderedDict, Counter) or isinstance(instance, _C.Tensor):
            if not isinstance(state, dict):
                raise UnpicklingError(f"corrupt pickle: the state of a {cls.__name__} is no dict")
            if getattr(instance, "is_nested", False):
                raise UnpicklingError("corrupt pickle: a nested tensor's parts are not to be set")
            rebuild.set_state(instance, state)
        else:
            raise UnpicklingError(
                f"trying to set the state of a {cls.__name__}, which is not allowed"
            )
        return _MARK

    def append(self, items: list[Any]) -> Any:
        target = self.top()
        if not isinstance(target, list):
            raise UnpicklingError(f"corrupt pickle: appending to a {type(target).__name__}")
        target.extend(items)
        return _MARK

    def set_items(self, items: list[Any]) -> Any:
        target = self.top()
        if not isinstance(target, dict) or len(items) % 2:
            raise UnpicklingError(f"corrupt pickle: items for a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[check_key(key)] = value
        return _MARK

    def add_items(self, items: list[Any]) -> Any:
        target = self.top()
        if not isinstance(target, set):
            raise UnpicklingError(f"corrupt pickle: adding to a {type(target).__name__}")
        target.update(map(check_key, items))
        return _MARK

    def frozen_set(self, items: list[Any]) -> Any:
        return frozenset(map(check_key, items))

    def text(self, data: bytes) -> Any:
        return data if self.encoding == "bytes" else data.decode(self.encoding)

    def get(self, index: int) -> Any:
        try:
            return self.memo[index]
        except KeyError:
            raise UnpicklingError(f"corrupt pickle: nothing was kept as {index}") from None

    def put(self, index: int) -> Any:
        self.memo[index] = self.top()
        return _MARK

    def protocol(self) -> Any:
        version = self.read(1)[0]
        if version > pickle.HIGHEST_PROTOCOL:
            raise UnpicklingError(f"unsupported pickle protocol: {version}")
        return _MARK

    def mark(self) -> Any:
        self.stack.append(_MARK)
        return _MARK

    def drop(self) -> Any:
        if self.stack and self.stack[-1] is _MARK:
            self.stack.pop()
        else:
            self.pop()
        return _MARK

    def drop_to_mark(self) -> Any:
        self.pop_to_mark()
        return _MARK

    def tuple_of(self, n: int) -> tuple[Any, ...]:
        items = [self.pop() for _ in range(n)]
        return tuple(items[::-1])

    def dictionary(self) -> dict[Any, Any]:
        items = self.pop_to_mark()
        return dict(zip(map(check_key, items[::2]), items[1::2], strict=True))

    def reduce(self) -> Any:
        args, function = self.pop(), self.pop()
        return self.call(function, args)

    def global_from_stack(self) -> Any:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise UnpicklingError("corrupt pickle: a global's name is no text")
        return self.find_global(module, name)

    def set_item(self) -> Any:
        value, key = self.pop(), self.pop()
        return self.set_items([key, value])

    def append_one(self) -> Any:
        item = self.pop()
        return self.append([item])

    def persistent(self) -> Any:
        pid = self.pop()
        try:
            return self.persistent_load(pid)
        except (UnpicklingError, EOFError, RuntimeError, OSError):
            raise
        except Exception as error:
            raise _FromOutside(error) from None

    def integer(self) -> Any:
        text = self.line()
        return {"00": False, "01": True}.get(text) if text in ("00", "01") else int(text)

    def quoted(self) -> Any:
        text = self.line()
        if len(text) < 2 or text[0] != text[-1] or text[0] not in "'\"":
            raise UnpicklingError("corrupt pickle: a text without quotes")
        import codecs

        return self.text(codecs.escape_decode(text[1:-1].encode("ascii"))[0])  # type: ignore[attr-defined]


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


_INSTRUCTIONS: dict[bytes, Callable[[SafeUnpickler], Any]] = {
    b"\x80": lambda m: m.protocol(),
    b"\x95": lambda m: (m.read(8), _MARK)[1],  # a frame's length is only a hint
    b"(": lambda m: m.mark(),
    b"0": lambda m: m.drop(),
    b"1": lambda m: m.drop_to_mark(),
    b"2": lambda m: m.top(),
    b"N": lambda m: None,
    b"\x88": lambda m: True,
    b"\x89": lambda m: False,
    # numbers
    b"I": lambda m: m.integer(),
    b"J": lambda m: m.number("<i"),
    b"K": lambda m: m.number("<B"),
    b"M": lambda m: m.number("<H"),
    b"L": lambda m: int(m.line().rstrip("L")),
    b"\x8a": lambda m: _signed(m.read(m.number("<B"))),
    b"\x8b": lambda m: _signed(m.long_bytes("<i")),
    b"F": lambda m: float(m.line()),
    b"G": lambda m: m.number(">d"),
    # texts and bytes
    b"S": lambda m: m.quoted(),
    b"T": lambda m: m.text(m.long_bytes("<i")),
    b"U": lambda m: m.text(m.long_bytes("<B")),
    b"V": lambda m: m.line().encode("latin1").decode("raw-unicode-escape"),
    b"X": lambda m: m.long_bytes("<I").decode("utf-8", "surrogatepass"),
    b"\x8c": lambda m: m.long_bytes("<B").decode("utf-8", "surrogatepass"),
    b"\x8d": lambda m: m.long_bytes("<Q").decode("utf-8", "surrogatepass"),
    b"B": lambda m: m.long_bytes("<I"),
    b"C": lambda m: m.long_bytes("<B"),
    b"\x8e": lambda m: m.long_bytes("<Q"),
    b"\x96": lambda m: bytearray(m.long_bytes("<Q")),
    # containers
    b")": lambda m: (),
    b"\x85": lambda m: m.tuple_of(1),
    b"\x86": lambda m: m.tuple_of(2),
    b"\x87": lambda m: m.tuple_of(3),
    b"t": lambda m: tuple(m.pop_to_mark()),
    b"]": lambda m: [],
    b"l": lambda m: m.pop_to_mark(),
    b"a": lambda m: m.append_one(),
    b"e": lambda m: m.append(m.pop_to_mark()),
    b"}": lambda m: {},
    b"d": lambda m: m.dictionary(),
    b"s": lambda m: m.set_item(),
    b"u": lambda m: m.set_items(m.pop_to_mark()),
    b"\x8f": lambda m: set(),
    b"\x90": lambda m: m.add_items(m.pop_to_mark()),
    b"\x91": lambda m: m.frozen_set(m.pop_to_mark()),
    # what was there before
    b"g": lambda m: m.get(int(m.line())),
    b"h": lambda m: m.get(m.number("<B")),
    b"j": lambda m: m.get(m.number("<I")),
    b"p": lambda m: m.put(int(m.line())),
    b"q": lambda m: m.put(m.number("<B")),
    b"r": lambda m: m.put(m.number("<I")),
    b"\x94": lambda m: m.put(len(m.memo)),
    # names and calls
    b"c": lambda m: m.find_global(m.line(), m.line()),
    b"\x93": lambda m: m.global_from_stack(),
    b"R": lambda m: m.reduce(),
    b"i": lambda m: m.call(m.find_global(m.line(), m.line()), tuple(m.pop_to_mark())),
    b"o": lambda m: m.old_object(),
    b"\x81": lambda m: m.new_object(),
    b"\x92": lambda m: m.new_object_with_keywords(),
    b"b": lambda m: m.build(),
    b"Q": lambda m: m.persistent(),
}


class _Anything:
    """What a dry run has in place of objects."""

    def __init__(self, *args: Any) -> None:
        pass


class DryUnpickler(SafeUnpickler):
    """Goes over a pickle without making its objects, and lists the names and storages in it."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, encoding="latin1")
        self.names: dict[str, None] = {}
        self.persistent_ids: list[Any] = []

    def persistent_load(self, pid: Any) -> Any:
        self.persistent_ids.append(pid)
        return _Anything()

    def find_global(self, module: str, name: str) -> Any:
        module, name = python3_name(module, name)
        found = f"{module}.{name}"
        self.names[found] = None
        return _NAMES.get(found, _Anything)

    def call(self, function: Any, args: Any) -> Any:
        return _Anything()

    def make(self, cls: Any, args: Any, kwargs: Any) -> Any:
        return _Anything()

    def build(self) -> Any:
        self.pop()
        return _MARK

    def append(self, items: list[Any]) -> Any:
        return _MARK

    def set_items(self, items: list[Any]) -> Any:
        return _MARK

    def add_items(self, items: list[Any]) -> Any:
        return _MARK

    def frozen_set(self, items: list[Any]) -> Any:
        return _Anything()

    def dictionary(self) -> Any:
        self.pop_to_mark()
        return _Anything()


def unsafe_globals_in(file: Any) -> list[str]:
    """The names in a pickle that ``SafeUnpickler`` would refuse."""
    reader = DryUnpickler(file)
    reader.load()
    known = {*DEFAULT_GLOBALS, *_LATE_NAMES, *user_globals}
    return [n for n in reader.names if n not in known]
