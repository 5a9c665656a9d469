"""Writes the docstrings and the type stubs of the operators."""

from __future__ import annotations

import keyword

from gen.rows import Row
from gen.schema import Arg

PYTHON_TYPES = {
    "Operand": "Tensor",
    "Operand?": "Tensor | None",
    "Tensor": "Tensor",
    "Tensor?": "Tensor | None",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "Number",
    "Scalar?": "Number | None",
    "int": "int",
    "int?": "int | None",
    "float": "float",
    "float?": "float | None",
    "bool": "bool",
    "bool?": "bool | None",
    "int[]": "Sequence[int]",
    "int[]?": "int | Sequence[int] | None",
    "float[]": "Sequence[float]",
    "float[]?": "Sequence[float] | None",
    "str": "str",
    "str?": "str | None",
    "ScalarType?": "dtype | None",
    "ScalarType": "dtype",
    "Device?": "Device | None",
    "MemoryFormat?": "memory_format | None",
    "Generator?": "Generator | None",
    "Layout?": "layout | None",
}


def argument(a: Arg) -> str:
    kind = PYTHON_TYPES[a.type]
    if a.operand:
        kind = "Tensor | Number" if not a.optional else "Tensor | Number | None"
    if a.list_size and a.type == "int[]":
        kind = "int | Sequence[int]"
    text = f"{public_name(a)}: {kind}"
    return text + (f" = {a.default}" if a.default is not None else "")


def takes_sizes(row: Row) -> bool:
    """Whether ``zeros(2, 3)`` is as good as ``zeros((2, 3))``: the list is the only positional argument."""
    first_is_tensor = bool(row.schema.args) and row.schema.args[0].is_tensor
    positional = [a for a in row.schema.args[first_is_tensor:] if not a.keyword_only]
    return len(positional) == 1 and positional[0].type == "int[]" and not positional[0].list_size


def signature(row: Row, method: bool, spread: bool = False) -> str:
    """``spread``: the sizes without brackets."""
    parts, star = (["self"] if method else []), False
    for i, a in enumerate(row.schema.args):
        if method and i == 0:
            continue
        if spread and a.type == "int[]" and not a.keyword_only:
            parts.append(f"*{a.name}: int")
            star = True
            continue
        if a.keyword_only and not star:
            parts.append("*")
            star = True
        parts.append(argument(a))
    if row.out and not method:
        if not star:
            parts.append("*")
        many = len(row.schema.rets) > 1
        parts.append(
            "out: " + ("tuple[Tensor, ...] | None" if many else "Tensor | None") + " = None"
        )
    return ", ".join(parts)


def returns(row: Row) -> str:
    if row.schema.returns_list:
        return "tuple[Tensor, ...]"
    n = len(row.schema.rets)
    return "Tensor" if n == 1 else "tuple[" + ", ".join(["Tensor"] * n) + "]"


def result_class(row: Row) -> str:
    """The class of several named results in stubs, "ValuesIndices"; "" for others."""
    names = [name for _, name in row.schema.rets]
    if row.schema.returns_list or len(names) < 2 or not all(names):
        return ""
    return "".join(word.capitalize() for name in names for word in name.split("_"))


def typed_returns(row: Row) -> str:
    named = result_class(row)
    return f"_results.{named}" if named else returns(row)


def public_name(a: Arg) -> str:
    """Functions call their tensor ``input``; a keyword of Python (``from``) gets an underscore."""
    return "input" if a.name == "self" else a.name + "_" * keyword.iskeyword(a.name)


def plain_signature(row: Row, method: bool = False) -> str:
    """The signature as text: of the function, or of the method without ``self``."""
    parts, star = [], False
    spread = takes_sizes(row)
    for a in row.schema.args[method:]:
        if spread and a.type == "int[]" and not a.keyword_only:
            parts.append("*" + a.name)
            star = True
            continue
        if a.keyword_only and not star:
            parts.append("*")
            star = True
        parts.append(public_name(a) + (f"={a.default}" if a.default is not None else ""))
    if row.out and not method:
        if not star:
            parts.append("*")
        parts.append("out=None")
    return ", ".join(parts)


