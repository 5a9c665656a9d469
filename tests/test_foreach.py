"""``_foreach_*``: an operator applied to every tensor of a list."""

import numpy as np
import pytest
from package_under_test import F


def tensors(*values):
    return [F.tensor(v) for v in values]


def values(results):
    return [r.tolist() for r in results]


def test_numbers_lists_and_tensors_may_be_the_other_operand():
    x = tensors([1.0, 2.0], 3.0)
    assert values(F._foreach_add(x, 1)) == [[2, 3], 4]
    assert values(F._foreach_mul(x, [2, 3])) == [[2, 4], 9]
    assert values(F._foreach_sub(x, tensors([1.0, 1.0], 2.0))) == [[0, 1], 1]
    assert values(F._foreach_div(x, F.tensor(2.0))) == [[0.5, 1], 1.5]
    assert values(F._foreach_add(x, x, alpha=2)) == [[3, 6], 9]
    assert values(F._foreach_pow(2.0, x)) == [[2, 4], 8]
    assert values(F._foreach_maximum(x, 2)) == [[2, 2], 3]


def test_in_place_writes_and_returns_the_list():
    x = tensors([1.0, 4.0], 9.0)
    assert values(F._foreach_sqrt_(x)) == [[1, 2], 3] == values(x)
    F._foreach_addcmul_(x, x, x, 2)
    assert values(x) == [[3, 10], 21]
    F._foreach_lerp_(x, tensors([0.0, 0.0], 1.0), 0.5)
    assert values(x) == [[1.5, 5], 11]
    F._foreach_copy_(x, tensors([7.0, 8.0], 9.0))
    F._foreach_neg_(x)
    assert values(x) == [[-7, -8], -9]
    F._foreach_zero_(x)
    assert values(x) == [[0, 0], 0]


def test_norms_have_gradients():
    x = [F.tensor([3.0, 4.0], requires_grad=True), F.tensor([1.0], requires_grad=True)]
    norms = F._foreach_norm(x)
    assert values(norms) == [5, 1]
    sum(norms).backward()
    np.testing.assert_allclose(x[0].grad.numpy(), [0.6, 0.8], rtol=1e-6)


def test_lists_must_have_one_length():
    with pytest.raises(RuntimeError, match="same number"):
        F._foreach_add(tensors(1.0, 2.0), tensors(1.0))
    with pytest.raises(RuntimeError, match="at least one"):
        F._foreach_neg([])
    with pytest.raises(TypeError):
        F._foreach_neg(F.ones(2))
