"""rearrange: transposing, splitting and joining dimensions by a pattern of names."""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import facula

Axes = list[list[str]]  # one entry per dimension: the names that it is made of

_TOKEN = re.compile(r"\s*(\.\.\.|[()]|\w+|\S)")
_ELLIPSIS = ["*"]  # outside of parentheses; compared by identity, and no name


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """A tensor with its dimensions in another order, split or joined.

    Args:
        tensor: a tensor, or a sequence of tensors, which is stacked first.
        pattern: the names of the dimensions before and after, ``"h w c -> c (h w)"``. Names in
            parentheses make one dimension, ``1`` and ``()`` stand for a dimension of one element,
            ``...`` for any further dimensions.
        axes_lengths: sizes of names that cannot be told from the tensor.

    Example::

        >>> images = facula.zeros(32, 30, 40, 3)
        >>> from facula.func import rearrange
        >>> rearrange(images, "b h w c -> b c h w").shape
        facula.Size([32, 3, 30, 40])
        >>> rearrange(images, "b (h h2) w c -> (b h2) h w c", h2=2).shape
        facula.Size([64, 15, 40, 3])
    """
    if not isinstance(tensor, facula.Tensor):
        tensor = facula.stack(tensor)
    left, right = _parsed(pattern, axes_lengths, tensor.dim())
    sizes = _sizes(left, tensor.shape, axes_lengths, pattern)
    before = [name for group in left for name in group]
    after = [name for group in right for name in group]
    split = tensor.reshape([sizes[name] for name in before])
    moved = split.permute([before.index(name) for name in after])
    return moved.reshape([math.prod(sizes[name] for name in group) for group in right])


def _refuse(pattern: str, message: str) -> NoReturn:
    raise ValueError(f"rearrange({pattern!r}): {message}")


def _parsed(pattern: str, lengths: dict[str, int], ndim: int) -> tuple[Axes, Axes]:
    """Both sides, the ellipsis replaced by names of its own."""
    sides = pattern.split("->")
    if len(sides) != 2:
        _refuse(pattern, "Pattern must contain a single '->' separator")
    left, right = (_side(side, pattern) for side in sides)
    if any("..." in group for group in left):
        _refuse(pattern, "an ellipsis in parentheses is only possible on the right side")
    open_ended = _ELLIPSIS in left
    if not open_ended and any(g is _ELLIPSIS or "..." in g for g in right):
        _refuse(pattern, "an ellipsis on the right side needs one on the left side")
    named = len(left) - open_ended
    if named != ndim and not (open_ended and named < ndim):
        _refuse(pattern, f"the pattern has {named} dimensions, but the tensor has {ndim}")
    extra = [f"...{i}" for i in range(ndim - named)]
    left, right = (_without_ellipsis(side, extra) for side in (left, right))
    names = {name for group in left for name in group}
    for name in {name for group in right for name in group} ^ names:
        _refuse(pattern, f"{name!r} must be on both sides of '->', but is on one of them only")
    for name in lengths.keys() - names:
        _refuse(pattern, f"the length of {name!r} is given, but it is not in the pattern")
    return left, right


def _without_ellipsis(side: Axes, extra: list[str]) -> Axes:
    """The names `extra` in place of the ellipsis: as dimensions of their own, or in a group."""
    result: Axes = []
    for group in side:
        if group is _ELLIPSIS:
            result += [[name] for name in extra]
        else:
            result.append([n for name in group for n in (extra if name == "..." else [name])])
    return result


def _side(text: str, pattern: str) -> Axes:
    groups: Axes = []
    seen: set[str] = set()
    inside = False
    for token in _TOKEN.findall(text):
        if token in ("(", ")"):
            if inside == (token == "("):
                _refuse(pattern, "parentheses must come in pairs and not one inside another")
            inside = not inside
            if inside:
                groups.append([])
            continue
        if token == "1":
            if not inside:
                groups.append([])
            continue
        if token != "..." and not token.isidentifier():
            _refuse(pattern, f"{token!r} is no name of a dimension, 1, or '...'")
        if token in seen:
            _refuse(pattern, f"{token!r} stands twice on one side")
        seen.add(token)
        if inside:
            groups[-1].append(token)
        else:
            groups.append(_ELLIPSIS if token == "..." else [token])
    if inside:
        _refuse(pattern, "parentheses must come in pairs and not one inside another")
    return groups


def _sizes(left: Axes, shape: Any, lengths: dict[str, int], pattern: str) -> dict[str, int]:
    for name, length in lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
        if length < 0:
            _refuse(pattern, f"the length of {name!r} must not be negative, got {length}")
    sizes = dict(lengths)
    for dim, (group, size) in enumerate(zip(left, shape, strict=True)):
        unknown = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        if len(unknown) > 1:
            _refuse(pattern, f"the sizes of {unknown} cannot be told; give all but one of them")
        if unknown and known and size % known == 0:
            sizes[unknown[0]] = size // known
        elif unknown or known != size:
            named = "1" if not group else " * ".join(str(sizes.get(n, n)) for n in group)
            _refuse(pattern, f"dimension {dim} has size {size}, which is not {named}")
    return sizes
