"""Writes the C++ of the rows: typed functions, boxing shims, derivatives and records."""

from __future__ import annotations

import ast

from gen import autocast
from gen.expression import functions_in, names_in, parse_expression, to_cpp
from gen.rows import DTYPE_GROUPS, Row
from gen.schema import TYPES, Arg

HEADER = "// Generated from ops/{source} by gen. Do not edit.\n"
ISA = ["baseline", "v3", "v4"]


def cpp_default(arg: Arg) -> str:
    """The default of a C++ parameter."""
    d = ast.literal_eval(arg.default)  # type: ignore[arg-type]
    if d is None:
        return {
            "Tensor?": "Tensor()",
            "ScalarType?": "DType::None",
            "Device?": "kNoDevice",
            "MemoryFormat?": "MemoryFormat::None",
            "Generator?": "nullptr",
            "str?": '""',
            "float[]?": "std::span<const double>()",
        }.get(arg.type, "std::nullopt")
    if isinstance(d, bool):
        return "true" if d else "false"
    if isinstance(d, str):
        return f'"{d}"'
    if isinstance(d, (list, tuple)):
        return "IntSpan()" if not d else "kDefault_" + "_".join(str(x).replace("-", "m") for x in d)
    if arg.type in ("Scalar", "Scalar?") or arg.operand:
        return f"Scalar({d!r})" if not arg.operand else repr(d)
    return repr(d)


def boxed_default(arg: Arg) -> str:
    if arg.default is None:
        return "Value()"
    d = ast.literal_eval(arg.default)
    if d is None:
        return "Value()"
    if isinstance(d, bool):
        return f"Value({str(d).lower()})"
    if isinstance(d, int):
        return f"Value(double({d}))" if arg.type.startswith("float") else f"Value(int64_t({d}))"
    if isinstance(d, float):
        return f"Value({d!r})"
    if isinstance(d, str):
        return f'Value(std::string_view("{d}"))'
    return f"Value({cpp_default(arg)})"


def parameters(row: Row, defaults: bool) -> str:
    """C++ parameters; once one has no default, C++ wants none before it, so only a tail gets them."""
    args = row.schema.args
    first = len(args)
    while first > 0 and args[first - 1].default is not None:
        first -= 1
    out = []
    for i, a in enumerate(args):
        text = f"{a.cpp_type} {a.name}"
        if defaults and i >= first:
            text += f" = {cpp_default(a)}"
        out.append(text)
    return ", ".join(out)


def return_type(row: Row) -> str:
    if row.schema.returns_list:
        return "std::vector<Tensor>"
    n = len(row.schema.rets)
    return "Tensor" if n == 1 else "std::tuple<" + ", ".join(["Tensor"] * n) + ">"


def kernel_name(row: Row) -> str:
    return row.family.options.get("kernel", row.schema.cpp_name)


def needs_kernel(row: Row) -> bool:
    return row.family.name in ("view", "kernel", "composite")


def kernel_declaration(row: Row) -> str:
    params = parameters(row, defaults=False)
    if row.family.options.get("own_out") or row.mutates:
        return f"void {kernel_name(row)}({params}, Rets& rets);"
    return f"{return_type(row)} {kernel_name(row)}({params});"


def names_node(row: Row) -> bool:
    """Whether it is a composite after which the last node of its result is called."""
    return row.family.name == "composite" and bool(row.node)


def shim(row: Row) -> str:
    """Boxed to typed, for kernels written by hand."""
    unboxed = ", ".join(a.unbox(f"a[{i}]") for i, a in enumerate(row.schema.args))
    name = f"kernel_{row.schema.cpp_name}"
    k = f"kernels::{kernel_name(row)}"
    head = f"static void {name}(const OpDef&, const Value* a, Rets& r) {{\n"
    if names_node(row):
        head += "  const uint64_t earlier = next_node();\n"
        named = [
            f'  name_node(r.t[{i}], earlier, "{row.node}");\n' for i in range(len(row.schema.rets))
        ]
    else:
        named = []
    end = "".join(named) + "}\n"
    if row.family.options.get("own_out") or row.mutates:
        return f"{head}  {k}({unboxed}, r);\n}}\n"
    if row.schema.returns_list:
        return f"{head}  *r.list = {k}({unboxed});\n}}\n"
    if len(row.schema.rets) == 1:
        return f"{head}  r.t[0] = {k}({unboxed});\n{end}"
    ties = ", ".join(f"r.t[{i}]" for i in range(len(row.schema.rets)))
    return f"{head}  std::tie({ties}) = {k}({unboxed});\n{end}"


