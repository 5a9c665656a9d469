"""Losses: labels, reductions, warnings, sequences, modules, PyTorch's numbers."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from package_under_test import F

nn = F.nn
functional = nn.functional
RANDOM = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


# ---- labels


@pytest.mark.parametrize("function", [functional.cross_entropy, functional.nll_loss])
def test_label_out_of_range_is_named_with_its_place(function):
    with pytest.raises(IndexError, match=r"Target 7 is out of bounds.*\[2\].*5 classes"):
        function(F.ones(3, 5), F.tensor([0, 1, 7]))
    with pytest.raises(IndexError, match=r"Target -1 is out of bounds.*\[0, 1\]"):
        function(F.ones(1, 5, 2), F.tensor([[0, -1]]))


def test_label_of_a_sequence_out_of_range_is_named():
    p = F.log_softmax(F.zeros(4, 1, 3), 2)
    with pytest.raises(IndexError, match="label 1 of sequence 0 is 3"):
        functional.ctc_loss(p, F.tensor([[1, 3]]), (4,), (2,))


def test_all_labels_ignored_gives_nan_and_no_gradient():
    x = F.tensor(values(2, 3), requires_grad=True)
    loss = functional.cross_entropy(x, F.tensor([-100, -100]), reduction="sum")
    assert loss == 0
    loss.backward()
    assert x.grad.abs().sum() == 0
    assert functional.cross_entropy(x, F.tensor([-100, -100])).isnan()


def test_ignored_rows_pass_no_gradient_even_when_they_are_not_finite():
    x = F.tensor([[float("inf"), 1.0], [0.0, 1.0]], requires_grad=True)
    functional.cross_entropy(x, F.tensor([-100, 0])).backward()
    assert x.grad[0].tolist() == [0.0, 0.0]


def test_large_logits_keep_the_digits_of_a_small_loss():
    loss = functional.cross_entropy(F.tensor([[1008.0, 1000.0]]), F.tensor([0]))
    assert abs(float(loss) / np.log1p(np.exp(-8)) - 1) < 1e-3


def test_cross_entropy_is_log_softmax_and_negative_log_likelihood():
    x, target = (
        F.tensor(values(6, 5, 4), requires_grad=True),
        F.tensor(RANDOM.integers(0, 5, (6, 4))),
    )
    weight = F.tensor(RANDOM.uniform(0.5, 2, 5).astype(np.float32))
    fused = functional.cross_entropy(x, target, weight)
    apart = functional.nll_loss(F.log_softmax(x, 1), target, weight)
    assert F.allclose(fused, apart)
    a, b = F.autograd.grad(fused, x)[0], F.autograd.grad(apart, x)[0]
    assert F.allclose(a, b, atol=1e-6)


def test_byte_labels_are_taken_and_others_refused():
    x = F.tensor(values(2, 3))
    assert F.equal(
        functional.cross_entropy(x, F.tensor([0, 2]).byte()),
        functional.cross_entropy(x, F.tensor([0, 2])),
    )
    with pytest.raises(RuntimeError, match=r"Long or Byte, but got Int.*\.long\(\)"):
        functional.cross_entropy(x, F.tensor([0, 2]).int())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: functional.mse_loss(F.ones(2), F.ones(2), reduction="x"),
            ValueError,
            "valid value",
        ),
        (lambda: functional.cross_entropy(F.ones(3, 5), F.tensor([1])), ValueError, "batch_size"),
        (
            lambda: functional.cross_entropy(F.ones(1, 5), F.tensor([1]), F.ones(4)),
            RuntimeError,
            "all 5 classes",
        ),
        (
            lambda: functional.cross_entropy(F.ones(1, 5), F.tensor([1]), label_smoothing=2.0),
            RuntimeError,
            "between 0.0 and 1.0",
        ),
        (
            lambda: functional.binary_cross_entropy(F.tensor([1.5]), F.ones(1)),
            RuntimeError,
            "between 0 and 1, but one is 1.5",
        ),
        (
            lambda: functional.binary_cross_entropy(F.ones(2), F.ones(1)),
            ValueError,
            "different to the input size",
        ),
        (
            lambda: functional.binary_cross_entropy_with_logits(F.ones(2), F.ones(1)),
            ValueError,
            "must be the same as input size",
        ),
        (
            lambda: functional.gaussian_nll_loss(F.ones(2), F.ones(2), -F.ones(2)),
            ValueError,
            "negative entry",
        ),
        (
            lambda: functional.gaussian_nll_loss(F.ones(2, 3), F.ones(2, 3), F.ones(7)),
            ValueError,
            "incorrect size",
        ),
        (lambda: functional.huber_loss(F.ones(1), F.ones(1), delta=0.0), RuntimeError, "delta"),
        (lambda: nn.MultiMarginLoss(p=3), ValueError, "only p == 1 and p == 2"),
        (lambda: nn.TripletMarginLoss(margin=-1), ValueError, "greater than 0"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- warnings


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_broadcasting_target_is_reported_unless_switched_off(name):
    loss = getattr(functional, name)
    with pytest.warns(UserWarning, match=r"different to the input size.*\[3, 1\]"):
        loss(F.ones(3, 1), F.ones(3))
    functional.set_broadcast_warning(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loss(F.ones(3, 1), F.ones(3))
    finally:
        functional.set_broadcast_warning(True)


def test_broadcasting_target_is_reported_once_at_a_place():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            functional.mse_loss(F.ones(3, 1), F.ones(3))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_older_arguments_choose_the_reduction():
    x, y = F.tensor(values(4)), F.tensor(values(4))
    for old, new in (
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True, "reduce": True}, "mean"),
    ):
        with pytest.warns(UserWarning, match=f"reduction='{new}'"):
            loss = functional.mse_loss(x, y, **old)
        assert F.equal(loss, functional.mse_loss(x, y, reduction=new))
        with pytest.warns(UserWarning, match=f"reduction='{new}'"):
            assert nn.MSELoss(**old).reduction == new


# ---- sequences


def test_ctc_gradient_reaches_the_logits():
    """Against finite differences through the softmax, which the gradient is made for."""
    logits = F.tensor(RANDOM.normal(size=(5, 2, 4)), requires_grad=True)
    targets, lengths = F.tensor([[1, 1, 2], [3, 2, 0]]), (F.tensor([5, 4]), F.tensor([3, 2]))

    def loss(x):
        return functional.ctc_loss(F.log_softmax(x, 2), targets, *lengths, reduction="sum")

    assert F.autograd.gradcheck(loss, (logits,))


def test_ctc_of_sequences_that_do_not_fit_is_infinite_or_zero():
    p = F.log_softmax(F.tensor(values(2, 1, 3)), 2).requires_grad_()
    given = (F.tensor([[1, 1, 2]]), (2,), (3,))
    assert functional.ctc_loss(p, *given).isinf()
    loss = functional.ctc_loss(p, *given, zero_infinity=True)
    assert loss == 0
    loss.backward()
    assert p.grad.abs().sum() == 0


# ---- functions of one's own


def test_triplets_with_a_distance_of_ones_own():
    a, p, n = (F.tensor(values(4, 3)) for _ in range(3))

    def distance(x, y):
        return F.linalg.vector_norm(x - y + 1e-6, dim=-1)

    for swap, reduction in itertools.product((False, True), ("mean", "sum", "none")):
        own = functional.triplet_margin_with_distance_loss(
            a, p, n, distance_function=distance, swap=swap, reduction=reduction
        )
        wanted = functional.triplet_margin_loss(a, p, n, swap=swap, reduction=reduction)
        assert F.allclose(own, wanted)


# ---- PyTorch

TARGETS = {"classes": RANDOM.integers(0, 5, 4), "signs": np.where(values(4) > 0, 1, -1)}
PAIR, OTHER = values(4, 5), values(4, 5)
PROBABLE = (1 / (1 + np.exp(-OTHER))).astype(np.float32)
CLASS_WEIGHT = RANDOM.uniform(0.5, 2, 5).astype(np.float32)
MODULES = [
    ("L1Loss", {}, (PAIR, OTHER)),
    ("MSELoss", {}, (PAIR, OTHER)),
    ("SmoothL1Loss", {"beta": 0.5}, (PAIR, OTHER)),
    ("HuberLoss", {"delta": 0.5}, (PAIR, OTHER)),
    ("NLLLoss", {"weight": CLASS_WEIGHT}, (PAIR, TARGETS["classes"])),
    ("CrossEntropyLoss", {"weight": CLASS_WEIGHT}, (PAIR, TARGETS["classes"])),
    ("CrossEntropyLoss", {"label_smoothing": 0.2}, (PAIR, TARGETS["classes"])),
    ("CrossEntropyLoss", {}, (PAIR, PROBABLE)),
    ("PoissonNLLLoss", {"full": True}, (PAIR, np.abs(OTHER) * 5)),
    ("GaussianNLLLoss", {}, (PAIR, OTHER, PROBABLE)),
    ("KLDivLoss", {"reduction": "batchmean"}, (PAIR, PROBABLE)),
    ("BCELoss", {"weight": CLASS_WEIGHT}, (PROBABLE, PROBABLE[::-1].copy())),
    ("BCEWithLogitsLoss", {"pos_weight": CLASS_WEIGHT}, (PAIR, PROBABLE)),
    ("HingeEmbeddingLoss", {"margin": 0.5}, (PAIR[:, 0], TARGETS["signs"])),
    ("MultiLabelMarginLoss", {}, (PAIR, np.tile([1, 3, -1, 0, 2], (4, 1)))),
    ("MultiLabelSoftMarginLoss", {"weight": CLASS_WEIGHT}, (PAIR, PROBABLE)),
    ("SoftMarginLoss", {}, (PAIR[:, 0], TARGETS["signs"])),
    ("CosineEmbeddingLoss", {"margin": 0.1}, (PAIR, OTHER, TARGETS["signs"])),
    ("MarginRankingLoss", {"margin": 0.1}, (PAIR[:, 0], OTHER[:, 0], TARGETS["signs"])),
    ("MultiMarginLoss", {"p": 2, "weight": CLASS_WEIGHT}, (PAIR, TARGETS["classes"])),
    ("TripletMarginLoss", {"swap": True}, (PAIR, OTHER, PROBABLE)),
    (
        "CTCLoss",
        {"zero_infinity": True},
        (values(6, 2, 4), np.array([[1, 1, 2], [3, 2, 0]]), (6, 5), (3, 2)),
    ),
]


@pytest.mark.parametrize(
    ("name", "options", "data"), MODULES, ids=[f"{m[0]}-{i}" for i, m in enumerate(MODULES)]
)
def test_modules_match_pytorch(name, options, data):
    torch = pytest.importorskip("torch")

    def run(package):
        def tensor(value):
            return package.tensor(value) if isinstance(value, np.ndarray) else value

        module = getattr(package.nn, name)(**{k: tensor(v) for k, v in options.items()})
        first, *rest = map(tensor, data)
        first.requires_grad_()
        x = package.log_softmax(first, -1) if name == "CTCLoss" else first
        loss = module(x, *rest)
        loss.backward()
        return module, loss.detach().numpy(), first.grad.numpy()

    ours, theirs = run(F), run(torch)
    assert repr(ours[0]) == repr(theirs[0])
    assert list(ours[0].state_dict()) == list(theirs[0].state_dict())
    np.testing.assert_allclose(ours[1], theirs[1], rtol=2e-6)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=2e-5, atol=1e-6)


def test_multilabel_margin_loss_refuses_targets_that_are_no_integers():
    with pytest.raises(RuntimeError, match="expected scalar type Long"):
        functional.multilabel_margin_loss(F.ones(2, 3), F.ones(2, 3))


def test_reductions_have_numbers_for_libraries_with_kernels_of_their_own():
    reduction = F.nn.functional._Reduction
    assert [reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        reduction.get_enum("median")
    with pytest.warns(UserWarning, match="please use reduction='sum'"):
        assert reduction.legacy_get_enum(False, None) == 2
    assert reduction.legacy_get_string(None, False, emit_warning=False) == "none"


def test_huber_loss_has_the_dtype_of_its_input():
    assert functional.huber_loss(F.ones(2), F.zeros(2, dtype=F.float64)).dtype is F.float32
    half = functional.huber_loss(F.ones(2).half(), F.zeros(2), reduction="none")
    assert half.dtype is F.float16 and half.tolist() == [0.5, 0.5]
    assert functional.smooth_l1_loss(F.ones(2).half(), F.zeros(2)).dtype is F.float32
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        functional.huber_loss(F.ones(2, dtype=F.int64), F.zeros(2))


def test_absolute_differences_of_integers():
    difference = functional.l1_loss(F.tensor([1, 5]), F.tensor([3, 4]), reduction="none")
    assert difference.dtype is F.int64 and difference.tolist() == [2, 1]
    assert functional.l1_loss(F.tensor([1, 5]), F.tensor([3, 4]), reduction="sum").item() == 3
