"""Quantiles, histograms, covariance and moments: values against NumPy, edge cases, errors."""

import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_under_test import F, assert_close, assert_equal, leaf

FINITE = st.floats(-100, 100, allow_nan=False, width=32)
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def array(shape, values):
    return np.array(values, dtype=np.float64).reshape(shape)


@st.composite
def arrays(draw, max_dims=3, values=FINITE):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_dims)))
    count = math.prod(shape)
    return array(shape, draw(st.lists(values, min_size=count, max_size=count)))


# ---- quantiles -------------------------------------------------------------------------------


@given(st.data())
def test_quantile_is_that_of_numpy(data):
    a = data.draw(arrays())
    # Sixteenths have exact ranks, so that rounding does not choose another element.
    levels = np.array(data.draw(st.lists(st.integers(0, 16), min_size=1, max_size=3))) / 16
    dim = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    keepdim = data.draw(st.booleans())
    way = data.draw(st.sampled_from(INTERPOLATIONS))
    got = F.quantile(
        F.from_numpy(a), F.from_numpy(levels), dim=dim, keepdim=keepdim, interpolation=way
    )
    wanted = np.quantile(a, levels, axis=dim, keepdims=keepdim, method=way)
    assert_close(got, F.from_numpy(wanted), rtol=1e-9, atol=1e-9)


@given(arrays(values=FINITE | st.just(math.nan)), st.sampled_from(INTERPOLATIONS))
def test_nanquantile_leaves_out_nan(a, way):
    got = F.nanquantile(F.from_numpy(a), 0.25, dim=-1, interpolation=way).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of lines that hold nothing else
        wanted = np.nanquantile(a, 0.25, axis=-1, method=way)
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_quantile_of_a_line_with_nan_is_nan():
    x = F.tensor([[1.0, math.nan], [1.0, 2.0]])
    assert F.quantile(x, 0.0, dim=1).isnan().tolist() == [True, False]


def test_quantile_shapes():
    x = F.ones(2, 3, 4)
    q = F.tensor([0.1, 0.9])
    assert F.quantile(x, q).shape == (2,)
    assert F.quantile(x, q, dim=1).shape == (2, 2, 4)
    assert F.quantile(x, q, dim=1, keepdim=True).shape == (2, 2, 1, 4)
    assert F.quantile(x, q, keepdim=True).shape == (2, 1, 1, 1)
    assert F.quantile(x, 0.5, keepdim=True).shape == (1, 1, 1)
    assert F.quantile(x, F.tensor([]), dim=0).shape == (0, 3, 4)
    assert F.quantile(F.tensor(2.0), 0.3).shape == ()


def test_quantile_shares_the_gradient_between_neighbours():
    x = leaf([3.0, 1.0, 2.0])
    F.quantile(x, 0.25).backward()
    assert_close(x.grad, [0.0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.quantile(F.ones(2), 1.5), "range"),
        (lambda: F.quantile(F.ones(2), F.tensor([0.5, -0.1])), "range"),
        (lambda: F.quantile(F.ones(2), F.tensor([0.5, math.nan])), "range"),
        (lambda: F.quantile(F.ones(2), F.ones(1, 1)), "1D"),
        (lambda: F.quantile(F.ones(2), F.ones(1, dtype=F.float64)), "dtype"),
        (lambda: F.quantile(F.ones(2, dtype=F.int64), 0.5), "dtype"),
        (lambda: F.quantile(F.ones(0), 0.5), "non-empty"),
        (lambda: F.quantile(F.ones(2), 0.5, interpolation="cubic"), "linear"),
    ],
)
def test_quantile_refuses(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


# ---- histograms ------------------------------------------------------------------------------


@given(arrays(max_dims=2), st.integers(1, 6))
def test_histogram_counts_every_element_once(a, bins):
    hist, edges = F.histogram(F.from_numpy(a), bins)
    assert hist.sum().item() == a.size
    assert edges.shape == (bins + 1,)
    assert bool((edges.diff() > 0).all())


@given(st.data())
def test_histogram_over_given_edges_is_that_of_numpy(data):
    a = data.draw(arrays(max_dims=2))
    edges = np.sort(np.array(data.draw(st.lists(FINITE, min_size=2, max_size=6, unique=True))))
    weight = data.draw(st.none() | st.just(np.abs(a) + 0.5))
    options = {} if weight is None else {"weight": F.from_numpy(weight)}
    hist, got = F.histogram(F.from_numpy(a), F.from_numpy(edges), **options)
    wanted = np.histogram(a, edges, weights=weight)[0].astype(np.float64)
    assert_close(hist, F.from_numpy(wanted))
    assert_equal(got, F.from_numpy(edges))


@given(st.data())
def test_histogramdd_is_that_of_numpy(data):
    n, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 3))
    points = array((n, d), data.draw(st.lists(FINITE, min_size=n * d, max_size=n * d)))
    edges = [
        np.sort(np.array(data.draw(st.lists(FINITE, min_size=2, max_size=4, unique=True))))
        for _ in range(d)
    ]
    result = F.histogramdd(F.from_numpy(points), [F.from_numpy(e) for e in edges])
    wanted, _ = np.histogramdd(points, edges)
    assert_equal(result.hist, F.from_numpy(wanted))
    assert len(result.bin_edges) == d


