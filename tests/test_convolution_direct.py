"""Convolutions that read pixels where they lie: transposed ones with steps, volumes, sequences.

Sizes go past blocks of channels, columns, rows and slabs, against NumPy.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from package_under_test import IS_FACULA, F
from test_convolution import LAYOUTS, run, tensor


def problem(shape, weight, stride=1, padding=0, dilation=1, transposed=False, extra=0, groups=1):
    dims = len(shape) - 2
    values = ([v] * dims if isinstance(v, int) else v for v in (stride, padding, dilation))
    return shape, weight, (*values, transposed, [extra] * dims, groups)


CASES = {
    "channels in several blocks": problem((2, 290, 9, 9), (20, 290, 3, 3), 2, 1),
    "transposed channels in several blocks": problem(
        (1, 310, 9, 8), (310, 33, 4, 4), 2, 1, transposed=True
    ),
    "long rows": problem((1, 9, 1500), (16, 9, 5), 1, 2),
    "long rows, transposed": problem((2, 16, 700), (16, 32, 5), 3, 2, transposed=True, extra=1),
    "long rows, dilated": problem((2, 16, 1300), (16, 16, 3), 1, 40, 40),
    "step beyond the kernel": problem((2, 16, 9, 9), (16, 16, 2, 3), (4, 5), 0, 1, True, 2),
    "step and dilation share a factor": problem((2, 8, 9, 9), (8, 16, 3, 3), 4, 2, 2, True, 1),
    "volume": problem((2, 16, 9, 10, 11), (32, 16, 3, 3, 3), 1, 1),
    "volume with steps": problem((2, 12, 9, 10, 17), (30, 12, 3, 2, 3), (2, 1, 2), 1),
    "volume, transposed": problem((1, 24, 5, 6, 7), (24, 16, 2, 3, 4), (2, 3, 2), 1, 1, True, 1),
    "groups": problem((2, 32, 12, 12), (32, 16, 4, 4), 2, 1, transposed=True, groups=2),
    "groups of volumes": problem((2, 16, 6, 7, 8), (32, 8, 3, 3, 3), 1, 1, groups=2),
    "padding wider than the image": problem((3, 8, 5, 5), (16, 8, 3, 3), 2, 9),
    "one channel each": problem((2, 37, 9, 13), (37, 1, 3, 3), 1, 1, groups=37),
    "one channel each, narrow": problem((3, 16, 7, 3), (16, 1, 3, 3), 1, 1, groups=16),
    "one channel each, narrower than the kernel": problem(
        (2, 48, 7, 7), (48, 1, 9, 9), 1, 4, groups=48
    ),
    "one channel each, steps": problem((2, 20, 15, 30), (20, 1, 3, 5), 2, (1, 2), groups=20),
    "one channel each, dilated": problem((2, 33, 11, 16), (33, 1, 3, 3), 1, 2, 2, groups=33),
    "one channel each, long rows": problem((2, 70, 2700), (70, 1, 4), 1, 2, groups=70),
    "one channel each, volume": problem((2, 24, 4, 5, 9), (24, 1, 3, 2, 3), 1, 1, groups=24),
    "one channel each, transposed": problem(
        (2, 40, 9, 10), (40, 1, 3, 4), 1, (1, 2), transposed=True, groups=40
    ),
    "one channel each, padding wider than the image": problem(
        (2, 17, 3, 4), (17, 1, 3, 3), 1, 7, groups=17
    ),
    "one channel each, steps in wide rows": problem((2, 9, 7, 150), (9, 1, 3, 3), 2, 1, groups=9),
    "one channel each, steps of three": problem((2, 9, 8, 211), (9, 1, 3, 5), 3, 2, groups=9),
    "one channel each, steps of five": problem((2, 9, 11, 340), (9, 1, 3, 7), 5, 3, groups=9),
    "one channel each, many small planes": problem((3, 83, 7, 7), (83, 1, 3, 3), 2, 1, groups=83),
    "few channels": problem((2, 3, 20, 45), (24, 3, 5, 5), 1, 2),
    "few channels, steps": problem((2, 3, 23, 71), (24, 3, 7, 7), 2, 3),
    "few planes out": problem((2, 40, 19, 33), (3, 40, 3, 5), 1, (1, 2)),
    "few planes out, in two parts": problem((2, 30, 9, 21), (8, 30, 3, 4), 1, 1),
    "few planes out, steps": problem((2, 20, 19, 45), (5, 20, 4, 3), (1, 2), (0, 3)),
    "few planes out, transposed with steps": problem(
        (2, 40, 9, 13), (40, 3, 7, 7), 2, 3, 1, True, 1
    ),
    "few planes out, long rows": problem((2, 12, 5000), (1, 12, 9), 1, 4),
    "few planes, dilated with steps": problem((2, 2, 25, 50), (20, 2, 3, 4), (3, 2), 3, (2, 3)),
    "few planes, long rows": problem((2, 1, 5003), (17, 1, 80), 4, 38),
    "few planes, several bands": problem((2, 5, 40, 70), (33, 5, 5, 5), (2, 1), 2),
    "few planes, bands of columns": problem((1, 2, 9, 1100), (20, 2, 6, 7), 1, (0, 3)),
    "few planes, rows of taps apart": problem((2, 3, 19, 30), (16, 3, 5, 5), 1, 4, (2, 1)),
    "one plane": problem((3, 1, 28, 30), (32, 1, 3, 3), 1, 1),
    "few planes, volume": problem((2, 3, 6, 9, 21), (20, 3, 3, 2, 3), (1, 2, 1), 1),
    "few planes, several blocks of rows": problem((1, 5, 150, 70), (9, 5, 3, 2), 1, 1),
    "pairs of channels, steps": problem((2, 50, 13, 11), (40, 50, 3, 3), 2, 1),
    "odd channels, dilated": problem((2, 37, 15, 12), (33, 37, 3, 3), 1, 2, 2),
    "one tap": problem((3, 40, 9, 7), (24, 40, 1, 1)),
    "one tap, channels in several blocks": problem((2, 400, 8, 9), (300, 400, 1, 1)),
    "one tap, planes of more than a few vectors": problem((3, 130, 13, 12), (140, 130, 1, 1)),
    "one tap, one pixel": problem((20, 48, 1, 1), (32, 48, 1, 1)),
    "one tap, transposed": problem((2, 32, 9, 9), (32, 48, 1, 1), transposed=True),
    "one tap, padded": problem((2, 32, 9, 9), (48, 32, 1, 1), 1, 1),
    "one tap, volume": problem((2, 16, 4, 5, 6), (32, 16, 1, 1, 1)),
    "one tap, wide steps": problem((2, 16, 8, 8), (16, 16, 1, 2), (3, 2), 0, 1, True, 1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_blocks(name, layout, dtype):
    run(CASES[name], dtype, (layout, layout), 0)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("few planes")])
def test_planes_of_doubles(name):
    run(CASES[name], "float64", ("contiguous", "contiguous"), 0)


def test_infinite_pixels_reach_only_what_sees_them():
    x, w = F.ones(2, 1, 9, 29), F.ones(8, 1, 3, 3, requires_grad=True)
    x[:, :, 0, -1] = float("inf")
    y = F.conv2d(x, w)
    assert y.isinf().sum() == 2 * 8 and y[:, :, 0, -1].isinf().all()
    x[:, :, :, -1] = float("inf")
    x[:, :, -1] = float("nan")
    y = F.conv2d(x, w[:, :, :2, :2], stride=2)  # meets neither the last row nor column
    assert (y == 4).all()
    assert (F.autograd.grad(y.sum(), w)[0][:, :, :2, :2] == 2 * 4 * 14).all()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([8, 12, 16, 40]),
    st.sampled_from([12, 16, 30, 48, 64]),
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 2)), min_size=2, max_size=3
    ),
    st.integers(4, 20),
    st.booleans(),
    st.tuples(LAYOUTS, LAYOUTS),
    st.integers(0, 9),
)
def test_kernels_and_steps(inside, outside, axes, width, transposed, layouts, seed):
    kernel, stride, padding = ([a[i] for a in axes] for i in range(3))
    sizes = [6] * (len(axes) - 1) + [width]
    if transposed:
        padding = [min(p, k // 2) for p, k in zip(padding, kernel, strict=True)]
    weight = (inside, outside) if transposed else (outside, inside)
    run(
        problem((2, inside, *sizes), (*weight, *kernel), stride, padding, 1, transposed),
        "float32",
        layouts,
        seed,
    )


@pytest.mark.skipif(not IS_FACULA, reason="a property of Facula")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_results_do_not_depend_on_the_number_of_threads(name, layout, dtype):
    shape, weight, arguments = CASES[name]
    random = np.random.default_rng(0)
    x, w = (tensor(random.standard_normal(s), dtype, layout) for s in (shape, weight))
    x.requires_grad_(), w.requires_grad_()
    threads = F.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            F.set_num_threads(count)
            y = F.convolution(x, w, None, *arguments)
            found.append([y, *F.autograd.grad(y, (x, w), y.detach())])
    finally:
        F.set_num_threads(threads)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert (one == other).all()
