"""The one list of derived tests that are known to fail, and of tolerances wider than the rest.

Every entry has a reason. An entry that names no row, or whose case passes, fails the tests; so
does an entry too many: MOST_SKIPS only ever goes down without a reason given in review.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    "example",
    "error",
)


@dataclass(frozen=True)
class Skip:
    row: str  # name.overload
    kind: str
    dtypes: str  # separated by blanks, "*" for all
    reason: str
    sample: str = ""  # one sample only
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
    *("isnan", "isinf", "isfinite", "signbit"),
    *("any", "any.dim", "all", "all.dim"),
    *("argmax", "argmin", "argsort", "nonzero", "argwhere", "count_nonzero"),
    *("searchsorted", "bucketize", "bincount", "histc"),
    "floor_divide",
}

# The shape of the result depends on values, which the meta device does not have.
DATA_DEPENDENT = {"nonzero", "argwhere", "masked_select", "bincount"}

SKIPS: list[Skip] = []

_TERMS = "the error of a sum goes with the magnitude of its terms, not of the sum"
TOLERANCES: list[Tolerance] = [
    *(
        Tolerance(row, "float32 complex64", 2e-6, 4e-5, _TERMS)
        for row in ("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "matmul", "sum.dim", "cumsum")
    ),
    Tolerance("sum", "float32 complex64", 2e-6, 1e-3, _TERMS),
]

MOST_SKIPS = 0


def find_skip(row: str, kind: str, dtype: str, sample: str = "") -> Skip | None:
    for skip in SKIPS:
        if (skip.row, skip.kind, skip.sample) == (row, kind, sample) and skip.covers(dtype):
            return skip
    return None


def tolerance_of(row: str, dtype: str) -> tuple[float, float]:
    for tolerance in TOLERANCES:
        if tolerance.row == row and tolerance.covers(dtype):
            return tolerance.rtol, tolerance.atol
    return TOLERANCES_BY_DTYPE[dtype]
