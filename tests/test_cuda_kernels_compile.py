"""Compiles the CUDA templates with NVRTC, which needs no GPU.

Kernels are specialised by macros (see the heads of ``_kernels/elementwise.cuh`` and
``reduce.cuh``). The macros here are those that ``csrc/cuda`` writes, and the formulas are those of
the operator table, so that a row that is no CUDA code fails in CI and not on a user's machine.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "src" / "facula" / "_kernels"
sys.path.insert(0, str(ROOT))

from gen.expression import parse_expression, to_cpp  # noqa: E402
from gen.rows import load_table  # noqa: E402

# Python name -> letter of its formulas in the table, and the type in which they are computed.
DTYPES = {
    "bool": ("b", "bool"),
    **{f"{u}int{n}": ("i", f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
    **dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"), ("f", "float32")),
    "float32": ("f", "float32"),
    "float64": ("f", "float64"),
    "complex64": ("c", "complex64"),
    "complex128": ("c", "complex128"),
}
ITEM_SIZE = {
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
} | {f"{kind}{bits}": bits // 8 for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}


# ---- NVRTC


def library_candidates() -> list[str]:
    """In the order in which csrc/cuda/libraries.cpp looks."""
    folders: list[str] = []
    for variable in ("FACULA_CUDA_PATH", "CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(variable):
            folders += [*glob.glob(f"{root}/nvidia/*/lib"), f"{root}/lib64", f"{root}/lib", root]
    for site in sys.path:
        folders += glob.glob(f"{site}/nvidia/*/lib")
    names = ["libnvrtc.so.13", "libnvrtc.so.12"]
    found = [f"{folder}/{name}" for folder in folders for name in names]
    installed = glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.1[23]")
    return [path for path in found if os.path.exists(path)] + names + installed


@functools.cache
def nvrtc() -> ctypes.CDLL | None:
    for path in library_candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


needs_nvrtc = pytest.mark.skipif(
    nvrtc() is None, reason="NVRTC is not installed (pip install facula[cuda])"
)


def supported_architectures() -> list[int]:
    library = nvrtc()
    if library is None:
        return [90]
    count = ctypes.c_int()
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    found = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(found)
    return [arch for arch in (70, 75, 80, 86, 89, 90) if arch in list(found)]


ARCHITECTURES = supported_architectures()
MAIN_ARCHITECTURES = [arch for arch in (80, 90) if arch in ARCHITECTURES]


def compile_kernel(
    file: str, macros: dict[str, object], arch: int | str = 90, ptx: bool = False
) -> bytes:
    """The cubin, or the PTX text; fails the test with NVRTC's log."""
    library = nvrtc()
    assert library is not None
    definitions = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    source = f'{definitions}#include "{file}"\n'
    program = ctypes.c_void_p()
    created = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None
    )
    assert created == 0
    try:
        options = [
            f"--gpu-architecture=sm_{arch}",
            "--std=c++17",
            "--device-as-default-execution-space",
            f"--include-path={KERNELS}",
        ]
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        status = library.nvrtcCompileProgram(program, len(options), array)
        log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
        if status != 0:
            pytest.fail(f"NVRTC gave error {status} for\n{definitions}\n{log.decode()}")
        if ptx:
            return _text(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
        return _text(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(get_size, get_text, program) -> bytes:
    size = ctypes.c_size_t()
    assert get_size(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    assert get_text(program, buffer) == 0
    return buffer.raw[: size.value]


# ---- macros


@dataclass
class Layout:
    """What specialises a kernel beside types."""

    vector: bool = True
    splat: int = 0
    ndim: int = 0
    index: str = "uint32"


LAYOUTS = {
    "dense": Layout(),
    "dense_with_a_number": Layout(splat=2),
    "broadcast_rows": Layout(ndim=2),
    "broadcast_columns": Layout(ndim=2, splat=2),
    "strided_2": Layout(vector=False, ndim=2),
    "strided_4": Layout(vector=False, ndim=4),
    "strided_16": Layout(vector=False, ndim=16),
    "strided_wide": Layout(vector=False, ndim=4, index="uint64"),
}


def elementwise_macros(
    body: str,
    dtype: str,
    layout: Layout,
    inputs: int = 2,
    out: str | None = None,
    masks: tuple[int, ...] = (),
    params: tuple[tuple[str, str], ...] = (),
    result: str | None = None,
) -> dict[str, object]:
    compute = DTYPES[dtype][1]
    out = out or dtype
    widest = max(ITEM_SIZE[dtype], ITEM_SIZE[out])
    macros: dict[str, object] = {
        "FACULA_NAME": "facula_test",
        "FACULA_COMPUTE": compute if compute == "bool" else f"facula::{compute}",
        "FACULA_RESULT": result or "T",
        "FACULA_OUT": out,
        "FACULA_INPUTS": inputs,
        "FACULA_BODY": body,
        "FACULA_VECTOR": max(1, 16 // widest) if layout.vector else 1,
        "FACULA_SPLAT": layout.splat,
        "FACULA_NDIM": layout.ndim,
        "FACULA_INDEX": layout.index,
        "FACULA_UNROLL": 2,
    }
    for k in range(inputs):
        macros[f"FACULA_IN{k}"] = "bool" if k in masks else dtype
        macros[f"FACULA_ARG{k}"] = "bool" if k in masks else "T"
    return macros | param_macros(params)


def param_macros(params: tuple[tuple[str, str], ...]) -> dict[str, object]:
    macros: dict[str, object] = {"FACULA_PARAMS": len(params)}
    for k, (name, kind) in enumerate(params):
        macros[f"FACULA_SLOT{k}"] = "double" if kind == "R" else kind
        macros[f"FACULA_P{k}"] = kind
        macros[f"FACULA_PARAM_NAME{k}"] = name
    return macros


def reduce_macros(
    formula: tuple[str, str, str, str],
    dtype: str,
    compute: str,
    outer: int = 0,
    stage: int = 0,
    kept: int = 1,
    reduced: int = 1,
    index: str = "uint32",
    accumulator: str = "T",
    out: str | None = None,
) -> dict[str, object]:
    init, map_, combine, finalise = formula
    return {
        "FACULA_NAME": "facula_test",
        "FACULA_COMPUTE": compute if compute == "bool" else f"facula::{compute}",
        "FACULA_ACC": accumulator,
        "FACULA_OUT": out or dtype,
        "FACULA_INPUTS": 1,
        "FACULA_IN0": dtype,
        "FACULA_INIT": f"return {init};",
        "FACULA_MAP": f"return {map_};",
        "FACULA_COMBINE": f"return {combine};",
        "FACULA_FINALISE": f"return {finalise};",
        "FACULA_STAGE": stage,
        "FACULA_OUTER": outer,
        "FACULA_VECTOR": 1 if stage == 2 else max(1, 16 // ITEM_SIZE[dtype]),
        "FACULA_KEPT": kept,
        "FACULA_REDUCED": reduced,
        "FACULA_INDEX": index,
        "FACULA_UNROLL": 4,
    } | param_macros((("p0", "T"),))


SUM = ("0", "a", "a + b", "a")


# ---- the templates


@needs_nvrtc
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arch", MAIN_ARCHITECTURES)
def test_elementwise_template_compiles_for_every_dtype(arch, dtype):
    macros = elementwise_macros("return a + b;", dtype, LAYOUTS["dense"])
    assert compile_kernel("elementwise.cuh", macros, arch)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_elementwise_template_compiles_for_every_layout(arch, layout):
    for dtype in ("float32", "bfloat16"):
        macros = elementwise_macros("return a * b;", dtype, LAYOUTS[layout])
        assert compile_kernel("elementwise.cuh", macros, arch)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("to", DTYPES)
def test_casts_compile_from_and_to_every_dtype(to):
    # All conversions to one dtype in one kernel: 17 compilations instead of 289.
    steps = "".join(f"x = convert<{to}>(convert<{dtype}>(a));" for dtype in DTYPES)
    body = f"{to} x; {steps} return x;"
    macros = elementwise_macros(body, "float32", LAYOUTS["strided_2"], 1, to, result=to)
    assert compile_kernel("elementwise.cuh", macros)[:4] == b"\x7fELF"


@needs_nvrtc
def test_dense_kernels_move_16_bytes_at_once():
    for dtype in ("float32", "float16", "uint8"):
        macros = elementwise_macros("return a + b;", dtype, LAYOUTS["dense"])
        ptx = compile_kernel("elementwise.cuh", macros, ptx=True).decode()
        assert len(re.findall(r"ld\.global\.(v4\.\w32|v2\.\w64)", ptx)) >= 4, dtype
        assert re.search(r"st\.global\.(v4\.\w32|v2\.\w64)", ptx), dtype


@needs_nvrtc
def test_float_formulas_stay_in_single_precision():
    body = "return a * alpha + R(0.5) * exp(b);"
    macros = elementwise_macros(body, "float32", LAYOUTS["dense"], params=(("alpha", "R"),))
    ptx = compile_kernel("elementwise.cuh", macros, ptx=True).decode()
    assert "mul.f64" not in ptx
    assert "fma.rn.f64" not in ptx


@needs_nvrtc
def test_formulas_see_masks_parameters_and_the_index():
    body = "return where(b, a * alpha, p1) + index;"
    macros = elementwise_macros(
        body,
        "float32",
        LAYOUTS["strided_4"],
        masks=(1,),
        params=(("alpha", "R"), ("p1", "facula::int64")),
    )
    assert compile_kernel("elementwise.cuh", macros)


@needs_nvrtc
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arch", MAIN_ARCHITECTURES)
def test_reduce_template_compiles_for_every_dtype(arch, dtype):
    letter, compute = DTYPES[dtype]
    accumulate = "int64" if letter in "bi" else compute
    for outer in (0, 1):
        macros = reduce_macros(SUM, dtype, accumulate, outer=outer)
        assert compile_kernel("reduce.cuh", macros, arch)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("outer", [0, 1])
@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("dims", [(1, 1), (4, 1), (1, 4), (16, 16)])
def test_reduce_template_compiles_for_every_layout(dims, stage, outer):
    kept, reduced = dims
    index = "uint64" if kept == 16 else "uint32"
    macros = reduce_macros(SUM, "float32", "float32", outer, stage, kept, reduced, index)
    assert compile_kernel("reduce.cuh", macros)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("arch", MAIN_ARCHITECTURES)
def test_reductions_with_larger_accumulators_compile(arch):
    argmax = ("{lowest, 0x7fffffffffffffff}", "indexed(a, index)", "larger(a, b)", "a.index")
    variance = ("{0, 0, 0}", "moments(a)", "merge(a, b)", "a.squares / (a.count - p0)")
    for outer in (0, 1):
        for stage in (0, 1, 2):
            macros = reduce_macros(
                argmax, "float16", "float32", outer, stage, accumulator="Indexed<T>", out="int64"
            )
            assert compile_kernel("reduce.cuh", macros, arch)
            macros = reduce_macros(
                variance, "float64", "float64", outer, stage, accumulator="Moments<T>"
            )
            assert compile_kernel("reduce.cuh", macros, arch)


# ---- the operator table


def table_rows(family: str) -> list:
    return [row for row in load_table() if row.family.name == family]


def row_macros(row, dtype: str) -> dict[str, object] | None:
    """The kernel of an elementwise row, or None where it has none for the dtype."""
    letter, _ = DTYPES[dtype]
    options = row.family.options
    text = row.f.get(letter, row.f.get(""))
    if letter not in options["types"] or not text:
        return None
    operands = [a for a in row.schema.args if a.operand]
    kinds = {"Scalar": "T", "float": "R", "float?": "R", "int": "facula::int64", "bool": "bool"}
    params = tuple((a.name, kinds[a.type]) for a in row.schema.args if not a.operand)
    masks = tuple(k for k, a in enumerate(operands) if a.name in options.get("masks", ()))
    result = {"Compute": "T", "Bool": "bool", "Real": "R"}[options["out"]]
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    out = {"Compute": dtype, "Bool": "bool", "Real": real}[options["out"]]
    expression = to_cpp(parse_expression(text, row.name))
    return elementwise_macros(
        f"return {expression};",
        dtype,
        Layout(vector=False, ndim=2),
        len(operands),
        out,
        masks,
        params,
        result,
    ) | {"FACULA_UNROLL": 1}


@needs_nvrtc
@pytest.mark.parametrize("row", table_rows("elementwise"), ids=lambda row: row.name)
def test_formula_of_row_is_cuda_code(row):
    kernels = [row_macros(row, dtype) for dtype in ("bool", "int64", "float32", "complex64")]
    kernels = [macros for macros in kernels if macros is not None]
    assert kernels, "the row has no formula for any dtype"
    for macros in kernels:
        assert compile_kernel("elementwise.cuh", macros)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("row", table_rows("reduction"), ids=lambda row: row.name)
def test_reduction_of_row_is_cuda_code(row):
    options = row.family.options
    for dtype in ("bool", "int32", "float32", "complex64"):
        letter, compute = DTYPES[dtype]
        if letter not in options["types"]:
            continue
        if letter == "i" and options.get("integers"):
            compute = options["integers"].lower()
        formula = (options.get("init", "0"), "a", options["combine"], "a")
        macros = reduce_macros(formula, dtype, compute)
        assert compile_kernel("reduce.cuh", macros)[:4] == b"\x7fELF"
