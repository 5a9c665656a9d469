"""Embedding and EmbeddingBag: padding, norms, frequencies, errors."""

import numpy as np
import pytest
from nn_comparison import same_training, same_values, to_facula, twins
from package_under_test import IS_FACULA, F, assert_close, assert_equal

nn = F.nn


def test_rows_are_looked_up():
    table = nn.Embedding.from_pretrained(F.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert_equal(table(F.tensor([[1, 0]])), [[[3.0, 4.0], [1.0, 2.0]]])
    assert not table.weight.requires_grad


def test_gradient_adds_up_rows_that_repeat():
    weight = F.zeros(4, 2, requires_grad=True)
    grad = F.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    nn.functional.embedding(F.tensor([2, 0, 2]), weight).backward(grad)
    assert_equal(weight.grad, [[3.0, 4.0], [0.0, 0.0], [6.0, 8.0], [0.0, 0.0]])


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch rounds every sum")
def test_gradient_in_half_precision_is_rounded_once():
    weight = F.zeros(1, 1, dtype=F.bfloat16, requires_grad=True)
    nn.functional.embedding(F.zeros(300, dtype=F.int64), weight).sum().backward()
    assert float(weight.grad) == 300.0  # 256 + 1 is 256 in bfloat16


def test_gradient_is_the_same_for_any_number_of_threads():
    indices = F.randint(0, 50, (4000,))
    grad = F.randn(4000, 33)
    threads, results = F.get_num_threads(), []
    for n in (1, 2):
        F.set_num_threads(n)
        weight = F.zeros(50, 33, requires_grad=True)
        nn.functional.embedding(indices, weight).backward(grad)
        results.append(weight.grad)
    F.set_num_threads(threads)
    assert_equal(*results)


def test_padding_row_starts_as_zeros_and_gets_no_gradient():
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert table.padding_idx == 4
    assert_equal(table.weight[4], [0.0, 0.0, 0.0])
    table(F.tensor([4, 1])).sum().backward()
    assert_equal(table.weight.grad[4], [0.0, 0.0, 0.0])
    assert_equal(table.weight.grad[1], [1.0, 1.0, 1.0])


def test_gradient_by_frequency():
    weight = F.zeros(3, 1, requires_grad=True)
    nn.functional.embedding(F.tensor([1, 1, 2]), weight, scale_grad_by_freq=True).sum().backward()
    assert_equal(weight.grad, [[0.0], [1.0], [1.0]])


def test_max_norm_scales_only_rows_that_are_looked_up():
    table = nn.Embedding.from_pretrained(F.tensor([[3.0, 4.0], [3.0, 4.0]]), max_norm=1.0)
    version = table.weight._version
    assert_close(table(F.tensor([1])), [[0.6, 0.8]], 1e-6, 1e-6)
    assert_close(table.weight, [[3.0, 4.0], [0.6, 0.8]], 1e-6, 1e-6)
    assert table.weight._version > version


@pytest.mark.parametrize("norm", [1.0, 3.0, float("inf")])
def test_renorm_by_other_norms(norm):
    rows = np.random.default_rng(0).standard_normal((6, 5))
    table = F.from_numpy(rows.copy())
    F.embedding_renorm_(table, F.tensor([0, 3, 3]), 0.5, norm)
    expected = rows.copy()
    for i in (0, 3):
        expected[i] *= 0.5 / np.linalg.norm(rows[i], norm)
    assert_close(table, F.from_numpy(expected), 1e-5, 1e-6)


@pytest.mark.parametrize("index", [5, -1])
def test_index_out_of_range_is_named(index):
    table = nn.Embedding(5, 3)
    with pytest.raises(IndexError, match="out of range"):
        table(F.tensor([0, index]))
    with pytest.raises((IndexError, RuntimeError)):
        nn.EmbeddingBag(5, 3)(F.tensor([[0, index]]))


@pytest.mark.skipif(not IS_FACULA, reason="the wording is Facula's")
def test_error_says_where_and_what():
    with pytest.raises(IndexError, match="element 1 of the indices is 7, but the table has 5 rows"):
        nn.Embedding(5, 3)(F.tensor([0, 7]))


def test_wrong_arguments_are_refused():
    with pytest.raises(RuntimeError, match="Long, Int"):
        nn.Embedding(5, 3)(F.tensor([1.0]))
    with pytest.raises(AssertionError, match=r"(?i)padding_idx must be within"):
        nn.Embedding(5, 3, padding_idx=5)
    with pytest.raises(AssertionError, match="2-dimensional"):
        nn.Embedding.from_pretrained(F.ones(3))
    with pytest.raises(ValueError, match="mode has to be one of"):
        nn.functional.embedding_bag(F.tensor([[1]]), F.ones(2, 2), mode="median")
    with pytest.raises(ValueError, match="offsets has to be None"):
        nn.functional.embedding_bag(F.tensor([[1]]), F.ones(2, 2), F.tensor([0]))
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        nn.functional.embedding_bag(F.tensor([1, 1]), F.ones(2, 2), F.tensor([1]))


def test_sparse_gradients_have_the_rows_that_were_looked_up():
    table = nn.Embedding(5, 3, sparse=True)
    table(F.tensor([1])).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad._nnz() == 1
    assert repr(table) == "Embedding(5, 3, sparse=True)"


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch divides by the count of another row")
def test_bag_gradient_by_frequency():
    weight = F.zeros(10, 1, requires_grad=True)
    indices = F.tensor([3, 3, 5, 5, 5, 7])
    out = nn.functional.embedding_bag(
        indices, weight, F.tensor([0]), mode="sum", scale_grad_by_freq=True
    )
    out.sum().backward()
    assert_close(weight.grad[[3, 5, 7], 0], [1.0, 1.0, 1.0], 1e-6)


def test_empty_bags_are_zero():
    for mode in ("sum", "mean", "max"):
        bags = nn.EmbeddingBag(4, 2, mode=mode)
        out = bags(F.tensor([1, 2]), F.tensor([0, 2, 2]))
        assert_equal(out[1:], F.zeros(2, 2))
        out.sum().backward()
        assert bool(F.isfinite(bags.weight.grad).all())


def test_bags_return_what_their_derivative_needs():
    table = F.tensor([[1.0, 5.0], [3.0, 4.0], [0.0, 0.0]])
    out, bag, size, rows = F.embedding_bag(table, F.tensor([0, 1, 1]), F.tensor([0, 2]), mode=2)
    assert_equal(out, [[3.0, 5.0], [3.0, 4.0]])
    if IS_FACULA:
        assert bag.tolist() == [0, 0, 1]
        assert size.tolist() == [2, 1]
    assert rows.tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"max_norm": 1.0}])