class _Shapes(ast.NodeTransformer):
    """Rewrites ``self.sizes()`` to a variable of its own, so that only the shape is saved.

    For a list of tensors that is one list: the rank and the sizes of each.
    """

    WHAT = {"sizes": "Sizes", "strides": "Strides", "offset": "Offset", "dtype": "DType"}

    def __init__(self, tensors: set[str]) -> None:
        self.tensors = tensors
        self.used: dict[str, tuple[str, str]] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        f = node.func
        if (
            isinstance(f, ast.Attribute)
            and isinstance(f.value, ast.Name)
            and f.value.id in self.tensors
            and f.attr in self.WHAT
        ):
            name = f"{f.value.id}_{f.attr}"
            self.used[name] = (f.value.id, self.WHAT[f.attr])
            return ast.Name(name, ast.Load())
        self.generic_visit(node)
        return node


class Derivative:
    """The vjp function of a row and what it must save."""

    def __init__(self, row: Row, known: set[str]) -> None:
        self.row = row
        schema = row.schema
        self.arg_index = {a.name: i for i, a in enumerate(schema.args)}
        self.ret_names = (
            [n or "result" for _, n in schema.rets] if len(schema.rets) > 1 else ["result"]
        )
        grads = dict(row.grad)
        if row.mutates and "self" not in grads:
            grads["self"] = "zeros_like(grad)"  # overwritten: no gradient flows to what was there
        self.grads = {a.name: grads[a.name] for a in schema.args if a.name in grads}
        self.saved_args: dict[tuple[str, str], int] = {}  # (argument, what) -> used_by mask
        self.saved_rets: dict[str, int] = {}
        self.functions: set[str] = set()  # the operators that the derivatives call
        self.group_of = {n: group for group in row.grad_groups for n in group}
        self.parsed: dict[str, tuple[ast.expr, list[str], dict[str, tuple[str, str]]]] = {}
        for name, text in self.grads.items():
            if not text:
                continue
            where = f"derivative of {schema.name} by {name}"
            tree = parse_expression(text, where)
            shapes = _Shapes({a.name for a in schema.args if a.is_tensor})
            tree = shapes.visit(tree)
            for f in functions_in(tree):
                if f not in known:
                    raise ValueError(f"{where}: unknown operator {f!r}")
                self.functions.add(f)
            bit = 1 << self.arg_index[name]
            used = names_in(tree)
            for v in used:
                if v in shapes.used:
                    self.saved_args[shapes.used[v]] = self.saved_args.get(shapes.used[v], 0) | bit
                elif v in self.arg_index:
                    key = (v, "Whole")
                    self.saved_args[key] = self.saved_args.get(key, 0) | bit
                elif v in self.ret_names:
                    self.saved_rets[v] = self.saved_rets.get(v, 0) | bit
                elif v == "wanted" and name in self.group_of:
                    continue
                elif v != "grad" and not (
                    v.startswith(("grad_", "given_")) and v.partition("_")[2] in self.ret_names
                ):
                    raise ValueError(f"{where}: unknown name {v!r}")
            self.parsed[name] = (tree, used, shapes.used)

    def emit(self) -> str:
        schema = self.row.schema
        single = len(schema.rets) == 1 and not schema.returns_list
        # A derivative that only raises reads none of several gradients.
        names = {name for _, used, _ in self.parsed.values() for name in used}
        reads = (
            single or schema.returns_list or any(n.startswith(("grad", "given_")) for n in names)
        )
        given = "Tensor* g" if reads else "Tensor*"
        lines = [
            f"static void vjp_{schema.cpp_name}([[maybe_unused]] Node& n, {given}, Tensor* out, uint64_t needs) {{"
        ]
        if single:
            lines.append("  if (!g[0].defined()) return;")
            if any("grad" in used for _, used, _ in self.parsed.values()):
                lines.append("  const Tensor& grad = g[0];")
        elif schema.returns_list:
            lines.append("  auto grad = list_grads(n, g);")
        slots = {k: i for i, k in enumerate(self.saved_args)}
        edge_of = {name: i for i, name in enumerate(self.grads)}
        for name, edge in edge_of.items():
            group = self.group_of.get(name, (name,))
            if name not in self.parsed or name != group[0]:
                continue
            tree, used, shape_names = self.parsed[name]
            is_list = schema.args[self.arg_index[name]].type == "Tensor[]"
            together = sum(1 << edge_of[n] for n in group)
            test = "" if is_list else f">> {edge} & 1" if len(group) == 1 else f"& {together}"
            lines.append(f"  if (needs {test}) {{")
            for k, v in enumerate(used):
                if v in shape_names:
                    key = shape_names[v]
                    how = {"DType": "dtype()", "Offset": "to_int()"}.get(key[1], "ints()")
                elif v in self.arg_index:
                    key = (v, "Whole")
                    how = None
                elif v in self.ret_names:
                    slot = len(self.saved_args) + list(self.saved_rets).index(v)
                    lines.append(
                        f"    Tensor h{k};\n    Value v{k} = n.value({slot}, h{k});\n"
                        f"    const Tensor& {v} = v{k}.tensor();"
                    )
                    continue
                elif v == "wanted" and len(group) > 1:
                    bits = [f"(needs >> {edge_of[n]} & 1) << {i}" for i, n in enumerate(group)]
                    lines.append(f"    const int64_t wanted = int64_t({' | '.join(bits)});")
                    continue
                else:
                    if v.startswith(("grad_", "given_")):
                        i = self.ret_names.index(v.partition("_")[2])
                        value = f"grad_or_zeros(n, g, {i})" if v[1] == "r" else f"g[{i}]"
                        lines.append(f"    Tensor {v} = {value};")
                    elif not single and not schema.returns_list:
                        lines.append("    Tensor grad = grad_or_zeros(n, g, 0);")
                    continue
                arg = schema.args[self.arg_index[key[0]]]
                unboxed = f"v{k}.{how}" if how else arg.unbox(f"v{k}")
                lines.append(
                    f"    Tensor h{k};\n    Value v{k} = n.value({slots[key]}, h{k});\n"
                    f"    auto&& {v} = {unboxed};"
                )
            text = to_cpp(tree, call_prefix="op::")
            if is_list:
                lines.append(
                    f"    auto list = {text};\n"
                    f"    for (size_t i = 0; i < list.size(); ++i) out[{edge} + i] = list[i];"
                )
            elif len(group) > 1:
                lines.append(f"    auto results = {text};")
                for i, n in enumerate(group):
                    lines.append(
                        f"    if (needs >> {edge_of[n]} & 1) "
                        f"out[{edge_of[n]}] = nth_result<{i}>(results);"
                    )
            else:
                lines.append(f"    out[{edge}] = {text};")
                if self.row.constant_slope and name == "self":
                    lines.append(f"    keep_constant_slope_in_graph(n, {edge}, out[{edge}]);")
            lines.append("  }")
        if not self.parsed:
            lines[1:] = ["  (void)n, (void)g, (void)out, (void)needs;"]
        lines.append("}")
        return "\n".join(lines) + "\n"


