"""Automatic differentiation: backward passes, gradients, custom functions.

Example::

    >>> x = facula.tensor([1., 2.], requires_grad=True)
    >>> facula.autograd.grad((x ** 3).sum(), x)
    (tensor([ 3., 12.]),)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from facula import _C
from facula.autograd import forward_ad as forward_ad
from facula.autograd import functional as functional
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
from facula.autograd.graph import SavedTensor as SavedTensor
from facula.autograd.variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_kept_graphs_warning",
    "set_multithreading_enabled",
]


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, (_C.Tensor, graph.GradientEdge)) else tuple(x)


def _tensors_in(*arguments: Any) -> tuple[Any, ...]:
    """The arguments of a backward pass that can have a ``__torch_function__``, one by one."""
    found: list[Any] = []
    for argument in arguments:
        found += argument if isinstance(argument, (tuple, list)) else (argument,)
    return tuple(found)


def _with_new_graph(grads: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    for grad in grads:
        if grad is not None and not isinstance(grad, _C.Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(grad).__name__}"
            )
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
    if _C._has_torch_function(relevant := _tensors_in(tensors, inputs)):
        named = {
            "grad_tensors": grad_tensors, "retain_graph": retain_graph,
            "create_graph": create_graph, "grad_variables": grad_variables, "inputs": inputs,
        }  # fmt: skip
        return _C._handle_torch_function(backward, relevant, (tensors,), named)
    if _C.transforms.current_level() and forward_ad.inside_of_transforms():
        raise RuntimeError(
            "backward() called inside a functorch transform (vmap, grad, jvp ...). This is not "
            "supported; use func.grad or func.vjp there, or call backward() outside of it."
        )
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
        if not isinstance(tensor, _C.Tensor):  # an edge: nothing to give it to
            continue
        if gradient is not None and tensor.grad_fn is not None and not tensor.retains_grad:
            earlier = tensor._grad
            tensor.grad = gradient.clone() if earlier is None else earlier + gradient


def set_kept_graphs_warning(enabled: bool) -> bool:
    """Whether to warn, once, when a program holds hundreds of losses together with their graphs.

    Returns the previous setting.

    Example::

        >>> before = facula.autograd.set_kept_graphs_warning(False)
        >>> facula.autograd.set_kept_graphs_warning(before)
        False
    """
    return _C._set_kept_graphs_warning(enabled)  # type: ignore[no-any-return]


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
) -> Any:
    """The gradients of ``outputs`` with respect to ``inputs``, returned and not accumulated.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what: a tensor, several, or a dict of tensors, for which the result
            is a dict.
        grad_outputs: the gradients that the outputs themselves have; ones for scalars.
        retain_graph: keep saved values for another pass; by default as ``create_graph``.
        create_graph: record the pass, so that the gradients can be differentiated again.
        allow_unused: give None instead of an error for inputs that the outputs do not depend on.
        is_grads_batched: the first dimension of ``grad_outputs`` counts vectors that are
            propagated together, by vmap.
        materialize_grads: give zeros instead of None.

    Example::

        >>> x = facula.tensor(3., requires_grad=True)
        >>> dx, = facula.autograd.grad(x ** 3, x, create_graph=True)
        >>> facula.autograd.grad(dx, x)
        (tensor(18.),)
    """
    if _C._has_torch_function(relevant := _tensors_in(outputs, inputs)):
        named = {
            "grad_outputs": grad_outputs, "retain_graph": retain_graph,
            "create_graph": create_graph, "only_inputs": only_inputs,
            "allow_unused": allow_unused, "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }  # fmt: skip
        return _C._handle_torch_function(grad, relevant, (outputs, inputs), named)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use backward.",
            FutureWarning,
            stacklevel=2,
        )
    names = list(inputs) if type(inputs) is dict else None
    outs, ins = _tuple(outputs), _tuple(inputs if names is None else inputs.values())
    if not ins:
        raise RuntimeError("grad(): `inputs` cannot be empty: there is nothing to differentiate by")
    unused = materialize_grads or bool(allow_unused)
    keep = create_graph if retain_graph is None else retain_graph
    if grad_outputs is None:
        grads: tuple[Any, ...] = (None,) * len(outs)
    else:
        grads = _tuple(grad_outputs)
    _with_new_graph(grads, outs)

    def run(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        extra = _tangents_of_gradients(outs, grads, create_graph, ins)
        result = _C._backward(outs, grads, keep, create_graph, ins, False, unused)
        return tuple(map(_with_tangent, result, extra)) if extra else result

    result = _batched(run, grads) if is_grads_batched else run(grads)
    if materialize_grads:
        zeros = _C._operators["zeros_like"]
        result = tuple(
            zeros(i, requires_grad=create_graph) if r is None else r
            for r, i in zip(result, ins, strict=True)
        )
    return result if names is None else dict(zip(names, result, strict=True))


def _tangents_of_gradients(
    outs: tuple[Any, ...], grads: tuple[Any, ...], create_graph: bool, ins: tuple[Any, ...]
) -> list[tuple[int, Any]]:
    """What the tangents of dual outputs add to the tangents of the gradients, with their level.

    The tangent of a gradient J(x)^T g along t is the gradient of (J(x) t, g), and J(x) t is the
    tangent of the output. (The second derivative is symmetric.)
    """
    core = _C.transforms
    duals = [i for i, y in enumerate(outs) if isinstance(y, Variable) and core.kind_of(y) == "jvp"]
    if not duals:
        return []
    level = max(core.level_of(outs[i]) for i in duals)
    unpacked = {i: core.unpack_dual(outs[i], level) for i in duals}
    taped = [i for i, (_, t) in unpacked.items() if t is not None and t.requires_grad]
    for position, x in enumerate(ins):
        computed = isinstance(x, Variable) and core.unpack_dual(x, level)[1]
        if isinstance(computed, Variable) and computed.requires_grad:
            raise RuntimeError(
                f"grad(): input {position} is a dual tensor that was computed from others. Forward "
                "mode over autograd.grad needs inputs whose tangents are given (make_dual); use "
                "func.jvp of func.grad."
            )
    if not taped:
        return []
    seeds = []
    for i in taped:
        primal, gradient = unpacked[i][0], grads[i]
        ones = _C._operators["ones_like"]
        seeds.append(ones(primal) if gradient is None else core.unpack_dual(gradient, level)[0])
    tangents = tuple(unpacked[i][1] for i in taped)
    found = _C._backward(tangents, tuple(seeds), True, create_graph, ins, False, True)
    return [(level, t) for t in found]


def _with_tangent(gradient: Any, extra: tuple[int, Any]) -> Any:
    level, tangent = extra
    if gradient is None or tangent is None:
        return gradient
    primal, before = _C.transforms.unpack_dual(gradient, level)
    total = tangent if before is None else before + tangent
    return _C.transforms.make_dual(primal, total, level)


def _batched(
    run: Callable[[tuple[Any, ...]], tuple[Any, ...]], grads: tuple[Any, ...]
) -> tuple[Any, ...]:
    """``run`` under vmap over the first dimension of the gradients."""
    from facula.func.levels import entered

    sizes = {g.shape[:1] for g in grads if g is not None}
    if len(sizes) != 1 or sizes == {()}:
        raise ValueError(
            "is_grads_batched=True needs grad_outputs with one common first dimension, "
            f"got {sorted(map(tuple, sizes))}"
        )
    ((size,),) = sizes
    add, remove = _C.transforms.add_batch_dim, _C.transforms.remove_batch_dim
    with entered("vmap", size) as level:
        results = run(tuple(None if g is None else add(g, 0, level) for g in grads))
        return tuple(None if r is None else remove(r, level, size, 0) for r in results)


def _is_checkpoint_valid() -> bool:
    """False inside ``grad`` and ``backward(inputs=...)``, which run only a part of the graph."""
    return _C._is_checkpoint_valid()


class _Engine:
    """The part of PyTorch's engine object that programs use."""

    def queue_callback(self, callback: Any) -> None:
        """Calls ``callback()`` when the running backward pass has ended."""
        _C._queue_callback(callback)


_C.Tensor._execution_engine = Variable._execution_engine = _Engine()  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    if name in ("profiler", "profiler_util"):
        import importlib

        return importlib.import_module(f"facula.autograd.{name}")
    if name == "DeviceType":
        from facula.autograd.profiler_util import DeviceType

        return DeviceType
    raise AttributeError(f"module 'facula.autograd' has no attribute {name!r}")
