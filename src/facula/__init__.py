"""Facula: PyTorch's programming model in a small, fast, readable package.

Example::

    >>> x = facula.tensor([1., 2., 3.], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])
"""

from __future__ import annotations

from typing import Any as _Any

from facula import _C
from facula import _tensor as _tensor
from facula._C import (
    Generator,
    Size,
    Tensor,
    UntypedStorage,
    can_cast,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    dtype,
    get_default_device,
    get_default_dtype,
    get_num_threads,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    layout,
    memory_format,
    preserve_format,
    promote_types,
    result_type,
    set_num_threads,
    strided,
    tensor,
)
from facula._C import (
    Node as _Node,
)
from facula._errors import OutOfMemoryError
from facula._tensor_str import set_printoptions
from facula._type_info import finfo, iinfo
from facula.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__version__ = "0.1.0"

# ---- dtypes
uint8, uint16, uint32, uint64 = _C.uint8, _C.uint16, _C.uint32, _C.uint64
int8, int16, int32, int64 = _C.int8, _C.int16, _C.int32, _C.int64
float16, bfloat16, float32, float64 = _C.float16, _C.bfloat16, _C.float32, _C.float64
complex64, complex128 = _C.complex64, _C.complex128
float8_e4m3fn, float8_e5m2 = _C.float8_e4m3fn, _C.float8_e5m2
bool = _C.bool
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

from math import e, inf, nan, pi

newaxis = None

# ---- operators: every row of the table that is public
_namespace = globals()
for _name, _function in _C._operators.items():
    if "." not in _name and not _name.startswith("_"):
        _namespace[_name] = _function

from facula import autograd, overrides, utils
from facula.functional import (
    allclose,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    equal,
    meshgrid,
    nonzero,
    norm,
    split,
    unique,
    unique_consecutive,
    where,
)
from facula.random import (
    fork_rng as _fork_rng,
)
from facula.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

default_generator = _C._default_generator()
set_warn_always = _C._set_warn_always
is_warn_always_enabled = _C._is_warn_always_enabled


def from_numpy(ndarray: _Any) -> Tensor:
    """A tensor over the memory of a NumPy array.

    Example::

        >>> import numpy
        >>> facula.from_numpy(numpy.array([1, 2]))
        tensor([1, 2])
    """
    return _C._from_numpy(ndarray)


def frombuffer(
    buffer: _Any, *, dtype: _Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A tensor over the memory of an object with the buffer protocol.

    Example::

        >>> facula.frombuffer(bytearray([1, 2, 3]), dtype=facula.uint8)
        tensor([1, 2, 3], dtype=facula.uint8)
    """
    return _C._frombuffer(buffer, dtype, count, offset, requires_grad)


def as_tensor(data: _Any, dtype: _Any = None, device: _Any = None) -> Tensor:
    """``data`` as a tensor, sharing memory where possible.

    Example::

        >>> facula.as_tensor([1, 2])
        tensor([1, 2])
    """
    return _C._as_tensor(data, dtype, device)


def asarray(
    obj: _Any,
    *,
    dtype: _Any = None,
    device: _Any = None,
    copy: _Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``obj`` as a tensor; ``copy`` is True (always), False (never) or None (when needed).

    Example::

        >>> facula.asarray([1., 2.])
        tensor([1., 2.])
    """
    return _C._asarray(obj, dtype, device, copy, requires_grad)


def from_dlpack(ext_tensor: _Any, *, device: _Any = None, copy: _Any = None) -> Tensor:
    """A tensor over the memory of an object with ``__dlpack__``.

    Example::

        >>> import numpy
        >>> facula.from_dlpack(numpy.array([1, 2]))
        tensor([1, 2])
    """
    return _C._from_dlpack(ext_tensor, device=device, copy=copy)


def is_tensor(obj: _Any) -> _Any:
    """True for tensors.

    Example::

        >>> facula.is_tensor(facula.ones(1))
        True
    """
    return isinstance(obj, Tensor)


def is_storage(obj: _Any) -> _Any:
    """True for storages."""
    return isinstance(obj, UntypedStorage)


def is_complex(input: Tensor) -> _Any:
    """True for complex tensors."""
    return input.is_complex()


def is_floating_point(input: Tensor) -> _Any:
    """True for floating-point tensors."""
    return input.is_floating_point()


def is_signed(input: Tensor) -> _Any:
    """True when the dtype holds negative numbers."""
    return input.is_signed()


def is_nonzero(input: Tensor) -> _Any:
    """The truth value of a tensor with one element."""
    return input.is_nonzero()


def is_conj(input: Tensor) -> _Any:
    """False: conjugates are computed at once."""
    return False


def is_neg(input: Tensor) -> _Any:
    """False: negatives are computed at once."""
    return False


def is_inference(input: Tensor) -> _Any:
    """True for tensors made in inference mode."""
    return input.is_inference()


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negatives are computed at once."""
    return input


def numel(input: Tensor) -> int:
    """How many elements.

    Example::

        >>> facula.numel(facula.ones(2, 3))
        6
    """
    return input.numel()


def set_default_dtype(d: dtype) -> None:
    """Sets the dtype of new floating-point tensors.

    Example::

        >>> facula.set_default_dtype(facula.float64)
        >>> facula.ones(1).dtype
        facula.float64
        >>> facula.set_default_dtype(facula.float32)
    """
    _C._set_default_dtype(d)


def set_default_device(device: _Any) -> None:
    """Sets the device of new tensors; None means the CPU."""
    _C._set_default_device(device)


def typename(obj: _Any) -> str:
    """The full name of an object's type.

    Example::

        >>> facula.typename(facula.ones(1))
        'facula.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def compiled_with_cxx11_abi() -> _Any:
    """True: there is only one ABI."""
    return True


class DisableTorchFunctionSubclass:
    """While active, ``__torch_function__`` of subclasses is not called."""

    def __enter__(self) -> None:
        self.before = _C._set_torch_function_enabled(False)

    def __exit__(self, *exc: object) -> None:
        _C._set_torch_function_enabled(self.before)


_C.DisableTorchFunctionSubclass = DisableTorchFunctionSubclass
_C.TensorBase = Tensor

_LAZY = {
    "testing",
    "random",
    "functional",
    "linalg",
    "special",
    "nn",
    "optim",
    "cuda",
    "types",
    "return_types",
}


def __getattr__(name: str) -> _Any:
    if name.endswith("Tensor"):
        from facula import _legacy_types

        if name in _legacy_types.names():
            value = _namespace[name] = _legacy_types.make(name)
            return value
    if name in _LAZY:
        import importlib
        import importlib.util

        if importlib.util.find_spec(f"facula.{name}"):
            return importlib.import_module(f"facula.{name}")
    raise AttributeError(f"module 'facula' has no attribute {name!r}")


def _find_blas() -> None:
    """Tells the core where scipy-openblas32 is; it is opened when first used."""
    import importlib.util

    spec = importlib.util.find_spec("scipy_openblas32")
    if spec and spec.submodule_search_locations:
        import os

        folder = os.path.join(spec.submodule_search_locations[0], "lib")
        for file in sorted(os.listdir(folder)):
            if file.startswith("libscipy_openblas") and ".so" in file:
                _C._set_blas_library(os.path.join(folder, file))
                return


_find_blas()
del _name, _function