def node_name(row: Row, index: int) -> str:
    base = "".join(p.capitalize() for p in row.name.strip("_").split("_"))
    return row.node or f"{base}Backward{index}"


def draws(row: Row) -> bool:
    return row.family.name == "kernel" and any(a.type == "Generator?" for a in row.schema.args)


def flags(row: Row) -> str:
    o = row.family.options
    f = []
    if row.family.name == "composite":
        f.append("kOpComposite")
    if row.family.name == "view":
        f.append("kOpView")
    if o.get("multi"):
        f.append("kOpMultiView")
    if row.schema.returns_list:
        f.append("kOpListResult")
    if row.mutates:
        f.append("kOpMutates")
    if draws(row):
        f.append("kOpRandom")
    if o.get("own_out") or row.family.name in ("elementwise", "reduction"):
        f.append("kOpOwnOut")
    if (
        not row.grad
        and row.family.name != "composite"
        and not row.mutates
        and o.get("no_grad", True)
    ):
        f.append("kOpNoGrad")
    if o.get("numbers") == "all":
        f.append("kOpNumbers")
    return " | ".join(f) or "0"


def dtype_mask(types: str) -> str:
    names = [d for letter in types for d in DTYPE_GROUPS[letter]]
    return " | ".join(f"1u << int(DType::{d})" for d in names)


