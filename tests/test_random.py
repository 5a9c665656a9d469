"""Random numbers: PyTorch's CPU streams number by number, generators and their state."""

from importlib import import_module

import pytest
from package_under_test import F

# name: (call, its numbers after manual_seed(0), after manual_seed(1234)). Complex numbers are
# written as pairs. PyTorch 2.13 gave them on x86-64.
STREAMS = {
    "rand": (
        lambda: F.rand(5),
        "0.49625659 0.7682218 0.08847743 0.13203049 0.30742282",
        "0.02897924 0.40189856 0.25984418 0.36664134 0.05830073",
    ),
    "rand of float64": (
        lambda: F.rand(3, dtype=F.float64),
        "0.970053 0.70781986 0.45938294",
        "0.23183417 0.07875386 0.46640616",
    ),
    "rand of bfloat16": (
        lambda: F.rand(3, dtype=F.bfloat16),
        "0.49609375 0.76953125 0.08837891",
        "0.02893066 0.40234375 0.25976562",
    ),
    "rand of complex64": (
        lambda: F.rand(2, dtype=F.complex64),
        "0.49625659 0.7682218 0.08847743 0.13203049",
        "0.02897924 0.40189856 0.25984418 0.36664134",
    ),
    "uniform_": (
        lambda: F.empty(4).uniform_(-1, 1),
        "-0.00748682 0.53644359 -0.82304513 -0.73593903",
        "-0.94204152 -0.19620287 -0.48031163 -0.26671731",
    ),
    "uniform_ of a transpose": (
        lambda: F.empty(2, 3).t().uniform_(),
        "0.49625659 0.13203049 0.7682218 0.30742282 0.08847743 0.63407868",
        "0.02897924 0.36664134 0.40189856 0.05830073 0.25984418 0.70064473",
    ),
    "randn below 16": (
        lambda: F.randn(5),
        "1.54099607 -0.2934289 -2.17878938 0.56843126 -1.08452237",
        "0.04613046 0.40240282 -1.01152909 0.21673824 -0.6122731",
    ),
    "randn of 16": (
        lambda: F.randn(16),
        "-1.12583983 -1.1523602 -0.25057858 -0.43387881 0.84871036 0.69200915 -0.31601277 "
        "-2.11521935 0.32227492 -1.26333475 0.34998319 0.30813393 0.11984151 1.2376579 "
        "1.11677718 -0.24727815",
        "-0.11171857 -0.49659011 0.1630737 -0.88168776 0.05390019 0.6683737 -0.05965761 "
        "-0.46749794 -0.21525294 0.88396162 -0.75841689 -0.3688679 -0.34239361 -1.40197182 "
        "0.32064798 -1.0218575",
    ),
    "randn of 19": (
        lambda: F.randn(19),
        "-1.12583983 -1.1523602 -0.25057858 0.79350835 0.59883946 -1.55509508 -0.34136039 "
        "1.85300612 0.46809641 -0.15771244 1.44366014 0.18347794 1.38936615 1.58633423 "
        "0.94629836 -0.84367675 0.93182659 1.25900924 2.00498056",
        "-0.11171857 -0.49659011 0.1630737 -1.60236216 0.28909719 0.48987085 -0.38527462 "
        "-0.71203458 0.63691264 -0.7140801 -1.0831244 0.24625207 -1.32481194 0.69698054 "
        "-0.66305387 1.21575689 -2.52733517 1.47778428 -0.16962363",
    ),
    "randn of float64 below 16": (
        lambda: F.randn(3, dtype=F.float64),
        "1.54099611 -0.29342891 -2.17878938",
        "0.04613046 0.40240283 -1.0115291",
    ),
    "randn of float64 above 16": (
        lambda: F.randn(17, dtype=F.float64),
        "-2.3104118 -0.63327461 -1.26092466 -0.72695106 -0.01996475 0.21029989 0.17718935 "
        "-0.83051005 0.23871806 -0.24267938 -0.77301128 -1.59518149 -0.68700369 1.48807432 "
        "-0.4484158 -0.89100304 0.67485754",
        "-0.08831008 0.65732228 -1.63476328 -0.61077166 0.60029201 -0.87687804 0.96489591 "
        "-0.19255766 0.11481509 0.09326056 0.30248663 1.3121924 -0.56103477 0.19001242 "
        "-0.16596482 0.91066209 -0.36601148",
    ),
    "randn of complex64": (
        lambda: F.randn(2, dtype=F.complex64),
        "1.08964884 -0.20748557 -1.54063678 0.4019416",
        "0.03261916 0.28454176 -0.71525908 0.15325707",
    ),
    "normal_ below 16": (
        lambda: F.empty(4).normal_(2, 3),
        "6.62298822 1.11971331 -4.53636837 3.70529389",
        "2.13839149 3.2072084 -1.03458726 2.65021467",
    ),
    "normal_ of 16": (
        lambda: F.empty(16).normal_(2, 3),
        "-1.37751949 -1.4570806 1.24826431 0.69836354 4.54613113 4.07602739 1.05196166 "
        "-4.3456583 2.96682477 -1.79000425 3.04994965 2.92440176 2.35952449 5.71297359 "
        "5.35033131 1.2581656",
        "1.66484427 0.51022971 2.4892211 -0.64506328 2.16170049 4.00512123 1.82102716 "
        "0.59750617 1.35424113 4.65188503 -0.27525067 0.89339626 0.97281921 -2.20591545 "
        "2.96194386 -1.0655725",
    ),
    "normal of tensors": (
        lambda: F.normal(F.tensor([0.0, 10.0]), F.tensor([1.0, 2.0])),
        "1.54099607 9.4131422",
        "0.04613046 10.80480576",
    ),
    "a normal is kept for the next call": (
        lambda: F.stack([F.randn(()), F.randn(()), F.randn(())]),
        "1.54099607 -0.2934289 -2.17878938",
        "0.04613046 0.40240282 -1.01152909",
    ),
    "uniforms after an odd count of normals": (
        lambda: F.cat([F.randn(3), F.rand(2)]),
        "1.54099607 -0.2934289 -2.17878938 0.45562798 0.63230628",
        "0.04613046 0.40240282 -1.01152909 0.67380613 0.33146197",
    ),
    "randint": (
        lambda: F.randint(10, (8,)),
        "4 9 3 0 3 9 7 3",
        "5 1 6 5 6 4 2 5",
    ),
    "randint from a negative": (
        lambda: F.randint(-5, 5, (6,)),
        "-1 4 -2 -5 -2 4",
        "0 -4 1 0 1 -1",
    ),
    "randint beyond 32 bits": (
        lambda: F.randint(0, 2**40, (3,)),
        "741280623151 506137267392 291447657211",
        "204000912083 166721346613 878802328948",
    ),
    "random_": (
        lambda: F.empty(4, dtype=F.int64).random_(0, 100),
        "44 39 33 60",
        "75 71 6 65",
    ),
    "randperm": (
        lambda: F.randperm(8),
        "4 0 7 3 2 5 1 6",
        "7 5 2 3 4 6 1 0",
    ),
    "bernoulli_": (
        lambda: F.empty(10).bernoulli_(0.3),
        "0.0 0.0 0.0 0.0 0.0 0.0 1.0 0.0 0.0 1.0",
        "1.0 1.0 0.0 0.0 0.0 1.0 1.0 1.0 1.0 0.0",
    ),
    "bernoulli of probabilities": (
        lambda: F.bernoulli(F.full((10,), 0.3)),
        "0.0 0.0 1.0 1.0 0.0 0.0 0.0 0.0 0.0 0.0",
        "1.0 0.0 1.0 0.0 1.0 0.0 1.0 0.0 0.0 0.0",
    ),
    "exponential_": (
        lambda: F.empty(3).exponential_(),
        "3.50832629 1.23038471 0.61504412",
        "0.26374966 0.08202802 0.6281203",
    ),
}


