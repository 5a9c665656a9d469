"""Expressions that are legal in Python, written out as C++. Every name is checked."""

from __future__ import annotations

import ast

_BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_UNARY = {ast.USub: "-", ast.Not: "!", ast.Invert: "~", ast.UAdd: "+"}


def parse_expression(text: str, where: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise ValueError(f"{where}: {text!r} is no expression: {e}") from None


def names_in(node: ast.AST) -> list[str]:
    """Variable names in order of first use (called functions are not variables)."""
    called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    found = []
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and id(n) not in called and n.id not in found:
            found.append(n.id)
    return found


def functions_in(node: ast.AST) -> set[str]:
    return {
        n.func.id
        for n in ast.walk(node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }


def to_cpp(
    node: ast.expr,
    rename: dict[str, str] | None = None,
    call_prefix: str = "",
    fraction: str = "{}",
    chosen: str = "{}",
) -> str:
    """C++ text of the expression; ``rename`` maps variables, calls get ``call_prefix``.

    ``fraction`` and ``chosen`` are patterns for numbers with a point and for both sides of a choice.
    """
    rename = rename or {}

    def go(n: ast.expr) -> str:
        match n:
            case ast.Constant(value=bool() as v):
                return "true" if v else "false"
            case ast.Constant(value=None):
                return "std::nullopt"
            case ast.Constant(value=str() as v):
                return '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
            case ast.Constant(value=float() as v):
                return fraction.format(repr(v))
            case ast.Constant(value=v):
                return repr(v)
            case ast.Name(id=name):
                return rename.get(name, name)
            case ast.BinOp(left=left, op=op, right=right):
                return f"({go(left)} {_BINARY[type(op)]} {go(right)})"
            case ast.UnaryOp(op=op, operand=operand):
                return f"({_UNARY[type(op)]}{go(operand)})"
            case ast.BoolOp(op=op, values=values):
                return (
                    "("
                    + (" && " if isinstance(op, ast.And) else " || ").join(map(go, values))
                    + ")"
                )
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return f"({go(left)} {_COMPARE[type(op)]} {go(right)})"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({go(test)} ? {chosen.format(go(body))} : {chosen.format(go(orelse))})"
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return f"{call_prefix if name not in rename else ''}{rename.get(name, name)}({', '.join(map(go, args))})"
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args, keywords=[]):
                return f"{go(value)}.{attr}({', '.join(map(go, args))})"
            case ast.List(elts=elts):
                return "Dims{" + ", ".join(map(go, elts)) + "}"
            case ast.Subscript(value=value, slice=index):
                return f"{go(value)}[{go(index)}]"
        raise ValueError(f"not expressible in C++: {ast.unparse(n)!r}")

    return go(node)
