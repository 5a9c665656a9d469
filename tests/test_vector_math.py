"""Accuracy of the CPU vector math (csrc/cpu/vector_math.h), measured in ulp.

A small C++ program is compiled at -O2 for the baseline instruction set and evaluates every function
on dense samples and on the special values; the references are NumPy's extended precision and the
math module.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
INF, NAN = math.inf, math.nan
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
# Where long double is plain double (macOS, MSVC), the reference itself is off by up to an ulp.
SLACK = 0.0 if np.finfo(np.longdouble).nmant > 52 else 1.0

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

Evaluate = Callable[..., np.ndarray]


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Evaluate:
    """A callable (function name, type, *arrays) -> array, backed by the compiled program."""
    folder = tmp_path_factory.mktemp("vector_math")
    program = folder / "check_vector_math"
    source = ROOT / "tests" / "cpp" / "check_vector_math.cpp"
    flags = ["-std=c++20", "-O2", "-fno-math-errno", "-fno-trapping-math", f"-I{ROOT / 'csrc'}"]
    flags.append(f"-I{ROOT / 'src' / 'facula'}")
    command = [str(COMPILER), *flags, str(source), "-o", str(program), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode != 0 and "c++20" in built.stderr:
        pytest.skip("the C++ compiler has no C++20")
    assert built.returncode == 0, built.stderr

    def call(name: str, kind: str, *arguments: np.ndarray) -> np.ndarray:
        np.concatenate(arguments).tofile(folder / "in")
        subprocess.run([program, name, kind, folder / "in", folder / "out"], check=True)
        return np.fromfile(folder / "out", arguments[0].dtype)

    return call


def ulp_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of the last place of the exact value; NaN against NaN counts as 0."""
    info = np.finfo(got.dtype)
    want = np.asarray(want, np.longdouble)
    exponent = np.frexp(np.abs(want))[1] - 1
    unit = np.ldexp(np.longdouble(1), np.maximum(exponent, info.minexp) - info.nmant)
    error = np.abs(got.astype(np.longdouble) - want) / unit
    rounded = want.astype(got.dtype)
    agree = (np.isnan(got) & np.isnan(want)) | (got == rounded)
    return np.where(agree, 0, np.where(np.isnan(error), INF, error)).astype(np.float64)