def flat(values):
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, list):
            yield from flat(value)
        elif isinstance(value, complex):
            yield from (value.real, value.imag)
        else:
            yield value


@pytest.mark.parametrize("call, zero, other", STREAMS.values(), ids=STREAMS.keys())
def test_streams_are_those_of_pytorch(keep_random_state, call, zero, other):
    for seed, numbers in ((0, zero), (1234, other)):
        expected = [float(n) for n in numbers.split()]
        F.manual_seed(seed)
        drawn = list(flat(call().tolist()))
        assert drawn == pytest.approx(expected, rel=2e-6, abs=2e-7)
        if all(n == int(n) for n in expected):
            assert drawn == expected


def test_float32_uniforms_have_24_bits(keep_random_state):
    F.manual_seed(0)
    assert (F.rand(4) * 2**24).tolist() == [8325804, 12888623, 1484405, 2215104]
    assert F.rand(100_000).min().item() >= 0 and F.rand(100_000).max().item() < 1


# ---- generators ------------------------------------------------------------------------------


def test_generators_are_independent(keep_random_state):
    F.manual_seed(0)
    expected = F.rand(4).tolist()
    first, second = F.Generator(), F.Generator()
    assert first.manual_seed(0) is first
    second.manual_seed(0)
    F.manual_seed(99)
    assert F.rand(4, generator=first).tolist() == expected
    assert F.rand(4, generator=second).tolist() == expected
    assert F.rand(4, generator=first).tolist() != expected


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: F.rand(3, generator=g),
        lambda g: F.randn(3, generator=g),
        lambda g: F.randn(20, generator=g),
        lambda g: F.randint(100, (3,), generator=g),
        lambda g: F.randperm(50, generator=g),
        lambda g: F.empty(3).uniform_(generator=g),
        lambda g: F.empty(3).normal_(generator=g),
        lambda g: F.empty(9).bernoulli_(0.5, generator=g),
        lambda g: F.bernoulli(F.full((9,), 0.5), generator=g),
    ],
)
def test_every_draw_takes_a_generator_and_leaves_the_default_alone(draw):
    before = F.get_rng_state()
    g = F.Generator().manual_seed(5)
    first, second = draw(g).tolist(), draw(g).tolist()
    assert draw(F.Generator().manual_seed(5)).tolist() == first
    assert first != second
    assert F.get_rng_state().tolist() == before.tolist()


