"""Functions and methods that are known to do no more than to return something, by sort."""

from __future__ import annotations

import builtins
import functools
import math
import os
import random
import sys
import time
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import facula
from facula import _C

# What functions may need: the default generators of Facula, Python and NumPy, time without limit.
GENERATOR, TWISTER, ARRAYS_DRAWN, TIME = "generator", "twister", "arrays", "time"
SEEDED = "seeded"  # the generators are begun anew
ASKED = "asked"  # the worker is asked for its seed, or the clock for the time

# Arguments that functions may be given by name: none that is written to or has code of its own.
NAMES = frozenset(
    ("align_corners", "antialias", "axis", "batch_first", "ceil_mode", "copy", "correction")
    + ("count", "decimals", "delimiter", "descending", "dilation", "dim", "dim0", "dim1")
    + ("dims", "dtype", "encoding", "end", "enforce_sorted", "eps", "errors", "fieldnames")
    + ("filename", "fill_value", "high", "index", "indexing", "inplace", "input", "k", "keepdim")
    + ("keepdims", "kernel_size", "largest", "lengths", "loc", "low", "max", "maxsplit")
    + ("mean", "min", "mode", "n", "ndigits", "newline", "norm", "num_classes", "offset")
    + ("order", "other", "output_size", "p", "pad", "padding", "padding_value", "repeats")
    + ("replace", "scale", "scale_factor", "seed", "sep", "shape", "shifts", "size", "src")
    + ("start", "std", "step", "stop", "strict", "stride", "tensors", "unbiased")
    + ("usedforsecurity", "value", "weights")
)

