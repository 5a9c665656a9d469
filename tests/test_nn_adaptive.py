"""The softmax over many classes by frequency."""

import pytest
from nn_comparison import same_training, same_values, to_facula, twins
from package_under_test import F, assert_close

nn = F.nn
SIZES = (64, 30, [5, 10, 20])


def test_probabilities_of_all_classes_sum_to_one():
    softmax = nn.AdaptiveLogSoftmaxWithLoss(*SIZES)
    full = softmax.log_prob(F.randn(7, 64))
    assert full.shape == (7, 30)
    assert_close(full.exp().sum(1), F.ones(7), 1e-5)


def test_output_is_the_probability_of_the_target():
    softmax = nn.AdaptiveLogSoftmaxWithLoss(*SIZES, head_bias=True)
    x, target = F.randn(6, 64), F.tensor([0, 4, 5, 12, 29, 9])
    output, loss = softmax(x, target)
    expected = softmax.log_prob(x).gather(1, target[:, None])[:, 0]
    assert_close(output, expected, 1e-5, 1e-5)
    assert_close(loss, -expected.mean(), 1e-5, 1e-5)
    one, _ = softmax(x[3], target[3])
    assert_close(one, expected[3], 1e-5, 1e-5)


def test_prediction_is_the_most_likely_class():
    softmax = nn.AdaptiveLogSoftmaxWithLoss(*SIZES)
    x = F.randn(200, 64) * 5
    likely = softmax.log_prob(x).argmax(1)
    agreed = (softmax.predict(x) == likely).float().mean()
    assert float(agreed) > 0.9  # a cluster that does not win the head is not looked into


@pytest.mark.parametrize("cutoffs", [[], [0, 5], [5, 5], [10, 5], [30], [5.5]])
def test_wrong_cutoffs_are_refused(cutoffs):
    with pytest.raises(ValueError, match="cutoffs should be"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 30, cutoffs)


def test_wrong_targets_are_refused():
    softmax = nn.AdaptiveLogSoftmaxWithLoss(*SIZES)
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 29\]"):
        softmax(F.ones(1, 64), F.tensor([30]))
    with pytest.raises(RuntimeError, match="same size in the batch dimension"):
        softmax(F.ones(2, 64), F.tensor([3]))
    with pytest.raises(RuntimeError, match="multi-target not supported"):
        softmax(F.ones(2, 64), F.tensor([[3], [4]]))


def test_training_equals_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "AdaptiveLogSoftmaxWithLoss", *SIZES, div_value=2.0, head_bias=True)
    x, target = torch.randn(40, 64), torch.randint(0, 30, (40,))
    same_training(torch, ours, theirs, x, target)
    same_values(ours.log_prob(to_facula(x)), theirs.log_prob(x))
    assert ours.predict(to_facula(x)).tolist() == theirs.predict(x).tolist()
