"""Tensors of dtypes without arithmetic: a subclass over a tensor of bytes, and a table of rules.

What moves elements or looks at shapes is done to the bytes; everything else raises and names the
operator and the dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula import _C
from facula._stored import numbers
from facula._stored.dtypes import STORED, StoredDType, names_in
from facula._stored.numbers import FORMATS

Tensor = _C.Tensor


class StoredTensor(Tensor):  # type: ignore[misc]
    """A tensor whose dtype is a :class:`StoredDType`; its bytes are those of ``_raw``."""

    _raw: Any
    _stored: StoredDType

    @staticmethod
    def make(raw: Any, dtype: StoredDType) -> Any:
        """A tensor of ``dtype`` over the bytes of ``raw``; nothing is copied."""
        self = Tensor._make_subclass(StoredTensor, raw, False)
        self.__dict__["_raw"], self.__dict__["_stored"] = raw, dtype
        return self

    def _like(self, raw: Any) -> Any:
        """Other bytes of the same dtype."""
        return StoredTensor.make(raw, self.__dict__["_stored"])

    @classmethod
    def __torch_function__(  # type: ignore[no-untyped-def]
        cls, func, types, args=(), kwargs=None
    ):
        return dispatch(func, args, kwargs or {})

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The same memory."""
        return self._like(self.__dict__["_raw"])

    @property
    def is_quantized(self) -> bool:  # type: ignore[override]
        """True for quantized dtypes."""
        return bool(self.__dict__["_stored"].is_quantized)

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        own = self.__dict__
        if own["_stored"] in FORMATS and not own["_raw"].is_meta:
            return numbers.text(self)
        raw = own["_raw"]
        return f"tensor(..., size={tuple(raw.shape)}, dtype={own['_stored']})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return StoredTensor.make, (self.__dict__["_raw"], self.__dict__["_stored"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._like(self.__dict__["_raw"].clone())
        return memo[id(self)]

    def __len__(self) -> int:
        return len(self.__dict__["_raw"])

    def __iter__(self) -> Any:
        return iter(self.unbind(0))


StoredTensor.__module__ = "facula"


def raw_of(value: Any) -> Any:
    """The bytes of a stored tensor, also inside of lists; other values are themselves."""
    if isinstance(value, StoredTensor):
        return value.__dict__["_raw"]
    if type(value) in (tuple, list):
        return type(value)(raw_of(v) for v in value)
    return value


def stored_bytes(tensor: Any) -> tuple[Any, StoredDType]:
    """The memory of a stored tensor as a file has it, and its dtype."""
    dtype: StoredDType = tensor.__dict__["_stored"]
    if dtype.per_byte > 1 and "_quantizer" in tensor.__dict__:
        from facula._stored.functions import int_repr

        return int_repr(tensor), dtype
    return tensor.__dict__["_raw"], dtype


def dtype_of(tensor: Any) -> Any:
    """The dtype that a tensor shows."""
    return tensor.__dict__["_stored"] if isinstance(tensor, StoredTensor) else tensor.dtype


