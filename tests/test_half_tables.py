"""Functions of half precision that are looked up: each result is what computing it gives."""

from __future__ import annotations

import numpy as np
import pytest

import facula
from facula import Tensor

F = facula.nn.functional
HALVES = [facula.float16, facula.bfloat16]
MANY = 1 << 17  # enough for a table to be made


def bits(x: Tensor) -> np.ndarray:
    return x.detach().contiguous().view(facula.int16).numpy()


def every_value_twice(dtype: facula.dtype) -> Tensor:
    order = np.random.default_rng(0).permutation(MANY).astype(np.uint16).view(np.int16)
    return facula.from_numpy(order).view(dtype)


def in_parts(function, x: Tensor) -> Tensor:
    """The results of pieces that are too small for a table."""
    return facula.cat([function(part) for part in x.split(1000)])


FUNCTIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
    "sigmoid": facula.sigmoid,
    "tanh": facula.tanh,
    "exp": facula.exp,
    "log": facula.log,
    "erf": facula.erf,
    "lgamma": facula.lgamma,
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_result_is_the_computed_one(name, dtype):
    x = every_value_twice(dtype)
    want = bits(in_parts(FUNCTIONS[name], x))
    for _ in range(2):  # the table is made, and used again
        np.testing.assert_array_equal(bits(FUNCTIONS[name](x)), want)
    rest = x[3:5010]  # no whole vectors, and from a table that is there
    np.testing.assert_array_equal(bits(FUNCTIONS[name](rest)), want[3:5010])
    columns = x.view(256, -1).t()
    np.testing.assert_array_equal(bits(FUNCTIONS[name](columns).t()).ravel(), want)


SLOPES = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "logsigmoid": F.logsigmoid,
}


def slope(function, x: Tensor, grad: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return facula.autograd.grad(function(x), x, grad)[0]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SLOPES)
def test_every_product_with_a_slope_is_the_computed_one(name, dtype):
    x, function = every_value_twice(dtype), SLOPES[name]
    grad = facula.randn(MANY, generator=facula.Generator().manual_seed(0)).to(dtype)
    pairs = zip(x.split(1000), grad.split(1000), strict=True)
    want = facula.cat([slope(function, a, g) for a, g in pairs])
    for _ in range(2):
        np.testing.assert_array_equal(bits(slope(function, x, grad)), bits(want))
    some = slice(3, 5010)
    np.testing.assert_array_equal(bits(slope(function, x[some], grad[some])), bits(want[some]))
    # The gradient of a sum is one number for all.
    one = facula.tensor(0.3, dtype=dtype)
    pieces = [slope(function, a, one.expand(a.shape)) for a in x.split(1000)]
    got = slope(function, x, one.expand(x.shape))
    np.testing.assert_array_equal(bits(got), bits(facula.cat(pieces)))


@pytest.mark.parametrize("dtype", HALVES)
def test_gates_and_their_slopes_are_the_computed_ones(dtype):
    generator = facula.Generator().manual_seed(0)
    x = (3 * facula.randn(512, 600, generator=generator)).to(dtype).requires_grad_()
    grad = facula.randn(512, 300, generator=generator).to(dtype)
    y = F.glu(x)
    (got,) = facula.autograd.grad(y, x, grad)
    for i in range(0, 512, 8):
        part = x[i : i + 8].detach().requires_grad_()
        z = F.glu(part)
        (want,) = facula.autograd.grad(z, part, grad[i : i + 8])
        np.testing.assert_array_equal(bits(y[i : i + 8]), bits(z))
        np.testing.assert_array_equal(bits(got[i : i + 8]), bits(want))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_repeated_factor_is_looked_up_once(dtype):
    x = facula.randn(300, 1, generator=facula.Generator().manual_seed(0)).to(dtype)
    wide = x.expand(300, 400)
    grad = facula.ones(300, 400, dtype=dtype)
    got = slope(F.silu, wide, grad)
    want = slope(F.silu, x, facula.ones_like(x)).expand(300, 400)
    np.testing.assert_array_equal(bits(got), bits(want))


def test_in_place():
    x = every_value_twice(facula.bfloat16)
    want = bits(facula.tanh(x))
    x.tanh_()
    np.testing.assert_array_equal(bits(x), want)


def test_results_follow_the_mode_of_tiny_numbers():
    x = facula.full((MANY,), 2.0**-130, dtype=facula.bfloat16)
    assert facula.erf(x).count_nonzero().item() == MANY
    if not facula.set_flush_denormal(True):
        pytest.skip("this machine cannot flush denormal numbers")
    try:
        assert facula.erf(x).count_nonzero().item() == 0
    finally:
        facula.set_flush_denormal(False)
    assert facula.erf(x).count_nonzero().item() == MANY


@pytest.mark.parametrize("threads", [1, 4])
def test_results_do_not_depend_on_the_number_of_threads(threads):
    before = facula.get_num_threads()
    x = every_value_twice(facula.bfloat16)
    want = bits(in_parts(facula.special.ndtr, x))
    try:
        facula.set_num_threads(threads)
        np.testing.assert_array_equal(bits(facula.special.ndtr(x)), want)
    finally:
        facula.set_num_threads(before)
