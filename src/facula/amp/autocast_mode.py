"""Autocast: products in half precision, sums that need accuracy in float32.

The casts are made in C++, on the way of every operator's call (``csrc/op/autocast.cpp``); which
operator is cast how stands in ``gen/autocast.py``.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import facula
from facula import _C, Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEVICES = {"cpu": 0, "cuda": 1}
# PyTorch's other devices with autocast, which programs ask about one by one: never on here.
_ELSEWHERE = frozenset({"hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "xla", "xpu"})


def _number(device_type: str) -> int:
    """Of a kind of device; the index in "cuda:0" makes no difference."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    kind, _, index = device_type.partition(":")
    if kind not in _DEVICES or (index and not index.isdecimal()):
        raise RuntimeError(
            f"User specified an unsupported autocast device_type '{device_type}'; supported are "
            f"{', '.join(map(repr, _DEVICES))}"
        )
    return _DEVICES[kind]


# ---- the settings of the calling thread


def is_autocast_available(device_type: str) -> bool:
    """True when there is autocast for a kind of device.

    Example::

        >>> facula.amp.is_autocast_available("cpu")
        True
    """
    return device_type not in _ELSEWHERE and _C.device(device_type).type in _DEVICES


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """True inside autocast for a kind of device, "cuda" by default; False for devices that only
    PyTorch has.

    Example::

        >>> with facula.autocast("cpu"):
        ...     facula.is_autocast_enabled("cpu")
        True
    """
    if device_type in _ELSEWHERE:
        return False
    return _C._autocast_enabled(1 if device_type is None else _number(device_type))


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switches autocast for a kind of device; with one argument, for CUDA."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _C._set_autocast_enabled(_number(device_type), bool(enabled))


def get_autocast_dtype(device_type: str) -> Any:
    """The lower precision that autocast uses on a kind of device.

    Example::

        >>> facula.get_autocast_dtype("cpu")
        facula.bfloat16
    """
    return _C._autocast_dtype(_number(device_type))


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets the lower precision that autocast uses on a kind of device."""
    _C._set_autocast_dtype(_number(device_type), dtype)


def is_autocast_cpu_enabled() -> bool:
    """True inside autocast for the CPU."""
    return _C._autocast_enabled(0)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast for the CPU."""
    _C._set_autocast_enabled(0, bool(enabled))


def get_autocast_cpu_dtype() -> Any:
    """The lower precision that autocast uses on the CPU."""
    return _C._autocast_dtype(0)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Sets the lower precision that autocast uses on the CPU."""
    _C._set_autocast_dtype(0, dtype)


def get_autocast_gpu_dtype() -> Any:
    """The lower precision that autocast uses on CUDA devices."""
    return _C._autocast_dtype(1)


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Sets the lower precision that autocast uses on CUDA devices."""
    _C._set_autocast_dtype(1, dtype)


def is_autocast_cache_enabled() -> bool:
    """True when casts of parameters are kept until the outermost autocast block ends."""
    return _C._autocast_cache_enabled()


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether casts of parameters are kept."""
    _C._set_autocast_cache_enabled(bool(enabled))


def autocast_increment_nesting() -> int:
    """Enters a block; returns how many there are now."""
    return _C._autocast_increment_nesting()


def autocast_decrement_nesting() -> int:
    """Leaves a block; returns how many are left."""
    return _C._autocast_decrement_nesting()


def clear_autocast_cache() -> None:
    """Forgets the casts that are kept."""
    _C._clear_autocast_cache()


# ---- the block


class autocast:
    """Runs a block, or a function, in mixed precision.

    Inside, products and convolutions are computed in the lower precision, losses and sums that
    need accuracy in float32, and what joins tensors in the widest dtype among them. Parameters stay
    as they are: gradients flow back through the casts. In-place operators and ``out=`` are not
    changed.

    Args:
        device_type: "cpu" or "cuda".
        dtype: the lower precision: bfloat16 (the default on the CPU) or float16 (on CUDA).
        enabled: False switches autocast off inside an outer block.
        cache_enabled: whether a parameter is cast only once in the outermost block.

    Example::

        >>> a = facula.ones(2, 2)
        >>> with facula.autocast("cpu"):
        ...     product = a @ a
        >>> product.dtype
        facula.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        number = _number(device_type)
        self.device = device_type
        self.fast_dtype = _C._autocast_dtype(number) if dtype is None else dtype
        self._cache_enabled = (
            _C._autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._number = number
        self._enabled = enabled and self._is_usable()
        self._before: list[tuple[bool, Any, bool]] = []

    def _is_usable(self) -> bool:
        if self._number == _DEVICES["cuda"] and not facula.cuda.is_available():
            reason = facula.cuda.unavailable_reason()
            warnings.warn(f"CUDA is not available. Disabling autocast. ({reason})", stacklevel=3)
            return False
        if self.fast_dtype not in (facula.bfloat16, facula.float16):
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of facula.bfloat16, facula.float16 "
                f"currently, got {self.fast_dtype}.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self) -> autocast:
        n = self._number
        self._before.append(
            (_C._autocast_enabled(n), _C._autocast_dtype(n), _C._autocast_cache_enabled())
        )
        _C._set_autocast_enabled(n, self._enabled)
        _C._set_autocast_dtype(n, self.fast_dtype)
        _C._set_autocast_cache_enabled(self._cache_enabled)
        _C._autocast_increment_nesting()
        return self

    def __exit__(self, *exc: object) -> bool:
        if _C._autocast_decrement_nesting() == 0:
            _C._clear_autocast_cache()
        enabled, dtype, cache = self._before.pop()
        _C._set_autocast_enabled(self._number, enabled)
        _C._set_autocast_dtype(self._number, dtype)
        _C._set_autocast_cache_enabled(cache)
        return False

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you "
                "mean to use autocast as a context manager? For example:\n"
                "    with facula.autocast(device_type=...):\n        output = model(input)"
            )

        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return run


# ---- custom functions


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Floating tensors on a device in another dtype, also inside collections."""
    if isinstance(value, Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not facula.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    is_array = type(value).__module__ == "numpy"
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and not is_array:
        return (_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: Any = None,
) -> Any:
    """A decorator for ``forward`` of a custom ``autograd.Function`` that is used inside autocast.

    Args:
        fwd: the function.
        device_type: "cpu" or "cuda".
        cast_inputs: the dtype that floating inputs are cast to; the function then runs without
            autocast. By default it runs as its surroundings do.

    Example::

        >>> class Square(facula.autograd.Function):
        ...     @staticmethod
        ...     @facula.amp.custom_fwd(device_type="cpu", cast_inputs=facula.float32)
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @facula.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return 2 * grad * ctx.saved_tensors[0]
        >>> with facula.autocast("cpu"):
        ...     Square.apply(facula.ones(1, dtype=facula.bfloat16)).dtype
        facula.float32
    """
    _number(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            rest = _cast(args[1:], device_type, cast_inputs)
            return fwd(ctx, *rest, **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """A decorator for ``backward`` of a function whose ``forward`` has :func:`custom_fwd`.

    It runs with the autocast settings of ``forward``.

    Args:
        bwd: the function.
        device_type: "cpu" or "cuda".
    """
    _number(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return backward
