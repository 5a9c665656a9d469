"""Transforms go there and back, and their determinants are those of autograd's Jacobian."""

import math
import pickle

import pytest
from package_under_test import F, assert_close, assert_equal

D = F.distributions
constraints, transforms = D.constraints, D.transforms
pytestmark = pytest.mark.usefixtures("keep_random_state")


def t(values):
    return F.tensor(values, dtype=F.float64)


# A transform and the shape of an event that it takes.
BIJECTIVE = [
    (transforms.ExpTransform(), ()),
    (transforms.ExpTransform().inv, ()),
    (transforms.PowerTransform(t(2.5)), ()),
    (transforms.PowerTransform(t(-1.0)), ()),
    (transforms.SigmoidTransform(), ()),
    (transforms.SoftplusTransform(), ()),
    (transforms.TanhTransform(), ()),
    (transforms.AffineTransform(1.0, -2.0), ()),
    (transforms.AffineTransform(t([1.0, 2.0]), t([0.5, -3.0]), event_dim=1), (2,)),
    (transforms.AffineTransform(0, 3, event_dim=2), (2, 2)),
    (transforms.CumulativeDistributionTransform(D.Normal(t(0.5), t(2.0))), ()),
    (transforms.ReshapeTransform((2, 3), (6,)), (2, 3)),
    (transforms.StickBreakingTransform(), (3,)),
    (transforms.CorrCholeskyTransform(), (6,)),
    (transforms.IndependentTransform(transforms.ExpTransform(), 2), (2, 2)),
    (
        transforms.ComposeTransform(
            [transforms.AffineTransform(0.5, 2.0), transforms.SigmoidTransform()]
        ),
        (),
    ),
    (
        transforms.ComposeTransform(
            [transforms.ExpTransform(), transforms.ReshapeTransform((4,), (2, 2))]
        ),
        (4,),
    ),
    (
        transforms.ComposeTransform(
            [transforms.AffineTransform(0.0, 2.0), transforms.StickBreakingTransform()]
        ),
        (3,),
    ),
    (transforms.identity_transform, ()),
]
IDS = [f"{i}-{type(transform).__name__}" for i, (transform, _) in enumerate(BIJECTIVE)]


def inputs(transform, event, *batch):
    F.manual_seed(0)
    x = F.randn((*batch, *event), dtype=F.float64) * 0.7
    positive = isinstance(transform.domain, type(constraints.positive))
    return x.exp() if positive else x


def jacobian(transform, event, x):
    """dy/dx as a square matrix; coordinates that follow from others are left out."""

    def free(x):
        y = transform(x)
        if isinstance(transform.codomain, type(constraints.simplex)):
            return y[:-1]
        if isinstance(transform.codomain, type(constraints.corr_cholesky)):
            rows, columns = F.tril_indices(y.shape[-1], y.shape[-1], offset=-1)
            return y[rows, columns]
        return y

    n = max(1, math.prod(event))
    return F.autograd.functional.jacobian(free, x).reshape(n, n)


@pytest.mark.parametrize("transform, event", BIJECTIVE, ids=IDS)
def test_there_and_back(transform, event):
    x = inputs(transform, event, 5)
    y = transform(x)
    assert transform.bijective
    assert_close(transform.inv(y), x, rtol=1e-9, atol=1e-9)
    assert transform.inv.inv is transform or transform.inv.inv == transform
    assert bool(transform.codomain.check(y).all())
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    assert transform.domain.event_dim == len(event)


@pytest.mark.parametrize("transform, event", BIJECTIVE, ids=IDS)
def test_determinant_is_that_of_the_jacobian(transform, event):
    x = inputs(transform, event)
    expected = F.linalg.slogdet(jacobian(transform, event, x)).logabsdet
    determinant = transform.log_abs_det_jacobian(x, transform(x))
    assert_close(determinant, expected.expand(determinant.shape), rtol=1e-7, atol=1e-9)
    backwards = transform.inv.log_abs_det_jacobian(transform(x), x)
    assert_close(backwards, -determinant, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transform, event", BIJECTIVE, ids=IDS)
def test_sign_says_whether_order_is_kept(transform, event):
    if event:
        return
    x = inputs(transform, event, 20).sort().values
    steps = transform(x).diff().sign()
    assert_equal(steps, steps.new_full(steps.shape, float(transform.sign)))


@pytest.mark.parametrize("transform, event", BIJECTIVE, ids=IDS)
def test_a_cache_gives_back_the_very_input(transform, event):
    cached = transform.with_cache(1)
    x = inputs(transform, event, 3)
    y = cached(x)
    if transform is not transforms.identity_transform:
        assert cached.inv(y) is x
    assert cached.with_cache(1) is cached
    pickle.loads(pickle.dumps(cached))


@pytest.mark.parametrize(
    "transform, x",
    [
        (transforms.AbsTransform(), t([-1.0, 2.0])),
        (transforms.SoftmaxTransform(), t([[0.1, -1.0, 2.0]])),
        (transforms.LowerCholeskyTransform(), t([[0.1, 5.0], [2.0, -1.0]])),
        (transforms.PositiveDefiniteTransform(), t([[0.1, 5.0], [2.0, -1.0]])),
    ],
    ids=lambda v: type(v).__name__,
)
def test_pseudo_inverse(transform, x):
    assert not transform.bijective
    y = transform(x)
    assert bool(transform.codomain.check(y).all())
    assert_close(transform(transform.inv(y)), y, rtol=1e-9)
    with pytest.raises(NotImplementedError):
        transform.log_abs_det_jacobian(x, y)


def test_pieces_have_transforms_of_their_own():
    cat = transforms.CatTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2]
    )
    x = F.randn(4, 3, dtype=F.float64)
    y = cat(x)
    assert_close(y[..., :1], x[..., :1].exp())
    assert_close(y[..., 1:], 1 + 2 * x[..., 1:])
    assert_close(cat.inv(y), x)
    determinant = cat.log_abs_det_jacobian(x, y)
    assert_close(determinant[:, 0], x[:, 0])
    assert_close(determinant[:, 1:], F.full((4, 2), math.log(2), dtype=F.float64))
    stack = transforms.StackTransform(
        [transforms.ExpTransform(), transforms.TanhTransform()], dim=1
    )
    x = F.randn(4, 2, dtype=F.float64)
    y = stack(x)
    assert_close(y, F.stack([x[:, 0].exp(), x[:, 1].tanh()], 1))
    assert_close(stack.inv(y), x)
    with pytest.raises(AssertionError, match="expected 2"):
        stack(F.zeros(4, 3))