def test_histogramdd_with_numbers_of_bins():
    points = F.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    hist, edges = F.histogramdd(points, [2, 4], range=[0.0, 2.0, 0.0, 2.0])
    assert_equal(hist, [[0.0, 0.0, 1.0, 0.0], [2.0, 0.0, 0.0, 1.0]])
    assert_close(edges[1], [0.0, 0.5, 1.0, 1.5, 2.0])
    weighted = F.histogramdd(points, 2, weight=F.tensor([1.0, 2.0, 4.0, 8.0]))
    assert_equal(weighted.hist, [[0.0, 1.0], [6.0, 8.0]])


def test_histogram_with_density_integrates_to_one():
    hist, edges = F.histogram(F.tensor([0.0, 1.0, 1.5, 4.0]), 3, density=True)
    assert_close((hist * edges.diff()).sum(), 1.0)
    grid = F.histogramdd(F.tensor([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]), [2, 2], density=True)
    area = grid.bin_edges[0].diff()[:, None] * grid.bin_edges[1].diff()
    assert_close((grid.hist * area).sum(), 1.0)


def test_histogram_of_equal_elements_has_a_width():
    hist, edges = F.histogram(F.tensor([2.0, 2.0]), 2)
    assert_equal(edges, [1.5, 2.0, 2.5])
    assert_equal(hist, [0.0, 2.0])


def test_histogram_leaves_out_what_lies_outside():
    hist, _ = F.histogram(F.tensor([-1.0, 0.0, 1.0, 2.0, math.nan]), 2, range=(0.0, 1.0))
    assert_equal(hist, [1.0, 1.0])


def test_histogram_writes_to_out():
    hist, edges = F.empty(0), F.empty(0)
    F.histogram(F.tensor([0.0, 1.0]), 2, out=(hist, edges))
    assert_equal(hist, [1.0, 1.0])
    assert_equal(edges, [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.histogram(F.ones(3), 0), RuntimeError),
        (lambda: F.histogram(F.ones(3), 3, range=(2.0, 1.0)), RuntimeError),
        (lambda: F.histogram(F.ones(3), 3, range=(2.0,)), RuntimeError),
        (lambda: F.histogram(F.ones(3), 3, range=(2.0, math.inf)), RuntimeError),
        (lambda: F.histogram(F.ones(3), 3, weight=F.ones(2)), RuntimeError),
        (lambda: F.histogram(F.ones(3), 3, weight=F.ones(3, dtype=F.float64)), RuntimeError),
        (lambda: F.histogram(F.tensor([1.0, math.nan]), 3), RuntimeError),
        (lambda: F.histogram(F.ones(3), F.ones(1)), RuntimeError),
        (lambda: F.histogram(F.ones(3), F.ones(2, 2)), RuntimeError),
        (lambda: F.histogram(F.ones(3), F.tensor([1, 2])), RuntimeError),
        (lambda: F.histogram(F.ones(3, dtype=F.int64), 3), NotImplementedError),
        (lambda: F.histogramdd(F.ones(3), [3]), RuntimeError),
        (lambda: F.histogramdd(F.ones(3, 2), [3]), RuntimeError),
        (lambda: F.histogramdd(F.ones(3, 2), [F.ones(2)]), RuntimeError),
        (lambda: F.histogramdd(F.ones(3, 2), [3, 3], weight=F.ones(2)), RuntimeError),
    ],
)
def test_histogram_refuses(call, error):
    with pytest.raises(error):
        call()


# ---- moments ---------------------------------------------------------------------------------


