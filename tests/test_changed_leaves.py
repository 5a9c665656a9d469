"""Leaves whose memory changes while a graph is alive, and arguments that have no gradient."""

import pytest
from package_under_test import F


@pytest.mark.parametrize("new", [F.float64, F.bfloat16])
def test_gradients_have_the_dtype_of_the_leaf_when_it_was_used(new):
    p = F.ones(2, requires_grad=True)
    before = (p * 2).sum()
    p.data = F.full((2,), 3.0, dtype=new)
    (p * p).sum().backward()
    assert p.grad.dtype == new
    before.backward()  # a graph of the leaf as it was adds to what is there
    assert p.grad.dtype == new
    assert p.grad.tolist() == [8.0, 8.0]


def test_first_gradient_comes_from_the_graph_of_the_old_dtype():
    p = F.ones(2, requires_grad=True)
    loss = (p * 2).sum()
    p.data = p.data.double()
    loss.backward()
    assert p.grad.dtype == F.float32


def test_graph_of_the_old_dtype_does_not_lead_to_the_leaf():
    p = F.ones(2, requires_grad=True)
    loss = (p * 2).sum()
    p.data = p.data.double()
    with pytest.raises(RuntimeError, match="not have been used"):
        F.autograd.grad(loss, p)


def test_data_of_the_same_dtype_keeps_the_graph():
    p = F.ones(2, requires_grad=True)
    loss = (p * 2).sum()
    p.data = F.zeros(2)
    assert F.autograd.grad(loss, p)[0].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("loss", [F.nn.functional.nll_loss, F.nn.functional.cross_entropy])
def test_weights_of_classes_have_no_derivative(loss):
    x, y, w = F.randn(3, 4), F.tensor([0, 1, 3]), F.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        loss(x, y, w)
    with pytest.raises(RuntimeError, match="not differentiable"):
        F.func.grad(lambda w: loss(x, y, w))(w.detach())
    with F.no_grad():
        loss(x, y, w)
    assert loss(x.requires_grad_(), y, w.detach()).requires_grad
