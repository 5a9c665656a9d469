"""What a type checker sees of the package; the operators come from the generated stubs."""

from typing import Any

from facula import __future__ as __future__
from facula import accelerator as accelerator
from facula import amp as amp
from facula import autograd as autograd
from facula import backends as backends
from facula import compiler as compiler
from facula import cuda as cuda
from facula import fft as fft
from facula import func as func
from facula import fx as fx
from facula import jit as jit
from facula import library as library
from facula import linalg as linalg
from facula import masked as masked
from facula import monitor as monitor
from facula import mtia as mtia
from facula import nested as nested
from facula import nn as nn
from facula import onnx as onnx
from facula import optim as optim
from facula import overrides as overrides
from facula import random as random
from facula import serialization as serialization
from facula import signal as signal
from facula import sparse as sparse
from facula import special as special
from facula import storage as storage
from facula import utils as utils
from facula._C import Generator as Generator
from facula._C import Size as Size
from facula._C import Tensor as Tensor
from facula._C import UntypedStorage as UntypedStorage
from facula._C import device as device
from facula._C import dtype as dtype
from facula._C import layout as layout
from facula._C import memory_format as memory_format
from facula._checkpoint.file_reader import PyTorchFileReader as PyTorchFileReader
from facula._contractions import block_diag as block_diag
from facula._contractions import chain_matmul as chain_matmul
from facula._contractions import einsum as einsum
from facula._contractions import tensordot as tensordot
from facula._control import native_norm as native_norm
from facula._control import slice_inverse as slice_inverse
from facula._control import thread_safe_generator as thread_safe_generator
from facula._errors import AcceleratorError as AcceleratorError
from facula._errors import FatalError as FatalError
from facula._errors import OutOfMemoryError as OutOfMemoryError
from facula._library.namespaces import ops as ops
from facula._library.tags import Tag as Tag
from facula._lowrank import lobpcg as lobpcg
from facula._lowrank import pca_lowrank as pca_lowrank
from facula._lowrank import svd_lowrank as svd_lowrank
from facula._op_functions import *
from facula._removed import eig as eig
from facula._removed import lstsq as lstsq
from facula._removed import matrix_rank as matrix_rank
from facula._removed import solve as solve
from facula._removed import symeig as symeig
from facula._settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from facula._settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from facula._settings import get_float32_matmul_precision as get_float32_matmul_precision
from facula._settings import get_num_interop_threads as get_num_interop_threads
from facula._settings import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from facula._settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from facula._settings import set_float32_matmul_precision as set_float32_matmul_precision
from facula._settings import set_flush_denormal as set_flush_denormal
from facula._settings import set_num_interop_threads as set_num_interop_threads
from facula._settings import use_deterministic_algorithms as use_deterministic_algorithms
from facula._stored.functions import dequantize as dequantize
from facula._stored.functions import empty_quantized as empty_quantized
from facula._stored.functions import (
    fused_moving_avg_obs_fake_quant as fused_moving_avg_obs_fake_quant,
)
from facula._stored.functions import int_repr as int_repr
from facula._stored.functions import q_per_channel_axis as q_per_channel_axis
from facula._stored.functions import q_per_channel_scales as q_per_channel_scales
from facula._stored.functions import q_per_channel_zero_points as q_per_channel_zero_points
from facula._stored.functions import q_scale as q_scale
from facula._stored.functions import q_zero_point as q_zero_point
from facula._stored.functions import quantize_per_channel as quantize_per_channel
from facula._stored.functions import quantize_per_tensor as quantize_per_tensor
from facula._stored.functions import quantize_per_tensor_dynamic as quantize_per_tensor_dynamic
from facula._stored.functions import quantized_batch_norm as quantized_batch_norm
from facula._stored.functions import quantized_max_pool1d as quantized_max_pool1d
from facula._stored.functions import quantized_max_pool2d as quantized_max_pool2d
from facula._stored.functions import quantized_max_pool3d as quantized_max_pool3d
from facula._stored.linear_weights import fbgemm_linear_fp16_weight as fbgemm_linear_fp16_weight
from facula._stored.linear_weights import (
    fbgemm_linear_fp16_weight_fp32_activation as fbgemm_linear_fp16_weight_fp32_activation,
)
from facula._stored.linear_weights import fbgemm_linear_int8_weight as fbgemm_linear_int8_weight
from facula._stored.linear_weights import (
    fbgemm_linear_int8_weight_fp32_activation as fbgemm_linear_int8_weight_fp32_activation,
)
from facula._stored.linear_weights import (
    fbgemm_linear_quantize_weight as fbgemm_linear_quantize_weight,
)
from facula._stored.linear_weights import (
    fbgemm_pack_gemm_matrix_fp16 as fbgemm_pack_gemm_matrix_fp16,
)
from facula._stored.linear_weights import (
    fbgemm_pack_quantized_matrix as fbgemm_pack_quantized_matrix,
)
from facula._stored.linear_weights import quantized_gru_cell as quantized_gru_cell
from facula._stored.linear_weights import quantized_lstm_cell as quantized_lstm_cell
from facula._stored.linear_weights import quantized_rnn_relu_cell as quantized_rnn_relu_cell
from facula._stored.linear_weights import quantized_rnn_tanh_cell as quantized_rnn_tanh_cell
from facula._stored.schemes import per_channel_affine as per_channel_affine
from facula._stored.schemes import (
    per_channel_affine_float_qparams as per_channel_affine_float_qparams,
)
from facula._stored.schemes import per_channel_symmetric as per_channel_symmetric
from facula._stored.schemes import per_tensor_affine as per_tensor_affine
from facula._stored.schemes import per_tensor_symmetric as per_tensor_symmetric
from facula._stored.schemes import qscheme as qscheme
from facula._symbolic import SymBool as SymBool
from facula._symbolic import SymFloat as SymFloat
from facula._symbolic import SymInt as SymInt
from facula._symbolic import sym_float as sym_float
from facula._symbolic import sym_fresh_size as sym_fresh_size
from facula._symbolic import sym_int as sym_int
from facula._symbolic import sym_ite as sym_ite
from facula._symbolic import sym_max as sym_max
from facula._symbolic import sym_min as sym_min
from facula._symbolic import sym_not as sym_not
from facula._symbolic import sym_sqrt as sym_sqrt
from facula._symbolic import sym_sum as sym_sum
from facula._tensor_str import set_printoptions as set_printoptions
from facula._type_info import finfo as finfo
from facula._type_info import iinfo as iinfo
from facula._types import Device, Number
from facula._vendor_layers import cudnn_affine_grid_generator as cudnn_affine_grid_generator
from facula._vendor_layers import cudnn_batch_norm as cudnn_batch_norm
from facula._vendor_layers import cudnn_convolution as cudnn_convolution
from facula._vendor_layers import cudnn_convolution_add_relu as cudnn_convolution_add_relu
from facula._vendor_layers import cudnn_convolution_relu as cudnn_convolution_relu
from facula._vendor_layers import cudnn_convolution_transpose as cudnn_convolution_transpose
from facula._vendor_layers import cudnn_grid_sampler as cudnn_grid_sampler
from facula._vendor_layers import cudnn_is_acceptable as cudnn_is_acceptable
from facula._vendor_layers import mkldnn_convolution as mkldnn_convolution
from facula.amp.autocast_mode import autocast as autocast
from facula.amp.autocast_mode import autocast_decrement_nesting as autocast_decrement_nesting
from facula.amp.autocast_mode import autocast_increment_nesting as autocast_increment_nesting
from facula.amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
from facula.amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from facula.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from facula.amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from facula.amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from facula.amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from facula.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from facula.amp.autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from facula.amp.autocast_mode import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from facula.amp.autocast_mode import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from facula.amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from facula.amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
from facula.amp.autocast_mode import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from facula.amp.grad_scaler import GradScaler as GradScaler
from facula.amp.other_devices import get_autocast_ipu_dtype as get_autocast_ipu_dtype
from facula.amp.other_devices import get_autocast_xla_dtype as get_autocast_xla_dtype
from facula.amp.other_devices import is_autocast_ipu_enabled as is_autocast_ipu_enabled
from facula.amp.other_devices import is_autocast_xla_enabled as is_autocast_xla_enabled
from facula.amp.other_devices import set_autocast_ipu_dtype as set_autocast_ipu_dtype
from facula.amp.other_devices import set_autocast_ipu_enabled as set_autocast_ipu_enabled
from facula.amp.other_devices import set_autocast_xla_dtype as set_autocast_xla_dtype
from facula.amp.other_devices import set_autocast_xla_enabled as set_autocast_xla_enabled
from facula.autograd.grad_mode import enable_grad as enable_grad
from facula.autograd.grad_mode import inference_mode as inference_mode
from facula.autograd.grad_mode import no_grad as no_grad
from facula.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from facula.compiler import compile as compile
from facula.func import vmap as vmap
from facula.functional import allclose as allclose
from facula.functional import broadcast_shapes as broadcast_shapes
from facula.functional import broadcast_tensors as broadcast_tensors
from facula.functional import cartesian_prod as cartesian_prod
from facula.functional import equal as equal
from facula.functional import histogramdd as histogramdd
from facula.functional import lu as lu
from facula.functional import meshgrid as meshgrid
from facula.functional import norm as norm
from facula.functional import split as split
from facula.functional import unique as unique
from facula.functional import unravel_index as unravel_index
from facula.functional import where as where
from facula.random import get_rng_state as get_rng_state
from facula.random import initial_seed as initial_seed
from facula.random import manual_seed as manual_seed
from facula.random import seed as seed
from facula.random import set_rng_state as set_rng_state
from facula.serialization import load as load
from facula.serialization import save as save
from facula.sparse import hspmm as hspmm
from facula.sparse import resize_as_sparse_ as resize_as_sparse_
from facula.sparse import smm as smm
from facula.sparse import sparse_bsc_tensor as sparse_bsc_tensor
from facula.sparse import sparse_bsr_tensor as sparse_bsr_tensor
from facula.sparse import sparse_compressed_tensor as sparse_compressed_tensor
from facula.sparse import sparse_coo_tensor as sparse_coo_tensor
from facula.sparse import sparse_csc_tensor as sparse_csc_tensor
from facula.sparse import sparse_csr_tensor as sparse_csr_tensor
from facula.sparse import spmm as spmm
from facula.sparse import sspaddmm as sspaddmm
from facula.storage import TypedStorage as TypedStorage

