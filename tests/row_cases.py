"""The cases that the derived tests are parametrised by, and what they share.

A case is a row of the operator table and a dtype. A test runs all samples of its case and reports
every one that fails; tests/skips.py says which are known to.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the table and its generator

from operands import COMPLEX_OF, LETTER, REAL_OF, Operand, Sample
from package_under_test import IS_FACULA, F
from references import BY_ROW, REFERENCES
from samples import generator_of, has_samples, row_id, sampled_dtypes
from skips import TOLERANCES_BY_DTYPE, find_skip, tolerance_of
from users_of_images import USERS_OF_IMAGES

from gen.rows import Row, load_table

ROWS = load_table()
PUBLIC = [r for r in ROWS if r.python and not r.python.startswith("_")]
# PyTorch has no arithmetic for these; when the tests run against it, they leave them out.
HOLES_OF_PYTORCH = () if IS_FACULA else ("uint16", "uint32", "uint64")


def _brackets(self: Any, indices: Any) -> Any:
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _sliced(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    key = [slice(None)] * self.dim()
    key[dim] = slice(start, end, step)
    return self[tuple(key)]


# Rows without a public name of their own: how users reach them.
USERS: dict[str, Callable[..., Any]] = {
    "index": _brackets,
    "slice": _sliced,
    "_split": lambda self, split_size, dim=0: self.split(split_size, dim),
    "alias": lambda self: self.view_as(self),
    "_conj": lambda self: self.conj(),
}
# The same for rows that users reach through a function of the package.
FUNCTIONS_OF_USERS: dict[str, Callable[..., Any]] = {
    "einsum": lambda package, equation, tensors: package.einsum(equation, *tensors),
    "tensordot": lambda package, a, b, dims_a, dims_b: package.tensordot(a, b, (dims_a, dims_b)),
    "chain_matmul": lambda package, matrices: package.chain_matmul(*matrices),
    "block_diag": lambda package, tensors: package.block_diag(*tensors),
    **USERS_OF_IMAGES,
}


# Rows whose in-place form refuses all but the widest dtypes, as their results are of those.
REFUSE_IN_PLACE = {"float_power"}

# Rows that take their first argument for Hermitian and read half of it.
HERMITIAN = {"linalg_eigh", "linalg_eigvalsh", "linalg_cholesky", "linalg_cholesky_ex", "cholesky"}


def _has_known_samples(row: Row) -> bool:
    try:
        generator_of(row)
    except LookupError:
        return False  # test_rows_table.py reports it
    return True


SAMPLED = [r for r in ROWS if has_samples(r) and _has_known_samples(r)]


def attribute(package: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        package = getattr(package, part)
    return package


def callable_of(row: Row, package: Any = F) -> Callable[..., Any]:
    """The operator as a function of all its arguments, by whichever variant exists."""
    if row_id(row) in USERS:
        return USERS[row_id(row)]
    if row_id(row) in FUNCTIONS_OF_USERS:
        return functools.partial(FUNCTIONS_OF_USERS[row_id(row)], package)
    if row.function:
        return attribute(package, row.python)
    return method_of(row)


def method_of(row: Row, name: str | None = None) -> Callable[..., Any]:
    name = name or row.python.rpartition(".")[2]
    return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)


def result_fits(row: Row, self_operand: Operand, result: Any) -> bool:
    """Whether the form in place may write this result over its first operand."""
    dtype = getattr(F, self_operand.dtype)
    # Real results are not written over complex numbers, nor running sums over another precision.
    keeps_dtype = dtype.is_complex or row.name == "cumsum"
    if keeps_dtype and result.dtype.is_floating_point and result.dtype != dtype:
        return False
    return tuple(result.shape) == self_operand.shape and F.can_cast(result.dtype, dtype)


def cases(rows: Iterable[Row] = SAMPLED, only: Iterable[str] | None = None) -> list[Any]:
    """pytest parameters (row, dtype) for all dtypes of the rows, or for those in `only`."""
    return [
        pytest.param(row, dtype, id=f"{row_id(row)}-{dtype}")
        for row in rows
        for dtype in sampled_dtypes(row)
        if dtype not in HOLES_OF_PYTORCH and (only is None or dtype in only)
    ]


def row_cases(rows: Iterable[Row]) -> list[Any]:
    return [pytest.param(row, id=row_id(row)) for row in rows]


# ---- running samples

FAILURES = (Exception, pytest.fail.Exception)  # pytest.raises fails with the latter


class NothingToCompareError(Exception):
    """The other side refuses a sample, so that it neither passes nor fails."""


@contextmanager
def skips_allowed(row: Row, kind: str, dtype: str = "", sample: str = "") -> Iterator[None]:
    """Fails when the body passes although tests/skips.py says that it does not."""
    skip = find_skip(row_id(row), kind, dtype, sample)
    if skip is None:
        yield
        return
    if not skip.run:
        pytest.skip(skip.reason)
    try:
        yield
    except NothingToCompareError:
        raise
    except FAILURES:
        if not sample:
            pytest.xfail(skip.reason)
        return
    if IS_FACULA:
        raise AssertionError(f"{skip} is in tests/skips.py, but passes: remove the entry")


def check_samples(
    row: Row, kind: str, dtype: str, samples: Iterable[Sample], check: Callable[[Sample], None]
) -> None:
    """Runs `check` on every sample and reports all that fail."""
    failures = []
    with skips_allowed(row, kind, dtype), np.errstate(all="ignore"):
        for sample in samples:
            try:
                with skips_allowed(row, kind, dtype, sample.name):
                    check(sample)
            except NothingToCompareError:
                continue
            except FAILURES as error:
                if not IS_FACULA and _is_limit_of_pytorch(error):
                    continue
                known = isinstance(error, (AssertionError, pytest.fail.Exception))
                text = str(error) if known else repr(error)
                failures.append(f"{sample}\n    {text}")
        if failures:
            shown = "\n".join(failures[:5])
            more = f"\n... and {len(failures) - 5} more" if len(failures) > 5 else ""
            raise AssertionError(
                f"{row_id(row)} ({dtype}): {len(failures)} samples failed\n{shown}{more}"
            )


def _is_limit_of_pytorch(error: BaseException) -> bool:
    """Numbers where Facula takes them, dtypes without a kernel: when the tests run against it."""
    text = str(error)
    return isinstance(error, (TypeError, NotImplementedError)) or any(
        words in text for words in ("not implemented for", "not support", "only supports")
    )


# ---- comparing


def to_array(tensor: Any) -> np.ndarray:
    """The values; floats as float64 and complex numbers as complex128."""
    # Conjugates and negatives are lazy, and in PyTorch also zeros, which NumPy cannot see.
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if type(tensor).__module__.startswith("torch"):
        tensor = torch_zeros(tensor) if tensor._is_zerotensor() else tensor
    if tensor.is_complex():
        return tensor.to(tensor_type(tensor, "complex128")).numpy()
    if tensor.is_floating_point():
        return tensor.to(tensor_type(tensor, "float64")).numpy()
    return tensor.numpy()


def torch_zeros(tensor: Any) -> Any:
    return sys.modules["torch"].zeros(tensor.shape, dtype=tensor.dtype)


def tensor_type(tensor: Any, name: str) -> Any:
    return getattr(sys.modules[type(tensor).__module__.partition(".")[0]], name)


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def results(value: Any) -> list[Any]:
    """The tensors of a result: one, several or a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def assert_values(
    row: Row, actual: np.ndarray, expected: Any, dtype: str, what: str = "result", slack: float = 1
) -> None:
    """Equal shapes, and values within the tolerances of `dtype`; NaN equals NaN."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{what} has shape {actual.shape}, not {expected.shape}"
    if actual.size == 0:
        return
    if LETTER[dtype] in "bi":
        same = actual == expected
    else:
        rtol, atol = tolerance_of(row_id(row), dtype)
        wanted = expected.astype(np.complex128 if np.iscomplexobj(expected) else np.float64)
        near = np.abs(actual - wanted) <= slack * (atol + rtol * np.abs(wanted))
        same = near | (actual == wanted) | (np.isnan(actual) & np.isnan(wanted))
        # What the dtype cannot hold became infinite.
        same |= (np.abs(wanted) > _largest(dtype)) & np.isinf(actual)
    if same.all():
        return
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    raise AssertionError(
        f"{what}{list(place)} is {actual[place]!r}, not {expected[place]!r} "
        f"({np.count_nonzero(~same)} of {same.size} differ)"
    )


def _largest(dtype: str) -> float:
    half = {"float16": 65504.0, "bfloat16": 3.389e38}
    return half.get(dtype) or float(np.finfo(dtype).max)


def assert_same_tensor(actual: Any, expected: Any, what: str, strides: bool = True) -> None:
    """Two tensors of the package under test that must agree in everything, bit by bit.

    With strides=False another layout may have been computed by another loop, which rounds
    differently in the last place.
    """
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{what}: {actual.shape}, not {expected.shape}"
    if strides:
        assert layout_of(actual) == layout_of(expected), (
            f"{what}: strides {actual.stride()}, not {expected.stride()}"
        )
    left, right = to_array(actual), to_array(expected)
    same = (left == right) | ((left != left) & (right != right))
    if not strides and LETTER[dtype_name(actual)] in "fc":
        rtol, atol = TOLERANCES_BY_DTYPE[dtype_name(actual)]
        same |= np.abs(left - right) <= atol + rtol * np.abs(right)
    assert same.all(), f"{what} differs:\n{actual}\n{expected}"


def layout_of(tensor: Any) -> tuple[int, ...]:
    """The strides that matter: those of dimensions with more than one element."""
    if tensor.numel() == 0:
        return ()
    return tuple(s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1)


# ---- references


def has_reference(row: Row) -> bool:
    return row.ref is not None or row_id(row) in BY_ROW


def expected_results(row: Row, sample: Sample) -> list[np.ndarray]:
    """The reference's results, in the dtype that it computed them in."""
    arguments = _reference_arguments(row, sample)
    if row_id(row) in BY_ROW:
        result = _own_reference(row, arguments)
    else:
        result = _numpy_reference(row, arguments)
    many = isinstance(result, (tuple, list))
    return [np.asarray(r) for r in (result if many else [result])]


