"""Derivatives of several arguments that one operator computes together."""

import pytest
import row_cases  # puts the table on the path

import gen.rows
from gen import emit_ops
from gen.rows import kernel, op

assert row_cases.ROWS


def emitted(schema, grad, monkeypatch, known=frozenset({"_gradients"})):
    rows: list[gen.rows.Row] = []
    monkeypatch.setattr(gen.rows, "ROWS", rows)
    op(schema, kernel(), grad=grad, python="")
    return emit_ops.Derivative(rows[0], set(known))


SCHEMA = "layer(Tensor a, Tensor b, int n, Tensor? c) -> Tensor"


def test_one_call_fills_the_gradients_of_all(monkeypatch):
    d = emitted(SCHEMA, {"a, b, c": "_gradients(grad, a, n, wanted)"}, monkeypatch)
    text = d.emit()
    assert text.count("op::_gradients(grad, a, n, wanted)") == 1
    assert "if (needs & 7)" in text
    for i in range(3):
        assert f"if (needs >> {i} & 1) out[{i}] = nth_result<{i}>(results)" in text
    # What it reads is saved when any of them is wanted: arguments 0, 1 and 3.
    assert d.saved_args[("a", "Whole")] == 0b1011


def test_other_arguments_keep_derivatives_of_their_own(monkeypatch):
    text = emitted(SCHEMA, {"b": "grad", "a, c": "_gradients(grad)"}, monkeypatch).emit()
    assert "if (needs >> 1 & 1)" in text
    assert "if (needs & 5)" in text
    assert "out[2] = nth_result<1>(results)" in text


def test_unknown_arguments_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="unknown argument 'd'"):
        emitted(SCHEMA, {"a, d": "_gradients(grad)"}, monkeypatch)


def test_wanted_is_known_to_joint_derivatives_only(monkeypatch):
    with pytest.raises(ValueError, match="unknown name 'wanted'"):
        emitted(SCHEMA, {"a": "_gradients(grad, wanted)"}, monkeypatch)
