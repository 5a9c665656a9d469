"""Every operator against the real PyTorch, where it is installed: values, dtype, shape, strides,
aliasing and gradients."""

import numpy as np
import pytest
from free_results import comparable
from operands import Operand, Sample, contiguous_strides
from package_under_test import IS_FACULA, F
from row_cases import (
    FUNCTIONS_OF_USERS,
    SAMPLED,
    USERS,
    NothingToCompareError,
    assert_values,
    attribute,
    callable_of,
    cases,
    check_samples,
    dtype_name,
    layout_of,
    method_of,
    results,
    row_id,
    to_array,
)
from samples import samples_of, spread
from skips import TOLERANCES_BY_DTYPE

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not IS_FACULA, reason="PyTorch against itself"),
    pytest.mark.filterwarnings("ignore"),
]

# What PyTorch raises for the dtypes and arguments that it leaves out and Facula does not.
REFUSALS = (RuntimeError, TypeError, NotImplementedError, IndexError, ValueError)
# PyTorch leaves open which of equal elements these choose.
FREE_INDICES = {"mode": 1, "sort": 1, "argsort": 0, "median.dim": 1, "nanmedian.dim": 1}


def torch_callable(row):
    if row_id(row) in USERS or row_id(row) in FUNCTIONS_OF_USERS:
        return callable_of(row, torch)
    if row.function:
        try:
            return attribute(torch, row.python)
        except AttributeError:
            return None
    return method_of(row)


def in_pytorch(row):
    return torch_callable(row) is not None


# PyTorch divides by zero for lcm of the smallest integers, which ends the process.
BOTH = [r for r in SAMPLED if in_pytorch(r) and row_id(r) != "lcm"]


def call_both(row, sample):
    """(ours, theirs, our arguments, their arguments)"""
    args, kwargs = sample.tensors(torch)
    try:
        theirs = results(torch_callable(row)(*args, **kwargs))
    except REFUSALS as error:
        raise NothingToCompareError from error
    ours_args, ours_kwargs = sample.tensors(F)
    ours = results(callable_of(row)(*ours_args, **ours_kwargs))
    assert len(ours) == len(theirs), f"{len(ours)} results, not {len(theirs)}"
    return ours, theirs, ours_args, args


def is_alias(tensor, arguments):
    """Whether a result shares memory with the first tensor of the arguments."""
    first = next((a for a in arguments if isinstance(a, type(tensor))), None)
    return (
        first is not None
        and first.numel() > 0
        and tensor.numel() > 0
        and tensor.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
    )


@pytest.mark.parametrize(("row", "dtype"), cases(BOTH))
def test_result_matches_pytorch(row, dtype):
    compared = 0

    def check(sample: Sample) -> None:
        nonlocal compared
        both = call_both(row, sample)
        compared += 1
        for i, (ours, theirs) in enumerate(zip(both[0], both[1], strict=True)):
            assert dtype_name(ours) == dtype_name(theirs), (
                f"result {i} is {dtype_name(ours)}, not {dtype_name(theirs)}"
            )
            assert is_alias(ours, both[2]) == is_alias(theirs, both[3]), (
                f"result {i} is {'' if is_alias(ours, both[2]) else 'not '}a view"
            )
            assert tuple(ours.shape) == tuple(theirs.shape), (
                f"result {i} has shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
            )
            assert layout_of(ours) == layout_of(theirs), (
                f"result {i} has strides {ours.stride()}, not {theirs.stride()}"
            )
        ours, theirs = (comparable(row_id(row), side) for side in both[:2])
        for i, (got, wanted) in enumerate(zip(ours, theirs, strict=True)):
            if FREE_INDICES.get(row_id(row)) != i:
                # Both sides may be off by the tolerance.
                assert_values(row, to_array(got), to_array(wanted), dtype_name(got), slack=2)

    samples = samples_of(row, dtype)
    check_samples(row, "torch", dtype, samples, check)
    if samples and not compared:
        pytest.skip("PyTorch takes none of the samples")


def leaves(sample, package):
    """The sample's arguments with gradients asked for, and the tensors that ask."""
    asking = []

    def convert(operand: Operand):
        tensor = operand.tensor(package)
        if operand.is_differentiable and not operand.overlaps:
            tensor = tensor.requires_grad_()
            asking.append(tensor)
        return tensor

    args, kwargs = sample.map(convert)
    named = {k: getattr(package, v) if k == "dtype" else v for k, v in kwargs.items()}
    return args, named, asking


def gradients(name, function, sample, package):
    """The gradients of a weighted sum of all differentiable results; None if there are none."""
    args, kwargs, asking = leaves(sample, package)
    outputs = comparable(name, results(function(*args, **kwargs)))
    outputs = [r for r in outputs if r.requires_grad]
    if not outputs:
        return None
    random = np.random.default_rng(7)
    weights = []
    for output in outputs:
        drawn = random.uniform(-1, 1, tuple(output.shape))
        if output.is_complex():
            drawn = drawn + 1j * random.uniform(-1, 1, tuple(output.shape))
        operand = Operand(drawn, dtype_name(output), contiguous_strides(drawn.shape))
        weights.append(operand.tensor(package))
    return package.autograd.grad(outputs, asking, weights, allow_unused=True)


def _is_nonzero(gradient):
    return gradient is not None and to_array(gradient).any()


@pytest.mark.parametrize(
    ("row", "dtype"), cases(BOTH, only=("float32", "float64", "complex64", "complex128"))
)
def test_gradients_match_pytorch(row, dtype):
    def check(sample: Sample) -> None:
        try:
            theirs = gradients(row_id(row), torch_callable(row), sample, torch)
        except REFUSALS as error:
            raise NothingToCompareError from error
        if theirs is not None and all(g is None for g in theirs):
            theirs = None  # a graph that leads nowhere
        ours = gradients(row_id(row), callable_of(row), sample, F)
        if theirs is None and ours is not None and not any(_is_nonzero(g) for g in ours):
            ours = None  # as above
        if theirs is None and row.name.startswith("special_"):
            raise NothingToCompareError  # PyTorch has no derivative of most of them
        assert (ours is None) == (theirs is None), (
            f"the result {'has no' if ours is None else 'has a'} graph, unlike PyTorch's"
        )
        for i, (got, wanted) in enumerate(zip(ours or (), theirs or (), strict=True)):
            if got is None or wanted is None:
                # No gradient and a gradient of zero mean the same.
                for some in (got, wanted):
                    assert some is None or not to_array(some).any(), f"gradient {i} is not None"
                continue
            assert dtype_name(got) == dtype_name(wanted), f"gradient {i} is {dtype_name(got)}"
            # As exact as the least exact operand; derivatives lose some digits to cancellation.
            dtypes = [dtype_name(got), *(o.dtype for o in sample.operands() if o.is_differentiable)]
            least = max(dtypes, key=lambda name: TOLERANCES_BY_DTYPE[name][0])
            assert_values(row, to_array(got), to_array(wanted), least, f"gradient {i}", slack=20)

    samples = [s for s in samples_of(row, dtype) if max(_sizes(s), default=0) < 5_000]
    chosen = spread(samples, 8, f"{row_id(row)}:{dtype}:gradient")
    check_samples(row, "torch gradient", dtype, chosen, check)


def _sizes(sample):
    return [operand.values.size for operand in sample.operands()]