# Functions that take a few instructions. A formula with others keeps one processor busy for longer
# than its memory does.
_CHEAP = frozenset(
    ("abs", "ceil", "copysign", "floor", "fmax", "fmin", "frac", "heaviside", "isfinite", "isinf")
    + ("isnan", "limited", "maximum", "minimum", "reciprocal", "round", "select", "sgn", "sign")
    + ("signbit", "sqrt", "square", "trunc")
)


def is_costly(row: Row) -> bool:
    text = formula_for(row, "f") if "f" in row.family.options["types"] else ""
    return bool(text) and not functions_in(parse_expression(text, row.name)) <= _CHEAP


def formula_for(row: Row, letter: str) -> str:
    return row.f.get(letter, row.f.get("", ""))


def refusal(row: Row) -> str:
    if "refuses" not in row.family.options:
        return "{}"
    letter, kind, words = row.family.options["refuses"]
    category = {"b": "Bool", "i": "Integral", "f": "Floating", "c": "Complex"}[letter]
    return f'{{Category::{category}, ErrorKind::{kind}, "{words}"}}'


def elementwise_record(row: Row) -> str:
    o = row.family.options
    args = row.schema.args
    operands = [i for i, a in enumerate(args) if a.operand]
    masks = sum(1 << k for k, i in enumerate(operands) if args[i].name in o.get("masks", ()))
    params = [i for i, a in enumerate(args) if not a.operand]
    kinds = {"Scalar": "Compute", "float": "Real", "float?": "Real", "int": "Int", "bool": "Bool"}
    name = row.schema.cpp_name
    letters = "abcde"
    formulas = []
    for letter in "bifc":
        text = formula_for(row, letter)
        if letter in o["types"] and text:
            rename = {letters[k]: letters[k] for k in range(len(operands))}
            formulas.append(
                '"' + to_cpp(parse_expression(text, name), rename).replace('"', '\\"') + '"'
            )
        else:
            formulas.append("nullptr")
    tables = f"extern const Loop loops_{name}[kDTypes];"
    if o.get("number_loops"):
        tables += f" extern const RowsLoop rows_{name}[kDTypes];"
    loops = "\n".join(
        f"namespace {i} {{ {tables} }}"
        if i == "baseline"
        else f"#ifdef FACULA_X86\nnamespace {i} {{ {tables} }}\n#endif"
        for i in ISA
    )
    rows = f"FACULA_LOOP_TABLES(rows_{name})" if o.get("number_loops") else ""
    return (
        f"{loops}\nstatic const ElementwiseDef elementwise_{name} = {{{len(operands)}, "
        f"{{{', '.join(map(str, operands))}}}, {masks}, Promote::{o['promote']}, OutKind::{o['out']}, "
        f"{dtype_mask(o['types'])}, {len(params)}, {{{', '.join(map(str, params))}}}, "
        f"{{{', '.join('ParamKind::' + kinds[args[i].type] for i in params)}}}, "
        f"{{FACULA_LOOP_TABLES(loops_{name})}}, {{{rows}}}, {{{', '.join(formulas)}}}, "
        f"{'true' if is_costly(row) else 'false'}, "
        f"{'checks::' + o['check'] if 'check' in o else 'nullptr'}, "
        f"{'shortcuts::' + o['shortcut'] if 'shortcut' in o else 'nullptr'}, "
        f"{'repeated::' + o['into_repeated'] if 'into_repeated' in o else 'nullptr'}, "
        f"{refusal(row)}}};\n"
    )