def test_training_equals_pytorch(options):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "Embedding", 10, 6, **options)
    same_training(torch, ours, theirs, torch.randint(0, 10, (4, 5)))
    same_values(ours.weight, theirs.weight, 1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"include_last_offset": True}])
def test_bags_equal_pytorch(mode, options):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "EmbeddingBag", 10, 6, mode=mode, **options)
    offsets = torch.tensor([0, 3, 3, 10, *([20] if options.get("include_last_offset") else [])])
    same_training(torch, ours, theirs, torch.randint(0, 10, (20,)), offsets=offsets)
    if mode == "sum":
        indices, weights = torch.randint(0, 10, (4, 5)), torch.randn(4, 5)
        expected = theirs(indices, per_sample_weights=weights)
        actual = ours(to_facula(indices), per_sample_weights=to_facula(weights))
        same_values(actual, expected)


def test_embedding_bag_refuses_rows_that_the_table_has_not():
    table, offsets = F.ones(5, 2), F.tensor([0])
    for mode in ("sum", "mean", "max"):
        with pytest.raises(RuntimeError):
            F.nn.functional.embedding_bag(F.tensor([7]), table, offsets, mode=mode)
    with pytest.raises(RuntimeError, match="padding_idx must be within"):
        F.nn.functional.embedding_bag(F.tensor([1]), table, offsets, padding_idx=9)
