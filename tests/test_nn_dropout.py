"""Dropout: what is dropped, what is kept, gradients, PyTorch's random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from package_under_test import F

nn = F.nn
functional = nn.functional
FUNCTIONS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)
SHAPES = {"dropout1d": (50, 8, 3), "dropout2d": (50, 8, 3, 2), "dropout3d": (50, 8, 3, 2, 2)}


def shape_for(name: str) -> tuple[int, ...]:
    return SHAPES.get(name, (50, 8, 3))


def test_elements_are_dropped_with_the_probability_and_the_rest_is_scaled():
    F.manual_seed(0)
    y = functional.dropout(F.ones(20_000), 0.25).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(4 / 3)}
    assert abs((y == 0).mean() - 0.25) < 0.02


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d"])
def test_channels_are_dropped_as_a_whole(name):
    F.manual_seed(0)
    y = getattr(functional, name)(F.ones(*shape_for(name)), 0.5).flatten(2).numpy()
    assert (y == y[:, :, :1]).all()
    assert 0.3 < (y[:, :, 0] == 0).mean() < 0.7


def test_alpha_dropout_keeps_mean_and_variance():
    F.manual_seed(0)
    x = F.randn(200_000)
    y = functional.alpha_dropout(x, 0.3, training=True)
    assert abs(float(y.mean())) < 0.02 and abs(float(y.var()) - 1) < 0.02


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_passes_where_elements_were_kept(name):
    x = F.ones(*shape_for(name), requires_grad=True)
    F.manual_seed(3)
    y = getattr(functional, name)(x, 0.4, training=True)
    (gradient,) = F.autograd.grad(y.sum(), x)
    kept = y.detach().numpy() == y.detach().numpy().max()
    assert (gradient.numpy()[~kept] == 0).all() and (gradient.numpy()[kept] > 0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_evaluation_and_probability_zero_return_the_input(name):
    x, function = F.ones(*shape_for(name)), getattr(functional, name)
    assert function(x, 0.5, training=False) is x
    assert function(x, 0.0, training=True) is x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inplace_writes_the_same(name):
    x, function = F.randn(*shape_for(name)), getattr(functional, name)
    F.manual_seed(1)
    wanted = function(x, 0.5, training=True)
    F.manual_seed(1)
    written = x.clone()
    assert function(written, 0.5, training=True, inplace=True) is written
    assert F.allclose(written, wanted)


def test_probability_one_drops_everything():
    x = F.ones(5, requires_grad=True)
    y = functional.dropout(x, 1.0)
    assert y.tolist() == [0.0] * 5
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 5


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_probability_outside_of_the_unit_interval_is_refused(p):
    for call in (lambda: functional.dropout(F.ones(2), p), lambda: nn.Dropout(p)):
        with pytest.raises(ValueError, match=f"between 0 and 1, but got {p}"):
            call()


def test_dropout_under_vmap_follows_its_randomness():
    x = F.ones(4, 50)
    same = F.func.vmap(lambda v: functional.dropout(v, 0.5), randomness="same")(x)
    assert (same == same[0]).all()
    different = F.func.vmap(lambda v: functional.dropout(v, 0.5), randomness="different")(x)
    assert not (different == different[0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_numbers_are_those_of_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    for p in (0.1, 0.5, 0.7):
        results = []
        for package in (F, torch):
            package.manual_seed(11)
            x = package.ones(*shape_for(name), dtype=getattr(package, dtype)) * 0.7
            results.append(
                getattr(package.nn.functional, name)(x, p, training=True).double().numpy()
            )
        tolerance = (
            0 if "alpha" not in name else {"bfloat16": 2e-2, "float16": 3e-3}.get(dtype, 1e-6)
        )
        np.testing.assert_allclose(*results, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "name",
    ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"],
)
def test_modules_follow_their_mode(name):
    module = getattr(nn, name)(0.5)
    x = F.ones(*SHAPES.get(name.lower(), (50, 8, 3)))
    assert not F.equal(module(x), x)
    assert module.eval()(x) is x
    assert repr(module) == f"{name}(p=0.5, inplace=False)"


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 3, 2), (6, 3, 2, 2)])
@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.filterwarnings("ignore:dropout3d")
def test_dropout3d_takes_what_has_not_five_dimensions_for_one_sample(shape, inplace):
    F.manual_seed(0)
    kept = functional.dropout3d(F.ones(1, 6, 2, 2, 2))[0, :, 0, 0, 0]
    F.manual_seed(0)
    out = functional.dropout3d(F.ones(shape), inplace=inplace)
    assert tuple(out.shape) == shape
    channels = out.reshape(6, -1)
    assert channels.tolist() == kept[:, None].expand_as(channels).tolist()


def test_dropping_everything_keeps_the_dtype():
    for name in ("bool", "int32", "float16"):
        x = F.ones(2, 3, 4).to(getattr(F, name))
        for drop in (functional.dropout, functional.dropout1d, functional.alpha_dropout):
            y = drop(x, 1.0, training=True)
            assert y.dtype == x.dtype
            assert not y.any()
