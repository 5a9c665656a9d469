"""Every operator under vmap against a loop over the batch."""

import itertools
from dataclasses import dataclass

import pytest
from operands import LETTER, Operand, Sample, with_dtypes
from package_under_test import F
from row_cases import (
    REFUSE_IN_PLACE,
    SAMPLED,
    assert_values,
    callable_of,
    cases,
    check_samples,
    dtype_name,
    result_fits,
    results,
    row_id,
    to_array,
)
from samples import all_samples, spread
from skips import DATA_DEPENDENT, NO_DERIVATIVE
from test_rows_gradients import as_function

SIZE = 3
DTYPES = ("bool", "int64", "float32", "complex64")
FIXED_SHAPE = [r for r in SAMPLED if row_id(r) not in DATA_DEPENDENT]
RANDOM = {"rand", "randn", "randint", "randperm"}  # prefixes of rows that draw numbers


@dataclass
class Batch:
    """One tensor argument: a tensor for every entry of the batch, and all of them stacked."""

    each: list
    stacked: object
    dim: int | None


class Place:
    """Where a batched argument goes."""

    def __init__(self, position):
        self.position = position


# What they see in memory changes when the batch is not the first dimension.
LAYOUT_BOUND = {
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
    "view_as_complex",
    "view_as_complex_copy",
}
# Their matrices must stay positive definite: multiples, not other orders of the values.
POSITIVE_DEFINITE = {"linalg_cholesky", "cholesky"}


def draws(row):
    return any(row.name.startswith(prefix) for prefix in RANDOM) or row.samples == "random"


def few_samples(row, dtype, at_most):
    samples = [s for s in all_samples(row, dtype) if list(s.operands())]
    small = [s for s in samples if sum(o.values.size for o in s.operands()) <= 200]
    return spread(small, at_most, f"{row_id(row)}:{dtype}:vmap")


def variants(row, operand):
    """SIZE tensors like the operand's, with its values in other orders."""
    flat = operand.values.reshape(-1)
    same = operand.role != "data" or flat.size == 0
    tensors = [operand.tensor(F)]
    for k in range(1, SIZE):
        turned = (
            operand
            if same
            else Operand(
                operand.values * (k + 1)
                if row_id(row) in POSITIVE_DEFINITE
                else flat[[(i + k) % flat.size for i in range(flat.size)]].reshape(operand.shape),
                operand.dtype,
                operand.strides,
                operand.offset,
                operand.role,
            )
        )
        tensors.append((operand.contiguous() if turned.overlaps else turned).tensor(F))
    return tensors


def batches(row, sample, which, dim):
    """(args, kwargs with Places, the batches); `which` says for each operand if it is mapped."""
    made, counter = [], itertools.count()

    # How many elements a mask picks must not depend on the batch.
    brackets = row_id(row) in ("index", "index_put")

    def convert(operand: Operand):
        if not which(next(counter)) or (brackets and operand.role == "mask"):
            return operand.tensor(F)
        each = variants(row, operand)
        at = dim % (each[0].dim() + 1)
        made.append(Batch(each, F.stack(each, at), at))
        return Place(len(made) - 1)

    args, kwargs = with_dtypes(F, *sample.map(convert))
    return args, kwargs, made


def filled(value, given):
    if isinstance(value, Place):
        return given[value.position]
    if isinstance(value, (list, tuple)):
        return type(value)(filled(v, given) for v in value)
    return value


def compare(row, dtype, sample, which, dim, out_dim=0):
    operator = callable_of(row)
    args, kwargs, made = batches(row, sample, which, dim)
    if not made:
        return

    def function(*given):
        return tuple(
            results(
                operator(
                    *(filled(a, given) for a in args),
                    **{k: filled(v, given) for k, v in kwargs.items()},
                )
            )
        )

    expected = [function(*(b.each[k] for b in made)) for k in range(SIZE)]
    in_dims = tuple(b.dim for b in made)
    actual = F.func.vmap(function, in_dims=in_dims, out_dims=out_dim)(*(b.stacked for b in made))
    assert len(actual) == len(expected[0])
    for i, (got, *wanted) in enumerate(zip(actual, *expected, strict=True)):
        assert got.dtype == wanted[0].dtype, f"{got.dtype}, not {wanted[0].dtype}"
        stacked = F.stack(wanted, out_dim)
        name = dtype_name(stacked)
        slack = 4 if LETTER[name] in "fc" else 1
        assert_values(row, to_array(got), to_array(stacked), name, f"result {i}", slack)