def sample(dtype: type, low: float, high: float) -> np.ndarray:
    """Uniform, per binade over the whole format, around 1, and the special values."""
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    n = 20000
    exponent = rng.integers(info.minexp - info.nmant, info.maxexp, n)
    binades = np.ldexp(rng.uniform(1, 2, n).astype(dtype), exponent) * rng.choice([-1, 1], n)
    around_one = 1 + rng.normal(0, 1, n // 4) * 10.0 ** rng.uniform(-info.nmant * 0.3, -1, n // 4)
    tiny, last = info.tiny, info.smallest_subnormal
    special = [0.0, 1.0, 0.5, tiny, last, info.max, info.eps, math.pi / 2, math.pi]
    x = np.concatenate(
        [
            rng.uniform(max(low, -1e4), min(high, 1e4), n),
            rng.uniform(-2, 2, n // 2),
            np.concatenate([binades, around_one, special]),
            -np.concatenate([around_one, special]),
        ]
    ).astype(dtype)
    return np.concatenate([x[(x >= low) & (x <= high)], np.array([INF, -INF, NAN], dtype)])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# name: (reference, [low, high] for float32, [low, high] for float64, ulp for each)
ANYWHERE, UNIT = (-INF, INF), (-2.0, 2.0)  # outside of the domain the answer is NaN
ANGLES, NEAR_ANGLES = (-3e13, 3e13), (-65536, 65536)
UNARY = {
    "exp": (np.exp, (-110, 110), (-750, 715), 1.1, 1.1),
    "exp2": (np.exp2, (-160, 130), (-1080, 1030), 1.2, 1.2),
    "expm1": (np.expm1, (-110, 95), (-800, 715), 1.7, 2.4),
    "log": (np.log, ANYWHERE, ANYWHERE, 1.0, 1.0),
    "log2": (np.log2, ANYWHERE, ANYWHERE, 1.8, 1.0),
    "log10": (np.log10, ANYWHERE, ANYWHERE, 0.6, 1.0),
    "log1p": (np.log1p, ANYWHERE, ANYWHERE, 1.0, 1.0),
    "sin": (np.sin, NEAR_ANGLES, ANGLES, 1.7, 1.0),
    "cos": (np.cos, NEAR_ANGLES, ANGLES, 1.7, 1.0),
    "tan": (np.tan, NEAR_ANGLES, ANGLES, 0.6, 2.3),
    "asin": (np.arcsin, UNIT, UNIT, 0.6, 1.0),
    "acos": (np.arccos, UNIT, UNIT, 0.6, 1.1),
    "atan": (np.arctan, ANYWHERE, ANYWHERE, 0.6, 1.6),
    "sinh": (np.sinh, (-100, 100), (-720, 720), 0.6, 2.0),
    "cosh": (np.cosh, (-100, 100), (-720, 720), 0.6, 1.6),
    "tanh": (np.tanh, ANYWHERE, ANYWHERE, 1.5, 1.6),
    "asinh": (np.arcsinh, ANYWHERE, ANYWHERE, 0.6, 2.0),
    "acosh": (np.arccosh, ANYWHERE, ANYWHERE, 0.6, 2.3),
    "atanh": (np.arctanh, UNIT, UNIT, 0.6, 2.0),
    "sigmoid": (sigmoid, (-110, 110), (-750, 750), 2.0, 2.0),
    "softplus": (lambda x: np.logaddexp(0, x), (-100, 100), (-700, 700), 2.0, 2.0),
    "silu": (lambda x: x * sigmoid(x), (-88.7, 88.7), (-709.7, 709.7), 2.3, 2.3),
    "sqrt": (np.sqrt, ANYWHERE, ANYWHERE, 0.51, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), ANYWHERE, ANYWHERE, 1.6, 1.6),
}


def test_documented_bounds_are_those_that_are_tested():
    documented = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for name, (*_, bound32, bound64) in UNARY.items():
        assert f"| {name} | {bound32} | {bound64} |" in documented


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_number_is_within_its_ulp_bound(evaluate, name, kind):
    reference, *ranges, bound32, bound64 = UNARY[name]
    bound = bound32 if kind == "f32" else bound64 + SLACK
    x = sample(DTYPES[kind], *ranges[kind == "f64"])
    finite = np.isfinite(x) if name == "silu" else np.full(x.shape, True)
    # glibc's long double is exact enough for everything but huge angles in float32
    wide = np.float64 if kind == "f32" and name in ("sin", "cos", "tan") else np.longdouble
    got, want = evaluate(name, kind, x), reference(x.astype(wide))
    error = np.where(finite, ulp_error(got, want), 0)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, f"{error[worst]:.2f} ulp at {x[worst]!r}: got {got[worst]!r}"
    signs = (np.signbit(got) != np.signbit(want)) & ~np.isnan(got) & finite
    assert not signs.any(), f"wrong sign at {x[signs][:4]}"


@pytest.mark.parametrize(
    ("name", "reference", "low", "high", "bound32", "bound64"),
    [
        # The math module's own error comes on top of the measured one.
        ("erf", math.erf, -6, 6, 2.0, 2.0),
        ("erfc", math.erfc, -5, 26, 0.6, 3.6),
        ("lgamma", math.lgamma, 10, 100, 0.6, 6.0),
        ("ndtr", lambda v: math.erfc(-v * math.sqrt(0.5)) / 2, -2, 8, 0.6, 8.0),
    ],
)
def test_error_and_gamma_functions_match_the_math_module(
    evaluate, name, reference, low, high, bound32, bound64
):
    for kind, bound in (("f32", bound32), ("f64", bound64)):
        x = np.linspace(low, high, 4001).astype(DTYPES[kind])
        want = np.array([reference(float(v)) for v in x])
        error = ulp_error(evaluate(name, kind, x), want)
        assert error.max() <= bound, f"{kind}: {error.max():.2f} ulp at {x[error.argmax()]!r}"


def test_inverse_error_function_undoes_the_error_function(evaluate):
    y = np.concatenate([np.linspace(-0.999999, 0.999999, 5001), [1 - 1e-12, 1e-300, -0.0]])
    x = evaluate("erfinv", "f64", y)
    back = np.array([math.erf(v) for v in x])
    # erf flattens out: what can be asked of x is its error times the slope.
    assert np.all(np.abs(back - y) <= 1.5e-15 * np.abs(y))
    edges = evaluate("erfinv", "f64", np.array([1.0, -1.0, 1.5, NAN]))
    assert edges[:2].tolist() == [INF, -INF] and np.isnan(edges[2:]).all()


def test_digamma_satisfies_recurrence_reflection_and_known_values(evaluate):
    euler = 0.57721566490153286
    x = np.array([1.0, 2.0, 0.5, 1e-5, -0.5, 100.0])
    known = [
        -euler,
        1 - euler,
        -euler - 2 * math.log(2),
        -100000.57719921568,
        0.03648997397857652,
        4.600161852738087,
    ]
    np.testing.assert_allclose(evaluate("digamma", "f64", x), known, rtol=4e-15, atol=1e-15)
    t = np.linspace(0.1, 30, 500)
    step = evaluate("digamma", "f64", t + 1) - evaluate("digamma", "f64", t)
    np.testing.assert_allclose(step, 1 / t, atol=2e-15)
    edges = evaluate("digamma", "f64", np.array([0.0, -0.0, -3.0, INF]))
    assert edges[0] == -INF and edges[1] == INF and np.isnan(edges[2]) and edges[3] == INF


def test_bessel_i0_matches_numpy(evaluate):
    x = np.linspace(-700, 700, 3001)
    np.testing.assert_allclose(evaluate("i0", "f64", x), np.i0(x), rtol=2e-14)


SPECIAL = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, INF, 1e-30, 1e30, 2.0**23 + 1, 2.0**53 - 1, 1e-310]
SPECIAL = [*SPECIAL, *(-v for v in SPECIAL), NAN]


