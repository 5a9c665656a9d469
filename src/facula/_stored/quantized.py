"""Quantized tensors: small integers that stand for ``(integer - zero_point) * scale``.

Scale and zero point belong to the whole tensor, or to each index of one dimension. Operators that
only choose among the elements keep the integers; others that PyTorch has for quantized tensors
compute with the numbers and round the result to the same grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import _C
from facula._stored import tensor as stored
from facula._stored.dtypes import StoredDType
from facula._stored.schemes import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_tensor_affine,
    qscheme,
)
from facula._stored.tensor import StoredTensor, names_in

Tensor = _C.Tensor

LIMITS = {
    "qint8": (-128, 127),
    "quint8": (0, 255),
    "qint32": (-(2**31), 2**31 - 1),
    "quint4x2": (0, 15),
    "quint2x4": (0, 3),
}


class Quantizer:
    """How numbers become integers of a dtype and back."""

    def __init__(self, dtype: Any, scale: Any, zero_point: Any, axis: int | None = None) -> None:
        self.dtype, self.scale, self.zero_point, self.axis = dtype, scale, zero_point, axis

    @property
    def scheme(self) -> qscheme:
        """One of the schemes of the package."""
        if self.axis is None:
            return per_tensor_affine
        floating = self.zero_point.is_floating_point()
        return per_channel_affine_float_qparams if floating else per_channel_affine

    def _of_elements(self, rank: int) -> tuple[Any, Any]:
        """Scale and zero point in a form that goes with a tensor of ``rank`` dimensions."""
        if self.axis is None:
            return facula.tensor(self.scale, dtype=facula.float32), self.zero_point
        shape = [1] * rank
        shape[self.axis] = -1
        scale = self.scale.to(facula.float32).reshape(shape)
        return scale, self.zero_point.to(facula.float32).reshape(shape)

    def quantize(self, x: Any) -> Any:
        """The integers of the dtype's own memory, one for each number."""
        low, high = LIMITS[self.dtype.name]
        scale, zero_point = self._of_elements(x.dim())
        inverse = (1.0 / scale).to(x.device)
        if isinstance(zero_point, Tensor):
            zero_point = zero_point.to(x.device)
        # In double precision, since the limits of qint32 are no float32 numbers.
        steps = (x * inverse).double()
        if self.dtype.name == "qint32" or self.scheme is per_channel_affine:
            steps = steps.round() + zero_point
        else:
            steps = (steps + zero_point).round()
        return steps.nan_to_num(high, high, low).clamp(low, high).to(self.dtype.raw)

    def dequantize(self, integers: Any) -> Any:
        """The numbers, in float32."""
        scale, zero_point = self._of_elements(integers.dim())
        if isinstance(zero_point, Tensor):
            zero_point = zero_point.to(integers.device)
        exact = integers.to(facula.float64) - zero_point
        return exact.to(facula.float32) * scale.to(integers.device)

    def along(self, index: int) -> Quantizer:
        """That of one slice along the axis."""
        return Quantizer(self.dtype, self.scale[index].item(), self.zero_point[index].item())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantizer) or self.scheme is not other.scheme:
            return False
        if self.axis is None:
            mine, theirs = (self.scale, self.zero_point), (other.scale, other.zero_point)
            return self.dtype is other.dtype and mine == theirs
        return (
            self.dtype is other.dtype
            and self.axis == other.axis
            and facula.equal(self.scale, other.scale)
            and facula.equal(self.zero_point, other.zero_point)
        )

    __hash__ = None  # type: ignore[assignment]


