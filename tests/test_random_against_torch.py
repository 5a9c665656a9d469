"""Random numbers beside the real PyTorch, where it is installed: values and states after each call.

Facula's generator goes through PyTorch's states, so an error in one call does not hide in the next.
"""

import random

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not IS_FACULA, reason="compares Facula with PyTorch"),
    pytest.mark.filterwarnings("ignore"),
]

FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
LENGTHS = [*range(41), 100, 1000, 1025, 2049]
SHAPES = [(3, 4), (4, 1, 6), (33, 3), (2, 16, 3, 3), (0, 3), ()]
PRECISION = {"float16": 1e-3, "bfloat16": 8e-3}
KEPT_NORMAL = slice(5016, 5040)  # bytes of doubles that may round differently


def layouts(package, shape, dtype):
    """Destinations of one shape: dense, transposed, with gaps."""
    dtype = getattr(package, dtype)
    yield package.zeros(shape, dtype=dtype)
    if shape:
        order = tuple(reversed(range(len(shape))))
        yield package.zeros(shape[::-1], dtype=dtype).permute(order)
        wide = package.zeros([2 * n for n in shape], dtype=dtype)
        yield wide[tuple(slice(None, None, 2) for _ in shape)]


def calls_of_a_length(n):
    for dtype in FLOATS + COMPLEX:
        yield (
            f"rand({n}) {dtype}",
            lambda p, g, d=dtype: p.rand(n, dtype=getattr(p, d), generator=g),
        )
        yield (
            f"randn({n}) {dtype}",
            lambda p, g, d=dtype: p.randn(n, dtype=getattr(p, d), generator=g),
        )
    for dtype in FLOATS + INTEGERS[1:]:
        yield (
            f"randint({n}) {dtype}",
            lambda p, g, d=dtype: p.randint(3, 100, (n,), dtype=getattr(p, d), generator=g),
        )
        if not (dtype == "bfloat16" and n > 257) and not (dtype in ("int8", "uint8") and n > 100):
            yield (
                f"randperm({n}) {dtype}",
                lambda p, g, d=dtype: p.randperm(n, dtype=getattr(p, d), generator=g),
            )
    for dtype in FLOATS:
        yield (
            f"normal({n}) {dtype}",
            lambda p, g, d=dtype: p.normal(
                p.zeros(n, dtype=getattr(p, d)), p.ones(n, dtype=getattr(p, d)), generator=g
            ),
        )
        yield (
            f"poisson({n}) {dtype}",
            lambda p, g, d=dtype: p.poisson(p.arange(n).to(getattr(p, d)) / 3, generator=g),
        )
        yield (
            f"bernoulli({n}) {dtype}",
            lambda p, g, d=dtype: p.bernoulli(
                (p.arange(n) % 11).to(getattr(p, d)) / 10, generator=g
            ),
        )
    for dtype in FLOATS[2:]:
        yield (
            f"binomial({n}) {dtype}",
            lambda p, g, d=dtype: p.binomial(
                p.arange(n).to(getattr(p, d)), (p.arange(n) % 11).to(getattr(p, d)) / 10, g
            ),
        )


FILLS = {
    "uniform_": (FLOATS + COMPLEX, lambda t, g: t.uniform_(-2, 5, generator=g)),
    "normal_": (FLOATS + COMPLEX, lambda t, g: t.normal_(0, 2, generator=g)),
    "exponential_": (FLOATS, lambda t, g: t.exponential_(1.7, generator=g)),
    "cauchy_": (FLOATS, lambda t, g: t.cauchy_(1, 2, generator=g)),
    "log_normal_": (FLOATS, lambda t, g: t.log_normal_(0.5, 0.25, generator=g)),
    "geometric_": (FLOATS + INTEGERS[1:], lambda t, g: t.geometric_(0.3, generator=g)),
    "bernoulli_": (FLOATS + INTEGERS, lambda t, g: t.bernoulli_(0.3, generator=g)),
    "random_": (FLOATS + INTEGERS, lambda t, g: t.random_(generator=g)),
    "random_(2)": (FLOATS + INTEGERS, lambda t, g: t.random_(2, generator=g)),
}


def fills(shape):
    kinds = range(len(list(layouts(F, shape, "float32"))))
    for name, (dtypes, fill) in FILLS.items():
        for dtype in dtypes:
            for kind in kinds:
                yield (
                    f"{name} {shape} {dtype} {kind}",
                    lambda p, g, d=dtype, k=kind, f=fill: f(list(layouts(p, shape, d))[k], g),
                )
    for dtype in FLOATS:
        for kind in kinds:
            yield (
                f"randn_like {shape} {dtype} {kind}",
                lambda p, g, d=dtype, k=kind: p.randn_like(
                    list(layouts(p, shape, d))[k], generator=g
                ),
            )


