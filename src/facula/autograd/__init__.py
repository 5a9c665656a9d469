"""Automatic differentiation: backward passes, gradients, custom functions.

Example::

    >>> x = facula.tensor([1., 2.], requires_grad=True)
    >>> facula.autograd.grad((x ** 3).sum(), x)
    (tensor([ 3., 12.]),)
"""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.autograd import graph as graph
from facula.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from facula.autograd.function import Function, NestedIOFunction
from facula.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from facula.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from facula.autograd.variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, (_C.Tensor, graph.GradientEdge)) else tuple(x)


def _with_new_graph(grads: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(grads) != len(outputs):
        raise RuntimeError(
            f"got {len(outputs)} tensors and {len(grads)} gradients; "
            "there must be one gradient for each tensor"
        )
    return grads


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of ``tensors`` to the ``.grad`` of the leaves they depend on.

    Args:
        tensors: what to differentiate; scalars, or with ``grad_tensors`` any shape.
        grad_tensors: the gradients that the tensors themselves have.
        retain_graph: keep saved values for another pass; by default as ``create_graph``.
        create_graph: record the pass, so that it can be differentiated again.
        inputs: add gradients to these tensors only.

    Example::

        >>> x = facula.tensor(3., requires_grad=True)
        >>> facula.autograd.backward(x * x)
        >>> x.grad
        tensor(6.)
    """
    if grad_variables is not None:
        grad_tensors = grad_variables
    outputs = _tuple(tensors)
    if grad_tensors is None:
        grads: tuple[Any, ...] = (None,) * len(outputs)
    else:
        grads = _tuple(grad_tensors)
    _with_new_graph(grads, outputs)
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    got = _C._backward(outputs, grads, keep, create_graph, inputs or (), True, True)
    # Leaves among the inputs were accumulated by the engine; others are given their gradient here.
    for tensor, gradient in zip(inputs or (), got, strict=False):
        if gradient is not None and tensor.grad_fn is not None and not tensor.retains_grad:
            tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``, returned and not accumulated.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what.
        grad_outputs: the gradients that the outputs themselves have; ones for scalars.
        retain_graph: keep saved values for another pass; by default as ``create_graph``.
        create_graph: record the pass, so that the gradients can be differentiated again.
        allow_unused: give None instead of an error for inputs that the outputs do not depend on.
        is_grads_batched: the first dimension of ``grad_outputs`` counts separate passes.
        materialize_grads: give zeros instead of None.

    Example::

        >>> x = facula.tensor(3., requires_grad=True)
        >>> dx, = facula.autograd.grad(x ** 3, x, create_graph=True)
        >>> facula.autograd.grad(dx, x)
        (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    outs, ins = _tuple(outputs), _tuple(inputs)
    if not ins:
        raise RuntimeError("grad(): `inputs` cannot be empty: there is nothing to differentiate by")
    unused = materialize_grads or bool(allow_unused)
    keep = create_graph if retain_graph is None else retain_graph
    if grad_outputs is None:
        grads: tuple[Any, ...] = (None,) * len(outs)
    else:
        grads = _tuple(grad_outputs)
    _with_new_graph(grads, outs)
    if is_grads_batched:
        result = _batched(outs, ins, grads, keep, create_graph, unused)
    else:
        result = _C._backward(outs, grads, keep, create_graph, ins, False, unused)
    if materialize_grads:
        zeros = _C._operators["zeros_like"]
        result = tuple(
            zeros(i, requires_grad=create_graph) if r is None else r
            for r, i in zip(result, ins, strict=True)
        )
    return result


def _batched(
    outs: tuple[Any, ...],
    ins: tuple[Any, ...],
    grads: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    unused: bool,
) -> tuple[Any, ...]:
    """One pass for each entry of the gradients' first dimension, stacked."""
    sizes = {g.shape[0] for g in grads if g is not None}
    if len(sizes) != 1:
        raise ValueError(
            "is_grads_batched=True needs grad_outputs with one common first dimension, "
            f"got {sorted(sizes)}"
        )
    n = sizes.pop()
    rows = []
    for k in range(n):
        last = k == n - 1
        each = tuple(None if g is None else g[k] for g in grads)
        rows.append(_C._backward(outs, each, keep or not last, create_graph, ins, False, unused))
    stack = _C._operators["stack"]
    return tuple(
        None if column[0] is None else stack(list(column)) for column in zip(*rows, strict=True)
    )


def _is_checkpoint_valid() -> bool:
    """False inside ``grad`` and ``backward(inputs=...)``, which run only a part of the graph."""
    return _C._is_checkpoint_valid()


class _Engine:
    """The part of PyTorch's engine object that programs use."""

    def queue_callback(self, callback: Any) -> None:
        """Calls ``callback()`` when the running backward pass has ended."""
        _C._queue_callback(callback)


_C.Tensor._execution_engine = _Engine()


def __getattr__(name: str) -> Any:
    if name in ("profiler", "profiler_util"):
        import importlib

        return importlib.import_module(f"facula.autograd.{name}")
    raise AttributeError(f"module 'facula.autograd' has no attribute {name!r}")
