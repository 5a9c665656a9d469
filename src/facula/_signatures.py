"""What ``inspect.signature`` and ``help`` say about operators."""

from __future__ import annotations

import ast
from inspect import Parameter, Signature
from typing import Any

from facula import _op_docs

_EMPTY = Parameter.empty


def signature_of(name: str, method: bool) -> Signature:
    """The signature of an operator; several overloads are merged into one."""
    texts = (_op_docs.METHODS if method else _op_docs.FUNCTIONS).get(name)
    if texts is None:
        raise ValueError(f"no signature found for operator {name!r}")
    parameters = _merged([_parameters(t) for t in texts])
    first = [Parameter("self", Parameter.POSITIONAL_ONLY)] if method else []
    return Signature(first + parameters)


def _parameters(text: str) -> list[Parameter]:
    found, kind = [], Parameter.POSITIONAL_OR_KEYWORD
    for part in _split(text):
        head, _, default = part.partition("=")
        if head == "*":
            kind = Parameter.KEYWORD_ONLY
        elif head.startswith("*"):
            found.append(Parameter(head[1:], Parameter.VAR_POSITIONAL))
            kind = Parameter.KEYWORD_ONLY
        else:
            found.append(Parameter(head, kind, default=_value(default) if default else _EMPTY))
    return found


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _merged(overloads: list[list[Parameter]]) -> list[Parameter]:
    """Every parameter once. What some overloads lack gets ``...`` for a default."""
    if len(overloads) == 1:
        return overloads[0]
    by_name: dict[str, Parameter] = {}
    for overload in sorted(overloads, key=len, reverse=True):
        for p in overload:
            known = by_name.setdefault(p.name, p)
            if p.kind is Parameter.VAR_POSITIONAL or known.kind is Parameter.VAR_POSITIONAL:
                by_name[p.name] = known.replace(kind=Parameter.VAR_POSITIONAL, default=_EMPTY)
            elif known.default is _EMPTY and p.default is not _EMPTY:
                by_name[p.name] = known.replace(default=p.default)
    merged, optional = [], False
    spread = any(p.kind is Parameter.VAR_POSITIONAL for p in by_name.values())
    for p in by_name.values():
        if p.kind is Parameter.POSITIONAL_OR_KEYWORD:
            everywhere = all(any(q.name == p.name for q in o) for o in overloads)
            if p.default is _EMPTY and (optional or not everywhere):
                p = p.replace(default=...)
            optional |= p.default is not _EMPTY
            if spread and optional:
                p = p.replace(kind=Parameter.KEYWORD_ONLY)
        merged.append(p)
    return sorted(merged, key=lambda p: p.kind)
