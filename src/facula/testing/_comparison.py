"""assert_close: tensors, numbers, and sequences and mappings of them."""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import facula
from facula import Tensor

# rtol, atol; everything else must be equal.
_TOLERANCES = {
    facula.float16: (1e-3, 1e-5),
    facula.bfloat16: (1.6e-2, 1e-5),
    facula.float32: (1.3e-6, 1e-5),
    facula.float64: (1e-7, 1e-7),
    facula.complex64: (1.3e-6, 1e-5),
    facula.complex128: (1e-7, 1e-7),
}
_NUMBER_DTYPES = {int: facula.int64, float: facula.float64, complex: facula.complex128}


@dataclass
class _Options:
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        """Those that were given, or the loosest of the dtypes'."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        each = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(r for r, _ in each), max(a for _, a in each)


class _Mismatch(Exception):
    """What differs, and where in nested containers."""

    def __init__(self, text: str, path: tuple[Any, ...]) -> None:
        where = "".join(f"[{item!r}]" for item in path)
        super().__init__(text + (f"\n\nThe failure occurred for item {where}" if where else ""))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError, with what differs most, unless ``actual`` is close to ``expected``.

    Numbers are close when ``abs(actual - expected) <= atol + rtol * abs(expected)``. Sequences are
    compared item by item and mappings key by key.

    Args:
        actual: a tensor, an array, a number, None, or containers of them.
        expected: the same.
        allow_subclasses: False wants both to be of one type.
        rtol: the relative tolerance; by default, as ``atol``, it goes by the dtype.
        atol: the absolute tolerance; either both are given or none.
        equal_nan: whether NaN equals NaN.
        check_device: whether devices must be equal; else both are compared on the CPU.
        check_dtype: whether dtypes must be equal; else both are promoted.
        check_layout: whether layouts must be equal.
        check_stride: whether strides must be equal.
        msg: the message of the error, or a function that makes it from the usual one.

    Example::

        >>> facula.testing.assert_close(facula.tensor([1., 2.]), facula.tensor([1., 2. + 1e-7]))
        >>> facula.testing.assert_close({"a": [1, 2]}, {"a": [1, 3]})
        Traceback (most recent call last):
        ...
        AssertionError: Scalars are not equal!
        <BLANKLINE>
        Expected 3 but got 2.
        Absolute difference: 1
        Relative difference: 0.3333333333333333
        <BLANKLINE>
        The failure occurred for item ['a'][1]
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise ValueError(f"{name!r} must not be negative, got {value}")
    options = _Options(
        allow_subclasses,
        rtol,
        atol,
        equal_nan,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
    )
    try:
        # The structure of everything is checked before the first value.
        for a, b, path in list(_leaves(actual, expected, options, ())):
            _compare(a, b, path, options)
    except _Mismatch as mismatch:
        text = str(mismatch)
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


def _unknown(actual: Any, expected: Any) -> TypeError:
    return TypeError(
        f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    )


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _leaves(
    actual: Any, expected: Any, options: _Options, path: tuple[Any, ...]
) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise _Mismatch(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
            )
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            yield from _leaves(a, b, options, (*path, i))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            raise _Mismatch(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=repr)}\n"
                f"Additional keys in the actual mapping: {sorted(additional, key=repr)}",
                path,
            )
        for key in sorted(actual, key=repr):
            yield from _leaves(actual[key], expected[key], options, (*path, key))
    else:
        yield actual, expected, path


def _is_array(x: Any) -> bool:
    return type(x).__module__ == "numpy" and hasattr(x, "dtype")


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) or (_is_array(x) and hasattr(x, "item"))


def _compare(actual: Any, expected: Any, path: tuple[Any, ...], options: _Options) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}", path)
    elif isinstance(actual, Tensor) and isinstance(expected, Tensor):
        if not options.allow_subclasses and type(actual) is not type(expected):
            raise _unknown(actual, expected)
        _compare_tensors(actual, expected, path, options)
    elif _is_array(actual) and _is_array(expected):
        if actual.shape == expected.shape == ():
            return _compare(actual.item(), expected.item(), path, options)
        _compare_tensors(facula.as_tensor(actual), facula.as_tensor(expected), path, options)
    elif isinstance(actual, Tensor) or isinstance(expected, Tensor):
        raise _unknown(actual, expected)
    elif isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}", path)
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(actual, expected, path, options)
    else:
        raise _unknown(actual, expected)
    return None


def _closeness(rtol: float, atol: float) -> tuple[str, Callable[[float], str]]:
    """The word for the comparison and what a report says after each difference."""
    if rtol == atol == 0:
        return "equal", lambda tolerance: ""
    return "close", lambda tolerance: f" (up to {tolerance or 0} allowed)"


def _scalar_report(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    word, allowed = _closeness(rtol, atol)
    absolute = abs(actual - expected)
    relative = absolute / abs(expected) if expected != 0 else float("inf")
    return (
        f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {absolute}{allowed(atol)}\n"
        f"Relative difference: {relative}{allowed(rtol)}"
    )


def _compare_numbers(actual: Any, expected: Any, path: tuple[Any, ...], options: _Options) -> None:
    actual = actual.item() if _is_array(actual) else actual
    expected = expected.item() if _is_array(expected) else expected
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
    kinds = (_NUMBER_DTYPES.get(type(x), facula.int64) for x in (actual, expected))
    rtol, atol = options.tolerances(*kinds)
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if difference <= atol + rtol * abs(expected) and cmath.isfinite(difference):
        return
    raise _Mismatch(_scalar_report(actual, expected, rtol, atol), path)


def _compare_tensors(
    actual: Tensor, expected: Tensor, path: tuple[Any, ...], options: _Options
) -> None:
    def same(attribute: str, a: Any, b: Any) -> None:
        if a != b:
            raise _Mismatch(
                f"The values for attribute {attribute!r} do not match: {a} != {b}.", path
            )

    same("shape", actual.shape, expected.shape)
    if options.check_layout:
        same("layout", actual.layout, expected.layout)
    if options.check_stride and actual.layout == facula.strided:
        same("stride()", actual.stride(), expected.stride())
    if options.check_device:
        same("device", actual.device, expected.device)
    if options.check_dtype:
        same("dtype", actual.dtype, expected.dtype)
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.detach(), expected.detach()
    if actual.device.type == "meta" or expected.device.type == "meta":
        return  # no values to compare
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.layout != facula.strided and actual.layout == expected.layout:
        _compare_sparse(actual, expected, path, options, rtol, atol)
        return
    # Between layouts, elements count and not how they are held.
    actual, expected = actual.to_dense(), expected.to_dense()
    _compare_values(actual, expected, path, options, rtol, atol)


def _compare_sparse(
    actual: Tensor,
    expected: Tensor,
    path: tuple[Any, ...],
    options: _Options,
    rtol: float,
    atol: float,
) -> None:
    """Positions have to be the same ones, in the same order; values have to be close."""
    name = str(actual.layout).rpartition("_")[2].upper()
    counts = actual._nnz(), expected._nnz()
    if counts[0] != counts[1]:
        raise _Mismatch(
            f"The number of specified values in sparse {name} tensors does not match: "
            f"{counts[0]} != {counts[1]}",
            path,
        )
    if name == "COO":
        parts = {"indices": (actual._indices(), expected._indices())}
        values = actual._values(), expected._values()
    else:
        kinds = ("crow", "col") if name in ("CSR", "BSR") else ("ccol", "row")
        parts = {
            f"{kind}_indices": tuple(getattr(t, f"{kind}_indices")() for t in (actual, expected))
            for kind in kinds
        }
        values = actual.values(), expected.values()
    for kind, (mine, other) in parts.items():
        _compare_values(mine, other, path, options, 0.0, 0.0, f"Sparse {name} {kind}")
    _compare_values(*values, path, options, rtol, atol, f"Sparse {name} values")


def _compare_values(
    actual: Tensor,
    expected: Tensor,
    path: tuple[Any, ...],
    options: _Options,
    rtol: float,
    atol: float,
    subject: str = "Tensor-likes",
) -> None:
    if actual.dtype != expected.dtype:
        common = facula.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    close = facula.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if not close.all():
        raise _Mismatch(_tensor_report(actual, expected, close, rtol, atol, subject), path)


def _tensor_report(
    actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float, subject: str
) -> str:
    if actual.dim() == 0:
        return _scalar_report(actual.item(), expected.item(), rtol, atol)
    word, allowed = _closeness(rtol, atol)
    if not actual.dtype.is_floating_point and not actual.dtype.is_complex:
        actual, expected = actual.to(facula.int64), expected.to(facula.int64)
    shape = actual.shape
    actual, expected, close = actual.flatten(), expected.flatten(), close.flatten()
    count, total = int((~close).sum()), close.numel()

    def worst(kind: str, difference: Tensor, tolerance: float) -> str:
        difference = difference.masked_fill(close, 0)
        at = int(difference.argmax())
        index = tuple(int(i) for i in facula.unravel_index(facula.tensor(at), shape))
        value = difference[at].item()
        return f"\nGreatest {kind} difference: {value} at index {index}{allowed(tolerance)}"

    absolute = (actual - expected).abs()
    relative = absolute / expected.abs()
    return (
        f"{subject} are not {word}!\n\n"
        f"Mismatched elements: {count} / {total} ({count / total:.1%})"
        + worst("absolute", absolute, atol)
        + worst("relative", relative, rtol)
    )


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """``assert_close`` with looser rules, under its old name.

    Example::

        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     facula.testing.assert_allclose(facula.ones(1), [1.0])
    """
    warnings.warn(
        "`facula.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `facula.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = facula.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = facula.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        options = _Options(True, None, None, equal_nan, False, False, False, False)
        rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
