"""jacrev, jacfwd and hessian: all entries of a derivative, by vmap over vectors of a basis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import facula
from facula.func.arguments import ArgNums, check_real, positions_of, select
from facula.func.batching import vmap
from facula.func.forward_mode import jvp_by
from facula.func.reverse_mode import vjp_by
from facula.utils._pytree import tree_flatten, tree_leaves, tree_map


def jacrev(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that computes the Jacobian of ``func``, a row (output element) at a time.

    Args:
        func: takes real tensors, or trees of them, and returns a tree of real tensors, or with
            ``has_aux`` a tuple of that and another tree.
        argnums: the argument to differentiate by, or a tuple of several.
        has_aux: return ``(jacobian, aux)``.
        chunk_size: compute at most so many rows at once, to save memory. With 1 the rows are
            computed one by one, without vmap.

    The Jacobian of an output by an input has the dimensions of both, those of the output first. It
    comes in the structure of the output; each leaf holds the structure of the argument.

    Example::

        >>> facula.func.jacrev(lambda x: x ** 2)(facula.tensor([1., 2.]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        check_real("jacrev", args, is_input=True)
        output, vjp_fn, *aux = vjp_by(func, args, argnums, has_aux)
        outputs, output_spec = tree_flatten(output)
        check_real("jacrev", outputs, is_input=False)
        inputs, input_spec = tree_flatten(select(args, positions_of(argnums, len(args))))
        pull = vjp_fn if chunk_size == 1 else vmap(vjp_fn)

        rows: list[list[Any]] = []  # by chunk and then by input
        for basis in unit_vectors(outputs, chunk_size):
            if chunk_size == 1:
                basis = [b.squeeze(0) for b in basis]
            products = tree_leaves(pull(output_spec.unflatten(basis)))
            rows.append([p.unsqueeze(0) for p in products] if chunk_size == 1 else products)

        by_input = []
        for x, chunks in zip(inputs, zip(*rows, strict=True), strict=True):
            joined = chunks[0] if len(chunks) == 1 else facula.cat(chunks)
            parts = joined.split([y.numel() for y in outputs])
            by_input.append(
                [p.reshape(y.shape + x.shape) for p, y in zip(parts, outputs, strict=True)]
            )
        by_output = [input_spec.unflatten(column) for column in zip(*by_input, strict=True)]
        result = output_spec.unflatten(by_output)
        return (result, aux[0]) if has_aux else result

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that computes the Jacobian of ``func``, a column (input element) at a time.

    The arguments and the result are those of :func:`jacrev`; this way is the better one when there
    are more output elements than input elements.

    Args:
        func: takes real tensors, or trees of them, and returns a tree of real tensors, or with
            ``has_aux`` a tuple of that and another tree.
        argnums: the argument to differentiate by, or a tuple of several.
        has_aux: return ``(jacobian, aux)``.
        randomness: what random operators in ``func`` do; see :func:`vmap`.

    Example::

        >>> facula.func.jacfwd(lambda x: x ** 2)(facula.tensor([1., 2.]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        check_real("jacfwd", args, is_input=True)
        inputs, input_spec = tree_flatten(select(args, positions_of(argnums, len(args))))
        (basis,) = unit_vectors(inputs)

        def push(tangents: Any) -> Any:
            output, derivative, *aux = jvp_by(func, args, tangents, argnums, False, has_aux)
            check_real("jacfwd", output, is_input=False)
            return derivative, aux

        derivative, aux = vmap(push, randomness=randomness)(input_spec.unflatten(basis))
        columns, output_spec = tree_flatten(derivative)
        by_output = []
        for column in columns:
            parts = column.movedim(0, -1).split([x.numel() for x in inputs], -1)
            by_output.append(
                input_spec.unflatten(
                    [p.reshape(p.shape[:-1] + x.shape) for p, x in zip(parts, inputs, strict=True)]
                )
            )
        result = output_spec.unflatten(by_output)
        # aux depends on no tangent: every entry of the batch is the same.
        return (result, tree_map(lambda x: x[0], aux[0])) if has_aux else result

    return jacobian


def hessian(func: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """A function that computes the Hessian of ``func``, forward over reverse mode.

    Args:
        func: takes real tensors, or trees of them, and returns a tree of real tensors.
        argnums: the argument to differentiate by, or a tuple of several.

    Example::

        >>> facula.func.hessian(lambda x: (x ** 3).sum())(facula.tensor([1., 2.]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def unit_vectors(tensors: Sequence[Any], chunk_size: int | None = None) -> Iterator[list[Any]]:
    """The unit vectors of the space of all tensors together, `chunk_size` of them at a time.

    Each chunk holds, for every tensor, a batch of what it has in common with the unit vectors.
    """
    total = sum(t.numel() for t in tensors)
    step = min(chunk_size or total, total) or 1
    for start in range(0, max(total, 1), step):
        count = min(step, total - start)
        chunk, first = [], 0
        for t in tensors:
            vectors = facula.zeros(count, t.numel(), dtype=t.dtype, device=t.device)
            vectors.diagonal(start - first).fill_(1)
            chunk.append(vectors.reshape(count, *t.shape))
            first += t.numel()
        yield chunk
