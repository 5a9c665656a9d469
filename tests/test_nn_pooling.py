"""Pooling as layers and functions: what the table of operators does not say."""

import numpy as np
import pytest

import facula
from facula import nn
from facula.nn import functional as F


def image(*shape, seed=0):
    values = np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape)
    return facula.from_numpy(values.astype(np.float32))


# ---- indices


@pytest.mark.parametrize("n", [1, 2, 3])
def test_return_indices_gives_positions_of_the_values(n):
    x = image(2, 3, *[6] * n)
    pool = getattr(F, f"max_pool{n}d")
    values, indices = pool(x, 3, 2, 1, return_indices=True)
    assert facula.equal(values, pool(x, 3, 2, 1))
    flat = x.reshape(2, 3, -1).gather(2, indices.reshape(2, 3, -1))
    assert facula.equal(flat.reshape(values.shape), values)
    assert indices.dtype == facula.int64


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_puts_values_where_they_were(n):
    x = image(2, 3, *[6] * n)
    values, indices = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)(x)
    back = getattr(nn, f"MaxUnpool{n}d")(2)(values, indices)
    assert back.shape == x.shape
    assert facula.equal(back[back != 0], x[back != 0])
    assert int((back != 0).sum()) == int((values != 0).sum())


def test_unpooling_accepts_sizes_near_the_usual_one():
    values, indices = F.max_pool2d(image(1, 1, 5, 5), 2, return_indices=True)
    assert F.max_unpool2d(values, indices, 2, output_size=(1, 1, 5, 5)).shape == (1, 1, 5, 5)
    with pytest.raises(ValueError, match="between 2 and 6"):
        F.max_unpool2d(values, indices, 2, output_size=(6, 5))
    with pytest.raises(ValueError, match="2 or 4 elements"):
        F.max_unpool2d(values, indices, 2, output_size=(5,))


def test_position_beyond_the_plane_is_refused():
    with pytest.raises((RuntimeError, IndexError)):
        F.max_unpool1d(facula.ones(1, 1, 1), facula.tensor([[[7]]]), 2)


def test_first_of_equal_elements_gets_the_gradient():
    x = facula.zeros(1, 4, 4, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad[0, ::2, ::2].eq(1).all() and x.grad.sum() == 4


def test_window_between_dilated_taps_is_empty():
    """Both taps lie in the padding: nothing is found and no gradient is written anywhere."""
    x = facula.ones(1, 1, 1, requires_grad=True)
    y = F.max_pool1d(x, 2, 1, 1, dilation=2)
    assert y.tolist() == [[[-float("inf")]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[0.0]]]


def test_many_taps_need_wider_numbers():
    x = image(1, 1, 40, 40).requires_grad_()
    values, indices = F.max_pool2d(x, 20, return_indices=True)  # 400 taps
    expected = x.detach().unfold(2, 20, 20).unfold(3, 20, 20).amax((-1, -2))
    assert facula.equal(values, expected)
    assert facula.equal(x.detach().flatten()[indices.flatten()], values.flatten())
    values.sum().backward()
    assert x.grad.sum() == 4


# ---- layouts


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        lambda x: F.adaptive_max_pool2d(x, (3, 2)),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x: F.interpolate(x, scale_factor=2),
    ],
)
@pytest.mark.parametrize("dtype", [facula.float32, facula.bfloat16])
def test_channels_last_is_kept_and_changes_nothing(pool, dtype):
    x = image(2, 20, 9, 8).to(dtype)
    last = x.to(memory_format=facula.channels_last)
    a, b = x.clone().requires_grad_(), last.clone().requires_grad_()
    plain, kept = pool(a), pool(b)
    assert kept.is_contiguous(memory_format=facula.channels_last)
    assert facula.allclose(plain, kept, rtol=1e-2 if dtype == facula.bfloat16 else 1e-6)
    weights = facula.randn_like(plain)
    plain.backward(weights)
    kept.backward(weights.to(memory_format=facula.channels_last))
    assert b.grad.is_contiguous(memory_format=facula.channels_last)
    assert facula.allclose(a.grad, b.grad, rtol=1e-2, atol=1e-2)


# ---- sizes that are left open


def test_adaptive_pooling_keeps_sizes_given_as_none():
    x = image(2, 3, 5, 7)
    assert F.adaptive_avg_pool2d(x, (None, 2)).shape == (2, 3, 5, 2)
    assert F.adaptive_max_pool2d(x, (2, None)).shape == (2, 3, 2, 7)
    assert nn.AdaptiveAvgPool3d((None, 1, None))(x).shape == (2, 3, 1, 7)
    with pytest.raises(RuntimeError, match="2 of them"):
        F.adaptive_avg_pool2d(x, (1, 2, 3))


def test_mean_of_planes_has_a_second_derivative():
    x = facula.randn(2, 3, 4, 5, dtype=facula.float64, requires_grad=True)
    assert facula.autograd.gradcheck(lambda x: F.adaptive_avg_pool2d(x, 1) ** 3, x)
    assert facula.autograd.gradgradcheck(lambda x: F.adaptive_avg_pool2d(x, 1) ** 3, x)


