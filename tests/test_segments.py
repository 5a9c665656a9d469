"""segment_reduce beside a loop, and writes to saved tensors."""

import math

import pytest

import facula
from facula.autograd.graph import allow_mutation_on_saved_tensors

NAMES = {"sum": sum, "prod": math.prod, "max": max, "min": min, "mean": None}
EMPTY = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf, "mean": math.nan}


def by_hand(values, name, initial):
    """Of one stretch."""
    begun = [] if initial is None else [initial]
    if name == "mean":
        if not values:
            return math.nan if initial is None else initial
        return (sum(values) + sum(begun)) / len(values)
    both = [*values, *begun]
    return NAMES[name](both) if both else EMPTY[name]


@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_stretches_are_reduced(name, initial):
    facula.manual_seed(0)
    data = facula.randn(2, 7, 3, dtype=facula.float64)
    lengths = facula.tensor([[2, 0, 5], [4, 2, 1]])
    options = {} if initial is None else {"initial": initial}
    got = facula.segment_reduce(data, name, lengths=lengths, axis=1, **options)
    offsets = facula.tensor([[0, 2, 2, 7], [0, 4, 6, 7]])
    other = facula.segment_reduce(data, name, offsets=offsets, axis=1, **options)
    assert got.shape == (2, 3, 3) and facula.equal(got.nan_to_num(), other.nan_to_num())
    for b in range(2):
        for s in range(3):
            piece = data[b, offsets[b, s] : offsets[b, s + 1]]
            want = [by_hand(piece[:, r].tolist(), name, initial) for r in range(3)]
            assert got[b, s].tolist() == pytest.approx(want, nan_ok=True)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_gradients_and_transforms_of_stretches(name):
    data = facula.randn(6, 2, dtype=facula.float64, requires_grad=True)
    lengths = facula.tensor([2, 1, 3])

    def call(x):
        return facula.segment_reduce(x, name, lengths=lengths)

    assert facula.autograd.gradcheck(call, (data,))
    many = facula.randn(3, 6, 2, dtype=facula.float64)
    assert facula.allclose(facula.vmap(call)(many), facula.stack([call(m) for m in many]))


def test_wrong_stretches_are_refused():
    data, lengths = facula.ones(4), facula.tensor([1, 3])
    reduce = facula.segment_reduce
    for error, args, options in (
        (RuntimeError, (data, "sum"), {}),
        (RuntimeError, (data, "sum"), {"lengths": facula.tensor([1, 2])}),
        (RuntimeError, (data, "sum"), {"lengths": facula.tensor([5, -1])}),
        (RuntimeError, (data, "median"), {"lengths": lengths}),
        (RuntimeError, (data, "sum"), {"indices": lengths}),
        (RuntimeError, (facula.ones(2, 4), "sum"), {"lengths": lengths, "axis": 1}),
        (RuntimeError, (data, "sum"), {"lengths": facula.ones(2)}),
        (NotImplementedError, (facula.arange(4), "sum"), {"lengths": lengths}),
        (IndexError, (data, "sum"), {"lengths": lengths, "axis": 3}),
    ):
        with pytest.raises(error):
            reduce(*args, **options)
    assert reduce(data, "sum", lengths=facula.tensor([1, 2]), unsafe=True).tolist() == [1, 2]


# ---- writes to saved tensors


def test_saved_tensors_are_copied_before_they_are_written():
    x = facula.randn(3, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        y = x * 2
        out = (y**2).sum()
        part = y[:1]
        part.zero_()  # through a view
        y.mul_(3)
        out.backward()
    assert facula.allclose(x.grad, 8 * x)
    y = x * 2
    out = (y**2).sum()
    y.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_only_what_is_written_is_copied():
    x = facula.ones(2, requires_grad=True)
    with allow_mutation_on_saved_tensors() as saved:
        y = x * 2
        out = y.sin() * y.cos()
        before = [k.tensor.data_ptr() for kept in saved.keepers.values() for k in kept]
        assert y.data_ptr() in before
        facula.ones(2).add_(1)
        assert [k.tensor.data_ptr() for kept in saved.keepers.values() for k in kept] == before
        y.add_(1)
        assert y.untyped_storage().data_ptr() not in saved.keepers
        out.sum().backward()
    assert facula.allclose(x.grad, 2 * facula.cos(facula.tensor(4.0)).expand(2))


def test_results_of_rows_of_segments_are_contiguous():
    data, lengths = facula.arange(10.0).view(2, 5), facula.tensor([[2, 3], [1, 4]])
    for reduce in ("sum", "mean", "max"):
        found = facula.segment_reduce(data, reduce, lengths=lengths, axis=1)
        assert found.is_contiguous() and found.stride() == (2, 1)