def _reference_arguments(row: Row, sample: Sample) -> dict[str, Any]:
    """Argument name -> NumPy value, after the row's type promotion."""
    names = [a.name for a in row.schema.args]
    promoted = common_dtype(row, sample)

    def array(operand: Operand) -> np.ndarray:
        values = operand.array()
        if operand.role != "data" or not (row.is_elementwise or row.name == "cat"):
            return values
        if LETTER[operand.dtype] in "bi" and promoted in ("float32", "complex64"):
            values = values.astype(promoted)  # large integers are rounded first
        return values.astype({"f": "float64", "c": "complex128"}.get(LETTER[promoted], promoted))

    args, kwargs = sample.map(array)
    bound = dict(zip(names, args, strict=False)) | kwargs
    if bound.get("dtype"):
        main = next(k for k, v in bound.items() if isinstance(v, np.ndarray))
        bound[main] = bound[main].astype(bound.pop("dtype"))
    return bound


def _own_reference(row: Row, bound: dict[str, Any]) -> Any:
    """By position, as the row's arguments come, keyword-only ones by name."""
    positional, keywords = [], {}
    for a in row.schema.args:
        if a.name in bound:
            skipped = len(positional) < sum(
                1 for b in row.schema.args[: row.schema.args.index(a)] if not b.keyword_only
            )
            if a.keyword_only or skipped:
                keywords[a.name] = bound[a.name]
            else:
                positional.append(bound[a.name])
    return BY_ROW[row_id(row)](*positional, **keywords)