LEGACY_TYPES = (
    "FloatTensor",
    "DoubleTensor",
    "LongTensor",
    "IntTensor",
    "ByteTensor",
    "BoolTensor",
)
_VIEWS = (
    *("atleast_1d", "atleast_2d", "broadcast_to", "contiguous", "cpu", "detach", "diagonal"),
    *("expand", "expand_as", "flatten", "float", "double", "half", "int", "long", "short", "bool"),
    *("byte", "bfloat16", "movedim", "moveaxis", "narrow", "permute", "ravel", "reshape", "select"),
    *("reshape_as", "squeeze", "swapaxes", "swapdims", "t", "to", "transpose", "type_as", "unfold"),
    *("unsqueeze", "view", "view_as", "unflatten"),
)
_COMPUTING = (
    *("abs", "absolute", "acos", "add", "all", "amax", "amin", "angle", "any", "argmax", "argmin"),
    *("argsort", "asin", "atan", "atan2", "bincount", "bitwise_and", "bitwise_not", "bitwise_or"),
    *("bitwise_xor", "bmm", "bucketize", "ceil", "clamp", "clip", "clone", "cos", "cosh"),
    *("count_nonzero", "cross", "cumprod", "cumsum", "deg2rad", "diag", "diff", "div", "divide"),
    *("dot", "eq", "erf", "exp", "exp2", "expm1", "fliplr", "flip", "flipud", "floor"),
    *("floor_divide", "fmod", "frac", "gather", "ge", "greater", "gt", "heaviside", "hypot"),
    *("index_select", "isfinite", "isin", "isinf", "isnan", "le", "lerp", "less", "log", "log10"),
    *("log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp"),
    *("log_softmax", "lt", "masked_fill", "masked_select", "matmul", "maximum", "mean", "minimum"),
    *("mm", "mul", "multiply", "mv", "nan_to_num", "ne", "neg", "negative", "nonzero", "norm"),
    *("outer", "pow", "prod", "rad2deg", "reciprocal", "relu", "remainder", "repeat"),
    *("repeat_interleave", "roll", "rot90", "round", "rsqrt", "scatter", "searchsorted"),
    *("sigmoid", "sign", "sin", "sinc", "sinh", "softmax", "sqrt", "square", "std", "sub"),
    *("subtract", "sum", "take", "tan", "tanh", "tile", "trace", "tril", "triu", "true_divide"),
    *("trunc", "unique", "var", "vdot", "where", "new_zeros", "new_ones", "new_full"),
    *("argwhere", "block_diag", "cdist", "corrcoef", "cov", "float_power", "histc", "index_add"),
    *("index_copy", "index_fill", "inner", "kron", "logaddexp", "nanmean", "nansum", "quantile"),
    *("scatter_add",),
)
_MAKING = (
    *("arange", "eye", "full", "full_like", "linspace", "logspace", "ones", "ones_like", "zeros"),
    *("zeros_like", "tensor", "empty", "empty_like"),
)
_OF_SEVERAL = (
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"),
    "row_stack",
)
_PAIRS = ("aminmax", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "sort", "topk")
_PARTS = ("chunk", "split", "tensor_split", "unbind")
_DRAWN = (
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "normal", "multinomial", "poisson"),
)
_WRITING = (
    *("abs_", "add_", "ceil_", "clamp_", "copy_", "cos_", "div_", "exp_", "fill_", "floor_"),
    *("index_fill_", "log_", "masked_fill_", "mul_", "neg_", "pow_", "round_", "scatter_", "sin_"),
    *("sqrt_", "sub_", "tanh_", "zero_", "squeeze_", "unsqueeze_", "fill_diagonal_"),
    *("clip_", "index_add_", "index_copy_", "relu_", "rsqrt_", "scatter_add_", "sigmoid_"),
    *("square_", "trunc_"),
)
_WRITING_DRAWN = ("bernoulli_", "exponential_", "normal_", "random_", "uniform_")
_NN_FUNCTIONS = (
    *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool1d"),
    *("avg_pool2d", "avg_pool3d", "conv1d", "conv2d", "cosine_similarity", "elu", "interpolate"),
    *("layer_norm", "linear", "max_pool1d", "max_pool2d", "pixel_shuffle", "pixel_unshuffle"),
    *("gelu", "leaky_relu", "log_softmax", "normalize", "one_hot", "pad", "relu", "sigmoid"),
    *("silu", "softmax", "softplus", "tanh"),
)
_ARRAY_VIEWS = (
    *("asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to"),
    *("diag", "diagonal", "diff", "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ravel"),
    *("reshape", "rollaxis", "rot90", "round", "squeeze", "swapaxes", "transpose", "view", "array"),
    "astype",
)
_ARRAY_COMPUTING = (
    *("all", "amax", "amin", "any", "append", "arange", "argmax", "argmin", "argsort", "average"),
    *("bincount", "clip", "concatenate", "copy", "count_nonzero", "cross", "cumprod", "cumsum"),
    *("delete", "dot", "eye", "flatten", "full", "full_like", "gradient"),
    *("hstack", "identity", "inner", "insert", "interp", "isclose", "linspace", "logspace"),
    *("max", "mean", "median", "min", "nanmean", "ones", "ones_like", "outer", "pad"),
    *("percentile", "prod", "ptp", "quantile", "repeat", "roll", "searchsorted"),
    *("stack", "std", "sum", "take", "tile", "trace", "tril", "triu", "unique", "var"),
    *("vstack", "where", "zeros", "zeros_like", "column_stack"),
    *("argwhere", "convolve", "corrcoef", "correlate", "cov", "digitize", "ediff1d", "empty"),
    *("empty_like", "flatnonzero", "intersect1d", "isin", "kron", "lexsort", "nanmax", "nanmedian"),
    *("nanmin", "nanstd", "nansum", "polyval", "setdiff1d", "take_along_axis", "tensordot"),
    *("union1d",),
)
_ARRAY_PARTS = ("array_split", "hsplit", "split", "vsplit")
_SEVERAL_ARRAYS = ("histogram", "meshgrid", "nonzero", "tril_indices", "triu_indices")
_ARRAY_WRITING = ("fill", "sort")  # methods
# Of these an array is also harmless as a third argument, which others may write to.
_THREE_ARRAYS = ("clip", "interp", "where")
_TEXTS = {
    "text": (
        *("capitalize", "lower", "upper", "strip", "lstrip", "rstrip", "title", "replace", "zfill"),
        *("removeprefix", "removesuffix", "swapcase", "casefold", "center", "ljust", "rjust"),
        *("join", "format", "expandtabs"),
    ),
    "bytes": ("encode",),
    "texts": ("split", "rsplit", "splitlines", "partition", "rpartition"),
    "of": (
        *("startswith", "endswith", "isdigit", "isalpha", "isupper", "islower", "count", "find"),
        *("rfind", "index", "isspace", "isnumeric", "isalnum"),
    ),
}
_RANDOM_NUMBERS = (
    *("random", "uniform", "randint", "randrange", "getrandbits", "gauss", "normalvariate"),
    *("triangular", "betavariate", "expovariate", "gammavariate", "lognormvariate"),
    *("vonmisesvariate", "paretovariate", "weibullvariate"),
)
_ARRAY_DRAWN = (
    *("beta", "binomial", "bytes", "chisquare", "choice", "dirichlet", "exponential", "gamma"),
    *("geometric", "gumbel", "integers", "laplace", "logistic", "lognormal", "multinomial"),
    *("multivariate_normal", "normal", "permutation", "poisson", "rand", "randint", "randn"),
    *("random", "random_sample", "ranf", "sample", "standard_normal", "triangular", "uniform"),
)