def reduce_record(row: Row) -> str:
    o = row.family.options
    name = row.schema.cpp_name
    decl = "\n".join(
        (
            f"namespace {i} {{ extern const ReduceLoop reduce_{name}[kDTypes]; extern const Loop fold_{name}[kDTypes]; }}"
            if i == "baseline"
            else f"#ifdef FACULA_X86\nnamespace {i} {{ extern const ReduceLoop reduce_{name}[kDTypes]; "
            f"extern const Loop fold_{name}[kDTypes]; }}\n#endif"
        )
        for i in ISA
    )
    integers = o.get("integers", "")
    index = {a.name: i for i, a in enumerate(row.schema.args)}
    return (
        f"{decl}\nstatic const ReduceDef reduce_{name} = {{{dtype_mask(o['types'])}, "
        f"DType::{integers or 'None'}, DType::{o.get('result', 'None')}, "
        f"{str(o.get('empty', True)).lower()}, "
        f"{', '.join(str(index.get(n, -1)) for n in ('dim', 'keepdim', 'dtype'))}, "
        f"{{FACULA_LOOP_TABLES(reduce_{name})}}, "
        f'{{FACULA_LOOP_TABLES(fold_{name})}}, "{o["combine"]}", "{o.get("init", "")}"}};\n'
    )


def accepts_number(row: Row, arg: Arg) -> bool:
    """Whether Python may pass a number for the tensor. ``exp(3)`` is a mistake more often than not."""
    numbers = row.family.options.get("numbers")
    if not arg.operand or numbers is False:
        return False
    return not row.is_elementwise or arg.name != "self" or bool(numbers)


DIM_NAMES = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", "start_dim", "end_dim"}


def role(row: Row, arg: Arg) -> str:
    """What an argument says about dimensions, by its name."""
    if arg.type.startswith("int") and arg.name in DIM_NAMES:
        return "NewDim" if row.batch == "new dims" else "Dim"
    return "Size" if arg.type.startswith("int[]") and arg.name in ("size", "shape") else "None"


def core(row: Row, arg: Arg) -> int:
    """The dimensions of one of a batch, as ``batch="core 2 1"`` lists them for the tensors."""
    if not row.batch.startswith("core ") or not arg.is_tensor:
        return -1
    tensors = [a.name for a in row.schema.args if a.is_tensor]
    return int(row.batch.split()[1:][tensors.index(arg.name)])


def batch_rule(row: Row) -> str:
    if row.batch:
        name = row.batch.partition(":")[0].partition(" ")[0] if row.batch != "new dims" else "dims"
        return "batch::" + name
    if draws(row):
        return "batch::random"
    return {"elementwise": "batch::elementwise", "reduction": "batch::reduction"}.get(
        row.family.name, "nullptr"
    )


def jvp_kind(row: Row) -> str:
    kinds = {
        "linear": "Linear",
        "each": "Each",
        "by vjp": "ByVjp",
        "by vjp at 0": "ByVjpAtZero",
        "by vjp if complex": "FormulaIfReal",
    }
    if row.jvp:
        return kinds[row.jvp]
    return "Formula" if row.is_elementwise else "ByVjp"


def record(row: Row, derivative: Derivative, index: int, names: set[str]) -> str:
    s = row.schema
    name = s.cpp_name
    out = [f"static const ArgDef args_{name}[] = {{"]
    for a in s.args:
        out.append(
            f'    {{"{a.name}", ArgType::{TYPES[a.type][0]}, {str(a.optional or a.type == "Tensor?[]").lower()}, '
            f"{str(accepts_number(row, a)).lower()}, {str(a.keyword_only).lower()}, "
            f"{str(a.default is not None).lower()}, {a.list_size}, ArgRole::{role(row, a)}, {core(row, a)}, {boxed_default(a)}}},"
        )
    out.append("};" if s.args else "    {}};")
    has_vjp = bool(derivative.grads)
    spec = [
        f"{{{derivative.arg_index[n]}, SaveSpec::What::{w}, {m}}}"
        for (n, w), m in derivative.saved_args.items()
    ]
    rets = [
        f"{{{derivative.ret_names.index(n)}, SaveSpec::What::Whole, {m}}}"
        for n, m in derivative.saved_rets.items()
    ]
    if spec:
        out.append(f"static const SaveSpec save_args_{name}[] = {{{', '.join(spec)}}};")
    if rets:
        out.append(f"static const SaveSpec save_rets_{name}[] = {{{', '.join(rets)}}};")
    named = len(s.rets) > 1 and all(n for _, n in s.rets)
    if named:
        names = ", ".join(f'"{n}"' for _, n in s.rets)
        out.append(f"static const char* const ret_names_{name}[] = {{{names}}};")
    differentiable = sum(1 << derivative.arg_index[n] for n in derivative.grads)
    nondiff = sum(1 << i for i, (_, n) in enumerate(s.rets) if n in row.nondifferentiable)
    whole = row.batch == "all" or (
        row.family.name == "reduction" and not any(a.name == "dim" for a in s.args)
    )
    if whole and f"{name}_dim" not in names:
        raise ValueError(f"{s.name}: a reduction over everything needs an overload {s.name}.dim")
    along = f"&{name}_dim" if whole else "nullptr"
    kernel = {"elementwise": "elementwise_kernel", "reduction": "reduce_kernel"}.get(
        row.family.name, f"kernel_{name}"
    )
    out.append(
        f'const OpDef {name} = {{"{s.name}", "{s.name if row.mutates else s.name + "_"}", '
        f'"{s.overload}", args_{name}, {len(s.args)}, {len(s.rets)},\n'
        f"    {flags(row)}, {kernel},\n"
        f"    {'&elementwise_' + name if row.is_elementwise else 'nullptr'}, "
        f"{'&reduce_' + name if row.family.name == 'reduction' else 'nullptr'},\n"
        f'    {"vjp_" + name if has_vjp else "nullptr"}, "{node_name(row, index)}", '
        f"{'save_args_' + name if spec else 'nullptr'}, {'save_rets_' + name if rets else 'nullptr'}, "
        f"{len(spec)}, {len(rets)}, {differentiable}, {nondiff}, "
        f"{'ret_names_' + name if named else 'nullptr'},\n"
        f"    Jvp::{jvp_kind(row)}, {batch_rule(row)}, {along}, {autocast.policies(s.name)}}};\n"
    )
    return "\n".join(out)


