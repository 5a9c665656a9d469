"""Distances between rows for every p, their derivatives where points coincide, and renorm."""

import math

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close, facula_module, leaf

checks = facula_module("autograd.gradcheck")
DIRECT = "donot_use_mm_for_euclid_dist"
ORDERS = [0, 0.5, 1, 1.5, 2, 3, math.inf]


def points(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def expected_distances(a, b, p):
    difference = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if p == 0:
        return (difference != 0).sum(-1).astype(float)
    if math.isinf(p):
        return difference.max(-1)
    return (difference**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("width", [1, 3, 16, 67])
def test_cdist_matches_numpy(p, width):
    a, b = points(5, width), points(4, width, seed=1)
    ours = F.cdist(F.from_numpy(a), F.from_numpy(b), p=p)
    assert_close(ours, F.from_numpy(expected_distances(a, b, p)), 1e-11, 1e-11)
    single = F.cdist(F.from_numpy(a).float(), F.from_numpy(b).float(), p=p)
    assert_close(single, F.from_numpy(expected_distances(a, b, p)), 1e-4, 1e-4)


def test_cdist_broadcasts_batches():
    a, b = points(2, 1, 3, 4), points(5, 6, 4)
    assert F.cdist(F.from_numpy(a), F.from_numpy(b), p=1).shape == (2, 5, 3, 6)
    ours = F.cdist(F.from_numpy(a), F.from_numpy(b), p=1)
    assert_close(ours, F.from_numpy(expected_distances(a, b, 1)), 1e-12, 1e-12)


def test_product_and_difference_agree():
    a, b = F.from_numpy(points(40, 7)), F.from_numpy(points(30, 7, seed=1))
    by_product = F.cdist(a, b, compute_mode="use_mm_for_euclid_dist")
    exact = F.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    assert_close(by_product, exact, 1e-10, 1e-10)
    assert_close(F.cdist(a, b), exact, 1e-10, 1e-10)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, math.inf])
def test_cdist_has_two_derivatives(p):
    a, b = leaf(points(3, 2).tolist()), leaf(points(2, 2, seed=1).tolist())
    assert checks.gradcheck(lambda x, y: F.cdist(x, y, p=p), (a, b))
    if IS_FACULA:  # PyTorch has no second one
        assert checks.gradgradcheck(lambda x, y: F.cdist(x, y, p=p), (a, b))


def test_euclidean_distances_by_product_have_two_derivatives():
    a, b = leaf(points(3, 2).tolist()), leaf(points(2, 2, seed=1).tolist())

    def distances(x, y):
        return F.cdist(x, y, compute_mode="use_mm_for_euclid_dist")

    assert checks.gradcheck(distances, (a, b))
    assert checks.gradgradcheck(distances, (a, b))


@pytest.mark.parametrize("p", ORDERS)
def test_gradient_between_equal_points_is_zero(p):
    a = leaf([[1.0, 2.0], [3.0, 4.0]])
    F.cdist(a, a.detach(), p=p).diagonal().sum().backward()
    assert a.grad.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("width", [2, 40])
@pytest.mark.parametrize("pairs", [F.pdist, lambda x: F.cdist(x, x.detach(), compute_mode=DIRECT)])
def test_an_infinite_gradient_between_equal_points_is_zero(pairs, width):
    x = leaf(np.stack([np.zeros(width), np.zeros(width), np.ones(width)]))
    pairs(x).sqrt().sum().backward()
    assert F.isfinite(x.grad).all() and (x.grad[2] > 0).all()


def test_cdist_refuses_what_are_no_points():
    with pytest.raises(RuntimeError, match="at least 2D"):
        F.cdist(F.ones(3), F.ones(2, 3))
    with pytest.raises(RuntimeError, match="same number of columns"):
        F.cdist(F.ones(2, 3), F.ones(2, 4))
    with pytest.raises(RuntimeError, match="non-negative p"):
        F.cdist(F.ones(2, 3), F.ones(2, 3), p=-1)
    with pytest.raises(RuntimeError, match="floating"):
        F.cdist(F.ones(2, 3, dtype=F.int64), F.ones(2, 3, dtype=F.int64))
    with pytest.raises(ValueError, match="compute_mode"):
        F.cdist(F.ones(2, 3), F.ones(2, 3), compute_mode="fast")


@pytest.mark.parametrize("p", ORDERS)
def test_pdist_is_the_upper_triangle_of_cdist(p):
    a = F.from_numpy(points(5, 3))
    pairs = [F.cdist(a, a, p=p)[i, j] for i in range(5) for j in range(i + 1, 5)]
    assert_close(F.pdist(a, p), F.stack(pairs), 1e-12, 1e-12)


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch has one derivative of pdist")
def test_pdist_has_two_derivatives_also_in_batches():
    x = leaf(points(6, 3).tolist(), dtype=F.float64)
    assert checks.gradgradcheck(F.pdist, (x,))
    many = F.from_numpy(points(4, 6, 3))
    weight = F.arange(15, dtype=F.float64)

    def gradient(rows):
        return F.func.grad(lambda r: (F.pdist(r, 3.0) * weight).sum())(rows)

    assert_close(F.func.vmap(gradient)(many), F.stack([gradient(m) for m in many]), 1e-12, 1e-12)


def test_pdist_of_few_points():
    assert F.pdist(F.ones(1, 3)).shape == (0,)
    assert F.pdist(F.ones(0, 3)).shape == (0,)
    with pytest.raises(RuntimeError, match="2D"):
        F.pdist(F.ones(3))


def test_dist_and_cosine_similarity():
    a, b = F.tensor([1.0, 2.0]), F.tensor([4.0, 6.0])
    assert F.dist(a, b).item() == 5
    assert F.dist(a, b, 1).item() == 7
    similarity = F.cosine_similarity(F.tensor([[1.0, 0.0], [1.0, 1.0]]), F.tensor([[0.0, 2.0]]))
    assert_close(similarity, F.tensor([0.0, math.sqrt(0.5)]), 1e-6, 1e-7)
    zeros = leaf([[0.0, 0.0]])
    F.cosine_similarity(zeros, F.ones(1, 2, dtype=F.float64)).backward()
    assert bool(F.isfinite(zeros.grad).all())


def test_renorm_scales_rows_down():
    a = F.tensor([[3.0, 4.0], [0.3, 0.4]])
    result = F.renorm(a, 2, 0, 1.0)
    assert_close(result, F.tensor([[0.6, 0.8], [0.3, 0.4]]), 1e-6, 1e-6)
    assert bool((result.norm(dim=1) <= 1).all())
    assert a.renorm_(2, 0, 1.0) is a
    assert_close(a, result)
    with pytest.raises(RuntimeError, match="at least 2"):
        F.renorm(F.ones(3), 2, 0, 1.0)
    with pytest.raises(RuntimeError, match="maxnorm"):
        F.renorm(a, 2, 0, -1.0)
