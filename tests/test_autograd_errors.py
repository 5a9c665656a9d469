"""What autograd says when something is wrong, and anomaly mode."""

import copy
import inspect
import re
import warnings

import pytest
from package_under_test import F, assert_equal, leaf

Function = F.autograd.Function


def line_above():
    """The number of the line above the caller's."""
    return inspect.currentframe().f_back.f_lineno - 1


def names_line(text, line):
    """Whether text names a line of this file, as file.py:12 or file.py", line 12."""
    return re.search(rf'test_autograd_errors\.py(:|", line ){line}\b', text) is not None


# -- changes of saved values ----------------------------------------------------------------------


def message_after_change(use, change):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1.0
    result = use(y)
    change(result if result.grad_fn.name() == "ExpBackward0" else y)
    with pytest.raises(RuntimeError) as caught:
        result.sum().backward()
    return str(caught.value)


def test_the_in_place_error_names_shape_and_versions():
    text = message_after_change(lambda y: y * y, lambda y: y.add_(1.0).mul_(2.0))
    assert "one of the variables needed for gradient computation" in text
    assert "modified by an inplace operation" in text
    assert "[2, 2]" in text
    assert "is at version 2; expected version 0" in text


@pytest.mark.facula_only
def test_the_in_place_error_names_the_line_of_the_use_and_of_the_change():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y * y
    used = line_above()
    y.add_(1.0)
    changed = line_above()
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert names_line(text, used), text
    assert names_line(text, changed), text


@pytest.mark.facula_only
def test_the_in_place_error_names_the_operators():
    text = message_after_change(lambda y: y * y, lambda y: y.add_(1.0))
    assert "mul" in text.lower() and "add_" in text


@pytest.mark.facula_only
@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.zero_(),
        lambda y: y.__setitem__(0, 1.0),
        lambda y: y[0].fill_(1.0),
        lambda y: y.__iadd__(1.0),
        lambda y: y.detach().add_(1.0),
        lambda y: y.copy_(F.ones(2, 2)),
    ],
    ids=["method", "assignment", "view", "augmented", "detached", "copy"],
)
def test_every_kind_of_change_is_found_by_its_line(change):
    text = message_after_change(lambda y: y * y, change)
    assert names_line(text, change.__code__.co_firstlineno), text


@pytest.mark.facula_only
def test_the_overwriting_line_of_a_saved_result_is_named():
    use = lambda y: y.exp()  # noqa: E731
    change = lambda y: y.add_(1.0)  # noqa: E731
    text = message_after_change(use, change)
    assert names_line(text, use.__code__.co_firstlineno), text
    assert names_line(text, change.__code__.co_firstlineno), text


@pytest.mark.facula_only
def test_of_several_changes_one_after_the_use_is_named():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.add_(1.0)
    before = line_above()
    z = y * y
    y.add_(2.0)
    first = line_above()
    y.add_(3.0)
    last = line_above()
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert names_line(text, first) or names_line(text, last), text
    assert not names_line(text, before), text


def test_a_change_of_a_leaf_is_refused():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf([1.0]).add_(1.0)


@pytest.mark.facula_only
def test_the_leaf_error_names_the_operator_and_the_remedy():
    with pytest.raises(RuntimeError) as caught:
        leaf([1.0]).add_(1.0)
    assert "add_" in str(caught.value) and "no_grad" in str(caught.value)


# -- a graph that is gone -------------------------------------------------------------------------


def test_the_second_backward_names_the_remedy():
    x = leaf([1.0])
    y = x.exp()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


# -- roots and inputs -----------------------------------------------------------------------------


def test_a_root_without_history_is_refused():
    text = "element 0 of tensors does not require grad and does not have a grad_fn"
    with pytest.raises(RuntimeError, match=text):
        F.ones(1).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        F.autograd.grad(F.ones(1), leaf([1.0]))


def test_the_position_of_the_root_without_history_is_named():
    with pytest.raises(RuntimeError, match="element 1 of tensors"):
        F.autograd.backward([leaf(1.0) * 2.0, F.ones(1)])


def test_a_root_that_was_made_under_no_grad_is_refused():
    x = leaf([1.0])
    with F.no_grad():
        y = x * 2.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.backward()


def test_an_input_that_does_not_require_grad_is_refused():
    with pytest.raises(RuntimeError, match="does not require grad"):
        F.autograd.grad(leaf([1.0]) * 2.0, F.ones(1))


def test_the_position_of_the_unused_input_is_named():
    x, y = leaf([1.0]), leaf([1.0])
    with pytest.raises(RuntimeError, match=r"index 1 appears to not have been used.*allow_unused"):
        F.autograd.grad(x * 2.0, (x, y))