_STATISTICS = ("fmean", "mean", "median", "mode", "pstdev", "pvariance", "stdev", "variance")
_HASHES = tuple(f"openssl_{n}" for n in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"))
_FOURIER = ("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "rfft", "rfft2")
_OF_BYTES = {  # by module
    "base64": ("b64decode", "b64encode", "decodebytes"),
    "binascii": ("a2b_base64", "a2b_hex", "b2a_hex", "unhexlify"),
    "bz2": ("decompress",),
    "gzip": ("decompress",),
    "lzma": ("decompress",),
    "zlib": ("decompress",),
}


_OF_TENSOR = ("item", "dim", "ndimension", "numel", "nelement")
_OF_TENSOR += ("element_size", "is_complex", "is_contiguous", "is_floating_point")
_OF_MATH = tuple(n for n, f in vars(math).items() if callable(f) and n not in ("frexp", "modf"))


class _Group(NamedTuple):
    """Functions of one sort: where they are found, under which names."""

    sort: str
    owners: tuple[Callable[[], Any], ...]
    names: frozenset[str]


def _facula() -> Any:
    return facula


def _tensor() -> Any:
    return facula.Tensor


def _numpy() -> Any:
    return numpy


def _array() -> Any:
    return numpy.ndarray


def _loaded(name: str) -> Callable[[], Any]:
    """A module, None where the program has not imported it."""
    return lambda: sys.modules.get(name)


def _nn_functional() -> Any:
    return facula.nn.functional


_BOTH = (_facula, _tensor)
_ARRAY_BOTH = (_numpy, _array)
_GROUPS = [
    _Group(sort, owners if isinstance(owners, tuple) else (owners,), frozenset(names))
    for sort, owners, names in (
        (
            "number",
            lambda: builtins,
            ("int", "float", "bool", "abs", "round", "pow", "divmod", "ord"),
        ),
        ("number", lambda: math, _OF_MATH),
        ("clock", lambda: time, ("time", "perf_counter", "monotonic", "time_ns")),
        ("text", lambda: builtins, ("str", "chr", "repr", "hex", "bin", "oct")),
        ("length", lambda: builtins, ("len",)),
        ("type", lambda: builtins, ("type",)),
        ("instance", lambda: builtins, ("isinstance",)),
        ("attribute", lambda: builtins, ("getattr",)),
        ("has attribute", lambda: builtins, ("hasattr",)),
        ("file", lambda: builtins, ("open",)),
        ("path text", lambda: os.path, ("join", "basename", "dirname")),
        ("path texts", lambda: os.path, ("split", "splitext")),
        ("formatted", lambda: builtins, ("format",)),
        ("ordered", _loaded("bisect"), ("bisect", "bisect_left", "bisect_right")),
        ("nested of text", _loaded("json"), ("loads",)),
        ("nested of keys", _loaded("collections"), ("Counter",)),
        ("hash", lambda: builtins, ("hash",)),
        ("pickled", _loaded("pickle"), ("dumps",)),
        ("numbers of bytes", _loaded("struct"), ("unpack", "unpack_from")),
        *(("bytes", _loaded(module), names) for module, names in _OF_BYTES.items()),
        ("texts of pattern", _loaded("re"), ("findall", "split")),
        ("text of pattern", _loaded("re"), ("sub",)),
        ("match of pattern", _loaded("re"), ("fullmatch", "match", "search")),
        ("matches of pattern", _loaded("re"), ("finditer",)),
        ("numbers in order", _loaded("heapq"), ("nlargest", "nsmallest")),
        ("number of numbers", _loaded("statistics"), _STATISTICS),
        ("text of place", lambda: os, ("fspath",)),
        ("of place", lambda: os.path, ("exists", "getsize", "isdir", "isfile")),
        ("stream", _loaded("io"), ("BytesIO", "StringIO")),
        ("rows of text", _loaded("csv"), ("DictReader", "reader")),
        ("hash object", _loaded("_hashlib"), _HASHES),
        ("hash object", _loaded("_blake2"), ("blake2b", "blake2s")),
        ("batch", lambda: facula.utils.data, ("default_collate", "default_convert")),
        ("array of file", _numpy, ("load",)),
        ("array of bytes", _numpy, ("frombuffer",)),
        ("is tensor", _facula, ("is_tensor",)),
        ("worker", lambda: facula.utils.data, ("get_worker_info",)),
        ("no gradient", _facula, ("no_grad", "inference_mode", "enable_grad")),
        ("tensor over", _facula, ("as_tensor", "from_numpy")),
        ("tensor of", _facula, ("tensor", *LEGACY_TYPES)),
        ("view", _BOTH, _VIEWS),
        ("tensor", _BOTH, _COMPUTING),
        ("tensor", _facula, _MAKING + _OF_SEVERAL),
        ("tensor from nn", _nn_functional, _NN_FUNCTIONS),
        ("tensor", lambda: facula.nn.utils.rnn, ("pad_sequence",)),
        ("tensor", _loaded("facula.fft"), (*_FOURIER, "fftshift", "ifftshift", "fftfreq")),
        ("array", _loaded("numpy.fft"), (*_FOURIER, "fftshift", "ifftshift", "fftfreq")),
        ("tensor", lambda: facula.linalg, ("det", "inv", "norm", "pinv", "solve", "vector_norm")),
        ("contraction", _facula, ("einsum",)),
        ("dtype", _facula, ("get_default_dtype",)),
        ("grid", _facula, ("meshgrid",)),
        ("packed", lambda: facula.nn.utils.rnn, ("pack_padded_sequence", "pack_sequence")),
        ("pair", _BOTH, _PAIRS),
        ("parts", _BOTH, _PARTS),
        ("of tensor", _tensor, _OF_TENSOR),
        ("of tensor", _facula, ("allclose", "equal", "numel")),
        ("shape", _tensor, ("size", "stride")),
        ("list of tensor", _tensor, ("tolist",)),
        ("array of tensor", _tensor, ("numpy",)),
        ("drawn", _facula, _DRAWN),
        ("drawn", _tensor, ("bernoulli", "multinomial")),
        ("writes", _tensor, _WRITING),
        ("writes drawn", _tensor, _WRITING_DRAWN),
        ("array view", _ARRAY_BOTH, _ARRAY_VIEWS),
        ("three arrays", _ARRAY_BOTH, _THREE_ARRAYS),
        ("array", _ARRAY_BOTH, _ARRAY_COMPUTING),
        ("array", _numpy, ("sort",)),
        ("array", _loaded("numpy.linalg"), ("det", "inv", "norm", "pinv", "solve")),
        ("array parts", _numpy, _ARRAY_PARTS),
        ("several arrays", _ARRAY_BOTH, _SEVERAL_ARRAYS),
        ("array without nan", _numpy, ("nan_to_num",)),
        ("array of text", _numpy, ("fromstring",)),
        ("array of place", _numpy, ("memmap",)),
        ("writes array", _array, _ARRAY_WRITING),
        ("bytes of array", _array, ("tobytes",)),
        ("arrays shuffled", lambda: numpy.random, ("shuffle",)),
        ("of array", _numpy, ("allclose", "array_equal")),
        ("of array", _array, ("item",)),
        ("of array", _numpy, ("shape", "size", "ndim")),
        ("list of array", _array, ("tolist",)),
        ("of twister", lambda: random, _RANDOM_NUMBERS),
        ("choice", lambda: random, ("choice",)),
        ("choices", lambda: random, ("choices", "sample")),
        ("shuffle", lambda: random, ("shuffle",)),
        ("arrays drawn", lambda: numpy.random, _ARRAY_DRAWN),
        ("seeds", lambda: random, ("seed",)),
        ("seeds generator", _facula, ("manual_seed",)),
        ("state of generator", _facula, ("get_rng_state",)),
        ("sets generator", _facula, ("set_rng_state",)),
        ("first seed", _facula, ("initial_seed",)),
        ("generator", _facula, ("Generator",)),
        ("twister", lambda: random, ("Random",)),
        ("array generator", lambda: numpy.random, ("RandomState",)),
        *((f"text {kind}", lambda: str, names) for kind, names in _TEXTS.items()),
    )
]
# To ask an object of another type for its name might run code.
_WITH_NAMES = (
    *(types.BuiltinFunctionType, types.FunctionType, types.MethodType, types.MethodDescriptorType),
    *(type, type(facula.Tensor), type(facula.FloatTensor), numpy.ufunc, type(numpy.sum)),
    *(_C.OperatorFunction, _C.OperatorMethod),
)
_found: dict[int, tuple[str, Any]] = {}


@functools.cache
def finds_twister() -> bool:
    """Whether a worker's twister can stand in for the one of the module ``random``."""
    return bool(_C._find_twister(random._inst))  # type: ignore[attr-defined]


def _is_own(sort: str, called: Any) -> bool:
    """Whether what draws numbers is a method of the module's generator, and not the program's."""
    owner = getattr(called, "__self__", None)
    if sort == "seeds":
        is_own = owner is getattr(random, "_inst", random)
        return is_own and (not finds_twister() or bool(_C._bind_twister(called)))
    if sort in ("of twister", "choice", "choices", "shuffle"):
        return finds_twister() and bool(_C._bind_twister(called))
    if sort in ("arrays drawn", "arrays shuffled"):
        return owner is numpy.random.mtrand._rand
    return True


def _find_in_numpy_random(called: Any) -> str:
    """Functions that Cython has made have types of their own."""
    if called is numpy.random.seed:
        return "seeds"
    return "array generator" if called is numpy.random.default_rng else ""


def _find(called: Any) -> str:
    if type(called) not in _WITH_NAMES:
        return _find_in_numpy_random(called) if "numpy.random" in sys.modules else ""
    name = called.__name__
    if type(called) is numpy.ufunc:
        return "ufunc" if vars(numpy).get(name) is called else ""
    if isinstance(called, type) and issubclass(called, (numpy.number, numpy.bool_)):
        return "scalar" if called.__module__ == "numpy" else ""
    for sort, owners, names in _GROUPS:
        if name in names and any(getattr(o(), name, None) is called for o in owners):
            return sort if _is_own(sort, called) else ""
    return ""


def sort_of(called: Any) -> str:
    """The sort of a known function; nothing for others."""
    found = _found.get(id(called))
    if found is None:
        found = _find(called), called
        if found[0]:  # others may be gone, and their place taken
            _found[id(called)] = found
    return found[0]


TENSOR_METHODS = frozenset(
    _VIEWS
    + _COMPUTING
    + _PAIRS
    + _PARTS
    + _OF_TENSOR
    + ("size", "stride", "tolist", "numpy")
    + ("bernoulli", "multinomial")
    + _WRITING
    + _WRITING_DRAWN
)
READING_TENSOR_METHODS = TENSOR_METHODS.difference(
    ("bernoulli", "multinomial"), _WRITING, _WRITING_DRAWN
)
ARRAY_METHODS = frozenset(_ARRAY_VIEWS + _ARRAY_COMPUTING + ("item", "tolist"))
ARRAY_METHODS_OF_ALL = ARRAY_METHODS.union(_ARRAY_WRITING, ("nonzero", "tobytes"))
TEXT_METHODS = frozenset(name for names in _TEXTS.values() for name in names)
RANDOM_METHODS = frozenset(_RANDOM_NUMBERS + ("choice", "choices", "sample", "shuffle"))
ARRAY_RANDOM_METHODS = frozenset((*_ARRAY_DRAWN, "shuffle"))
