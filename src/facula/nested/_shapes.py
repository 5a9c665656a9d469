"""Shapes of nested tensors: dimensions turned, split, joined and padded."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.nested import _tensor as nested
from facula.nested._functions import check_same, inner, is_nested, rule, wrap
from facula.nested._tensor import NestedTensor, parts

_ops = _C._operators


@rule("contiguous")
def _contiguous(func: Any, nt: Any, memory_format: Any = None) -> Any:
    whole = nested.compact(nt)
    values = parts(whole)[0]
    return whole if values.is_contiguous() else whole.like(values.contiguous())


@rule("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, nt: Any, dim0: int, dim1: int) -> Any:
    values, _, _, ragged = parts(nt)
    a, b = wrap(dim0, values.dim() + 1), wrap(dim1, values.dim() + 1)
    if a == b:
        return nt
    if 0 in (a, b):
        raise RuntimeError("transpose(): the batch dimension of a nested tensor stays in front")
    where = {a: b, b: a}.get(ragged, ragged)
    return nt.like(values.transpose(a - 1, b - 1), where)


@rule("permute")
def _permute(func: Any, nt: Any, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    values, _, _, ragged = parts(nt)
    order = [wrap(d, values.dim() + 1) for d in given]
    if sorted(order) != list(range(values.dim() + 1)) or order[0] != 0:
        raise RuntimeError(
            f"permute(): {tuple(given)} is no order of the dimensions of a nested tensor with the "
            "batch in front"
        )
    return nt.like(values.permute([d - 1 for d in order[1:]]), order.index(ragged))


@rule("view", "reshape")
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
    if product(sizes[1 : at[0]]) != product(values.shape[: ragged - 1]):
        raise RuntimeError(
            "view(): the sizes in front of the ragged dimension of a nested tensor must stay as "
            "many elements as they were"
        )
    whole = values.view(sizes[1:]) if func.__name__ == "view" else values.reshape(sizes[1:])
    return nt.like(whole, at[0])


def product(sizes: Any) -> int:
    """All of them multiplied."""
    total = 1
    for size in sizes:
        total *= size
    return total


@rule("view_as", "reshape_as", "expand_as")
def _shaped_as(func: Any, nt: Any, other: Any) -> Any:
    return getattr(nt, func.__name__[:-3])(other.shape)


@rule("expand")
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


@rule("unflatten")
def _unflatten(func: Any, nt: Any, dim: int, sizes: Any) -> Any:
    values, _, _, ragged = parts(nt)
    at = inner(nt, dim, "unflatten")
    moved = ragged + len(sizes) - 1 if at < ragged - 1 else ragged
    return nt.like(values.unflatten(at, sizes), moved)


@rule("flatten")
def _flatten(func: Any, nt: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    values, _, _, ragged = parts(nt)
    a, b = inner(nt, start_dim, "flatten"), inner(nt, end_dim, "flatten")
    if a <= ragged - 1 <= b:
        raise RuntimeError("flatten(): cannot flatten over the ragged dimension")
    return nt.like(values.flatten(a, b), ragged - (b - a) if b < ragged - 1 else ragged)


@rule("unsqueeze")
def _unsqueeze(func: Any, nt: Any, dim: int) -> Any:
    values, _, _, ragged = parts(nt)
    at = wrap(dim, values.dim() + 2)
    if at == 0:
        raise RuntimeError("unsqueeze(): the batch dimension of a nested tensor stays in front")
    return nt.like(values.unsqueeze(at - 1), ragged + 1 if at <= ragged else ragged)


@rule("squeeze")
def _squeeze(func: Any, nt: Any, dim: Any = None) -> Any:
    values, _, _, ragged = parts(nt)
    if dim is None:
        dims = [d for d in range(values.dim()) if d != ragged - 1 and values.shape[d] == 1]
    else:
        named = [dim] if isinstance(dim, int) else dim
        dims = [inner(nt, d, "squeeze") for d in named]
        dims = [d for d in dims if values.shape[d] == 1]
    before = sum(d < ragged - 1 for d in dims)
    return nt.like(values.squeeze(tuple(dims)), ragged - before)


@rule("chunk")
def _chunk(func: Any, nt: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    if wrap(dim, parts(nt)[0].dim() + 1) == 0:
        pieces = nested.unbind(nt)
        size = -(-len(pieces) // chunks)
        return tuple(from_components(pieces[i : i + size], nt) for i in range(0, len(pieces), size))
    return tuple(nt.like(v) for v in parts(nt)[0].chunk(chunks, inner(nt, dim, "chunk")))


@rule("split", "split_with_sizes", "tensor_split")
def _split(func: Any, nt: Any, sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    at = inner(nt, dim, "split")
    return tuple(nt.like(v) for v in getattr(parts(nt)[0], func.__name__)(sizes, at))


@rule("unbind")
def _unbind(func: Any, nt: Any, dim: int = 0) -> tuple[Any, ...]:
    if wrap(dim, parts(nt)[0].dim() + 1) != 0:
        raise RuntimeError("unbind(): only supported for dim=0 of nested tensors")
    return nested.unbind(nt)


@rule("select")
def _select(func: Any, nt: Any, dim: int, index: int) -> Any:
    values, _, _, ragged = parts(nt)
    at = wrap(dim, values.dim() + 1)
    if at == 0:
        return nested.unbind(nt)[index]
    place = inner(nt, dim, "select")
    return nt.like(values.select(place, index), ragged - 1 if place < ragged - 1 else ragged)


@rule("narrow")
def _narrow(func: Any, nt: Any, dim: int, start: int, length: int) -> Any:
    if wrap(dim, parts(nt)[0].dim() + 1) == 0:
        return from_components(nested.unbind(nt)[start : start + length], nt)
    return nt.like(parts(nt)[0].narrow(inner(nt, dim, "narrow"), start, length))


@rule("__getitem__")
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


@rule("cat", "concat", "concatenate")
def _cat(func: Any, tensors: Any, dim: int = 0) -> Any:
    first = next(t for t in tensors if is_nested(t))
    if any(not is_nested(t) for t in tensors):
        raise RuntimeError("cat(): nested tensors are joined with nested tensors only")
    if wrap(dim, parts(first)[0].dim() + 1) == 0:
        return from_components([c for t in tensors for c in nested.unbind(t)], first)
    at = inner(first, dim, "cat")
    for t in tensors:
        check_same(first, t, "cat")
    return first.like(_ops["cat"]([parts(t)[0] for t in tensors], at))


@rule("stack")
def _stack(func: Any, tensors: Any, dim: int = 0) -> Any:
    at = wrap(dim, parts(tensors[0])[0].dim() + 2)
    return _cat(None, [t.unsqueeze(at) for t in tensors], at)


@rule("to_padded_tensor")
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