def ranges(dtype):
    edges = [0, 1, 5, -1, 127, 255, 2048, 2**24, 2**28 - 1, 2**28, 2**31, 2**32, 2**40, 2**53]
    for low in [*edges, -128, -(2**31)]:
        for high in edges:
            yield (
                f"random_({low}, {high}) {dtype}",
                lambda p, g, a=low, b=high: p.zeros(9, dtype=getattr(p, dtype)).random_(
                    a, b, generator=g
                ),
            )


def multinomials(dtype):
    source = np.random.default_rng(0)
    for shape in [(1,), (3,), (17,), (1000,), (3, 4), (40, 100)]:
        weights = source.random(shape).tolist()
        for samples in (1, 2, 50):
            for again in (False, True):
                yield (
                    f"multinomial {shape} {samples} {again}",
                    lambda p, g, w=weights, n=samples, r=again: p.multinomial(
                        p.tensor(w).to(getattr(p, dtype)), n, r, generator=g
                    ),
                )


def outcome(call, package, generator):
    try:
        return call(package, generator), None
    except (RuntimeError, TypeError, ValueError) as error:
        return None, error


def values(tensor):
    half = str(tensor.dtype).endswith("float16")  # also bfloat16, which NumPy does not know
    return (tensor.float() if half else tensor).numpy()


def compare(name, call, theirs, ours):
    expected, refused = outcome(call, torch, theirs)
    drawn, error = outcome(call, F, ours)
    assert (refused is None) == (error is None), f"{name}: {refused!r} against {error!r}"
    if expected is not None:
        dtype = str(expected.dtype).rpartition(".")[2]
        assert dtype == str(drawn.dtype).rpartition(".")[2], name
        assert expected.stride() == drawn.stride(), name
        close = PRECISION.get(dtype, 1e-6) if expected.is_floating_point() else 0
        if dtype.startswith("complex"):
            close = 1e-6
        np.testing.assert_allclose(
            values(drawn), values(expected), rtol=close, atol=close, err_msg=name
        )
    before, after = theirs.get_state().numpy(), ours.get_state().numpy()
    differs = before != after
    differs[KEPT_NORMAL] = False
    assert not differs.any(), f"{name}: the states differ at the bytes {np.flatnonzero(differs)}"
    ours.set_state(F.from_numpy(before.copy()))


def pair(seed):
    return torch.Generator().manual_seed(seed), F.Generator().manual_seed(seed)


@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n):
    theirs, ours = pair(n)
    for name, call in calls_of_a_length(n):
        compare(name, call, theirs, ours)


@pytest.mark.parametrize("shape", [(n,) for n in (1, 8, 15, 16, 17, 40, 1000)] + SHAPES, ids=str)
def test_every_layout(shape):
    theirs, ours = pair(1234)
    for name, call in fills(shape):
        compare(name, call, theirs, ours)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_every_range(dtype):
    theirs, ours = pair(7)
    for name, call in ranges(dtype):
        compare(name, call, theirs, ours)


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(dtype):
    theirs, ours = pair(11)
    for name, call in multinomials(dtype):
        compare(name, call, theirs, ours)


@pytest.mark.parametrize("seed", [0, -3, 2**40 + 9])
def test_mixed_sequences(seed):
    """Odd counts of normals leave one for later; other draws come between."""
    choose = random.Random(seed)
    known = [c for n in (1, 3, 5, 16, 17) for c in calls_of_a_length(n)]
    known += [c for shape in ((7,), (4, 5)) for c in fills(shape)]
    theirs, ours = pair(seed)
    for _ in range(300):
        compare(*choose.choice(known), theirs, ours)


def test_states_can_be_exchanged():
    theirs, ours = pair(3)
    torch.randn(3, generator=theirs)
    ours.set_state(F.from_numpy(theirs.get_state().numpy().copy()))
    assert F.randn(5, generator=ours).tolist() == pytest.approx(
        torch.randn(5, generator=theirs).tolist(), rel=1e-6
    )
    F.randn(4, generator=ours)
    theirs.set_state(torch.from_numpy(ours.get_state().numpy().copy()))
    assert torch.randn(5, generator=theirs).tolist() == pytest.approx(
        F.randn(5, generator=ours).tolist(), rel=1e-6
    )