@given(arrays(), st.integers(0, 2))
def test_var_mean_is_that_of_numpy(a, correction):
    variance, mean = F.var_mean(F.from_numpy(a), correction=correction)
    if a.size > correction:
        assert variance.item() == pytest.approx(np.var(a, ddof=correction), rel=1e-9, abs=1e-7)
    assert mean.item() == pytest.approx(np.mean(a), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_more_correction_than_elements_warns(name):
    with pytest.warns(UserWarning, match="degrees of freedom"):
        getattr(F, name)(F.ones(2), correction=2)


def test_var_of_half_precision_does_not_overflow_on_the_way():
    x = F.tensor([0.0] * 99 + [400.0], dtype=F.float16)
    assert_close(F.var(x), 1600.0, rtol=1e-3)


def test_std_of_equal_elements_has_gradient_zero():
    x = leaf([2.0, 2.0, 2.0])
    F.std(x).backward()
    assert_equal(x.grad, [0.0, 0.0, 0.0])


def test_nan_is_left_out_of_sum_and_mean():
    x = leaf([1.0, math.nan, 3.0])
    F.nansum(x).backward()
    assert_equal(x.grad, [1.0, 0.0, 1.0])
    assert_close(F.nanmean(x), 2.0)
    assert F.nanmean(F.tensor([math.nan])).isnan()
    with pytest.raises(RuntimeError, match="floating"):
        F.nanmean(F.ones(2, dtype=F.int64))


@pytest.mark.parametrize("dtype", [F.float64, F.float32, F.bfloat16, F.float16])
@pytest.mark.parametrize("shape", [(5,), (40,), (9, 100), (3, 10, 70), (70, 20), (2, 5000)])
def test_sums_leave_out_nan_in_every_layout(shape, dtype):
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, shape).astype("float64")
    a[rng.random(shape) < 0.2] = math.nan
    turned = F.from_numpy(np.ascontiguousarray(a.T)).permute(*reversed(range(a.ndim)))
    for x in (F.from_numpy(a).to(dtype), turned.to(dtype)):
        assert F.nansum(x).item() == np.nansum(a)
        for dim in range(a.ndim):
            assert_equal(F.nansum(x, dim).double(), np.nansum(a, dim).tolist())


def test_infinities_that_cancel_are_not_left_out():
    for n in (3, 40, 9000):
        x = F.ones(n, 2)
        x[0, 0], x[-1, 0] = math.inf, -math.inf
        x[1, 1] = math.nan
        columns = F.nansum(x, 0)
        assert columns[0].isnan()
        assert columns[1].item() == n - 1
        assert F.nansum(x[:, 0].contiguous()).isnan()


def test_aminmax_names_its_results():
    least, most = F.aminmax(F.tensor([[3, 1], [2, 9]]), dim=1)
    assert least.tolist() == [1, 2]
    assert most.tolist() == [3, 9]
    assert F.aminmax(F.tensor([3.0, 1.0])).max.item() == 3
    with pytest.raises(RuntimeError, match="identity"):
        F.aminmax(F.ones(0))
    with pytest.raises(IndexError):
        F.aminmax(F.ones(0, 3), dim=0)


# ---- covariance ------------------------------------------------------------------------------


@given(arrays(max_dims=2))
def test_cov_is_that_of_numpy(a):
    if a.shape[-1] < 2:
        return
    assert_close(
        F.cov(F.from_numpy(a)), F.from_numpy(np.asarray(np.cov(a)).squeeze()), rtol=1e-9, atol=1e-7
    )


def test_cov_with_weights_counts_observations_repeatedly():
    x = F.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]])
    repeated = x[:, [0, 0, 1, 2, 2, 2]]
    assert_close(F.cov(x, fweights=F.tensor([2, 1, 3])), F.cov(repeated), rtol=1e-5)


def test_corrcoef_of_a_line_is_one():
    x = F.tensor([1.0, 2.0, 4.0])
    assert_close(F.corrcoef(F.stack([x, -2 * x + 1])), [[1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fweights": [-1, 1, 1]}, "negative"),
        ({"aweights": [-1.0, 1.0, 1.0]}, "negative"),
        ({"fweights": [0, 0, 0]}, "zero"),
        ({"fweights": [1, 1]}, "observations"),
        ({"fweights": [1.0, 1.0, 1.0]}, "integral"),
        ({"aweights": [1, 1, 1]}, "floating"),
        ({"aweights": [[1.0, 1.0, 1.0]]}, "dimensions"),
    ],
)
def test_cov_refuses_weights(options, words):
    with pytest.raises(RuntimeError, match=words):
        F.cov(F.ones(2, 3), **{k: F.tensor(v) for k, v in options.items()})


def test_cov_refuses_what_it_cannot_measure():
    with pytest.raises(RuntimeError, match="bool"):
        F.cov(F.ones(2, 3, dtype=F.bool))
    with pytest.raises(RuntimeError, match="dimensions"):
        F.cov(F.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert F.cov(F.ones(2, 1)).isnan().all()


def test_a_histogram_of_points_has_a_named_type_that_is_pickled():
    result = F.histogramdd(F.tensor([[1.0, 2.0], [3.0, 4.0]]), 2)
    assert type(result) is F.return_types.histogramdd
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result) and F.equal(again.hist, result.hist)
