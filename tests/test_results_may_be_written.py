"""Which results may be written to before the backward pass, as in PyTorch: their derivatives read
the operands. Others keep their result for the derivative, and then the pass says so."""

import pytest

import facula as F

READ_THE_OPERANDS = [
    lambda x, y: x / y,
    lambda x, y: x * y,
    lambda x, y: F.erfinv(x),
    lambda x, y: F.nn.functional.hardtanh(x),
    lambda x, y: F.nn.functional.relu6(x),
    lambda x, y: F.nn.functional.hardsigmoid(x),
    lambda x, y: F.nn.functional.softsign(x),
    lambda x, y: F.nn.functional.normalize(x),
    lambda x, y: F.nn.functional.gelu(x),
    lambda x, y: F.nn.functional.silu(x),
]
READ_THE_RESULT = [
    lambda x, y: x.exp(),
    lambda x, y: x.tanh(),
    lambda x, y: x.sigmoid(),
    lambda x, y: x.sqrt(),
    lambda x, y: x.relu(),
    lambda x, y: x.softmax(-1),
]


def written(function):
    x = F.tensor([[0.3, 0.6], [0.2, 0.9]], requires_grad=True)
    y = F.tensor([[0.7, 0.4], [0.8, 0.3]], requires_grad=True)
    result = function(x, y)
    wanted = F.autograd.grad(result.sum(), (x, y), retain_graph=True, allow_unused=True)
    result.add_(0.25)
    result.sum().backward()
    return wanted, (x.grad, y.grad)


@pytest.mark.parametrize("function", READ_THE_OPERANDS)
def test_result_may_be_written_to(function):
    wanted, got = written(function)
    for a, b in zip(wanted, got, strict=True):
        assert (a is None) == (b is None)
        assert a is None or F.equal(a, b)


@pytest.mark.parametrize("function", READ_THE_RESULT)
def test_result_that_is_kept_may_not(function):
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written(function)