def pairs(dtype: type, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    return (
        np.concatenate([first.astype(dtype), a.ravel()]),
        np.concatenate([second.astype(dtype), b.ravel()]),
    )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_pow_is_within_its_ulp_bound_and_follows_c99_at_the_edges(evaluate, kind):
    rng = np.random.default_rng(3)
    base = np.concatenate([np.exp(rng.uniform(-60, 60, 20000)), rng.uniform(0.5, 2, 20000)])
    exponent = np.concatenate([rng.uniform(-3, 3, 20000), rng.uniform(-700, 700, 20000)])
    a, b = pairs(DTYPES[kind], base, exponent)
    got, want = evaluate("pow", kind, a, b), np.power(a.astype(np.longdouble), b)
    error = ulp_error(got, want)
    worst = int(np.argmax(error))
    bound = 0.6 if kind == "f32" else 1.4 + SLACK
    assert error[worst] <= bound, f"{error[worst]:.2f} ulp at {a[worst]!r} ** {b[worst]!r}"
    assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(want)[~np.isnan(got)])


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "reference", "bound"),
    [("atan2", np.arctan2, 2.0), ("hypot", np.hypot, 1.4), ("copysign", np.copysign, 0)],
)
def test_function_of_two_numbers_is_within_its_ulp_bound(evaluate, name, reference, bound, kind):
    rng = np.random.default_rng(4)
    spread = [np.exp(rng.uniform(-80, 80, 10000)) * rng.choice([-1, 1], 10000) for _ in range(2)]
    a, b = pairs(DTYPES[kind], *(np.concatenate([s, rng.normal(0, 1, 20000)]) for s in spread))
    got = evaluate(name, kind, a, b)
    want = reference(a.astype(np.longdouble), b.astype(np.longdouble))
    error = ulp_error(got, want)
    worst = int(np.argmax(error))
    assert error[worst] <= bound + SLACK, f"{error[worst]:.2f} ulp at {a[worst]!r}, {b[worst]!r}"
    signs = (np.signbit(got) != np.signbit(want)) & ~np.isnan(got)
    assert not signs.any()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_remainders_are_exact(evaluate, kind):
    rng = np.random.default_rng(5)
    spread = [np.exp(rng.uniform(-80, 80, 10000)) * rng.choice([-1, 1], 10000) for _ in range(2)]
    a, b = pairs(DTYPES[kind], *(np.concatenate([s, rng.normal(0, 9, 20000)]) for s in spread))
    np.testing.assert_array_equal(evaluate("fmod_full_range", kind, a, b), np.fmod(a, b))
    np.testing.assert_array_equal(evaluate("remainder_full_range", kind, a, b), np.remainder(a, b))
    quotient = evaluate("floor_divide_full_range", kind, a, b)
    plain = np.isfinite(a) & np.isfinite(b) & (b != 0)
    np.testing.assert_array_equal(quotient[plain], np.floor_divide(a, b)[plain])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient[b == 0], (a / b)[b == 0])


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("trunc", np.trunc),
        ("round", np.round),
        ("abs", np.abs),
        ("isnan", np.isnan),
        ("isinf", np.isinf),
        ("isfinite", np.isfinite),
        ("signbit", np.signbit),
    ],
)
def test_exact_function_equals_numpy(evaluate, name, reference, kind):
    halves = np.arange(-1000, 1000, 0.5).astype(DTYPES[kind])
    x = np.concatenate([halves, sample(DTYPES[kind], -INF, INF)])
    got, want = evaluate(name, kind, x), reference(x).astype(x.dtype)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def test_maximum_propagates_nan_and_fmax_ignores_it(evaluate):
    a, b = pairs(np.float32, np.arange(4), np.arange(4)[::-1])
    for name in ("maximum", "minimum", "fmax", "fmin"):
        np.testing.assert_array_equal(evaluate(name, "f32", a, b), getattr(np, name)(a, b))


