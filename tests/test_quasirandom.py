"""Sobol points: even in every box, the same as PyTorch's, from any place in the sequence."""

import pytest
from package_under_test import IS_FACULA, F, assert_equal

SobolEngine = F.quasirandom.SobolEngine
pytestmark = pytest.mark.usefixtures("keep_random_state")


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 7, 60])
def test_each_coordinate_hits_every_interval_once(dimension, scramble):
    points = SobolEngine(dimension, scramble=scramble, seed=3).draw(256, dtype=F.float64)
    assert points.shape == (256, dimension)
    cells = (points * 256).floor().long().sort(0).values
    assert_equal(cells, F.arange(256).unsqueeze(1).expand(256, dimension))


def test_pairs_of_coordinates_fill_the_square():
    points = SobolEngine(2).draw(256, dtype=F.float64)
    cells = (points * 16).floor().long()
    assert len(set(map(tuple, cells.tolist()))) == 256


def test_integrals_converge_faster_than_with_random_points():
    points = SobolEngine(5, scramble=True, seed=0).draw_base2(12, dtype=F.float64)
    mean = float((points.prod(1) * 2**5).mean())
    assert abs(mean - 1) < 2e-3


@pytest.mark.parametrize("scramble", [False, True])
def test_draws_and_jumps_continue_the_sequence(scramble):
    whole = SobolEngine(4, scramble, seed=1).draw(50)
    engine = SobolEngine(4, scramble, seed=1)
    pieces = [engine.draw(n) for n in (1, 2, 7, 40)]
    assert_equal(F.cat(pieces), whole)
    assert engine.num_generated == 50
    for skipped in (1, 2, 17):
        engine.reset().fast_forward(skipped)
        assert_equal(engine.draw(10), whole[skipped : skipped + 10])
        engine.fast_forward(3)
        assert_equal(engine.draw(4), whole[skipped + 13 : skipped + 17])


def test_seeds_decide_the_scrambling():
    a, b = SobolEngine(3, True, seed=5).draw(4), SobolEngine(3, True, seed=5).draw(4)
    assert_equal(a, b)
    assert not bool((SobolEngine(3, True, seed=6).draw(4) == a).all())
    F.manual_seed(9)
    first = SobolEngine(3, True).draw(2)
    F.manual_seed(9)
    assert_equal(SobolEngine(3, True).draw(2), first)


def test_out_and_dtypes():
    out = F.empty(0)
    points = SobolEngine(2).draw(3, out=out)
    assert points is out
    assert out.shape == (3, 2)
    assert SobolEngine(2).draw(3, dtype=F.float64).dtype == F.float64


def test_base_two_keeps_the_balance():
    engine = SobolEngine(2)
    engine.draw_base2(3)
    engine.draw_base2(3)
    with pytest.raises(ValueError, match="require n to be a power of 2"):
        engine.draw_base2(2)


@pytest.mark.parametrize("dimension", [0, 21202])
def test_dimensions_outside_of_the_table_are_refused(dimension):
    with pytest.raises(ValueError, match="Supported range of dimensionality"):
        SobolEngine(dimension)


@pytest.mark.facula_only
def test_more_points_than_there_are_are_refused():
    engine = SobolEngine(1).fast_forward(2**30 - 1)
    with pytest.raises(ValueError, match="too many"):
        engine.draw(5)
    with pytest.raises(ValueError, match="negative"):
        engine.draw(-1)


def test_text():
    assert repr(SobolEngine(3, scramble=True, seed=7)) == (
        "SobolEngine(dimension=3, scramble=True, seed=7)"
    )


@pytest.mark.skipif(not IS_FACULA, reason="compares Facula with PyTorch")
@pytest.mark.parametrize("dimension", [1, 2, 3, 100, 5000, 21201])
def test_points_and_state_are_those_of_torch(dimension):
    torch = pytest.importorskip("torch")
    for scramble in (False, True) if dimension < 10_000 else (False,):
        mine = SobolEngine(dimension, scramble, seed=11)
        theirs = torch.quasirandom.SobolEngine(dimension, scramble, seed=11)
        assert mine.sobolstate.tolist() == theirs.sobolstate.tolist()
        assert mine.shift.tolist() == theirs.shift.tolist()
        assert mine.draw(9).tolist() == theirs.draw(9).tolist()
        mine.fast_forward(5), theirs.fast_forward(5)
        assert mine.quasi.tolist() == theirs.quasi.tolist()
        assert mine.draw(3).tolist() == theirs.draw(3).tolist()
