"""jvp and linearize: derivatives from inputs forward to outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import _C
from facula.autograd.forward_ad import _set_fwd_grad_enabled, checked_dual
from facula.func.arguments import (
    ArgNums,
    check_tensor_outputs,
    check_tensors,
    positions_of,
    replace,
    select,
    split_aux,
)
from facula.func.levels import entered, on_tensors
from facula.func.reverse_mode import vjp
from facula.utils._pytree import TreeSpec, tree_flatten, tree_map, treespec_leaf

_transforms = _C.transforms

_API = "jvp(f, primals, tangents)"


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """What ``func`` returns, and its Jacobian times a vector, computed along with it.

    Args:
        func: takes tensors, or trees of them, and returns a tree of tensors, or with ``has_aux`` a
            tuple of that and another tree.
        primals: a tuple of the arguments of ``func``.
        tangents: the direction to differentiate in, in the structure and the shapes of the primals.
        strict: raise when an output does not depend on the primals, instead of giving zeros.
        has_aux: also return the second entry of what ``func`` returns.

    Returns:
        ``(output, tangents)``, or with ``has_aux`` ``(output, tangents, aux)``.

    Example::

        >>> x, t = facula.tensor([1., 2.]), facula.tensor([1., 10.])
        >>> facula.func.jvp(lambda x: x ** 2, (x,), (t,))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    return jvp_by(func, primals, tangents, None, strict, has_aux)


def jvp_by(
    func: Callable[..., Any],
    args: Any,
    tangents: Any,
    argnums: ArgNums | None,
    strict: bool,
    has_aux: bool,
) -> Any:
    """``jvp`` by some of the arguments; with None by all, in a tuple."""
    if not isinstance(args, tuple):
        raise RuntimeError(
            f"{_API}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    positions = None if argnums is None else positions_of(argnums, len(args))
    primals = args if positions is None else select(args, positions)
    flat_primals, spec = tree_flatten(primals)
    flat_tangents, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{_API}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {tangent_spec}"
        )
    check_tensors(flat_primals, _API, "primals")
    check_tensors(flat_tangents, _API, "tangents")
    with entered("jvp") as level, _set_fwd_grad_enabled(True):
        duals = spec.unflatten(
            [checked_dual(p, t, level) for p, t in zip(flat_primals, flat_tangents, strict=True)]
        )
        if positions is not None:
            constant = on_tensors(lambda x, level: _transforms.make_dual(x, None, level), level)
            duals = replace(tree_map(constant, args), positions, duals)
        output, aux = split_aux(func(*duals), has_aux, _API)
        if has_aux:
            aux = tree_map(lambda x: _primal_of(x, level), aux)
        flat_output, output_spec = tree_flatten(output)
        check_tensor_outputs(flat_output, _API)
        pairs = [_unpacked(x, level, strict) for x in flat_output]
    value = output_spec.unflatten([p for p, _ in pairs])
    derivative = output_spec.unflatten([t for _, t in pairs])
    return (value, derivative, aux) if has_aux else (value, derivative)


def _primal_of(x: Any, level: int) -> Any:
    if not isinstance(x, _C.Tensor):
        raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
    return _transforms.unpack_dual(x, level)[0]


def _unpacked(dual: Any, level: int, strict: bool) -> tuple[Any, Any]:
    primal, tangent = _transforms.unpack_dual(dual, level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        tangent = facula.zeros_like(primal)
    return primal, tangent


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """What ``func`` returns at the primals, and its linear approximation there.

    ``func`` runs once. The linear function keeps what was computed, so that applying it to many
    tangents costs less than as many calls of :func:`jvp`, and takes more memory.

    Args:
        func: takes tensors, or trees of them, and returns a tree.
        primals: the arguments of ``func``.

    Returns:
        ``(output, jvp_fn)``. ``jvp_fn`` takes tangents in the structure of the primals and returns
        their product with the Jacobian, in the structure of the output.

    Example::

        >>> output, jvp_fn = facula.func.linearize(facula.sin, facula.zeros(2))
        >>> output
        tensor([0., 0.])
        >>> jvp_fn(facula.tensor([1., 2.]))
        tensor([1., 2.])
    """
    flat_primals, spec = tree_flatten(primals)
    check_tensors(flat_primals, "linearize(f, *primals)", "primals")
    expected = [(p.shape, p.device, p.dtype) for p in flat_primals]
    output_spec: TreeSpec = treespec_leaf()
    template: list[Any] = []  # the outputs, where tensors are left out
    kinds: list[str] = []

    def run(*flat: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        nonlocal output_spec
        outputs, output_spec = tree_flatten(func(*spec.unflatten(flat)))
        kinds[:] = map(_kind, outputs)
        template[:] = [None if k else x for k, x in zip(kinds, outputs, strict=True)]
        chosen = [
            tuple(x for k, x in zip(kinds, outputs, strict=True) if k == kind)
            for kind in ("varying", "constant")
        ]
        return chosen[0], chosen[1]

    # The vjp is linear in the cotangents, so its own vjp, at any of them, is the jvp.
    varying, vjp_fn, constants = vjp(run, *flat_primals, has_aux=True)
    _, transposed = vjp(vjp_fn, tuple(facula.zeros_like(x) for x in varying))

    def put_together(varying: Any, constants: Any) -> Any:
        rest = {"varying": iter(varying), "constant": iter(constants)}
        leaves = [next(rest[k]) if k else x for k, x in zip(kinds, template, strict=True)]
        return output_spec.unflatten(leaves)

    def jvp_fn(*tangents: Any) -> Any:
        flat_tangents, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {tangent_spec} to have the same argspec as the primals "
                f"{spec}"
            )
        for i, (tangent, properties) in enumerate(zip(flat_tangents, expected, strict=True)):
            given = (tangent.shape, tangent.device, tangent.dtype)
            for name, got, wanted in zip(
                ("shape", "device", "dtype"), given, properties, strict=True
            ):
                if got != wanted:
                    raise RuntimeError(
                        f"tangent:{i} with {name} {got} in flattened pytree doesn't match the "
                        f"{name} {wanted} of the corresponding primal."
                    )
        (result,) = transposed(tuple(flat_tangents))
        return put_together(result, map(facula.zeros_like, constants))

    return put_together(varying, constants), jvp_fn


def _kind(x: Any) -> str:
    if not isinstance(x, _C.Tensor):
        return ""
    return "varying" if x.is_floating_point() or x.is_complex() else "constant"
