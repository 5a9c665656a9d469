"""Convolutions of any geometry against a sum over taps in NumPy, and how they behave.

The derived tests cover each row in small; here the sizes go past vectors, blocks and tiles, so that
every kernel and its edges are reached.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from package_under_test import IS_FACULA, F
from references_convolution import convolution as reference

# Relative to the largest result: a plain sum of n products errs by about sqrt(n) units.
TOLERANCE = {"float32": 4e-6, "float64": 1e-14, "bfloat16": 6e-3, "float16": 8e-4}


def tensor(array, dtype="float32", layout="contiguous"):
    t = F.from_numpy(np.ascontiguousarray(array)).to(getattr(F, dtype))
    if layout == "channels_last" and t.dim() in (4, 5):
        return t.contiguous(memory_format=F.channels_last if t.dim() == 4 else F.channels_last_3d)
    if layout == "transposed":
        return t.transpose(-1, -2).contiguous().transpose(-1, -2)
    return t


def assert_near(actual, expected, dtype="float32", what="result"):
    actual = actual.detach().to(F.float64).numpy()
    assert actual.shape == expected.shape, f"{what}: {actual.shape}, not {expected.shape}"
    if actual.size == 0:
        return
    scale = max(1.0, np.abs(expected).max())
    error = np.abs(actual - expected).max() / scale
    assert error <= TOLERANCE[dtype], f"{what} is off by {error:.2e} of its largest element"


@st.composite
def problems(draw, channels, sizes):
    """(input shape, weight shape, arguments) of a convolution that has a result."""
    dims = draw(st.integers(1, 3))
    transposed = draw(st.booleans())
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    shape = [draw(st.integers(0 if dims == 1 else 1, 3)), draw(channels) * groups]
    out = draw(channels) * groups
    largest = max(2, int(sizes ** (1 / dims)))
    kernel, stride, padding, dilation, extra = [], [], [], [], []
    for _ in range(dims):
        k = draw(st.integers(1, 7 if dims == 1 else 5 if dims == 2 else 3))
        d = draw(st.sampled_from([1, 1, 2, 3]))
        s = draw(st.integers(1, 3))
        reach = d * (k - 1) + 1
        p = draw(st.integers(0, 3))
        if transposed:
            size = draw(st.integers(1, largest))
            e = draw(st.integers(0, max(s, d) - 1))
            p = min(p, ((size - 1) * s + reach + e - 1) // 2)
        else:
            size = draw(st.integers(max(1, reach - 2 * p), max(reach, largest)))
            e = 0
        shape.append(size)
        for values, value in zip(
            (kernel, stride, padding, dilation, extra), (k, s, p, d, e), strict=True
        ):
            values.append(value)
    pair = (shape[1], out // groups) if transposed else (out, shape[1] // groups)
    return shape, (*pair, *kernel), (stride, padding, dilation, transposed, extra, groups)


def run(problem, dtype, layouts, seed, with_bias=True):
    """Compares result and gradients with NumPy's."""
    shape, weight_shape, (stride, padding, dilation, transposed, extra, groups) = problem
    random = np.random.default_rng(seed)
    x, w = (
        tensor(random.standard_normal(s), dtype, layout)
        for s, layout in zip((shape, weight_shape), layouts, strict=True)
    )
    out_channels = weight_shape[1] * groups if transposed else weight_shape[0]
    bias = tensor(random.standard_normal(out_channels), dtype) if with_bias else None
    inputs = [t for t in (x, w, bias) if t is not None]
    for t in inputs:
        t.requires_grad_()
    arguments = (stride, padding, dilation, transposed, extra, groups)
    y = F.convolution(x, w, bias, *arguments)
    arrays = [None if t is None else t.detach().to(F.float64).numpy() for t in (x, w, bias)]
    expected = reference(*arrays, *arguments)
    assert_near(y, expected, dtype)
    grad = tensor(random.standard_normal(expected.shape), dtype, layouts[0])
    gradients = F.autograd.grad(y, inputs, grad)
    grad = grad.to(F.float64).numpy()
    # The operator is linear in each argument: <grad, conv(d)> is the derivative along d.
    for i, gradient in enumerate(gradients):
        direction = random.standard_normal(arrays[i].shape)
        changed = list(arrays)
        changed[i] = direction
        if i < 2:
            changed[2] = None
            along = reference(*changed, *arguments)
        else:
            along = np.broadcast_to(direction.reshape(-1, *[1] * (len(shape) - 2)), expected.shape)
        wanted = float((grad * along).sum())
        actual = float((gradient.to(F.float64).numpy() * direction).sum())
        norm = np.linalg.norm(grad) * np.linalg.norm(along) + 1.0
        name = ("input", "weight", "bias")[i]
        assert abs(actual - wanted) <= TOLERANCE[dtype] * norm, f"gradient of {name}"
    return y


