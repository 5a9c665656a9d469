"""Jagged tensors: parts, shapes, operators on values, reductions, attention, gradients, errors."""

import copy
import pickle

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

ONLY_FACULA = pytest.mark.skipif(not IS_FACULA, reason="PyTorch does not have it")
functional = F.nn.functional
SIZES = (2, 3, 1)


def arrays(width=6, sizes=SIZES):
    rng = np.random.default_rng(width)
    return [rng.normal(size=(n, width)).astype(np.float32) for n in sizes]


def batch(width=6, requires_grad=False, sizes=SIZES):
    return F.nested.nested_tensor(
        [F.tensor(a) for a in arrays(width, sizes)], layout=F.jagged, requires_grad=requires_grad
    )


def check(nt, expected, tolerance=1e-6):
    """Every component against an array."""
    found = nt.unbind()
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, np.asarray(b), tolerance, 1e-6)


# ---- parts


def test_parts():
    nt = batch()
    assert nt.is_nested and nt.layout == F.jagged and nt.dtype == F.float32
    assert not F.ones(1).is_nested
    assert_equal(nt.offsets(), [0, 2, 5, 6])
    assert_equal(nt.values(), np.concatenate(arrays()))
    assert nt.lengths() is None and nt.is_contiguous()
    assert nt.dim() == 3 and nt.numel() == 36 and len(nt.unbind()) == 3
    check(nt, arrays())


def test_ragged_size_is_a_symbol():
    nt, other = batch(), batch()
    ragged = nt.size(1)
    assert isinstance(ragged, F.SymInt) and str(ragged).startswith("j")
    assert nt.shape == (3, ragged, 6) and nt.size(0) == 3 and nt.size(-1) == 6
    assert (nt * 2).size(1) == ragged
    assert other.size(1) != ragged
    assert repr(nt.shape) == f"{F.__name__}.Size([3, {ragged}, 6])"


def test_text():
    nt = batch()
    j = nt.size(1)
    assert repr(nt) == (
        f"NestedTensor(size=(3, {j}, 6), offsets=tensor([0, 2, 5, 6]), contiguous=True)"
    )
    assert "requires_grad=True" in repr(batch(requires_grad=True))


def test_from_jagged():
    values = F.arange(10.0).reshape(5, 2)
    nt = F.nested.nested_tensor_from_jagged(values, F.tensor([0, 2, 5]))
    check(nt, [values[:2], values[2:]])
    nt = F.nested.nested_tensor_from_jagged(values, lengths=F.tensor([1, 4]))
    check(nt, [values[:1], values[1:]])


def test_narrow_has_holes():
    x = F.arange(24.0).reshape(2, 4, 3)
    nt = F.nested.narrow(x, 1, F.tensor([0, 1]), F.tensor([2, 3]), layout=F.jagged)
    assert not nt.is_contiguous()
    assert_equal(nt.lengths(), [2, 3])
    check(nt, [x[0, :2], x[1, 1:4]])
    check(nt.contiguous(), [x[0, :2], x[1, 1:4]])
    assert nt.contiguous().lengths() is None


def test_as_nested_tensor_is_differentiable():
    a, b = F.ones(2, 3, requires_grad=True), F.ones(4, 3, requires_grad=True)
    nt = F.nested.as_nested_tensor([a, b], layout=F.jagged)
    (nt * 2).values().sum().backward()
    assert_equal(a.grad, np.full((2, 3), 2.0))
    assert_equal(b.grad, np.full((4, 3), 2.0))
    rows = F.nested.as_nested_tensor(F.arange(12.0).reshape(2, 3, 2), layout=F.jagged)
    check(rows, np.arange(12.0).reshape(2, 3, 2))


def test_masked_select():
    x = F.arange(6.0).reshape(2, 3)
    mask = F.tensor([[True, False, True], [False, True, False]])
    check(F.nested.masked_select(x, mask), [[0.0, 2.0], [4.0]])


def test_padding():
    nt = F.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=F.jagged)
    assert_equal(F.nested.to_padded_tensor(nt, -1.0), [[1.0, 2.0], [3.0, -1.0]])
    assert_equal(nt.to_padded_tensor(0.0, (2, 3)), [[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]])


def test_copies():
    nt = batch()
    for other in (copy.deepcopy(nt), nt.clone()):
        check(other, arrays())
    if IS_FACULA:
        check(pickle.loads(pickle.dumps(nt)), arrays())


