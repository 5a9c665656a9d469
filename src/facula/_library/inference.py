"""Schemas from the annotations of a function."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import facula

_SINGLE: dict[Any, str] = {
    facula.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    facula.dtype: "ScalarType",
    facula.device: "Device",
}
_LISTED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")
_SEQUENCES = (list, collections.abc.Sequence)


def _name_of(annotation: Any) -> str | None:
    """The type in a schema; None when there is none."""
    if annotation in _SINGLE:
        return _SINGLE[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if set(inner) == {int, float, bool}:
            return "Scalar"
        rest = [a for a in inner if a is not type(None)]
        if len(rest) < len(inner):
            name = _name_of(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007
            return name + "?" if name and not name.endswith("?") else None
        return None
    if origin in _SEQUENCES and len(inner) == 1:
        name = _name_of(inner[0])
        if name in _LISTED or name == "Tensor?":
            return name + "[]"
    return None


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, facula.dtype):
        return str(value).removeprefix("facula.")
    if isinstance(value, facula.device):
        return f'"{value}"'
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    raise TypeError(value)


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function with annotations.

    Args:
        prototype_function: the function.
        mutates_args: the names of the arguments that it changes, or "unknown" for all tensors.
        op_name: put in front.

    Example::

        >>> def scale(x: facula.Tensor, by: float = 2.0) -> facula.Tensor:
        ...     return x * by
        >>> facula.library.infer_schema(scale, mutates_args=())
        '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function, eval_str=True)

    def refuse(what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature}")

    unknown = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not unknown:
        refuse("mutates_args should be a collection of names, or the string 'unknown'.")
    mutated = set() if unknown else set(mutates_args)
    if missing := mutated - set(signature.parameters):
        refuse(
            f"{missing} in mutates_args were not found in the custom op's signature. mutates_args "
            "should contain the names of all args that the custom op mutates, or just the string "
            "'unknown' if you don't know."
        )
    parts: list[str] = []
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind == parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.annotation is parameter.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = _name_of(parameter.annotation)
        if kind is None:
            hint = ""
            if typing.get_origin(parameter.annotation) is tuple:
                hint = " We do not support Tuple inputs in schema. Use a list instead: list[int]."
            refuse(
                f"Parameter {name} has unsupported type {parameter.annotation}.{hint} The valid "
                "types are: Tensor, int, float, bool, str, dtype, device, int | float | bool, "
                "lists of tensors and numbers, and any of them or None."
            )
        if name in mutated and not kind.startswith("Tensor"):
            refuse(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors "
                "can be mutated"
            )
        if kind.startswith("Tensor") and (name in mutated or unknown):
            kind = f"Tensor(a{i}!)" + kind.removeprefix("Tensor")
        default = ""
        if parameter.default is not parameter.empty:
            try:
                default = f"={_default_text(parameter.default)}"
            except TypeError:
                refuse(
                    f"Parameter {name} has an unsupported default value of type "
                    f"{type(parameter.default)}."
                )
        parts.append(f"{kind} {name}{default}")
    returned = signature.return_annotation
    if returned is signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    if returned is None or returned is type(None):
        results = "()"
    else:
        is_tuple = typing.get_origin(returned) is tuple
        listed = typing.get_args(returned) if is_tuple else (returned,)
        names = [_name_of(r) for r in listed]
        for annotation, name in zip(listed, names, strict=True):
            if name not in _RETURNED:
                refuse(
                    f"Return has unsupported type {annotation}. The valid types are: Tensor, "
                    "list[Tensor], int, float, bool, int | float | bool, and tuples of them."
                )
        results = ", ".join(name for name in names if name)
        results = f"({results})" if is_tuple else results
    return f"{op_name or ''}({', '.join(parts)}) -> {results}"