def test_inputs_must_be_given_and_be_tensors():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        F.autograd.grad(x * 2.0, [])
    with pytest.raises((RuntimeError, TypeError), match="int"):
        F.autograd.grad(x * 2.0, [3])
    with pytest.raises((RuntimeError, TypeError), match="int"):
        (x * 2.0).backward(inputs=[3])


# -- incoming gradients ---------------------------------------------------------------------------


def test_the_shape_of_the_incoming_gradient_must_match():
    with pytest.raises(RuntimeError, match="Mismatch in shape") as caught:
        (leaf([1.0, 2.0, 3.0]) * 2.0).backward(F.ones(2, dtype=F.float64))
    text = str(caught.value)
    assert "grad_output[0]" in text and "[2]" in text and "[3]" in text


def test_the_number_of_incoming_gradients_must_match():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="2 tensors and 1"):
        F.autograd.backward([x * 2.0, x * 3.0], [F.ones(2, dtype=F.float64)])


def test_incoming_gradients_must_be_tensors():
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        F.autograd.backward([leaf(1.0) * 2.0], [1.0])


def test_incoming_gradients_of_another_real_dtype_are_converted():
    x = leaf([1.0, 2.0])
    (x * 2.0).backward(F.ones(2, dtype=F.float32))
    assert x.grad.dtype == F.float64
    assert_equal(x.grad, [2.0, 2.0])


def test_a_refused_backward_changes_nothing():
    x = leaf([1.0, 2.0])
    y = (x * x).exp()
    with pytest.raises(RuntimeError):
        y.backward(F.ones(3, dtype=F.float64))
    assert x.grad is None
    y.sum().backward()
    assert x.grad is not None


# -- integers and other misuse --------------------------------------------------------------------


def test_integers_cannot_require_grad():
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        F.tensor([1, 2], requires_grad=True)


def test_tensors_with_history_cannot_be_deep_copied():
    x = leaf([1.0])
    assert copy.deepcopy(x).requires_grad
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(x * 2.0)


# -- anomaly mode ---------------------------------------------------------------------------------


@pytest.fixture
def anomaly():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Anomaly Detection has been enabled")
        context = F.autograd.detect_anomaly()
    with context:
        yield


def test_anomaly_mode_can_be_asked_and_set():
    assert not F.is_anomaly_enabled()
    with F.autograd.set_detect_anomaly(True):
        assert F.is_anomaly_enabled() and F.is_anomaly_check_nan_enabled()
        with F.autograd.set_detect_anomaly(True, check_nan=False):
            assert not F.is_anomaly_check_nan_enabled()
        with F.autograd.set_detect_anomaly(False):
            assert not F.is_anomaly_enabled()
        assert F.is_anomaly_enabled()
    assert not F.is_anomaly_enabled()
    F.autograd.set_detect_anomaly(True)
    assert F.is_anomaly_enabled()
    F.autograd.set_detect_anomaly(False)


def test_anomaly_mode_warns_when_it_is_entered():
    with (
        pytest.warns(UserWarning, match="Anomaly Detection has been enabled"),
        F.autograd.detect_anomaly(),
    ):
        pass


def test_anomaly_mode_finds_nan_and_the_forward_line(anomaly):
    x = leaf([-1.0])
    y = x.sqrt()
    line = line_above()
    with (
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0") as warned,
        pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th output"),
    ):
        y.backward()
    text = "".join(str(warning.message) for warning in warned)
    assert "Traceback of forward call that caused the error" in text
    assert f'test_autograd_errors.py", line {line}' in text
    assert "y = x.sqrt()" in text


def test_without_anomaly_mode_nan_passes():
    x = leaf([-1.0])
    x.sqrt().backward()
    assert x.grad.item() != x.grad.item()


def test_without_check_nan_nan_passes():
    x = leaf([-1.0])
    with F.autograd.set_detect_anomaly(True, check_nan=False):
        x.sqrt().backward()
    assert x.grad.item() != x.grad.item()


def test_anomaly_mode_shows_the_forward_line_of_a_failing_function(anomaly):
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("broken on purpose")

    y = Failing.apply(leaf([1.0]))
    line = line_above()
    with (
        pytest.warns(UserWarning, match="FailingBackward") as warned,
        pytest.raises(ValueError, match="broken on purpose"),
    ):
        y.backward()
    text = "".join(str(warning.message) for warning in warned)
    assert f'test_autograd_errors.py", line {line}' in text


def test_anomaly_mode_keeps_the_traceback_in_the_metadata(anomaly):
    y = leaf([1.0]).exp()
    trace = y.grad_fn.metadata["traceback_"]
    assert any("y = leaf([1.0]).exp()" in entry for entry in trace)
