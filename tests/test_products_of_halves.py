"""Products and convolutions of bfloat16 and half: each element against double precision.

`test_matrix_tiles.py` runs this file once more with matrix tiles, with or without a processor's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

import facula
import facula.nn.functional as functional

DTYPES = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
SHAPES = [  # (m, n, k): whole tiles and parts of them, few rows, few columns, a great depth
    (64, 64, 64),
    (33, 77, 100),
    (512, 129, 300),
    (530, 20, 64),
    (1100, 40, 300),
    (5, 700, 260),
    (17, 333, 1000),
    (60, 71, 2100),
    (131, 257, 515),
]


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = facula.get_num_threads()
    yield
    facula.set_num_threads(before)


def rounded(
    shape: tuple[int, ...], dtype: str, seed: int, transposed: bool = False
) -> facula.Tensor:
    values = facula.tensor(np.random.default_rng(seed).standard_normal(shape))
    if transposed:
        values = values.transpose(-1, -2).contiguous().transpose(-1, -2)
    return values.to(getattr(facula, dtype))


def assert_rounded_once(result: facula.Tensor, exact: facula.Tensor, size: facula.Tensor) -> None:
    """`size` is the same sum over absolute values: what rounding in float32 is relative to."""
    unit = DTYPES[str(result.dtype).removeprefix("facula.")]
    error = (result.double() - exact).abs()
    assert (error <= 0.51 * 2 * unit * exact.abs() + 3e-6 * size + 6e-8).all()


@pytest.mark.parametrize("right", [False, True], ids=["b", "bT"])
@pytest.mark.parametrize("left", [False, True], ids=["a", "aT"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_product_is_rounded_once(dtype: str, left: bool, right: bool) -> None:
    for seed, (m, n, k) in enumerate(SHAPES):
        a, b = rounded((m, k), dtype, seed, left), rounded((k, n), dtype, seed + 50, right)
        exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        assert_rounded_once(a @ b, exact, size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bias_scale_and_addend_are_rounded_with_the_sum(dtype: str) -> None:
    for seed, (m, n, k) in enumerate(SHAPES):
        a, b, c = (rounded(s, dtype, seed) for s in ((m, k), (k, n), (m, n)))
        exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        assert_rounded_once(
            functional.linear(a, b.t(), c[0]), exact + c[0].double(), size + c[0].double().abs()
        )
        out = c.t().contiguous().t()  # columns are contiguous
        scaled, addend = -2 * exact, 0.5 * c.double()
        out.addmm_(a, b, beta=0.5, alpha=-2)
        assert_rounded_once(out, scaled + addend, 2 * size + addend.abs())


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_and_operands_of_any_strides(dtype: str) -> None:
    a, b = rounded((3, 70, 2, 90), dtype, 1)[:, :, 1], rounded((90, 3, 80), dtype, 2)[:, :, ::2]
    b = b.transpose(0, 1)
    assert_rounded_once(
        facula.bmm(a, b), a.double() @ b.double(), a.double().abs() @ b.double().abs()
    )
    one = b[:1].expand(3, 90, 40)
    assert facula.equal(a @ one, facula.stack([each @ b[0] for each in a]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_not_a_number_stays_in_its_row_and_column(dtype: str) -> None:
    kind = getattr(facula, dtype)
    a, b = facula.ones(200, 300, dtype=kind), facula.ones(300, 150, dtype=kind)
    a[13, 7] = float("nan")
    b[5, 40] = float("inf")
    result = (a @ b).double().numpy()
    assert np.isnan(result[13]).all()
    rest = np.delete(result, 13, axis=0)
    assert np.isposinf(rest[:, 40]).all()
    assert (np.delete(rest, 40, axis=1) == 300).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_product_has_the_same_bits_with_any_number_of_threads(dtype: str) -> None:
    for seed, (m, n, k) in enumerate(SHAPES):
        a, b = rounded((m, k), dtype, seed), rounded((k, n), dtype, seed)
        results = []
        for threads in (1, 2, 3):
            facula.set_num_threads(threads)
            results.append(a @ b)
        assert facula.equal(results[0], results[1]), (m, n, k)
        assert facula.equal(results[0], results[2]), (m, n, k)


class Case(NamedTuple):
    input: tuple[int, ...]
    weight: tuple[int, ...]
    stride: int | tuple[int, ...] = 1
    padding: int = 0
    dilation: int = 1
    transposed: bool = False
    extra: int | tuple[int, ...] = 0
    groups: int = 1

    def arguments(self) -> list:
        """Those of facula.convolution after the bias."""
        dims = len(self.input) - 2
        stride, extra = (
            [v] * dims if isinstance(v, int) else list(v) for v in (self.stride, self.extra)
        )
        padding, dilation = [self.padding] * dims, [self.dilation] * dims
        return [stride, padding, dilation, self.transposed, extra, self.groups]

    def channels(self) -> int:
        return self.weight[1] * self.groups if self.transposed else self.weight[0]


CONVOLUTIONS = {
    "3x3": Case((2, 40, 14, 17), (50, 40, 3, 3), 1, 1),
    "7x7 of few channels": Case((2, 3, 30, 33), (24, 3, 7, 7), 2, 3),
    "few planes out": Case((2, 40, 16, 15), (5, 40, 3, 3), 1, 1),
    "1x1 with steps": Case((3, 64, 12, 12), (48, 64, 1, 1), 2),
    "steps": Case((2, 33, 19, 21), (40, 33, 3, 3), 2, 1),
    "dilated": Case((2, 32, 19, 21), (40, 32, 3, 3), (1, 2), 2, 2),
    "groups": Case((2, 64, 12, 12), (64, 32, 3, 3), 1, 1, groups=2),
    "many groups": Case((2, 128, 14, 14), (64, 16, 3, 3), 1, 1, groups=8),
    "transposed": Case((2, 40, 9, 10), (40, 33, 4, 4), 2, 1, 1, True, (0, 1)),
    "transposed, no steps": Case((2, 40, 9, 10), (40, 33, 3, 3), 1, 1, 1, True),
    "long rows": Case((1, 16, 3000), (40, 16, 9), 1, 4),
    "long rows of few channels": Case((2, 2, 4100), (24, 2, 32), 4, 8),
    "volume": Case((1, 24, 6, 9, 10), (32, 24, 3, 3, 3), 1, 1),
    "wide padding": Case((2, 32, 5, 6), (32, 32, 3, 3), 1, 6),
}


def with_layout(t: facula.Tensor, layout: str) -> facula.Tensor:
    if layout == "contiguous":
        return t.contiguous()
    forms = {4: facula.channels_last, 5: facula.channels_last_3d}
    if t.dim() == 3:
        return t.transpose(1, 2).contiguous().transpose(1, 2)
    return t.contiguous(memory_format=forms[t.dim()])


def results_of(
    x: facula.Tensor, w: facula.Tensor, bias: facula.Tensor, grad: facula.Tensor | None, *arguments
) -> list[facula.Tensor]:
    inputs = [t.detach().requires_grad_() for t in (x, w, bias)]
    y = facula.convolution(*inputs, *arguments)
    given = facula.ones_like(y) if grad is None else grad.reshape(y.shape)
    return [y.detach(), *facula.autograd.grad(y, inputs, given.to(y.dtype))]


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_convolution_and_its_gradients_are_rounded_once(dtype: str, layout: str, name: str) -> None:
    case = CONVOLUTIONS[name]
    arguments = case.arguments()
    sizes = (case.input, case.weight)
    x, w = (with_layout(rounded(s, dtype, i), layout) for i, s in enumerate(sizes))
    bias = rounded((case.channels(),), dtype, 2)
    y = facula.convolution(x, w, bias, *arguments)
    grad = with_layout(rounded(tuple(y.shape), dtype, 3), layout)
    ours = results_of(x, w, bias, grad, *arguments)
    doubles = [t.double() for t in (x, w, bias, grad)]
    exact = results_of(*doubles, *arguments)
    sizes = results_of(*(t.abs() for t in doubles), *arguments)
    for result, value, size in zip(ours, exact, sizes, strict=True):
        assert_rounded_once(result, value, size)


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_convolution_has_the_same_bits_with_any_number_of_threads(dtype: str, name: str) -> None:
    case = CONVOLUTIONS[name]
    sizes = (case.input, case.weight, (case.channels(),))
    x, w, bias = (rounded(s, dtype, i) for i, s in enumerate(sizes))
    results = []
    for threads in (1, 2, 3):
        facula.set_num_threads(threads)
        results.append(results_of(x, w, bias, None, *case.arguments()))
    for others in results[1:]:
        assert all(facula.equal(a, b) for a, b in zip(results[0], others, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinite_pixels_reach_only_what_sees_them(dtype: str) -> None:
    kind = getattr(facula, dtype)
    x = facula.ones(2, 32, 12, 21, dtype=kind)
    w = facula.ones(32, 32, 3, 4, dtype=kind, requires_grad=True)
    x[:, 0, 0, -1] = float("inf")
    y = functional.conv2d(x, w)
    assert y.isinf().sum() == 2 * 32 and y[:, :, 0, -1].isinf().all()
    x[:, :, :, -1] = float("inf")
    x[:, :, -1] = float("nan")
    y = functional.conv2d(x, w, stride=2)  # meets neither the last row nor the last column
    assert y.shape == (2, 32, 5, 9) and (y == 32 * 12).all()
    gradient = facula.autograd.grad(y.sum(), w)[0]
    assert (gradient == 2 * 5 * 9).all()