@pytest.mark.parametrize(("row", "dtype"), cases(FIXED_SHAPE, only=DTYPES))
def test_vmap_matches_a_loop(row, dtype):
    """All tensors mapped, over the first, the last and another dimension."""
    if draws(row):
        pytest.skip("test_func_randomness.py covers random operators")
    dims = itertools.cycle([0] if row_id(row) in LAYOUT_BOUND else [0, -1, 1])

    def check(sample: Sample) -> None:
        dim = next(dims)
        compare(row, dtype, sample, lambda i: True, dim if dim != 1 else 0, out_dim=0)
        if dim == 1:
            compare(row, dtype, sample, lambda i: True, -2, out_dim=-1)

    check_samples(row, "vmap", dtype, few_samples(row, dtype, 6), check)


@pytest.mark.parametrize(("row", "dtype"), cases(FIXED_SHAPE, only=("float32",)))
def test_vmap_over_some_of_the_arguments(row, dtype):
    """Each tensor alone mapped, the others shared; and each alone shared."""
    if draws(row):
        pytest.skip("test_func_randomness.py covers random operators")

    def check(sample: Sample) -> None:
        count = len(list(sample.operands()))
        if count < 2:
            return
        for chosen in range(count):
            compare(row, dtype, sample, lambda i, k=chosen: i == k, 0)
            if count > 2:
                compare(row, dtype, sample, lambda i, k=chosen: i != k, 0)

    check_samples(row, "vmap", dtype, few_samples(row, dtype, 4), check)


@pytest.mark.parametrize(("row", "dtype"), cases(FIXED_SHAPE, only=("float32",)))
def test_nested_vmap_matches_a_loop(row, dtype):
    """The first tensor mapped by the inner vmap, the others by the outer one; then all by both."""
    if draws(row):
        pytest.skip("test_func_randomness.py covers random operators")
    operator = callable_of(row)

    def check(sample: Sample) -> None:
        args, kwargs, made = batches(row, sample, lambda i: True, 0)

        def function(*given):
            return tuple(
                results(
                    operator(
                        *(filled(a, given) for a in args),
                        **{k: filled(v, given) for k, v in kwargs.items()},
                    )
                )
            )

        inner = F.func.vmap(
            function, in_dims=tuple(0 if i == 0 else None for i in range(len(made)))
        )
        outer = tuple(None if i == 0 else 0 for i in range(len(made)))
        if len(made) > 1:
            actual = F.func.vmap(inner, in_dims=outer)(*(b.stacked for b in made))
            expected = [
                [function(made[0].each[j], *(b.each[k] for b in made[1:])) for j in range(SIZE)]
                for k in range(SIZE)
            ]
        else:
            twice = F.stack([made[0].stacked, made[0].stacked])
            actual = F.func.vmap(F.func.vmap(function))(twice)
            expected = [[function(made[0].each[j]) for j in range(SIZE)]] * 2
        for i, got in enumerate(actual):
            wanted = F.stack([F.stack([one[i] for one in line]) for line in expected])
            name = dtype_name(wanted)
            slack = 4 if LETTER[name] in "fc" else 1
            assert_values(row, to_array(got), to_array(wanted), name, f"result {i}", slack)

    check_samples(row, "vmap", dtype, few_samples(row, dtype, 2), check)


