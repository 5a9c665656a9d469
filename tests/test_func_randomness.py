"""Random operators under vmap: refused, the same for all entries, or different."""

import pytest
from package_under_test import F, assert_equal

vmap = F.func.vmap

RANDOM = {
    "rand": lambda x: F.rand(3),
    "randn": lambda x: F.randn(3),
    "randint": lambda x: F.randint(0, 1000, (3,)),
    "randperm": lambda x: F.randperm(6),
    "rand_like": lambda x: F.rand_like(x),
    "randn_like": lambda x: F.randn_like(x),
    "bernoulli": lambda x: F.bernoulli(x * 0 + 0.5),
    "uniform_": lambda x: x.clone().uniform_(),
    "normal_": lambda x: F.zeros_like(x).normal_(),
    "exponential_": lambda x: x.clone().exponential_(),
}

each = pytest.mark.parametrize("draw", RANDOM.values(), ids=RANDOM.keys())


@pytest.fixture(autouse=True)
def seeded(keep_random_state):
    F.manual_seed(0)


@each
def test_error_is_the_default(draw):
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(draw)(F.ones(4, 8))


@each
def test_different(draw):
    result = vmap(draw, randomness="different")(F.ones(4, 8))
    assert result.shape[0] == 4
    rows = [tuple(row.tolist()) for row in result]
    assert len(set(rows)) == 4


@pytest.mark.parametrize(
    "name", [n for n in RANDOM if n not in ("bernoulli", "uniform_", "exponential_", "normal_")]
)
def test_same(name):
    result = vmap(RANDOM[name], randomness="same")(F.ones(4, 8))
    for row in result[1:]:
        assert_equal(row, result[0])


def test_same_draws_as_a_call_outside():
    F.manual_seed(3)
    expected = F.rand(3)
    F.manual_seed(3)
    result = vmap(lambda x: F.rand(3), randomness="same")(F.ones(4))
    assert_equal(result[2], expected)


def test_nested_modes_hold_for_their_own_dimension():
    def function(x):
        return F.rand(3)

    same_inside = vmap(vmap(function, randomness="same"), randomness="different")(F.ones(4, 5))
    assert tuple(same_inside.shape) == (4, 5, 3)
    assert_equal(same_inside[:, 1], same_inside[:, 0])
    assert not bool((same_inside[1] == same_inside[0]).any())
    same_outside = vmap(vmap(function, randomness="different"), randomness="same")(F.ones(4, 5))
    assert_equal(same_outside[1], same_outside[0])
    assert not bool((same_outside[:, 1] == same_outside[:, 0]).any())


def test_an_outer_error_mode_refuses():
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(vmap(lambda x: F.rand(3), randomness="different"))(F.ones(4, 5))


@pytest.mark.parametrize("mode", ["same", "different"])
def test_chunks(mode):
    result = vmap(lambda x: F.rand(3), randomness=mode, chunk_size=2)(F.ones(5))
    assert tuple(result.shape) == (5, 3)
    alike = bool((result[2] == result[0]).all())
    assert alike == (mode == "same")


def test_gradients_do_not_ask():
    result = F.func.grad(lambda x: (x * F.rand(3)).sum())(F.ones(3))
    assert bool(((result >= 0) & (result < 1)).all())


def test_noise_drawn_in_the_function_under_grad_and_vmap():
    def function(x):
        return (x * F.rand(())).sum()

    result = vmap(F.func.grad(function), randomness="different")(F.ones(6))
    assert len(set(result.tolist())) == 6