def test_equality_is_by_class_and_parameters():
    assert transforms.ExpTransform() == transforms.ExpTransform()
    assert transforms.ExpTransform() != transforms.TanhTransform()
    assert transforms.AffineTransform(0, 1) == transforms.AffineTransform(0, 1)
    assert transforms.AffineTransform(0, 1) != transforms.AffineTransform(0, 2)
    assert transforms.AffineTransform(t(0.0), t(1.0)) == transforms.AffineTransform(t(0.0), t(1.0))
    assert transforms.ExpTransform().inv == transforms.ExpTransform().inv
    assert transforms.PowerTransform(t(2.0)) != transforms.PowerTransform(t(3.0))


@pytest.mark.parametrize("registry", [D.biject_to, D.transform_to], ids=["biject", "transform"])
@pytest.mark.parametrize(
    "constraint, event",
    [
        (constraints.real, ()),
        (constraints.positive, ()),
        (constraints.nonnegative, ()),
        (constraints.greater_than(2.0), ()),
        (constraints.less_than(-1.0), ()),
        (constraints.unit_interval, ()),
        (constraints.interval(-2.0, 3.0), ()),
        (constraints.half_open_interval(0.0, 5.0), ()),
        (constraints.interval(t([1.0, 2.0]), t([3.0, 5.0])), (2,)),
        (constraints.simplex, (3,)),
        (constraints.corr_cholesky, (3,)),
        (constraints.independent(constraints.positive, 1), (3,)),
        (constraints.cat([constraints.positive, constraints.unit_interval], -1, [1, 2]), (3,)),
        (constraints.stack([constraints.positive, constraints.unit_interval], -1), (2,)),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_any_numbers_become_values_of_a_constraint(registry, constraint, event):
    transform = registry(constraint)
    F.manual_seed(1)
    x = F.randn(6, *event, dtype=F.float64)
    assert bool(constraint.check(transform(x)).all())
    if registry is D.biject_to:
        assert transform.bijective
        assert_close(transform.inv(transform(x)), x, rtol=1e-8, atol=1e-8)


def test_matrices_get_their_constraints():
    x = F.randn(4, 3, 3, dtype=F.float64)
    for constraint in (constraints.lower_cholesky, constraints.positive_definite):
        assert bool(constraint.check(D.transform_to(constraint)(x)).all())
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        D.biject_to(constraints.boolean)
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        D.biject_to.register(3, lambda c: None)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: transforms.ExpTransform(cache_size=2), ValueError, "cache_size must be 0 or 1"),
        (lambda: transforms.ReshapeTransform((2,), (3,)), ValueError, "different numbers"),
        (
            lambda: transforms.ReshapeTransform((2, 3), (6,)).forward_shape((4, 2)),
            ValueError,
            "Shape mismatch",
        ),
        (lambda: transforms.StickBreakingTransform().forward_shape(()), ValueError, "Too few"),
        (
            lambda: transforms.CorrCholeskyTransform().forward_shape((4,)),
            ValueError,
            "not a flattened lower-diagonal",
        ),
        (
            lambda: transforms.CorrCholeskyTransform().inverse_shape((2, 3)),
            ValueError,
            "not square",
        ),
        (lambda: transforms.CatTransform([3]), AssertionError, "Transform instances"),
        (
            lambda: D.TransformedDistribution(
                D.Normal(0.0, 1.0), transforms.StickBreakingTransform()
            ),
            ValueError,
            "shape with size at least 1",
        ),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_texts():
    exp, affine = transforms.ExpTransform(), transforms.AffineTransform(0, 1)
    assert repr(exp) == "ExpTransform()"
    assert repr(exp.inv) == "_InverseTransform(ExpTransform())"
    composed = transforms.ComposeTransform([exp, affine])
    assert repr(composed) == "ComposeTransform(\n    ExpTransform(),\n    AffineTransform()\n)"
    independent = transforms.IndependentTransform(exp, 1)
    assert repr(independent) == "IndependentTransform(ExpTransform(), 1)"


def test_triangles_and_vectors():
    from_matrix, to_matrix = D.utils.tril_matrix_to_vec, D.utils.vec_to_tril_matrix
    for diag in range(-2, 3):
        for n in range(max(1, abs(diag) + (diag > 0)), 6):
            matrix = F.arange(1.0, n * n + 1).view(n, n).tril(diag)
            assert_equal(to_matrix(from_matrix(matrix, diag), diag), matrix)
    with pytest.raises(ValueError, match="cannot be expressed as the lower"):
        to_matrix(F.zeros(4))
    with pytest.raises(ValueError, match="outside"):
        from_matrix(F.zeros(2, 2), 3)
