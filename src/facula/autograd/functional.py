"""Jacobians, Hessians and their products with vectors, on the tape of plain tensors.

``facula.func`` has the same as function transforms, which also nest.

Example::

    >>> from facula.autograd.functional import jacobian
    >>> jacobian(lambda x: x ** 2, facula.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import facula

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_OUTPUTS = "outputs of the user-provided function"
_STRATEGIES = ("forward-mode", "reverse-mode")
Tensors = tuple[Any, ...]


# ---- inputs and outputs: a tensor, or a tuple of them


def _as_tuple(value: Any, name: str, api: str) -> tuple[bool, Tensors]:
    """(whether it is a tuple, the value as a tuple), after a check that it holds tensors."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for i, x in enumerate(values):
        if not isinstance(x, facula.Tensor):
            place = f"value at index {i}" if is_tuple else f"given {name}"
            raise TypeError(
                f"The {name} given to {api} must be either a Tensor or a tuple of Tensors but the "
                f"{place} has type {type(x)}."
            )
    return is_tuple, values


def _as_given(values: Any, is_tuple: bool) -> Any:
    return tuple(values) if is_tuple else values[0]


def _as_given_twice(rows: Any, outer_is_tuple: bool, inner_is_tuple: bool) -> Any:
    return _as_given([_as_given(row, inner_is_tuple) for row in rows], outer_is_tuple)


def _new_inputs(tensors: Tensors, create_graph: bool, record: bool) -> Tensors:
    """New tensors in place of the inputs, so that the function's use of its arguments can be told
    from its use of the same tensors by another way."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(record)
        for x in tensors
    )


def _results(tensors: Any, create_graph: bool) -> Tensors:
    return tuple(tensors) if create_graph else tuple(x.detach() for x in tensors)


def _vector(
    v: Any, like: Tensors, like_is_tuple: bool, api: str, subject: str, create_graph: bool
) -> Tensors | None:
    """``v`` after a check that it fits the tensors `like`; None where ones are meant."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {subject} a single Tensor with a single element."
            )
        return None
    _, vs = _as_tuple(v, "v", api)
    vs = _new_inputs(vs, create_graph, record=False)
    if len(vs) != len(like):
        if like_is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (x, wanted) in enumerate(zip(vs, like, strict=True)):
        if x.shape != wanted.shape:
            entry = f"Entry {i} in " if like_is_tuple else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {wanted.shape} but got {x.shape}."
            )
    return vs


_ARGUMENT_OF_V = "the input to the user-provided function is"


def _single_output(output: Any, api: str, strict: bool) -> Any:
    is_tuple, outputs = _as_tuple(output, _OUTPUTS, api)
    _check_outputs(outputs, strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {api} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {api} should contain a single element"
        )
    return outputs[0]


# ---- what strict=True refuses


def _check_outputs(outputs: Tensors, strict: bool) -> None:
    for i, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                "must be computed in a differentiable manner from the input when running in strict "
                "mode."
            )


def _check_gradients(gradients: Sequence[Any], strict: bool, dependence: str) -> None:
    """Raises for the first gradient that is missing or, by `dependence`, constant."""
    for i, gradient in enumerate(gradients):
        if strict and gradient is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode."
            )
        if strict and not gradient.requires_grad:
            raise RuntimeError(dependence.format(i))


_CONSTANT_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided "
    "function. This is not allowed in strict mode."
)
_CONSTANT_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on the "
    "inputs (this would be violated by a linear function for example)."
)
_MISSING = {
    "jacobian": "The output of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "jacobian by v": "The gradient with respect to the input is independent of entry {} in the "
    "grad_outputs when using the double backward trick to compute forward mode gradients. This is "
    "not allowed in strict mode.",
    "hessian": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "hessian by v": "The hessian of the user-provided function is independent of entry {} in the "
    "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
    "backward trick to replace forward mode AD.",
}


def _filled(
    gradients: Sequence[Any], like: Tensors, strict: bool, create_graph: bool, what: str
) -> Tensors:
    """The gradients with zeros for those that are missing."""
    result = []
    for i, (gradient, x) in enumerate(zip(gradients, like, strict=True)):
        if gradient is None:
            if strict:
                raise RuntimeError(_MISSING[what].format(i))
            gradient = facula.zeros_like(x)
        elif strict and create_graph and not gradient.requires_grad:
            raise RuntimeError(
                f"The {what.split()[0]} of the user-provided function is independent of input {i}. "
                "This is not allowed in strict mode when create_graph=True."
            )
        result.append(gradient)
    return tuple(result)


