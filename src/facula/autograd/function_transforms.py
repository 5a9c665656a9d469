"""autograd.Function inside of function transforms: what each kind of level makes of ``apply``.

``apply`` on tensors of a level becomes ``apply`` on what they stand for, one level further out,
and a derivative or a batch dimension at this one; on plain tensors it runs ``forward``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import facula
from facula import _C
from facula.autograd import forward_ad
from facula.autograd.vmapped_function import vmapped
from facula.func.batching import split_batched
from facula.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map

_transforms = _C.transforms


class VmapInfo(NamedTuple):
    """What the ``vmap`` method of a Function is told about the vmap that runs."""

    batch_size: int
    randomness: str


def apply_wrapped(cls: Any, args: tuple[Any, ...]) -> Any:
    """``cls.apply(*args)`` when there may be tensors of transforms among the arguments."""
    live = {level for level, _ in _transforms.level_stack()}

    def without_dead_levels(x: Any) -> Any:
        if _is_tensor(x):
            while _transforms.kind_of(x) and _transforms.level_of(x) not in live:
                x = _transforms.value_of(x)
        return x

    args = tree_map(without_dead_levels, args)
    levels = {_transforms.level_of(x) for x in tree_flatten(args)[0] if _is_tensor(x)} - {-1}
    separate = cls.setup_context is not facula.autograd.Function.setup_context
    if not levels:
        return _C._function_apply(_rule_of(cls), cls._backward_cls(), separate, args)
    level = max(levels)
    kind = _transforms.level_info(level)[0]
    # A forward that takes ctx can only fill the ctx of one level. With forward_ad there is one.
    if not separate and not (forward_ad.is_dual_level(level) and live == {level}):
        raise RuntimeError(
            "In order to use an autograd.Function with function transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod: "
            f"{cls.__name__}.forward takes no ctx then, and {cls.__name__}.setup_context(ctx, "
            "inputs, output) fills it."
        )
    return {"grad": _apply_recorded, "jvp": _apply_dual, "vmap": _apply_batched}[kind](
        cls, args, level, separate
    )


class _Rule(NamedTuple):
    """Stands for a Function in ``_function_apply``, which then does not ask the transforms."""

    forward: Callable[..., Any]
    setup_context: Callable[..., Any]


def _rule_of(cls: Any) -> _Rule:
    return _Rule(cls.forward, cls.setup_context)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, _C.Tensor)


@contextmanager
def _modes(grad: bool, forward: bool) -> Iterator[None]:
    before = facula.is_grad_enabled(), _transforms.is_forward_grad_enabled()
    _C._set_grad_enabled(grad)
    _transforms.set_forward_grad_enabled(forward)
    try:
        yield
    finally:
        _C._set_grad_enabled(before[0])
        _transforms.set_forward_grad_enabled(before[1])


def _rewrapped(output: Any, values: Any, args: Any, wrap: Callable[[Any], Any]) -> Any:
    """The output at the level of the arguments. What is an input, changed in place, stays it."""
    flat_values, flat_args = tree_flatten(values)[0], tree_flatten(args)[0]
    originals = {id(v): a for v, a in zip(flat_values, flat_args, strict=True)}

    def one(x: Any) -> Any:
        if not _is_tensor(x):
            return x
        return originals[id(x)] if id(x) in originals else wrap(x)

    return tree_map(one, output)


# ---- grad levels: a node whose derivative is the Function's


def _apply_recorded(cls: Any, args: tuple[Any, ...], level: int, separate: bool) -> Any:
    outer = _transforms.modes_outside(level)

    def forward(*args: Any) -> Any:
        values = tree_map(
            lambda x: _transforms.unwrap_for_grad(x, level) if _is_tensor(x) else x, args
        )
        with _modes(*outer):
            output = cls.apply(*values)
        return _rewrapped(output, values, args, lambda x: _transforms.wrap_for_grad(x, level))

    here = _transforms.modes_at(level)
    with _modes(*here):
        return _C._function_apply(
            _Rule(forward, cls.setup_context), cls._backward_cls(), separate, args
        )


# ---- jvp levels


def _apply_dual(cls: Any, args: tuple[Any, ...], level: int, separate: bool) -> Any:
    pairs = [_transforms.unpack_dual(x, level) if _is_tensor(x) else (x, None) for x in args]
    primals = tuple(
        tree_map(lambda x: _transforms.unpack_dual(x, level)[0] if _is_tensor(x) else x, p)
        for p, _ in pairs
    )
    _, computes_tangents = _transforms.modes_at(level)
    outer = _transforms.modes_outside(level)
    ctx = cls._backward_cls()
    with _modes(*outer):
        if not any(_transforms.kind_of(p) for p in primals if _is_tensor(p)):
            output = _C._function_apply(_rule_of(cls), ctx, separate, primals)
        else:
            output = cls.apply(*primals)
            with facula.no_grad():
                cls.setup_context(ctx, primals, output)
        tangents: tuple[Any, ...] = ()
        if computes_tangents:
            tangents = _pushed(cls, ctx, pairs, output)
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    results = []
    for i, y in enumerate(outputs):
        tangent = tangents[i] if tangents else None
        results.append(_dual_result(cls, y, tangent, pairs, args, level))
    return tuple(results) if isinstance(output, (tuple, list)) else results[0]


def _pushed(cls: Any, ctx: Any, pairs: list[Any], output: Any) -> tuple[Any, ...]:
    """The tangents of the outputs, by the Function's ``jvp``."""
    given = [
        facula.zeros_like(p)
        if t is None and ctx.materialize_grads and _is_tensor(p) and _is_continuous(p)
        else t
        for p, t in pairs
    ]
    ctx._reads_for_forward = True
    try:
        tangents = cls.jvp(ctx, *given)
    finally:
        ctx._reads_for_forward = False
    if not isinstance(tangents, (tuple, list)):
        tangents = (tangents,)
    count = len(output) if isinstance(output, (tuple, list)) else 1
    if len(tangents) != count:
        raise RuntimeError(
            f"{cls.__name__}: Function's jvp returned an invalid number of forward gradients "
            f"(expected {count} but got {len(tangents)})"
        )
    constants = ctx.non_differentiable or ()
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    return tuple(
        None if any(y is c for c in constants) else t
        for y, t in zip(outputs, tangents, strict=True)
    )


