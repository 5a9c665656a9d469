"""Writes the loop files, which the build compiles once per ISA."""

from __future__ import annotations

from gen.expression import parse_expression, to_cpp
from gen.rows import DTYPE_GROUPS, Row

CPP_TYPES = {
    "Bool": "bool",
    "UInt8": "uint8_t",
    "Int8": "int8_t",
    "Int16": "int16_t",
    "Int32": "int32_t",
    "Int64": "int64_t",
    "UInt16": "uint16_t",
    "UInt32": "uint32_t",
    "UInt64": "uint64_t",
    "Float32": "float",
    "Float64": "double",
    "Complex64": "Complex<float>",
    "Complex128": "Complex<double>",
}
HALF_TYPES = {"Float16": "Half", "BFloat16": "BFloat16"}
PIECES_PER_FILE = 9


def formula_groups(row: Row) -> dict[tuple[str, tuple[str, str] | None], str]:
    """(formula, fallback) -> dtype letters that use them."""
    groups: dict[tuple[str, tuple[str, str] | None], str] = {}
    fallbacks = row.family.options.get("fallback", {})
    for letter in row.family.options["types"]:
        text = row.f.get(letter, row.f.get(""))
        if text is None:
            raise ValueError(f"{row.name}: no formula for the types {letter!r}")
        key = (text, fallbacks.get(letter))
        groups[key] = groups.get(key, "") + letter
    return groups


def elementwise_loops(row: Row) -> str:
    o = row.family.options
    args = row.schema.args
    operands = [a for a in args if a.operand]
    params = [a for a in args if not a.operand]
    name = row.schema.cpp_name
    masks = o.get("masks", ())
    result = {"Compute": "T", "Bool": "bool", "Real": "real_of_t<T>"}[o["out"]]
    types = ", ".join("bool" if a.name in masks else "T" for a in operands)
    lambda_args = ", ".join(
        f"[[maybe_unused]] {'bool' if a.name in masks else 'T'} {'abcde'[i]}"
        for i, a in enumerate(operands)
    )
    kinds = {
        "Scalar": "T",
        "float": "double",
        "float?": "double",  # None arrives as NaN
        "int": "int64_t",
        "bool": "bool",
    }
    reads = "".join(
        f"  [[maybe_unused]] const {kinds[p.type]} {p.name} = param<{kinds[p.type]}>(params, {i});\n"
        for i, p in enumerate(params)
    )
    # A double parameter is read once and narrowed, so that float loops stay float loops.
    reads = reads.replace("const double", "const real_of_t<T>").replace(
        "= param<double>", "= (real_of_t<T>)param<double>"
    )
    out = []
    table, table_of_rows = {}, {}

    def function_of_operands(text: str, kind: str) -> str:
        # Without its type, a number with a point would make a float loop one of double.
        cpp = to_cpp(
            parse_expression(text, f"formula of {row.name}"),
            call_prefix="math::",
            fraction="{}" if set(o["types"]) & set("bi") else "real_of_t<T>({})",
        )
        # A long formula that stayed a call would not be vectorised.
        return (
            f"[=]({lambda_args}) __attribute__((always_inline)) -> {kind} "
            f"{{ return {kind}({cpp}); }}"
        )

    for k, ((text, fallback), letters) in enumerate(formula_groups(row).items()):
        fn = f"{name}_{k}"
        run = (
            f"run<{result}, {types}>(pointers, strides, count, "
            f"{function_of_operands(text, result)})"
        )
        if o.get("number_loops"):
            out.append(
                f"template <class T>\nstatic void {fn}_rows(char* const* pointers, "
                "const int64_t* strides, const int64_t* steps, int64_t count, int64_t rows, "
                f"[[maybe_unused]] const void* params) {{\n{reads}"
                f"  run_rows<{result}, {types}>(pointers, strides, steps, count, rows, "
                f"{function_of_operands(text, result)});\n}}\n"
            )
            run = f"{fn}_rows<T>(pointers, strides, strides, count, 1, params)"
        if fallback:
            holds, other = (
                function_of_operands(fallback[0], "bool"),
                function_of_operands(fallback[1], result),
            )
            run = (
                f"run_where<{result}, {types}>(pointers, strides, count, {holds},\n"
                f"    {function_of_operands(text, result)},"
                f"\n    {other})"
            )
        out.append(
            f"template <class T>\nstatic void {fn}(char* const* pointers, const int64_t* strides, "
            f"int64_t count, [[maybe_unused]] const void* params) {{\n"
            f"{'' if o.get('number_loops') else reads}  {run};\n}}\n"
        )
        for letter in letters:
            for d in DTYPE_GROUPS[letter]:
                table[d] = f"{fn}<{CPP_TYPES[d]}>"
                table_of_rows[d] = f"{fn}_rows<{CPP_TYPES[d]}>"
        if o.get("halves") and "f" in letters:
            out.append(_half_loops(row, fn, text, reads.replace("<T>", "<float>")))
            table |= {d: f"{fn}_of_halves<{t}>" for d, t in HALF_TYPES.items()}
    tables = _table(f"loops_{name}", "Loop", table)
    if o.get("number_loops"):
        tables += _table(f"rows_{name}", "RowsLoop", table_of_rows)
    return "".join(out) + tables


