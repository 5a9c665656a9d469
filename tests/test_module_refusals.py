"""What modules refuse, with PyTorch's types of errors, and unusual inputs that they take."""

import pytest

import facula
from facula import nn
from facula.nn import functional as F


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_options_are_checked(kind):
    for wrong in ({"bias": 1}, {"batch_first": "no"}):
        (name,) = wrong
        with pytest.raises(TypeError, match=f"{name} should be of type bool"):
            kind(3, 4, **wrong)
    with pytest.raises(TypeError, match="input_size should be of type int, got: float"):
        kind(3.0, 4)
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"input_size must be greater than zero, got {size}"):
            kind(size, 4)


@pytest.mark.parametrize("training", [True, False])
def test_eps_of_batch_norm_keeps_the_division_possible(training):
    x = facula.rand(4, 3)
    for module in (nn.BatchNorm1d(3, eps=-1.0), nn.BatchNorm1d(3, eps=0.0)):
        module.train(training)
        if module.eps < 0 or training:
            with pytest.raises(ValueError, match="batch_norm eps must be"):
                module(x)
        else:
            assert module(x).isfinite().all()


def test_circular_padding_names_the_dimensions_it_takes():
    for module, shape, words in (
        (nn.CircularPad1d(1), (2, 3, 4, 5), "2D or 3D input [(]got 4D"),
        (nn.CircularPad2d(1), (2, 3), "3D or 4D input [(]got 2D"),
        (nn.CircularPad3d(1), (2, 3), "4D or 5D input [(]got 2D"),
    ):
        with pytest.raises(ValueError, match=words):
            module(facula.rand(shape))


def test_options_of_losses_are_checked():
    with pytest.raises(TypeError, match="delta must be a float or int, got: <class 'complex'>"):
        nn.HuberLoss(delta=1j)
    with pytest.raises(RuntimeError, match=r"expected weight shape to be \(2,\), got \(3,\)"):
        nn.LinearCrossEntropyLoss(3, 2, weight=facula.ones(3))
    with pytest.raises(RuntimeError, match=r"label_smoothing to be in range \[0, 1\], got 2.0"):
        nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2.0)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_targets_of_another_batch(loss):
    for shape, target in (((4, 2), (5, 2)), ((4, 2, 3), (5, 3)), ((4, 2), ())):
        with pytest.raises(ValueError, match=r"input batch_size \(4\) to match target batch_size"):
            loss(facula.zeros(shape), facula.zeros(target, dtype=facula.int64))
    with pytest.raises(ValueError, match="1D target must have size 1, but got target size: 3"):
        loss(facula.zeros(2), facula.zeros(3, dtype=facula.int64))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_single_target_may_be_a_vector_of_one(reduction):
    x = facula.tensor([0.5, 2.0, -1.0], requires_grad=True)
    one = F.cross_entropy(x, facula.tensor([1]), reduction=reduction)
    assert one.shape == ()
    assert facula.equal(one, F.cross_entropy(x, facula.tensor(1), reduction=reduction))
    (grad,) = facula.autograd.grad(one, x)
    assert facula.allclose(grad, x.softmax(0) - facula.tensor([0.0, 1.0, 0.0]))


@pytest.mark.parametrize("shape", [(4, 1, 5), (1, 3, 5), (4, 3, 1), (4, 3)])
def test_one_variance_along_any_dimension(shape):
    mean, target, variance = facula.rand(4, 3, 5), facula.rand(4, 3, 5), facula.rand(shape) + 0.5
    spread = variance.unsqueeze(-1) if variance.dim() == 2 else variance
    expected = 0.5 * (spread.log() + (mean - target) ** 2 / spread).mean()
    assert facula.allclose(F.gaussian_nll_loss(mean, target, variance), expected)


def test_variances_of_two_shared_dimensions_are_refused():
    with pytest.raises(ValueError, match="var is of incorrect size"):
        F.gaussian_nll_loss(facula.rand(4, 3, 5), facula.rand(4, 3, 5), facula.ones(1, 1, 5))


def test_fractional_pooling_takes_samples_for_more_images():
    x, samples = facula.rand(4, 7, 7), facula.rand(2, 4, 2)
    whole = F.fractional_max_pool2d(x, 2, output_size=3, _random_samples=samples[:1])
    assert facula.equal(
        F.fractional_max_pool2d(x, 2, output_size=3, _random_samples=samples), whole
    )