def _numpy_reference(row: Row, bound: dict[str, Any]) -> Any:
    """NumPy calls `dim` axis and `keepdim` keepdims; the other arguments go by position."""
    f = REFERENCES[row.ref] if isinstance(row.ref, str) else row.ref
    parameters = {a.name for a in row.schema.args if row.is_elementwise and not a.operand}
    if parameters & set(bound):
        return _evaluate_formula(row, bound)
    positional, keywords = [], {}
    for a in row.schema.args:
        if a.name not in bound:
            continue
        value = bound[a.name]
        if a.name == "dim":
            keywords["axis"] = None if _is_empty_list(value) else value
        elif a.name == "keepdim":
            keywords["keepdims"] = value
        else:
            positional.append(None if _is_empty_list(value) else value)
    if row.is_elementwise and _is_boolean(positional):
        return _of_booleans(row, f, positional)
    try:
        return f(*positional, **keywords)
    except np.exceptions.AxisError:
        # NumPy gives 0-dim arrays no axis; the operators count one.
        if positional[0].ndim != 0:
            raise
        return np.asarray(f(positional[0].reshape(1), *positional[1:], **keywords)).reshape(())


def _is_empty_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 0


def _is_boolean(values: list[Any]) -> bool:
    return all(np.asarray(v).dtype == bool for v in values)


