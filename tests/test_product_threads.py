"""Matrix products against float64, in every transposition, and with any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import facula

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
SHAPES = [  # (m, n, k): a size for each way of computing, none a multiple of a register tile
    (63, 65, 129),
    (511, 77, 390),
    (64, 301, 784),
    (305, 270, 401),
    (60, 71, 2100),
    (131, 47, 2200),
    (17, 333, 1000),
    (5, 700, 260),
    (700, 9, 513),
    (1, 1000, 777),
    (1001, 3, 100),
    (1, 513, 1000),
]


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = facula.get_num_threads()
    yield
    facula.set_num_threads(before)


def stored(matrix: np.ndarray, transposed: bool) -> facula.Tensor:
    if not transposed:
        return facula.tensor(matrix)
    return facula.tensor(np.ascontiguousarray(matrix.T)).t()


@pytest.mark.parametrize("right", [False, True], ids=["b", "bT"])
@pytest.mark.parametrize("left", [False, True], ids=["a", "aT"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_product_is_near_the_one_in_double_precision(dtype: str, left: bool, right: bool) -> None:
    random = np.random.RandomState(0)
    for m, n, k in SHAPES:
        a, b = random.randn(m, k).astype(dtype), random.randn(k, n).astype(dtype)
        result = facula.mm(stored(a, left), stored(b, right)).numpy()
        a, b = a.astype(np.longdouble), b.astype(np.longdouble)
        bound = (4 + np.sqrt(k)) * EPSILON[dtype] * (np.abs(a) @ np.abs(b))
        assert (np.abs(result - a @ b) <= bound).all(), (m, n, k)


@pytest.mark.parametrize("right", [False, True], ids=["b", "bT"])
@pytest.mark.parametrize("left", [False, True], ids=["a", "aT"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64"])
def test_product_has_the_same_bits_with_any_number_of_threads(
    dtype: str, left: bool, right: bool
) -> None:
    random = np.random.RandomState(1)
    for m, n, k in SHAPES:
        kind = getattr(facula, dtype)
        a = stored(random.randn(m, k).astype("f4"), left).to(kind)
        b = stored(random.randn(k, n).astype("f4"), right).to(kind)
        results = []
        for threads in (1, 2, 3):
            facula.set_num_threads(threads)
            results.append(facula.mm(a, b))
        assert facula.equal(results[0], results[1]), (m, n, k)
        assert facula.equal(results[0], results[2]), (m, n, k)


SHAPES_OF_LAYERS = [(1, 700, 300), (12, 129, 400), (300, 77, 200), (4, 3, 2), (60, 71, 2100)]


def test_linear_with_bias_is_the_product_plus_bias() -> None:
    random = np.random.RandomState(2)
    for dtype in (facula.float32, facula.float64, facula.bfloat16):
        for rows, features, inputs in SHAPES_OF_LAYERS:
            x = facula.tensor(random.randn(rows, inputs)).to(dtype)
            w = facula.tensor(random.randn(features, inputs)).to(dtype)
            bias = facula.tensor(random.randn(features)).to(dtype)
            with_bias = facula.nn.functional.linear(x, w, bias)
            start = bias.expand(rows, features).contiguous()
            assert facula.equal(with_bias, facula.addmm(start, x, w.t()))


def test_deep_product_with_a_small_result_is_scaled_and_added() -> None:
    random = np.random.RandomState(3)
    a, b, c = random.randn(3000, 50), random.randn(3000, 40), random.randn(40, 50)
    out = facula.tensor(c).t()  # columns are contiguous
    out.addmm_(facula.tensor(a).t(), facula.tensor(b), beta=0.5, alpha=-2)
    assert np.abs(out.numpy() - (0.5 * c.T - 2 * (a.T @ b))).max() < 1e-10


def test_not_a_number_stays_in_its_row_and_column() -> None:
    a = facula.ones(200, 300)
    b = facula.ones(300, 150)
    a[13, 7] = float("nan")
    b[5, 40] = float("inf")
    result = facula.mm(a, b).numpy()
    assert np.isnan(result[13]).all()
    rest = np.delete(result, 13, axis=0)
    assert np.isposinf(rest[:, 40]).all()
    assert (np.delete(rest, 40, axis=1) == 300).all()


def test_result_ignores_what_the_memory_held_before() -> None:
    out = facula.full((130, 140), float("nan"))
    facula.mm(facula.ones(130, 150), facula.ones(150, 140), out=out)
    assert (out.numpy() == 150).all()


def test_threads_with_small_stacks_can_multiply() -> None:
    a, results = facula.ones(300, 300), []

    def multiply() -> None:
        results.append(facula.mm(a.t(), a))
        results.append(facula.mm(a.double().t(), a.double()))

    before = threading.stack_size(128 << 10)
    try:
        thread = threading.Thread(target=multiply)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert all((product == 300).all() for product in results) and len(results) == 2
