"""Softmax, losses over classes and normalisation on CUDA against the host."""

import numpy as np
import pytest
from cuda_comparison import FLOATS, close, needs_cuda, random, same_with_gradients
from package_under_test import F

pytestmark = needs_cuda

# ---- softmax

LINES = [
    ((3, 5), -1),
    ((4, 64), 1),
    ((2, 1000), 1),
    ((3, 4096), 1),
    ((2, 40_000), 1),
    ((2, 10_007), 1),
    ((4, 6, 5), 1),
    ((2, 300, 40), 1),
    ((7, 3), 0),
    ((1, 1), 0),
    ((), 0),
]


@pytest.mark.parametrize("shape, dim", LINES, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_along_any_dimension(name, shape, dim):
    same_with_gradients(lambda x: getattr(F, name)(x, dim), random(*shape))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_every_dtype(name, dtype):
    same_with_gradients(lambda x: getattr(F, name)(x, -1), random(5, 77, dtype=dtype))
    same_with_gradients(lambda x: getattr(F, name)(x, 0), random(5, 64, dtype=dtype))
    strided = random(6, 8, dtype=dtype).t()[::2]
    close(getattr(F, name)(strided.cuda(), 1), getattr(F, name)(strided, 1))


def test_softmax_of_infinities():
    x = F.tensor([[0.0, -F.inf, 1.0], [-F.inf, -F.inf, -F.inf], [F.inf, 0.0, 0.0]])
    close(F.softmax(x.cuda(), 1), F.softmax(x, 1))
    wide = F.full((1, 50_000), -F.inf)
    wide[0, 40_000] = 3.0
    close(F.softmax(wide.cuda(), 1), F.softmax(wide, 1))
    assert F.softmax(F.ones(0, 3).cuda(), 1).shape == (0, 3)


@pytest.mark.parametrize("n", [*range(1, 70), 1000, 4099, 33_000, 40_003])
def test_softmax_of_equal_numbers_is_their_share_to_the_last_bit(n):
    expected = np.float32(1) / np.float32(n)
    assert (F.zeros(2, n, device="cuda").softmax(1).cpu().numpy() == expected).all()
    assert (F.zeros(n, 3, device="cuda").softmax(0).cpu().numpy() == expected).all()


def test_softmax_has_second_derivatives():
    x = random(3, 4)
    for f in (F.softmax, F.log_softmax):
        values = []
        for leaf in (x, x.cuda()):
            leaf = leaf.detach().requires_grad_()
            (g,) = F.autograd.grad((f(leaf, 1) ** 2).sum(), leaf, create_graph=True)
            values.append(F.autograd.grad((g**2).sum(), leaf)[0])
        close(values[1], values[0])


# ---- losses over classes


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(reduction, weighted, smoothing):
    F.manual_seed(0)
    target = F.randint(0, 11, (6,))
    target[2] = -100
    weight = F.rand(11) + 0.5 if weighted else None

    def loss(x):
        w = weight.to(x.device) if weighted else None
        return F.nn.functional.cross_entropy(
            x, target.to(x.device), w, reduction=reduction, label_smoothing=smoothing
        )

    same_with_gradients(loss, random(6, 11))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(5, 50_257), (3, 1000), (4,), (2, 5, 3, 4), (2, 70, 33)], ids=str
)
def test_cross_entropy_of_shapes_and_dtypes(shape, dtype):
    x = random(*shape, dtype=dtype)
    classes = shape[0] if len(shape) == 1 else shape[1]
    F.manual_seed(1)
    target = F.randint(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    same_with_gradients(lambda a: F.nn.functional.cross_entropy(a, target.to(a.device)), x)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nll_loss(reduction):
    F.manual_seed(0)
    target = F.randint(0, 5, (3, 4))
    target[0, 1] = 2
    weight = F.rand(5)
    for w in (None, weight):

        def loss(x, w=w):
            return F.nn.functional.nll_loss(
                x,
                target.to(x.device),
                w if w is None else w.to(x.device),
                ignore_index=2,
                reduction=reduction,
            )

        same_with_gradients(loss, random(3, 5, 4))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_bad_labels_raise_when_the_program_waits(name):
    x = random(4, 3).cuda()
    target = F.tensor([0, 1, 7, 2]).cuda()
    with pytest.raises(IndexError, match=rf"{name}.*label 7 .*3 classes"):
        getattr(F.nn.functional, name)(x, target).item()
    good = getattr(F.nn.functional, name)(x, F.tensor([0, 1, 2, 2]).cuda())
    assert good.isfinite().item()


def test_margins_of_several_labels():
    target = F.tensor([[3, 0, -1, 1, 2], [1, 1, 4, -1, 0], [-1, 0, 0, 0, 0]])
    for reduction in ("none", "mean"):
        same_with_gradients(
            lambda x: F.nn.functional.multilabel_margin_loss(
                x,
                target.to(x.device),
                reduction=reduction,  # noqa: B023
            ),
            random(3, 5),
        )


# ---- normalisation


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [5, 64, 768, 1023, 4096])
def test_layer_norm(dtype, n):
    x, w, b = (random(*s, dtype=dtype, seed=i) for i, s in enumerate([(9, n), (n,), (n,)]))
    f = F.nn.functional.layer_norm
    same_with_gradients(lambda x, w, b: f(x, (n,), w, b), x, w, b)
    same_with_gradients(lambda x: f(x, (n,)), x)
    same_with_gradients(lambda x, w: f(x, (n,), w), x, w)


