"""Padding, resizing and rearranging as layers and functions."""

import warnings

import numpy as np
import pytest

import facula
from facula import nn
from facula.nn import functional as F


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---- padding


@pytest.mark.parametrize(("name", "mode"), [("Reflection", "reflect"), ("Replication", "edge")])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_padding_layers_pad_all_spatial_dimensions(name, mode, n):
    x = array(2, 3, *[4] * n)
    expected = np.pad(x, [(0, 0)] * 2 + [(2, 2)] * n, mode=mode)
    np.testing.assert_array_equal(getattr(nn, f"{name}Pad{n}d")(2)(facula.from_numpy(x)), expected)


def test_constant_padding_of_more_dimensions_than_kernels_take():
    x = array(2, 3, 2, 3, 2)
    pads = (1, 0, 0, 1, 1, 1, 2, 0, 0, 1)
    expected = np.pad(x, [(0, 1), (2, 0), (1, 1), (0, 1), (1, 0)], constant_values=3)
    np.testing.assert_array_equal(F.pad(facula.from_numpy(x), pads, value=3), expected)


def test_channels_may_be_padded_in_channels_last():
    x = facula.from_numpy(array(2, 3, 4, 5)).to(memory_format=facula.channels_last)
    padded = F.pad(x, (0, 0, 0, 0, 1, 2))
    assert padded.is_contiguous(memory_format=facula.channels_last)
    np.testing.assert_array_equal(padded, np.pad(x.numpy(), [(0, 0), (1, 2), (0, 0), (0, 0)]))


def test_gradient_of_repeated_elements_is_their_sum():
    x = facula.zeros(1, 1, 3, requires_grad=True)
    F.pad(x, (2, 2), "reflect").sum().backward()
    assert x.grad.tolist() == [[[2.0, 3.0, 2.0]]]
    half = facula.zeros(1, 1, 3, dtype=facula.float16, requires_grad=True)
    F.pad(half, (2, 1), "replicate").sum().backward()
    assert half.grad.tolist() == [[[3.0, 1.0, 2.0]]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: F.pad(x, (4, 0), "reflect"), "less than the corresponding input dimension"),
        (lambda x: F.pad(x, (5, 0), "circular"), "more than once"),
        (lambda x: F.pad(x, (1,)), "divisible by 2"),
        (lambda x: F.pad(x, (-3, -2)), "negative output size"),
        (lambda x: F.pad(x, (1, 1) * 4), "two times the input dimension"),
        (lambda x: F.pad(x, (1, 1), "mirror"), "'reflect'"),
        (lambda x: F.pad(x, (1, 1), "reflect", 2.0), "doesn't take in value"),
        (lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), "reflect"), "4 or 5 dimensions"),
    ],
)
def test_padding_that_does_not_fit_is_refused(call, words):
    with pytest.raises((RuntimeError, NotImplementedError), match=words):
        call(facula.ones(2, 3, 4))


# ---- sizes


def test_interpolation_keeps_constants_and_lines():
    line = facula.arange(5.0).reshape(1, 1, 5)
    out = F.interpolate(line, size=9, mode="linear", align_corners=True)
    np.testing.assert_allclose(out.flatten(), np.arange(9) / 2, atol=1e-6)
    for mode in ("bilinear", "bicubic"):
        for antialias in (False, True):
            flat = F.interpolate(facula.ones(1, 2, 7, 9), (3, 20), mode=mode, antialias=antialias)
            np.testing.assert_allclose(flat, np.ones((1, 2, 3, 20)), atol=1e-6)


def lanczos_matrix(n, out):
    wide = max(n / out, 1.0)
    x = (np.arange(n) + 0.5 - (np.arange(out)[:, None] + 0.5) * n / out) / wide
    weights = np.where(abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [(4, 5), (20, 3), (9, 30), (1, 1)])
def test_lanczos_is_a_windowed_sinc(size):
    x = facula.from_numpy(array(2, 3, 9, 11)).double().requires_grad_()
    result = F.interpolate(x, size, mode="lanczos", antialias=True)
    rows, columns = lanczos_matrix(9, size[0]), lanczos_matrix(11, size[1])
    # An axis that keeps its size is copied.
    rows = np.eye(9) if size[0] == 9 else rows
    np.testing.assert_allclose(result.detach(), rows @ x.detach().numpy() @ columns.T, atol=1e-12)
    result.sum().backward()
    np.testing.assert_allclose(x.grad[0, 0], np.outer(rows.sum(0), columns.sum(0)), atol=1e-12)
    assert result.grad_fn.name() == "UpsampleLanczos2DAaBackward0"
    layer = facula.from_numpy(array(1, 1, 4, 4)).abs().mul(50).to(facula.uint8)
    assert F.interpolate(layer, size, mode="lanczos", antialias=True).dtype == facula.uint8


