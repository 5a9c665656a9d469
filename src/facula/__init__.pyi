"""What a type checker sees of the package; the operators come from the generated stubs."""

from typing import Any

from facula import autograd as autograd
from facula import cuda as cuda
from facula import linalg as linalg
from facula import overrides as overrides
from facula import random as random
from facula import special as special
from facula import utils as utils
from facula._C import Generator as Generator
from facula._C import Size as Size
from facula._C import Tensor as Tensor
from facula._C import UntypedStorage as UntypedStorage
from facula._C import device as device
from facula._C import dtype as dtype
from facula._C import layout as layout
from facula._C import memory_format as memory_format
from facula._errors import OutOfMemoryError as OutOfMemoryError
from facula._op_functions import *
from facula._tensor_str import set_printoptions as set_printoptions
from facula._type_info import finfo as finfo
from facula._type_info import iinfo as iinfo
from facula._types import Device, Number
from facula.autograd.grad_mode import enable_grad as enable_grad
from facula.autograd.grad_mode import inference_mode as inference_mode
from facula.autograd.grad_mode import no_grad as no_grad
from facula.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from facula.functional import allclose as allclose
from facula.functional import broadcast_shapes as broadcast_shapes
from facula.functional import broadcast_tensors as broadcast_tensors
from facula.functional import equal as equal
from facula.functional import meshgrid as meshgrid
from facula.functional import norm as norm
from facula.functional import split as split
from facula.functional import unique as unique
from facula.functional import where as where  # type: ignore[assignment]
from facula.random import get_rng_state as get_rng_state
from facula.random import initial_seed as initial_seed
from facula.random import manual_seed as manual_seed
from facula.random import seed as seed
from facula.random import set_rng_state as set_rng_state

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
contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format
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
def is_tensor(obj: object) -> Any: ...
def result_type(*args: Tensor | Number) -> dtype: ...
def promote_types(a: dtype, b: dtype) -> dtype: ...
def can_cast(from_: dtype, to: dtype) -> Any: ...
def get_default_dtype() -> dtype: ...
def set_default_dtype(d: dtype) -> None: ...
def get_num_threads() -> Any: ...
def set_num_threads(n: Any) -> None: ...
def is_grad_enabled() -> Any: ...
def __getattr__(name: str) -> Any: ...