@pytest.mark.parametrize(
    ("row", "dtype"),
    cases(
        [r for r in FIXED_SHAPE if r.inplace and row_id(r) not in REFUSE_IN_PLACE],
        only=("float32", "int64"),
    ),
)
def test_in_place_under_vmap(row, dtype):
    """The tensor behind the batch is written to."""
    method = row.python.rpartition(".")[2] + "_"

    def check(sample: Sample) -> None:
        if not isinstance(sample.args[0], Operand) or draws(row):
            return
        args, kwargs, made = batches(row, sample, lambda i: True, 0)
        expected = callable_of(row)(*sample.tensors(F)[0], **sample.tensors(F)[1])
        if not result_fits(row, sample.args[0], expected):
            return

        def function(*given):
            self, *rest = (filled(a, given) for a in args)
            return getattr(self, method)(*rest, **{k: filled(v, given) for k, v in kwargs.items()})

        target = made[0].stacked.clone()
        loop = [function(*(b.each[k].clone() for b in made)) for k in range(SIZE)]
        F.func.vmap(function)(target, *(b.stacked for b in made[1:]))
        slack = 4 if LETTER[dtype] in "fc" else 1
        assert_values(row, to_array(target), to_array(F.stack(loop)), dtype, slack=slack)

    check_samples(row, "vmap", dtype, few_samples(row, dtype, 3), check)


# ---- derivatives of batches


def weights_like(output):
    """What the outputs are multiplied by before they are added up."""
    steps = F.arange(1, output.numel() + 1, dtype=F.float64).reshape(output.shape)
    return (steps * 0.9).cos() + 1.5


def weighted_sum(outputs):
    total = F.zeros((), dtype=F.float64)
    for o in outputs:
        o = o.real + 2 * o.imag if o.is_complex() else o
        total = total + (o * weights_like(o)).sum()
    return total


@pytest.mark.parametrize(
    ("row", "dtype"),
    cases(
        [r for r in FIXED_SHAPE if row_id(r) not in NO_DERIVATIVE], only=("float64", "complex128")
    ),
)
def test_derivatives_of_a_batch_match_a_loop(row, dtype):
    """vmap(grad), vmap(jvp) and grad(vmap) against a loop of backward passes."""
    if draws(row):
        pytest.skip("test_func_randomness.py covers random operators")
    samples = [s for s in all_samples(row, dtype) if s.smooth and s.operands()]
    samples = [s for s in samples if sum(o.values.size for o in s.operands()) <= 60]

    def check(sample: Sample) -> None:
        function, leaves = as_function(row, sample)
        if not leaves or not function(*leaves):
            return
        # The samples are smooth where they are; a little beside them, too.
        batch = [[t.detach() * (1 + 0.01 * k) for t in leaves] for k in range(SIZE)]
        stacked = [F.stack(tensors) for tensors in zip(*batch, strict=True)]
        every = tuple(range(len(leaves)))

        def loss(*tensors):
            return weighted_sum(function(*tensors))

        expected = []
        for tensors in batch:
            own = [t.clone().requires_grad_() for t in tensors]
            grads = F.autograd.grad(loss(*own), own, allow_unused=True)
            pairs = zip(grads, own, strict=True)
            expected.append([F.zeros_like(t) if g is None else g for g, t in pairs])
        expected = [F.stack(grads) for grads in zip(*expected, strict=True)]
        inside = F.func.vmap(F.func.grad(loss, argnums=every))(*stacked)
        outside = F.func.grad(lambda *s: F.func.vmap(loss)(*s).sum(), argnums=every)(*stacked)
        for which, grads in (("vmap(grad)", inside), ("grad(vmap)", outside)):
            for i, (got, wanted) in enumerate(zip(grads, expected, strict=True)):
                assert_near(got, wanted, f"{which}, gradient {i}")
        tangents = [t * 0.3 + 0.1 for t in stacked]

        def push(tensors, tangents):
            return F.func.jvp(loss, tensors, tangents)[1]

        pushed = F.func.vmap(push)(tuple(stacked), tuple(tangents))
        inner = sum(
            (g.conj() * t).real.reshape(SIZE, -1).sum(1)
            if t.is_complex()
            else (g * t).reshape(SIZE, -1).sum(1)
            for g, t in zip(expected, tangents, strict=True)
        )
        assert_near(pushed, inner, "vmap(jvp)")

    check_samples(
        row,
        "vmap",
        dtype,
        spread(samples, 3, f"{row_id(row)}:{dtype}:derivatives of batches"),
        check,
    )


def assert_near(got, wanted, what):
    assert got.shape == wanted.shape, f"{what}: {got.shape}, not {wanted.shape}"
    if wanted.numel():
        scale = float(wanted.abs().max()) + 1.0
        difference = float((got - wanted).abs().max())
        assert difference <= 1e-9 * scale, f"{what}:\n{got}\n{wanted}"