# ---- windows at random places


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_takes_windows_of_its_input(n):
    x = image(2, 3, *[8] * n).requires_grad_()
    pool = getattr(F, f"fractional_max_pool{n}d")
    values, indices = pool(x, 2, output_ratio=0.5, return_indices=True)
    assert values.shape == (2, 3, *[4] * n)
    flat = x.reshape(2, 3, -1).gather(2, indices.reshape(2, 3, -1)).reshape(values.shape)
    assert facula.equal(flat, values)
    values.sum().backward()
    assert x.grad.sum() == values.numel()


def test_fractional_pooling_repeats_with_the_seed_and_with_samples():
    x = image(1, 2, 9, 9)
    facula.manual_seed(3)
    first = F.fractional_max_pool2d(x, 3, output_size=4)
    facula.manual_seed(3)
    assert facula.equal(first, F.fractional_max_pool2d(x, 3, output_size=4))
    samples = facula.rand(1, 2, 2)
    layer = nn.FractionalMaxPool2d(3, output_size=4, _random_samples=samples)
    assert facula.equal(layer(x), layer(x))


def test_fractional_pooling_refuses_what_does_not_fit():
    x = image(1, 2, 4, 4)
    with pytest.raises(RuntimeError, match="too large"):
        F.fractional_max_pool2d(x, 3, output_size=4)
    with pytest.raises(ValueError, match="either an output"):
        F.fractional_max_pool2d(x, 3)
    with pytest.raises(ValueError, match="only one of"):
        nn.FractionalMaxPool2d(2, output_size=2, output_ratio=0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.FractionalMaxPool2d(2, output_ratio=1.5)


# ---- refusals


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.max_pool2d(facula.ones(1, 4, 4), 3, padding=2), "at most half of effective"),
        (lambda: F.max_pool2d(facula.ones(1, 2, 2), 5), "too small"),
        (lambda: F.max_pool2d(facula.ones(1, 4, 4), 0), "greater than zero"),
        (lambda: F.max_pool2d(facula.ones(1, 4, 4), 2, 0), "stride"),
        (lambda: F.max_pool2d(facula.ones(1, 4, 4), 2, dilation=0), "dilation"),
        (lambda: F.max_pool2d(facula.ones(4, 4), 2), "3D or 4D"),
        (lambda: F.max_pool2d(facula.ones(1, 4, 4), (2, 2, 2)), "kernel_size"),
        (lambda: F.max_pool2d(facula.ones(1, 0, 4), 2), "3D or 4D"),
        (lambda: F.avg_pool2d(facula.ones(1, 4, 4), 2, divisor_override=0), "not zero"),
        (lambda: F.adaptive_avg_pool2d(facula.ones(1, 4, 4), -1), "greater than or equal to 0"),
        (lambda: F.max_pool2d(facula.ones(1, 4, 4, dtype=facula.complex64), 2), "ComplexFloat"),
        (lambda: F.max_unpool1d(facula.ones(1, 2), facula.ones(1, 2), 2), "int64"),
        (
            lambda: F.max_unpool1d(facula.ones(1, 2), facula.ones(1, 3).long(), 2),
            "of indices",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, words):
    with pytest.raises((RuntimeError, NotImplementedError), match=words):
        call()


# ---- against PyTorch

LAYERS = [
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, (2, 3, 9)),
    ("MaxPool2d", ((2, 3),), {"ceil_mode": True}, (2, 3, 9, 8)),
    ("MaxPool3d", (2,), {"dilation": 2}, (2, 3, 5, 6, 7)),
    ("AvgPool1d", (3,), {"count_include_pad": False, "padding": 1}, (2, 3, 9)),
    ("AvgPool2d", (3, 2), {"divisor_override": 5}, (2, 3, 9, 8)),
    ("AvgPool3d", (2,), {}, (2, 3, 5, 6, 7)),
    ("LPPool1d", (2, 3), {"stride": 2}, (2, 3, 9)),
    ("LPPool2d", (2, (2, 3)), {}, (2, 3, 9, 8)),
    ("LPPool3d", (3, 2), {}, (2, 3, 5, 6, 7)),
    ("AdaptiveMaxPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveMaxPool2d", ((None, 3),), {}, (2, 3, 9, 8)),
    ("AdaptiveMaxPool3d", (2,), {}, (2, 3, 5, 6, 7)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveAvgPool2d", ((1, 1),), {}, (2, 3, 9, 8)),
    ("AdaptiveAvgPool3d", ((2, None, 3),), {}, (2, 3, 5, 6, 7)),
    ("FractionalMaxPool2d", (2,), {"output_size": (4, 3)}, (2, 3, 9, 8)),
    ("FractionalMaxPool3d", (2,), {"output_ratio": 0.5}, (2, 3, 6, 6, 8)),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), LAYERS, ids=lambda v: str(v)[:24])
