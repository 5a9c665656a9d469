"""Schemas of operators: ``ns::name.overload(Tensor x, int[] d=[], *, float? p=None) -> Tensor``."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import facula

BASES: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, facula.Tensor),
    "int": lambda v: _is_int(v),
    "SymInt": lambda v: _is_int(v),
    "float": lambda v: isinstance(v, (int, float)) or _is_single(v),
    "bool": lambda v: isinstance(v, bool) or _is_single(v),
    "str": lambda v: isinstance(v, str),
    "Scalar": lambda v: isinstance(v, (bool, int, float, complex)) or _is_single(v),
    "ScalarType": lambda v: isinstance(v, facula.dtype),
    "Device": lambda v: isinstance(v, (facula.device, str, int)),
    "Layout": lambda v: isinstance(v, facula.layout),
    "MemoryFormat": lambda v: isinstance(v, facula.memory_format),
    "Generator": lambda v: isinstance(v, facula.Generator),
}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) or (_is_single(value) and not value.dtype.is_floating_point)


def _is_single(value: Any) -> bool:
    return isinstance(value, facula.Tensor) and value.numel() == 1 and not value.requires_grad


_TYPE = re.compile(r"(\w+)(\((\w+)(!?)\))?((?:\[\d*\]|\?)*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"(?:(\w+)::)?(\w+)(?:\.(\w+))?$")


@dataclass(frozen=True)
class Type:
    """What an argument or a result is."""

    base: str
    suffix: str = ""  # of "[]", "[2]" and "?", in order
    alias: str = ""
    mutated: bool = False

    def __str__(self) -> str:
        alias = f"({self.alias}{'!' * self.mutated})" if self.alias else ""
        return self.base + alias + self.suffix

    @property
    def plain(self) -> str:
        return self.base + self.suffix

    @property
    def is_tensor_list(self) -> bool:
        return self.base == "Tensor" and "[" in self.suffix

    def accepts(self, value: Any) -> bool:
        return _accepts(self.base, re.findall(r"\[\d*\]|\?", self.suffix), value)


def _accepts(base: str, suffix: list[str], value: Any) -> bool:
    if not suffix:
        return BASES[base](value)
    if suffix[-1] == "?":
        return value is None or _accepts(base, suffix[:-1], value)
    if isinstance(value, (list, tuple)):
        return all(_accepts(base, suffix[:-1], item) for item in value)
    # A single number stands for all of a list of fixed length.
    return len(suffix[-1]) > 2 and _accepts(base, suffix[:-1], value)


@dataclass(frozen=True)
class Argument:
    """One argument of an operator."""

    name: str
    type: Type
    default: Any = inspect.Parameter.empty
    kwarg_only: bool = False
    default_text: str = ""

    def has_default_value(self) -> bool:
        return self.default is not inspect.Parameter.empty

    @property
    def default_value(self) -> Any:
        return self.default if self.has_default_value() else None

    @property
    def is_write(self) -> bool:
        return self.type.mutated

    def __str__(self) -> str:
        default = f"={self.default_text}" if self.has_default_value() else ""
        return f"{self.type} {self.name}{default}"


@dataclass(frozen=True)
class FunctionSchema:
    """The signature of an operator."""

    name: str  # with its namespace
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Type, ...]

    @property
    def is_mutable(self) -> bool:
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        parts = []
        for i, argument in enumerate(self.arguments):
            if argument.kwarg_only and (i == 0 or not self.arguments[i - 1].kwarg_only):
                parts.append("*")
            parts.append(str(argument))
        returns = ", ".join(map(str, self.returns))
        overload = f".{self.overload_name}" if self.overload_name else ""
        listed = returns if len(self.returns) == 1 else f"({returns})"
        return f"{self.name}{overload}({', '.join(parts)}) -> {listed}"

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The values of all arguments, in order."""
        values = []
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise self._refusal(
                f"Expected at most {len(positional)} argument(s) but received {len(args)} "
                "argument(s)."
            )
        left = dict(kwargs)
        for i, argument in enumerate(self.arguments):
            if not argument.kwarg_only and i < len(args):
                if argument.name in left:
                    raise self._refusal(f"got multiple values for argument '{argument.name}'.")
                value = args[i]
            elif argument.name in left:
                value = left.pop(argument.name)
            elif argument.has_default_value():
                value = argument.default
            else:
                raise self._refusal(f"is missing value for argument '{argument.name}'.")
            if not argument.type.accepts(value):
                raise self._refusal(
                    f"Expected a value of type '{argument.type.plain}' for argument "
                    f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                    f"Position: {i}\nValue: {value!r:.200}"
                )
            values.append(value)
        if left:
            raise self._refusal(f"got an unexpected keyword argument '{next(iter(left))}'.")
        return values

    def _refusal(self, what: str) -> RuntimeError:
        return RuntimeError(f"{self.name}() {what}\nDeclaration: {self}")


