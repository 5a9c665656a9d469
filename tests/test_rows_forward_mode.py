"""Forward mode of every operator against finite differences and against backward passes."""

import pytest
from operands import Sample
from package_under_test import F, facula_module
from row_cases import SAMPLED, cases, check_samples, row_id
from samples import all_samples, spread
from skips import NO_DERIVATIVE
from test_rows_gradients import CONSTANT, DOUBLE, as_function, is_large

checks = facula_module("autograd.gradcheck")
DIFFERENTIABLE = [r for r in SAMPLED if row_id(r) not in NO_DERIVATIVE]


def smooth_samples(row, dtype, at_most, purpose):
    samples = [s for s in all_samples(row, dtype) if s.smooth]
    return spread(samples, at_most, f"{row_id(row)}:{dtype}:{purpose}")


def directions(tensors):
    """Tangents that differ from element to element, and from one call to the next."""
    made = []
    for k, t in enumerate(tensors):
        steps = F.arange(1, t.numel() + 1, dtype=F.float64).reshape(t.shape)
        values = (steps * (0.7 + k)).sin()
        made.append(F.complex(values, (steps * 1.3).cos()) if t.is_complex() else values)
    return tuple(made)


def inner(a, b):
    """The real inner product, in which the gradient convention makes transposes."""
    product = (a * b.conj()).sum() if a.is_complex() or b.is_complex() else (a * b).sum()
    return product.real if product.is_complex() else product


def total(pairs):
    return sum((inner(a, b) for a, b in pairs), F.zeros((), dtype=F.float64))


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=DOUBLE))
def test_forward_mode_matches_finite_differences(row, dtype):
    def check(sample: Sample) -> None:
        function, tensors = as_function(row, sample)
        if tensors and function(*tensors):
            checks.gradcheck(
                function,
                tensors,
                check_forward_ad=True,
                check_backward_ad=False,
                fast_mode=is_large(tensors),
            )

    check_samples(row, "forward mode", dtype, smooth_samples(row, dtype, 5, "forward"), check)


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=DOUBLE))
def test_forward_mode_is_the_transpose_of_reverse_mode(row, dtype):
    """(J t, v) = (t, J^T v), for all inputs together."""

    def check(sample: Sample) -> None:
        function, leaves = as_function(row, sample)
        tensors = tuple(t.detach() for t in leaves)
        if not tensors or not function(*tensors):
            return
        tangents = directions(tensors)
        outputs, pushed = F.func.jvp(function, tensors, tangents)
        cotangents = directions([o.detach() for o in outputs])
        cotangents = tuple(c.to(o.dtype) for c, o in zip(cotangents, outputs, strict=True))
        _, vjp_fn = F.func.vjp(function, *tensors)
        pulled = vjp_fn(cotangents)
        left = total(zip(pushed, cotangents, strict=True))
        right = total(zip(tangents, pulled, strict=True))
        scale = sum(float(p.abs().sum()) for p in pushed) + 1.0
        assert abs(float(left - right)) <= 1e-8 * scale, f"{float(left)} and {float(right)}"

    check_samples(row, "forward mode", dtype, smooth_samples(row, dtype, 8, "transpose"), check)


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=("float64",)))
def test_forward_over_reverse_is_reverse_over_reverse(row, dtype):
    """The tangent of the gradient along t is the gradient of (gradient, t)."""

    def check(sample: Sample) -> None:
        function, leaves = as_function(row, sample)
        tensors = tuple(t.detach() for t in leaves)
        if not tensors or not function(*tensors):
            return
        tangents = directions(tensors)

        def gradient(*tensors):
            outputs, vjp_fn = F.func.vjp(function, *tensors)
            return vjp_fn(tuple(F.ones_like(o) for o in outputs))

        _, pushed = F.func.jvp(gradient, tensors, tangents)
        along = F.func.grad(
            lambda *xs: total(zip(gradient(*xs), tangents, strict=True)),
            argnums=tuple(range(len(tensors))),
        )(*tensors)
        for a, b in zip(pushed, along, strict=True):
            scale = float(b.abs().max()) + 1.0 if b.numel() else 1.0
            difference = float((a - b).abs().max()) if b.numel() else 0.0
            assert difference <= 1e-8 * scale, f"{a}\n{b}"

    check_samples(row, "forward mode", dtype, smooth_samples(row, dtype, 2, "second"), check)


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=("float64",)))
def test_batched_forward_mode_matches_one_by_one(row, dtype):
    """vmap over the tangents, as jacfwd does."""

    def check(sample: Sample) -> None:
        function, leaves = as_function(row, sample)
        tensors = tuple(t.detach() for t in leaves)
        if not tensors or not function(*tensors):
            return
        first = directions(tensors)
        second = tuple(t * -2 + 0.5 for t in first)

        def push(*tangents):
            return F.func.jvp(function, tensors, tangents)[1]

        stacked = [F.stack(pair) for pair in zip(first, second, strict=True)]
        together = F.func.vmap(push)(*stacked)
        for got, a, b in zip(together, push(*first), push(*second), strict=True):
            wanted = F.stack([a, b])
            scale = float(wanted.abs().max()) + 1.0 if wanted.numel() else 1.0
            difference = float((got - wanted).abs().max()) if wanted.numel() else 0.0
            assert difference <= 1e-10 * scale, f"{got}\n{wanted}"

    check_samples(row, "forward mode", dtype, smooth_samples(row, dtype, 3, "batched"), check)


@pytest.mark.parametrize(("row", "dtype"), cases(DIFFERENTIABLE, only=("float64",)))
def test_batched_gradients_match_one_by_one(row, dtype):
    """vmap over the cotangents, as jacrev and is_grads_batched do."""

    def check(sample: Sample) -> None:
        function, leaves = as_function(row, sample)
        tensors = tuple(t.detach() for t in leaves)
        if not tensors or not function(*tensors):
            return
        outputs, vjp_fn = F.func.vjp(function, *tensors)
        first = tuple(c.to(o.dtype) for c, o in zip(directions(outputs), outputs, strict=True))
        second = tuple(t * -2 + 0.5 for t in first)
        stacked = tuple(F.stack(pair) for pair in zip(first, second, strict=True))
        together = F.func.vmap(vjp_fn)(stacked)
        for got, a, b in zip(together, vjp_fn(first), vjp_fn(second), strict=True):
            wanted = F.stack([a, b])
            scale = float(wanted.abs().max()) + 1.0 if wanted.numel() else 1.0
            difference = float((got - wanted).abs().max()) if wanted.numel() else 0.0
            assert difference <= 1e-10 * scale, f"{got}\n{wanted}"

    check_samples(row, "vmap", dtype, smooth_samples(row, dtype, 3, "batched gradients"), check)


@pytest.mark.parametrize(("row", "dtype"), cases(CONSTANT, only=("float64",)))
def test_result_without_derivative_has_no_tangent(row, dtype):
    def check(sample: Sample) -> None:
        function, leaves = as_function(row, sample)
        tensors = tuple(t.detach() for t in leaves)
        if not tensors or not function(*tensors):
            return
        _, pushed = F.func.jvp(function, tensors, directions(tensors))
        assert not any(bool((p != 0).any()) for p in pushed)

    check_samples(row, "forward mode", dtype, smooth_samples(row, dtype, 2, "constant"), check)
