"""Random numbers: PyTorch's CPU streams number by number, generators and their state."""

import pickle
import struct
from importlib import import_module

import pytest
from package_under_test import F
from random_streams import STREAMS


def flat(values):
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, list):
            yield from flat(value)
        elif isinstance(value, complex):
            yield from (value.real, value.imag)
        else:
            yield value


def number(text):
    return float(text) if set(text) & set(".e") else int(text)


@pytest.mark.parametrize("call, zero, other", STREAMS.values(), ids=STREAMS.keys())
def test_streams_are_those_of_pytorch(keep_random_state, call, zero, other):
    for seed, numbers in ((0, zero), (1234, other)):
        expected = [number(n) for n in numbers.split()]
        F.manual_seed(seed)
        drawn = list(flat(call().tolist()))
        if all(n == int(n) for n in expected):
            assert drawn == expected
        else:
            assert drawn == pytest.approx(expected, rel=2e-6, abs=2e-7)


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
        lambda g: F.multinomial(F.ones(50), 9, generator=g),
        lambda g: F.multinomial(F.ones(50), 9, True, generator=g),
        lambda g: F.poisson(F.full((9,), 50.0), generator=g),
        lambda g: F.binomial(F.full((9,), 50.0), F.full((9,), 0.5), generator=g),
        lambda g: F.normal(F.zeros(5), F.ones(5), generator=g),
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
        with pytest.raises(ValueError):
            F.manual_seed(bad)
    for bad in (1.0, "3", True, None):
        with pytest.raises(RuntimeError, match="manual_seed expected"):
            g.manual_seed(bad)


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


def test_state_has_the_bytes_of_pytorch():
    g = F.Generator().manual_seed(-3)
    F.randn(3, generator=g)
    state = bytes(g.get_state().tolist())
    assert len(state) == 5056
    seed, left, seeded, place = struct.unpack_from("<QiiQ", state)
    assert (seed, left, seeded, place) == (2**64 - 3, 617, 1, 8)
    assert struct.unpack_from("<3Q", state, 24) == (1691946981, 4078042072, 755997575)
    assert struct.unpack_from("<d", state, 5024)[0] == pytest.approx(-0.523453904016257)
    assert struct.unpack_from("<i", state, 5040) == (1,)


def test_clone_state_goes_on_alone():
    g = F.Generator().manual_seed(3)
    F.randn(3, generator=g)
    copy = g.clone_state()
    expected = F.randn(5, generator=g).tolist()
    assert F.randn(5, generator=copy).tolist() == expected
    assert copy.device == g.device and copy.initial_seed() == 3


def test_a_seed_counts_before_a_number_is_drawn():
    generator = F.Generator().manual_seed(5)
    drawn = F.rand(3, generator=F.Generator().manual_seed(5))
    copy, again = generator.clone_state(), F.Generator()
    again.set_state(generator.get_state())
    assert copy.initial_seed() == 5
    for one in (generator, copy, again, pickle.loads(pickle.dumps(copy.manual_seed(5)))):
        assert F.equal(F.rand(3, generator=one), drawn)
    F.rand(700, generator=generator)
    copy = generator.clone_state()
    assert F.equal(F.randn(700, generator=copy), F.randn(700, generator=generator))
    assert F.equal(copy.get_state(), generator.get_state())


def test_generators_have_no_offset_and_no_place_in_graphs():
    g = F.Generator()
    with pytest.raises(RuntimeError, match="offset"):
        g.get_offset()
    with pytest.raises(RuntimeError, match="offset"):
        g.set_offset(0)
    with pytest.raises(NotImplementedError):
        g.graphsafe_get_state()
    with pytest.raises(NotImplementedError):
        g.graphsafe_set_state(g)


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


def test_fork_rng_can_be_switched_off(keep_random_state):
    F.manual_seed(8)
    F.rand(3)
    expected = F.rand(3).tolist()
    F.manual_seed(8)
    with import_module(F.__name__ + ".random").fork_rng(enabled=False):
        F.rand(3)
    assert F.rand(3).tolist() == expected


def test_threads_that_load_no_data_share_the_default_generator():
    assert import_module(F.__name__ + ".random").thread_safe_generator() is None


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
        (lambda: F.binomial(F.ones(2).long(), F.ones(2)), ValueError, "count"),
        (lambda: F.binomial(F.ones(2), F.ones(2).double()), RuntimeError, "dtype|Double"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_binomial_counts_have_the_right_mean_and_spread():
    g = F.Generator().manual_seed(0)
    for trials, p in ((5, 0.3), (40, 0.9), (200, 0.4)):
        counts = F.binomial(
            F.full((20_000,), trials, dtype=F.float64), F.full((1,), p, dtype=F.float64), g
        )
        assert abs(counts.mean().item() / (trials * p) - 1) < 0.02
        assert abs(counts.var().item() / (trials * p * (1 - p)) - 1) < 0.05
        assert counts.min().item() >= 0 and counts.max().item() <= trials
    few = F.binomial(F.full((4,), 10, dtype=F.float32), F.tensor([0.0, 1.0, 0.5, 0.5]))
    assert few[:2].tolist() == [0, 10]


def test_binomial_of_endless_trials_raises():
    with pytest.raises(ValueError, match="finite"):
        F.binomial(F.tensor([float("inf")]), F.tensor([0.5]))