def test_layer_norm_of_long_rows_and_many_dimensions():
    f = F.nn.functional.layer_norm
    same_with_gradients(lambda x: f(x, (50_000,)), random(2, 50_000), atol=1e-4)
    x, w = random(2, 3, 4, 5), random(4, 5, seed=1)
    same_with_gradients(lambda x, w: f(x, (4, 5), w), x, w)
    same_with_gradients(lambda x, w: f(x.transpose(0, 1), (4, 5), w), x, w)
    assert f(F.ones(0, 4).cuda(), (4,)).shape == (0, 4)


def test_layer_norm_with_parameters_in_float32():
    x, w, b = random(6, 32, dtype=F.bfloat16), random(32, seed=1), random(32, seed=2)
    same_with_gradients(lambda x, w, b: F.nn.functional.layer_norm(x, (32,), w, b), x, w, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rms_norm(dtype):
    x, w = random(7, 96, dtype=dtype), random(96, dtype=dtype, seed=1)
    same_with_gradients(lambda x, w: F.nn.functional.rms_norm(x, (96,), w), x, w)
    same_with_gradients(lambda x: F.nn.functional.rms_norm(x, (96,)), x)


SHAPES = [(6, 5), (4, 7, 3), (3, 4, 5, 6), (8, 3, 16, 16), (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm_in_training(shape, dtype):
    c = shape[1]
    x, w, b = (random(*s, dtype=dtype, seed=i) for i, s in enumerate([shape, (c,), (c,)]))

    def norm(x, w, b):
        mean, var = F.zeros(c, dtype=dtype).to(x.device), F.ones(c, dtype=dtype).to(x.device)
        out = F.nn.functional.batch_norm(x, mean, var, w, b, training=True)
        return out + (mean + var).reshape(c, *[1] * (len(shape) - 2))

    same_with_gradients(norm, x, w, b, atol=3e-2 if dtype in (F.float16, F.bfloat16) else 1e-4)
    if len(shape) == 4:
        last = x.contiguous(memory_format=F.channels_last)
        same_with_gradients(norm, last, w, b, atol=5e-2 if dtype.itemsize == 2 else 1e-4)


def test_batch_norm_without_parameters_and_in_evaluation():
    x = random(4, 3, 5, 5)
    f = F.nn.functional.batch_norm
    same_with_gradients(lambda x: f(x, None, None, training=True), x, atol=1e-4)
    mean, var = random(3, seed=1), random(3, seed=2).abs() + 0.5
    same_with_gradients(lambda x: f(x, mean.to(x.device), var.to(x.device)), x)


def test_batch_norm_survives_an_outlier_in_the_first_place():
    x = random(64, 2, 8)
    x[0, 0, 0] = 1e4
    x[:, 1] += 1000
    f = F.nn.functional.batch_norm
    exact = f(x.double(), None, None, training=True).float()
    assert F.allclose(f(x.cuda(), None, None, training=True).cpu(), exact, atol=2e-3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, groups", [((3, 6, 4, 4), 2), ((2, 8, 5), 8), ((4, 6), 3)], ids=str)
def test_group_norm(shape, groups, dtype):
    c = shape[1]
    x, w, b = (random(*s, dtype=dtype, seed=i) for i, s in enumerate([shape, (c,), (c,)]))
    f = F.nn.functional.group_norm
    same_with_gradients(lambda x, w, b: f(x, groups, w, b), x, w, b, atol=5e-2)
    same_with_gradients(lambda x: f(x, groups), x, atol=5e-2)


def test_instance_norm():
    x, w, b = random(2, 3, 6, 6), random(3, seed=1), random(3, seed=2)
    f = F.nn.functional.instance_norm
    same_with_gradients(lambda x, w, b: f(x, weight=w, bias=b), x, w, b, atol=1e-4)


# ---- quotients and roots of norms, which do without the compiler's own


@pytest.mark.parametrize("n", [3, 7, 48, 768, 4097, 40_003])
def test_means_of_rows_are_quotients_to_the_last_bit(n):
    sums = np.float32(np.random.default_rng(1).standard_normal(64) * np.logspace(-25, 25, 64))
    x = F.zeros(64, n)
    x[:, 0] = F.from_numpy(sums)
    mean = F.native_layer_norm(x.cuda(), (n,), None, None, 1e-5)[1]
    assert (mean.cpu().numpy().ravel() == sums / np.float32(n)).all()
    assert F.native_layer_norm(x.cuda() + F.inf, (n,), None, None, 1e-5)[1].isinf().all()


def test_inverse_deviations_are_quotients_of_roots_to_the_last_bit():
    variances = [0.0, 1e-45, 3e-41, 1.2e-38, *np.logspace(-37, 38, 200), np.inf]
    for eps in variances:
        rstd = F.native_layer_norm(F.zeros(1, 8, device="cuda"), (8,), None, None, float(eps))[2]
        with np.errstate(divide="ignore"):
            assert rstd.item() == np.float32(1) / np.sqrt(np.float32(eps))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, float("inf")])
def test_norms_of_half_precision_do_not_overflow_on_the_way(order):
    x = (F.arange(-500, 500) / 4).to(F.float16)
    close(F.linalg.vector_norm(x.cuda(), order), F.linalg.vector_norm(x, order))
    rows = x.view(10, 100)
    close(rows.cuda().norm(order, dim=1), rows.norm(order, dim=1))


@pytest.mark.parametrize("memory_format", [F.contiguous_format, F.channels_last])
def test_averages_of_windows_that_reach_over_the_edge(memory_format):
    x = random(2, 3, 11, 13).contiguous(memory_format=memory_format)
    pool = F.nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)
    same_with_gradients(pool, x)