def test_logaddexp_and_entropy_terms_at_their_edges(evaluate):
    a, b = pairs(np.float64, np.linspace(-700, 700, 999), np.linspace(-30, 30, 999))
    for name in ("logaddexp", "logaddexp2"):
        want = getattr(np, name)(a.astype(np.longdouble), b.astype(np.longdouble))
        np.testing.assert_allclose(evaluate(name, "f64", a, b), want.astype(float), 1e-15, 1e-16)
    x, y = np.array([0.0, 0.0, 2.0, NAN]), np.array([0.0, NAN, 0.0, 1.0])
    np.testing.assert_array_equal(evaluate("xlogy", "f64", x, y), [0.0, NAN, -INF, NAN])
    np.testing.assert_array_equal(evaluate("xlog1py", "f64", x, y - 1), [0.0, NAN, -INF, NAN])
    x = np.array([0.0, 1.0, -1.0, INF, NAN])
    np.testing.assert_array_equal(evaluate("entr", "f64", x), [0.0, -0.0, -INF, -INF, NAN])


def test_gelu_keeps_relative_precision_for_negative_numbers(evaluate):
    x = np.linspace(-5, 5, 4001)
    want = np.array([v * math.erfc(-v * math.sqrt(0.5)) / 2 for v in x])
    np.testing.assert_allclose(evaluate("gelu", "f64", x), want, rtol=5e-15)
    np.testing.assert_allclose(evaluate("gelu", "f32", np.float32(x)), want, rtol=4e-6, atol=0)


@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_activations_of_numbers_without_an_exponential(evaluate, name, kind):
    x = np.array([-INF, -1e30, -800.0, -0.0, 0.0, 800.0, 1e30, INF, NAN], DTYPES[kind])
    got = evaluate(name, kind, x)
    np.testing.assert_array_equal(got, [NAN, -0.0, -0.0, -0.0, 0.0, *x[5:]])
    assert list(np.signbit(got[1:5])) == [True, True, True, False]


def test_huge_angles_are_either_in_range_or_left_to_the_full_range_functions(evaluate):
    rng = np.random.default_rng(6)
    for kind, top in (("f32", 127), ("f64", 1023)):
        x = np.ldexp(rng.uniform(1, 2, 3000), rng.integers(40, top, 3000)).astype(DTYPES[kind])
        inside = evaluate("angle_in_range", kind, x) != 0
        # Where multiplications and additions are fused, float32 angles are reduced in float32.
        fused = evaluate("angle_in_range", kind, np.array([2.0**17], x.dtype))[0] == 0
        assert np.array_equal(inside, x <= 2.0 ** (16 if fused else 45))
        for name in ("sin", "cos", "tan"):
            # a float32 angle is also a float64 one, whose sine NumPy takes with full reduction
            want = np.array([getattr(math, name)(float(v)) for v in x])
            fast = evaluate(name, kind, x)
            assert np.isnan(fast[~inside]).all()
            assert ulp_error(fast, want)[inside].max(initial=0) <= 3
            assert ulp_error(evaluate(f"{name}_full_range", kind, x), want).max() <= 2


def test_float32_full_range_angle_next_to_a_multiple_of_half_pi(evaluate):
    # 16367173 * 2^72 is the float32 closest to a multiple of pi/2.
    x = np.array([16367173 * 2.0**72, -16367173 * 2.0**72], np.float32)
    got = evaluate("cos_full_range", "f32", x)
    want = np.array([math.cos(float(v)) for v in x])
    assert ulp_error(got, want).max() <= 1.5


