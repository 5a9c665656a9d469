"""Sines and cosines of float32: precise wherever an angle lies, in any company."""

import numpy as np
import pytest

import facula

NAMES = ["sin", "cos"]


def ulp_errors(got, want):
    exponent = np.maximum(np.frexp(np.abs(want))[1] - 1, -126)
    return np.abs(got.astype(np.float64) - want) / np.ldexp(1.0, exponent - 23)


def check(name, x):
    got = getattr(facula, name)(facula.from_numpy(x)).numpy()
    assert ulp_errors(got, getattr(np, name)(x.astype(np.float64))).max() < 1.7


@pytest.mark.parametrize("name", NAMES)
def test_angles_of_all_magnitudes(name):
    generator = np.random.default_rng(0)
    x = np.exp(generator.uniform(np.log(1e-30), np.log(65536), 200_000))
    check(name, (x * generator.choice([-1, 1], len(x))).astype(np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_angles_next_to_multiples_of_a_right_angle(name):
    multiples = (np.arange(1, 41722) * (np.pi / 2)).astype(np.float32)
    words = multiples.view(np.int32)[:, None] + np.arange(-2, 3, dtype=np.int32)
    near = words.reshape(-1).view(np.float32)
    check(name, np.concatenate([near, -near]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", [1, 3])
def test_large_angle_among_small_ones(name, step):
    x = np.linspace(-9, 9, 5000, dtype=np.float32)
    x[[0, 1500, 4999]] = 65537.0, -1e6, 3e37
    x[3000:3003] = np.inf, -np.inf, np.nan
    got = getattr(facula, name)(facula.from_numpy(x)[::step]).numpy()
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x[::step].astype(np.float64))
    finite = np.isfinite(x[::step])
    assert ulp_errors(got[finite], want[finite]).max() < 1.7
    assert np.isnan(got[~finite]).all()


def test_zero_keeps_its_sign():
    zeros = facula.tensor([0.0, -0.0])
    assert facula.signbit(facula.sin(zeros)).tolist() == [False, True]
    assert facula.cos(zeros).tolist() == [1.0, 1.0]
