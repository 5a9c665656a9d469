"""What operators do with nested tensors: a table from their names to functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula import _C
from facula.nested import _tensor as nested
from facula.nested._tensor import NestedTensor, parts

_ops = _C._operators
Tensor = _C.Tensor

_table: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function what operators of these names do; it is given the operator first."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _table[name] = function
        return function

    return add


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an operator with nested tensors among its arguments."""
    name = getattr(func, "__name__", str(func))
    if name == "__get__":
        name = func.__self__.__name__
        handler = _properties.get(name)
        if handler is None:
            with _C.DisableTorchFunctionSubclass():
                return func(*args)
        return handler(args[0])
    if name in _ELEMENTWISE:
        return _elementwise(func, name, args, kwargs)
    handler = _table.get(name)
    if handler is None:
        raise NotImplementedError(
            f"{name}() is not implemented for nested tensors; use .to_padded_tensor(padding), "
            ".unbind() or .values()"
        )
    return handler(func, *args, **kwargs)


def is_nested(value: Any) -> bool:
    """Whether a value is a nested tensor."""
    return isinstance(value, NestedTensor)


# ---- properties

_properties: dict[str, Callable[[Any], Any]] = {
    "shape": nested.shape_of,
    "ndim": lambda nt: nt.__dict__["_values"].dim() + 1,
    "layout": lambda nt: _C.jagged,
    "requires_grad": lambda nt: nt.__dict__["_values"].requires_grad,
    "grad_fn": lambda nt: nt.__dict__["_values"].grad_fn,
    "is_leaf": lambda nt: nt.__dict__["_values"].is_leaf,
    "grad": lambda nt: (
        None
        if nt.__dict__["_values"].grad is None
        else nt.like(nt.__dict__["_values"].grad.detach())
    ),
    "nbytes": lambda nt: nt.__dict__["_values"].nbytes,
}


@rule("size")
def _size(func: Any, nt: Any, dim: int | None = None) -> Any:
    shape = nested.shape_of(nt)
    return shape if dim is None else shape[wrap(dim, len(shape))]


@rule("dim", "ndimension")
def _dim(func: Any, nt: Any) -> int:
    rank: int = parts(nt)[0].dim() + 1
    return rank


@rule("numel", "nelement")
def _numel(func: Any, nt: Any) -> int:
    count: int = parts(nested.compact(nt))[0].numel()
    return count


@rule("is_contiguous")
def _is_contiguous(func: Any, nt: Any, memory_format: Any = None) -> bool:
    return nested.is_contiguous(nt)


@rule("is_floating_point", "is_complex", "is_signed", "element_size", "get_device", "is_inference")
def _of_values(func: Any, nt: Any) -> Any:
    return func(parts(nt)[0])


@rule("is_same_size")
def _is_same_size(func: Any, a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape)


def wrap(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got "
            f"{dim})"
        )
    return dim % rank


def inner(nt: Any, dim: int, name: str) -> int:
    """The dimension of the values that an outer dimension is; neither batch nor ragged."""
    values, _, _, ragged = parts(nt)
    at = wrap(dim, values.dim() + 1)
    if at in (0, ragged):
        kind = "batch" if at == 0 else "ragged"
        raise RuntimeError(f"{name}(): not supported for the {kind} dimension of a nested tensor")
    return at - 1


# ---- autograd


