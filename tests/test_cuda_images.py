"""Pooling, interpolation, padding and patches of images on CUDA against the host."""

import pytest
from cuda_comparison import close, needs_cuda, random, same_with_gradients
from package_under_test import F

pytestmark = needs_cuda

f = F.nn.functional
FLOATS = [F.float32, F.float64, F.bfloat16]
SHAPES = {1: (2, 3, 11), 2: (2, 3, 9, 10), 3: (1, 2, 6, 7, 8)}


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1}, {"stride": 1, "dilation": 2}, {"ceil_mode": True}],
    ids=str,
)
def test_max_pool(dims, dtype, options):
    x = random(*SHAPES[dims], dtype=dtype)
    pool = getattr(f, f"max_pool{dims}d")
    same_with_gradients(lambda x: pool(x, 3, **options), x)
    values, where = pool(x.cuda(), 3, return_indices=True, **options)
    expected, positions = pool(x, 3, return_indices=True, **options)
    close(values, expected)
    assert (where.cpu() == positions).all().item()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", FLOATS)
def test_average_pools(dims, dtype):
    x = random(*SHAPES[dims], dtype=dtype)
    pool = getattr(f, f"avg_pool{dims}d")
    same_with_gradients(lambda x: pool(x, 3, stride=2, padding=1), x)
    same_with_gradients(lambda x: pool(x, 2, ceil_mode=True, count_include_pad=False), x)
    same_with_gradients(lambda x: getattr(f, f"adaptive_avg_pool{dims}d")(x, 1), x)
    same_with_gradients(lambda x: getattr(f, f"adaptive_avg_pool{dims}d")(x, 4), x)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive_max_pool(dims):
    x = random(*SHAPES[dims])
    pool = getattr(f, f"adaptive_max_pool{dims}d")
    same_with_gradients(lambda x: pool(x, 4), x)
    assert (pool(x.cuda(), 3, True)[1].cpu() == pool(x, 3, True)[1]).all().item()


def test_gradients_of_overlapping_windows_in_a_fixed_order():
    x = random(2, 3, 9, 10)
    F.use_deterministic_algorithms(True)
    try:
        same_with_gradients(lambda x: f.adaptive_max_pool2d(x, 4), x)
        last = x.contiguous(memory_format=F.channels_last)
        same_with_gradients(lambda x: f.adaptive_max_pool2d(x, 4), last)
    finally:
        F.use_deterministic_algorithms(False)


def test_pools_of_channels_last():
    x = random(2, 4, 9, 9).contiguous(memory_format=F.channels_last)
    for pool in (
        lambda x: f.max_pool2d(x, 3, 2, 1),
        lambda x: f.avg_pool2d(x, 2),
        lambda x: f.adaptive_avg_pool2d(x, 1),
        lambda x: f.interpolate(x, scale_factor=2.0, mode="bilinear"),
    ):
        same_with_gradients(pool, x)
        assert pool(x.cuda()).stride() == pool(x).stride()


def test_max_pool_of_integers_nan_and_fractions():
    x = F.arange(64).reshape(1, 1, 8, 8) - 32
    close(f.max_pool2d(x.cuda(), 3, 2, 1), f.max_pool2d(x, 3, 2, 1))
    y = random(1, 1, 6, 6)
    y[0, 0, 2, 2] = F.nan
    close(f.max_pool2d(y.cuda(), 2), f.max_pool2d(y, 2))
    samples = F.rand(2, 3, 2)
    z = random(2, 3, 9, 9)
    same_with_gradients(
        lambda z: f.fractional_max_pool2d(z, 2, 4, _random_samples=samples.to(z.device)), z
    )


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bilinear", "bicubic",
                                  "trilinear", "area"])  # fmt: skip
@pytest.mark.parametrize("factor", [2.0, 0.6])
def test_interpolate(mode, factor):
    dims = {"linear": [1], "bilinear": [2], "bicubic": [2], "trilinear": [3]}.get(mode, [1, 2, 3])
    for n in dims:
        x = random(*SHAPES[n])
        same_with_gradients(lambda x: f.interpolate(x, scale_factor=factor, mode=mode), x)
        if mode.endswith("linear") or mode == "bicubic":
            same_with_gradients(
                lambda x: f.interpolate(x, scale_factor=factor, mode=mode, align_corners=True), x
            )


def test_interpolate_smoothly_and_of_other_dtypes():
    x = random(2, 3, 16, 16)
    same_with_gradients(lambda x: f.interpolate(x, (7, 5), mode="bilinear", antialias=True), x)
    same_with_gradients(lambda x: f.interpolate(x, (7, 5), mode="bicubic", antialias=True), x)
    for mode in ("nearest", "bilinear"):
        same_with_gradients(lambda x: f.interpolate(x, (20, 9), mode=mode), x.bfloat16())  # noqa: B023
    y = F.randint(0, 255, (1, 2, 8, 8)).to(F.uint8)
    close(f.interpolate(y.cuda(), (11, 5)), f.interpolate(y, (11, 5)))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_with_own_elements(mode):
    same_with_gradients(lambda x: f.pad(x, (2, 1), mode=mode), random(2, 3, 7))
    same_with_gradients(lambda x: f.pad(x, (2, 1, 0, 3), mode=mode), random(2, 3, 7, 6))
    same_with_gradients(lambda x: f.pad(x, (2, 1, 0, 3, 1, 1), mode=mode), random(1, 2, 4, 7, 6))


def test_shuffled_pixels_and_patches():
    same_with_gradients(lambda x: f.pixel_shuffle(x, 2), random(2, 8, 3, 5))
    same_with_gradients(lambda x: f.pixel_unshuffle(x, 2), random(2, 3, 4, 6))
    same_with_gradients(lambda x: f.unfold(x, (2, 3), 2, 1, (1, 2)), random(2, 3, 8, 9))
    same_with_gradients(lambda x: f.fold(x, (6, 7), (2, 3), padding=1), random(2, 12, 49))
    x = F.arange(64).reshape(1, 1, 8, 8)
    close(f.unfold(x.float().cuda(), 3), f.unfold(x.float(), 3))


def test_nothing_to_pool():
    assert f.max_pool2d(F.ones(0, 3, 6, 6).cuda(), 2).shape == (0, 3, 3, 3)
    assert f.interpolate(F.ones(0, 3, 6, 6).cuda(), scale_factor=2).shape == (0, 3, 12, 12)