def typed_functions(row: Row) -> str:
    s = row.schema
    boxed = ", ".join(f"Value({a.name})" for a in s.args) or "Value()"
    name = s.cpp_name
    params = parameters(row, defaults=False)
    box = f"  const Value args[] = {{{boxed}}};\n"
    self_arg = "self.tensor()" if s.args and s.args[0].operand else "self"
    in_place = f"{box}  return call_in_place(defs::{name}, args, {self_arg});\n"
    if row.mutates:
        return f"Tensor {name}({params}) {{\n{in_place}}}\n"
    if s.returns_list:
        run = f"  return call_for_list(defs::{name}, args);\n"
    elif len(s.rets) == 1:
        run = f"  return call_for_tensor(defs::{name}, args);\n"
    else:
        items = ", ".join(f"std::move(rets.t[{i}])" for i in range(len(s.rets)))
        run = f"  Rets rets;\n  call(defs::{name}, args, rets);\n  return {{{items}}};\n"
    text = f"{return_type(row)} {name}({params}) {{\n{box}{run}}}\n"
    if row.inplace:
        text += f"Tensor {name}_({params}) {{\n{in_place}}}\n"
    return text


def typed_declarations(row: Row) -> str:
    name = row.schema.cpp_name
    params = parameters(row, defaults=True)
    if row.mutates:
        return f"Tensor {name}({params});\n"
    text = f"{return_type(row)} {name}({params});\n"
    if row.inplace:
        text += f"Tensor {name}_({params});\n"
    return text


OPS_HEADER = """// Generated from ops/{module}.py by gen. Do not edit.
// The typed C++ function of every operator: boxes its arguments and calls the record.
#pragma once
#include <tuple>
#include <vector>

#include "op/ops/defaults.h"

namespace facula {{

namespace defs {{
{defs}}}  // namespace defs

namespace op {{
{functions}}}  // namespace op

}}  // namespace facula
"""


def emit_defaults(rows: list[Row]) -> str:
    """The lists that stand as defaults in signatures."""
    lists = set()
    for r in rows:
        for a in r.schema.args:
            if a.default and a.default.startswith("[") and a.default != "[]":
                lists.add(tuple(ast.literal_eval(a.default)))
    text = ""
    for t in sorted(lists):
        name = "_".join(str(x).replace("-", "m") for x in t)
        text += (
            f"inline constexpr int64_t kArray_{name}[] = {{{', '.join(map(str, t))}}};\n"
            f"inline constexpr IntSpan kDefault_{name}(kArray_{name});\n"
        )
    return (
        "// Generated from ops/ by gen. Do not edit.\n"
        f'#pragma once\n#include "op/def.h"\n\nnamespace facula {{\n\n{text}\n}}  // namespace facula\n'
    )