def _of_booleans(row: Row, f: Callable[..., Any], values: list[Any]) -> Any:
    """NumPy lacks some functions of booleans, and computes others in int8."""
    try:
        result = f(*values)
    except TypeError:
        result = f(*[np.asarray(v).astype(np.int8) for v in values])
    return np.asarray(result).astype(bool) if np.asarray(result).dtype.kind == "i" else result


def _evaluate_formula(row: Row, bound: dict[str, Any]) -> Any:
    """For parameters such as alpha, which references do not take: the row's own formula."""
    operands = [a.name for a in row.schema.args if a.operand]
    kind = LETTER[np.asarray(bound[operands[0]]).dtype.name]
    names = {"abcde"[i]: bound[name] for i, name in enumerate(operands)}
    for a in row.schema.args:
        if not a.operand:
            names[a.name] = bound.get(a.name, a.default and eval(a.default, {}))
    return eval(row.f.get(kind, row.f.get("", "")), {"__builtins__": {}}, names)


def common_dtype(row: Row, sample: Sample) -> str:
    """What the tensors and numbers of an elementwise call are promoted to."""
    data = [o for o in sample.operands() if o.role == "data"]
    if not data:
        return "float32"
    if row.family.options.get("promote") == "First":
        return data[0].dtype
    common = data[0].dtype
    for operand in data[1:]:
        common = _promoted(common, operand.dtype)
    operands = {a.name for a in row.schema.args if a.operand}
    names = [a.name for a in row.schema.args]
    for name, value in [*zip(names, sample.args, strict=False), *sample.kwargs.items()]:
        if name in operands and isinstance(value, (bool, int, float, complex)):
            common = _with_number(common, value)
    if row.family.options.get("promote") == "Float" and LETTER[common] in "bi":
        return "float32"
    return common


def _promoted(a: str, b: str) -> str:
    if a == b:
        return a
    return str(F.promote_types(getattr(F, a), getattr(F, b))).rpartition(".")[2]


def _with_number(dtype: str, number: Any) -> str:
    letter = LETTER[dtype]
    if isinstance(number, complex) and letter != "c":
        return COMPLEX_OF.get(dtype, "complex64")
    if isinstance(number, float) and letter in "bi":
        return "float32"
    return "int64" if letter == "b" and not isinstance(number, bool) else dtype


_OF_THEIR_OWN = ("float_power", "hash_tensor")  # float64 or complex128, uint64
_ADD_AS_INT64 = ("cumsum", "cumprod", "trace")


def expected_dtype(row: Row, sample: Sample, reference: np.ndarray) -> str:
    """The dtype of a result, from the kind of number that the reference gave."""
    if "dtype" in sample.kwargs:
        return sample.kwargs["dtype"]
    if row.name in _OF_THEIR_OWN:
        return reference.dtype.name
    common, kind = common_dtype(row, sample), reference.dtype.kind
    if kind == "b":
        return "bool"
    if kind in "iu":
        # NumPy adds unsigned integers as uint64; the operators add all integers as int64.
        adds = row.family.options.get("integers") or row.name in _ADD_AS_INT64
        unsigned = reference.dtype == np.uint64 and (adds or common != "uint64")
        return "int64" if unsigned else reference.dtype.name
    if kind == "f":
        return REAL_OF.get(common, common if LETTER[common] == "f" else "float32")
    return common if LETTER[common] == "c" else COMPLEX_OF.get(common, "complex64")
