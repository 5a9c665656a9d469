"""Checks that what was registered for an operator fits together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import facula
from facula._library.namespaces import OpOverload
from facula._library.record import Record, tensors_among
from facula.testing import assert_close
from facula.utils import _pytree as pytree


class OpCheckError(Exception):
    """Raised by :func:`facula.library.opcheck`."""


def _copies(tree: Any) -> Any:
    def one(leaf: Any) -> Any:
        if not isinstance(leaf, facula.Tensor):
            return leaf
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)

    return pytree.tree_map(one, tree)


def _check_schema(op: OpOverload, args: Any, kwargs: Any, options: Any) -> None:
    """Arguments are changed as declared, and results lie in memory of their own."""
    args, kwargs = _copies((args, kwargs))
    record: Record = op._record  # type: ignore[assignment]
    values = record.schema.bind(args, kwargs)
    before = [_copies(v) for v in values]
    with facula.no_grad():
        result = op(*args, **kwargs)
    for argument, old, new in zip(record.schema.arguments, before, values, strict=True):
        pairs = zip(tensors_among([old]), tensors_among([new]), strict=True)
        changed = any(not facula.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)
        if changed and not argument.is_write:
            raise OpCheckError(
                f"argument {argument.name} is not defined as mutable but was mutated"
            )
    inputs = {t.untyped_storage().data_ptr() for t in tensors_among(values) if t.numel()}
    for t in tensors_among(result if isinstance(result, tuple) else (result,)):
        aliased = any(r.alias for r in record.schema.returns)
        if t.numel() and t.untyped_storage().data_ptr() in inputs and not aliased:
            raise OpCheckError("a result is not defined to alias an argument but was aliasing one")


def _check_autograd(op: OpOverload, args: Any, kwargs: Any, options: Any) -> None:
    """With arguments that require grad, there is a derivative."""
    tensors = list(tensors_among(pytree.tree_leaves((args, kwargs))))
    if not any(t.requires_grad for t in tensors):
        return
    record: Record = op._record  # type: ignore[assignment]
    registered = record.backward or record.autograd_kernel or record.composite
    if registered is None and not record.schema.is_mutable:
        raise OpCheckError(
            "the arguments require grad, but no autograd formula was registered; use "
            "register_autograd, or give arguments that do not require grad"
        )


def _check_fake(op: OpOverload, args: Any, kwargs: Any, options: Any) -> None:
    """The meta device gives results of the same shapes, dtypes and strides."""
    args, kwargs = _copies((args, kwargs))

    def on_meta(leaf: Any) -> Any:
        return leaf.to("meta") if isinstance(leaf, facula.Tensor) else leaf

    fakes, fake_kwargs = pytree.tree_map(on_meta, (args, kwargs))
    with facula.no_grad():
        fake = op(*fakes, **fake_kwargs)
        real = op(*args, **kwargs)
    pairs = zip(pytree.tree_leaves(real), pytree.tree_leaves(fake), strict=True)
    for a, b in pairs:
        if not isinstance(a, facula.Tensor):
            continue
        for what in ("shape", "dtype", "layout"):
            if getattr(a, what) != getattr(b, what):
                raise OpCheckError(
                    f"{what} of the fake result is {getattr(b, what)}, of the real one "
                    f"{getattr(a, what)}"
                )
        if a.stride() != b.stride():
            raise OpCheckError(
                f"strides of the fake result are {b.stride()}, of the real one {a.stride()}"
            )


def _check_transforms(op: OpOverload, args: Any, kwargs: Any, options: Any) -> None:
    """Function transforms give the results and the gradients that plain calls give."""
    leaves, spec = pytree.tree_flatten(_copies((args, kwargs)))
    chosen = [i for i, x in enumerate(leaves) if isinstance(x, facula.Tensor) and x.requires_grad]
    if not chosen or op._record.schema.is_mutable:  # type: ignore[union-attr]
        return

    def call(*given: Any) -> Any:
        full = list(leaves)
        for i, value in zip(chosen, given, strict=True):
            full[i] = value
        a, k = spec.unflatten(full)
        out = [x for x in pytree.tree_leaves(op(*a, **k)) if isinstance(x, facula.Tensor)]
        return tuple(x for x in out if x.is_floating_point() or x.is_complex())

    plain = [leaves[i] for i in chosen]
    outputs = call(*plain)
    outputs = tuple(o for o in outputs if o.requires_grad)
    if not outputs:
        return
    ones = [facula.ones_like(o) for o in outputs]
    grads = facula.autograd.grad(outputs, plain, ones, allow_unused=True)
    values, pull = facula.func.vjp(call, *[p.detach() for p in plain])
    pulled = pull(tuple(facula.ones_like(v) for v in values))
    for a, b in zip(grads, pulled, strict=True):
        assert_close(facula.zeros_like(b) if a is None else a, b, **options)


_CHECKS: dict[str, Callable[..., None]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_transforms,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Checks an operator's registrations on sample arguments.

    ``test_schema``: arguments are changed only as declared. ``test_autograd_registration``: there
    is a derivative when arguments require grad. ``test_faketensor``: the meta device gives the same
    shapes, dtypes and strides. ``test_aot_dispatch_dynamic``: function transforms give the same
    gradients as plain calls.

    Args:
        op: what :func:`custom_op` returned, or an operator of ``facula.ops``.
        args: its arguments.
        kwargs: its keyword arguments.
        test_utils: which of the checks.
        raise_exception: whether to raise the first failure; otherwise it is in the result.

    Example::

        >>> @facula.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: facula.Tensor) -> facula.Tensor:
        ...     return x * 2
        >>> facula.library.opcheck(twice, (facula.ones(2),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    overload = getattr(op, "_opoverload", op)
    if not isinstance(overload, OpOverload):
        overload = overload.default
    if overload._record is None:
        raise ValueError(f"opcheck(op, ...): {overload} is an operator of Facula itself")
    chosen = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if unknown := [name for name in chosen if name not in _CHECKS]:
        raise ValueError(f"test_utils should be of {tuple(_CHECKS)}, got {unknown}")
    options = {} if atol is None and rtol is None else {"atol": atol or 0.0, "rtol": rtol or 0.0}
    results: dict[str, Any] = {}
    for name in chosen:
        try:
            _CHECKS[name](overload, args, kwargs or {}, options)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results