__version__: str
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
int8: dtype
int16: dtype
int32: dtype
int64: dtype
float16: dtype
bfloat16: dtype
float32: dtype
float64: dtype
complex64: dtype
complex128: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
bit: dtype
bits16: dtype
bits1x8: dtype
bits2x4: dtype
bits4x2: dtype
bits8: dtype
chalf: dtype
complex32: dtype
float4_e2m1fn_x2: dtype
float8_e4m3fnuz: dtype
float8_e5m2fnuz: dtype
float8_e8m0fnu: dtype
int1: dtype
int2: dtype
int3: dtype
int4: dtype
int5: dtype
int6: dtype
int7: dtype
uint1: dtype
uint2: dtype
uint3: dtype
uint4: dtype
uint5: dtype
uint6: dtype
uint7: dtype
qint8: dtype
quint8: dtype
qint32: dtype
quint2x4: dtype
quint4x2: dtype
bool: dtype
half: dtype
float: dtype
double: dtype
short: dtype
int: dtype
long: dtype
cfloat: dtype
cdouble: dtype
strided: layout
sparse_coo: layout
sparse_csr: layout
sparse_csc: layout
sparse_bsr: layout
sparse_bsc: layout
contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format
legacy_contiguous_format: memory_format
jagged: layout
default_generator: Generator

