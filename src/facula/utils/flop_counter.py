"""Counts the floating-point operations of matrix products, convolutions and attention."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import facula
from facula import _C
from facula._library.namespaces import OpOverloadPacket, own_operator
from facula._library.record import Record, watch
from facula.utils._pytree import tree_map
from facula.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Sequence[int]
T = TypeVar("T", bound=Callable[..., int])

# What is counted: an operator's formula gets its arguments with shapes in the place of tensors, and
# `out_shape`; one that is marked as raw gets the arguments themselves, and `out_val`.
flop_registry: dict[Any, Callable[..., int]] = {}


def _shapes(value: Any) -> Any:
    return tree_map(lambda v: v.shape if isinstance(v, facula.Tensor) else v, value)


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    if getattr(formula, "_takes_values", False):
        return formula

    @functools.wraps(formula)
    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        return formula(*_shapes(list(args)), out_shape=_shapes(out_val), **_shapes(kwargs))

    count._takes_values = True  # type: ignore[attr-defined]
    return count


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[T], T]:
    """Adds the formula of an operator, or of several.

    Args:
        targets: operators without an overload name, such as ``facula.ops.aten.mm``.
        get_raw: whether the formula gets tensors and ``out_val`` instead of shapes and
            ``out_shape``.
    """

    def register(formula: T) -> T:
        if get_raw:
            formula._takes_values = True  # type: ignore[attr-defined]
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be an "
                    "OpOverloadPacket (such as facula.ops.mylib.foo), got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = _of_shapes(formula)
        return formula

    return register


# ---- formulas: a multiplication and an addition count as two


@register_flop_formula(facula.ops.aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *_: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of (m, k) @ (k, n)."""
    return 2 * a_shape[0] * a_shape[1] * b_shape[1]


@register_flop_formula(facula.ops.aten.addmm)
def addmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any
) -> int:
    """Of the product alone."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(facula.ops.aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Of (b, m, k) @ (b, k, n)."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(facula.ops.aten.baddbmm)
def baddbmm_flop(
    self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any
) -> int:
    """Of the products alone."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(
    x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False
) -> int:
    """Of a convolution, padding included: each weight meets each place of the smaller image."""
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * prod(places) * prod(w_shape)


@register_flop_formula(facula.ops.aten.convolution)
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *_: Any,
    out_shape: Shape,
    **kwargs: Any,
) -> int:
    """Of ``convolution``."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Of the two products of attention, masked places included."""
    *heads, queries, features = query_shape
    return 2 * prod(heads) * queries * key_shape[-2] * (features + value_shape[-1])


@register_flop_formula(facula.ops.aten.scaled_dot_product_attention)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *_: Any, **kwargs: Any
) -> int:
    """Of ``scaled_dot_product_attention``."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape
) -> int:
    """Of the scores, which are computed again, and of four products of gradients."""
    *heads, queries, features = query_shape
    pairs = prod(heads) * queries * key_shape[-2]
    return 2 * pairs * (3 * features + 2 * value_shape[-1])


# ---- what kernels stand for

_attention = facula.ops.aten.scaled_dot_product_attention
_attention_backward = own_operator("_attention_backward").overloadpacket
_convolution_backward = facula.ops.aten.convolution_backward
_recurrent = own_operator("_recurrent_layer").overloadpacket
_recurrent_backward = own_operator("_recurrent_backward").overloadpacket


@register_flop_formula([_attention_backward])
def sdpa_backward_flop(
    grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape, **kwargs: Any
) -> int:
    """Of the gradients of ``scaled_dot_product_attention``."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


@register_flop_formula([_convolution_backward])
def _convolution_gradient_flop(flop: int, **kwargs: Any) -> int:
    return flop


@register_flop_formula([_recurrent])
def _recurrent_flop(rows: int, weights: list[Shape], **kwargs: Any) -> int:
    return 2 * rows * sum(prod(w) for w in weights)


@register_flop_formula([_recurrent_backward])
def _recurrent_backward_flop(rows: int, weights: list[Shape], **kwargs: Any) -> int:
    return 2 * _recurrent_flop(rows, weights)


def _in_a_convolution_gradient() -> bool:
    node = _C._current_graph_node()
    return node is not None and node.name().startswith("ConvolutionBackward")