def emit_docs(rows: list[Row]) -> str:
    docs: dict[str, list[str]] = {}
    for r in rows:
        if not r.python or not r.doc:
            continue
        prefix = "" if r.function else "Tensor."
        signature = plain_signature(r, method=not r.function)
        text = f"{prefix}{r.python}({signature}) -> {returns(r)}\n\n{r.doc.strip()}\n"
        if r.example:
            body = "\n".join("    " + line for line in r.example.strip().splitlines())
            text += f"\nExample::\n\n{body}\n"
        for name in (r.python, *r.aliases):
            docs.setdefault(name, []).append(text)
    body = "".join(f"    {n!r}: {chr(10).join(t)!r},\n" for n, t in sorted(docs.items()))
    return (
        '"""Docstrings and signatures of the operators; generated from ops/, do not edit."""\n\n'
        f"DOCS = {{\n{body}}}\n\n"
        f"FUNCTIONS = {{\n{signatures(rows, method=False)}}}\n\n"
        f"METHODS = {{\n{signatures(rows, method=True)}}}\n"
    )


def signatures(rows: list[Row], method: bool) -> str:
    """Lines ``'name': ('signature', ...),``, one signature for each overload."""
    found: dict[str, list[str]] = {}
    for r in rows:
        in_place = r.inplace and (method or r.function)
        for name in (r.python, *r.aliases) if r.python else ():
            if r.method if method else r.function:
                found.setdefault(name, []).append(plain_signature(r, method))
            if in_place:
                text = (
                    plain_signature(r, method).removesuffix("*, out=None").removesuffix("out=None")
                )
                found.setdefault(name + "_", []).append(text.removesuffix(", "))
    return "".join(
        f"    {n!r}: {tuple(dict.fromkeys(texts))!r},\n" for n, texts in sorted(found.items())
    )


def _functions(by_name: dict[str, list[Row]], indent: str, method: bool) -> list[str]:
    lines = []
    for name, rows in sorted(by_name.items()):
        unique = list(
            dict.fromkeys(
                f"{indent}def {name}({signature(r, method, spread)}) -> {typed_returns(r)}: ..."
                for r in rows
                for spread in ((False, True) if takes_sizes(r) else (False,))
            )
        )
        for text in unique:
            if len(unique) > 1:
                lines.append(f"{indent}@overload")
            lines.append(text)
    return lines


def emit_stubs(rows: list[Row]) -> dict[str, str]:
    """``_op_methods.pyi``, ``_op_functions.pyi`` and for each namespace ``_op_<namespace>.pyi``.

    ``_op_results.pyi`` has the classes of named results.
    """
    spaces: dict[str, dict[str, list[Row]]] = {}
    methods: dict[str, list[Row]] = {}
    for r in rows:
        for name in (r.python, *r.aliases) if r.python else ():
            space, _, plain = name.rpartition(".")
            if r.function:
                spaces.setdefault(space, {}).setdefault(plain, []).append(r)
            if r.method and not space:
                methods.setdefault(plain, []).append(r)
            if r.inplace and not space:
                methods.setdefault(plain + "_", []).append(r)
    head = (
        '"""Signatures of the operators; generated from ops/, do not edit."""\n\n'
        "from collections.abc import Sequence\nfrom typing import Any, overload\n\n"
        "from facula._types import Device, Number\n"
        "from facula._C import Generator, dtype, layout, memory_format\n"
        "from facula._C import Tensor\nimport facula._op_results as _results\n\n"
    )
    files = {
        f"_op_{space.replace('.', '_') or 'functions'}.pyi": head
        + "\n".join(_functions(functions, "", False))
        + "\n"
        for space, functions in spaces.items()
    }
    files["_op_methods.pyi"] = (
        head + "class OpMethods:\n" + "\n".join(_functions(methods, "    ", True)) + "\n"
    )
    named = {result_class(r): [name for _, name in r.schema.rets] for r in rows if r.python}
    named.pop("", None)
    files["_op_results.pyi"] = (
        '"""Classes of named results; generated from ops/, do not edit."""\n\n'
        "from typing import NamedTuple\n\nfrom facula._C import Tensor\n\n"
    ) + "\n".join(
        f"class {name}(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in fields)
        for name, fields in sorted(named.items())
    )
    return files
