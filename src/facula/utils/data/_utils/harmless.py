"""Functions and methods that are known to do no more than to return something, by sort."""

from __future__ import annotations

import functools
import math
import random
import time
from typing import Any

import numpy

import facula

# What functions may need: the default generators of Facula, Python and NumPy, time without limit.
GENERATOR, TWISTER, ARRAYS_DRAWN, TIME = "generator", "twister", "arrays", "time"

# Arguments that functions may be given by name: none that is written to or has code of its own.
NAMES = frozenset(
    ("axis", "copy", "correction", "decimals", "dim", "dim0", "dim1", "dims", "dtype", "end")
    + ("fill_value", "high", "input", "k", "keepdim", "keepdims", "loc", "low", "max", "mean")
    + ("min", "n", "ndigits", "num_classes", "other", "p", "pad", "repeats", "replace", "scale")
    + ("seed", "shape", "shifts", "size", "start", "std", "step", "stop", "strict", "tensors")
    + ("unbiased", "value", "weights")
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
    *("abs", "absolute", "acos", "add", "all", "amax", "amin", "any", "argmax", "argmin"),
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
    *("trunc", "var", "vdot", "where", "new_zeros", "new_ones", "new_full"),
)
_MAKING = (
    *("arange", "eye", "full", "full_like", "linspace", "logspace", "ones", "ones_like", "zeros"),
    *("zeros_like", "tensor"),
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
)
_WRITING_DRAWN = ("bernoulli_", "exponential_", "normal_", "random_", "uniform_")
_OF_NUMBERS = (int, float, bool, abs, round, pow, divmod)
_NN_FUNCTIONS = (
    *("gelu", "leaky_relu", "log_softmax", "normalize", "one_hot", "pad", "relu", "sigmoid"),
    *("silu", "softmax", "softplus", "tanh"),
)
_ARRAY_VIEWS = (
    *("asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to"),
    *("diag", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ravel"),
    *("reshape", "rollaxis", "rot90", "squeeze", "swapaxes", "transpose", "view", "array"),
    "astype",
)
_ARRAY_COMPUTING = (
    *("all", "amax", "amin", "any", "append", "arange", "argmax", "argmin", "argsort", "average"),
    *("bincount", "clip", "concatenate", "copy", "count_nonzero", "cross", "cumprod", "cumsum"),
    *("delete", "diff", "dot", "eye", "flatten", "full", "full_like", "gradient"),
    *("hstack", "identity", "inner", "insert", "interp", "isclose", "linspace", "logspace"),
    *("max", "mean", "median", "min", "nanmean", "ones", "ones_like", "outer", "pad"),
    *("percentile", "prod", "ptp", "quantile", "repeat", "roll", "round", "searchsorted"),
    *("stack", "std", "sum", "take", "tile", "trace", "tril", "triu", "unique", "var"),
    *("vstack", "where", "zeros", "zeros_like", "column_stack"),
)
# Of these an array is also harmless as a third argument, which others may write to.
_THREE_ARRAYS = ("clip", "interp", "where")
_TEXT_METHODS = {
    **dict.fromkeys(("capitalize", "lower", "upper", "strip", "lstrip", "rstrip", "title"), "text"),
    **dict.fromkeys(("replace", "zfill", "removeprefix", "removesuffix", "swapcase"), "text"),
    **dict.fromkeys(("casefold", "center", "ljust", "rjust", "join"), "text"),
    **dict.fromkeys(("split", "rsplit", "splitlines", "partition", "rpartition"), "texts"),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha", "isupper", "islower"), "of"),
    **dict.fromkeys(("count", "find", "rfind", "index", "isspace", "isnumeric", "isalnum"), "of"),
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


def _methods_of(owner: Any, names: Any) -> list[Any]:
    """Those of a module that are methods of an object, and not the program's own."""
    shared = getattr(owner, "_inst", None) or numpy.random.mtrand._rand
    found = [getattr(owner, name, None) for name in names]
    return [f for f in found if getattr(f, "__self__", None) is shared]


def _of(owner: Any, *lists: Any) -> list[Any]:
    """What a module or class has of its own under these names."""
    found = [getattr(owner, name, None) for names in lists for name in names]
    return [f for f in found if callable(f)]


@functools.cache
def known_functions() -> dict[int, tuple[str, Any]]:
    """By their identity, what sort they are of, and they themselves."""
    tensor = facula.Tensor
    plain = ("frexp", "modf")  # which give pairs
    of_math = [f for n, f in vars(math).items() if callable(f) and n not in plain]
    ufuncs = [f for f in vars(numpy).values() if type(f) is numpy.ufunc]
    sorts = {
        "number": (*_OF_NUMBERS, *of_math, ord),
        "clock": (time.time, time.perf_counter, time.monotonic, time.time_ns),
        "least": (min, max),
        "text": (str, chr, repr, hex, bin, oct),
        "length": (len,),
        "type": (type,),
        "instance": (isinstance,),
        "is tensor": (facula.is_tensor,),
        "attribute": (getattr,),
        "worker": (facula.utils.data.get_worker_info,),
        "no gradient": (facula.no_grad, facula.inference_mode, facula.enable_grad),
        "tensor over": (facula.as_tensor, facula.from_numpy),
        "tensor of": (facula.tensor, *_of(facula, LEGACY_TYPES)),
        "view": [*_of(facula, _VIEWS), *_of(tensor, _VIEWS)],
        "tensor": _of(facula, _COMPUTING, _MAKING, _OF_SEVERAL) + _of(tensor, _COMPUTING),
        "tensor from nn": _of(facula.nn.functional, _NN_FUNCTIONS),
        "pair": [*_of(facula, _PAIRS), *_of(tensor, _PAIRS)],
        "parts": [*_of(facula, _PARTS), *_of(tensor, _PARTS)],
        "of tensor": _of(tensor, ("item", "dim", "ndimension", "numel", "nelement"))
        + _of(facula, ("allclose", "equal", "numel")),
        "shape": _of(tensor, ("size", "stride")),
        "list of tensor": _of(tensor, ("tolist",)),
        "array of tensor": _of(tensor, ("numpy",)),
        "drawn": [*_of(facula, _DRAWN), *_of(tensor, ("bernoulli", "multinomial"))],
        "writes": _of(tensor, _WRITING),
        "writes drawn": _of(tensor, _WRITING_DRAWN),
        "array view": [*_of(numpy, _ARRAY_VIEWS), *_of(numpy.ndarray, _ARRAY_VIEWS)],
        "ufunc": ufuncs,
        "three arrays": [*_of(numpy, _THREE_ARRAYS), *_of(numpy.ndarray, _THREE_ARRAYS)],
        "array": _of(numpy, _ARRAY_COMPUTING, ("sort",)) + _of(numpy.ndarray, _ARRAY_COMPUTING),
        "scalar": [t for t in vars(numpy).values() if _is_scalar_type(t)],
        "of array": _of(numpy.ndarray, ("item",)) + _of(numpy, ("shape", "size", "ndim")),
        "list of array": _of(numpy.ndarray, ("tolist",)),
        "of twister": _methods_of(random, _RANDOM_NUMBERS),
        "choice": _methods_of(random, ("choice",)),
        "choices": _methods_of(random, ("choices", "sample")),
        "shuffle": _methods_of(random, ("shuffle",)),
        "arrays drawn": _methods_of(numpy.random, _ARRAY_DRAWN),
        "generator": (facula.Generator,),
        "twister": (random.Random,),
        "array generator": (numpy.random.default_rng, numpy.random.RandomState),
        **{f"text {kind}": _texts(kind) for kind in ("text", "texts", "of")},
    }
    known: dict[int, tuple[str, Any]] = {}
    for sort, functions in sorts.items():
        for f in functions:
            known.setdefault(id(f), (sort, f))
    return known


def _is_scalar_type(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, (numpy.number, numpy.bool_))


def _texts(kind: str) -> list[Any]:
    return [getattr(str, name) for name, found in _TEXT_METHODS.items() if found == kind]


TENSOR_METHODS = frozenset(
    _VIEWS
    + _COMPUTING
    + _PAIRS
    + _PARTS
    + ("item", "dim", "ndimension", "numel", "nelement", "size", "stride", "tolist", "numpy")
    + ("bernoulli", "multinomial")
    + _WRITING
    + _WRITING_DRAWN
)
ARRAY_METHODS = frozenset(_ARRAY_VIEWS + _ARRAY_COMPUTING + ("item", "tolist"))
TEXT_METHODS = frozenset(_TEXT_METHODS)
RANDOM_METHODS = frozenset(_RANDOM_NUMBERS + ("choice", "choices", "sample"))
ARRAY_RANDOM_METHODS = frozenset(_ARRAY_DRAWN)
