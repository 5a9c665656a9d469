"""Kernels of layers that take another path for some layouts, sizes or dtypes: the paths agree."""

import math

import numpy as np
import pytest

import facula
import facula.nn.functional as F

LAST = facula.channels_last


def random(*shape, dtype=facula.float32, seed=0):
    return facula.tensor(np.random.RandomState(seed).standard_normal(shape)).to(dtype)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [2, 3, 17, 40])
@pytest.mark.parametrize("padding_mode", ["zeros", "reflection"])
def test_grid_sample_of_many_channels_is_that_of_each(mode, channels, padding_mode):
    x = random(2, channels, 5, 6).requires_grad_()
    grid = (random(2, 9, 8, 2, seed=1) * 0.7).requires_grad_()
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": False}
    weights = random(2, channels, 9, 8, seed=2)
    together = F.grid_sample(x, grid, **options)
    alone = facula.cat(
        [F.grid_sample(x[:, c : c + 1], grid, **options) for c in range(channels)], 1
    )
    facula.testing.assert_close(together, alone)
    for a, b in zip(
        facula.autograd.grad((together * weights).sum(), (x, grid)),
        facula.autograd.grad((alone * weights).sum(), (x, grid)),
        strict=True,
    ):
        facula.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_grid_sample_leaves_out_what_is_outside_even_if_it_is_not_finite():
    x = facula.ones(1, 20, 4, 4)
    x[:, :, 0, 0] = math.inf
    grid = facula.tensor([5.0, 5.0]).expand(1, 4, 4, 2)
    assert F.grid_sample(x, grid, align_corners=False).eq(0).all()


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, facula.bfloat16, facula.float16])
@pytest.mark.parametrize("size", [1, 3, (2, 5)])
@pytest.mark.parametrize("channels", [3, 16, 37])
def test_adaptive_max_pool_does_not_depend_on_the_layout(dtype, size, channels):
    x = random(2, channels, 19, 23, dtype=dtype)
    x[0, 1, 4, 5] = math.nan
    x[0, 1, 4, 7] = math.nan
    x[1, 2] = 1.0  # the first of equal elements counts
    x[1, 0] = -math.inf
    values, places = F.adaptive_max_pool2d(x, size, return_indices=True)
    others, other_places = F.adaptive_max_pool2d(
        x.contiguous(memory_format=LAST), size, return_indices=True
    )
    assert facula.equal(places, other_places)
    facula.testing.assert_close(values, others, rtol=0, atol=0, equal_nan=True)
    flat = x.flatten(2).gather(2, places.flatten(2)).reshape(values.shape)
    facula.testing.assert_close(values, flat, rtol=0, atol=0, equal_nan=True)
    if size == 1:
        assert places[0, 1].item() == 4 * 23 + 7  # the last NaN
        assert places[1, 2].item() == 0 and places[1, 0].item() == 0


@pytest.mark.parametrize("dtype", [facula.float32, facula.bfloat16, facula.float16, facula.int32])
@pytest.mark.parametrize("layout", [facula.contiguous_format, LAST])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 1, "padding": 1}, {"dilation": 2, "padding": 1}]
)
def test_max_pool_without_places_has_the_same_values(dtype, layout, options):
    x = (random(2, 19, 13, 40) * 10).to(dtype).contiguous(memory_format=layout)
    if dtype.is_floating_point:
        x[0, 0, 3, 3] = math.nan
        x[1, 1] = -math.inf
    values, _ = F.max_pool2d(x, 3, return_indices=True, **options)
    facula.testing.assert_close(
        F.max_pool2d(x, 3, **options), values, rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("dtype", [facula.bfloat16, facula.float16])
@pytest.mark.parametrize("layout", [facula.contiguous_format, LAST])
def test_gradients_of_half_precision_are_those_of_float32_rounded(dtype, layout):
    x = random(2, 20, 12, 12).to(dtype).contiguous(memory_format=layout)
    for layer in (
        lambda t: F.max_pool2d(t, 3, 2, 1),
        lambda t: F.adaptive_max_pool2d(t, 5),
        lambda t: F.pad(t, (1, 2, 2, 1), mode="reflect"),
        lambda t: F.interpolate(t, scale_factor=2, mode="nearest"),
        lambda t: F.softmax(t, 1),
        lambda t: F.log_softmax(t, -1),
        lambda t: F.batch_norm(t, None, None, training=True),
        lambda t: F.glu(t, 1),
        lambda t: F.channel_shuffle(t, 4),
    ):
        half, wide = x.clone().requires_grad_(), x.float().requires_grad_()
        out, expected = layer(half), layer(wide)
        facula.testing.assert_close(out, expected.to(dtype))
        g = random(*out.shape, seed=3).to(dtype)
        (a,) = facula.autograd.grad(out, half, g)
        (b,) = facula.autograd.grad(expected, wide, g.float())
        facula.testing.assert_close(a, b.to(dtype), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_fused_softmax_gradient_is_the_differentiable_one(logarithm, dim):
    x = random(5, 67, 130).requires_grad_()
    y = (F.log_softmax if logarithm else F.softmax)(x, dim)
    g = random(5, 67, 130, seed=1)
    (fused,) = facula.autograd.grad(y, x, g, retain_graph=True)
    (plain,) = facula.autograd.grad(y, x, g, create_graph=True)
    facula.testing.assert_close(fused, plain.detach(), rtol=1e-5, atol=1e-5)


def test_embedding_gradient_of_few_rows_adds_in_the_order_of_the_lookups():
    lookups = facula.tensor(np.random.RandomState(0).randint(0, 2, 1001))
    grad = random(1001, 200)
    weight = facula.zeros(2, 200, requires_grad=True)
    (found,) = facula.autograd.grad(F.embedding(lookups, weight), weight, grad)
    expected = np.zeros((2, 200), np.float32)
    for at, row in zip(lookups.tolist(), grad.numpy(), strict=True):
        expected[at] += row
    assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_do_not_depend_on_the_number_of_threads(threads):
    before = facula.get_num_threads()
    x = random(1, 64, 24, 24).requires_grad_()
    grid = (random(1, 30, 30, 2, seed=1) * 0.6).requires_grad_()

    def results():
        y = F.grid_sample(x, grid, align_corners=False)
        z = F.adaptive_max_pool2d(x, 7)
        return [*facula.autograd.grad(y.sum(), (x, grid)), F.softmax(x, 1), z]

    try:
        facula.set_num_threads(threads)
        found = results()
        facula.set_num_threads(3)
        assert all(facula.equal(a, b) for a, b in zip(found, results(), strict=True))
    finally:
        facula.set_num_threads(before)


def test_ctc_gradient_where_no_path_leads_to_the_end():
    p = F.log_softmax(random(2, 1, 4), -1).requires_grad_()
    labels, lengths = facula.tensor([[1, 1, 2]]), facula.tensor([3])
    loss = F.ctc_loss(p, labels, facula.tensor([2]), lengths, reduction="none")
    assert loss.item() == math.inf
    (g,) = facula.autograd.grad(loss.sum(), p)
    assert g.isnan().all()
    loss = F.ctc_loss(p, labels, facula.tensor([2]), lengths, reduction="none", zero_infinity=True)
    (g,) = facula.autograd.grad(loss.sum(), p)
    assert g.eq(0).all()
