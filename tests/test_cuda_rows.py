"""Every row of the operator table on a CUDA device against the same call on the host.

The samples are those of the other derived tests. ``FACULA_CUDA_REPORT=file`` appends the rows that
have no kernel, one line each.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from cuda_gaps import MOST_GAPS, NO_KERNEL, NOT_COMPARABLE, REFUSED
from free_results import comparable
from operands import LETTER, Operand, Sample, with_dtypes
from package_under_test import F
from row_cases import HERMITIAN, SAMPLED, callable_of, cases, dtype_name, results, row_id, to_array
from samples import all_samples, spread
from skips import NO_DERIVATIVE, tolerance_of

needs_device = pytest.mark.skipif(not F.cuda.is_available(), reason="no CUDA device")

FORWARD = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
BACKWARD = ("bfloat16", "float32", "float64", "complex128")
DIFFERENTIABLE = [r for r in SAMPLED if row_id(r) not in NO_DERIVATIVE]
# Sums are added in another order, products of matrices are accumulated in other pieces.
SLACK = {"float16": 4.0, "bfloat16": 4.0, "float32": 50.0, "complex64": 50.0}


WORKED: dict[str, list[bool]] = {}  # row -> whether each of its cases had a kernel


@pytest.fixture(autouse=True, scope="module")
def full_precision():
    """Convolutions in TF32, the default of cuDNN, have three digits."""
    with F.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def on_device(operand: Operand):
    """The operand's values with its strides on the device."""
    host = operand.tensor(F)
    flat = host.as_strided((host.untyped_storage().nbytes() // host.element_size(),), (1,), 0)
    return flat.cuda().as_strided(host.shape, host.stride(), host.storage_offset())


def chosen_samples(row, dtype: str, kind: str, at_most: int = 6) -> list[Sample]:
    samples = [s for s in all_samples(row, dtype) if kind == "forward" or s.smooth]
    return spread(samples, at_most, f"{row_id(row)}:{dtype}:cuda {kind}")


def compare(row, cuda: list, host: list, what: str) -> None:
    assert len(cuda) == len(host)
    for got, wanted in zip(cuda, host, strict=True):
        assert got.is_cuda, f"{what} is on {got.device}"
        assert got.dtype == wanted.dtype, f"{what}: {got.dtype}, not {wanted.dtype}"
        assert got.shape == wanted.shape, f"{what}: {got.shape}, not {wanted.shape}"
    cuda, host = [r.detach().cpu() for r in cuda], [r.detach() for r in host]
    cuda, host = comparable(row_id(row), cuda), comparable(row_id(row), host)
    for got, wanted in zip(cuda, host, strict=True):
        compare_values(row, to_array(got), to_array(wanted), dtype_name(got), what)


def compare_values(row, got: np.ndarray, wanted: np.ndarray, dtype: str, what: str) -> None:
    same = (got == wanted) | ((got != got) & (wanted != wanted))
    if LETTER[dtype] in "fc" and got.size:
        rtol, atol = tolerance_of(row_id(row), dtype)
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        with np.errstate(all="ignore"):
            limit = SLACK.get(dtype, 200.0) * (atol * scale + rtol * np.abs(wanted))
            same |= np.abs(got - wanted) <= limit
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        raise AssertionError(
            f"{what}{list(place)} is {got[place]!r}, on the host {wanted[place]!r} "
            f"({np.count_nonzero(~same)} of {same.size} differ)"
        )


def without_kernel(row, dtype: str, error: NotImplementedError) -> None:
    """A row of the list is skipped, another fails."""
    if report := os.environ.get("FACULA_CUDA_REPORT"):
        with open(report, "a", encoding="utf-8") as file:
            file.write(f"{row_id(row)} {dtype}: {str(error).splitlines()[0]}\n")
    if row_id(row) in NO_KERNEL:
        pytest.skip(NO_KERNEL[row_id(row)])
    raise error


def check_row(row, dtype: str, kind: str, check) -> None:
    """Runs all samples; a sample that the host refuses must be refused by the device."""
    if reason := NOT_COMPARABLE.get((row_id(row), kind)):
        pytest.skip(reason)
    failures, missing = [], None
    samples = chosen_samples(row, dtype, kind)
    for sample in samples:
        try:
            check(sample)
        except Exception as error:  # every one is reported
            words, _ = REFUSED.get(row_id(row), ("", ""))
            if words and words in str(error):
                continue
            if isinstance(error, NotImplementedError):
                missing = error
                continue
            text = str(error) if isinstance(error, AssertionError) else repr(error)
            failures.append(f"{sample}\n    {text}")
            if "CUDA error" in text:  # the context is lost: what follows says nothing
                pytest.exit(f"{row_id(row)} ({dtype}): {text}", returncode=3)
    if failures:
        shown = "\n".join(failures[:3])
        pytest.fail(f"{row_id(row)} ({dtype}): {len(failures)} samples failed\n{shown}")
    WORKED.setdefault(row_id(row), []).append(missing is None)
    if missing is not None:
        without_kernel(row, dtype, missing)


@needs_device
@pytest.mark.parametrize(("row", "dtype"), cases(only=FORWARD))
def test_result_is_that_of_the_host(row, dtype):
    function = callable_of(row)

    def check(sample: Sample) -> None:
        args, kwargs = sample.tensors(F)
        try:
            host = results(function(*args, **kwargs))
        except NotImplementedError:
            return
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            args, kwargs = with_dtypes(F, *sample.map(on_device))
            with pytest.raises(type(error)):
                function(*args, **kwargs)
                F.cuda.synchronize()
            return
        args, kwargs = with_dtypes(F, *sample.map(on_device))
        compare(row, results(function(*args, **kwargs)), host, "result")

    check_row(row, dtype, "forward", check)


@needs_device
@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=BACKWARD))
def test_gradient_is_that_of_the_host(row, dtype):
    function = callable_of(row)

    def gradients(sample: Sample, make) -> list:
        inputs = []

        def convert(operand: Operand):
            tensor = make(operand)
            if operand.is_differentiable:
                inputs.append(tensor.requires_grad_())
            return tensor

        args, kwargs = with_dtypes(F, *sample.map(convert))
        outputs = comparable(row_id(row), results(function(*args, **kwargs)))
        outputs = [o for o in outputs if o.requires_grad]
        if not outputs or not inputs:
            return []
        if row_id(row) in HERMITIAN:
            outputs = outputs[:1]
        # Weights that differ from element to element, the same on both devices.
        weights = [
            F.cos(F.arange(o.numel(), dtype=F.float64)).reshape(o.shape).to(o.device, o.dtype)
            for o in outputs
        ]
        found = F.autograd.grad(outputs, inputs, weights, allow_unused=True)
        return [g for g in found if g is not None]

    def check(sample: Sample) -> None:
        try:
            host = gradients(sample, lambda operand: operand.tensor(F))
        except (NotImplementedError, RuntimeError):
            return  # there is no derivative
        cuda = gradients(sample, on_device)
        assert len(cuda) == len(host), "other inputs have gradients"
        for got, wanted in zip(cuda, host, strict=True):
            assert got.is_cuda, f"the gradient is on {got.device}"
            assert got.dtype == wanted.dtype, f"{got.dtype}, not {wanted.dtype}"
            compare_values(
                row, to_array(got.cpu()), to_array(wanted), dtype_name(wanted), "gradient"
            )

    check_row(row, dtype, "gradient", check)


def test_the_list_of_gaps_is_about_rows_and_does_not_grow():
    names = {row_id(row) for row in SAMPLED}
    assert not [name for name in NO_KERNEL if name not in names]
    assert not [name for name, _ in NOT_COMPARABLE if name not in names]
    assert len(NO_KERNEL) <= MOST_GAPS
    assert all(name in names for name in REFUSED)
    assert all(NO_KERNEL.values())
    assert all(NOT_COMPARABLE.values())


def test_rows_that_have_a_kernel_have_left_the_list():
    done = [name for name, cases in WORKED.items() if name in NO_KERNEL and all(cases)]
    assert not done, f"remove from tests/cuda_gaps.py: {done}"