def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: Device | None = None,
    requires_grad: Any = False,
) -> Tensor: ...
def as_tensor(data: Any, dtype: dtype | None = None, device: Device | None = None) -> Tensor: ...
def asarray(obj: Any, **kwargs: Any) -> Tensor: ...
def from_numpy(ndarray: Any) -> Tensor: ...
def frombuffer(buffer: Any, *, dtype: dtype, **kwargs: Any) -> Tensor: ...
def from_dlpack(ext_tensor: Any, **kwargs: Any) -> Tensor: ...
def to_dlpack(tensor: Tensor) -> Any: ...
def from_file(
    filename: str, shared: Any = None, size: Any = 0, *, dtype: dtype | None = None, **kwargs: Any
) -> Tensor: ...
def is_tensor(obj: object) -> Any: ...
def is_storage(obj: object) -> Any: ...
def result_type(*args: Tensor | Number) -> dtype: ...
def promote_types(a: dtype, b: dtype) -> dtype: ...
def can_cast(from_: dtype, to: dtype) -> Any: ...
def get_default_dtype() -> dtype: ...
def set_default_dtype(d: dtype) -> None: ...
def get_num_threads() -> Any: ...
def set_num_threads(n: Any) -> None: ...
def is_grad_enabled() -> Any: ...
def __getattr__(name: str) -> Any: ...
