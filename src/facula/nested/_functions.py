"""What operators do with nested tensors: a table from their names to functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from facula import _C
from facula._type_info import finfo, iinfo
from facula.nested import _tensor as nested
from facula.nested._tensor import NestedTensor, parts

_ops = _C._operators
Tensor = _C.Tensor

_table: dict[str, Callable[..., Any]] = {}


def _for(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
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


def _is_nested(value: Any) -> bool:
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


@_for("size")
def _size(func: Any, nt: Any, dim: int | None = None) -> Any:
    shape = nested.shape_of(nt)
    return shape if dim is None else shape[_wrap(dim, len(shape))]


@_for("dim", "ndimension")
def _dim(func: Any, nt: Any) -> int:
    rank: int = parts(nt)[0].dim() + 1
    return rank


@_for("numel", "nelement")
def _numel(func: Any, nt: Any) -> int:
    count: int = parts(nested.compact(nt))[0].numel()
    return count


@_for("is_contiguous")
def _is_contiguous(func: Any, nt: Any, memory_format: Any = None) -> bool:
    return nested.is_contiguous(nt)


@_for("is_floating_point", "is_complex", "is_signed", "element_size", "get_device", "is_inference")
def _of_values(func: Any, nt: Any) -> Any:
    return func(parts(nt)[0])


@_for("is_same_size")
def _is_same_size(func: Any, a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape)


def _wrap(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got "
            f"{dim})"
        )
    return dim % rank


def _inner(nt: Any, dim: int, name: str) -> int:
    """The dimension of the values that an outer dimension is; neither batch nor ragged."""
    values, _, _, ragged = parts(nt)
    at = _wrap(dim, values.dim() + 1)
    if at in (0, ragged):
        kind = "batch" if at == 0 else "ragged"
        raise RuntimeError(f"{name}(): not supported for the {kind} dimension of a nested tensor")
    return at - 1


# ---- autograd


@_for("backward")
def _backward(func: Any, nt: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    if gradient is not None and _is_nested(gradient):
        gradient = parts(gradient)[0]
    parts(nt)[0].backward(gradient, *args, **kwargs)


@_for("requires_grad_")
def _requires_grad_(func: Any, nt: Any, requires_grad: bool = True) -> Any:
    parts(nt)[0].requires_grad_(requires_grad)
    return nt


@_for("retain_grad")
def _retain_grad(func: Any, nt: Any) -> None:
    parts(nt)[0].retain_grad()


@_for("register_hook")
def _register_hook(func: Any, nt: Any, hook: Callable[[Any], Any]) -> Any:
    def on_values(grad: Any) -> Any:
        found = hook(nt.like(grad))
        return parts(found)[0] if _is_nested(found) else found

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
    __truediv__ __neg__ __pow__ to float double half bfloat16 long int short char byte bool cfloat
    cdouble cpu type_as dropout dropout_ alpha_dropout feature_alpha_dropout bernoulli zeros_like
    ones_like empty_like full_like rand_like randn_like
"""
_ELEMENTWISE = frozenset(_NAMES.split())


def _values_beside(nt: Any, other: Any, name: str) -> Any:
    """An operand in the form that goes with the values of ``nt``."""
    if not isinstance(other, Tensor):
        return other
    if _is_nested(other):
        _check_same(nt, other, name)
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


def _check_same(a: Any, b: Any, name: str) -> None:
    if parts(a)[1] is not parts(b)[1] or parts(a)[2] is not parts(b)[2]:
        raise RuntimeError(_mismatch(a, b, name))