def test_seeds(keep_random_state):
    g = F.Generator()
    assert g.device == F.device("cpu")
    assert g.initial_seed() == 67280421310721  # PyTorch's default seed
    assert g.manual_seed(7).initial_seed() == 7
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    assert g.seed() == g.initial_seed()
    assert F.manual_seed(42) is F.default_generator
    assert F.initial_seed() == F.default_generator.initial_seed() == 42
    for bad in (2**64, -(2**63) - 1, "a"):
        with pytest.raises((ValueError, OverflowError, RuntimeError, TypeError)):
            F.manual_seed(bad)


def test_the_seed_is_reduced_to_32_bits(keep_random_state):
    F.manual_seed(5)
    expected = F.rand(2).tolist()
    F.manual_seed(5 + 2**32)
    assert F.rand(2).tolist() == expected


@pytest.mark.parametrize("before", [0, 1, 3, 20, 700])
def test_state_round_trip(before):
    g = F.Generator().manual_seed(3)
    F.randn(before, generator=g)  # odd counts leave a normal in the state
    state = g.get_state()
    assert state.dtype is F.uint8
    expected = [F.randn(3, generator=g).tolist(), F.rand(700, generator=g).tolist()]
    for generator in (g, F.Generator()):
        generator.set_state(state)
        drawn = [
            F.randn(3, generator=generator).tolist(),
            F.rand(700, generator=generator).tolist(),
        ]
        assert drawn == expected


