"""Operators applied to every tensor of a list: ``facula._foreach_add`` and its kin.

They are private in PyTorch too, but optimizers that people write call them. Each is a loop over
the operator of one tensor, so derivatives, dtypes and errors are that operator's. Arithmetic on
dense CUDA tensors of one dtype is one launch for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from facula import _C
from facula._C import Tensor

# One argument.
_UNARY = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp"),
    *("expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal"),
    *("round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
# A second one: a number or tensor for all, or one for each.
_BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "pow": "pow",
    "maximum": "clamp_min",
    "minimum": "clamp_max",
    "clamp_min": "clamp_min",
    "clamp_max": "clamp_max",
}


def _each(name: str, tensors: Sequence[Any], given: Any, what: str) -> Sequence[Any]:
    """``given`` for each tensor: a list as it is, anything else repeated."""
    if not isinstance(given, (list, tuple)):
        return [given] * len(tensors)
    if len(given) != len(tensors) and given and not isinstance(given[0], Tensor):
        raise RuntimeError(
            f"{name}(): Tensor list must have same number of elements as scalar list. Got "
            f"{len(tensors)} and {len(given)} in {what}"
        )
    if len(given) != len(tensors):
        raise RuntimeError(
            f"{name}(): Tensor lists must have the same number of tensors, got {len(tensors)} and "
            f"{len(given)} in {what}"
        )
    return given


def _check(name: str, tensors: Any) -> Sequence[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        kind = type(tensors).__name__
        raise TypeError(f"{name}(): argument 'self' must be a list of Tensors, not {kind}")
    if not tensors:
        raise RuntimeError(f"{name}(): Tensor list must have at least one tensor.")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise TypeError(f"{name}(): argument 'self' must be a list of Tensors, found {kind}")
    return tensors


def _at_once(
    name: str, lists: Sequence[Sequence[Any]], numbers: Sequence[Any] | None = None
) -> Sequence[Tensor] | None:
    """The results by one launch over all tensors, or None where that cannot be."""
    first = lists[0]
    if len(first) < 2 or not first[0].is_cuda:
        return None
    from facula.nn.parameter import Parameter

    if not all(type(t) in (Tensor, Parameter) for given in lists for t in given):
        return None
    if numbers is not None and not all(type(x) in (int, float) for x in numbers):
        return None
    inplace = name.endswith("_")
    formula = name.removeprefix("_foreach_").removesuffix("_")
    formula = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(formula, formula)
    if numbers is not None and formula in _NUMBERED[len(lists) - 1]:
        formula += "_number"
    return _C._list_formula(formula, inplace, lists, numbers)


# Formulas that have another form with a number: of one list, of two.
_NUMBERED = (("add", "sub", "mul", "div"), ("lerp",), ())


def _method(name: str) -> Callable[..., Any]:
    return getattr(Tensor, name)


def _unary(name: str, apply: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    def function(self: Sequence[Tensor]) -> Any:
        tensors = _check(name, self)
        results = _at_once(name, (tensors,))
        if results is None:
            results = tuple(apply(t) for t in tensors)
        return self if inplace else results

    return function


def _binary(name: str, apply: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    def function(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        if not isinstance(self, (list, tuple)) and "pow" in name:  # number ** each
            return tuple(_C._operators["pow"](self, t) for t in _check(name, other))
        tensors = _check(name, self)
        if isinstance(other, Tensor) and other.dim():
            raise RuntimeError(
                f"{name}(): scalar tensor expected to be 0 dim but it has {other.dim()} dimensions "
                f"and {other.numel()} elements."
            )
        more = {} if alpha == 1 else {"alpha": alpha}
        others = _each(name, tensors, other, "other")
        results = None
        if isinstance(others[0], Tensor):
            factors = [alpha] * len(tensors) if name.strip("_")[-3:] in ("add", "sub") else None
            if isinstance(other, (list, tuple)):
                results = _at_once(name, (tensors, others), factors)
        elif alpha == 1:
            results = _at_once(name, (tensors,), others)
        if results is None:
            results = tuple(apply(t, o, **more) for t, o in zip(tensors, others, strict=True))
        return self if inplace else results

    return function


def _pointwise(name: str, apply: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    def function(
        self: Sequence[Tensor],
        tensor1: Sequence[Tensor],
        tensor2: Sequence[Tensor],
        value: Any = 1,
        scalars: Any = None,
    ) -> Any:
        tensors = _check(name, self)
        first, second = (_each(name, tensors, t, "tensors") for t in (tensor1, tensor2))
        factors = value if scalars is None else scalars
        if isinstance(factors, Tensor):
            if factors.dim() != 1:
                raise RuntimeError(
                    f"{name}(): Expected packed scalar Tensor to be of dimension 1. Got "
                    f"{factors.dim()} instead."
                )
            factors = factors.tolist()
            if len(factors) != len(tensors):
                raise RuntimeError(
                    f"{name}(): Expected length of scalars to match input of length {len(tensors)} "
                    f"but got {len(factors)} instead."
                )
        values = _each(name, tensors, factors, "scalars")
        results = _at_once(name, (tensors, first, second), values)
        if results is None:
            rows = zip(tensors, first, second, values, strict=True)
            results = tuple(apply(t, a, b, value=v) for t, a, b, v in rows)
        return self if inplace else results

    return function


def _lerp(name: str, apply: Callable[..., Any], inplace: bool) -> Callable[..., Any]:
    def function(self: Sequence[Tensor], tensors1: Sequence[Tensor], weight: Any) -> Any:
        tensors = _check(name, self)
        ends = _each(name, tensors, tensors1, "tensors1")
        weights = _each(name, tensors, weight, "weight")
        results = _at_once(name, (tensors, ends), weights)
        if results is None:
            rows = zip(tensors, ends, weights, strict=True)
            results = tuple(apply(t, end, w) for t, end, w in rows)
        return self if inplace else results

    return function


def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    norm = _C._operators["linalg.vector_norm"]
    tensors = _check("_foreach_norm", self)
    if ord == float("inf") and any(t.numel() == 0 for t in tensors):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the "
            "operation does not have an identity"
        )
    return tuple(norm(t, ord, dtype=dtype) for t in tensors)


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    tensors = _check("_foreach_max", self)
    if any(t.numel() == 0 for t in tensors):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is "
            "undefined."
        )
    return tuple(t.max() for t in tensors)


def _foreach_clone(self: Sequence[Tensor], *, memory_format: Any = None) -> tuple[Tensor, ...]:
    more = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(t.clone(**more) for t in _check("_foreach_clone", self))


def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    for t in _check("_foreach_zero_", self):
        t.zero_()
    return self


def _foreach_copy_(
    self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False
) -> Sequence[Tensor]:
    tensors = _check("_foreach_copy_", self)
    for t, s in zip(tensors, _each("_foreach_copy_", tensors, src, "src"), strict=True):
        t.copy_(s, non_blocking)
    return self


def functions() -> dict[str, Callable[..., Any]]:
    """All of them by name.

    Example::

        >>> facula._foreach_mul([facula.tensor([1.]), facula.tensor([2.])], 3)
        (tensor([3.]), tensor([6.]))
    """
    found: dict[str, Callable[..., Any]] = {
        f.__name__: f
        for f in (_foreach_norm, _foreach_max, _foreach_clone, _foreach_zero_, _foreach_copy_)
    }
    kinds = [(_unary, name, name) for name in _UNARY]
    kinds += [(_binary, name, method) for name, method in _BINARY.items()]
    kinds += [(_pointwise, name, name) for name in ("addcmul", "addcdiv")]
    kinds += [(_lerp, "lerp", "lerp")]
    for make, name, method in kinds:
        for end in ("", "_"):
            full = f"_foreach_{name}{end}"
            function = make(full, _method(method + end), bool(end))
            function.__name__ = function.__qualname__ = full
            found[full] = function
    return found
