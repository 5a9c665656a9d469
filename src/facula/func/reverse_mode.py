"""grad, grad_and_value and vjp: derivatives from outputs back to inputs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import facula
from facula import _C
from facula.autograd.graph import disable_saved_tensors_hooks
from facula.func.arguments import ArgNums, check_tensor_outputs, positions_of, select, split_aux
from facula.func.levels import entered, is_recorded, on_tensors
from facula.utils._pytree import tree_flatten, tree_map, tree_map_, treespec_pprint

_transforms = _C.transforms

_NO_HOOKS = (
    "facula.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. "
    "Please open an issue with your use case."
)


def grad(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that computes the gradient of ``func``.

    Args:
        func: takes tensors, or trees of them, and returns a tensor with one element and no
            dimensions, or with ``has_aux`` a tuple of that and any tree of tensors.
        argnums: the argument to differentiate by, or a tuple of several.
        has_aux: also return the second entry of what ``func`` returns.

    The result takes what ``func`` takes. It returns gradients in the structure of the argument, in
    a tuple for a tuple of arguments, and with ``has_aux`` a tuple ``(gradients, aux)``.

    Inside of ``func``, ``no_grad`` holds for this gradient; around the call it does not.

    Example::

        >>> square = lambda x: (x ** 2).sum()
        >>> facula.func.grad(square)(facula.tensor([1., 2.]))
        tensor([2., 4.])
        >>> facula.func.grad(facula.func.grad(lambda x: x ** 3))(facula.tensor(2.))
        tensor(12.)
        >>> both = facula.func.grad(lambda x, y: x * y, argnums=(0, 1))
        >>> both(facula.tensor(2.), facula.tensor(3.))
        (tensor(3.), tensor(2.))
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        result = _gradient_and_value(func, argnums, has_aux, args, kwargs)
        if has_aux:
            gradients, (_, aux) = result
            return gradients, aux
        return result[0]

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that computes the gradient of ``func`` and what ``func`` returns.

    The arguments are those of :func:`grad`. The function returns ``(gradients, value)``, or with
    ``has_aux`` ``(gradients, (value, aux))``.

    Example::

        >>> square = lambda x: (x ** 2).sum()
        >>> facula.func.grad_and_value(square)(facula.tensor([1., 2.]))
        (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        return _gradient_and_value(func, argnums, has_aux, args, kwargs)

    return gradient_and_value


def _gradient_and_value(
    func: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    api = "grad_and_value(f)(*args)"
    with (
        disable_saved_tensors_hooks(_NO_HOOKS),
        entered("grad") as level,
        facula.enable_grad(),
    ):
        args, kwargs = tree_map(on_tensors(_transforms.wrap_for_grad, level), (args, kwargs))
        inputs = select(args, positions_of(argnums, len(args)))
        tree_map_(_start_recording, inputs)
        output, aux = split_aux(func(*args, **kwargs), has_aux, api)
        if not isinstance(output, _C.Tensor):
            raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim() != 0:
            raise RuntimeError(
                f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        value = _unwrapped(output, level)
        # The tapes outside follow this pass only if they have followed the function.
        outer = is_recorded(value)
        flat, spec = tree_flatten(inputs)
        gradients = spec.unflatten(_gradients([output], flat, None, outer, outer))
        gradients, aux = _unwrapped(gradients, level), _unwrapped(aux, level) if has_aux else None
    return gradients, (value, aux) if has_aux else value


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """What ``func`` returns, and a function that multiplies vectors by its Jacobian.

    Args:
        func: takes tensors, or trees of them, and returns a tree of tensors, or with ``has_aux`` a
            tuple of that and another tree.
        primals: the arguments of ``func``; it is differentiated by all of them.
        has_aux: also return the second entry of what ``func`` returns.

    Returns:
        ``(output, vjp_fn)``, or with ``has_aux`` ``(output, vjp_fn, aux)``. ``vjp_fn`` takes
        cotangents in the structure of the output and returns a tuple with a product for each
        primal. It can be called any number of times.

    Example::

        >>> x = facula.tensor([1., 2.])
        >>> output, vjp_fn = facula.func.vjp(lambda x: (x ** 2, x.sum()), x)
        >>> output
        (tensor([1., 4.]), tensor(3.))
        >>> vjp_fn((facula.tensor([1., 0.]), facula.tensor(10.)))
        (tensor([12., 10.]),)
    """
    return vjp_by(func, primals, None, has_aux)


def vjp_by(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: ArgNums | None, has_aux: bool
) -> Any:
    """``vjp`` by some of the arguments; with None by all, in a tuple."""
    api = "vjp(f, *primals)"
    with (
        disable_saved_tensors_hooks(_NO_HOOKS),
        entered("grad") as level,
        facula.enable_grad(),
    ):
        args = tree_map(on_tensors(_transforms.wrap_for_grad, level), args)
        inputs = args if argnums is None else select(args, positions_of(argnums, len(args)))
        tree_map_(_start_recording, inputs)
        output, aux = split_aux(func(*args), has_aux, api)
        if has_aux:
            aux = _unwrapped(aux, level)
        flat_outputs, output_spec = tree_flatten(output)
        check_tensor_outputs(flat_outputs, api)
        for tensor in flat_outputs:
            if not (tensor.is_floating_point() or tensor.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {tensor.dtype}"
                )
        flat_inputs, input_spec = tree_flatten(inputs)
        value = _unwrapped(output, level)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        flat_cotangents, spec = tree_flatten(cotangents)
        if spec != output_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {treespec_pprint(spec)}, "
                f"primal output: {treespec_pprint(output_spec)}"
            )
        create = facula.is_grad_enabled() if create_graph is None else create_graph
        inferring = facula.is_inference_mode_enabled()
        with facula.inference_mode(False) if inferring else contextlib.nullcontext():
            return input_spec.unflatten(
                _gradients(flat_outputs, flat_inputs, flat_cotangents, retain_graph, create)
            )

    return (value, vjp_fn, aux) if has_aux else (value, vjp_fn)


def _start_recording(x: Any) -> None:
    if not isinstance(x, _C.Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    x.requires_grad_()


def _unwrapped(tree: Any, level: int) -> Any:
    """The values behind the tensors of the level."""

    def unwrap(x: Any) -> Any:
        if not isinstance(x, _C.Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return _transforms.unwrap_for_grad(x, level)

    return tree_map(unwrap, tree)


def _gradients(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any] | None,
    retain_graph: bool,
    create_graph: bool,
) -> list[Any]:
    """autograd.grad with zeros for inputs, or all of them, that have no influence."""
    recorded = [i for i, output in enumerate(outputs) if output.requires_grad]
    if not recorded:
        return [facula.zeros_like(x) for x in inputs]
    gradients = facula.autograd.grad(
        [outputs[i] for i in recorded],
        inputs,
        None if cotangents is None else [cotangents[i] for i in recorded],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [
        facula.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs, strict=True)
    ]