def _elementwise(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    every = (*args, *kwargs.values())
    first = max((a for a in every if _is_nested(a)), key=lambda nt: nt.__dict__["_values"].dim())

    def replaced(value: Any) -> Any:
        if value is first:
            return parts(first)[0]
        return _values_beside(first, value, name)

    values = func(*map(replaced, args), **{k: replaced(v) for k, v in kwargs.items()})
    if name in _IN_PLACE and _is_nested(args[0]):
        return args[0]
    if values is parts(first)[0]:
        return first
    return first.like(values)


_IN_PLACE = frozenset(
    name for name in _ELEMENTWISE if name.endswith("_") and not name.startswith("__")
) | {"__iadd__", "__isub__", "__imul__", "__itruediv__"}


# ---- shapes


@_for("contiguous")
def _contiguous(func: Any, nt: Any, memory_format: Any = None) -> Any:
    whole = nested.compact(nt)
    values = parts(whole)[0]
    return whole if values.is_contiguous() else whole.like(values.contiguous())


@_for("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, nt: Any, dim0: int, dim1: int) -> Any:
    values, _, _, ragged = parts(nt)
    a, b = _wrap(dim0, values.dim() + 1), _wrap(dim1, values.dim() + 1)
    if a == b:
        return nt
    if 0 in (a, b):
        raise RuntimeError("transpose(): the batch dimension of a nested tensor stays in front")
    where = {a: b, b: a}.get(ragged, ragged)
    return nt.like(values.transpose(a - 1, b - 1), where)


@_for("permute")
def _permute(func: Any, nt: Any, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    values, _, _, ragged = parts(nt)
    order = [_wrap(d, values.dim() + 1) for d in given]
    if sorted(order) != list(range(values.dim() + 1)) or order[0] != 0:
        raise RuntimeError(
            f"permute(): {tuple(given)} is no order of the dimensions of a nested tensor with the "
            "batch in front"
        )
    return nt.like(values.permute([d - 1 for d in order[1:]]), order.index(ragged))


@_for("view", "reshape")
def _view(func: Any, nt: Any, *shape: Any) -> Any:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    values, offsets, _, ragged = parts(nt)
    sizes = list(given)
    at = [i for i, s in enumerate(sizes) if nested.is_symbol(s)]
    if not at:
        at = [i for i, s in enumerate(sizes) if s == -1][:1]
    if (
        len(at) != 1
        or sizes[0] not in (nested.batch_size(nt), -1)
        or at[0] == 0
        or (nested.is_symbol(sizes[at[0]]) and sizes[at[0]] is not nested.symbol_of(offsets))
    ):
        raise RuntimeError(
            f"view(): a nested tensor of shape {tuple(nested.shape_of(nt))} keeps its batch and "
            f"its ragged dimension, but the shape {tuple(given)} does not name them"
        )
    sizes[at[0]] = values.shape[ragged - 1]
    if _product(sizes[1 : at[0]]) != _product(values.shape[: ragged - 1]):
        raise RuntimeError(
            "view(): the sizes in front of the ragged dimension of a nested tensor must stay as "
            "many elements as they were"
        )
    whole = values.view(sizes[1:]) if func.__name__ == "view" else values.reshape(sizes[1:])
    return nt.like(whole, at[0])


def _product(sizes: Any) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


@_for("view_as", "reshape_as", "expand_as")
def _shaped_as(func: Any, nt: Any, other: Any) -> Any:
    return getattr(nt, func.__name__[:-3])(other.shape)


@_for("expand")
def _expand(func: Any, nt: Any, *shape: Any) -> Any:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    values, offsets, _, ragged = parts(nt)
    if len(given) != values.dim() + 1:
        raise RuntimeError("expand(): a nested tensor keeps its number of dimensions")
    sizes = [values.shape[ragged - 1] if i == ragged else s for i, s in enumerate(given) if i > 0]
    named = given[ragged]
    if named != -1 and named is not nested.symbol_of(offsets):
        raise RuntimeError("expand(): the ragged dimension of a nested tensor cannot be changed")
    return nt.like(values.expand(sizes))


@_for("unflatten")
def _unflatten(func: Any, nt: Any, dim: int, sizes: Any) -> Any:
    values, _, _, ragged = parts(nt)
    at = _inner(nt, dim, "unflatten")
    moved = ragged + len(sizes) - 1 if at < ragged - 1 else ragged
    return nt.like(values.unflatten(at, sizes), moved)


@_for("flatten")
def _flatten(func: Any, nt: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    values, _, _, ragged = parts(nt)
    a, b = _inner(nt, start_dim, "flatten"), _inner(nt, end_dim, "flatten")
    if a <= ragged - 1 <= b:
        raise RuntimeError("flatten(): cannot flatten over the ragged dimension")
    return nt.like(values.flatten(a, b), ragged - (b - a) if b < ragged - 1 else ragged)


@_for("unsqueeze")
def _unsqueeze(func: Any, nt: Any, dim: int) -> Any:
    values, _, _, ragged = parts(nt)
    at = _wrap(dim, values.dim() + 2)
    if at == 0:
        raise RuntimeError("unsqueeze(): the batch dimension of a nested tensor stays in front")
    return nt.like(values.unsqueeze(at - 1), ragged + 1 if at <= ragged else ragged)


@_for("squeeze")
def _squeeze(func: Any, nt: Any, dim: Any = None) -> Any:
    values, _, _, ragged = parts(nt)
    if dim is None:
        dims = [d for d in range(values.dim()) if d != ragged - 1 and values.shape[d] == 1]
    else:
        named = [dim] if isinstance(dim, int) else dim
        dims = [_inner(nt, d, "squeeze") for d in named]
        dims = [d for d in dims if values.shape[d] == 1]
    before = sum(d < ragged - 1 for d in dims)
    return nt.like(values.squeeze(tuple(dims)), ragged - before)


@_for("chunk")
def _chunk(func: Any, nt: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    if _wrap(dim, parts(nt)[0].dim() + 1) == 0:
        pieces = nested.unbind(nt)
        size = -(-len(pieces) // chunks)
        return tuple(from_components(pieces[i : i + size], nt) for i in range(0, len(pieces), size))
    return tuple(nt.like(v) for v in parts(nt)[0].chunk(chunks, _inner(nt, dim, "chunk")))


@_for("split", "split_with_sizes", "tensor_split")
def _split(func: Any, nt: Any, sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    at = _inner(nt, dim, "split")
    return tuple(nt.like(v) for v in getattr(parts(nt)[0], func.__name__)(sizes, at))


@_for("unbind")
def _unbind(func: Any, nt: Any, dim: int = 0) -> tuple[Any, ...]:
    if _wrap(dim, parts(nt)[0].dim() + 1) != 0:
        raise RuntimeError("unbind(): only supported for dim=0 of nested tensors")
    return nested.unbind(nt)


@_for("select")
def _select(func: Any, nt: Any, dim: int, index: int) -> Any:
    values, _, _, ragged = parts(nt)
    at = _wrap(dim, values.dim() + 1)
    if at == 0:
        return nested.unbind(nt)[index]
    inner = _inner(nt, dim, "select")
    return nt.like(values.select(inner, index), ragged - 1 if inner < ragged - 1 else ragged)


@_for("narrow")
def _narrow(func: Any, nt: Any, dim: int, start: int, length: int) -> Any:
    if _wrap(dim, parts(nt)[0].dim() + 1) == 0:
        return from_components(nested.unbind(nt)[start : start + length], nt)
    return nt.like(parts(nt)[0].narrow(_inner(nt, dim, "narrow"), start, length))


@_for("__getitem__")
def _getitem(func: Any, nt: Any, index: Any) -> Any:
    values, _, _, ragged = parts(nt)
    rank = values.dim() + 1
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (rank - len(items) + 1)
    items += [slice(None)] * (rank - len(items))
    first, rest = items[0], items[1:]
    whole = slice(None)
    if isinstance(first, int):
        found = nested.unbind(nt)[first]
        return found[tuple(rest)] if any(i != whole for i in rest) else found
    if rest[ragged - 1] != whole or any(not isinstance(i, (int, slice)) for i in items):
        raise NotImplementedError(
            "indexing a nested tensor: ints and slices are supported, in all but the ragged "
            "dimension; use .unbind()"
        )
    gone = sum(isinstance(i, int) for i in rest[: ragged - 1])
    found = nt.like(values[tuple(rest)], ragged - gone)
    return found if first == whole else from_components(nested.unbind(found)[first], found)


def from_components(components: Any, nt: Any) -> Any:
    """A nested tensor of some components of ``nt``."""
    ragged = parts(nt)[3]
    sizes = _C.tensor([c.shape[ragged - 1] for c in components], dtype=_C.int64)
    values = (
        _ops["cat"](list(components), ragged - 1)
        if components
        else parts(nt)[0].narrow(ragged - 1, 0, 0)
    )
    return NestedTensor.make(values, nested.offsets_from(sizes), None, ragged)


@_for("cat", "concat", "concatenate")
def _cat(func: Any, tensors: Any, dim: int = 0) -> Any:
    first = next(t for t in tensors if _is_nested(t))
    if any(not _is_nested(t) for t in tensors):
        raise RuntimeError("cat(): nested tensors are joined with nested tensors only")
    if _wrap(dim, parts(first)[0].dim() + 1) == 0:
        return from_components([c for t in tensors for c in nested.unbind(t)], first)
    at = _inner(first, dim, "cat")
    for t in tensors:
        _check_same(first, t, "cat")
    return first.like(_ops["cat"]([parts(t)[0] for t in tensors], at))


@_for("stack")
def _stack(func: Any, tensors: Any, dim: int = 0) -> Any:
    at = _wrap(dim, parts(tensors[0])[0].dim() + 2)
    return _cat(None, [t.unsqueeze(at) for t in tensors], at)


@_for("to_padded_tensor")
def _to_padded(func: Any, nt: Any, padding: float, output_size: Any = None) -> Any:
    return to_padded(nt, padding, output_size)


def to_padded(nt: Any, padding: float, output_size: Any = None) -> Any:
    """The components as one strided tensor, filled up with ``padding``."""
    whole = nested.padded(nt, padding)
    if output_size is None:
        return whole
    sizes = tuple(output_size)
    if len(sizes) != whole.dim() or any(s < t for s, t in zip(sizes, whole.shape, strict=True)):
        raise RuntimeError(
            f"to_padded_tensor(): output_size {sizes} is smaller than the padded tensor of shape "
            f"{tuple(whole.shape)}"
        )
    out = whole.new_full(sizes, padding)
    out[tuple(slice(0, s) for s in whole.shape)] = whole
    return out


# ---- layers


@_for("linear")
def _linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    _last_is_not_ragged(input, "linear")
    return input.like(_ops["nn.functional.linear"](parts(input)[0], weight, bias))


def _last_is_not_ragged(nt: Any, name: str) -> None:
    values, _, _, ragged = parts(nt)
    if ragged == values.dim():
        raise RuntimeError(f"{name}(): the last dimension of the nested tensor is the ragged one")


@_for("matmul", "__matmul__", "mm", "bmm")
def _matmul(func: Any, a: Any, b: Any) -> Any:
    if _is_nested(a) and not _is_nested(b):
        _last_is_not_ragged(a, "matmul")
        values, _, _, ragged = parts(a)
        if b.dim() <= 2:
            if b.dim() == 1 and ragged == values.dim() - 1 + 1:
                raise RuntimeError("matmul(): the ragged dimension would be summed over")
            return a.like(values @ b)
        if ragged == values.dim() - 1 and b.dim() == values.dim() + 1:
            # A matrix for each component.
            pieces = [
                x @ w for x, w in zip(nested.unbind(nested.compact(a)), b.unbind(0), strict=True)
            ]
            return from_components(pieces, a)
    if _is_nested(a) and _is_nested(b):
        pieces = [x @ y for x, y in zip(nested.unbind(a), nested.unbind(b), strict=True)]
        sizes = {p.shape for p in pieces}
        if len(sizes) == 1:  # summed over the ragged dimension
            return _ops["stack"](pieces)
        ragged = parts(a)[3]
        if len({p.shape[: ragged - 1] + p.shape[ragged:] for p in pieces}) == 1:
            return (
                a.like(_ops["cat"](pieces, ragged - 1))
                if parts(a)[2] is None
                else (from_components(pieces, a))
            )
    raise NotImplementedError(
        f"matmul(): shapes {tuple(a.shape)} and {tuple(b.shape)} are not supported for nested "
        "tensors: the result may have one ragged dimension"
    )


@_for("layer_norm", "rms_norm")
def _norm(func: Any, input: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
    values, _, _, ragged = parts(input)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
    if values.dim() - len(shape) < ragged:
        raise RuntimeError(
            f"{func.__name__}(): cannot normalise over the ragged dimension of a nested tensor"
        )
    return input.like(func(values, normalized_shape, *args, **kwargs))


@_for("embedding")
def _embedding(func: Any, input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    return input.like(func(parts(input)[0], weight, *args, **kwargs))


@_for("softmax", "log_softmax")
def _softmax(func: Any, nt: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dim is None:
        raise RuntimeError(f"{func.__name__}(): dim must be given for nested tensors")
    values, _, _, ragged = parts(nt)
    at = _wrap(dim, values.dim() + 1)
    if at != ragged:
        return nt.like(func(values, _inner(nt, dim, func.__name__), *args, **kwargs))
    whole = nested.compact(nt)
    dense = nested.padded(whole, -float("inf"))
    return nested.from_padded(func(dense, at, *args, **kwargs), whole)


@_for("glu")
def _glu(func: Any, nt: Any, dim: int = -1) -> Any:
    return nt.like(func(parts(nt)[0], _inner(nt, dim, "glu")))


@_for("cumsum", "cumprod", "logcumsumexp", "sort", "argsort")
def _along(func: Any, nt: Any, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    found = func(parts(nt)[0], _inner(nt, dim, func.__name__), *args, **kwargs)
    return tuple(map(nt.like, found)) if isinstance(found, tuple) else nt.like(found)


@_for("scaled_dot_product_attention")
def _attention(
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if not (_is_nested(query) and _is_nested(key) and _is_nested(value)):
        raise RuntimeError(
            "scaled_dot_product_attention(): query, key and value must all be nested, or none"
        )
    if attn_mask is not None:
        raise NotImplementedError(
            "scaled_dot_product_attention(): a mask is not supported for nested tensors, whose "
            "components attend to themselves only; is_causal is"
        )
    options = {
        "dropout_p": dropout_p,
        "is_causal": is_causal,
        "scale": scale,
        "enable_gqa": enable_gqa,
    }
    attend = _ops["nn.functional.scaled_dot_product_attention"]
    trios = zip(nested.unbind(query), nested.unbind(key), nested.unbind(value), strict=True)
    pieces = [
        attend(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), **options).squeeze(0)
        for q, k, v in trios
    ]
    ragged = parts(query)[3]
    if parts(query)[2] is not None or not pieces:
        return from_components(pieces, query)
    return query.like(_ops["cat"](pieces, ragged - 1))


# ---- reductions

_OVER_ALL = (
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "any",
    "all",
    "var",
    "std",
    "norm",
)
_SEGMENTS = {"sum": "sum", "mean": "mean", "amax": "amax", "amin": "amin", "prod": "prod"}


def _reduce(func: Any, nt: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    name = func.__name__
    whole = nested.compact(nt)
    values, _, _, ragged = parts(whole)
    if dim is None or dim == () or dim == []:
        return func(values, **options)
    named = [dim] if isinstance(dim, int) else list(dim)
    dims = sorted({_wrap(d, values.dim() + 1) for d in named})
    if 0 in dims and ragged not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    if ragged not in dims:
        at = [d - 1 for d in dims]
        given = at[0] if isinstance(dim, int) else tuple(at)
        found = func(values, given, keepdim, **options)
        gone = 0 if keepdim else sum(d < ragged for d in dims)
        if isinstance(found, tuple):
            return type(found)(whole.like(f, ragged - gone) for f in found)
        return whole.like(found, ragged - gone)
    if 0 in dims:
        at = [d - 1 for d in dims if d]
        found = func(values, tuple(at), keepdim, **options)
        return found.unsqueeze(0) if keepdim else found
    if name not in _SEGMENTS:
        raise NotImplementedError(
            f"{name}(): not supported over the ragged dimension of a nested tensor; use "
            ".to_padded_tensor(padding)"
        )
    return _over_ragged(func, name, whole, dims, keepdim, options)


def _unreached(dtype: Any, name: str) -> Any:
    """What the largest or smallest of no entries is."""
    if dtype is _C.bool:
        return name == "amin"
    limits = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
    return limits.min if name == "amax" else limits.max


def _over_ragged(
    func: Any, name: str, whole: Any, dims: list[int], keepdim: bool, options: dict[str, Any]
) -> Any:
    values, offsets, _, ragged = parts(whole)
    if len(dims) > 1 and name == "mean":
        total = _over_ragged(func, "sum", whole, dims, keepdim, options)
        count = offsets.diff() * _product(values.shape[d - 1] for d in dims if d != ragged)
        return total / count.reshape(-1, *(1,) * (total.dim() - 1))
    dtype = options.get("dtype")
    packed = (values if dtype is None else values.to(dtype)).movedim(ragged - 1, 0)
    if name in ("sum", "mean", "prod") and dtype is None and not packed.is_floating_point():
        packed = packed.to(_C.int64) if not packed.is_complex() else packed
    at = nested.component_of_each(whole)
    shape = (nested.batch_size(whole), *packed.shape[1:])
    if name in ("sum", "mean"):
        out = packed.new_zeros(shape).index_add(0, at, packed)
        if name == "mean":
            out = out / offsets.diff().reshape(-1, *(1,) * (out.dim() - 1))
    else:
        start = 1 if name == "prod" else _unreached(packed.dtype, name)
        index = at.reshape(-1, *(1,) * (packed.dim() - 1)).expand_as(packed)
        out = packed.new_full(shape, start).scatter_reduce(
            0, index, packed, name, include_self=False
        )
    # The batch is in front, the ragged dimension gone; the others are in their order.
    rest = [d if d < ragged else d - 1 for d in dims if d != ragged]
    if rest:
        reduce = _ops[name] if name != "mean" else _ops["mean"]
        out = reduce(out, tuple(rest), False) if name != "prod" else out.prod(rest[0])
    if keepdim:
        for d in dims:
            out = out.unsqueeze(d)
    return out


for _name in _OVER_ALL:
    _table[_name] = _reduce


@_for("equal")
def _equal(func: Any, a: Any, b: Any) -> bool:
    if not (_is_nested(a) and _is_nested(b)) or nested.lengths_of(a) != nested.lengths_of(b):
        return False
    x, y = parts(nested.compact(a))[0], parts(nested.compact(b))[0]
    return x.shape == y.shape and bool((x == y).all())


@_for("allclose")
def _allclose(func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> bool:
    if nested.lengths_of(a) != nested.lengths_of(b):
        return False
    x, y = parts(nested.compact(a))[0], parts(nested.compact(b))[0]
    return bool(x.allclose(y, *args, **kwargs))


@_for("tolist")
def _tolist(func: Any, nt: Any) -> list[Any]:
    return [c.tolist() for c in nested.unbind(nt)]