def _half_loops(row: Row, fn: str, text: str, reads: str) -> str:
    """A loop that reads and writes half precision: of bits, or in vectors of float32."""
    if row.family.options["halves"] is not True:
        bits = to_cpp(parse_expression(row.family.options["halves"], f"halves of {row.name}"))
        return (
            f"template <class H>\nstatic void {fn}_of_halves(char* const* pointers, "
            f"const int64_t* strides, int64_t count, const void*) {{\n"
            f"  run<uint16_t, uint16_t>(pointers, strides, count, "
            f"[](uint16_t a) {{ return uint16_t({bits}); }});\n}}\n"
        )
    count = sum(a.operand for a in row.schema.args)
    operands = [f"Floats {name}" for name in "abcde"[:count]]
    cpp = to_cpp(
        parse_expression(text, f"formula of {row.name}"),
        call_prefix="math::",
        fraction="float({})",
        chosen="lanes({})",
    )
    return (
        f"template <class H>\nstatic void {fn}_of_halves(char* const* pointers, "
        f"const int64_t* strides, int64_t count, [[maybe_unused]] const void* params) {{\n"
        f"{reads.replace('const T ', 'const float ')}"
        f"  run_halves<H>(pointers, strides, count, [=]({', '.join(operands)}) "
        f"__attribute__((always_inline)) -> Floats {{ return {cpp}; }},\n"
        f"      std::make_index_sequence<{count}>{{}});\n}}\n"
    )


def _table(name: str, kind: str, table: dict[str, str]) -> str:
    order = [
        "Bool",
        "UInt8",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float16",
        "BFloat16",
        "Float32",
        "Float64",
        "Complex64",
        "Complex128",
        "Float8E4M3",
        "Float8E5M2",
    ]
    cells = ", ".join(table.get(d, "nullptr") for d in order)
    return f"extern const {kind} {name}[kDTypes] = {{{cells}}};\n\n"


def reduction_loops(rows: list[Row]) -> str:
    """The loops of rows that fold in the same way: one functor, one set of instances."""
    o = rows[0].family.options
    fold = f"Fold_{rows[0].schema.cpp_name}"
    where = f"of {rows[0].name}"
    cpp = to_cpp(parse_expression(o["combine"], f"combine {where}"), call_prefix="math::")
    init = to_cpp(
        parse_expression(o.get("init", "0"), f"init {where}"),
        {"lowest": "Lowest<T>::value", "highest": "Highest<T>::value"},
    )
    extreme = {"maximum(a, b)": "Largest", "minimum(a, b)": "Smallest"}.get(o["combine"], "None")
    text = (
        f"struct {fold} {{\n"
        f"  static constexpr Extreme extreme = Extreme::{extreme};\n"
        f"  template <class T>\n  static inline T combine(T a, T b) {{ return T({cpp}); }}\n"
        f"  template <class T>\n  static constexpr T init() {{ return T({init}); }}\n}};\n"
    )
    for row in rows:
        types = [d for letter in row.family.options["types"] for d in DTYPE_GROUPS[letter]]
        for kind, loop in (("reduce", "ReduceLoop"), ("fold", "Loop")):
            table = {d: f"{kind}_run<{fold}, {CPP_TYPES[d]}>" for d in types}
            text += _table(f"{kind}_{row.schema.cpp_name}", loop, table)
    return text


def _fold_of(row: Row) -> tuple[str, str]:
    return row.family.options["combine"], row.family.options.get("init", "0")


def emit_loops(module: str, rows: list[Row]) -> dict[str, str]:
    """File name -> text, a few rows each so that no translation unit takes long."""
    folds: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.family.name == "reduction":
            folds.setdefault(_fold_of(row), []).append(row)
    pieces = [(elementwise_loops(r), 1) for r in rows if r.is_elementwise]
    pieces += [(reduction_loops(group), 2) for group in folds.values()]
    bodies: list[str] = []
    room = 0
    for text, size in pieces:
        if room < size:
            bodies.append("")
            room = PIECES_PER_FILE
        bodies[-1] += text
        room -= size
    return {
        f"loops_{module}_{k}_isa.cpp": (
            f"// Generated from ops/{module}.py by gen. Do not edit.\n"
            + ('#include "cpu/half_lanes.h"\n' if "run_halves" in body else "")
            + '#include "cpu/loop.h"\n#include "cpu/reduce_loop.h"\n#include "cpu/vector_math.h"\n'
            '#include "op/loop_types.h"\n\n'
            f"namespace facula::FACULA_ISA {{\n\n{body}}}  // namespace facula::FACULA_ISA\n"
        )
        for k, body in enumerate(bodies)
    }
