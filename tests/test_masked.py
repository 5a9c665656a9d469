"""The masked namespace: every operation against NumPy on what the mask keeps."""

import importlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_under_test import F, assert_close, assert_equal, leaf

M = importlib.import_module(f"{F.__name__}.masked")
FINITE = st.floats(-9, 9, allow_nan=False, width=32)

# name -> (the reference of the kept elements of one line, what nothing gives)
REDUCTIONS = {
    "sum": (np.sum, 0.0),
    "prod": (np.prod, 1.0),
    "amax": (np.max, -math.inf),
    "amin": (np.min, math.inf),
    "mean": (np.mean, math.nan),
    "median": (lambda a: np.sort(a)[(len(a) - 1) // 2], math.nan),
    "logsumexp": (lambda a: np.log(np.sum(np.exp(a))), -math.inf),
    "norm": (lambda a: np.sqrt(np.sum(a * a)), 0.0),
}


@st.composite
def masked_matrices(draw):
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    count = shape[0] * shape[1]
    values = draw(st.lists(FINITE, min_size=count, max_size=count))
    mask = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return np.array(values).reshape(shape), np.array(mask).reshape(shape)


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@given(masked_matrices())
def test_reduction_of_the_kept_elements(name, drawn):
    values, mask = drawn
    reference, nothing = REDUCTIONS[name]
    wanted = [
        reference(line[kept]) if kept.any() else nothing
        for line, kept in zip(values, mask, strict=True)
    ]
    got = getattr(M, name)(F.from_numpy(values), dim=1, mask=F.from_numpy(mask))
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-9)


@given(masked_matrices(), st.integers(0, 1))
def test_variance_of_the_kept_elements(drawn, correction):
    values, mask = drawn
    x, kept = F.from_numpy(values), F.from_numpy(mask)
    variance = M.var(x, 1, correction=correction, mask=kept)
    deviation = M.std(x, 1, correction == 1, mask=kept)
    for k, (line, used) in enumerate(zip(values, mask, strict=True)):
        if used.sum() > correction:
            wanted = np.var(line[used], ddof=correction)
            assert variance[k].item() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            assert deviation[k].item() == pytest.approx(math.sqrt(wanted), rel=1e-6, abs=1e-5)
        else:
            assert math.isnan(variance[k].item())


@given(masked_matrices())
def test_softmax_over_the_kept_elements(drawn):
    values, mask = drawn
    x, kept = F.from_numpy(values), F.from_numpy(mask)
    results = {
        "softmax": M.softmax(x, 1, mask=kept),
        "log_softmax": M.log_softmax(x, 1, mask=kept).exp(),
        "softmin": M.softmin(-x, 1, mask=kept),
    }
    for name, result in results.items():
        for k, (line, used) in enumerate(zip(values, mask, strict=True)):
            if not used.any():
                continue
            weights = np.where(used, np.exp(line - line[used].max()), 0)
            np.testing.assert_allclose(
                result[k].numpy(), weights / weights.sum(), rtol=1e-9, atol=1e-12, err_msg=name
            )


@given(masked_matrices())
def test_running_sums_and_products_of_the_kept_elements(drawn):
    values, mask = drawn
    x, kept = F.from_numpy(values), F.from_numpy(mask)
    sums = np.cumsum(np.where(mask, values, 0), 1)
    products = np.cumprod(np.where(mask, values, 1), 1)
    np.testing.assert_allclose(M.cumsum(x, 1, mask=kept).numpy(), sums, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(M.cumprod(x, 1, mask=kept).numpy(), products, rtol=1e-9)


def test_without_a_mask_everything_counts():
    x = F.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert_close(M.sum(x), 11.0)
    assert_close(M.mean(x, 0), [2.0, 3.5])
    assert_close(M.var(x, 1), [0.5, 2.0])
    assert_close(M.normalize(x, 1, 1), [[1 / 3, 2 / 3], [0.375, 0.625]])


def test_mask_broadcasts_to_the_input():
    x = F.arange(6.0).view(2, 3)
    mask = F.tensor([True, False, True])
    assert_close(M.sum(x, 1, mask=mask), [2.0, 8.0])
    assert_close(M.sum(x, 0, keepdim=True, mask=mask), [[3.0, 0.0, 7.0]])
    assert_close(M.sum(x, mask=F.tensor([[1], [0]])), 3.0)
    with pytest.raises(IndexError):
        M.sum(x, 1, mask=F.ones(1, 2, 3, dtype=F.bool))


def test_integers_keep_their_kind():
    x, mask = F.tensor([3, 1, 2], dtype=F.int32), F.tensor([False, True, True])
    assert M.sum(x, mask=mask).dtype is F.int64
    assert M.amax(x, mask=mask).dtype is F.int32
    assert M.amax(x, mask=mask).item() == 2
    assert M.amax(x, mask=F.zeros(3, dtype=F.bool)).item() == -(2**31)
    assert M.median(x, mask=mask).item() == 1
    assert M.argmax(x, 0, mask=mask).item() == 2
    assert M.argmin(x, 0, mask=mask).item() == 1
    with pytest.raises(ValueError, match="dtype"):
        M.mean(x)
    with pytest.raises(ValueError, match="masked out"):
        M.median(x, mask=F.zeros(3, dtype=F.bool))


def test_masked_out_elements_get_no_gradient():
    mask = F.tensor([True, False, True])
    for name in ("sum", "prod", "mean", "logsumexp", "norm", "amax", "var", "std"):
        x = leaf([1.0, 2.0, 4.0])
        getattr(M, name)(x, dim=0, mask=mask).backward()
        assert x.grad[1].item() == 0, name
        assert bool(x.grad.isfinite().all()), name
    x = leaf([1.0, 2.0, 4.0])
    M.softmax(x, 0, mask=mask)[0].backward()
    assert x.grad[1].item() == 0


def test_logaddexp_has_a_mask_for_each():
    x, y = F.tensor([0.0, 1.0, 2.0]), F.tensor([0.0, 5.0, 7.0])
    got = M.logaddexp(
        x, y, input_mask=F.tensor([True, False, False]), other_mask=F.tensor([True, True, False])
    )
    assert_close(got, [math.log(2), 5.0, -math.inf])


def test_dims_are_checked():
    x = F.ones(2, 3)
    with pytest.raises(IndexError):
        M.sum(x, 2)
    with pytest.raises(RuntimeError):
        M.sum(x, (0, 0))
    assert_equal(M.sum(x, ()), 6.0)
    assert_equal(M.sum(F.tensor(2.0), 0, mask=F.tensor(False)), 0.0)


def test_masks_and_tensors_may_be_sparse():
    x, mask = F.tensor([[1.0, 0.0], [2.0, 3.0]]), F.tensor([[True, True], [True, False]])
    assert M.sum(x, 0, mask=mask.to_sparse()).tolist() == [3.0, 0.0]
    assert M.amax(x, 0, mask=mask.to_sparse()).tolist() == [2.0, 0.0]
    for m in (mask, mask.to_sparse()):
        assert M.sum(x.to_sparse(), 0, mask=m).to_dense().tolist() == [3.0, 0.0]
    rows = M.sum(x.to_sparse_csr(), 1, keepdim=True, mask=mask.to_sparse_csr())
    assert rows.layout is F.sparse_csr and rows.to_dense().tolist() == [[1.0], [2.0]]
