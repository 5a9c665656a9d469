"""The small functions around checkpointing that other packages use."""

import warnings

import pytest

import facula
from facula.utils.checkpoint import check_backward_validity, detach_variable


def test_detached_arguments_require_grad_as_before():
    x = facula.ones(2, requires_grad=True) * 2
    y = facula.ones(2)
    a, b, c = detach_variable((x, y, "text"))
    assert a.is_leaf and a.requires_grad and a.data_ptr() == x.data_ptr()
    assert not b.requires_grad and c == "text"
    with pytest.raises(RuntimeError, match="tuple"):
        detach_variable([x])


def test_arguments_that_no_gradient_reaches_are_warned_of():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check_backward_validity([facula.ones(1), 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_backward_validity([facula.ones(1, requires_grad=True)])