def test_set_state_refuses_what_is_no_state():
    g = F.Generator().manual_seed(3)
    with pytest.raises(TypeError):
        g.set_state(F.zeros(3))
    with pytest.raises(RuntimeError):
        g.set_state(F.zeros(3, dtype=F.uint8))
    with pytest.raises(TypeError):
        g.set_state([1, 2])
    assert g.initial_seed() == 3


def test_global_state_functions(keep_random_state):
    F.manual_seed(8)
    state = F.get_rng_state()
    expected = F.rand(3).tolist()
    F.set_rng_state(state)
    assert F.rand(3).tolist() == expected


def test_fork_rng_puts_the_state_back(keep_random_state):
    random = import_module(F.__name__ + ".random")
    F.manual_seed(8)
    expected = F.rand(3).tolist()
    F.manual_seed(8)
    with random.fork_rng():
        F.manual_seed(1)
        F.rand(100)
    assert F.rand(3).tolist() == expected


def test_different_seeds_and_calls_differ(keep_random_state):
    F.manual_seed(1)
    a, b = F.rand(8).tolist(), F.rand(8).tolist()
    F.manual_seed(2)
    assert len({tuple(a), tuple(b), tuple(F.rand(8).tolist())}) == 3


# ---- dtypes, shapes, ranges ------------------------------------------------------------------


def test_dtypes_of_random_tensors():
    assert F.rand(2, 3).shape == F.randn((2, 3)).shape == (2, 3)
    assert F.randint(10, (2,)).dtype is F.int64
    assert F.randint(10, (2,), dtype=F.uint8).dtype is F.uint8
    assert F.randint(10, (2,), dtype=F.float32).dtype is F.float32
    assert F.randperm(3, dtype=F.int32).dtype is F.int32
    assert F.randperm(0).tolist() == []
    assert F.rand_like(F.zeros(2, dtype=F.float64)).dtype is F.float64
    assert F.randn_like(F.zeros(2), dtype=F.float16).dtype is F.float16
    assert F.randint_like(F.zeros(2), 5).dtype is F.float32
    assert F.empty(3, dtype=F.int64).bernoulli_().dtype is F.int64
    assert F.normal(0.0, 1.0, (2,)).shape == (2,)


def test_moments_are_right():
    g = F.Generator().manual_seed(0)
    n = 200_000
    normal, uniform = F.randn(n, generator=g), F.rand(n, generator=g)
    assert abs(normal.mean().item()) < 0.01
    assert abs(normal.std().item() - 1) < 0.01
    assert abs((normal**3).mean().item()) < 0.03
    assert abs((normal**4).mean().item() - 3) < 0.1
    assert abs(uniform.mean().item() - 0.5) < 0.003
    assert abs(uniform.var().item() - 1 / 12) < 0.002
    assert sorted(F.randperm(1000, generator=g).tolist()) == list(range(1000))
    assert set(F.randint(3, 6, (1000,), generator=g).tolist()) == {3, 4, 5}
    assert abs(F.empty(n).bernoulli_(0.25, generator=g).mean().item() - 0.25) < 0.005


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: F.randint(5, 5, (2,)), RuntimeError, "from.*less than.*to"),
        (lambda: F.randint(0, (2,)), RuntimeError, "from.*less than.*to"),
        (lambda: F.randint(300, (3,), dtype=F.uint8), RuntimeError, "out of bounds"),
        (lambda: F.empty(3).uniform_(2, 1), RuntimeError, "uniform_.*from=2.*to=1"),
        (lambda: F.empty(3).normal_(0, -1), RuntimeError, "std"),
        (lambda: F.empty(3).bernoulli_(1.5), RuntimeError, r"p.*\[0, 1\].*1.5"),
        (lambda: F.bernoulli(F.tensor([1.5])), RuntimeError, "p"),
        (lambda: F.randperm(-1), RuntimeError, "negative"),
        (lambda: F.rand(3, dtype=F.int64), RuntimeError, "Long|int64"),
        (lambda: F.randn(3, dtype=F.int64), RuntimeError, "Long|int64"),
        (lambda: F.rand(2, generator=3), TypeError, "generator"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