# ---- operators on values


@pytest.mark.parametrize("name", ["sin", "exp", "abs", "neg", "sigmoid", "tanh", "relu", "sqrt"])
def test_functions(name):
    check(getattr(batch().abs(), name)(), [getattr(F.tensor(a).abs(), name)() for a in arrays()])


@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "leaky_relu"])
def test_activations(name):
    function = getattr(functional, name)
    check(function(batch()), [function(F.tensor(a)) for a in arrays()])


def test_arithmetic():
    nt = batch()
    check(nt + nt * 2, [a * 3 for a in arrays()], 1e-5)
    check(1 - nt, [1 - a for a in arrays()])
    check(nt**2 / 2, [a * a / 2 for a in arrays()])
    check(nt + F.arange(6.0), [a + np.arange(6) for a in arrays()])
    rows = F.arange(18.0).reshape(3, 1, 6)
    check(nt * rows, [a * r.numpy() for a, r in zip(arrays(), rows, strict=True)], 1e-5)
    check((nt > 0).to(F.float32), [(a > 0).astype(np.float32) for a in arrays()])
    check(F.where(nt > 0, nt, F.zeros_like(nt)), [a.clip(0) for a in arrays()])
    assert nt.to(F.float64).dtype == F.float64


def test_in_place():
    nt = batch()
    nt.mul_(2)
    check(nt, [a * 2 for a in arrays()])


def test_other_raggedness_is_refused():
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
        batch() + batch()
    with pytest.raises(RuntimeError):
        batch() + F.ones(3, 2, 6)


def test_layers():
    linear, norm = F.nn.Linear(6, 4), F.nn.LayerNorm(4)
    dense = [norm(linear(F.tensor(a))) for a in arrays()]
    check(norm(linear(batch())), [d.detach() for d in dense], 1e-5)
    w = F.tensor(np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32))
    check(batch() @ w, [F.tensor(a) @ w for a in arrays()], 1e-5)
    check(functional.dropout(batch(), 0.0), arrays())
    table = F.arange(6.0).reshape(3, 2)
    words = F.nested.nested_tensor([F.tensor([0, 1]), F.tensor([2])], layout=F.jagged)
    check(functional.embedding(words, table), [table[:2], table[2:]])


@pytest.mark.parametrize("dim", [1, 2, -1])
def test_softmax(dim):
    inner = 0 if dim == 1 else 1
    expected = [F.softmax(F.tensor(a), inner) for a in arrays()]
    check(F.softmax(batch(), dim), expected)
    if IS_FACULA:
        check(functional.log_softmax(batch(), dim), [e.log() for e in expected], 1e-5)


# ---- shapes


def test_heads():
    nt = batch()
    heads = nt.unflatten(-1, [2, 3]).transpose(1, 2)
    assert heads.shape == (3, 2, nt.size(1), 3)
    check(heads, [a.reshape(-1, 2, 3).transpose(1, 0, 2) for a in arrays()])
    check(heads.transpose(1, 2).flatten(-2), arrays())
    check(nt.view(3, -1, 2, 3), [a.reshape(-1, 2, 3) for a in arrays()])
    check(nt.view(nt.size(0), nt.size(1), 6, 1), [a[..., None] for a in arrays()])


def test_splitting_and_joining():
    nt = batch()
    for piece, at in zip(nt.chunk(2, -1), (0, 3), strict=True):
        check(piece, [a[:, at : at + 3] for a in arrays()])
    check(nt.split(2, -1)[1], [a[:, 2:4] for a in arrays()])
    check(F.cat([nt, nt], -1), [np.concatenate([a, a], 1) for a in arrays()])
    check(nt.unsqueeze(-1).squeeze(-1), arrays())
    assert_equal(nt[1], arrays()[1])
    check(nt.select(-1, 2), [a[:, 2] for a in arrays()])


@ONLY_FACULA
def test_slices_and_parts_of_the_batch():
    nt = batch()
    check(nt[:, :, 1:3], [a[:, 1:3] for a in arrays()])
    check(nt[1:], arrays()[1:])
    check(nt[..., 0], [a[:, 0] for a in arrays()])
    check(F.cat([nt, nt]), arrays() + arrays())
    with pytest.raises(NotImplementedError, match="ragged"):
        nt[:, :1]


