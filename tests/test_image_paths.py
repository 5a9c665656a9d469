"""Kernels chosen by layout, size or grad mode agree with those in whose place they run."""

import numpy
import pytest
from package_under_test import F

functional = F.nn.functional


def close(a, b, atol=1e-5):
    numpy.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=atol)


@pytest.fixture(autouse=True)
def _seed():
    F.manual_seed(0)


@pytest.mark.parametrize(
    ("shape", "groups"), [((3, 12, 5, 7), 4), ((1, 70, 9, 40), 7), ((5, 3, 2, 1), 3)]
)
def test_group_norm_of_channels_last_is_that_of_contiguous_images(shape, groups):
    x, weight, bias, grad = (F.randn(*s) for s in (shape, shape[1:2], shape[1:2], shape))

    def run(image):
        leaves = [t.clone().requires_grad_() for t in (image, weight, bias)]
        y = functional.group_norm(leaves[0], groups, leaves[1], leaves[2])
        return [y, *F.autograd.grad(y, leaves, grad)]

    last = run((x + 2).contiguous(memory_format=F.channels_last))
    assert last[0].is_contiguous(memory_format=F.channels_last)
    for a, b in zip(last, run(x + 2), strict=True):
        close(a, b, 2e-5)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("layout", [F.contiguous_format, F.channels_last])
def test_groups_of_eight_channels_are_convolutions_of_their_own(step, layout):
    x, weight = F.randn(2, 40, 11, 9), F.randn(40, 8, 3, 3)

    def run(convolve):
        leaves = [t.contiguous(memory_format=layout).clone().requires_grad_() for t in (x, weight)]
        y = convolve(*leaves)
        return [y, *F.autograd.grad(y, leaves, y.detach().cos())]

    def one_by_one(image, kernels):
        parts = zip(image.chunk(5, 1), kernels.chunk(5, 0), strict=True)
        return F.cat([functional.conv2d(a, w, stride=step, padding=1) for a, w in parts], 1)

    grouped = run(lambda image, w: functional.conv2d(image, w, stride=step, padding=1, groups=5))
    for a, b in zip(grouped, run(one_by_one), strict=True):
        close(a, b, 1e-3)


@pytest.mark.parametrize("n", [15, 16, 400])
@pytest.mark.parametrize("window", [F.hann_window, F.ones])
def test_stft_is_the_same_with_and_without_a_history(n, window):
    signal = F.randn(3, 2000)

    def run(x):
        return F.stft(
            x, n, window=window(n - 2), win_length=n - 2, normalized=True, return_complex=True
        )

    plain, recorded = run(signal), run(signal.clone().requires_grad_())
    assert plain.shape == recorded.shape and plain.stride() == recorded.stride()
    close(plain, recorded)


def test_transforms_of_many_lines_are_those_of_few():
    x = F.randn(3000, 100)
    for transform in (
        F.fft.rfft,
        F.fft.fft,
        F.fft.ifft,
    ):
        few = F.cat([transform(part) for part in x.split(1000)])
        assert F.equal(transform(x), few)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_slopes_of_a_linear_grid_are_differences_of_its_values(padding, align):
    x = F.randn(2, 3, 6, 7, dtype=F.float64)
    grid = F.rand(2, 5, 15, 2, dtype=F.float64) * 3 - 1.5
    assert F.autograd.gradcheck(
        lambda g: functional.grid_sample(x, g, padding_mode=padding, align_corners=align),
        [grid.requires_grad_()],
        eps=1e-7,
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(9, 11), (4, 4), (3, 8), (1, 5)])
def test_cubic_grid_reads_squares_as_it_reads_single_pixels(padding, align, size):
    x = F.randn(2, 4, *size)
    grid = F.rand(2, 7, 21, 2) * 4 - 2
    grid[0, 0, 0], grid[1, 0, 0] = float("nan"), float("inf")
    keywords = {"mode": "bicubic", "padding_mode": padding, "align_corners": align}
    # Channels side by side are read pixel by pixel.
    last = x.contiguous(memory_format=F.channels_last)
    by_pixels = functional.grid_sample(last, grid, **keywords)
    for c in range(4):
        plane = x[:, c : c + 1].contiguous()
        close(functional.grid_sample(plane, grid, **keywords), by_pixels[:, c : c + 1])


@pytest.mark.parametrize("align", [False, True])
def test_reflected_coordinates_are_those_of_a_mirrored_image(align):
    """Bilinear values far outside are those inside of the image beside its mirror images."""
    x = F.randn(1, 1, 5, 6, dtype=F.float64)
    keywords = {"padding_mode": "reflection", "align_corners": align}
    inside = F.rand(1, 9, 13, 2, dtype=F.float64) * 2 - 1
    want = functional.grid_sample(x, inside, **keywords)
    for shift in (4, -4, 8):  # two widths further on
        close(functional.grid_sample(x, inside + shift, **keywords), want, 1e-9)
    for middle in (2, -2, 6):
        close(functional.grid_sample(x, middle - inside, **keywords), want, 1e-9)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (2, 0, 0, 3), (4, 4, 2, 1), (5, 4, 1, 0)])
@pytest.mark.parametrize("width", [6, 14, 17, 40, 70])
def test_pads_are_those_of_numpy_whatever_the_width_of_rows(mode, pads, width):
    x = (F.arange(2 * 3 * 5 * width) % 1999).view(2, 3, 5, width)
    named = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    value = {"constant_values": 7} if mode == "constant" else {}
    around = [(0, 0), (0, 0), pads[2:], pads[:2]]
    want = numpy.pad(x.numpy(), around, named[mode], **value)
    given = 7 if mode == "constant" else None
    for dtype in (F.float32, F.float16, F.float64, F.complex128):
        for layout in (F.contiguous_format, F.channels_last):
            image = x.to(dtype).contiguous(memory_format=layout)
            got = functional.pad(image, pads, mode, given)
            numpy.testing.assert_array_equal(got.to(F.complex128).numpy(), want)
