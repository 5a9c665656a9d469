"""Causal masks by their shape, products by groups, factory_kwargs."""

import pytest

import facula
from facula import nn
from facula.nn import functional as F
from facula.nn.attention.bias import (
    CausalBias,
    CausalVariant,
    causal_lower_right,
    causal_upper_left,
)


@pytest.mark.parametrize("queries, keys", [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
def test_causal_masks_act_as_what_they_stand_for(make, queries, keys):
    facula.manual_seed(0)
    q = facula.randn(2, 2, queries, 8, requires_grad=True)
    k, v = facula.randn(2, 2, keys, 8), facula.randn(2, 2, keys, 8)
    mask = make(queries, keys)
    offset = keys - queries if make is causal_lower_right else 0
    plain = facula.ones(queries, keys, dtype=facula.bool).tril(offset)
    assert facula.equal(mask._materialize(), plain) and repr(mask) == repr(plain)
    got = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=plain)
    seen = plain.any(1)  # a row that sees nothing is NaN in one way or another
    assert facula.allclose(got[:, :, seen], want[:, :, seen], atol=1e-6)
    got[:, :, seen].sum().backward()


def test_wrong_uses_of_causal_masks():
    q = facula.randn(1, 1, 2, 8)
    mask = causal_upper_left(2, 2)
    assert isinstance(mask, CausalBias) and mask.shape == (2, 2)
    with pytest.raises(ValueError, match="causal=True"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=True)
    with pytest.raises(ValueError, match="2 queries and 2 keys"):
        F.scaled_dot_product_attention(q, facula.ones(1, 1, 3, 8), facula.ones(1, 1, 3, 8), mask)
    with pytest.raises(TypeError, match="CausalVariant"):
        CausalBias("upper", 2, 2)
    assert CausalVariant.LOWER_RIGHT == 2


def test_groups_of_rows_columns_and_sums():
    a, b = facula.randn(7, 4), facula.randn(3, 4, 5)
    offs = facula.tensor([2, 2, 6])
    got = F.grouped_mm(a, b, offs=offs)
    assert facula.allclose(got[:2], a[:2] @ b[0]) and facula.allclose(got[2:6], a[2:6] @ b[2])
    assert not got[6:].any() and got.shape == (7, 5)
    columns = F.grouped_mm(facula.ones(2, 3, 4), facula.ones(4, 6), offs=facula.tensor([1, 5]))
    assert columns.shape == (3, 6) and columns[0].tolist() == [4, 4, 4, 4, 4, 0]
    sums = F.grouped_mm(facula.ones(2, 6), facula.ones(6, 3), offs=facula.tensor([1, 5]))
    assert sums.shape == (2, 2, 3) and sums[:, 0, 0].tolist() == [1, 4]
    x = facula.randn(3, 2, 4)
    assert facula.allclose(F.grouped_mm(x, b), facula.bmm(x, b))
    assert F.grouped_mm(x, b, out_dtype=facula.float64).dtype is facula.float64


def test_gradients_of_groups():
    a = facula.randn(5, 3, dtype=facula.float64, requires_grad=True)
    b = facula.randn(2, 3, 2, dtype=facula.float64, requires_grad=True)
    offs = facula.tensor([2, 4])
    assert facula.autograd.gradcheck(lambda a, b: F.grouped_mm(a, b, offs=offs), (a, b))


@pytest.mark.parametrize("offs", [[1, 2], [3, 2, 6], [1, 2, 9]])
def test_wrong_groups_are_refused(offs):
    with pytest.raises(RuntimeError, match="grouped_mm"):
        F.grouped_mm(facula.ones(7, 4), facula.ones(3, 4, 5), offs=facula.tensor(offs))


def test_grouped_mm_names_what_is_wrong():
    for args, options in (
        ((facula.ones(2, 3), facula.ones(2, 4, 5)), {"offs": facula.tensor([1, 2])}),
        ((facula.ones(2, 3), facula.ones(2, 3, 5)), {}),
        ((facula.ones(3), facula.ones(3, 2)), {}),
    ):
        with pytest.raises(RuntimeError, match="grouped_mm"):
            F.grouped_mm(*args, **options)


def test_factory_kwargs():
    assert nn.factory_kwargs(None) == {}
    assert nn.factory_kwargs({"factory_kwargs": {"dtype": facula.int8}}) == {"dtype": facula.int8}
    with pytest.raises(TypeError, match="twice"):
        nn.factory_kwargs({"dtype": facula.int8, "factory_kwargs": {"dtype": facula.int8}})
    with pytest.raises(TypeError, match="unexpected"):
        nn.factory_kwargs({"bias": True})
