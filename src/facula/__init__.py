"""Facula: PyTorch's programming model in a small, fast, readable package.

Example::

    >>> x = facula.tensor([1., 2., 3.], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])
"""

from __future__ import annotations

from typing import Any as _Any

from facula import _C, _cuda_paths
from facula import _tensor as _tensor
from facula import _tensor_quantized as _tensor_quantized
from facula import _untyped_storage as _untyped_storage
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
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    tensor,
)
from facula._C import (
    Node as _Node,
)
from facula._checks import (
    _check,
    _check_index,
    _check_is_size,
    _check_not_implemented,
    _check_tensor_all,
    _check_type,
    _check_value,
    _check_with,
)
from facula._errors import AcceleratorError, FatalError, OutOfMemoryError
from facula._settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    use_deterministic_algorithms,
)
from facula._symbolic import (
    SymBool,
    SymFloat,
    SymInt,
    sym_float,
    sym_fresh_size,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from facula._tensor_str import set_printoptions
from facula._type_info import finfo, iinfo
from facula.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from facula.version import __version__

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
legacy_contiguous_format = contiguous_format
sparse_coo, sparse_csr, sparse_csc = _C.sparse_coo, _C.sparse_csr, _C.sparse_csc
sparse_bsr, sparse_bsc, jagged = _C.sparse_bsr, _C.sparse_bsc, _C.jagged

# ---- operators: every row of the table that is public
_namespace = globals()
for _name, _function in _C._operators.items():
    if "." not in _name and not _name.startswith("_"):
        _namespace[_name] = _function
_neg_view = _C._operators["_neg_view"]
_standard_gamma = _C._operators["_standard_gamma"]
_sample_dirichlet = _C._operators["_sample_dirichlet"]
_dirichlet_grad = _C._operators["_dirichlet_grad"]
_standard_gamma_grad = _C._operators["_standard_gamma_grad"]

from facula import _foreach, autograd, func, nested, overrides, sparse, utils
from facula._contractions import block_diag, chain_matmul, einsum, tensordot
from facula._lowrank import lobpcg, pca_lowrank, svd_lowrank
from facula._removed import eig, lstsq, matrix_rank, solve, symeig
from facula.func import vmap
from facula.functional import (
    allclose,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    equal,
    histogramdd,
    lu,
    meshgrid,
    nonzero,
    norm,
    resize_as_,
    split,
    unique,
    unique_consecutive,
    unravel_index,
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
from facula.sparse import (
    hspmm,
    resize_as_sparse_,
    smm,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    spmm,
    sspaddmm,
)

dsmm, hsmm, saddmm = spmm, hspmm, sspaddmm  # names of older programs
_namespace.update(_foreach.functions())
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
    if _C._has_torch_function(()):
        given = {k: v for k, v in (("dtype", dtype), ("device", device)) if v is not None}
        return _C._handle_torch_function(as_tensor, (), (data,), given)
    return _C._as_tensor(data, dtype, device)


def asarray(
    obj: _Any,
    *,
    dtype: _Any = None,
    device: _Any = None,
    copy: _Any = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """``obj`` as a tensor; ``copy`` is True (always), False (never) or None (when needed).

    A tensor keeps its history unless ``requires_grad`` is False.

    Example::

        >>> facula.asarray([1., 2.])
        tensor([1., 2.])
    """
    if _C._has_torch_function(()):
        options = {
            "dtype": dtype,
            "device": device,
            "copy": copy,
            "requires_grad": requires_grad,
        }
        given = {k: v for k, v in options.items() if v is not None}
        return _C._handle_torch_function(asarray, (), (obj,), given)
    return _C._asarray(obj, dtype, device, copy, requires_grad)


def from_dlpack(ext_tensor: _Any, *, device: _Any = None, copy: _Any = None) -> Tensor:
    """A tensor over the memory of an object with ``__dlpack__``.

    Example::

        >>> import numpy
        >>> facula.from_dlpack(numpy.array([1, 2]))
        tensor([1, 2])
    """
    return _C._from_dlpack(ext_tensor, device=device, copy=copy)


def to_dlpack(tensor: Tensor) -> _Any:
    """A capsule over the memory of a tensor, which can be consumed once.

    Example::

        >>> capsule = facula.to_dlpack(facula.ones(2))
        >>> facula.utils.dlpack.from_dlpack(capsule)
        tensor([1., 1.])
    """
    return tensor.__dlpack__()


def is_tensor(obj: _Any) -> _Any:
    """True for tensors.

    Example::

        >>> facula.is_tensor(facula.ones(1))
        True
    """
    return isinstance(obj, Tensor)


def is_storage(obj: _Any) -> _Any:
    """True for storages, with and without a dtype.

    Example::

        >>> facula.is_storage(facula.ones(1).untyped_storage())
        True
    """
    from facula.storage import TypedStorage

    return isinstance(obj, (UntypedStorage, TypedStorage))


def from_file(
    filename: str,
    shared: _Any = None,
    size: _Any = 0,
    *,
    dtype: _Any = None,
    layout: _Any = None,
    device: _Any = None,
    pin_memory: _Any = False,
    requires_grad: _Any = False,
) -> Tensor:
    """A tensor of one dimension over the bytes of a file.

    Args:
        filename: the file.
        shared: True writes changes to the file, which grows or is made when it is too small.
        size: how many elements.

    Example::

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = facula.from_file(file.name, True, 3, dtype=facula.int32).fill_(7)
        ...     facula.from_file(file.name, size=2, dtype=facula.int32)
        tensor([7, 7], dtype=facula.int32)
    """
    from facula.storage import from_file, whole_tensor

    dtype = dtype or get_default_dtype()
    if _C.device(device or "cpu").type != "cpu":
        raise RuntimeError(f"from_file(): files can be mapped on the CPU only, got {device}")
    if layout not in (None, strided):
        raise NotImplementedError(f"from_file(): layout {layout} is not supported")
    if size < 0:
        raise RuntimeError(f"from_file(): the size must not be negative, got {size}")
    if size == 0:
        return _C._operators["empty"](0, dtype=dtype, requires_grad=requires_grad)
    t = whole_tensor(from_file(filename, shared, size * dtype.itemsize), dtype)
    return t.requires_grad_() if requires_grad else t


def get_device(input: Tensor) -> _Any:
    """The index of the CUDA device of a tensor, or -1.

    Example::

        >>> facula.get_device(facula.ones(1))
        -1
    """
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(get_device, (input,), input)
    return input.get_device()


def get_device_module(device: _Any = None) -> _Any:
    """The module that belongs to a kind of device: ``facula.cuda`` or ``facula.cpu``.

    Args:
        device: a device or its name; by default CUDA where there is one.

    Example::

        >>> facula.get_device_module("cpu").__name__
        'facula.cpu'
    """
    from facula import cpu, cuda

    if device is None:
        return cuda if cuda.is_available() else cpu
    kind = _C.device(device).type
    modules = {"cpu": cpu, "cuda": cuda}
    if kind not in modules:
        raise RuntimeError(f"there is no module for the device type {kind!r}")
    return modules[kind]


def _assert(condition: _Any, message: _Any) -> None:
    """Raises AssertionError with a message unless a condition, or tensor, is true.

    Example::

        >>> facula._assert(facula.tensor(True), "fine")
    """
    if type(condition) is not Tensor and overrides.has_torch_function((condition,)):
        overrides.handle_torch_function(_assert, (condition,), condition, message)
        return
    if not condition:
        raise AssertionError(message)


def is_complex(input: Tensor) -> _Any:
    """True for complex tensors."""
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_complex, (input,), input)
    return input.is_complex()


def is_floating_point(input: Tensor) -> _Any:
    """True for floating-point tensors."""
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_floating_point, (input,), input)
    return input.is_floating_point()


def is_signed(input: Tensor) -> _Any:
    """True when the dtype holds negative numbers."""
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_signed, (input,), input)
    return input.is_signed()


