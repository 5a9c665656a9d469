"""The one list of derived tests that are known to fail, and of tolerances wider than the rest.

Every entry has a reason. An entry that names no row, or whose case passes, fails the tests; so
does an entry too many: MOST_SKIPS only ever goes down without a reason given in review.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

# kinds of derived tests, one for each test file or part of one
KINDS = (
    "forward",
    "torch",
    "torch gradient",
    "gradient",
    "second gradient",
    "method",
    "in-place",
    "out",
    "meta",
    "vmap",
    "forward mode",
    "example",
    "error",
)


@dataclass(frozen=True)
class Skip:
    row: str  # name.overload
    kind: str
    dtypes: str  # separated by blanks, "*" for all
    reason: str
    sample: str = ""  # only samples of this name; * stands for any text
    run: bool = True  # False where running it would end the process

    def covers(self, dtype: str) -> bool:
        return self.dtypes == "*" or dtype in self.dtypes.split()


@dataclass(frozen=True)
class Tolerance:
    row: str
    dtypes: str
    rtol: float
    atol: float
    reason: str

    def covers(self, dtype: str) -> bool:
        return self.dtypes == "*" or dtype in self.dtypes.split()


# dtype -> (rtol, atol): a few units in the last place, and as much near zero
TOLERANCES_BY_DTYPE = {
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
    "float32": (2e-6, 2e-6),
    "float64": (1e-12, 1e-12),
    "complex64": (4e-6, 4e-6),
    "complex128": (2e-12, 2e-12),
}

# Rows whose floating-point inputs have no derivative: truth values, positions, counts, steps.
NO_DERIVATIVE = {
    *("eq", "ne", "lt", "le", "gt", "ge", "isclose", "isin"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"),
    *("any", "any.dim", "all", "all.dim"),
    *("argmax", "argmin", "argsort", "nonzero", "argwhere", "count_nonzero"),
    *("searchsorted", "bucketize", "bincount", "histc", "histogram", "histogram.edges"),
    "nonzero_static",
    "floor_divide",
    "linalg_matrix_rank",
    *("linalg_matrix_rank.numbers", "linalg_matrix_rank.tol", "linalg_matrix_rank.tol_number"),
}

# The shape of the result depends on values, which the meta device does not have.
DATA_DEPENDENT = {
    *("nonzero", "argwhere", "masked_select", "bincount"),
    *("repeat_interleave.each", "repeat_interleave.positions"),
}

_REAL = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64"
_COMPLEX = "complex64 complex128"
_FLOATS = "float32 float64"
_SPECIAL = "special values"
_TINY = "PyTorch: 300 modulo the smallest normal number is NaN; it is 0"
_NAN_SIGN = "PyTorch's conversion from float32 turns a positive NaN into a negative one"
_ONE_TRIANGLE = "PyTorch's gradient also fills the triangle that is not read"
_REAL_DIAGONAL = "PyTorch's gradient follows an imaginary part of the diagonal, which is real"

SKIPS: list[Skip] = [
    # ---- where PyTorch is less exact, or leaves it open
    Skip("remainder", "torch", "float32 bfloat16", _TINY, "special values"),
    Skip("fmod", "torch", "float32 bfloat16", _TINY, "special values"),
    Skip("index_add", "torch gradient", _COMPLEX, "PyTorch does not conjugate alpha", "alpha"),
    Skip("digamma", "torch gradient", "float64", "PyTorch's trigamma is good to 1e-9 only"),
    Skip("digamma", "torch gradient", "float32", "PyTorch's is finite at a pole", "special values"),
    Skip("matrix_exp", "torch", "float16 bfloat16", "PyTorch's is NaN for half precision"),
    Skip("linalg_matrix_exp", "torch", "float16 bfloat16", "PyTorch's is NaN for half precision"),
    Skip("signbit", "torch", "bfloat16", _NAN_SIGN, "special values"),
    Skip("copysign", "torch", "bfloat16", _NAN_SIGN, "special values"),
    Skip(
        "acosh",
        "torch gradient",
        "float32 float64",
        "outside of its domain, where the result is NaN and no gradient is right",
        "special values",
    ),
    Skip("cholesky_solve", "torch gradient", "*", _ONE_TRIANGLE),
    Skip("cholesky_inverse", "torch gradient", "*", _ONE_TRIANGLE),
    Skip("linalg_cholesky", "torch gradient", _COMPLEX, _REAL_DIAGONAL),
    Skip("linalg_cholesky_ex", "torch gradient", _COMPLEX, _REAL_DIAGONAL),
    Skip("cholesky", "torch gradient", _COMPLEX, _REAL_DIAGONAL),
    # ---- where Facula computes at once what PyTorch delays
    Skip(
        "as_strided_scatter",
        "torch gradient",
        "*",
        "PyTorch gives the gradient to the elements that were overwritten, not to the others",
    ),
    Skip(
        "gcd", "torch", "int64", "PyTorch keeps the sign of the smallest integer", "extreme values"
    ),
    # ---- results that are no numbers of the input's kind
    *(
        Skip(
            "float_power",
            kind,
            "*",
            "the result is float64 or complex128: in place it is refused",
            run=False,
        )
        for kind in ("in-place", "error")
    ),
    Skip(
        "polygamma", "error", "*", "its first argument is the number of the derivative", run=False
    ),
    Skip("nextafter", "forward", "float16 float32", "NumPy steps in float64 here", run=False),
    Skip(
        "nan_to_num",
        "forward",
        "float16 float32 complex64",
        "NumPy has float64's limits",
        run=False,
    ),
    # ---- special functions where PyTorch's own numbers are inexact
    *(
        Skip(row, "torch", dtypes, "PyTorch gives NaN for infinity, which has a limit", _SPECIAL)
        for row, dtypes in (
            ("i0", "float16 bfloat16 float32 float64"),
            ("special_i1", "float16 float32 float64"),
        )
    ),
    *(
        Skip(row, "torch", dtypes, "PyTorch gives a number for an order that is NaN", _SPECIAL)
        for row, dtypes in (
            ("igamma", "bfloat16 float32 float64"),
            ("igammac", "float32 float64"),
            ("special_zeta", "float32 float64"),
        )
    ),
    Skip("special_zeta", "torch", "int64", "PyTorch gives NaN for large orders", "extreme values"),
    Skip("ldexp", "torch", "bfloat16 float32", "PyTorch multiplies infinity by 0", _SPECIAL),
    Skip("ldexp", "torch", "int64", "PyTorch multiplies infinity by 0", "extreme values"),
    Skip("ldexp", "torch gradient", _FLOATS, "PyTorch takes 2**-1 to be 0", "another dtype"),
    Skip(
        "polygamma",
        "torch",
        "float16 bfloat16 float32",
        "PyTorch gives NaN at infinity",
        _SPECIAL + ", order [23]",
    ),
    Skip(
        "polygamma", "torch", "float64", "PyTorch has 9 digits of the first order", "*", run=False
    ),
    *(
        Skip(f"special_{name}", "torch", "*", "PyTorch has 6 to 10 digits", "*", run=False)
        for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai")
    ),
    *(
        Skip(row, "torch gradient", _FLOATS, "PyTorch's formula has no limit there", _SPECIAL)
        for row in ("i0", "special_i1", "special_i1e", "special_log_ndtr", "special_zeta")
    ),
    Skip("polygamma", "torch gradient", _FLOATS, "PyTorch has 9 digits", "*", run=False),
    # ---- layouts that PyTorch's way of computing happens to give
    Skip("rsub", "torch", "*", "PyTorch swaps the operands; the first one lays out", "two layouts"),
    Skip("angle", "torch", _COMPLEX, "PyTorch makes complex angles contiguous", "*transposed"),
    Skip("angle", "torch", _COMPLEX, "PyTorch makes complex angles contiguous", "channels last"),
]

_TERMS = "the error of a sum goes with the magnitude of its terms, not of the sum"
_SPREAD = "the error goes with the norm of the matrix, and of vectors with close neighbours"
TOLERANCES: list[Tolerance] = [
    *(
        Tolerance(row, "float32 complex64", 2e-6, 4e-5 if row != "dot" else 5e-4, _TERMS)
        for row in ("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "matmul", "sum.dim", "cumsum")
    ),
    *(
        Tolerance(row, "float16 bfloat16", 2e-2, 4e-2, "each step of several is rounded")
        for row in (
            "gradient.coordinates",
            "cumulative_trapezoid.x",
            "trapezoid.x",
            "cov",
            "triplet_margin_loss.functional",
        )
    ),
    Tolerance("sum", "float32 complex64", 2e-6, 1e-3, _TERMS),
    *(
        Tolerance(f"fft_{inverse}{name}{dims}", "float32 complex64", 2e-6, 4e-4, _TERMS)
        for inverse in ("", "i")
        for name in ("fft", "rfft", "hfft")
        for dims in ("", "2", "n")
    ),
    *(Tolerance(row, "float32 complex64", 2e-6, 2e-5, _TERMS) for row in ("stft", "istft")),
    *(
        Tolerance(f"conv{kind}{n}d{how}", dtypes, rtol, atol, _TERMS)
        for n in (1, 2, 3)
        for kind, how in (("", ""), ("", ".padding"), ("_transpose", ""))
        for dtypes, rtol, atol in (("float32", 2e-6, 8e-5), ("float16", 2e-3, 1.6e-2))
    ),
    *(
        Tolerance(row, "float32 complex64", 2e-6, 4e-5, _TERMS)
        for row in ("einsum", "tensordot", "addmv", "addbmm", "chain_matmul", "linalg_multi_dot")
    ),
    *(
        Tolerance(row, "float32 complex64", 2e-5, 4e-5, _SPREAD)
        for row in ("linalg_svd", "linalg_svdvals", "svd", "linalg_eigh", "linalg_eigvalsh")
    ),
    *(
        Tolerance(row, "float32", 1e-5, 2e-5, "coordinates are computed in float32")
        for row in ("_interpolate", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
    ),
    *(
        Tolerance(row, "float32 complex64", 2e-4, 4e-4, _SPREAD)
        for row in ("linalg_eig", "linalg_eigvals")
    ),
    *(
        Tolerance(row, "float64", 1e-7, 1e-7, "PyTorch holds a constant in float32")
        for row in ("hardsigmoid", "celu", "binary_cross_entropy")
    ),
]

MOST_SKIPS = 52


def find_skip(row: str, kind: str, dtype: str, sample: str = "") -> Skip | None:
    for skip in SKIPS:
        if (skip.row, skip.kind) != (row, kind) or not skip.covers(dtype):
            continue
        if fnmatchcase(sample, skip.sample) if skip.sample else not sample:
            return skip
    return None


def tolerance_of(row: str, dtype: str) -> tuple[float, float]:
    for tolerance in TOLERANCES:
        if tolerance.row == row and tolerance.covers(dtype):
            return tolerance.rtol, tolerance.atol
    return TOLERANCES_BY_DTYPE[dtype]


# Rows that vmap calls once for each element of a batch, and why no rule does better.
_COUNTS = "the edges may be those of each element's own data, and how many lie in a bin is counted"
_STATE = "each call moves a state that the next one starts from"
_STEPS = "not reached: under vmap the layer runs as steps of operators that have rules"
LOOPS = {
    "bincount": _COUNTS,
    "histc": _COUNTS,
    "histogram": _COUNTS,
    "histogram.edges": _COUNTS,
    "_histogramdd": _COUNTS,
    "_histogramdd.edges": _COUNTS,
    "_sobol_engine_draw": _STATE,
    "_sobol_engine_ff": _STATE,
    "_sobol_engine_scramble": _STATE,
    "_recurrent_layer": _STEPS,
    "_recurrent_backward": _STEPS,
}