LAYOUTS = st.sampled_from(["contiguous", "channels_last", "transposed"])


@settings(max_examples=60, deadline=None)
@given(problems(st.integers(1, 6), 200), st.tuples(LAYOUTS, LAYOUTS), st.integers(0, 9))
def test_small_convolutions_of_any_geometry(problem, layouts, seed):
    run(problem, "float64", layouts, seed)


@settings(max_examples=60, deadline=None)
@given(
    problems(st.sampled_from([1, 3, 8, 16, 17, 33, 40]), 900),
    st.tuples(LAYOUTS, LAYOUTS),
    st.sampled_from(["float32", "float32", "float32", "bfloat16", "float16"]),
    st.booleans(),
    st.integers(0, 9),
)
def test_convolutions_past_vectors_and_blocks(problem, layouts, dtype, with_bias, seed):
    run(problem, dtype, layouts, seed, with_bias)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([16, 20, 48, 64, 70, 130]),  # tiles of 4x4 from 64 channels on, else of 2x2
    st.sampled_from([32, 33, 64, 70]),
    st.tuples(st.integers(3, 18), st.integers(3, 18)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.booleans(),
    st.tuples(LAYOUTS, LAYOUTS),
)
def test_3x3_kernels_on_images_that_tiles_do_not_fit(n, c, o, size, padding, transposed, layouts):
    if transposed:
        padding = tuple(min(p, (s + 1) // 2) for p, s in zip(padding, size, strict=True))
    pair = (c, o) if transposed else (o, c)
    arguments = ([1, 1], list(padding), [1, 1], transposed, [0, 0], 1)
    run(((n, c, *size), (*pair, 3, 3), arguments), "float32", layouts, 0)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_3x3_kernels_of_few_channels_round_as_plain_sums_do(layout):
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((4, 32, 26, 26)), rng.standard_normal((4, 48, 24, 24))
    w = rng.standard_normal((48, 32, 3, 3))
    arrays = [a.astype(np.float32) for a in (x, w, g)]
    found, exact = [], []
    for results, dtype in ((found, "float32"), (exact, "float64")):
        x, w, g = (tensor(a, dtype, layout) for a in arrays)
        x.requires_grad_(), w.requires_grad_()
        y = F.conv2d(x, w)
        y.backward(g)
        results += [t.detach().to(F.float64).numpy() for t in (y, x.grad, w.grad)]
    # Sums of 288, 432 and 2304 products of which each rounding adds half a unit at the most; tiles
    # of 4x4 have errors of 6e-7 and more in the first two.
    for name, a, b in zip(("result", "input", "weight"), found, exact, strict=True):
        error = np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2))
        assert error < 3e-7, f"{name}: {error:.1e}"


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([2, 3, 16, 21, 35]),
    st.sampled_from([1, 1, 2]),
    st.tuples(st.integers(1, 40), st.integers(1, 70)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.sampled_from(["float32", "float32", "float64", "bfloat16"]),
    st.tuples(LAYOUTS, LAYOUTS),
)
def test_kernels_for_one_channel_each(
    n, c, multiple, size, kernel, stride, dilation, dtype, layouts
):
    padding = [d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [max(s, r - 2 * p) for s, r, p in zip(size, reach, padding, strict=True)]
    arguments = (list(stride), padding, list(dilation), False, [0, 0], c)
    run(((n, c, *size), (c * multiple, 1, *kernel), arguments), dtype, layouts, 0)


# ---- layouts


def is_channels_last(t):
    return t.is_contiguous(memory_format=F.channels_last) and not t.is_contiguous()


@pytest.mark.parametrize("x_last", [False, True])
@pytest.mark.parametrize("w_last", [False, True])
def test_result_is_channels_last_when_input_or_weight_is(x_last, w_last):
    x, w = F.randn(2, 3, 5, 6), F.randn(4, 3, 2, 2)
    x = x.contiguous(memory_format=F.channels_last) if x_last else x
    w = w.contiguous(memory_format=F.channels_last) if w_last else w
    y = F.conv2d(x, w)
    assert is_channels_last(y) == (x_last or w_last)
    assert y.is_contiguous() == (not (x_last or w_last))


def test_gradients_of_channels_last_are_channels_last():
    x = F.randn(2, 3, 5, 6).contiguous(memory_format=F.channels_last).requires_grad_()
    w = F.randn(4, 3, 3, 3).contiguous(memory_format=F.channels_last).requires_grad_()
    y = F.conv2d(x, w, padding=1)
    gx, gw = F.autograd.grad(y, (x, w), F.ones_like(y))
    assert is_channels_last(gx) and is_channels_last(gw)


def test_layouts_agree():
    x, w, b = F.randn(2, 24, 13, 11), F.randn(40, 24, 3, 3), F.randn(40)
    last = F.conv2d(
        x.contiguous(memory_format=F.channels_last),
        w.contiguous(memory_format=F.channels_last),
        b,
        padding=1,
    )
    assert F.allclose(F.conv2d(x, w, b, padding=1), last, rtol=1e-4, atol=1e-4)


# ---- special shapes


def test_empty_batch_has_an_empty_result_and_zero_weight_gradients():
    x = F.randn(0, 3, 5, 6, requires_grad=True)
    w = F.randn(4, 3, 2, 2, requires_grad=True)
    b = F.randn(4, requires_grad=True)
    y = F.conv2d(x, w, b)
    assert y.shape == (0, 4, 4, 5)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert (w.grad == 0).all() and (b.grad == 0).all()


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch gives a result without channels")
def test_no_input_channels_leave_the_bias():
    y = F.conv2d(F.randn(2, 0, 4, 4), F.randn(3, 0, 2, 2), F.tensor([1.0, 2.0, 3.0]))
    assert y.shape == (2, 3, 3, 3)
    assert (y[:, 2] == 3).all()


def test_padding_beyond_the_kernel_gives_rows_of_bias():
    y = F.conv1d(F.ones(1, 1, 2), F.ones(1, 1, 1), F.tensor([0.5]), padding=3)
    assert y.tolist() == [[[0.5, 0.5, 0.5, 1.5, 1.5, 0.5, 0.5, 0.5]]]


def test_large_stride_of_a_transposed_convolution():
    y = F.conv_transpose1d(F.ones(1, 1, 2), F.ones(1, 1, 2), stride=100_000)
    assert y.shape == (1, 1, 100_002)
    assert y.sum() == 4 and y[0, 0, 100_001] == 1


@pytest.mark.parametrize(
    "shape, weight, options",
    [
        ((64, 40, 2, 2), (3, 40, 1, 1), {"stride": 3, "padding": 1}),
        ((2, 5, 1, 12), (48, 5, 1, 5), {"stride": (3, 2), "padding": (1, 0)}),
    ],
)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_taps_that_meet_no_pixel_give_the_input_gradients_of_zero(
    dtype, layout, shape, weight, options
):
    left = F.ones(shape, dtype=getattr(F, dtype))
    del left  # its memory is used again
    x = F.zeros(shape, dtype=getattr(F, dtype))
    if layout == "channels_last":
        x = x.to(memory_format=F.channels_last)
    x.requires_grad_()
    y = F.conv2d(x, F.ones(weight, dtype=x.dtype), **options)
    assert (F.autograd.grad(y.sum(), x)[0] == 0).all()


@pytest.mark.parametrize(
    "shape, weight, options",
    [
        ((1, 32, 23, 7), (16, 32, 3, 5), {"stride": (1, 2)}),
        ((2, 64, 23, 7), (64, 64, 5, 5), {"stride": 2, "padding": 2}),
        ((2, 64, 23, 8), (16, 64, 3, 3), {"stride": (1, 3), "padding": (0, 3), "dilation": (1, 3)}),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_results_with_steps_whose_remainders_have_three_taps(dtype, shape, weight, options):
    """These may go by Winograd's algorithm, whose rows have to be written with gaps."""
    generator = np.random.default_rng(0)
    x, w = (tensor(generator.standard_normal(s)).to(getattr(F, dtype)) for s in (shape, weight))
    results = []
    for dt in (x.dtype, F.float64):
        image = x.to(dt).requires_grad_()
        y = F.conv2d(image, w.to(dt), **options)
        g = tensor(np.random.default_rng(1).standard_normal(y.shape)).to(x.dtype).to(dt)
        results.append(F.autograd.grad(y, image, g)[0].double())
    ours, expected = results
    tolerance = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
    assert (ours - expected).abs().max() <= tolerance * expected.abs().max()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_transposed_results_that_nothing_meets_are_the_bias(dtype):
    x, w = F.ones(2, 3, 4, 4, dtype=getattr(F, dtype)), F.ones(3, 40, 1, 1, dtype=getattr(F, dtype))
    bias = F.arange(40).to(x.dtype)
    y = F.conv_transpose2d(x, w, bias, stride=3, output_padding=2)
    met = F.zeros(y.shape, dtype=F.bool)
    met[:, :, ::3, ::3] = True
    expected = bias.view(1, 40, 1, 1).expand(y.shape)
    assert F.equal(y, F.where(met, expected + 3, expected).to(y.dtype))


def test_long_kernel():
    x, w = F.randn(1, 1, 5000), F.randn(1, 1, 3001)
    expected = np.correlate(x[0, 0].double().numpy(), w[0, 0].double().numpy(), "valid")
    assert_near(F.conv1d(x, w)[0, 0], expected)


def test_same_padding_keeps_the_size_for_even_kernels():
    x, w = F.randn(2, 3, 7, 9), F.randn(4, 3, 4, 2)
    y = F.conv2d(x, w, padding="same", dilation=(1, 3))
    assert y.shape == (2, 4, 7, 9) and y.is_contiguous()


# ---- determinism


@pytest.mark.skipif(not IS_FACULA, reason="a property of Facula")
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize(
    "shape, weight, options",
    [
        ((4, 33, 28, 28), (48, 33, 3, 3), {"padding": 1}),
        ((4, 70, 19, 19), (64, 70, 3, 3), {"padding": 1}),
        ((4, 3, 40, 40), (32, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((8, 40, 14, 14), (70, 40, 1, 1), {}),
        ((4, 48, 30, 30), (48, 1, 3, 3), {"groups": 48, "padding": 1}),
        ((4, 32, 20, 20), (32, 8, 3, 3), {"groups": 4, "stride": 2}),
        ((16, 1, 28, 28), (8, 1, 3, 3), {}),
    ],
)
def test_results_do_not_depend_on_the_number_of_threads(layout, shape, weight, options):
    x = tensor(np.random.default_rng(0).standard_normal(shape), layout=layout).requires_grad_()
    w = tensor(np.random.default_rng(1).standard_normal(weight), layout=layout).requires_grad_()
    threads = F.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            F.set_num_threads(count)
            y = F.conv2d(x, w, **options)
            found.append([y, *F.autograd.grad(y, (x, w), y.detach())])
    finally:
        F.set_num_threads(threads)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert (one == other).all()


def test_accuracy_on_positive_values():
    """Sums of positive numbers hide no errors behind their size: like activations after relu."""
    x = np.abs(np.random.default_rng(0).standard_normal((2, 128, 20, 20)))
    w = np.random.default_rng(1).standard_normal((64, 128, 3, 3))
    x, w = (np.asarray(a, np.float32) for a in (x, w))
    expected = reference(
        x.astype(np.float64), w.astype(np.float64), None, [1], [1], [1], False, [0], 1
    )
    actual = F.conv2d(tensor(x), tensor(w), padding=1).double().numpy()
    assert np.abs(actual - expected).max() / np.abs(expected).max() < 1e-5


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's errors of the gradient are larger")
def test_few_channels_have_the_errors_of_plain_sums():
    """Larger ones change what activations let through, and with it the steps of training."""
    x, w = F.randn(8, 32, 26, 26).relu_(), F.randn(64, 32, 3, 3) / 17
    grad = F.randn(8, 64, 24, 24)

    def results(dtype):
        inputs = [t.to(dtype).requires_grad_() for t in (x, w)]
        y = F.conv2d(*inputs)
        return [t.detach().double() for t in (y, *F.autograd.grad(y, inputs, grad.to(dtype)))]

    for got, exact in zip(results(F.float32), results(F.float64), strict=True):
        assert ((got - exact).std() / exact.std()).item() < 3e-7


# ---- derivatives


def test_derivatives_of_derivatives():
    x = F.randn(2, 4, 5, dtype=F.float64, requires_grad=True)
    w = F.randn(6, 2, 3, dtype=F.float64, requires_grad=True)
    b = F.randn(6, dtype=F.float64, requires_grad=True)
    assert F.autograd.gradgradcheck(
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1, groups=2), (x, w, b)
    )


def test_second_derivative_of_a_transposed_convolution_padded_beyond_its_stride():
    x = F.randn(1, 2, 3, dtype=F.float64, requires_grad=True)
    w = F.randn(2, 3, 2, dtype=F.float64, requires_grad=True)
    assert F.autograd.gradgradcheck(
        lambda x, w: F.conv_transpose1d(x, w, stride=2, dilation=4, output_padding=3), (x, w)
    )


def test_only_wanted_gradients_are_computed():
    x, w = F.randn(1, 2, 5, 5), F.randn(3, 2, 3, 3, requires_grad=True)
    y = F.conv2d(x, w)
    y.sum().backward()
    assert x.grad is None and w.grad.shape == w.shape


# ---- errors

X, W = F.ones(2, 4, 5, 6), F.ones(6, 4, 3, 3)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: F.conv2d(X[0, 0], W), "Expected 3D (unbatched) or 4D (batched) input to conv2d"),
        (lambda: F.conv2d(X, F.ones(6, 3, 3, 3)), "to have 3 channels, but got 4 channels"),
        (lambda: F.conv2d(X, F.ones(6, 4, 7, 3)), "Kernel size can't be greater than actual"),
        (lambda: F.conv2d(X, W, stride=0), "non-positive stride is not supported"),
        (lambda: F.conv2d(X, W, padding=-1), "negative padding is not supported"),
        (lambda: F.conv2d(X, W, dilation=0), "dilation"),
        (lambda: F.conv2d(X, W, stride=(1, 2, 3)), "a list of 2 values to match"),
        (lambda: F.conv2d(X, W, F.ones(5)), "expected bias to be 1-dimensional with 6 elements"),
        (lambda: F.conv2d(X, W, F.ones(1, 6)), "expected bias to be 1-dimensional"),
        (lambda: F.conv2d(X, W.double()), "should be the same"),
        (lambda: F.conv2d(X, W, F.ones(6).double()), "should be the same"),
        (lambda: F.conv2d(X, W, groups=3), "expected input"),
        (lambda: F.conv2d(X, W, groups=0), "non-positive groups is not supported"),
        (lambda: F.conv2d(X, F.ones(6, 1, 3, 3), groups=4), "to be divisible by 4"),
        (lambda: F.conv2d(X, F.ones(1, 4, 3, 3), groups=2), "to be at least 2 at dimension 0"),
        (lambda: F.conv2d(X, W, padding="wide"), "Invalid padding string: 'wide'"),
        (lambda: F.conv2d(X, W, padding="same", stride=2), "not supported for strided"),
        (lambda: F.conv2d(F.ones(2, 4, 0, 6), W), "Kernel size can't be greater"),
        (lambda: F.conv_transpose2d(X, F.ones(4, 3, 3, 3), output_padding=1), "output padding"),
        (lambda: F.conv_transpose2d(X, F.ones(3, 3, 3, 3)), "to have 3 channels"),
        (lambda: F.conv_transpose2d(X, F.ones(4, 3, 3, 3), F.ones(4)), "with 3 elements"),
        (lambda: F.conv_tbc(X[0], F.ones(3, 6, 6), F.ones(5)), "Bias size must equal dim 2"),
        (lambda: F.conv_tbc(X[0], F.ones(3, 5, 6), F.ones(6)), "is not == dim 1 in the weight"),
        (lambda: F.convolution(X[0], W, None, [1], [0], [1], False, [0], 1), "Expected 4-dim"),
    ],
)
def test_refused_arguments(call, words):
    with pytest.raises(RuntimeError) as error:
        call()
    assert words in str(error.value)


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch passes on what its backend says")
def test_too_much_padding_of_a_transposed_convolution_is_explained():
    with pytest.raises(
        RuntimeError, match=r"Output size is too small; padding=.20, 20. takes away"
    ):
        F.conv_transpose2d(X, F.ones(4, 3, 3, 3), padding=20)


def test_booleans_are_refused():
    with pytest.raises(NotImplementedError):
        F.conv2d(X.bool(), W.bool())