def stored_tensors(values: Any) -> list[Any]:
    """The stored tensors among arguments, in order."""
    if isinstance(values, StoredTensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [t for v in values for t in stored_tensors(v)]
    return []


def name_of(func: Any) -> str:
    """The name of an operator or, for the getter of a property, of the property."""
    name = getattr(func, "__name__", str(func))
    return f"get {func.__self__.__name__}" if name == "__get__" else name


# Operators that give the elements of their argument again: as a view, a copy, or on a device.
MOVES = names_in(
    """
    __getitem__ alias as_strided atleast_1d atleast_2d atleast_3d broadcast_to cat chunk clone
    concat concatenate contiguous cpu cuda detach diagonal dsplit dstack expand expand_as flatten
    hsplit hstack movedim moveaxis narrow permute pin_memory ravel reshape reshape_as select slice
    split split_with_sizes squeeze stack swapaxes swapdims t tensor_split transpose unbind
    unflatten unsafe_chunk unsafe_split unsqueeze view_as vsplit vstack row_stack column_stack
    """
) | {"get T", "get mT", "get H", "get mH"}

# What is known of a tensor without its elements.
FACTS = names_in(
    """
    size stride dim ndimension numel nelement storage_offset data_ptr element_size get_device
    is_contiguous is_inference untyped_storage is_pinned is_shared _is_view is_set_to
    is_same_size __len__ is_conj is_neg __hash__
    """
)
FACT_PROPERTIES = names_in(
    """
    shape ndim device layout requires_grad grad grad_fn is_leaf nbytes itemsize is_cuda is_cpu
    is_meta is_sparse is_sparse_csr is_nested _version _base is_mkldnn is_xpu is_mps
    """
)

_CREATION = names_in(
    """
    empty empty_like empty_strided zeros zeros_like new_empty new_zeros new_empty_strided
    """
)

_table: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function what operators of these names do; it is given the operator first."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _table[name] = function
        return function

    return add


def refuse(name: str, dtype: Any) -> Any:
    """Raises for an operator that is not in the table."""
    title = dtype.title if isinstance(dtype, StoredDType) else str(dtype)
    raise NotImplementedError(
        f"\"{name.removeprefix('get ')}\" not implemented for '{title}'; view(dtype) reads the "
        "bytes as another dtype"
    )


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator with a stored tensor or dtype among its arguments."""
    name = name_of(func)
    tensors = stored_tensors((args, tuple(kwargs.values())))
    quantized = [t for t in tensors if hasattr(type(t), "_quantizer_of")]
    if quantized:
        return quantized[0]._dispatch(func, name, args, kwargs)
    with _C.DisableTorchFunctionSubclass():
        if name in _table:
            return _table[name](func, *args, **kwargs)
        if name.removeprefix("get ") in (FACT_PROPERTIES if name.startswith("get ") else FACTS):
            return func(*raw_of(args), **kwargs)
        if name in _CREATION:
            return _create(func, args, kwargs)
        if name in MOVES and tensors:
            return _move(func, name, tensors, args, kwargs)
        named = [v for v in (*args, *kwargs.values()) if isinstance(v, StoredDType)]
        dtype = dtype_of(tensors[0]) if tensors else named[0] if named else None
        if (result := numbers.compute(func, name, dtype, args, kwargs)) is not NotImplemented:
            return result
    return refuse(name, dtype)


def _move(func: Any, name: str, tensors: list[Any], args: Any, kwargs: Any) -> Any:
    first = tensors[0]
    dtypes = {dtype_of(t) for t in tensors}
    if len(dtypes) > 1:
        names = " and ".join(sorted(map(repr, dtypes)))
        raise RuntimeError(f"{name}(): tensors of {names} have no common dtype")
    result = func(*raw_of(args), **{k: raw_of(v) for k, v in kwargs.items()})
    if isinstance(result, (tuple, list)):
        return type(result)(first._like(r) for r in result)
    return first._like(result)


def _create(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    asked = kwargs.get("dtype")
    if asked is None:
        asked = dtype_of(args[0])
    if kwargs.pop("requires_grad", False):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    raw = asked.raw if isinstance(asked, StoredDType) else asked
    result = func(*raw_of(args), **{**kwargs, "dtype": raw})
    return StoredTensor.make(result, asked) if isinstance(asked, StoredDType) else result


@rule("view")
def _view(func: Any, self: Any, *shape: Any, **kwargs: Any) -> Any:
    asked = kwargs.get("dtype", shape[0] if shape else None)
    raw = raw_of(self)
    if isinstance(asked, StoredDType):
        return StoredTensor.make(func(raw, asked.raw), asked)
    if isinstance(asked, _C.dtype):
        return func(raw, asked)
    return self._like(func(raw, *shape, **kwargs))


@rule("get dtype")
def _dtype(func: Any, self: Any) -> Any:
    return dtype_of(self)


@rule("is_floating_point")
def _is_floating_point(func: Any, self: Any) -> bool:
    return bool(dtype_of(self).is_floating_point)


@rule("is_complex")
def _is_complex(func: Any, self: Any) -> bool:
    return bool(dtype_of(self).is_complex)


@rule("is_signed")
def _is_signed(func: Any, self: Any) -> bool:
    return bool(dtype_of(self).is_signed)


@rule("type")
def _type(func: Any, self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        kind = "quantized." if dtype_of(self).is_quantized else ""
        return f"facula.{kind}{dtype_of(self).title}Tensor"
    return _to(func, self, dtype)


@rule("to", "type_as")
def _to(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """To another device, and to another dtype where both have numbers."""
    held = dtype_of(self)
    wanted = [v for v in (*args, *kwargs.values()) if isinstance(v, _C.dtype)]
    wanted += [dtype_of(v) for v in args if isinstance(v, Tensor)]
    for dtype in wanted:
        if dtype is held:
            continue
        if any(isinstance(d, StoredDType) and d not in FORMATS for d in (held, dtype)):
            if not isinstance(self, StoredTensor):
                raise TypeError(f"to(): there are no numbers of {dtype} to convert to")
            refuse("to", held)
        self = numbers.converted(self, dtype)
    if not isinstance(self, StoredTensor):
        kept = {k: v for k, v in kwargs.items() if not isinstance(v, _C.dtype)}
        return Tensor.to(self, *(v for v in args if not isinstance(v, (_C.dtype, Tensor))), **kept)
    rest = [raw_of(v) for v in args if not isinstance(v, _C.dtype)]
    kept = {k: raw_of(v) for k, v in kwargs.items() if not isinstance(v, _C.dtype)}
    if not rest and not kept:
        return self
    return self._like(Tensor.to(raw_of(self), *rest, **kept))


@rule("copy_")
def _copy(func: Any, self: Any, src: Any, non_blocking: bool = False) -> Any:
    held, given = dtype_of(self), dtype_of(src)
    if held is not given:
        if any(isinstance(d, StoredDType) and d not in FORMATS for d in (held, given)):
            refuse("copy_", held if isinstance(self, StoredTensor) else given)
        src = numbers.converted(src, held)
    raw_of(self).copy_(raw_of(src), non_blocking)
    return self


_CONVERSIONS = {
    "float": _C.float32,
    "double": _C.float64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "long": _C.int64,
    "int": _C.int32,
    "short": _C.int16,
    "char": _C.int8,
    "byte": _C.uint8,
    "bool": _C.bool,
    "cfloat": _C.complex64,
    "cdouble": _C.complex128,
}


@rule(*_CONVERSIONS)
def _convert(func: Any, self: Any, memory_format: Any = None) -> Any:
    name = name_of(func)
    if dtype_of(self) not in FORMATS:
        refuse(name, dtype_of(self))
    return numbers.converted(self, _CONVERSIONS[name])


@rule("tensor")
def _tensor(func: Any, data: Any, *, dtype: Any, device: Any = None, **options: Any) -> Any:
    """A new tensor; without options that only concern the memory of dtypes of the core."""
    if dtype not in FORMATS:
        raise TypeError(f"tensor(): there are no numbers of {dtype} to make a tensor of")
    return numbers.converted(func(data, dtype=FORMATS[dtype].wide, device=device), dtype)


@rule("view_as_real")
def _view_as_real(func: Any, self: Any) -> Any:
    if not dtype_of(self).is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return raw_of(self).unsqueeze(-1).view(_C.float16)


@rule("chalf")
def _chalf(func: Any, self: Any, memory_format: Any = None) -> Any:
    return _to(func, self, STORED["complex32"])


@rule("numpy")
def _numpy(func: Any, self: Any, *, force: bool = False) -> Any:
    raise TypeError(f"Got unsupported ScalarType {dtype_of(self).title}")


@rule("get real", "real")
def _real(func: Any, self: Any) -> Any:
    return _view_as_real(func, self)[..., 0] if dtype_of(self).is_complex else self


@rule("get imag", "imag")
def _imag(func: Any, self: Any) -> Any:
    if not dtype_of(self).is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _view_as_real(func, self)[..., 1]


@rule("zero_")
def _zero(func: Any, self: Any) -> Any:
    raw_of(self).zero_()
    return self