def is_nonzero(input: Tensor) -> _Any:
    """The truth value of a tensor with one element."""
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_nonzero, (input,), input)
    return input.is_nonzero()


def is_conj(input: Tensor) -> _Any:
    """True for a conjugate that is computed when it is read.

    Example::

        >>> facula.is_conj(facula.tensor([1 + 2j]).conj())
        True
    """
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_conj, (input,), input)
    return input.is_conj()


def is_neg(input: Tensor) -> _Any:
    """True for a negative that is computed when it is read.

    Example::

        >>> facula.is_neg(facula.tensor([1 + 2j]).conj().imag)
        True
    """
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_neg, (input,), input)
    return input.is_neg()


def is_inference(input: Tensor) -> _Any:
    """True for tensors made in inference mode."""
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(is_inference, (input,), input)
    return input.is_inference()


def is_same_size(input: Tensor, other: Tensor) -> _Any:
    """True when the shapes are equal."""
    if type(input) is not Tensor and overrides.has_torch_function((input, other)):
        return overrides.handle_torch_function(is_same_size, (input, other), input, other)
    return input.is_same_size(other)


def numel(input: Tensor) -> int:
    """How many elements.

    Example::

        >>> facula.numel(facula.ones(2, 3))
        6
    """
    if type(input) is not Tensor and overrides.has_torch_function((input,)):
        return overrides.handle_torch_function(numel, (input,), input)
    if not isinstance(input, Tensor):
        raise TypeError(
            "numel(): argument 'input' (position 1) must be Tensor, not " + type(input).__name__
        )
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
    """The full name of a tensor's, a type's or another object's type.

    Example::

        >>> facula.typename(facula.ones(1))
        'facula.FloatTensor'
        >>> facula.typename(3)
        'int'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    if module in (None, "", "builtins"):
        return named.__qualname__
    return f"{module}.{named.__qualname__}"


def compiled_with_cxx11_abi() -> _Any:
    """True: there is only one ABI."""
    return True


class DisableTorchFunctionSubclass:
    """While active, ``__torch_function__`` of subclasses is not called."""

    def __enter__(self) -> None:
        self.before = _C._set_torch_function_enabled(False)

    def __exit__(self, *exc: object) -> None:
        _C._set_torch_function_enabled(self.before)


class DisableTorchFunction:
    """While active, neither subclasses nor modes take calls over."""

    def __enter__(self) -> None:
        self.before = _C._set_torch_function_all_disabled(True)

    def __exit__(self, *exc: object) -> None:
        _C._set_torch_function_all_disabled(self.before)


def _assert_async(self: _Any, assert_msg: str | None = None) -> None:
    """Raises a RuntimeError unless the tensor's one value is true. Meta tensors have none, and
    pass.

    Example::

        >>> facula._assert_async(facula.tensor(True), "fine")
    """
    if not self.is_meta and not self:
        raise RuntimeError(
            assert_msg or "_assert_async(): expected a tensor with one nonzero value, but got zero"
        )


# What libraries ask PyTorch's core. Nothing is traced, and uses of the interface are not counted.
_C._get_tracing_state = lambda: None
_C._log_api_usage_once = lambda name: None
_C._are_functorch_transforms_active = lambda: len(_C.transforms.level_stack()) > 0
_C.DisableTorchFunctionSubclass = DisableTorchFunctionSubclass
_C.DisableTorchFunction = DisableTorchFunction
_C.TensorBase = _C._TensorBase = Tensor
_C.default_generator = default_generator

_LAZY = {
    "__future__",
    "_dynamo",
    "_inductor",
    "_utils",
    "compiler",
    "jit",
    "fx",
    "onnx",
    "testing",
    "accelerator",
    "backends",
    "distributions",
    "monitor",
    "mps",
    "mtia",
    "quasirandom",
    "xpu",
    "random",
    "functional",
    "linalg",
    "fft",
    "signal",
    "special",
    "nn",
    "serialization",
    "storage",
    "cpu",
    "version",
    "__config__",
    "optim",
    "amp",
    "cuda",
    "masked",
    "types",
    "return_types",
    "hub",
    "multiprocessing",
    "profiler",
    "safetensors",
    "library",
    "array_api",
    "distributed",
    "futures",
    "torch_version",
}


# Names whose modules are imported when they are first used.
_LAZY_NAMES = {
    "compile": "compiler",
    "load": "serialization",
    "ops": "_library.namespaces",
    "Tag": "_library.tags",
    "save": "serialization",
    "summary": "_summary",
    "TypedStorage": "storage",
    "set_default_tensor_type": "_legacy_types",
    "tensortype": "_legacy_types",
    "GradScaler": "amp",
    "Event": "_streams",
    "Stream": "_streams",
    **dict.fromkeys(
        (
            "autocast",
            "autocast_decrement_nesting",
            "autocast_increment_nesting",
            "clear_autocast_cache",
            "get_autocast_cpu_dtype",
            "get_autocast_dtype",
            "get_autocast_gpu_dtype",
            "is_autocast_cache_enabled",
            "is_autocast_cpu_enabled",
            "is_autocast_enabled",
            "set_autocast_cache_enabled",
            "set_autocast_cpu_dtype",
            "set_autocast_cpu_enabled",
            "set_autocast_dtype",
            "set_autocast_enabled",
            "set_autocast_gpu_dtype",
        ),
        "amp.autocast_mode",
    ),
    **dict.fromkeys(
        (
            "get_autocast_ipu_dtype",
            "get_autocast_xla_dtype",
            "is_autocast_ipu_enabled",
            "is_autocast_xla_enabled",
            "set_autocast_ipu_dtype",
            "set_autocast_ipu_enabled",
            "set_autocast_xla_dtype",
            "set_autocast_xla_enabled",
        ),
        "amp.other_devices",
    ),
    **dict.fromkeys(
        (
            "cudnn_affine_grid_generator",
            "cudnn_batch_norm",
            "cudnn_convolution",
            "cudnn_convolution_add_relu",
            "cudnn_convolution_relu",
            "cudnn_convolution_transpose",
            "cudnn_grid_sampler",
            "cudnn_is_acceptable",
            "mkldnn_convolution",
        ),
        "_vendor_layers",
    ),
    **dict.fromkeys(
        (
            "fbgemm_linear_fp16_weight",
            "fbgemm_linear_fp16_weight_fp32_activation",
            "fbgemm_linear_int8_weight",
            "fbgemm_linear_int8_weight_fp32_activation",
            "fbgemm_linear_quantize_weight",
            "fbgemm_pack_gemm_matrix_fp16",
            "fbgemm_pack_quantized_matrix",
            "quantized_gru_cell",
            "quantized_lstm_cell",
            "quantized_rnn_relu_cell",
            "quantized_rnn_tanh_cell",
        ),
        "_stored.linear_weights",
    ),
    "PyTorchFileReader": "_checkpoint.file_reader",
    **dict.fromkeys(
        (
            "AVG",
            "AggregationType",
            "SUM",
            "ccol_indices_copy",
            "col_indices_copy",
            "cond",
            "conj_physical_",
            "crow_indices_copy",
            "has_lapack",
            "has_mkl",
            "has_openmp",
            "has_spectral",
            "indices_copy",
            "init_num_threads",
            "is_distributed",
            "is_vulkan_available",
            "native_norm",
            "row_indices_copy",
            "set_anomaly_enabled",
            "slice_inverse",
            "sym_constrain_range",
            "sym_constrain_range_for_size",
            "thread_safe_generator",
            "values_copy",
        ),
        "_control",
    ),
    **dict.fromkeys(
        (
            "Future",
            "fork",
            "wait",
        ),
        "futures",
    ),
    **dict.fromkeys(
        (
            "fake_quantize_per_channel_affine",
            "fake_quantize_per_tensor_affine",
        ),
        "_fake_quantize",
    ),
    **dict.fromkeys(
        (
            "bit",
            "bits16",
            "bits1x8",
            "bits2x4",
            "bits4x2",
            "bits8",
            "chalf",
            "complex32",
            "float4_e2m1fn_x2",
            "float8_e4m3fnuz",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
            *(f"{kind}{width}" for kind in ("int", "uint") for width in "1234567"),
            "qint32",
            "qint8",
            "quint2x4",
            "quint4x2",
            "quint8",
        ),
        "_stored.dtypes",
    ),
    **dict.fromkeys(
        (
            "per_channel_affine",
            "per_channel_affine_float_qparams",
            "per_channel_symmetric",
            "per_tensor_affine",
            "per_tensor_symmetric",
            "qscheme",
        ),
        "_stored.schemes",
    ),
    **dict.fromkeys(
        (
            "dequantize",
            "empty_quantized",
            "fused_moving_avg_obs_fake_quant",
            "int_repr",
            "q_per_channel_axis",
            "q_per_channel_scales",
            "q_per_channel_zero_points",
            "q_scale",
            "q_zero_point",
            "quantize_per_channel",
            "quantize_per_tensor",
            "quantize_per_tensor_dynamic",
            "quantized_batch_norm",
            "quantized_max_pool1d",
            "quantized_max_pool2d",
            "quantized_max_pool3d",
        ),
        "_stored.functions",
    ),
    "Storage": "storage",
}


def __getattr__(name: str) -> _Any:
    if name.endswith("Tensor"):
        from facula._legacy_types import find

        value = find(name)
        if value is not None:
            return value
    if name.endswith("Storage"):
        from facula.storage import NAMED

        if name in NAMED:
            return NAMED[name]
    if name in _LAZY_NAMES:
        import importlib

        value = getattr(importlib.import_module(f"facula.{_LAZY_NAMES[name]}"), name)
        _namespace[name] = value
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