def emit_header(module: str, rows: list[Row]) -> str:
    return OPS_HEADER.format(
        module=module,
        defs="".join(f"extern const OpDef {r.schema.cpp_name};\n" for r in rows),
        functions="".join(typed_declarations(r) for r in rows),
    )


def emit_umbrella(modules: list[str]) -> str:
    includes = "".join(f'#include "op/ops/{m}.h"\n' for m in modules)
    return (
        "// Generated from ops/ by gen. Do not edit.\n"
        "// All operators. A file that uses few of them includes their modules instead, so that a new\n"
        "// row rebuilds little.\n"
        f'#pragma once\n{includes}#include "op/tensor_operators.h"\n'
    )


def emit_kernels_header(module: str, rows: list[Row]) -> str:
    body = "".join(kernel_declaration(r) + "\n" for r in rows if needs_kernel(r))
    return (
        f"// Generated from ops/{module}.py by gen. Do not edit.\n"
        "// The kernels that are written by hand: defining one with another signature fails to link.\n"
        '#pragma once\n#include <tuple>\n#include <vector>\n\n#include "op/def.h"\n\n'
        f"namespace facula::kernels {{\n\n{body}\n}}  // namespace facula::kernels\n"
    )


def emit_module(module: str, rows: list[Row], all_rows: list[Row]) -> str:
    known = {r.schema.cpp_name for r in all_rows}
    overload_index: dict[str, int] = {}
    indices = {}
    for r in all_rows:
        indices[id(r)] = overload_index.get(r.name, 0)
        overload_index[r.name] = indices[id(r)] + 1
    home = {r.schema.cpp_name: r.module for r in all_rows}
    derivatives = [Derivative(r, known) for r in rows]
    used = {home[f] for d in derivatives for f in d.functions}
    includes = "".join(f'#include "op/ops/{m}.h"\n' for m in sorted(used | {module}))
    parts = [
        HEADER.format(source=module + ".py"),
        '#include "autograd/constant_slope.h"\n' if any(r.constant_slope for r in rows) else "",
        '#include "autograd/node_names.h"\n' if any(map(names_node, rows)) else "",
        f'{includes}#include "op/kernels/{module}.h"\n#include "op/records.h"\n'
        '#include "op/tensor_operators.h"\n\nnamespace facula {\n',
    ]
    defs = []
    for r, d in zip(rows, derivatives, strict=True):
        if needs_kernel(r):
            parts.append(shim(r))
        if r.is_elementwise:
            parts.append(elementwise_record(r))
        if r.family.name == "reduction":
            parts.append(reduce_record(r))
        if d.grads:
            parts.append(d.emit())
        defs.append(record(r, d, indices[id(r)], known))
    parts.append(
        "namespace defs {\n\n" + "\n".join(defs) + "\n}  // namespace defs\n\nnamespace op {\n\n"
    )
    parts.append("\n".join(typed_functions(r) for r in rows))
    parts.append("\n}  // namespace op\n}  // namespace facula\n")
    return "\n".join(parts)


def emit_registry(rows: list[Row]) -> str:
    entries = []
    for r in rows:
        if not r.python:
            continue
        bits = [
            n
            for n, on in (
                ("kPyFunction", r.function),
                ("kPyMethod", r.method),
                ("kPyInplace", r.inplace),
                ("kPyOut", r.out),
            )
            if on
        ]
        for public in (r.python, *r.aliases):
            # An alias in a namespace is a function only: special.expit of sigmoid.
            dotted = "." in public and "." not in r.python
            shown = [b for b in bits if not dotted or b in ("kPyFunction", "kPyOut")]
            entries.append(
                f'    {{"{public}", &defs::{r.schema.cpp_name}, {" | ".join(shown) or "0"}}},'
            )
    return (
        '// Generated from ops/ by gen. Do not edit.\n#include "op/ops.h"\n#include "op/registry.h"\n\n'
        "namespace facula {\n\nconst PythonEntry kPythonEntries[] = {\n"
        + "\n".join(entries)
        + "\n};\nconst int kPythonEntryCount = sizeof(kPythonEntries) / sizeof(kPythonEntries[0]);\n\n"
        "}  // namespace facula\n"
    )