@rule("backward")
def _backward(func: Any, nt: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    if gradient is not None and is_nested(gradient):
        gradient = parts(gradient)[0]
    parts(nt)[0].backward(gradient, *args, **kwargs)


@rule("requires_grad_")
def _requires_grad_(func: Any, nt: Any, requires_grad: bool = True) -> Any:
    parts(nt)[0].requires_grad_(requires_grad)
    return nt


@rule("retain_grad")
def _retain_grad(func: Any, nt: Any) -> None:
    parts(nt)[0].retain_grad()


@rule("register_hook")
def _register_hook(func: Any, nt: Any, hook: Callable[[Any], Any]) -> Any:
    def on_values(grad: Any) -> Any:
        found = hook(nt.like(grad))
        return parts(found)[0] if is_nested(found) else found

    return parts(nt)[0].register_hook(on_values)


# ---- elementwise

# Done to the values, entry by entry. Numbers and tensors beside them are broadcast.
_NAMES = """
    abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh
    bitwise_not ceil celu clamp clamp_max clamp_min clip clone conj cos cosh deg2rad detach digamma
    elu erf erfc erfinv exp exp2 expm1 fix floor frac gelu hardshrink hardsigmoid hardswish hardtanh
    isfinite isinf isnan isneginf isposinf isreal leaky_relu lgamma log log10 log1p log2 log_sigmoid
    logsigmoid logical_not logit mish nan_to_num neg negative positive rad2deg reciprocal relu relu6
    round rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt
    square tan tanh tanhshrink threshold trunc add add_ sub sub_ subtract mul mul_ multiply div div_
    divide true_divide floor_divide pow pow_ remainder fmod maximum minimum fmax fmin atan2 arctan2
    hypot copysign logaddexp logaddexp2 xlogy nextafter eq ne lt le gt ge not_equal less less_equal
    greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
    where masked_fill masked_fill_ lerp addcmul addcdiv rsub zero_ fill_ copy_ neg_ exp_ relu_ abs_
    sqrt_ tanh_ sigmoid_ clamp_ isclose __radd__ __rsub__ __rmul__ __rtruediv__ __rpow__
    __rfloordiv__ __rmod__ __iadd__ __isub__ __imul__ __itruediv__ __add__ __sub__ __mul__
    __truediv__ __neg__ __pow__ __floordiv__ __eq__ __invert__ __and__ __or__ __xor__ __lshift__
    __rshift__ __rlshift__ __rrshift__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__
    bitwise_left_shift bitwise_right_shift remainder_ floor_divide_
    to float double half bfloat16 long int short char byte bool cfloat
    cdouble cpu type_as dropout dropout_ alpha_dropout feature_alpha_dropout bernoulli zeros_like
    ones_like empty_like full_like rand_like randn_like
"""
_ELEMENTWISE = frozenset(_NAMES.split())


def _is_operand(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, complex)) or hasattr(value, "__array__")


def _values_beside(nt: Any, other: Any, name: str) -> Any:
    """An operand in the form that goes with the values of ``nt``."""
    if not isinstance(other, Tensor):
        return other
    if is_nested(other):
        check_same(nt, other, name)
        values, _, _, ragged = parts(nt)
        if parts(other)[3] != ragged or parts(other)[0].dim() > values.dim():
            raise RuntimeError(_mismatch(nt, other, name))
        return parts(other)[0]
    values, _, _, ragged = parts(nt)
    rank = values.dim() + 1
    if other.dim() <= rank - 1 - ragged or other.dim() == 0:
        return other
    # Sizes of 1 for the dimensions in front that are not there; then one row for each entry.
    sizes = (1,) * (rank - other.dim()) + tuple(other.shape)
    if other.dim() > rank or sizes[ragged] != 1 or sizes[0] not in (1, nested.batch_size(nt)):
        raise RuntimeError(_mismatch(nt, other, name))
    whole = other.reshape(sizes)
    if sizes[0] == 1:
        return whole.squeeze(0)
    if parts(nt)[2] is not None:
        raise NotImplementedError(
            f"{name}(): a nested tensor with holes and a tensor of shape {tuple(other.shape)}; "
            "call .contiguous() on it first"
        )
    rows = whole.squeeze(ragged).index_select(0, nested.component_of_each(nt))
    return rows.movedim(0, ragged - 1)


def _mismatch(a: Any, b: Any, name: str) -> str:
    def text(t: Any) -> str:
        return f"({', '.join(map(repr, t.shape))})"

    shapes = f"{text(a)} and {text(b)}"
    return f"cannot call binary pointwise function {name} with inputs of shapes {shapes}"


def check_same(a: Any, b: Any, name: str) -> None:
    """Raises when the components of two nested tensors do not go together."""
    if parts(a)[1] is not parts(b)[1] or parts(a)[2] is not parts(b)[2]:
        raise RuntimeError(_mismatch(a, b, name))


def _elementwise(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name in ("__eq__", "ne") and not _is_operand(args[1] if len(args) > 1 else 0):
        return name == "ne"  # of None, a text: Python's == and !=
    every = (*args, *kwargs.values())
    first = max((a for a in every if is_nested(a)), key=lambda nt: nt.__dict__["_values"].dim())

    def replaced(value: Any) -> Any:
        if value is first:
            return parts(first)[0]
        return _values_beside(first, value, name)

    values = func(*map(replaced, args), **{k: replaced(v) for k, v in kwargs.items()})
    if name in _IN_PLACE and is_nested(args[0]):
        return args[0]
    if values is parts(first)[0]:
        return first
    return first.like(values)


_IN_PLACE = frozenset(
    name for name in _ELEMENTWISE if name.endswith("_") and not name.startswith("__")
) | {
    f"__i{name}__"
    for name in ("add", "sub", "mul", "truediv", "and", "or", "xor", "lshift", "rshift")
}