class QuantizedTensor(StoredTensor):
    """A tensor of a quantized dtype; see :func:`facula.quantize_per_tensor`."""

    _quantizer: Quantizer

    @staticmethod
    def make(integers: Any, quantizer: Quantizer) -> Any:  # type: ignore[override]
        """A quantized tensor over integers, one in each element."""
        self = Tensor._make_subclass(QuantizedTensor, integers, False)
        own = self.__dict__
        own["_raw"], own["_stored"], own["_quantizer"] = integers, quantizer.dtype, quantizer
        return self

    @staticmethod
    def _quantizer_of(tensor: Any) -> Quantizer:
        found: Quantizer = tensor.__dict__["_quantizer"]
        return found

    def _like(self, raw: Any) -> Any:
        return QuantizedTensor.make(raw, self.__dict__["_quantizer"])

    def _dispatch(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        return dispatch(func, name, args, kwargs)

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        from facula._tensor_str import _str

        quantizer = self.__dict__["_quantizer"]
        numbers = _str(quantizer.dequantize(self.__dict__["_raw"]))
        parts = [
            f"size={tuple(self.shape)}",
            f"dtype={quantizer.dtype}",
            f"quantization_scheme={quantizer.scheme}",
            f"scale={quantizer.scale}",
            f"zero_point={quantizer.zero_point}",
        ]
        if quantizer.axis is not None:
            parts.append(f"axis={quantizer.axis}")
        lines = [numbers.removesuffix(")")]
        for part in parts:
            if len(lines[-1].rpartition("\n")[2]) + len(part) + 2 > 80:
                lines[-1] += ","
                lines.append(f"       {part}")
            else:
                lines[-1] += f", {part}"
        return "\n".join(lines) + ")"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        q = self.__dict__["_quantizer"]
        return _rebuild, (self.__dict__["_raw"], q.dtype, q.scale, q.zero_point, q.axis)


QuantizedTensor.__module__ = "facula"


def rebuilt(raw: Any, dtype: StoredDType, params: tuple[Any, ...], size: Any = None) -> Any:
    """A quantized tensor of a file, which may say anything; ``size`` is that of packed integers."""
    wanted = 3 if params[:1] == (per_tensor_affine,) else 4
    if len(params) != wanted or params[0] not in (
        per_tensor_affine,
        per_channel_affine,
        per_channel_affine_float_qparams,
    ):
        raise RuntimeError(f"corrupt checkpoint: a tensor quantized by {params!r:.200}")
    if size is not None:
        raw = _unpacked(raw, dtype, size)
    if wanted == 3:
        return QuantizedTensor.make(raw, Quantizer(dtype, float(params[1]), int(params[2])))
    scale, zero_point, axis = params[1:]
    if type(axis) is not int or not 0 <= axis < raw.dim():
        raise RuntimeError(f"corrupt checkpoint: channels along dimension {axis!r:.50}")
    for values in (scale, zero_point):
        if not isinstance(values, Tensor) or tuple(values.shape) != (raw.shape[axis],):
            raise RuntimeError("corrupt checkpoint: channels without scale and zero point")
    return QuantizedTensor.make(raw, Quantizer(dtype, scale, zero_point, axis))


def _unpacked(packed: Any, dtype: StoredDType, size: Any) -> Any:
    """One integer in each element, of bytes that have several; the first one lies lowest."""
    count = 1
    for n in size:
        if type(n) is not int or n < 0:
            raise RuntimeError(f"corrupt checkpoint: a tensor of size {size!r:.200}")
        count *= n
    if count > packed.numel() * dtype.per_byte:
        raise RuntimeError(f"corrupt checkpoint: a tensor of {count} integers in fewer bytes")
    width = 8 // dtype.per_byte
    shifts = facula.arange(dtype.per_byte, dtype=facula.uint8) * width
    values = (packed[:, None] >> shifts) & (2**width - 1)
    return values.flatten()[:count].reshape(tuple(size))


def _rebuild(raw: Any, dtype: Any, scale: Any, zero_point: Any, axis: int | None) -> Any:
    return QuantizedTensor.make(raw, Quantizer(dtype, scale, zero_point, axis))


def quantizer_of(tensor: Any, name: str) -> Quantizer:
    """The parameters of a quantized tensor; other tensors are refused."""
    if not isinstance(tensor, QuantizedTensor):
        kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise NotImplementedError(f"{name}() needs a quantized tensor, got {kind}")
    return QuantizedTensor._quantizer_of(tensor)


# ---- operators

# Computed with the numbers, and rounded to the grid of the argument.
_REQUANTIZED = names_in(
    """
    relu relu6 clamp clip hardtanh leaky_relu threshold std max min amax amin sort topk max_pool1d
    max_pool2d max_pool3d pad constant_pad_nd index_select masked_fill where flip gather cat
    concat concatenate stack channel_shuffle median nanmedian kthvalue
    """
)
# Means of the argument: computed with the integers, so that halves are halves.
_MEANS = names_in(
    """
    _nearest _interpolate _adaptive_avg_pool2d _adaptive_avg_pool3d _adaptive_avg_pool _avg_pool
    mean avg_pool2d avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d interpolate upsample
    """
)
# Computed with the numbers; the results are no numbers of that kind.
_COMPARED = names_in(
    """
    eq ne lt le gt ge equal allclose isclose argmax argmin argsort item
    """
)
_COMPARED |= {"__bool__", "__float__", "__int__", "is_nonzero", "__eq__", "__ne__"}
_COMPARED |= {"__lt__", "__le__", "__gt__", "__ge__"}
_FIXED_GRIDS = {"tanh": (1 / 128, 128), "sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0)}

_table: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function what operators of these names do; it is given the operator first."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _table[name] = function
        return function

    return add


def numbers_of(value: Any) -> Any:
    """The numbers of a quantized tensor, also inside of lists; other values are themselves."""
    if isinstance(value, QuantizedTensor):
        return QuantizedTensor._quantizer_of(value).dequantize(value.__dict__["_raw"])
    if type(value) in (tuple, list):
        return type(value)(numbers_of(v) for v in value)
    return value


def _rounded(result: Any, quantizer: Quantizer) -> Any:
    """Results of float32 on a grid; indices and truth values as they are."""
    if isinstance(result, Tensor):
        if not result.is_floating_point():
            return result
        return QuantizedTensor.make(quantizer.quantize(result), quantizer)
    if hasattr(result, "_fields") or hasattr(result, "n_fields"):
        return type(result)([_rounded(r, quantizer) for r in result])
    return type(result)(_rounded(r, quantizer) for r in result)


def dispatch(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Runs an operator with a quantized tensor among its arguments."""
    first = next(t for t in stored.stored_tensors((args, tuple(kwargs.values()))) if t is not None)
    if name in _table:
        return _table[name](func, *args, **kwargs)
    if name in stored.FACTS or name.removeprefix("get ") in stored.FACT_PROPERTIES:
        with _C.DisableTorchFunctionSubclass():
            return func(*stored.raw_of(args), **kwargs)
    with _C.DisableTorchFunctionSubclass():
        if name in _COMPARED:
            return func(*numbers_of(args), **numbers_in(kwargs))
        if name in stored._table and name != "copy_":
            return stored._table[name](func, *args, **kwargs)
        quantizer = quantizer_of(first, name)
        if name in _FIXED_GRIDS and quantizer.axis is None:
            return _on_fixed_grid(func, name, quantizer, args, kwargs)
        if name in _MEANS and quantizer.axis is None:
            return _mean(func, first, quantizer, args, kwargs)
        if name in _REQUANTIZED and quantizer.axis is None:
            return _rounded(func(*numbers_of(args), **numbers_in(kwargs)), quantizer)
        if name in stored.MOVES and (quantizer.axis is None or name in _WHOLE):
            return stored._move(func, name, [first], args, kwargs)
    scheme = "" if quantizer.axis is None else " by channel"
    raise NotImplementedError(
        f"{name}() is not implemented for tensors quantized{scheme}; use .dequantize()"
    )


# Moves that leave every element at its place, so that channels stay where they are.
_WHOLE = names_in(
    """
    alias clone contiguous cpu cuda detach pin_memory
    """
)


def numbers_in(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments with numbers in place of quantized tensors."""
    return {k: numbers_of(v) for k, v in kwargs.items()}


def _mean(func: Any, tensor: Any, quantizer: Quantizer, args: Any, kwargs: Any) -> Any:
    steps = Quantizer(quantizer.dtype, 1.0, quantizer.zero_point)
    of_steps = QuantizedTensor.make(tensor.__dict__["_raw"], steps)
    values = [of_steps if a is tensor else a for a in args]
    named = {k: of_steps if v is tensor else v for k, v in kwargs.items()}
    result = func(*numbers_of(values), **numbers_in(named))
    return QuantizedTensor.make(steps.quantize(result), quantizer)


def _on_fixed_grid(func: Any, name: str, quantizer: Quantizer, args: Any, kwargs: Any) -> Any:
    """Functions whose results have a known range get the grid that fits it."""
    scale, zero_point = _FIXED_GRIDS[name]
    if quantizer.dtype.name == "qint8":
        zero_point -= 128
    elif quantizer.dtype.name == "qint32":
        scale, zero_point = scale / 2**24, 0
    grid = Quantizer(quantizer.dtype, scale, zero_point)
    return _rounded(func(*numbers_of(args), **numbers_in(kwargs)), grid)


@rule("select", "__getitem__")
def _select(func: Any, self: Any, *index: Any, **kwargs: Any) -> Any:
    quantizer = quantizer_of(self, "select")
    with _C.DisableTorchFunctionSubclass():
        raw = func(stored.raw_of(self), *index, **kwargs)
    if quantizer.axis is None:
        return QuantizedTensor.make(raw, quantizer)
    channel = _channel_taken(func, quantizer.axis, index, kwargs)
    if channel is None:
        raise NotImplementedError(
            "tensors quantized by channel give single channels only; use .dequantize()"
        )
    return QuantizedTensor.make(raw, quantizer.along(channel))


def _channel_taken(func: Any, axis: int, index: Any, kwargs: Any) -> int | None:
    """The channel, when an index takes one of them along the axis and nothing else."""
    if stored.name_of(func) == "__getitem__":
        return index[0] if axis == 0 and type(index[0]) is int else None
    dim, at = (*index, *kwargs.values())[:2]
    return at if dim == axis else None


@rule("copy_")
def _copy(func: Any, self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(self, QuantizedTensor):
        raise RuntimeError(
            "copy_(): numbers of a quantized tensor cannot be copied to another one; use "
            "src.dequantize()"
        )
    quantizer = QuantizedTensor._quantizer_of(self)
    if isinstance(src, QuantizedTensor):
        if src.__dict__["_stored"] is not quantizer.dtype:
            raise RuntimeError(
                f"copy_(): the tensors have dtypes {quantizer.dtype} and {src.dtype}"
            )
        integers = src.__dict__["_raw"]
        self.__dict__["_quantizer"] = QuantizedTensor._quantizer_of(src)
    else:
        if src.dtype is not facula.float32:
            raise RuntimeError(f"copy_(): only float32 can be quantized, got {src.dtype}")
        integers = quantizer.quantize(src)
    self.__dict__["_raw"].copy_(integers, non_blocking)
    return self


@rule("fill_")
def _fill(func: Any, self: Any, value: Any) -> Any:
    number = facula.tensor(float(value), dtype=facula.float32)
    if QuantizedTensor._quantizer_of(self).axis is not None:
        number = number.expand(self.shape)
    self.__dict__["_raw"].copy_(QuantizedTensor._quantizer_of(self).quantize(number))
    return self


@rule("empty_like")
def _empty_like(func: Any, self: Any, **kwargs: Any) -> Any:
    with _C.DisableTorchFunctionSubclass():
        if kwargs.get("dtype") not in (None, self.__dict__["_stored"]):
            raise RuntimeError("empty_like(): a quantized tensor gives one of the same dtype")
        kwargs.pop("dtype", None)
        return self._like(func(self.__dict__["_raw"], **kwargs))


@rule(
    "dequantize",
    "int_repr",
    "qscheme",
    "q_scale",
    "q_zero_point",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_per_channel_axis",
)
def _own_method(func: Any, self: Any) -> Any:
    with _C.DisableTorchFunctionSubclass():
        return func(self)


def quantized_dtype(name: str, dtype: Any) -> StoredDType:
    """A dtype argument, which must be one of the quantized ones."""
    if not isinstance(dtype, StoredDType) or not dtype.is_quantized:
        known = ", ".join(f"facula.{n}" for n in LIMITS)
        raise RuntimeError(f"{name}(): the dtype must be one of {known}, got {dtype}")
    return dtype
