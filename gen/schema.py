"""Parses operator signatures such as ``add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``."""

from __future__ import annotations

import re
from dataclasses import dataclass

# schema type -> (ArgType, C++ parameter type, how a boxed Value becomes it)
TYPES = {
    "Tensor": ("Tensor", "const Tensor&", "tensor()"),
    "Tensor?": ("Tensor", "const Tensor&", "tensor()"),
    "Operand": ("Tensor", "Value", ""),  # a tensor or a number
    "Operand?": ("Tensor", "Value", ""),
    "Tensor[]": ("TensorList", "TensorSpan", "tensors()"),
    "Tensor?[]": ("TensorList", "TensorSpan", "tensors()"),
    "Scalar": ("Scalar", "const Scalar&", "scalar()"),
    "Scalar?": ("Scalar", "Value", ""),
    "int": ("Int", "int64_t", "to_int()"),
    "int?": ("Int", "std::optional<int64_t>", "optional_int()"),
    "float": ("Float", "double", "to_double()"),
    "float?": ("Float", "std::optional<double>", "optional_double()"),
    "bool": ("Bool", "bool", "to_bool()"),
    "bool?": ("Bool", "std::optional<bool>", "optional_bool()"),
    "int[]": ("IntList", "IntSpan", "ints()"),
    "int[]?": ("IntList", "std::optional<IntSpan>", "optional_ints()"),
    "float[]": ("FloatList", "std::span<const double>", "floats()"),
    "float[]?": ("FloatList", "std::span<const double>", "floats()"),  # none: no elements
    "str": ("String", "std::string_view", "text()"),
    "str?": ("String", "std::string_view", "text()"),
    "ScalarType?": ("DType", "DType", "dtype()"),
    "ScalarType": ("DType", "DType", "dtype()"),
    "Device?": ("Device", "Device", "device()"),
    "MemoryFormat?": ("Format", "MemoryFormat", "format()"),
    "Generator?": ("Generator", "Generator*", "generator()"),
    "Layout?": ("Layout", "Value", ""),
}


@dataclass
class Arg:
    name: str
    type: str  # a key of TYPES
    default: str | None  # Python source of the default, or None when required
    keyword_only: bool
    list_size: int = 0  # n of int[n]
    operand: bool = False  # an elementwise operand: a number may stand in for the tensor

    @property
    def optional(self) -> bool:
        return self.type.endswith("?")

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith(("Tensor", "Operand"))

    @property
    def cpp_type(self) -> str:
        return "Value" if self.operand else TYPES[self.type][1]

    def unbox(self, value: str) -> str:
        how = "" if self.operand else TYPES[self.type][2]
        return f"{value}.{how}" if how else value


@dataclass
class Schema:
    name: str
    overload: str
    args: list[Arg]
    rets: list[tuple[str, str]]  # (type, name)

    @property
    def cpp_name(self) -> str:
        return self.name + ("_" + self.overload if self.overload else "")

    @property
    def returns_list(self) -> bool:
        return bool(self.rets) and self.rets[0][0] == "Tensor[]"


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "(["
        depth -= c in ")]"
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return parts + [tail] if tail else parts


def parse(text: str) -> Schema:
    m = re.fullmatch(r"(\w+)(?:\.(\w+))?\((.*)\) -> (.+)", text.strip(), re.S)
    if not m:
        raise ValueError(f"malformed schema: {text!r}")
    name, overload, arg_text, ret_text = m.groups()
    args, keyword_only = [], False
    for part in _split(arg_text):
        if part == "*":
            keyword_only = True
            continue
        head, _, default = part.partition("=")
        type_, _, arg_name = head.strip().rpartition(" ")
        type_ = re.sub(r"\(\w!?\)", "", type_)  # alias annotations are for the reader
        size = re.search(r"\[(\d+)\]", type_)
        type_ = re.sub(r"\[\d+\]", "[]", type_)
        if type_ not in TYPES:
            raise ValueError(f"{text!r}: unknown type {type_!r}")
        args.append(
            Arg(
                arg_name,
                type_,
                default.strip() or None,
                keyword_only,
                int(size.group(1)) if size else 0,
                type_.startswith("Operand"),
            )
        )
    ret_text = ret_text.strip()
    if ret_text.startswith("("):
        rets = []
        for part in _split(ret_text[1:-1]):
            t, _, n = part.rpartition(" ")
            rets.append((t, n) if t else (n, ""))
    else:
        rets = [(re.sub(r"\(\w!?\)", "", ret_text), "")]
    return Schema(name, overload or "", args, rets)