def _gradients(
    outputs: Sequence[Any],
    inputs: Tensors,
    grad_outputs: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> Tensors:
    """autograd.grad of those outputs that require grad; None for inputs without influence."""
    grads = [None] * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [
        (y, g) for y, g in zip(outputs, grads, strict=True) if y is not None and y.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    return facula.autograd.grad(
        [y for y, _ in pairs],
        inputs,
        [g for _, g in pairs],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
        is_grads_batched=batched,
    )


# ---- products


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """What ``func`` returns, and a vector times its Jacobian.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: a vector in the shape of the output; may be left out for an output of one element.
        create_graph: record the computation, so that the results can be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        ``(output, product)``; the product has the shape of the inputs.

    Example::

        >>> from facula.autograd.functional import vjp
        >>> vjp(lambda x: x ** 2, facula.tensor([1., 2.]), facula.tensor([1., 10.]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with facula.enable_grad():
        in_is_tuple, xs = _as_tuple(inputs, "inputs", "vjp")
        xs = _new_inputs(xs, create_graph, record=True)
        out_is_tuple, ys = _as_tuple(func(*xs), _OUTPUTS, "vjp")
        _check_outputs(ys, strict)
        vs = _vector(v, ys, out_is_tuple, "vjp", "the user-provided function returns", create_graph)
    with facula.set_grad_enabled(create_graph or facula.is_grad_enabled()):
        gradients = _gradients(ys, xs, vs, create_graph)
        product = _filled(gradients, xs, strict, create_graph, "jacobian")
    return (
        _as_given(_results(ys, create_graph), out_is_tuple),
        _as_given(_results(product, create_graph), in_is_tuple),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """What ``func`` returns, and its Jacobian times a vector, by two backward passes.

    ``facula.func.jvp`` is faster: it needs no backward pass.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: a vector in the shape of the inputs; may be left out for an input of one element.
        create_graph: record the computation, so that the results can be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.

    Returns:
        ``(output, product)``; the product has the shape of the output.

    Example::

        >>> from facula.autograd.functional import jvp
        >>> jvp(lambda x: x ** 2, facula.tensor([1., 2.]), facula.tensor([1., 10.]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with facula.enable_grad():
        in_is_tuple, xs = _as_tuple(inputs, "inputs", "jvp")
        xs = _new_inputs(xs, create_graph, record=True)
        vs = _vector(v, xs, in_is_tuple, "jvp", _ARGUMENT_OF_V, create_graph)
        out_is_tuple, ys = _as_tuple(func(*xs), _OUTPUTS, "jvp")
        _check_outputs(ys, strict)
        # The gradient is linear in the gradient of the outputs; its derivative by that is the
        # transposed, that is the Jacobian itself.
        dummies = tuple(facula.zeros_like(y, requires_grad=True) for y in ys)
        linear = _gradients(ys, xs, dummies, create_graph=True)
        _check_gradients(linear, strict, _CONSTANT_GRADIENT)
    with facula.set_grad_enabled(create_graph or facula.is_grad_enabled()):
        gradients = _gradients(linear, dummies, vs, create_graph)
        product = _filled(gradients, ys, strict, create_graph, "jacobian by v")
    return (
        _as_given(_results(ys, create_graph), out_is_tuple),
        _as_given(_results(product, create_graph), out_is_tuple),
    )


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """What a scalar function returns, and a vector times its Hessian.

    Args:
        func: takes tensors and returns a tensor with one element.
        inputs: a tensor or a tuple of tensors.
        v: a vector in the shape of the inputs; may be left out for an input of one element.
        create_graph: record the computation, so that the results can be differentiated.
        strict: raise where a derivative does not depend on an input, instead of giving zeros.

    Returns:
        ``(output, product)``; the product has the shape of the inputs.

    Example::

        >>> from facula.autograd.functional import vhp
        >>> vhp(lambda x: (x ** 3).sum(), facula.tensor([1., 2.]), facula.tensor([1., 10.]))
        (tensor(9.), tensor([  6., 120.]))
    """
    with facula.enable_grad():
        in_is_tuple, xs = _as_tuple(inputs, "inputs", "vhp")
        xs = _new_inputs(xs, create_graph, record=True)
        vs = _vector(v, xs, in_is_tuple, "vhp", _ARGUMENT_OF_V, create_graph)
        y = _single_output(func(*xs), "vhp", strict)
        gradient = _gradients((y,), xs, create_graph=True)
        _check_gradients(gradient, strict, _CONSTANT_JACOBIAN)
    with facula.set_grad_enabled(create_graph or facula.is_grad_enabled()):
        rows = _gradients(gradient, xs, vs, create_graph)
        product = _filled(rows, xs, strict, create_graph, "hessian")
    return (
        _results((y,), create_graph)[0],
        _as_given(_results(product, create_graph), in_is_tuple),
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """What a scalar function returns, and its Hessian times a vector.

    Hessians of functions with continuous second derivatives are symmetric; :func:`vhp` gives the
    same for them, with one backward pass less.

    Args:
        func: takes tensors and returns a tensor with one element.
        inputs: a tensor or a tuple of tensors.
        v: a vector in the shape of the inputs; may be left out for an input of one element.
        create_graph: record the computation, so that the results can be differentiated.
        strict: raise where a derivative does not depend on an input, instead of giving zeros.

    Returns:
        ``(output, product)``; the product has the shape of the inputs.

    Example::

        >>> from facula.autograd.functional import hvp
        >>> hvp(lambda x: (x ** 3).sum(), facula.tensor([1., 2.]), facula.tensor([1., 10.]))
        (tensor(9.), tensor([  6., 120.]))
    """
    with facula.enable_grad():
        in_is_tuple, xs = _as_tuple(inputs, "inputs", "hvp")
        xs = _new_inputs(xs, create_graph, record=True)
        vs = _vector(v, xs, in_is_tuple, "hvp", _ARGUMENT_OF_V, create_graph)
        y = _single_output(func(*xs), "hvp", strict)
        gradient = _gradients((y,), xs, create_graph=True)
        _check_gradients(gradient, strict, _CONSTANT_JACOBIAN)
        dummies = tuple(facula.zeros_like(x, requires_grad=True) for x in xs)
        linear = _gradients(gradient, xs, dummies, create_graph=True)
    with facula.set_grad_enabled(create_graph or facula.is_grad_enabled()):
        columns = _gradients(linear, dummies, vs, create_graph)
        product = _filled(columns, xs, strict, create_graph, "hessian by v")
    return (
        _results((y,), create_graph)[0],
        _as_given(_results(product, create_graph), in_is_tuple),
    )


# ---- all entries


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function.

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where an output does not depend on an input, instead of giving zeros.
        vectorize: compute all rows in one pass, by vmap, instead of one after the other.
        strategy: ``"reverse-mode"``, or with ``vectorize`` also ``"forward-mode"``, which is faster
            when there are more outputs than inputs.

    Returns:
        The Jacobian of an output by an input, with the dimensions of both, those of the output
        first: a tensor, a tuple where there are several outputs or several inputs, and
        ``jacobian[output][input]`` where there are several of both.

    Example::

        >>> from facula.autograd.functional import jacobian
        >>> jacobian(lambda x, y: x * y, (facula.tensor([1., 2.]), facula.tensor(3.)))
        (tensor([[3., 0.],
                [0., 3.]]), tensor([1., 2.]))
    """
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with facula.enable_grad():
        in_is_tuple, xs = _as_tuple(inputs, "inputs", "jacobian")
        xs = _new_inputs(xs, create_graph, record=True)
        out_is_tuple, ys = _as_tuple(func(*xs), _OUTPUTS, "jacobian")
        _check_outputs(ys, strict)
        if not vectorize:
            rows = [_rows_one_by_one(i, ys, xs, create_graph, strict) for i in range(len(ys))]
        elif strict:
            raise RuntimeError(
                "facula.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        else:
            rows = _rows_at_once(ys, xs, create_graph)
        return _as_given_twice(
            [_results(row, create_graph) for row in rows], out_is_tuple, in_is_tuple
        )


def _rows_one_by_one(
    which: int, ys: Tensors, xs: Tensors, create_graph: bool, strict: bool
) -> list[Any]:
    """The Jacobians of one output by all inputs, a backward pass for each of its elements."""
    y, rows = ys[which], []
    for element in y.reshape(-1).unbind():
        row = _gradients((element,), xs, None, create_graph, retain_graph=True)
        for i, gradient in enumerate(row):
            if strict and gradient is None:
                raise RuntimeError(
                    f"Output {which} of the user-provided function is independent of input {i}. "
                    "This is not allowed in strict mode."
                )
            if strict and create_graph and not gradient.requires_grad:
                raise RuntimeError(
                    "The jacobian of the user-provided function is independent of input "
                    f"{which}. This is not allowed in strict mode when create_graph=True."
                )
        rows.append(
            [facula.zeros_like(x) if g is None else g for g, x in zip(row, xs, strict=True)]
        )
    if not rows:
        return [x.new_zeros(y.shape + x.shape) for x in xs]
    columns = zip(*rows, strict=True)
    return [
        facula.stack(column).reshape(y.shape + x.shape)
        for column, x in zip(columns, xs, strict=True)
    ]


def _rows_at_once(ys: Tensors, xs: Tensors, create_graph: bool) -> list[list[Any]]:
    from facula.func.jacobians import unit_vectors

    counts = [y.numel() for y in ys]
    (basis,) = unit_vectors(ys)
    gradients = _gradients(ys, xs, basis, create_graph, batched=True)
    by_input = []
    for gradient, x in zip(gradients, xs, strict=True):
        if gradient is None:
            gradient = facula.zeros_like(x).expand((sum(counts), *x.shape))
        parts = gradient.split(counts)
        by_input.append([p.reshape(y.shape + x.shape) for p, y in zip(parts, ys, strict=True)])
    return [list(row) for row in zip(*by_input, strict=True)]


def _forward_jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    from facula.func import jvp, vmap
    from facula.func.jacobians import unit_vectors

    for name, given in (("create_graph", create_graph), ("strict", strict)):
        if given:
            raise (NotImplementedError if name == "create_graph" else RuntimeError)(
                f"facula.autograd.functional.jacobian: `{name}=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                f'`{name}=False` or `strategy="reverse-mode"`.'
            )
    in_is_tuple, xs = _as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
            "implemented for `vectorize=True`."
        )
    out_is_tuple = False

    def outputs(*xs: Any) -> Tensors:
        nonlocal out_is_tuple
        out_is_tuple, ys = _as_tuple(func(*xs), _OUTPUTS, "jacobian")
        return ys

    (basis,) = unit_vectors(xs)
    columns = vmap(lambda *tangents: jvp(outputs, xs, tangents)[1])(*basis)
    rows = []
    for column in columns:
        parts = column.movedim(0, -1).split([x.numel() for x in xs], -1)
        rows.append([p.reshape(p.shape[:-1] + x.shape) for p, x in zip(parts, xs, strict=True)])
    return _as_given_twice(rows, out_is_tuple, in_is_tuple)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function.

    Args:
        func: takes tensors and returns a tensor with one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where a derivative does not depend on an input, instead of giving zeros.
        vectorize: compute all rows in one pass, by vmap, instead of one after the other.
        outer_jacobian_strategy: how the gradient is differentiated: ``"reverse-mode"``, or with
            ``vectorize`` also ``"forward-mode"``.

    Returns:
        A tensor, or for a tuple of inputs ``hessian[i][j]``, with the dimensions of input i and
        then those of input j.

    Example::

        >>> from facula.autograd.functional import hessian
        >>> hessian(lambda x: (x ** 3).sum(), facula.tensor([1., 2.]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    is_tuple, xs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    forward = outer_jacobian_strategy == "forward-mode"

    def scalar(*xs: Any) -> Any:
        return _single_output(func(*xs), "hessian", strict).reshape(())

    def gradient(*xs: Any) -> Any:
        if forward:  # a tape inside of the forward mode
            from facula.func import grad

            return grad(scalar, argnums=tuple(range(len(xs))))(*xs)
        result = jacobian(scalar, xs, create_graph=True)
        _check_gradients(result, strict, _CONSTANT_JACOBIAN)
        return result

    result = jacobian(
        gradient, xs, create_graph, strict, vectorize, strategy=outer_jacobian_strategy
    )
    return _as_given_twice(result, is_tuple, is_tuple)