# ---- reductions


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_over_the_ragged_dimension(name, keepdim):
    numpy_name = {"amax": "max", "amin": "min"}.get(name, name)
    expected = np.stack([getattr(a, numpy_name)(0, keepdims=keepdim) for a in arrays()])
    assert_close(getattr(batch(), name)(dim=1, keepdim=keepdim), expected, 1e-5)


def test_over_other_dimensions():
    nt = batch()
    check(nt.sum(dim=-1), [a.sum(-1) for a in arrays()], 1e-5)
    check(nt.mean(dim=2, keepdim=True), [a.mean(-1, keepdims=True) for a in arrays()], 1e-5)
    assert_close(nt.sum(), np.concatenate(arrays()).sum(), 1e-4)
    assert_close(nt.sum(dim=(0, 1)), np.concatenate(arrays()).sum(0), 1e-4)
    with pytest.raises(RuntimeError, match="batch dimension but not the ragged dimension"):
        nt.sum(dim=0)


# ---- attention and gradients


@pytest.mark.parametrize("causal", [False, pytest.param(True, marks=ONLY_FACULA)])
def test_attention_is_that_of_each_component(causal):
    nt = batch(16, requires_grad=True)
    heads = nt.unflatten(-1, [2, 8]).transpose(1, 2)
    found = functional.scaled_dot_product_attention(heads, heads * 2, heads + 1, is_causal=causal)
    out = found.transpose(1, 2).flatten(-2)
    weights = F.arange(16.0)
    F.nested.to_padded_tensor(out * weights, 0.0).sum().backward()
    for i, a in enumerate(arrays(16)):
        x = F.tensor(a, requires_grad=True)
        h = x.unflatten(-1, [2, 8]).transpose(0, 1).unsqueeze(0)
        dense = functional.scaled_dot_product_attention(h, h * 2, h + 1, is_causal=causal)
        dense = dense.squeeze(0).transpose(0, 1).flatten(-2)
        assert_close(out.unbind()[i], dense.detach(), 1e-4, 1e-5)
        (dense * weights).sum().backward()
        assert_close(nt.grad.unbind()[i], x.grad, 1e-4, 1e-4)


def test_gradient_of_a_nested_leaf_is_nested():
    nt = batch(requires_grad=True)
    (nt * 3).sum().backward()
    assert nt.grad.is_nested and nt.is_leaf
    check(nt.grad, [np.full(a.shape, 3.0) for a in arrays()])


@ONLY_FACULA
@pytest.mark.parametrize(
    "function",
    [
        lambda nt: nt.sum(dim=1),
        lambda nt: nt.mean(dim=1),
        lambda nt: F.nested.to_padded_tensor(nt, 0.0),
        lambda nt: F.softmax(nt, 1).values(),
        lambda nt: F.softmax(nt, 2).values(),
        lambda nt: functional.layer_norm(nt, (2,)).values(),
        lambda nt: nt.amax(dim=1),
        lambda nt: (nt * F.arange(3.0, dtype=F.float64).reshape(3, 1, 1)).values(),
    ],
)
def test_gradients(function):
    values = F.tensor(np.random.default_rng(0).normal(size=(6, 2)), requires_grad=True)
    offsets = F.tensor([0, 2, 5, 6])
    make = F.nested.nested_tensor_from_jagged
    assert F.autograd.gradcheck(lambda v: function(make(v, offsets)), (values,))


# ---- errors


@ONLY_FACULA
def test_errors():
    with pytest.raises(NotImplementedError, match="to_padded_tensor"):
        F.linalg.inv(batch())
    with pytest.raises(NotImplementedError, match="jagged"):
        F.nested.nested_tensor([F.ones(1)], layout=F.strided)
    with pytest.raises(RuntimeError, match="differ in"):
        F.nested.nested_tensor([F.ones(1, 2), F.ones(2, 1)])
    for offsets in ([0, 3, 2, 5], [1, 5], [0, 9], [0, 4]):
        with pytest.raises(RuntimeError, match="offset"):
            F.nested.nested_tensor_from_jagged(F.ones(5), F.tensor(offsets))
    with pytest.raises(RuntimeError, match="lengths"):
        F.nested.nested_tensor_from_jagged(F.ones(5), F.tensor([0, 2, 5]), F.tensor([3, 3]))
    with pytest.raises(RuntimeError, match="within"):
        F.nested.narrow(F.ones(2, 3), 1, 2, F.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="differs between"):
        int(batch().size(1))