@pytest.mark.parametrize("kind", ["i16", "i64"])
def test_integer_division_and_power_follow_python(evaluate, kind):
    dtype = np.int16 if kind == "i16" else np.int64
    low, bits = int(np.iinfo(dtype).min), 16 if kind == "i16" else 64
    values = [0, 1, -1, 2, -2, 3, -3, 7, -7, 10, 100, -100, low, -low - 1]
    a, b = (g.ravel().astype(dtype) for g in np.meshgrid(values, values))

    def wrap(v: int) -> int:
        return (v - low) % 2**bits + low

    def power(x: int, y: int) -> int:
        if y < 0:
            return 1 if x == 1 else (-1 if y % 2 else 1) if x == -1 else 0
        return wrap(pow(x, y, 2**bits))

    python = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    want = {
        "pow": [power(x, y) for x, y in python],
        "gcd": [wrap(math.gcd(x, y)) for x, y in python],
        "floor_divide": [wrap(x // y) if y else 0 for x, y in python],
        "remainder": [x % y if y else 0 for x, y in python],
        "trunc_divide": [wrap(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) if y else 0
                         for x, y in python],
        "fmod": [abs(x) % abs(y) * (-1 if x < 0 else 1) if y else 0 for x, y in python],
    }  # fmt: skip
    few_bits = np.abs(a.astype(float)) < 2.0**52
    few_bits &= np.abs(b.astype(float)) < 2.0**52
    for name, expected in want.items():
        if name in ("floor_divide", "remainder", "fmod"):
            in_range = evaluate(name, kind, a, b)[few_bits]
            assert in_range.tolist() == np.array(expected)[few_bits].tolist(), name
            name += "_full_range"
        assert evaluate(name, kind, a, b).tolist() == expected, name
    small = (np.abs(a.astype(float)) < 200) & (np.abs(b.astype(float)) < 200)
    np.testing.assert_array_equal(evaluate("lcm", kind, a, b)[small], np.lcm(a, b)[small])


COMPLEX_UNARY = {
    "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "sqrt": np.sqrt,
    "reciprocal": np.reciprocal, "square": np.square, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "abs": np.abs, "angle": np.angle,
}  # fmt: skip


def complex_samples(dtype: type) -> np.ndarray:
    rng = np.random.default_rng(8)
    n = 3000
    parts = [
        np.concatenate([rng.normal(0, 1, n), rng.normal(0, 9, n), np.exp(rng.uniform(-30, 30, n))])
        for _ in range(2)
    ]
    circle = np.exp(1j * rng.uniform(-4, 4, n))
    return np.concatenate([parts[0] + 1j * parts[1], circle]).astype(dtype)


@pytest.mark.parametrize("kind", ["c64", "c128"])
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_complex_function_is_close_relative_to_its_modulus(evaluate, name, kind):
    z = complex_samples(DTYPES[kind])
    got = evaluate(name, kind, z)
    want = np.asarray(COMPLEX_UNARY[name](z.astype(np.clongdouble)))
    finite = np.isfinite(want.astype(z.dtype))
    error = np.abs(got.astype(np.clongdouble) - want) / np.maximum(np.abs(want), 1e-300)
    worst = error[finite].max() / np.finfo(z.dtype).eps
    assert worst <= 4 + 4 * SLACK, f"{worst:.2f} eps"


@pytest.mark.parametrize("kind", ["c64", "c128"])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "asin", "acosh", "tanh"])
def test_complex_function_has_c99_branch_cuts_and_signed_zeros(evaluate, name, kind):
    # NumPy's own functions follow C99 Annex G at zeros, infinities, NaN and on both sides of cuts.
    part = np.array([0.0, 1.0, 2.5, INF, -0.0, -1.0, -2.5, -INF, NAN])
    x, y = np.meshgrid(part, part)
    z = np.empty(x.size, DTYPES[kind])
    z.real, z.imag = x.ravel(), y.ravel()
    got, want = evaluate(name, kind, z), COMPLEX_UNARY[name](z)
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(g, w, rtol=8 * float(np.finfo(g.dtype).eps), atol=0)
        known = ~np.isnan(w)
        if name != "exp":  # the sign of e^(inf + i inf) is unspecified
            np.testing.assert_array_equal(np.signbit(g[known]), np.signbit(w[known]))


@pytest.mark.parametrize("kind", ["c64", "c128"])
def test_complex_division_neither_overflows_nor_underflows(evaluate, kind):
    big = 1e38 if kind == "c64" else 1e308
    z = complex_samples(DTYPES[kind])
    rng = np.random.default_rng(9)
    a = np.concatenate([z, np.array([big + 1j * big, big, (1 + 1j) / big], z.dtype)])
    b = np.concatenate([rng.permutation(z), np.array([big - 1j * big, 1j * big, 1 / big], z.dtype)])
    want = np.divide(a.astype(np.clongdouble), b.astype(np.clongdouble))
    error = np.abs(evaluate("divide", kind, a, b).astype(np.clongdouble) - want) / np.abs(want)
    assert error.max() <= 3 * np.finfo(z.dtype).eps
    zero = evaluate("divide", kind, np.ones(2, z.dtype), np.array([0, complex(INF, 0)], z.dtype))
    assert zero[0].real == INF and zero[1] == 0