def _is_continuous(x: Any) -> bool:
    return x.is_floating_point() or x.is_complex()


def _dual_result(
    cls: Any, y: Any, tangent: Any, pairs: list[Any], args: tuple[Any, ...], level: int
) -> Any:
    if not _is_tensor(y):
        return y
    if tangent is not None and not _is_tensor(tangent):
        raise TypeError(
            f"{cls.__name__}.jvp: expected Tensors or None, got {type(tangent).__name__}"
        )
    for (primal, before), arg in zip(pairs, args, strict=True):
        if primal is not y:
            continue
        if before is not None and tangent is not before:
            raise RuntimeError(
                f"{cls.__name__}: An inplace custom Function is not modifying the forward mode "
                "gradients inplace. If the forward is modifying an input inplace, then the jvp "
                "function must modify the corresponding gradient inplace."
            )
        return arg
    if tangent is None:
        return _transforms.make_dual(y, None, level)
    return forward_ad.checked_dual(y, tangent, level)


# ---- vmap levels


def _apply_batched(cls: Any, args: tuple[Any, ...], level: int, separate: bool) -> Any:
    overridden = cls.vmap is not facula.autograd.Function.vmap
    if cls.generate_vmap_rule and overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity."
        )
    if not cls.generate_vmap_rule and not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    _, batch_size, randomness = _transforms.level_info(level)
    flat, spec = tree_flatten(args)
    flat_values, flat_dims = split_batched(flat, level)
    values, dims = spec.unflatten(flat_values), spec.unflatten(flat_dims)
    info = VmapInfo(batch_size, randomness)
    _transforms.hide_levels(level, True)  # random operators inside are not for this vmap
    try:
        if cls.generate_vmap_rule:
            mapped = vmapped(cls, dims, info)
            output = mapped.apply(*values)
            out_dims = mapped.out_dims
        else:
            output, out_dims = _checked_pair(cls.vmap(info, dims, *values))
    finally:
        _transforms.hide_levels(level, False)
    flat_output, output_spec = tree_flatten(output)
    flat_out_dims = _broadcast_to_and_flatten(out_dims, output_spec)
    if flat_out_dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but output has structure "
            f"{output_spec}."
        )
    dim_of = {id(x): d for x, d in zip(flat_output, flat_out_dims, strict=True)}

    def wrap(x: Any) -> Any:
        dim = dim_of[id(x)]
        return x if dim is None else _transforms.add_batch_dim(x, dim, level)

    return _rewrapped(output, values, args, wrap)


def _checked_pair(result: Any) -> tuple[Any, Any]:
    message = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        "structure compatible with the output. "
    )
    if not isinstance(result, tuple):
        raise RuntimeError(f"{message}Got a {type(result)} instead")
    if len(result) != 2:
        raise RuntimeError(f"{message}Got {len(result)} returns instead")
    return result