def _as_operator(
    name: str, args: list[Any], kwargs: dict[str, Any], out: Any
) -> tuple[OpOverloadPacket, list[Any], dict[str, Any]]:
    """The operator of PyTorch's that a kernel computes, and its arguments."""
    aten = facula.ops.aten
    if name == "linear":
        x, weight, bias = args
        rows = facula.empty(prod(x.shape[:-1]), x.shape[-1], device="meta")
        turned = weight.mT if weight.dim() == 2 else weight.unsqueeze(-1)
        return (
            (aten.mm, [rows, turned], {})
            if bias is None
            else (aten.addmm, [bias, rows, turned], {})
        )
    if name == "convolution" and _in_a_convolution_gradient():
        x, weight, transposed = args[0], args[1], args[6]
        flop = conv_flop_count(x.shape, weight.shape, out.shape, transposed)
        return _convolution_backward, [flop], {}
    if name == "_convolution_weight_gradient":
        grad = args[1]
        return _convolution_backward, [2 * grad.shape[0] * prod(grad.shape[2:]) * prod(args[2])], {}
    if name == "_attention":
        return _attention, args, kwargs
    if name == "_attention_backward":
        return _attention_backward, args[:4], {}
    if name == "_recurrent_layer":
        return _recurrent, [sum(args[9]), [args[i] for i in (3, 4, 7) if args[i] is not None]], {}
    if name == "_recurrent_backward":
        weights = [args[i] for i in (6, 7, 10) if args[i] is not None]
        return _recurrent_backward, [sum(args[14]), weights], {}
    return own_operator(name).overloadpacket, args, kwargs


class FlopCounterMode:
    """Counts the floating-point operations inside of a ``with`` block, by module and operator.

    Matrix products, convolutions, attention and recurrent layers are counted, in the forward and in
    the backward pass; a multiplication and an addition are two operations. Tensors on the meta
    device are counted like any others.

    Args:
        mods: not used.
        depth: how deep modules are shown in the table.
        display: whether the table is printed at the end of the block.
        custom_mapping: formulas of more operators, or in the place of those that there are; see
            :func:`register_flop_formula`.

    Example::

        >>> from facula.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = facula.ones(2, 3) @ facula.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it", stacklevel=2
            )
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        given = {op: _of_shapes(formula) for op, formula in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **given}
        self.mod_tracker = ModuleTracker()

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._outer = _C._set_kernel_watch(self._seen)
        self._outer_around, watch.around = watch.around, self._around
        return self

    def __exit__(self, *exc: object) -> None:
        watch.around = self._outer_around
        _C._set_kernel_watch(self._outer)
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def _seen(self, name: str, args: list[Any], kwargs: dict[str, Any], results: list[Any]) -> None:
        if self._outer is not None:
            self._outer(name, args, kwargs, results)
        out = results[0] if len(results) == 1 else tuple(results)
        operator, args, kwargs = _as_operator(name, args, kwargs, out)
        formula = self.flop_registry.get(operator)
        if formula is not None:
            self._add(operator, formula(*args, **kwargs, out_val=out))

    def _around(self, record: Record, values: list[Any], run: Callable[[], Any]) -> Any:
        """Runs an operator of the program's own; with a formula, what it does inside is hidden."""
        if self._outer_around is not None:
            outer, kernel = self._outer_around, run

            def run() -> Any:
                return outer(record, values, kernel)

        namespace, name = record.schema.name.split("::")
        operator = getattr(getattr(facula.ops, namespace), name)
        formula = self.flop_registry.get(operator)
        if formula is None:
            return run()
        former = _C._set_kernel_watch(None)
        try:
            result = run()
        finally:
            _C._set_kernel_watch(former)
        self._add(operator, record.invoke(functools.partial(formula, out_val=result), values))
        return result

    def _add(self, operator: OpOverloadPacket, flop: int) -> None:
        for module in self.mod_tracker.parents:
            self.flop_counts[module][operator] += flop

    def get_total_flops(self) -> int:
        """The sum over all operators."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By the name of a module, or ``"Global"``, and by operator."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text; modules that are deeper than ``depth`` are left out."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows: list[tuple[str, int]] = []

        def add(module: str, indent: int) -> None:
            counts = self.flop_counts[module]
            rows.append((" " * indent + module, sum(counts.values())))
            rows.extend((f"{' ' * indent} - {op}", count) for op, count in counts.items())

        modules = sorted(m for m in self.flop_counts if m != "Global" and m.count(".") < depth)
        # A module that does everything says what the line of the whole would say.
        whole = not any(sum(self.flop_counts[m].values()) >= total for m in modules)
        if whole:
            add("Global", 0)
        for module in modules:
            add(module, module.count(".") + whole)
        # One digit before the point is too few: 1001M rather than 1.001B.
        size = max(0, min(4, (len(str(total)) - 2) // 3))
        lines = [("Module", "FLOP", "% Total")]
        for name, count in rows:
            share = f"{count / total:.2%}" if total else "0%"
            number = f"{count / 1000**size:.3f}{' KMBT'[size].strip()}"
            lines.append((name, number, share))
        widths = [max(len(line[i]) for line in lines) + (2 if i else 0) for i in range(3)]
        rule = ("-" * widths[0], "-" * (widths[1] - 2), "-" * (widths[2] - 2))
        lines.insert(1, rule)
        return "\n".join(f"{a:<{widths[0]}}{b:>{widths[1]}}{c:>{widths[2]}}" for a, b, c in lines)