def test_area_is_adaptive_pooling():
    x = facula.from_numpy(array(1, 2, 7, 9))
    assert facula.equal(F.interpolate(x, (3, 4), mode="area"), F.adaptive_avg_pool2d(x, (3, 4)))


def test_gradient_of_interpolation_is_its_transpose():
    x = facula.from_numpy(array(1, 2, 5, 7)).double().requires_grad_()
    y = F.interpolate(x, (9, 4), mode="bilinear")
    w = facula.randn_like(y)
    (grad,) = facula.autograd.grad(y, x, w)
    assert facula.allclose((grad * x).sum(), (w * y).sum())


def test_bytes_are_rounded_to_the_nearest():
    x = facula.tensor([[[[0, 255]]]], dtype=facula.uint8)
    out = F.interpolate(x, (1, 4), mode="bilinear")
    assert out.dtype == facula.uint8 and out.flatten().tolist() == [0, 64, 191, 255]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: F.interpolate(x), ValueError, "either size or scale_factor"),
        (lambda x: F.interpolate(x, 3, 2.0), ValueError, "only one of"),
        (lambda x: F.interpolate(x, (3, 4, 5)), ValueError, "spatial dimensions"),
        (lambda x: F.interpolate(x, 3, mode="linear"), NotImplementedError, "needs 3D input"),
        (lambda x: F.interpolate(x, 3, align_corners=True), ValueError, "align_corners"),
        (lambda x: F.interpolate(x, 3, mode="cubic"), NotImplementedError, "bicubic"),
        (lambda x: F.interpolate(x, 0), RuntimeError, "greater than 0"),
        (
            lambda x: F.interpolate(x, 3, antialias=True),
            ValueError,
            "bilinear, bicubic and lanczos",
        ),
        (lambda x: F.interpolate(x, 3, mode="lanczos"), ValueError, "requires antialias=True"),
        (
            lambda x: F.interpolate(x, 3, mode="lanczos", align_corners=True, antialias=True),
            ValueError,
            "does not support align_corners",
        ),
        (
            lambda x: F.interpolate(x, 3, recompute_scale_factor=True),
            ValueError,
            "not meaningful",
        ),
        (lambda x: F.interpolate(x.long(), 3, mode="bilinear"), NotImplementedError, "'Long'"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(facula.ones(1, 2, 4, 4))


def test_older_names_warn():
    x = facula.ones(1, 1, 2, 2)
    for function in (F.upsample, F.upsample_nearest, F.upsample_bilinear):
        with pytest.warns(UserWarning, match="deprecated"):
            assert function(x, 4).shape == (1, 1, 4, 4)


# ---- points


def test_identity_grid_gives_the_image_back():
    x = facula.from_numpy(array(2, 3, 5, 4))
    for align in (False, True):
        theta = facula.eye(2, 3).expand(2, 2, 3)
        grid = F.affine_grid(theta, (2, 3, 5, 4), align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            out = F.grid_sample(x, grid, mode, align_corners=align)
            np.testing.assert_allclose(out, x.numpy(), atol=1e-5)


def test_points_that_are_no_numbers_see_nothing():
    x = facula.ones(1, 1, 3, 3)
    grid = facula.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [-1e30, 1e30]]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        out = F.grid_sample(x, grid, mode, align_corners=False)
        assert out.flatten()[2] == 0 and out.shape == (1, 1, 1, 3)


def test_infinite_pixel_outside_the_weights_does_not_matter():
    x = facula.full((1, 1, 2, 2), float("inf"))
    grid = facula.full((1, 1, 1, 2), 5.0)
    assert F.grid_sample(x, grid, align_corners=False).item() == 0
    y = facula.tensor([[[[1.0, float("inf")]]]])
    assert F.avg_pool2d(y, (1, 2), 1, (0, 1)).flatten()[0] == 0.5


def test_default_of_align_corners_warns():
    with pytest.warns(UserWarning, match="align_corners=False"):
        F.grid_sample(facula.ones(1, 1, 2, 2), facula.zeros(1, 1, 1, 2))
    with pytest.warns(UserWarning, match="align_corners=False"):
        F.affine_grid(facula.eye(2, 3)[None], (1, 1, 2, 2))


def test_affine_grid_refuses_matrices_and_sizes_that_are_none():
    theta = facula.eye(2, 3)[None]
    for given, size in (
        (theta.int(), (1, 1, 2, 2)),
        (theta[0], (1, 1, 2, 2)),
        (theta, (1, 1, 0, 2)),
    ):
        with pytest.raises(ValueError, match="Expected"):
            F.affine_grid(given, size, align_corners=False)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_sampling_can_be_differentiated_twice(mode):
    facula.manual_seed(0)
    x = facula.randn(1, 2, 4, 5, dtype=facula.float64, requires_grad=True)
    grid = (facula.rand(1, 2, 3, 2, dtype=facula.float64) * 1.2 - 0.6).requires_grad_()
    sample = lambda x, g: F.grid_sample(x, g, mode, align_corners=True)  # noqa: E731
    assert facula.autograd.gradcheck(sample, (x, grid))
    assert facula.autograd.gradgradcheck(sample, (x, grid))


# ---- patches and pixels


def test_fold_undoes_unfold_up_to_the_number_of_patches():
    x = facula.from_numpy(array(2, 3, 6, 5))
    unfold, fold = nn.Unfold(3, padding=1), nn.Fold((6, 5), 3, padding=1)
    counts = fold(unfold(facula.ones_like(x)))
    np.testing.assert_allclose(fold(unfold(x)), (x * counts).numpy(), rtol=1e-5)


def test_pixel_unshuffle_undoes_pixel_shuffle():
    for shape in ((2, 18, 3, 4), (18, 3, 4), (2, 2, 9, 1, 2)):
        x = facula.from_numpy(array(*shape))
        assert facula.equal(nn.PixelUnshuffle(3)(nn.PixelShuffle(3)(x)), x)


def test_shuffles_of_nothing_are_copies():
    x = facula.ones(1, 4, 2, 2)
    for y in (F.pixel_shuffle(x, 1), F.channel_shuffle(x, 1), F.channel_shuffle(x, 4)):
        assert facula.equal(x, y) and y.data_ptr() != x.data_ptr()


# ---- vectors


def test_one_hot_finds_the_number_of_classes():
    x = facula.tensor([[0, 3], [1, 1]])
    assert F.one_hot(x).shape == (2, 2, 4)
    assert F.one_hot(x).argmax(-1).equal(x)
    for given, words in ((x - 1, "non-negative"), (x, "smaller than num_classes")):
        with pytest.raises(RuntimeError, match=words):
            F.one_hot(given, 3)
    with pytest.raises(RuntimeError, match="LongTensor"):
        F.one_hot(facula.ones(2))
    with pytest.raises(RuntimeError, match="empty tensor"):
        F.one_hot(facula.zeros(0, dtype=facula.int64))
    batched = facula.vmap(lambda row: F.one_hot(row, 5))(x)
    assert facula.equal(batched, F.one_hot(x, 5))


def test_flatten_layers_join_and_split():
    x = facula.ones(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(1, (3, -1))(facula.ones(2, 12)).shape == (2, 3, 4)
    with pytest.raises(TypeError, match="at pos 1"):
        nn.Unflatten(1, (3, 1.5))


# ---- against PyTorch

LAYERS = [
    *((f"ConstantPad{n}d", (1, 3.5), {}, (2, 3, *[4] * n)) for n in (1, 2, 3)),
    *((f"ZeroPad{n}d", (2,), {}, (2, 3, *[4] * n)) for n in (1, 2, 3)),
    *((f"ReflectionPad{n}d", ((1, 2) * n,), {}, (2, 3, *[4] * n)) for n in (1, 2, 3)),
    *((f"ReplicationPad{n}d", ((1, 2) * n,), {}, (2, 3, *[4] * n)) for n in (1, 2, 3)),
    *((f"CircularPad{n}d", ((1, 2) * n,), {}, (2, 3, *[4] * n)) for n in (1, 2, 3)),
    ("Upsample", (), {"scale_factor": 2}, (2, 3, 5)),
    ("Upsample", ((7, 3),), {"mode": "bilinear", "align_corners": True}, (2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": (1.5, 2.5), "mode": "bicubic"}, (2, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": 1.3, "mode": "trilinear"}, (1, 2, 4, 5, 3)),
    (
        "Upsample",
        (),
        {"scale_factor": 1.3, "mode": "bilinear", "recompute_scale_factor": True},
        (1, 2, 4, 5),
    ),
    ("UpsamplingNearest2d", (), {"scale_factor": 3}, (2, 3, 4, 5)),
    ("UpsamplingBilinear2d", (), {"size": (9, 8)}, (2, 3, 4, 5)),
    ("PixelShuffle", (2,), {}, (2, 8, 3, 4)),
    ("PixelUnshuffle", (2,), {}, (2, 2, 6, 4)),
    ("ChannelShuffle", (2,), {}, (2, 8, 3, 4)),
    ("Unfold", ((2, 3),), {"dilation": 2, "padding": 1, "stride": 2}, (2, 3, 6, 7)),
    ("Fold", ((4, 5), (2, 3)), {}, (2, 18, 9)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Unflatten", (1, (2, 2)), {}, (3, 4)),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), LAYERS, ids=lambda v: str(v)[:24])
def test_layer_is_pytorchs(name, args, kwargs, shape):
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(nn, name)(*args, **kwargs), getattr(torch.nn, name)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    assert ours.__constants__ == theirs.__constants__
    values = array(*shape)
    x, y = facula.from_numpy(values.copy()), torch.from_numpy(values.copy())
    x.requires_grad_(), y.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, wanted = ours(x), theirs(y)
    np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-5)
    got.square().sum().backward(), wanted.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [("PairwiseDistance", {"p": 1.0, "keepdim": True}), ("CosineSimilarity", {"dim": 0})],
)
def test_distance_layer_is_pytorchs(name, kwargs):
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(nn, name)(**kwargs), getattr(torch.nn, name)(**kwargs)
    assert repr(ours) == repr(theirs)
    a, b = array(4, 5), array(4, 5, seed=1)
    got = ours(facula.from_numpy(a), facula.from_numpy(b))
    wanted = theirs(torch.from_numpy(a), torch.from_numpy(b))
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_sizes_round_as_in_pytorch(mode):
    """Coordinates near the edge between two pixels fall to the same side."""
    torch = pytest.importorskip("torch")
    x = array(1, 1, 13, 29)
    for size in ((7, 100), (26, 11), (13, 87), (41, 58)):
        got = F.interpolate(facula.from_numpy(x), size, mode=mode)
        wanted = torch.nn.functional.interpolate(torch.from_numpy(x), size, mode=mode)
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)
    for factor in (0.37, 1.9, 2.3, 3.0):
        got = F.interpolate(facula.from_numpy(x), scale_factor=factor, mode=mode)
        wanted = torch.nn.functional.interpolate(
            torch.from_numpy(x), scale_factor=factor, mode=mode
        )
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padded_volumes_keep_channels_last(mode):
    x = facula.ones(2, 3, 4, 4, 4).to(memory_format=facula.channels_last_3d)
    padded = F.pad(x, (1,) * 6, mode)
    assert padded.is_contiguous(memory_format=facula.channels_last_3d)
    assert padded.tolist() == facula.ones(2, 3, 6, 6, 6).tolist()


@pytest.mark.parametrize("pad", [(0, 0), (-1, 0), (-1, -1, 0, -1)])
def test_what_padding_takes_away_leaves_the_order_of_memory(pad):
    x = facula.arange(60.0).reshape(5, 4, 3).transpose(0, 2)  # (3, 4, 5)
    left, right, top, bottom = (*pad, 0, 0)[:4]
    kept = x[:, -top : 4 + bottom, -left : 5 + right]
    out = F.pad(x, pad)
    assert out.tolist() == kept.tolist()
    assert out.stride() == kept.clone().stride()
    assert F.pad(x.to("meta"), pad).stride() == out.stride()


def test_padding_may_take_everything_away():
    x = facula.ones(4, 3).t()
    assert F.pad(x, (-2, -2)).shape == (3, 0)


def test_circular_padding_refuses_to_wrap_what_negative_pads_took():
    x = facula.arange(3.0).reshape(1, 1, 3)
    for pad in ((-3, 2), (2, -3)):
        with pytest.raises(RuntimeError, match="leaves nothing to wrap around"):
            F.pad(x, pad, "circular")
    with pytest.raises(RuntimeError, match="dimension 1"):
        F.pad(x, (1, 1, 1, -1), "circular")
    assert F.pad(x, (-2, 1), "circular").tolist() == [[[2.0, 2.0]]]


def test_circular_padding_may_leave_nothing():
    x = facula.ones(1, 2, 3, requires_grad=True)
    y = F.pad(x, (-2, -1), "circular")
    assert y.shape == (1, 2, 0)
    y.sum().backward()
    assert x.grad.tolist() == [[[0.0] * 3] * 2]


def test_channels_of_volumes_are_shuffled_in_their_layout():
    x = facula.arange(64.0).reshape(2, 4, 2, 2, 2).to(memory_format=facula.channels_last_3d)
    y = F.channel_shuffle(x, 2)
    assert y.stride() == x.stride() == (32, 1, 16, 8, 4)
    assert facula.equal(y, x[:, [0, 2, 1, 3]])
    assert F.channel_shuffle(x, 1).stride() == x.stride()


def test_affine_grid_warns_of_single_pixels_at_both_corners():
    theta = facula.eye(2, 3)[None]
    with pytest.warns(UserWarning, match="unit-size grids"):
        F.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.affine_grid(theta, (1, 1, 2, 2), align_corners=True)
        F.affine_grid(theta, (1, 1, 1, 2), align_corners=False)


def test_fold_refuses_a_kernel_of_more_pixels_than_integers_count():
    with pytest.raises(RuntimeError):  # their number is 0 modulo 2**64
        F.fold(facula.ones(2, 3), [2**62, 4], [2**62, 4])
