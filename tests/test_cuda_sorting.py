"""Order, scans and positions of extrema on CUDA devices against the host."""

import pytest
from cuda_pairs import FLOATS, check, check_gradients, compare, strided
from package_under_test import F

pytestmark = pytest.mark.skipif(not F.cuda.is_available(), reason="no CUDA device")

ORDERED = [*FLOATS, F.int64, F.int32, F.int16, F.int8, F.uint8]


def numbers(*shape, dtype=F.float32, seed=0, ties=False):
    F.manual_seed(seed)
    x = F.randn(*shape) * 30
    return (x / 10).round().to(dtype) if ties else x.to(dtype)


def with_nans(x):
    x = x.clone()
    x.flatten()[:: max(1, x.numel() // 7)] = float("nan")
    return x


@pytest.mark.parametrize("dtype", [*ORDERED, F.bool])
@pytest.mark.parametrize("n", [1, 2, 7, 33, 129, 600, 1500, 3000, 5000])
def test_sort(dtype, n):
    x = numbers(3, n, dtype=dtype, ties=True)
    for descending in (False, True):
        check(lambda a, d=descending: a.sort(-1, descending=d), x, exact=True)
    check(lambda a: a.argsort(0), x, exact=True)
    if x.is_floating_point():
        check(lambda a: a.sort(-1), with_nans(x), exact=True)
        check(lambda a: a.sort(-1, descending=True), with_nans(x), exact=True)


def test_sort_of_long_and_of_strided_lines():
    check(lambda a: a.sort(), numbers(300_001), exact=True)
    check(lambda a: a.sort(), numbers(100_000, dtype=F.float64, ties=True), exact=True)
    check(lambda a: a.sort(0), numbers(5000, 70, ties=True), exact=True)
    check(lambda a: a.sort(1), strided(numbers(4, 500, 3)), exact=True)
    check(lambda a: a.sort(dim=1, stable=True), strided(numbers(2, 9000, 3, ties=True)), exact=True)
    for edge in (F.tensor(3.0), F.zeros(0), F.zeros(2, 0)):
        check(lambda a: a.sort(-1), edge, exact=True)


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("n, k", [(10, 3), (1200, 1), (4096, 16), (5000, 1000), (70_000, 5)])
def test_topk(dtype, n, k):
    x = numbers(3, n, dtype=dtype, ties=True)
    for given in (x, with_nans(x)) if x.is_floating_point() else (x,):
        for largest in (False, True):  # of equal elements the first ones, unlike the host's
            values, indices = given.sort(-1, descending=largest)
            compare(given.cuda().topk(k, largest=largest), (values[:, :k], indices[:, :k]), True)
    check(lambda a: a.topk(min(k, 3), 0), strided(numbers(1500, 4, dtype=dtype)), exact=True)


@pytest.mark.parametrize("dtype", [F.float32, F.bfloat16, F.int64])
def test_picking_by_rank(dtype):
    x = numbers(4, 61, 3, dtype=dtype, ties=True)
    for dim in (0, 1, -1):
        check(lambda a, d=dim: a.kthvalue(2, d), x, exact=True)
        check(lambda a, d=dim: a.median(d), x, exact=True)
        check(lambda a, d=dim: a.mode(d, keepdim=True), x, exact=True)
    check(lambda a: a.median(), x, exact=True)
    if x.is_floating_point():
        for y in (with_nans(x), F.full((3, 5), float("nan"), dtype=dtype)):
            check(lambda a: a.median(1), y, exact=True)
            check(lambda a: a.nanmedian(1), y, exact=True)
            check(lambda a: a.mode(1), y, exact=True)
            check(lambda a: a.nanmedian(), y, exact=True)
    check(lambda a: a.float().quantile(0.3, 1), x)


@pytest.mark.parametrize("dtype", [F.float32, F.int64, F.uint8, F.bool])
def test_unique(dtype):
    x = numbers(40, 50, dtype=dtype, ties=True)
    check(lambda a: F.unique(a, return_inverse=True, return_counts=True), x, exact=True)
    check(
        lambda a: F.unique(
            a[:, :2] % 3 if a.dtype != F.bool else a[:, :2],
            dim=0,
            return_inverse=True,
            return_counts=True,
        ),
        x,
        exact=True,
    )
    check(lambda a: F.unique_consecutive(a, return_inverse=True, return_counts=True), x, exact=True)
    check(lambda a: F.unique(a), x[:0], exact=True)
    if dtype == F.float32:
        check(lambda a: F.unique(a), with_nans(x), exact=True)


SCANS = [(1, 5), (3, 4), (3, 100), (2, 700), (5, 4099), (1, 300_000)]


@pytest.mark.parametrize("shape", SCANS)
@pytest.mark.parametrize("dtype", [F.float64, F.float32, F.bfloat16, F.int64, F.uint8, F.bool])
def test_running_sums(shape, dtype):
    x = numbers(*shape, dtype=dtype, ties=True)
    loose = {"rtol": 1e-2, "atol": 1.0} if x.is_floating_point() else {}
    check(lambda a: a.cumsum(-1), x, **loose)
    check(lambda a: a.cumsum(0), x, **loose)
    check(lambda a: a.t().cumsum(0), x, **loose)
    check(lambda a: a.cummax(-1), x, exact=True)
    check(lambda a: a.cummin(-1), x, exact=True)
    if x.is_floating_point():
        check(lambda a: a.cummax(-1), with_nans(x), exact=True)
        check(lambda a: (1 + a.sign() * 1e-3).cumprod(-1), x[:, :500], rtol=2e-2, atol=2e-2)
        check(lambda a: (a / 30).logcumsumexp(-1), x, rtol=1e-2, atol=1e-2)


def test_scans_in_other_directions():
    x = numbers(7, 900, 33)
    for dim in range(3):
        check(lambda a, d=dim: a.cumsum(d), x, rtol=1e-3, atol=1e-2)
        check(lambda a, d=dim: a.cummin(d), strided(x), exact=True)
    check(lambda a: a.cumsum(0, dtype=F.float64), numbers(20_000, 4))
    check(lambda a: a.clone().cumsum_(0), numbers(50))
    check(lambda a: a.cumsum(0), numbers(20, dtype=F.complex64))
    check(lambda a: a.logcumsumexp(0), F.tensor([-float("inf"), -float("inf"), 0.0, 3.0]))
    for edge in (F.tensor(3.0), F.zeros(0), F.zeros(3, 0)):
        check(lambda a: a.cumsum(-1), edge)
    many = numbers(9000, 37)
    check(lambda a: a.cumsum(0), many, rtol=1e-3, atol=1e-1)
    check(lambda a: a.cumsum(1), many, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", [*ORDERED, F.bool])
def test_positions_of_extrema(dtype):
    x = numbers(11, 130, 6, dtype=dtype, ties=True)
    for name in ("argmax", "argmin"):
        check(lambda a, n=name: getattr(a, n)(), x, exact=True)
        for dim in range(3):
            check(lambda a, n=name, d=dim: getattr(a, n)(d), x, exact=True)
            check(lambda a, n=name, d=dim: getattr(a, n)(d, keepdim=True), strided(x), exact=True)
    for dim in range(3):
        check(lambda a, d=dim: a.max(d), x, exact=True)
        check(lambda a, d=dim: a.min(d, keepdim=True), x, exact=True)
    if x.is_floating_point():
        check(lambda a: a.max(1), with_nans(x), exact=True)
        check(lambda a: a.argmin(0), with_nans(x), exact=True)
    check(lambda a: a.max(0), F.tensor(2), exact=True)
    check(lambda a: a.argmax(), numbers(1_000_003), exact=True)


def test_other_reductions():
    x = numbers(9, 60, 5) / 30
    for f in (
        lambda a: a.var(1),
        lambda a: a.std(),
        lambda a: F.var_mean(a, (0, 2), keepdim=True),
        lambda a: a.norm(),
        lambda a: a.norm(1, 1),
        lambda a: F.linalg.vector_norm(a, float("inf"), 2),
        lambda a: a.logsumexp((0, 1)),
        lambda a: a[:, :4].prod(1),
        lambda a: a.aminmax(dim=1),
        lambda a: a.count_nonzero(1),
        lambda a: (a > 0).any(1),
        lambda a: (a > -1).all(),
        lambda a: a.nansum(1),
        lambda a: a.nanmean(),
        lambda a: a.mean((0, 1)),
    ):
        check(f, x)
    check(lambda a: a.std(0), numbers(2000, 3, dtype=F.bfloat16))
    check(lambda a: (a + 1e4).var(), x.flatten(), rtol=1e-2)


def test_gradients():
    x = numbers(5, 12)
    check_gradients(lambda a: a.sort(1)[0], x)
    check_gradients(lambda a: a.topk(4)[0], x)
    check_gradients(lambda a: a.median(1)[0], x)
    check_gradients(lambda a: a.max(1)[0], x)
    check_gradients(lambda a: a.cumsum(1), x)
    check_gradients(lambda a: (a / 30).cumprod(1), x)
    check_gradients(lambda a: a.cummax(1)[0], x)
    check_gradients(lambda a: (a / 10).logcumsumexp(0), x)
    check_gradients(lambda a: a.var(0), x)
    check_gradients(lambda a: a.prod(1), x / 20)