# ---- text into schemas


class _Reader:
    """Reads a schema from the left."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, token: str) -> bool:
        self.skip()
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.error(f"expected {token!r}")

    def error(self, what: str) -> RuntimeError:
        return RuntimeError(f"{what}:\n{self.text}\n{' ' * self.at}^--- HERE")

    def type(self) -> Type:
        self.skip()
        match = _TYPE.match(self.text, self.at)
        if match is None or match[1] not in BASES:
            raise self.error(f"unknown type; the types are {', '.join(BASES)}, with [] and ?")
        self.at = match.end()
        return Type(match[1], match[5], match[3] or "", bool(match[4]))

    def word(self) -> str:
        self.skip()
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise self.error("expected a name")
        self.at = match.end()
        return match[0]

    def default(self, kind: Type) -> tuple[Any, str]:
        self.skip()
        begin, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            c = self.text[self.at]
            if quote:
                quote = "" if c == quote else quote
            elif c in "\"'":
                quote = c
            elif c in "[(":
                depth += 1
            elif c in ",)]" and depth == 0:
                break
            elif c in ")]":
                depth -= 1
            self.at += 1
        text = self.text[begin : self.at].strip()
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = getattr(facula, text, None)
            if not isinstance(value, (facula.dtype, facula.layout, facula.memory_format)):
                raise self.error(f"{text!r} is no default value") from None
        if kind.base == "Device" and isinstance(value, str):
            value = facula.device(value)
        return value, text


def parse_schema(text: str) -> FunctionSchema:
    """Reads a schema with its name."""
    opening = text.find("(")
    match = _NAME.match(text[:opening].strip()) if opening > 0 else None
    if match is None:
        raise RuntimeError(
            f"expected name(arguments) -> results, got {text!r}; the name may have a namespace and "
            "an overload: ns::name.overload"
        )
    reader = _Reader(text)
    reader.at = opening + 1
    arguments: list[Argument] = []
    only = False
    while not reader.take(")"):
        if arguments or only:
            reader.expect(",")
        if reader.take("*"):
            only = True
            reader.expect(",")
        kind = reader.type()
        name = reader.word()
        default, written = inspect.Parameter.empty, ""
        if reader.take("="):
            default, written = reader.default(kind)
        arguments.append(Argument(name, kind, default, only, written))
    reader.expect("->")
    returns = []
    if reader.take("("):
        while not reader.take(")"):
            if returns:
                reader.expect(",")
            returns.append(reader.type())
            reader.skip()
            if _WORD.match(text, reader.at):
                reader.word()  # results may have names
    else:
        returns.append(reader.type())
    reader.skip()
    if reader.at < len(text):
        raise reader.error("expected the end of the schema")
    namespace = f"{match[1]}::" if match[1] else ""
    return FunctionSchema(namespace + match[2], match[3] or "", tuple(arguments), tuple(returns))
