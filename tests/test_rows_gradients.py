"""First and second derivatives of every operator against finite differences."""

import subprocess
import sys

import pytest
from free_results import comparable
from operands import Operand, Sample
from package_under_test import IS_FACULA, F, facula_module
from row_cases import HERMITIAN, SAMPLED, callable_of, cases, check_samples, results, row_id
from samples import all_samples, spread
from skips import NO_DERIVATIVE

checks = facula_module("autograd.gradcheck")

DOUBLE = ("float64", "complex128")
DIFFERENTIABLE = [r for r in SAMPLED if row_id(r) not in NO_DERIVATIVE]
CONSTANT = [r for r in SAMPLED if row_id(r) in NO_DERIVATIVE]
# Entries of all inputs together; above it one random projection stands for the Jacobian.
SMALL = 12


def smooth_samples(row, dtype, at_most):
    samples = [s for s in all_samples(row, dtype) if s.smooth]
    return spread(samples, at_most, f"{row_id(row)}:{dtype}:derivatives")


def as_function(row, sample):
    """(function of the differentiable tensors alone, these tensors)"""
    tensors = []

    def convert(operand: Operand):
        if not operand.is_differentiable:
            return operand.tensor(F)
        if operand.overlaps:  # finite differences would move several entries at once
            operand = operand.contiguous()
        tensors.append(operand.tensor(F).requires_grad_())
        return Placeholder(len(tensors) - 1)

    args, kwargs = sample.map(convert)
    operator, constant = callable_of(row), row.nondifferentiable

    def function(*given):
        if row_id(row) in HERMITIAN:  # both halves move together
            given = ((given[0] + given[0].transpose(-2, -1).conj()) / 2, *given[1:])

        def fill(value):
            if isinstance(value, Placeholder):
                return given[value.position]
            return type(value)(map(fill, value)) if isinstance(value, (list, tuple)) else value

        outputs = results(operator(*map(fill, args), **{k: fill(v) for k, v in kwargs.items()}))
        outputs = comparable(row_id(row), outputs)
        if constant:
            names = [name for _, name in row.schema.rets]
            outputs = [o for o, n in zip(outputs, names, strict=True) if n not in constant]
        return tuple(o for o in outputs if o.is_floating_point() or o.is_complex())

    return function, tensors


def gradients(outputs, tensors):
    outputs = [o for o in outputs if o.requires_grad]
    ones = [F.ones_like(o) for o in outputs]
    return F.autograd.grad(outputs, tensors, ones, allow_unused=True)


class Placeholder:
    """Where a tensor that varies goes."""

    def __init__(self, position):
        self.position = position


def is_large(tensors):
    return sum(t.numel() * (2 if t.is_complex() else 1) for t in tensors) > SMALL


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=DOUBLE))
def test_gradient_matches_finite_differences(row, dtype):
    def check(sample: Sample) -> None:
        function, tensors = as_function(row, sample)
        if not tensors:
            return
        outputs = function(*tensors)
        assert all(o.requires_grad for o in outputs), "a result has lost its graph"
        if outputs:
            checks.gradcheck(function, tensors, fast_mode=is_large(tensors))

    check_samples(row, "gradient", dtype, smooth_samples(row, dtype, 10), check)


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=DOUBLE))
def test_second_gradient_matches_finite_differences(row, dtype):
    def check(sample: Sample) -> None:
        function, tensors = as_function(row, sample)
        if tensors and function(*tensors):
            checks.gradgradcheck(function, tensors, fast_mode=True)

    check_samples(row, "second gradient", dtype, smooth_samples(row, dtype, 5), check)


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch raises in backward for some of these")
@pytest.mark.parametrize(("row", "dtype"), cases(CONSTANT, only=DOUBLE))
def test_result_without_derivative_has_no_graph(row, dtype):
    """Truth values, positions and counts do not carry a graph along."""

    def check(sample: Sample) -> None:
        function, tensors = as_function(row, sample)
        if tensors:
            assert not any(o.requires_grad for o in function(*tensors))

    check_samples(row, "gradient", dtype, smooth_samples(row, dtype, 3), check)


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=("float64",)))
def test_gradient_reaches_only_inputs_that_ask(row, dtype):
    """Each input alone: nothing else needs to require grad for its gradient to be right."""

    def check(sample: Sample) -> None:
        function, tensors = as_function(row, sample)
        if len(tensors) < 2 or any(t.numel() == 0 for t in tensors):
            return
        together = gradients(function(*tensors), tensors)
        for i, tensor in enumerate(tensors):
            alone = [t.detach() for t in tensors]
            alone[i] = tensor
            (grad,) = gradients(function(*alone), [tensor])
            assert (grad is None) == (together[i] is None)
            assert grad is None or bool(((grad == together[i]) | grad.isnan()).all())

    check_samples(row, "gradient", dtype, smooth_samples(row, dtype, 3), check)


@pytest.mark.skipif(not IS_FACULA, reason="imports facula")
@pytest.mark.parametrize("first", ["", "import facula.autograd.gradcheck; "])
def test_checks_are_functions_of_the_autograd_package(first):
    """In a fresh process: the module of the same name must not stand in the way, early or late."""
    code = (
        f"import sys; sys.path[:0] = sys.argv[1:]; {first}import facula; "
        "x = facula.tensor([0.5], dtype=facula.float64, requires_grad=True); "
        "assert facula.autograd.gradcheck(facula.sin, (x,)); "
        "assert facula.autograd.gradgradcheck(facula.sin, (x,))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *filter(None, sys.path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-500:]