def test_layer_is_pytorchs(name, args, kwargs, shape):
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(nn, name)(*args, **kwargs), getattr(torch.nn, name)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    assert ours.__constants__ == theirs.__constants__
    values = np.abs(np.random.default_rng(1).standard_normal(shape)).astype(np.float32)
    x, y = facula.from_numpy(values.copy()), torch.from_numpy(values.copy())
    x.requires_grad_(), y.requires_grad_()
    facula.manual_seed(5), torch.manual_seed(5)
    got, wanted = ours(x), theirs(y)
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=2e-6, atol=1e-6)
    got.square().sum().backward(), wanted.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=2e-5, atol=1e-5)


def test_adaptive_pools_take_inputs_without_channels():
    assert F.adaptive_avg_pool1d(facula.ones(0, 3), 2).shape == (0, 2)
    assert F.adaptive_avg_pool2d(facula.ones(2, 0, 4, 5), (3, 1)).shape == (2, 0, 3, 1)
    assert F.adaptive_avg_pool2d(facula.ones(2, 0, 4, 5), 1).shape == (2, 0, 1, 1)
    assert F.adaptive_avg_pool3d(facula.ones(0, 3, 4, 5), 2).shape == (0, 2, 2, 2)
    assert F.adaptive_max_pool2d(facula.ones(0, 3, 4), 2).shape == (0, 2, 2)
    for empty in ((2, 0, 4, 5), (2, 3, 0, 5)):
        with pytest.raises(RuntimeError):
            F.adaptive_max_pool2d(facula.ones(empty), 2)
    with pytest.raises(RuntimeError):
        F.adaptive_avg_pool2d(facula.ones(2, 3, 0, 5), 2)
    assert F.pad(facula.ones(2, 0, 3), (1, 1), "circular").shape == (2, 0, 5)
    with pytest.raises(RuntimeError):
        F.pad(facula.ones(2, 0, 3), (1, 1), "reflect")


# ---- layouts


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.avg_pool3d(x, 2),
        lambda x: F.adaptive_avg_pool3d(x, 2),
        lambda x: F.adaptive_max_pool3d(x, 2),
    ],
)
def test_some_pools_of_volumes_are_contiguous_whatever_they_are_given(pool):
    x = image(2, 3, 4, 4, 4)
    out = pool(x.to(memory_format=facula.channels_last_3d))
    assert out.is_contiguous()
    assert out.tolist() == pool(x).tolist()


def test_norms_of_windows_keep_channels_last():
    x = image(2, 3, 4, 4)
    out = F.lp_pool2d(x.to(memory_format=facula.channels_last), 2, 2)
    assert out.is_contiguous(memory_format=facula.channels_last)
    assert out.tolist() == F.lp_pool2d(x, 2, 2).tolist()


def test_norm_of_a_window_of_zeros_has_gradient_zero():
    x = facula.zeros(1, 1, 2, 2, requires_grad=True)
    F.lp_pool2d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == facula.zeros(1, 1, 2, 2).tolist()


# ---- layouts and dimensions


def test_pools_of_transposed_sequences_keep_their_layout():
    x = image(2, 6, 3).transpose(1, 2)  # (N, C, L) whose channels lie side by side
    dense = x.contiguous()
    pools = {
        "avg": lambda t: F.avg_pool1d(t, 2),
        "lp": lambda t: F.lp_pool1d(t, 2, 2),
        "adaptive_avg": lambda t: F.adaptive_avg_pool1d(t, 3),
        "adaptive_max": lambda t: F.adaptive_max_pool1d(t, 3),
        "positions": lambda t: F.adaptive_max_pool1d(t, 3, return_indices=True)[1],
        "max": lambda t: F.max_pool1d(t.clone().requires_grad_(), 2).detach(),
    }
    for name, pool in pools.items():
        y = pool(x)
        assert y.stride() == (9, 1, 3), name
        assert pool(dense).stride() == (9, 3, 1), name
        assert facula.equal(y, pool(dense)), name
    assert F.max_pool1d(x, 2).stride() == (9, 3, 1)  # nobody asks for gradients


def test_gradients_of_pools_of_transposed_sequences():
    for pool in (F.avg_pool1d, F.max_pool1d, F.adaptive_avg_pool1d, F.adaptive_max_pool1d):
        grads = []
        for x in (image(2, 6, 3).transpose(1, 2), image(2, 6, 3).transpose(1, 2).contiguous()):
            x.requires_grad_()
            (pool(x, 2) ** 2).sum().backward()
            grads.append(x.grad)
        assert facula.equal(*grads)


def test_one_window_averages_the_last_dimensions_of_any_tensor():
    x = image(2, 3, 4, 5, 6)
    y = nn.AdaptiveAvgPool2d(1)(x)
    assert y.shape == (2, 3, 4, 1, 1)
    assert facula.allclose(y, x.mean((-2, -1), keepdim=True))
    assert nn.AdaptiveAvgPool2d(1)(image(4, 5)).tolist() == [[9.5]]
    assert nn.AdaptiveAvgPool3d((1, 1, 1))(image(2, 3, 4, 5, 6)[None]).shape == (1, 2, 3, 1, 1, 1)
    with pytest.raises(RuntimeError, match="3D or 4D"):
        nn.AdaptiveAvgPool2d(2)(x)
