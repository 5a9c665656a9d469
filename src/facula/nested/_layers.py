"""Layers on nested tensors: products, norms, softmax, attention."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.nested import _tensor as nested
from facula.nested._functions import inner, is_nested, rule, wrap
from facula.nested._shapes import from_components
from facula.nested._tensor import parts

_ops = _C._operators


@rule("linear")
def _linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    _last_is_not_ragged(input, "linear")
    return input.like(_ops["nn.functional.linear"](parts(input)[0], weight, bias))


def _last_is_not_ragged(nt: Any, name: str) -> None:
    values, _, _, ragged = parts(nt)
    if ragged == values.dim():
        raise RuntimeError(f"{name}(): the last dimension of the nested tensor is the ragged one")


@rule("matmul", "__matmul__", "mm", "bmm")
def _matmul(func: Any, a: Any, b: Any) -> Any:
    if is_nested(a) and not is_nested(b):
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
    if is_nested(a) and is_nested(b):
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


@rule("layer_norm", "rms_norm")
def _norm(func: Any, input: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
    values, _, _, ragged = parts(input)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
    if values.dim() - len(shape) < ragged:
        raise RuntimeError(
            f"{func.__name__}(): cannot normalise over the ragged dimension of a nested tensor"
        )
    return input.like(func(values, normalized_shape, *args, **kwargs))


@rule("embedding")
def _embedding(func: Any, input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    return input.like(func(parts(input)[0], weight, *args, **kwargs))


@rule("softmax", "log_softmax")
def _softmax(func: Any, nt: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dim is None:
        raise RuntimeError(f"{func.__name__}(): dim must be given for nested tensors")
    values, _, _, ragged = parts(nt)
    at = wrap(dim, values.dim() + 1)
    if at != ragged:
        return nt.like(func(values, inner(nt, dim, func.__name__), *args, **kwargs))
    whole = nested.compact(nt)
    dense = nested.padded(whole, -float("inf"))
    return nested.from_padded(func(dense, at, *args, **kwargs), whole)


@rule("glu")
def _glu(func: Any, nt: Any, dim: int = -1) -> Any:
    return nt.like(func(parts(nt)[0], inner(nt, dim, "glu")))


@rule("cumsum", "cumprod", "logcumsumexp", "sort", "argsort")
def _along(func: Any, nt: Any, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    found = func(parts(nt)[0], inner(nt, dim, func.__name__), *args, **kwargs)
    return tuple(map(nt.like, found)) if isinstance(found, tuple) else nt.like(found)


@rule("scaled_dot_product_attention")
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
    if not (is_nested(query) and is_nested(key) and is_nested(value)):
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
